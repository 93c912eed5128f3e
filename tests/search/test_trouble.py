"""What search cannot have costs its part of search, is said in `/readyz`, and stops nothing else.

Source: search.md §5 and §6, vault-contract.md §14.
"""

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from operations.search.onnx_models import BUNDLED_FOLDER
from tests.harness import Server, fill, serving
from tests.index.indexes import wait_for

NOTES = {f"N{number}.md": f"# Note {number}\n\nA walrus, number {number}.\n" for number in range(40)}
LOCKING = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    fill(tmp_path / "vault", NOTES)
    return tmp_path / "vault"


def search(server: Server, query: str = "walrus") -> dict[str, Any]:
    """The answer of REST, once it is sure that MCP gives the same."""
    answer = server.http("GET", f"/search?q={query}")
    assert answer.status == 200, answer.text
    tool = server.tool("vault_search", {"query": query})
    assert [hit["path"] for hit in tool.structured["hits"]] == [hit["path"] for hit in answer.json["hits"]]
    found: dict[str, Any] = answer.json
    return found


def ready(server: Server) -> dict[str, Any]:
    """What `/readyz` says; it is served whatever the index is like."""
    answer = server.http("GET", "/readyz")
    assert answer.status in (200, 503)
    said: dict[str, Any] = answer.json
    assert said["status"] in ("ready", "degraded", "building", "failed")
    return said


def writes(server: Server) -> None:
    """Reads, lists and edits go on."""
    assert server.http("PUT", "/vault/New.md?overwrite=1", "A walrus too.\n").status == 200
    assert server.http("GET", "/vault/New.md").text == "A walrus too.\n"
    assert "New.md" in server.http("GET", "/vault/").json["files"]


