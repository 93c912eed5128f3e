"""Requests made up from the contract: no answer is a 5xx and every answer is what the contract says."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.core.transport import Response
from schemathesis.generation.modes import GenerationMode
from schemathesis.specs.openapi import checks

from app.signing_in import Outside
from tests.contract.test_document import described_routes
from tests.contract.validation import CONTRACT, conforms
from tests.harness import Server, fill, serving
from tests.oauth.fake_web import FakeWeb
from tests.parity.cases import BOILER, FILES

ENDLESS: Final = frozenset({"/events"})
"""Routes whose answer has no end."""
ROUTES: Final = [(path, method) for path, method, _ in described_routes(CONTRACT) if path not in ENDLESS]
SCHEMA: Final = schemathesis.openapi.from_dict(CONTRACT)
PLACES: Final = (BOILER, "Home/Crlf.md", "Broken.md", "Home", "Home/", "Home/Files/New.pdf", "Board.canvas", "New.md")
"""Paths that mean something in the vault: made-up ones hardly ever hit a note."""
ANCHORS: Final = {"start_anchor": "## Parts", "anchor": "- valve"}
TARGETS: Final = ("Parts", "Boiler::Service", "^last", "tags", "Nothing")
ACCEPTS: Final = (None, "application/json", "text/plain", "application/octet-stream")
CHECKS: Final = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
BASE: Final = "http://127.0.0.1"
OWN_HEADERS: Final = frozenset({"authorization", "content-length"})
"""Headers that the harness makes: a made-up credential would end every request at the gate."""
UNPLUGGED: Final = Outside(FakeWeb().client())
"""A web in which no name resolves, for `/fetch`: it is off by default, and in the contract all the same."""
WRONG_KEY: Final = "f" * 64

# The same requests in every run: a failure here is a failure for whoever looks next.
bounded = settings(
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.value)
@pytest.mark.parametrize(("path", "method"), ROUTES, ids=lambda part: part)
def test_whatever_is_sent_the_answer_is_what_the_contract_says(
    path: str, method: str, mode: GenerationMode, tmp_path: Path
) -> None:
    with a_vault(tmp_path) as server:

        @settings(bounded, max_examples=50)
        @given(
            case=made_up(path, method, mode),
            place=st.sampled_from(PLACES) | st.none(),
            target=st.sampled_from(TARGETS) | st.none(),
            accept=st.sampled_from(ACCEPTS),
        )
        def exchange(case: Any, place: str | None, target: str | None, accept: str | None) -> None:
            if place is not None:
                aim(case, place)
            if target is not None and (path, method) == ("/vault/{path}", "patch"):
                case.headers = {**(case.headers or {}), "Target": target}
            if accept is not None:
                case.headers = {**(case.headers or {}), "Accept": accept}
            send(server, case)

        exchange()


@pytest.mark.parametrize(("path", "method"), ROUTES, ids=lambda part: part)
def test_whatever_is_sent_with_a_wrong_key_is_refused_and_changes_nothing(
    path: str, method: str, tmp_path: Path
) -> None:
    with a_vault(tmp_path) as server:
        before = server.snapshot()
        server.key = WRONG_KEY

        @settings(bounded, max_examples=5)
        @given(case=made_up(path, method, GenerationMode.POSITIVE), place=st.sampled_from(PLACES))
        def exchange(case: Any, place: str) -> None:
            aim(case, place)
            assert send(server, case) == (200 if path == "/healthz" else 401)

        exchange()
        assert server.snapshot() == before


def made_up(path: str, method: str, mode: GenerationMode) -> st.SearchStrategy[Any]:
    """Requests to one route; bad ones where the contract leaves room for a bad one, else good ones."""
    operation = SCHEMA[path][method]
    if mode is GenerationMode.NEGATIVE and not (CONTRACT["paths"][path][method].keys() & {"parameters", "requestBody"}):
        mode = GenerationMode.POSITIVE
    strategy: st.SearchStrategy[Any] = operation.as_strategy(generation_mode=mode)
    return strategy


def aim(case: Any, place: str) -> None:
    """Let a request be about a place in the vault, where it names one at all."""
    if "path" in (case.path_parameters or {}):
        case.path_parameters = {**case.path_parameters, "path": place}
    elif isinstance(case.query, dict) and "path" in case.query:
        case.query = {**case.query, "path": place}
    elif isinstance(case.body, dict):
        meant = {"path": place, "source": place, **ANCHORS}
        case.body = {name: meant.get(name, value) for name, value in case.body.items()}


def send(server: Server, case: Any) -> int:
    """Send a request in process and compare its answer with the contract; the status."""
    wanted = case.as_transport_kwargs(base_url=BASE)
    parts = ("method", "url", "headers", "params", "data", "json", "files")
    request = requests.Request(**{name: wanted[name] for name in parts if name in wanted}).prepare()
    body = request.body or b""
    assert isinstance(body, (str, bytes))
    answer = server.http(
        case.method,
        request.path_url,
        body,
        [(name, raw(value)) for name, value in request.headers.items() if name.lower() not in OWN_HEADERS],
    )
    case.validate_response(
        Response(
            status_code=answer.status,
            headers={name: [value] for name, value in answer.headers.items()},
            content=answer.body,
            request=request,
            elapsed=0.0,
            verify=False,
            encoding="utf-8",
        ),
        checks=CHECKS,
    )
    conforms(answer, case.method, request.path_url)
    return answer.status


def raw(value: str | bytes) -> bytes:
    """A header's value as it goes onto the wire."""
    return value.encode("latin-1") if isinstance(value, str) else value


@contextmanager
def a_vault(folder: Path) -> Iterator[Server]:
    """A server over the parity suite's vault."""
    root = folder / "vault"
    root.mkdir()
    fill(root, {**FILES, "Home/Files/Scan.pdf": b"%PDF-1.4\nbroken\n"})
    with serving(root, folder / "state", {"VAULT_MCP_WEB__FETCH": "true"}, outside=UNPLUGGED) as server:
        yield server
