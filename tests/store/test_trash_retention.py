"""What goes out of the trash by itself: what this server put there, long ago, and nobody has touched since.

Source: vault-contract.md §9.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import update

from operations.store.feed_tables import trashed_files
from tests.feed.test_feed import settled
from tests.harness import Server, fill, serving

FILES = {"A.md": "a\n", "B.md": "b\n", "Home/C.md": "c\n", "Home/Sub/D.md": "d\n", ".trash/Theirs.md": "theirs\n"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    root.mkdir()
    fill(root, FILES)
    return root


@contextmanager
def served(root: Path, environ: Mapping[str, str] | None = None) -> Iterator[Server]:
    with serving(root, root.parent / "state", environ) as server:
        settled(server)
        yield server


def make_old(server: Server, days: int = 31) -> None:
    """Let everything in the trash have been put there some days earlier."""
    with server.vault.feed.database.write() as connection:
        connection.execute(update(trashed_files).values(at_ms=trashed_files.c.at_ms - days * 86_400_000))


def in_trash(root: Path) -> set[str]:
    return {str(file.relative_to(root / ".trash")) for file in (root / ".trash").rglob("*")}


def test_what_was_trashed_long_ago_goes_with_its_folders_and_what_others_trashed_stays(root: Path) -> None:
    with served(root) as server:
        server.http("DELETE", "/vault/A.md")
        server.http("DELETE", "/folder/Home?recursive=true")
        assert in_trash(root) == {"A.md", "Home", "Home/C.md", "Home/Sub", "Home/Sub/D.md", "Theirs.md"}
        make_old(server)
        server.http("DELETE", "/vault/B.md")
    os.utime(root / ".trash/Theirs.md", (1, 1))
    with served(root):
        assert in_trash(root) == {"B.md", "Theirs.md"}


def test_what_was_changed_exchanged_or_put_back_in_the_trash_stays(root: Path) -> None:
    with served(root) as server:
        for path in ("A.md", "B.md", "Home/C.md", "Home/Sub/D.md"):
            server.http("DELETE", f"/vault/{path}")
        make_old(server)
    (root / ".trash/A.md").write_text("edited\n", encoding="utf-8")
    (root / ".trash/B.md").rename(root / ".trash/B kept.md")
    (root / ".trash/other").write_text("c\n", encoding="utf-8")
    (root / ".trash/other").rename(root / ".trash/C.md")
    (root / ".trash/D.md").unlink()
    (root / ".trash/D.md").symlink_to(root / "Home")
    before = in_trash(root)
    with served(root):
        assert in_trash(root) == before


def test_bytes_that_changed_under_the_same_time_and_size_stay(root: Path) -> None:
    with served(root) as server:
        server.http("PUT", "/vault/A.md", "one\n")
        server.http("DELETE", "/vault/A.md")
        make_old(server)
    file = root / ".trash/A.md"
    status = file.stat()
    with file.open("r+b") as open_file:
        open_file.write(b"two\n")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    with served(root):
        assert file.read_bytes() == b"two\n"


@pytest.mark.parametrize(
    "environ",
    [{"TRASH_RETENTION_DAYS": "0"}, {"TRASH_RETENTION_DAYS": "32"}, {"READONLY_MODE": "true"}],
)
def test_a_longer_time_none_and_a_server_that_only_reads_keep_it(root: Path, environ: dict[str, str]) -> None:
    with served(root) as server:
        server.http("DELETE", "/vault/A.md")
        make_old(server)
    with served(root, environ):
        assert "A.md" in in_trash(root)


def test_what_is_taken_out_again_is_safe(root: Path) -> None:
    with served(root) as server:
        server.http("DELETE", "/vault/A.md")
        make_old(server)
    (root / ".trash/A.md").rename(root / "A.md")
    with served(root):
        assert (root / "A.md").read_bytes() == b"a\n"
