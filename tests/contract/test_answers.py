"""What the server answers is what `openapi.yaml` says, for every route and both kinds of ending."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.contract.validation import conforms
from tests.harness import Answer, fill, serving
from tests.parity.cases import CASES, FILES, Parity, Request

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)
JSON = {"Accept": "application/json"}
PLUGIN = {"Accept": "application/vnd.olrapi.note+json"}

REQUESTS: tuple[Request, ...] = (
    Request("GET", "/vault/Home/Boiler.md", headers=JSON),
    Request("GET", "/vault/Home%2FBoiler.md", headers=PLUGIN),
    Request("GET", "/vault/Home/Boiler.md?include=outline,stat,tags,version"),
    Request("GET", "/vault/Home/Boiler.md?include=outline&include=stat", headers=JSON),
    Request("GET", "/vault/Home/Boiler.md?section=Service", headers=JSON),
    Request("GET", "/vault/Home/Boiler.md", headers={"Accept": "text/plain"}),
    Request("GET", "/vault/Home/Boiler.md", headers={"If-None-Match": "*"}),
    Request("HEAD", "/vault/Home/Boiler.md"),
    Request("GET", "/vault/Home/Files/Scan.pdf?outline=1"),
    Request("GET", "/vault/Home/Files/Scan.pdf?raw=1"),
    Request("GET", "/vault/Home/Files/Scan.pdf"),
    Request("GET", "/vault/Home/Plan.png"),
    Request("GET", "/vault/Home/Plan.png", headers=JSON),
    Request("GET", "/vault/Home"),
    Request("GET", "/vault/Home/?recursive=true&limit=1"),
    Request("GET", "/vault/%FF.md"),
    Request("GET", "/vault/.obsidian/app.json"),
    Request("PUT", "/vault/Home/Files/New.pdf", "%PDF-1.4\n"),
    Request("PUT", "/vault/Home/Files/New.png", "picture"),
    Request("PUT", "/vault/Home/Files/Empty.pdf"),
    Request("PUT", "/vault/Home/Boiler.md", "# new"),
    Request("PUT", "/vault/Home/Boiler.md", "# new", {"If-None-Match": "*"}),
    Request("POST", "/vault/Home/Boiler.md", "new"),
    Request("PATCH", "/vault/Home/Boiler.md?dry_run=1", "- pump", {"Target": "Parts", **JSON}),
    Request("PATCH", "/vault/Home/Boiler.md", "- pump", {"Target": "Parts"}),
    Request("DELETE", "/vault/Home/Boiler.md", headers=JSON),
    Request("DELETE", "/vault/Home/Boiler.md?dry_run=1"),
    Request("GET", "/frontmatter?key=status&value=open"),
    Request("GET", "/frontmatter?key=status"),
    Request("POST", "/read", "{"),
    Request("POST", "/move", "[]"),
    Request("POST", "/move?source=a", "{}"),
    Request("GET", "/readyz"),
    Request("GET", "/healthz"),
    Request("HEAD", "/healthz"),
    Request("GET", "/openapi.yaml"),
    Request("GET", "/nowhere"),
    Request("DELETE", "/server"),
    Request("GET", "/server", headers={"Host": "rebound.example"}),
    Request("GET", "/server", headers={"Origin": "https://foreign.example"}),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.operation}: {case.name}")
def test_an_answer_of_the_parity_suite_is_what_the_contract_says(case: Parity, tmp_path: Path) -> None:
    answer = ask(case.rest, tmp_path, {"VAULT_MCP_WEB__FETCH": "true"})
    assert answer.code == case.code
    conforms(answer, case.rest.method, case.rest.target)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: f"{one.method} {one.target} {one.headers}")
def test_an_answer_is_what_the_contract_says(request_: Request, tmp_path: Path) -> None:
    conforms(ask(request_, tmp_path), request_.method, request_.target)


def test_a_query_over_properties_answers_a_bare_list(tmp_path: Path) -> None:
    answer = ask(Request("GET", "/frontmatter?key=status&value=open"), tmp_path)
    assert (answer.status, answer.json) == (200, [{"filename": "Inbox/Two.md"}])


def test_a_server_that_warns_answers_the_contract_says(tmp_path: Path) -> None:
    answer = ask(Request("GET", "/readyz"), tmp_path, {"VAULT_MCP_SERVER__ALLOWED_HOSTS": "*"})
    assert answer.json["status"] == "degraded"
    conforms(answer, "GET", "/readyz")


@dataclass(frozen=True, slots=True)
class Broken:
    """An answer that breaks the contract in one way."""

    name: str
    status: int = 200
    content_type: str = "application/json"
    body: bytes = b'{"path": "A", "created": [], "message": "m"}'


@pytest.mark.parametrize(
    "broken",
    [
        Broken("an unknown member", body=b'{"path": "A", "created": [], "message": "m", "more": 1}'),
        Broken("a member that is missing", body=b'{"path": "A", "created": []}'),
        Broken("a member of another type", body=b'{"path": "A", "created": "B", "message": "m"}'),
        Broken("another media type", content_type="text/html"),
        Broken("a success that is not described", status=201),
        Broken("a code with another's status", status=404, body=b'{"code": "busy", "error": "e"}'),
        Broken("a code that is not declared", status=404, body=b'{"code": "lost", "error": "e"}'),
        Broken("a refusal with a third member", status=404, body=b'{"code": "not_found", "error": "e", "at": 1}'),
    ],
    ids=lambda one: one.name,
)
def test_the_comparison_notices(broken: Broken) -> None:
    answer = Answer(broken.status, {"content-type": broken.content_type}, broken.body)
    with pytest.raises(AssertionError):
        conforms(answer, "PUT", "/folder/A")


def test_the_comparison_accepts_what_is_described() -> None:
    conforms(Answer(200, {"content-type": "application/json"}, Broken("none").body), "PUT", "/folder/A")


def ask(request: Request, folder: Path, environ: dict[str, str] | None = None) -> Answer:
    """One request to a fresh server."""
    root = folder / "vault"
    root.mkdir()
    fill(root, {**FILES, "Home/Plan.png": PNG, "Home/Files/Scan.pdf": b"%PDF-1.4\nbroken\n"})
    with serving(root, folder / "state", environ) as server:
        return server.http(request.method, request.target, request.body, request.headers)
