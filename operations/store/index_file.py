"""Which file of the vault is the generated index document: one at the root that begins with our mark, and no other.

Source: vault-contract.md §12, auth-and-security.md §7 (guard keys).
"""

import os
from typing import Final, NamedTuple

from operations.errors import VaultError
from operations.store.paths import VaultPath, guard_key
from operations.store.tree import OpenFolder, Tree

INDEX_PATH: Final = VaultPath("index.md")
MARK: Final = b"<!-- vault-mcp:index "
"""The first bytes of the file; anywhere else they mean nothing, so that a note may speak of them."""
_BOM: Final = b"\xef\xbb\xbf"


class IndexFile(NamedTuple):
    """What stands at the root under the name of the index document; nothing when both are `None`."""

    path: VaultPath | None = None
    """Where the generated one stands, as the disk spells it."""
    foreign: str | None = None
    """The name of something else that some disk would take for it; then nothing is generated."""


def is_index_name(path: str) -> bool:
    """Whether `path` is the index document on this or another file system: `INDEX.MD`, `index.md.` are."""
    if path.isascii():
        return path.rstrip(". ").lower() == INDEX_PATH
    # Of the names of other scripts few get as far as their key.
    return "x" in path.lower() and "/" not in path and guard_key(path) == INDEX_PATH


def find_index_file(tree: Tree) -> IndexFile:
    """Look at the root, and at the first bytes of what stands there under that name.

    Raises:
        OSError: The root cannot be listed.
    """
    with tree.open_root() as root:
        names = sorted(name for name in root.names() if is_index_name(name))
        for name in names:
            path = _generated(root, name)
            if path is None or len(names) > 1:
                return IndexFile(foreign=name)
            return IndexFile(path=path)
    return IndexFile()


def has_mark(data: bytes) -> bool:
    """Whether a file that begins so was generated."""
    return data.removeprefix(_BOM).startswith(MARK)


def _generated(root: OpenFolder, name: str) -> VaultPath | None:
    try:
        opened = root.open_file(name)
    except (VaultError, OSError):
        return None  # a folder, a link, or nothing that may be read
    if opened is None:
        return None
    fd, path, _ = opened
    try:
        return path if has_mark(os.read(fd, len(_BOM) + len(MARK))) else None
    finally:
        os.close(fd)
