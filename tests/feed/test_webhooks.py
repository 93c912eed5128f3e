"""Webhooks: signed, in order, retried for a day, and nobody waits for them.

Source: safety-and-automation.md §5.
"""

import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app import webhooks as webhooks_module
from app.settings.declaring import ConfigError
from app.webhooks import Timing, signature
from tests.feed.receivers import Receiver, receiving
from tests.feed.test_feed import settled, wait_until
from tests.harness import Server, fill, serving

SECRET = "a secret of the test"
QUICK = Timing(answer_seconds=0.5, first_pause_seconds=0.05, longest_pause_seconds=0.2)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, QUICK)


def use(monkeypatch: pytest.MonkeyPatch, timing: Timing) -> None:
    monkeypatch.setattr(webhooks_module, "Timing", lambda: timing)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    root.mkdir()
    fill(root, {"A.md": "a\n", "Home/B.md": "b\n"})
    return root


@contextmanager
def hooked(root: Path, *hooks: dict[str, Any]) -> Iterator[Server]:
    told = json.dumps([{"secret_env": "HOOK_SECRET", **hook} for hook in hooks])
    environ = {"VAULT_MCP_WEBHOOKS": told, "HOOK_SECRET": SECRET}
    with serving(root, root.parent / "state", environ) as server:
        settled(server)
        wait_until(lambda: len(statuses(server)) == len(hooks))
        yield server


def statuses(server: Server) -> list[dict[str, Any]]:
    return list(server.http("GET", "/readyz").json["webhooks"])


def test_changes_arrive_as_the_feed_tells_them_with_a_signature_that_can_be_checked(
    root: Path, receiver: Receiver
) -> None:
    with hooked(root, {"url": receiver.url}) as server:
        server.http("PUT", "/vault/New.md", "new\n")
        wait_until(lambda: receiver.paths == ["New.md"])
        (delivery,) = receiver.received
        assert delivery.json == {**server.http("GET", "/changes?since=oldest").json}
        said = dict(part.split("=") for part in delivery.headers["x-vault-signature"].split(","))
        signed = said["t"].encode() + b"." + delivery.body
        assert hmac.compare_digest(said["v1"], hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest())
        assert abs(int(said["t"]) - time.time()) < 60
        assert delivery.headers["content-type"] == "application/json"
        wait_until(lambda: statuses(server)[0]["pending"] == 0)
        assert statuses(server) == [{"url": receiver.url.partition("?")[0], "state": "ok", "pending": 0}]


def test_another_secret_time_or_body_is_another_signature() -> None:
    one = signature(b"key", 7, b"body")
    assert one.startswith("t=7,v1=")
    assert len({one, signature(b"other", 7, b"body"), signature(b"key", 8, b"body"), signature(b"key", 7, b"x")}) == 4


def test_only_the_wanted_types_and_places_are_sent(root: Path, receiver: Receiver) -> None:
    with hooked(root, {"url": receiver.url, "events": ["created", "moved"], "paths": ["Home"]}) as server:
        server.http("PUT", "/vault/Elsewhere.md", "x\n")
        server.http("PUT", "/vault/Home/B.md", "changed\n")
        server.http("PUT", "/vault/Home/C.md", "c\n")
        server.http("POST", "/move", '{"source": "Home/C.md", "destination": "Out.md"}')
        wait_until(lambda: len(receiver.paths) == 2)
        wait_until(lambda: statuses(server)[0]["pending"] == 0)
        assert receiver.paths == ["Home/C.md", "Out.md"]


