"""What a folder holds, byte for byte, so that a refusal can be shown to have changed nothing."""

import stat
from pathlib import Path


def snapshot(root: Path) -> dict[str, str | bytes]:
    """Every path below `root` with its bytes, a link's target, or what else it is; temporary files included."""
    return {str(path.relative_to(root)): _content(path) for path in sorted(root.rglob("*"))}


def open_descriptors() -> int:
    """How many files and folders this process holds open."""
    return sum(1 for _ in Path("/dev/fd").iterdir())


def _content(path: Path) -> str | bytes:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return f"link to {path.readlink()}"
    if stat.S_ISREG(mode):
        return path.read_bytes()
    return "folder" if stat.S_ISDIR(mode) else "special file"
