"""A process killed at any point leaves the old file or the new one, and nothing that a sweep does not remove."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from operations.store.paths import VaultPath
from operations.store.tree import Tree
from operations.store.writes import create, replace, sweep_leftovers
from tests.conformance.cases import refused_with
from tests.store.snapshots import snapshot

CHECKOUT = Path(__file__).parents[2]
OLD, NEW = b"old" * 50_000, b"new" * 60_000

# Kills itself before or after the n-th call that changes the disk, then the next run continues one further.
AT_ONE_POINT = """
import os, signal, sys
from pathlib import Path
from operations.store.paths import VaultPath
from operations.store.tree import Tree
from operations.store.writes import create, rename, replace

root, action, point = sys.argv[1], sys.argv[2], int(sys.argv[3])
seen = 0

def counted(call):
    def wrapper(*args, **kwargs):
        global seen
        seen += 1
        if seen == point:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **kwargs)
    return wrapper

tree = Tree.open(Path(root))
previous = tree.read(VaultPath("a.md"), max_bytes=1 << 20)
for name in ("write", "fsync", "link", "unlink", "rename", "mkdir", "fchmod", "close"):
    setattr(os, name, counted(getattr(os, name)))
new = b"new" * 60_000
match action:
    case "replace":
        replace(tree, previous, new)
    case "create":
        create(tree, VaultPath("Sub/b.md"), new)
    case "rename":
        rename(tree, VaultPath("a.md"), VaultPath("Sub/b.md"))
"""

FOREVER = """
import sys
from pathlib import Path
from operations.store.paths import VaultPath
from operations.store.tree import Tree
from operations.store.writes import create, replace

tree = Tree.open(Path(sys.argv[1]))
note = tree.read(VaultPath("a.md"), max_bytes=1 << 20)
print("ready", flush=True)
number = 0
while True:
    number += 1
    note = replace(tree, note, (b"new" * 60_000, b"old" * 50_000)[number % 2])
    create(tree, VaultPath(f"New/{number}.md"), b"made" * 1000)
"""

FULL_DISK = """
import resource, sys
from pathlib import Path
from operations.errors import VaultError
from operations.store.paths import VaultPath
from operations.store.tree import Tree
from operations.store.writes import create, replace

tree = Tree.open(Path(sys.argv[1]))
note = tree.read(VaultPath("a.md"), max_bytes=1 << 20)
resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
for attempt in (lambda: replace(tree, note, b"x" * 70_000), lambda: create(tree, VaultPath("Sub/b.md"), b"x" * 70_000)):
    try:
        attempt()
    except VaultError as refusal:
        print(refusal.code)
"""


def run(script: str, *args: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", script, *args]
    return subprocess.run(command, cwd=CHECKOUT, timeout=60, capture_output=True, check=False)  # noqa: S603 - our own script


@pytest.mark.parametrize("action", ["replace", "create", "rename"])
def test_killed_before_any_single_step_the_vault_holds_the_old_or_the_new_state(tmp_path: Path, action: str) -> None:
    states: dict[str, list[dict[str, str | bytes]]] = {
        "replace": [{"a.md": OLD}, {"a.md": NEW}],
        "create": [{"a.md": OLD}, {"a.md": OLD, "Sub": "folder"}, {"a.md": OLD, "Sub": "folder", "Sub/b.md": NEW}],
        "rename": [{"a.md": OLD}, {"a.md": OLD, "Sub": "folder"}, {"Sub": "folder", "Sub/b.md": OLD}],
    }
    outcomes = states[action]
    reached: list[int] = []
    for point in range(1, 60):
        root = tmp_path / f"{point}"
        root.mkdir()
        (root / "a.md").write_bytes(OLD)
        child = run(AT_ONE_POINT, str(root), action, str(point))
        with Tree.open(root) as tree:
            sweep_leftovers(tree, older_than_seconds=-1)
        after = snapshot(root)
        assert after in outcomes
        reached.append(outcomes.index(after))
        if child.returncode == 0:
            break
        assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    else:
        pytest.fail("the action never ended")
    assert reached == sorted(reached), "later kills leave later states"
    assert set(reached) == set(range(len(outcomes)))


def test_killed_at_a_random_moment_every_file_is_whole(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    (root / "a.md").write_bytes(OLD)
    moments = random.Random(7)  # noqa: S311 - moments, not secrets
    for round_number in range(5):
        command = [sys.executable, "-c", FOREVER, str(root)]
        with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE) as child:  # noqa: S603 - our own script
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(timeout=moments.uniform(0.005, 0.15))
            child.kill()
        with Tree.open(root) as tree:
            sweep_leftovers(tree, older_than_seconds=-1)
        after = snapshot(root)
        assert after.pop("a.md") in (OLD, NEW)
        after.pop("New", None)
        assert set(after.values()) <= {b"made" * 1000}
        assert all(name.startswith("New/") and name.endswith(".md") for name in after)
        if (root / "New").exists():
            (root / "New").rename(tmp_path / f"done {round_number}")


def test_a_disk_that_fills_up_is_said_and_changes_nothing(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    (root / "a.md").write_bytes(OLD)
    child = run(FULL_DISK, str(root))
    assert (child.stdout, child.stderr) == (b"storage_unavailable\nstorage_unavailable\n", b"")
    assert snapshot(root) == {"a.md": OLD}


def test_a_leftover_of_a_crash_is_never_served(tmp_path: Path) -> None:
    (tmp_path / ".vault-mcp-0123456789abcdef.tmp").write_bytes(b"half")
    with Tree.open(tmp_path) as tree:
        assert tree.list_folder(VaultPath("x").parent) == []
        with refused_with("invalid_path"):
            tree.read(VaultPath(".vault-mcp-0123456789abcdef.tmp"), max_bytes=10)
        note = create(tree, VaultPath("a.md"), b"old")
        assert replace(tree, note, b"new").data == b"new"
