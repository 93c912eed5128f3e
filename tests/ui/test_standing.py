"""What the overview says while the index and its model are on the way."""

from datetime import UTC
from typing import Any

import pytest

from app.auth.administration import Administration
from app.auth.oauth.administration import SignIns
from app.readiness import Readiness
from app.settings.model import Settings
from app.ui.frame import Frame
from app.ui.overview import overview
from app.ui.owner import Owner
from tests.harness import NOW, Server
from tests.oauth.flows import Clock
from tests.ui.conftest import Start

READY: dict[str, Any] = {"embedding": {"model": "small@1", "state": "ready", "source": "bundled"}}


def shown(server: Server, clock: Clock, **parts: dict[str, Any]) -> str:
    """The overview of a server that stands as it does, but for these fields of its parts."""
    said: dict[str, Any] = server.http("GET", "/readyz").json
    for name, fields in {**READY, **parts}.items():
        said[name] = {**said[name], **fields}
    state = server.app.state
    owner = Owner(
        state.runtime,
        state.access,
        lambda _caller: Readiness.model_validate(said),
        Administration(state.access.database, Settings(), clock),
        SignIns(state.access.database, lambda: clock().timestamp()),
        None,
    )
    frame = Frame("Home", "1", NOW, UTC, lambda action: action)
    return bytes(server.portal.call(overview, frame, owner, 0).body).decode()


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"index": {"state": "building", "progress": 0.43}}, "Being built: 43 %"),
        ({"index": {"chunks": 8, "vectors": 2}, "embedding": {"state": "embedding"}}, "Passages are being read: 25 %"),
        ({"index": {"chunks": 8, "vectors": 0}, "embedding": {"state": "waiting"}}, "Passages are being read: 0 %"),
        ({"embedding": {"download": 0.5, "state": "waiting"}}, "Model is being fetched: 50 %"),
    ],
)
def test_the_page_reloads_while_something_moves(
    start: Start, clock: Clock, parts: dict[str, dict[str, Any]], text: str
) -> None:
    with start() as server:
        embedding = {**READY["embedding"], **parts.get("embedding", {})}
        page = shown(server, clock, **{**parts, "embedding": embedding})
    assert '<meta http-equiv="refresh" content="5">' in page
    assert "This page reloads every 5 seconds until this is done." in page
    assert text in page
    assert "<progress aria-label=" in page


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"index": {"chunks": 8, "vectors": 8}}, "<dd>On<small>small</small></dd>"),
        ({"index": {"state": "failed", "error": "disk <full>"}}, "Failed<small>disk &lt;full&gt;</small>"),
        ({"embedding": {"model": "small@1", "state": "failed", "source": "bundled"}}, "Off, as the model failed"),
        ({"journal": {"state": "failed", "bytes": 1500}}, "<dd>Failed<small>1.5 kB</small></dd>"),
    ],
)
def test_the_page_stays_when_nothing_moves(
    start: Start, clock: Clock, parts: dict[str, dict[str, Any]], text: str
) -> None:
    with start() as server:
        page = shown(server, clock, **parts)
    assert "http-equiv" not in page
    assert text in page
