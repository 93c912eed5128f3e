"""Files as they are listed and stored.

Source: tool-map.md §6.4 and "files, canvas".
"""

import base64
import hashlib
from pathlib import Path

from operations.store.paths import VaultPath
from tests.harness import Server, fill, serving

CSV = b"a;b\n"


def test_files_are_listed_with_who_refers_to_them(server: Server) -> None:
    files: dict[str, str | bytes] = {
        "A.png": b"12345",
        "b/B.PNG": b"1",
        "C.canvas": "{}",
        "Files/D.pdf": b"%PDF",
        "e": b"",
        "N.md": "![[A.png]]",
    }
    files["M.md"] = "[[A.png]] ![](b/B.PNG) ![[A.png]]"
    fill(server.root, files)
    server.vault.index.changed([VaultPath(path) for path in files])
    listed = server.tool("vault_list_files", {}).structured
    assert [(row["path"], row["kind"], row["referenced_by"], row["references"]) for row in listed["files"]] == [
        ("A.png", "file", 2, 3),
        ("C.canvas", "file", 0, 0),
        ("Files/D.pdf", "document", 0, 0),
        ("b/B.PNG", "file", 1, 1),
        ("e", "file", 0, 0),
    ]
    assert listed["files"][0]["mime"] == "image/png"
    assert listed["extension_counts"] == {"png": 2, "": 1, "canvas": 1, "pdf": 1}
    assert (listed["total"], listed["total_bytes"]) == (5, 12)
    pictures = server.tool("vault_list_files", {"extensions": [".Png"], "sort_by": "size", "limit": 1}).structured
    assert [row["path"] for row in pictures["files"]] == ["A.png"]
    assert (pictures["total"], pictures["total_bytes"], pictures["next_offset"]) == (2, 6, 1)
    unused = server.tool("vault_list_files", {"unreferenced_only": True, "folder": "Files"}).structured
    assert [row["path"] for row in unused["files"]] == ["Files/D.pdf"]
    of_note = server.tool("vault_list_files", {"note": "M.md"}).structured
    assert [row["path"] for row in of_note["files"]] == ["A.png", "b/B.PNG"]
    assert server.tool("vault_list_files", {"note": "A.png"}).code == "invalid_parameter"
    assert server.tool("vault_list_files", {"folder": "Nowhere"}).code == "not_found"


def test_a_file_is_stored_exactly_and_only_replaced_when_asked(server: Server) -> None:
    content = base64.b64encode(CSV).decode()
    stored = server.tool("vault_write_file", {"path": "a/Files/T.csv", "content_base64": content}).structured
    assert stored == {
        "path": "a/Files/T.csv",
        "uri": "obsidian://open?vault=vault&file=a%2FFiles%2FT.csv",
        "bytes": 4,
        "sha256": hashlib.sha256(CSV).hexdigest(),
        "version": hashlib.sha256(CSV).hexdigest()[:32],
        "status": "created",
        "message": "stored a/Files/T.csv (4 bytes)",
    }
    assert server.stored("a/Files/T.csv") == CSV
    again = server.tool("vault_write_file", {"path": "a/Files/T.csv", "content_base64": content}).structured
    assert (again["status"], again["message"]) == ("unchanged", "nothing to change in a/Files/T.csv (4 bytes)")
    other = {"path": "a/Files/T.csv", "content_base64": "AAA="}
    assert server.tool("vault_write_file", other).code == "document_conflict"
    before = server.snapshot()
    preview = server.tool("vault_write_file", {**other, "overwrite": True, "dry_run": True}).structured
    assert (preview["status"], preview["dry_run"]) == ("replaced", True)
    assert preview["based_on"] == {"a/Files/T.csv": stored["version"]}
    assert server.snapshot() == before
    assert server.tool("vault_write_file", {**other, "overwrite": True}).structured["status"] == "replaced"
    assert server.stored("a/Files/T.csv") == b"\0\0"


def test_what_may_not_be_stored_is_refused_and_leaves_nothing(server: Server) -> None:
    before = server.snapshot()
    for path, content, code in (
        ("Files/T.csv", "not base64!", "invalid_parameter"),
        ("Files/T.csv", "AAA", "invalid_parameter"),
        ("Files/T.csv", " AAA=", "invalid_parameter"),
        ("Files/T.csv", "", "empty_document"),
        ("Files/T.csv", "AAAA" * 87_382, "too_large"),
        ("Files/T.csv", "A" * 1_000_000, "too_large"),
        ("Files/T.sh", "AAA=", "document_unsupported"),
        ("Files/T.html", "AAA=", "document_unsupported"),
        ("Files/T.md", "AAA=", "document_unsupported"),
        ("T.csv", "AAA=", "wrong_parent_folder"),
        (".obsidian/Files/T.csv", "AAA=", "invalid_path"),
        ("../Files/T.csv", "AAA=", "invalid_path"),
    ):
        refused = server.tool("vault_write_file", {"path": path, "content_base64": content})
        assert refused.code == code, (path, refused.message)
        assert server.snapshot() == before


def test_a_file_may_stand_where_obsidian_puts_attachments(tmp_path: Path) -> None:
    for setting, allowed, refused in (
        ("Pictures/in", "Pictures/in/2026/T.csv", "Pictures/T.csv"),
        ("./attached", "Home/attached/T.csv", "Home/T.csv"),
        ("/", "T.csv", "Home/T.csv"),
        ("./", "Files/T.csv", "Home/T.csv"),
        ("..", "Files/T.csv", "T.csv"),
    ):
        root = tmp_path / hashlib.sha256(setting.encode()).hexdigest()[:8]
        root.mkdir()
        fill(root, {".obsidian/app.json": f'{{"attachmentFolderPath": "{setting}"}}'})
        with serving(root, tmp_path / f"{root.name}-state") as server:
            assert server.http("PUT", f"/files/{allowed}", CSV).status == 200, setting
            assert server.http("PUT", f"/files/{refused}", CSV).code == "wrong_parent_folder", setting
            assert server.http("PUT", f"/files/{allowed.replace('csv', 'pdf')}", b"%PDF").code == (
                None if "/Files/" in f"/{allowed}" else "wrong_parent_folder"
            )


def test_the_file_tools_can_be_switched_off_and_canvases_stay(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    fill(root, {"C.canvas": "{}"})
    with serving(root, tmp_path / "state", {"FILE_TOOLS_ENABLED": "false"}) as server:
        names = [tool["name"] for tool in server.rpc("tools/list")["result"]["tools"]]
        assert "vault_get_canvas" in names
        assert not {"vault_read_file", "vault_list_files", "vault_write_file"} & set(names)
        assert server.rpc("tools/call", {"name": "vault_read_file", "arguments": {"path": "C.canvas"}})["error"]
        for method, target in (("GET", "/files/C.canvas"), ("PUT", "/files/Files/T.csv"), ("GET", "/files")):
            assert server.http(method, target, CSV if method == "PUT" else b"").code == "not_found"
