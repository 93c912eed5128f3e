"""The generated `index.md` says what the notes say already: no search, list or count takes it for a note of its own."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from operations.caller import Caller, Surface
from operations.catalogue import OPERATIONS
from operations.errors import VaultError
from operations.index_document import DocumentState
from operations.invoke import invoke
from operations.store.paths import FolderPath
from tests.harness import Server, fill, serving, wait_until

ON = {"VAULT_MCP_INDEX__DOCUMENT": "on", "VAULT_MCP_WATCH__DEBOUNCE_SECONDS": "0.02"}
SEES_ALL = Caller("test", Surface.MCP)
BLIND = Caller("test", Surface.MCP, hidden_folders=(FolderPath("Secret"),))
FILES = {
    "Home/Boiler.md": "---\ndescription: 'Burns #wood, see [[Car]]'\n---\n# Boiler\n\nBurns wood.\n",
    "Home/Car.md": "A red car.\n",
    "Secret/Plan.md": "Dig a tunnel. See [[index]].\n",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("index")
    fill(folder / "vault", FILES)
    with serving(folder / "vault", folder / "state", ON) as running:
        wait_until(lambda: running.vault.index_document.status().state is DocumentState.CURRENT)
        assert running.vault.index.wait_until_idle(30)
        yield running


def called(server: Server, caller: Caller, name: str, **arguments: Any) -> dict[str, Any]:
    operation = next(each for each in OPERATIONS if each.name == name)
    result = invoke(operation, server.vault, caller, operation.input_model.model_validate(arguments))
    return result.model_dump(mode="json", exclude_none=True)


def refusal(server: Server, caller: Caller, name: str, **arguments: Any) -> VaultError:
    with pytest.raises(VaultError) as raised:
        called(server, caller, name, **arguments)
    return raised.value


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("vault_search", {"query": "Boiler wood"}),
        ("vault_search_text", {"query": "Burns"}),
        ("vault_recent_notes", {}),
        ("vault_find_orphans", {}),
        ("vault_list_tags", {}),
        ("vault_find_broken_links", {}),
        ("vault_get_backlinks", {"path": "Home/Car.md"}),
        ("vault_callouts", {}),
        ("vault_expiries", {"untracked": True}),
        ("vault_maintenance", {}),
        ("vault_list_tasks", {}),
    ],
)
def test_no_answer_names_it(server: Server, name: str, arguments: dict[str, Any]) -> None:
    assert "index.md" not in json.dumps(called(server, SEES_ALL, name, **arguments))


def test_what_only_it_says_is_not_there(server: Server) -> None:
    assert called(server, SEES_ALL, "vault_list_tags")["tags"] == []
    orphans = called(server, SEES_ALL, "vault_find_orphans")
    assert "Home/Boiler.md" in json.dumps(orphans)


def test_it_is_a_file_that_can_be_listed_read_and_linked_to(server: Server) -> None:
    assert "index.md" in json.dumps(called(server, SEES_ALL, "vault_list"))
    assert "Dig a tunnel." in json.dumps(called(server, SEES_ALL, "vault_read", path="index.md"))
    links = called(server, SEES_ALL, "vault_get_outgoing_links", path="Secret/Plan.md")
    assert "index.md" in json.dumps(links)
    assert called(server, SEES_ALL, "vault_get_backlinks", path="index.md")["total"] == 1
    assert called(server, SEES_ALL, "vault_get_outgoing_links", path="index.md")["total"] == len(FILES)


def test_it_does_not_exist_for_who_may_not_see_every_folder(server: Server) -> None:
    for name in ("index.md", "INDEX.md"):
        refused = refusal(server, BLIND, "vault_read", path=name)
        never = refusal(server, BLIND, "vault_read", path="never.md")
        assert (refused.code, refused.message.replace(name, "never.md")) == (never.code, never.message)
    for question, arguments in (
        ("vault_list", {}),
        ("vault_changes", {"since": "oldest"}),
        ("vault_overview", {}),
        ("vault_search", {"query": "tunnel"}),
        ("vault_maintenance", {}),
    ):
        told = json.dumps(called(server, BLIND, question, **arguments))
        assert "index.md" not in told
        assert "tunnel" not in told
    assert called(server, BLIND, "vault_overview")["files"] == 0


def test_it_is_made_without_folders_that_are_hidden_from_everybody(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    fill(root, FILES)
    environ = ON | {
        "VAULT_MCP_VAULT__HIDDEN_FOLDERS": "Secret",
        "INDEX_EXCLUDE_DIRS": "secret/Deep,Secret,Nowhere,home",
    }
    with serving(root, tmp_path / "state", environ) as server:
        wait_until(lambda: server.vault.index_document.status().state is DocumentState.CURRENT)
        assert (
            server.stored("index.md").partition(b"\n\n")[2] == b"- Home/ \xe2\x80\x93 its notes are not listed here\n"
        )


def test_a_move_leaves_it_to_be_written_anew(tmp_path: Path) -> None:
    fill(tmp_path / "vault", FILES)
    with serving(tmp_path / "vault", tmp_path / "state", ON) as server:
        wait_until(lambda: server.vault.index_document.status().state is DocumentState.CURRENT)
        moved = called(server, SEES_ALL, "vault_move", source="Home/Car.md", destination="Garage/Auto.md")
        assert "index.md" not in json.dumps(moved)
        wait_until(lambda: b"(Garage/Auto.md)" in server.stored("index.md"))
