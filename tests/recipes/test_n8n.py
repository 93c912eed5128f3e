"""Every recipe of docs/n8n.md works as it stands there, sent by a plain HTTP client over a real connection."""

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.webhooks import signature
from tests.clients.live_server import LiveServer, live_server
from tests.feed.receivers import Received, receiving
from tests.harness import fill
from tests.recipes.commands import Answer, Command, code_in, commands_in

PAGE = "n8n.md"
SECRET = "a secret of the test"
CURSOR = '{{ $getWorkflowStaticData("global").cursor || "oldest" }}'
FILES = {
    "Home/Boiler.md": "---\ndue: 2026-05-14\n---\n# Boiler\n",
    "Inbox/One.md": "---\nstatus: open\n---\none\n",
    "Inbox/Two.md": "---\nstatus: done\n---\ntwo\n",
}
READ, WAITING, LOOK, CLAIM, FILE, POLL = range(6)
NEEDS_NODE = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")


@pytest.fixture(scope="module")
def commands() -> list[Command]:
    found = commands_in(PAGE)
    assert len(found) == 6
    return found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LiveServer]:
    root = tmp_path / "vault"
    root.mkdir()
    fill(root, FILES)
    with live_server(root, tmp_path / "state", {"EMBEDDING_ENABLED": "false"}) as server:
        yield server


def sent(command: Command, server: LiveServer, **more: Any) -> Answer:
    return command.send(server.url, server.key, **more)


def code_of(answer: Answer) -> str:
    return str(json.loads(answer.body)["code"])


def test_reading_a_note(server: LiveServer, commands: list[Command]) -> None:
    answer = json.loads(sent(commands[READ], server).body)
    assert (answer["content"], answer["frontmatter"], answer["body"]) == (
        FILES["Home/Boiler.md"],
        {"due": "2026-05-14"},
        "# Boiler\n",
    )
    assert len(answer["version"]) == 32


def test_claiming_a_note_takes_it_once(server: LiveServer, commands: list[Command], tmp_path: Path) -> None:
    assert json.loads(sent(commands[WAITING], server).body) == [{"filename": "Inbox/One.md"}]
    etag = sent(commands[LOOK], server).headers["etag"]
    answers = [sent(commands[CLAIM], server, put_in={"ETAG": etag}) for _ in range(2)]
    assert [answer.status for answer in answers] == [200, 412]
    assert code_of(answers[1]) == "precondition_failed"
    assert (tmp_path / "vault/Inbox/One.md").read_text(encoding="utf-8") == "---\nstatus: working\n---\none\n"
    assert json.loads(sent(commands[WAITING], server).body) == []


def test_filing_a_document_twice_does_no_harm(server: LiveServer, commands: list[Command], tmp_path: Path) -> None:
    (tmp_path / "invoice.pdf").write_bytes(b"%PDF-1.4\nnothing to read\n")
    said = [json.loads(sent(commands[FILE], server, folder=tmp_path).body) for _ in range(2)]
    assert [one["status"] for one in said] == ["filed", "unchanged"]
    assert (tmp_path / "vault/Home/Files/invoice.pdf").read_bytes() == b"%PDF-1.4\nnothing to read\n"
    (tmp_path / "invoice.pdf").write_bytes(b"%PDF-1.4\nsomething else\n")
    assert code_of(sent(commands[FILE], server, folder=tmp_path)) == "document_conflict"


def test_polling_misses_nothing_and_repeats_nothing(server: LiveServer, commands: list[Command]) -> None:
    first = json.loads(sent(commands[POLL], server, put_in={CURSOR: "oldest"}).body)
    assert first["changes"] == []
    etag = sent(commands[LOOK], server).headers["etag"]
    sent(commands[CLAIM], server, put_in={"ETAG": etag})
    second = json.loads(sent(commands[POLL], server, put_in={CURSOR: first["cursor"]}).body)
    assert [(one["type"], one["path"]) for one in second["changes"]] == [("modified", "Inbox/One.md")]
    third = json.loads(sent(commands[POLL], server, put_in={CURSOR: second["cursor"]}).body)
    assert third["changes"] == []


@NEEDS_NODE
def test_the_code_that_polls_keeps_the_cursor_and_hands_on_one_item_a_change() -> None:
    said = run_node(
        "const kept = {}; const $getWorkflowStaticData = () => kept;"
        'const $json = {cursor: "x.7", changes: [{path: "A.md"}, {path: "B.md"}]};'
        f"async function node() {{ {code_in(PAGE)['changes']} }}"
        "node().then((items) => console.log(JSON.stringify([items, kept])));"
    )
    assert json.loads(said) == [[{"json": {"path": "A.md"}}, {"json": {"path": "B.md"}}], {"cursor": "x.7"}]


@NEEDS_NODE
def test_the_code_that_receives_takes_a_real_delivery_and_no_other(tmp_path: Path, commands: list[Command]) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    fill(root, FILES)
    with receiving() as receiver:
        hooks = json.dumps([{"url": receiver.url, "secret_env": "VAULT_SECRET"}])
        environ = {"EMBEDDING_ENABLED": "false", "VAULT_MCP_WEBHOOKS": hooks, "VAULT_SECRET": SECRET}
        with live_server(root, tmp_path / "state", environ) as server:
            etag = sent(commands[LOOK], server).headers["etag"]
            wait_until(lambda: json.loads(webhooks(server))[0]["pending"] == 0)
            sent(commands[CLAIM], server, put_in={"ETAG": etag})
            wait_until(lambda: bool(receiver.received))
    (delivery,) = receiver.received
    items = json.loads(received(delivery, SECRET))
    assert [item["json"]["path"] for item in items] == ["Inbox/One.md"]
    assert "not from the vault" in received(delivery, "another secret")
    forged = Received(delivery.headers, delivery.body.replace(b"One", b"Two"))
    assert "not from the vault" in received(forged, SECRET)
    old = {"x-vault-signature": signature(SECRET.encode(), 1, delivery.body)}
    assert "not from the vault" in received(Received(old, delivery.body), SECRET)


def webhooks(server: LiveServer) -> str:
    answer = Command("GET", "https://x/readyz", (("Authorization", "Bearer KEY"),), None).send(server.url, server.key)
    return json.dumps(json.loads(answer.body)["webhooks"])


def received(delivery: Received, secret: str) -> str:
    """What the code of the page makes of a delivery; its error where it refuses."""
    headers = {"x-vault-signature": delivery.headers["x-vault-signature"]}
    return run_node(
        f"const $env = {json.dumps({'VAULT_SECRET': secret})}; const $json = {json.dumps({'headers': headers})};"
        f"const body_ = Buffer.from({json.dumps(delivery.body.hex())}, 'hex');"
        f"async function node() {{ {code_in(PAGE)['webhook']} }}"
        "node.call({helpers: {getBinaryDataBuffer: async () => body_}})"
        ".then((items) => console.log(JSON.stringify(items)), (error) => console.log(error.message));"
    )


def run_node(code: str) -> str:
    done = subprocess.run(  # noqa: S603 - the code of our own page
        ["node", "-e", code],  # noqa: S607
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=30,
        check=True,
    )
    return done.stdout


def wait_until(holds: Callable[[], bool], seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