@pytest.mark.parametrize("trouble", ["hang", "drip", "redirect", 500, 404])
def test_a_target_in_trouble_is_tried_again_in_order_while_writes_go_on(
    root: Path, receiver: Receiver, trouble: int | str
) -> None:
    receiver.answer = trouble
    with hooked(root, {"url": receiver.url}) as server:
        began = time.monotonic()
        for number in range(5):
            assert server.http("PUT", f"/vault/N{number}.md", "n\n").status == 200
        assert time.monotonic() - began < 2
        wait_until(lambda: len(receiver.received) >= 2)
        wait_until(lambda: statuses(server)[0]["state"] == "retrying")
        assert statuses(server)[0]["last_error"]
        assert server.http("GET", "/readyz").json["status"] == "degraded"
        assert "token" not in server.http("GET", "/readyz").text
        receiver.received.clear()
        receiver.answer = 200
        wait_until(lambda: statuses(server)[0]["state"] == "ok" and statuses(server)[0]["pending"] == 0)
        taken = receiver.paths
        assert taken[-5:] == [f"N{number}.md" for number in range(5)]
        assert receiver.elsewhere == []


def test_a_hook_that_hangs_delays_no_other(root: Path, receiver: Receiver) -> None:
    with receiving() as other:
        receiver.answer = "hang"
        with hooked(root, {"url": receiver.url}, {"url": other.url}) as server:
            server.http("PUT", "/vault/New.md", "new\n")
            wait_until(lambda: other.paths == ["New.md"])


def test_what_was_not_delivered_is_after_a_restart_and_nothing_twice_that_was(root: Path, receiver: Receiver) -> None:
    with hooked(root, {"url": receiver.url}) as server:
        server.http("PUT", "/vault/One.md", "1\n")
        wait_until(lambda: receiver.paths == ["One.md"] and statuses(server)[0]["pending"] == 0)
        receiver.answer = 500
        server.http("PUT", "/vault/Two.md", "2\n")
        wait_until(lambda: statuses(server)[0]["state"] == "retrying")
    receiver.received.clear()
    receiver.answer = 200
    with hooked(root, {"url": receiver.url}):
        wait_until(lambda: receiver.paths == ["Two.md"])


def test_a_new_hook_begins_with_what_is_new(root: Path, receiver: Receiver) -> None:
    with serving(root, root.parent / "state") as server:
        server.http("PUT", "/vault/Old.md", "old\n")
    with hooked(root, {"url": receiver.url}) as server:
        server.http("PUT", "/vault/New.md", "new\n")
        wait_until(lambda: receiver.paths == ["New.md"])


def test_changes_that_nobody_takes_for_a_day_are_dropped_and_the_hook_is_dead_until_it_takes_some(
    root: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Timing().give_up_seconds == 24 * 3600
    use(monkeypatch, replace(QUICK, give_up_seconds=0.3))
    receiver.answer = 500
    with hooked(root, {"url": receiver.url}) as server:
        server.http("PUT", "/vault/Lost.md", "x\n")
        wait_until(lambda: statuses(server)[0]["state"] == "dead")
        assert statuses(server)[0]["pending"] == 0
        receiver.received.clear()
        receiver.answer = 200
        server.http("PUT", "/vault/New.md", "x\n")
        wait_until(lambda: receiver.paths == ["New.md"] and statuses(server)[0]["state"] == "ok")


def test_pauses_double_up_to_a_bound_and_are_spread(root: Path) -> None:
    with serving(root, root.parent / "state") as server:
        hooks = webhooks_module.Webhooks(server.vault, server.app.state.runtime.workers, [], Timing(10, 1, 60))
        pauses = [[hooks._pause(attempts) for _ in range(50)] for attempts in (1, 2, 3, 50)]
    assert [(0.5 * most <= min(some), max(some) <= most) for some, most in zip(pauses, (1, 2, 4, 60), strict=True)] == [
        (True, True)
    ] * 4
    assert all(len(set(some)) > 10 for some in pauses)


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        ({"url": "http://127.0.0.1/x", "secret_env": "HOOK_UNSET"}, "HOOK_UNSET"),
        ({"url": "ftp://host/x"}, "webhooks"),
        ({"url": "/x"}, "webhooks"),
        ({"url": "http://127.0.0.1/x", "events": ["renamed"]}, "webhooks"),
        ({"url": "http://127.0.0.1/x", "event": ["moved"]}, "webhooks"),
    ],
)
def test_a_hook_that_cannot_be_served_refuses_to_start(root: Path, hook: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said), hooked(root, hook):
        pass
