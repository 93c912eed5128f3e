"""Names that sync tools leave behind.

Source: safety-and-automation.md §6.
"""

from pathlib import Path

import pytest

from operations.store.sync_names import ConflictCopy, conflict_copy_of
from tests.harness import fill, serving


@pytest.mark.parametrize(
    ("path", "original", "is_certain"),
    [
        ("A/Note (Conflicted copy MacBook Pro 202603151030).md", "A/Note.md", True),
        ("Note (Ann's conflicted copy 2026-03-15).md", "Note.md", True),
        ("Note (conflicted copy 2026-03-15 103000).md", "Note.md", True),
        ("Note.sync-conflict-20260315-103000-ABC1234.md", "Note.md", True),
        ("Plan.sync-conflict-20260315-103000.canvas", "Plan.canvas", True),
        ("Note-DESKTOP-4F6K2Q1.md", "Note.md", False),
        ("Note-LAPTOP-ANN-2.md", "Note.md", False),
        ("Note-DESKTOP-4F6K2Q1 (conflicted copy).md", "Note.md", True),
        ("Note.sync-conflict-20260315-103000-A.sync-conflict-20260316-103000-B.md", "Note.md", True),
    ],
)
def test_a_copy_names_its_original(path: str, original: str, is_certain: bool) -> None:
    assert conflict_copy_of(path) == ConflictCopy(original, is_certain)


@pytest.mark.parametrize(
    "path",
    [
        "Note.md",
        "Note 2.md",
        "Note (copy).md",
        "Conflicted copy.md",
        "(conflicted copy).md",
        "On conflicted copying.md",
        "Note (preconflicted copy).md",
        "Note.sync-conflict.md",
        "Note-Desktop-plans.md",
        "Folder (conflicted copy)/Note.md",
        ".sync-conflict-20260315-103000-ABC.md",
    ],
)
def test_other_names_are_left_alone(path: str) -> None:
    assert conflict_copy_of(path) is None


def test_a_placeholder_is_not_written_beside(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    fill(root, {".Note.md.icloud": b"bplist00", "A.md": "a\n", "Sub/.Plan.md.icloud": b"bplist00"})
    with serving(root, tmp_path / "state") as server:
        before = server.snapshot()
        refusals = [
            server.http("PUT", "/vault/Note.md", "new"),
            server.http("POST", "/vault/Note.md", "new"),
            server.http("PATCH", "/vault/Note.md", "new", {"Target-Type": "body", "Operation": "replace"}),
            server.http("POST", "/move", '{"source": "A.md", "destination": "Sub/Plan.md"}'),
            server.http("POST", "/move?dry_run=1", '{"source": "A.md", "destination": "Note.md"}'),
            server.http("GET", "/vault/Note.md"),
        ]
        assert [(answer.code, "not downloaded" in answer.json["error"]) for answer in refusals] == [
            ("invalid_path", True)
        ] * len(refusals)
        tool = server.tool("vault_append", {"path": "Note.md", "content": "x"})
        assert (tool.code, "not downloaded" in tool.message) == ("invalid_path", True)
        assert server.snapshot() == before
        assert server.http("PUT", "/vault/Other.md", "new").code is None


def test_search_answers_with_the_original_before_its_copies(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    copy = "Boiler (Conflicted copy Laptop 202603151030).md"
    fill(
        root,
        {
            "Boiler.md": "# Service\n\nThe boiler has the serial number QX-771-B, read in the cellar one winter.\n",
            copy: "# QX-771-B\n\nQX-771-B QX-771-B\n",
            "Tank (conflicted copy 2026-03-15).md": "The tank holds oil.\n",
            "Other.md": "Nothing of that here.\n",
        },
    )
    with serving(root, tmp_path / "state") as server:
        hits = server.http("GET", "/search?q=QX-771-B").json["hits"]
        paths = [hit["path"] for hit in hits]
        assert paths.index("Boiler.md") < paths.index(copy)
        assert [hit["path"] for hit in hits if hit.get("pinned")] == ["Boiler.md"]
        assert server.http("GET", "/search?q=tank").json["hits"][0]["path"].startswith("Tank")
