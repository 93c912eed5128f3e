"""The generated `index.md`: when it is written, what is never written over, and who does not see it."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.opening import open_vault
from operations.catalogue import OPERATIONS
from operations.index_document import DocumentState
from operations.registry import Operation
from tests.harness import INDEX_SECONDS, Server, fill, serving, settings_for, wait_until

ON = {"VAULT_MCP_INDEX__DOCUMENT": "on", "VAULT_MCP_WATCH__DEBOUNCE_SECONDS": "0.02"}
AUTO = ON | {"VAULT_MCP_INDEX__DOCUMENT": "auto"}
MARK = "<!-- vault-mcp:index "
NOTES = {
    "Home/Boiler.md": "---\ntitle: The boiler\ndescription: >\n  Serviced\n  in May.\n---\n# Other\n",
    "Home/Car.md": "# The car\n\nIt is red. It is fast.\n",
    "Start.md": "Begin here.\n",
    "Same.md": "# The same\n\nthe same\n",
}
BODY = (
    "- [The same](Same.md)\n"
    "- [Start](Start.md) – Begin here.\n"
    "\n"
    "# Home\n"
    "\n"
    "- [The boiler](Home/Boiler.md) – Serviced in May.\n"
    "- [The car](Home/Car.md) – It is red.\n"
)


@contextmanager
def served(tmp_path: Path, files: Mapping[str, str | bytes], environ: Mapping[str, str] = ON) -> Iterator[Server]:
    root = tmp_path / "vault"
    fill(root, files)
    with serving(root, tmp_path / "state", environ) as server:
        wait_until(lambda: server.vault.index_document.status().state is not DocumentState.WAITING)
        yield server


def body(server: Server) -> str:
    text = server.stored("index.md").decode()
    assert re.match(rf"{MARK}\d{{4}}-\d\d-\d\dT[\d:.]+\+00:00 [^\n]* -->\n\n", text)
    return text.partition("\n\n")[2]


def readiness(server: Server) -> Mapping[str, object]:
    part: Mapping[str, object] = server.http("GET", "/readyz").json["index_document"]
    return part


def test_the_index_is_written_at_the_start(tmp_path: Path) -> None:
    with served(tmp_path, NOTES) as server:
        assert body(server) == BODY
        assert readiness(server) == {"state": "current"}


def test_it_follows_our_own_writes_and_those_of_others(tmp_path: Path) -> None:
    with served(tmp_path, NOTES) as server:
        server.tool("vault_write", {"path": "Home/Roof.md", "content": "Leaks.\n"})
        wait_until(lambda: "- [Roof](Home/Roof.md) – Leaks.\n" in body(server))
        server.tool("vault_move", {"source": "Home/Roof.md", "destination": "Roof top.md"})
        wait_until(lambda: "- [Roof top](Roof%20top.md) – Leaks.\n" in body(server))
        fill(server.root, {"Roof top.md": "---\ndescription: Mended\n---\n"})
        wait_until(lambda: "- [Roof top](Roof%20top.md) – Mended\n" in body(server))
        (server.root / "Roof top.md").unlink()
        wait_until(lambda: body(server) == BODY)


def test_it_is_not_written_while_it_says_the_same(tmp_path: Path) -> None:
    with served(tmp_path, NOTES) as server:
        before = (server.root / "index.md").stat()
        server.tool("vault_append", {"path": "Start.md", "content": "More."})
        assert server.vault.index_document.bring_up_to_date().state is DocumentState.CURRENT
        assert (server.root / "index.md").stat().st_ino == before.st_ino
        assert body(server) == BODY
        changes = server.http("GET", "/changes?since=oldest").json["changes"]
        told = [(each["type"], each["operation"], each["caller"]) for each in changes if each["path"] == "index.md"]
        assert told == [("created", "index_document", "server")]


def test_an_edit_of_the_generated_file_by_others_is_written_over(tmp_path: Path) -> None:
    with served(tmp_path, NOTES) as server:
        head = server.stored("index.md").partition(b"\n")[0]
        fill(server.root, {"index.md": head + b"\n\nmine\n"})
        wait_until(lambda: body(server) == BODY)
        (server.root / "index.md").unlink()
        wait_until((server.root / "index.md").is_file)
        assert body(server) == BODY


def test_maintenance_finds_an_index_that_is_not_as_the_notes_are(tmp_path: Path) -> None:
    with served(tmp_path, NOTES, ON | {"VAULT_MCP_WATCH__DEBOUNCE_SECONDS": "600"}) as server:
        checked = "/maintenance?checks=index_document"
        assert server.http("GET", checked).json["checks"][0]["findings"] == []
        server.tool("vault_write", {"path": "New.md", "content": "x"})
        (finding,) = server.http("GET", checked).json["checks"][0]["findings"]
        assert (finding["code"], finding["path"], finding["message"]) == (
            "index_drift",
            "index.md",
            "it is not as the titles and descriptions of the notes are",
        )
        (server.root / "index.md").unlink()
        (finding,) = server.http("GET", checked).json["checks"][0]["findings"]
        assert finding["message"] == "it is not there yet"
        fill(server.root, {"index.md": "Mine.\n"})
        (finding,) = server.http("GET", checked).json["checks"][0]["findings"]
        assert finding["message"] == "'index.md' was not generated and is left alone"


@pytest.mark.parametrize("name", ["index.md", "Index.md", "INDEX.MD"])
def test_a_file_that_was_not_generated_is_left_alone_and_reported(tmp_path: Path, name: str) -> None:
    own = f"My own index, which speaks of {MARK}\n"
    with served(tmp_path, NOTES | {name: own}) as server:
        reason = f"'{name}' was not generated and is left alone; rename it to have an index generated"
        assert readiness(server) == {"state": "foreign", "reason": reason}
        assert f"index document: {reason}" in server.http("GET", "/readyz").json["warnings"]
        assert server.tool("vault_append", {"path": name, "content": "more"}).structured["path"] == name
        assert server.stored(name).decode() == f"{own}\nmore\n"
        assert [path for path in server.snapshot() if path.casefold() == "index.md"] == [name]
        server.tool("vault_move", {"source": name, "destination": "My own.md"})
        wait_until((server.root / "index.md").is_file)
        wait_until(lambda: "(My%20own.md)" in body(server))


def test_a_file_that_loses_the_mark_while_the_server_runs_is_left_alone(tmp_path: Path) -> None:
    with served(tmp_path, NOTES) as server:
        fill(server.root, {"index.md": "Mine now.\n"})
        wait_until(lambda: readiness(server)["state"] == "foreign")
        assert server.stored("index.md") == b"Mine now.\n"


def test_auto_keeps_a_generated_file_right_and_makes_none(tmp_path: Path) -> None:
    with served(tmp_path, NOTES, AUTO) as server:
        assert readiness(server) == {"state": "off"}
        assert not (server.root / "index.md").exists()
        fill(server.root, {"index.md": f"{MARK}by hand -->\n"})
        wait_until(lambda: server.stored("index.md") != f"{MARK}by hand -->\n".encode())
        assert body(server) == BODY


def test_auto_leaves_the_owners_index_to_the_owner(tmp_path: Path) -> None:
    with served(tmp_path, NOTES | {"index.md": "Mine.\n"}, AUTO) as server:
        assert readiness(server) == {"state": "off", "reason": "'index.md' was not generated and is left alone"}
        assert not [text for text in server.http("GET", "/readyz").json["warnings"] if "index.md" in text]
        assert server.http("PUT", "/vault/index.md?overwrite=1", "Other.\n").status == 200


def test_a_read_only_server_writes_none(tmp_path: Path) -> None:
    with served(tmp_path, NOTES, ON | {"VAULT_MCP_SERVER__READ_ONLY": "true"}) as server:
        assert readiness(server) == {"state": "off"}
        assert server.snapshot() == {"Home": None} | {path: text.encode() for path, text in NOTES.items()}


def test_a_process_that_only_reads_keeps_none_right(tmp_path: Path) -> None:
    fill(tmp_path / "vault", NOTES)
    vault = open_vault(settings_for(tmp_path / "vault", tmp_path / "state", ON))
    vault.start(generates=False)
    assert vault.index.wait_until_ready(INDEX_SECONDS)
    assert vault.index_document.status().state is DocumentState.OFF
    vault.close()
    assert not (tmp_path / "vault" / "index.md").exists()


def test_off_writes_nothing_and_guards_nothing(tmp_path: Path) -> None:
    old = f"{MARK}long ago -->\n\nold\n"
    with served(tmp_path, NOTES | {"index.md": old}, ON | {"VAULT_MCP_INDEX__DOCUMENT": "off"}) as server:
        assert readiness(server) == {"state": "off"}
        server.tool("vault_write", {"path": "New.md", "content": "x"})
        assert server.stored("index.md").decode() == old
        assert not server.tool("vault_delete", {"path": "index.md"}).is_error


_ARGUMENTS: Mapping[str, object] = {
    "anchor": "Begin",
    "content": "x",
    "content_base64": "eA==",
    "description": "x",
    "find": "Begin",
    "from_node": "a",
    "heading": "Home",
    "id": "a",
    "key": "k",
    "line": 3,
    "new_text": "Away",
    "position": "after",
    "properties": {"k": "v"},
    "replace": "x",
    "start_anchor": "Begin",
    "status": "done",
    "template": "Templates/T.md",
    "to_node": "b",
    "type": "text",
    "value": "v",
}
_NEEDED_BESIDE: Mapping[str, tuple[str, ...]] = {
    "vault_create_from_template": ("path",),
    "vault_ensure_block_id": ("line",),
    "vault_patch": ("content",),
    "vault_set_frontmatter": ("value",),
    "vault_update_task": ("line", "status"),
}
_WRITERS_OF_A_PATH = [each for each in OPERATIONS if each.writes and "path" in each.input_model.model_fields]


_NAMES = ("index.md", "INDEX.md", "index.md.", "./index.md", "ind\u200bex.md")


def test_no_tool_writes_it_by_any_of_its_names(tmp_path: Path) -> None:
    with served(tmp_path, NOTES | {"Templates/T.md": "t\n"}) as server:
        before = server.snapshot()
        for name in _NAMES:
            codes = {each.name: server.tool(each.name, arguments_of(each, name)).code for each in _WRITERS_OF_A_PATH}
            assert codes.pop("vault_write_file") == "document_unsupported"
            assert codes.pop("vault_delete_folder") in ("not_a_directory", "not_found")
            assert len(codes) > 15
            assert codes == dict.fromkeys(codes, "invalid_path"), name
            for source, destination in (("Start.md", name), (name, "Start 2.md"), ("Home", name)):
                answer = server.tool("vault_move", {"source": source, "destination": destination})
                assert answer.code == "invalid_path", (source, destination)
        assert server.snapshot() == before


def arguments_of(operation: Operation, path: str) -> dict[str, object]:
    fields = operation.input_model.model_fields
    needed = {name for name, field in fields.items() if field.is_required()}
    needed.update(_NEEDED_BESIDE.get(operation.name, ()))
    return {name: _ARGUMENTS.get(name) for name in needed} | {"path": path}


def test_no_route_writes_it(tmp_path: Path) -> None:
    with served(tmp_path, NOTES) as server:
        before = server.snapshot()
        for method, target in (
            ("PUT", "/vault/index.md"),
            ("PUT", "/vault/INDEX.md?overwrite=1"),
            ("POST", "/vault/index.md"),
            ("PATCH", "/vault/index.md"),
            ("DELETE", "/vault/index.md"),
            ("DELETE", "/vault/%69ndex.md?dry_run=1"),
        ):
            answer = server.http(method, target, "x", {"Target": "Home"} if method == "PATCH" else {})
            assert answer.code == "invalid_path", (method, target)
            assert (
                "change the property 'title' or 'description' of the note whose line is wrong" in answer.json["error"]
            )
        assert server.snapshot() == before


def test_no_batch_and_no_undo_writes_it(tmp_path: Path) -> None:
    with served(tmp_path, NOTES | {"index.md": "Mine.\n"}, AUTO) as server:
        server.tool("vault_append", {"path": "index.md", "content": "more"})
        change = server.http("GET", "/history?limit=1").json["changes"][0]["id"]
        fill(server.root, {"index.md": f"{MARK}by hand -->\n"})
        wait_until(lambda: readiness(server)["state"] == "current")
        before = server.snapshot()
        step = {"operation": "vault_append", "arguments": {"path": "index.md", "content": "x"}}
        assert server.tool("vault_batch", {"steps": [step]}).code == "invalid_path"
        assert server.tool("vault_undo", {"change_id": change, "force": True}).code == "invalid_path"
        assert server.snapshot() == before