@contextmanager
def silent_endpoint() -> Iterator[str]:
    """An address that takes every connection and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        taken: list[socket.socket] = []

        def take() -> None:
            while True:
                try:
                    taken.append(listening.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
        for connection in taken:
            connection.close()


def test_a_dead_endpoint_costs_meaning_only(root: Path, tmp_path: Path) -> None:
    environ = {"EMBEDDING_ENABLED": "true", "VAULT_MCP_EMBEDDING__ENDPOINT": "http://127.0.0.1:9/v1"}
    with serving(root, tmp_path / "state", environ) as server:
        cause = "127.0.0.1:9 cannot be reached: ConnectError"
        wait_for(lambda: ready(server)["embedding"]["state"] == "failed")
        said = ready(server)
        assert (said["status"], said["embedding"]["error"]) == ("degraded", cause)
        assert f"embedding: {cause}" in said["warnings"]
        found = search(server)
        assert (found["search_mode"], found["hits"][0]["found_by"]) == ("lexical", "lexical")
        assert found["advisories"] == [f"searched by words alone: {cause}"]
        writes(server)


def test_a_silent_endpoint_does_not_hold_up_searches(root: Path, tmp_path: Path) -> None:
    with silent_endpoint() as endpoint:
        environ = {"EMBEDDING_ENABLED": "true", "VAULT_MCP_EMBEDDING__ENDPOINT": endpoint}
        with serving(root, tmp_path / "state", environ) as server:
            found = search(server)
            assert (found["search_mode"], len(found["hits"])) == ("lexical", 6)
            assert found["advisories"] == ["the semantic index is not built yet; searched by words"]
            assert ready(server)["embedding"]["state"] == "waiting"
            writes(server)


def test_a_model_that_is_no_model_is_said_and_words_are_searched(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(BUNDLED_FOLDER, folder)
    (folder / "model.onnx").unlink()
    (folder / "model.onnx").write_bytes(b"this is no model")
    environ = {"EMBEDDING_ENABLED": "true", "VAULT_MCP_EMBEDDING__PATH": str(folder)}
    with serving(root, tmp_path / "state", environ) as server:
        wait_for(lambda: ready(server)["embedding"]["state"] == "failed")
        assert "the model 'model' cannot be loaded" in ready(server)["embedding"]["error"]
        assert search(server)["search_mode"] == "lexical"
        writes(server)


def test_a_folder_without_a_model_leaves_the_bundled_one_and_a_warning(root: Path, tmp_path: Path) -> None:
    environ = {"EMBEDDING_ENABLED": "true", "VAULT_MCP_EMBEDDING__PATH": str(tmp_path)}
    with serving(root, tmp_path / "state", environ) as server:
        said = ready(server)
        assert (said["status"], said["embedding"]["source"]) == ("degraded", "bundled")
        assert f"there is no model in '{tmp_path}'" in said["embedding"]["error"]
        wait_for(lambda: ready(server)["embedding"]["state"] == "ready" and ready(server)["index"]["vectors"] == 40)
        assert search(server)["search_mode"] == "hybrid"


def test_a_model_that_cannot_be_fetched_is_said_with_the_cause(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    environ = {"EMBEDDING_ENABLED": "true", "EMBED_MODEL": "BAAI/bge-small-en-v1.5", "RERANK_MODE": "blended"}
    environ["VAULT_MCP_EMBEDDING__CACHE_DIR"] = str(tmp_path / "cache")
    with serving(root, tmp_path / "state", environ) as server:
        wait_for(lambda: "cannot be downloaded" in ready(server)["embedding"].get("error", ""))
        wait_for(lambda: ready(server)["rerank"]["state"] == "failed")
        said = ready(server)
        assert said["embedding"]["source"] == "bundled"
        assert said["rerank"]["mode"] == "blended"
        assert "the model 'Xenova/ms-marco-MiniLM-L-6-v2' cannot be downloaded" in said["rerank"]["error"]
        found = search(server)
        assert (found["reranked"], len(found["hits"])) == (False, 6)
        assert any(advisory.startswith("not reranked: ") for advisory in found["advisories"])


@pytest.mark.parametrize("damage", ["deleted", "deleted with its log", "emptied"])
def test_an_index_file_that_goes_while_it_is_used_is_built_anew(root: Path, tmp_path: Path, damage: str) -> None:
    state = tmp_path / "state"
    with serving(root, state) as server:
        assert len(search(server)["hits"]) == 6
        file = state / "index.db"
        if damage == "emptied":
            os.truncate(file, 0)
        else:
            file.unlink()
        if damage == "deleted with its log":
            (state / "index.db-wal").unlink(missing_ok=True)
            (state / "index.db-shm").unlink(missing_ok=True)
        writes(server)
        # Several at once need more connections than are open, and those meet the new state of the file.
        with ThreadPoolExecutor(6) as pool:
            assert {
                answer.status for answer in pool.map(lambda _: server.http("GET", "/search?q=walrus"), range(12))
            } <= {
                200,
                503,
            }
        assert ready(server)["version"]
        index = server.vault.index
        wait_for(lambda: index.state().recovered != () and index.wait_until_idle(0) and index.state().notes == 41)
        assert search(server)["hits"][0]["path"] == "New.md"
        said = ready(server)
        assert (said["status"], said["index"]["notes"], len(said["recovered"])) == ("ready", 41, 1)
        told = "damaged; it is kept as index.db.corrupt" if damage == "emptied" else "removed while it was used"
        assert told in said["recovered"][0]
        assert file.stat().st_size > 0


def test_a_locked_index_file_is_said_and_read_and_caught_up_with(root: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with serving(root, state) as server:
        command = [sys.executable, "-c", LOCKING, str(state / "index.db")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as locking:  # noqa: S603 - ours
            assert locking.stdout is not None
            assert locking.stdout.readline() == b"locked\n"
            writes(server)
            assert len(search(server)["hits"]) == 6
            wait_for(lambda: "error" in ready(server)["index"])
            said = ready(server)
            assert (said["status"], said["index"]["error"]) == ("degraded", "database is locked")
            assert "the index is not up to date: database is locked" in said["warnings"]
            locking.communicate(b"")
        wait_for(lambda: ready(server)["status"] == "ready")
        assert search(server)["hits"][0]["path"] == "New.md"
