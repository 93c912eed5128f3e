"""`openapi.yaml`: valid, complete, and the same as what the code builds and serves."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from openapi_spec_validator import OpenAPIV31SpecValidator

from app.rest.contract import build_contract, contract_yaml
from operations.catalogue import OPERATIONS
from operations.errors import ErrorCode
from operations.server_info import package_version
from tests.contract.validation import CONTRACT, CONTRACT_FILE, METHODS
from tests.harness import fill, serving


def test_the_contract_is_valid_openapi_3_1() -> None:
    assert CONTRACT["openapi"].startswith("3.1.")
    OpenAPIV31SpecValidator(CONTRACT).validate()


def test_the_committed_contract_is_what_the_code_builds() -> None:
    built = contract_yaml(build_contract(OPERATIONS, package_version()))
    assert CONTRACT_FILE.read_text(encoding="utf-8") == built, "run `make openapi`"


def test_the_committed_contract_is_what_a_server_answers(tmp_path: Path) -> None:
    # The document holds what a server can do; one that fetches pages does all of it.
    with server_with({}, tmp_path, {"VAULT_MCP_WEB__FETCH": "true"}) as server:
        answer = server.http("GET", "/openapi.yaml")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/yaml")
    assert answer.body == CONTRACT_FILE.read_bytes()


def test_operation_ids_are_unique() -> None:
    ids = [described["operationId"] for _, _, described in described_routes(CONTRACT)]
    assert sorted(ids) == sorted(set(ids))


def test_the_codes_of_the_contract_are_the_codes_of_the_source() -> None:
    described = CONTRACT["components"]["schemas"]["ErrorCode"]
    assert described["enum"] == [code.value for code in ErrorCode]
    for code in ErrorCode:
        assert f"* `{code}` ({code.status}): {code.meaning}" in described["description"].splitlines()


def test_every_binding_of_every_operation_is_described_and_nothing_else() -> None:
    bound = {
        (route.path.replace(":path}", "}"), route.method.lower(), operation.name)
        for operation in OPERATIONS
        for route in operation.rest
    }
    described = {
        (path, method, name)
        for path, method, route in described_routes(CONTRACT)
        for name in route.get("x-operations", ())
    }
    assert described == bound


def test_a_route_behind_no_operation_is_about_the_server() -> None:
    without = {(method, path) for path, method, route in described_routes(CONTRACT) if "x-operations" not in route}
    assert without == {("get", "/healthz"), ("get", "/readyz"), ("get", "/openapi.yaml")}


def test_every_route_describes_its_refusals() -> None:
    for path, method, route in described_routes(CONTRACT):
        assert route["responses"]["default"] == {"$ref": "#/components/responses/Failure"}, (method, path)


def test_an_operation_that_is_switched_off_is_not_in_the_contract(tmp_path: Path) -> None:
    off = {"VAULT_MCP_SERVER__DISABLED_TOOLS": "vault_move,vault_read,vault_append"}
    with server_with({}, tmp_path, off) as server:
        served = yaml.safe_load(server.http("GET", "/openapi.yaml").text)
    assert "/move" not in served["paths"]
    assert "post" not in served["paths"]["/vault/{path}"]
    assert served["paths"]["/vault/{path}"]["get"]["x-operations"] == ["vault_map", "vault_list"]
    assert "MoveResult" not in served["components"]["schemas"]
    OpenAPIV31SpecValidator(served).validate()


def test_every_header_of_a_patch_has_its_query_form_and_the_other_way_round(tmp_path: Path) -> None:
    parameters = CONTRACT["paths"]["/vault/{path}"]["patch"]["parameters"]
    headers = {one["name"] for one in parameters if one["in"] == "header"} - {"If-Match", "Idempotency-Key"}
    queries = {one["name"] for one in parameters if one["in"] == "query"}
    with server_with({"Note.md": "# A\n"}, tmp_path) as server:
        refused = server.http("PATCH", "/vault/Note.md?nothing=1", "x")
    assert refused.code == "invalid_parameter"
    taken = refused.json["error"].partition("it takes ")[2].split(", ")
    assert sorted(taken) == sorted({name.lower().replace("-", "_") for name in headers} | queries)


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/vault/Note.md"), ("GET", "/vault/"), ("PUT", "/vault/Note.md"), ("DELETE", "/vault/Note.md")],
)
def test_a_query_parameter_that_is_not_described_is_refused(method: str, path: str, tmp_path: Path) -> None:
    with server_with({"Note.md": "# A\n"}, tmp_path) as server:
        before = server.snapshot()
        assert server.http(method, f"{path}?nothing=1", "x" if method == "PUT" else "").code == "invalid_parameter"
        assert server.snapshot() == before


def described_routes(contract: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, method and description of everything in a contract."""
    for path, methods in contract["paths"].items():
        for method, described in methods.items():
            assert method in METHODS
            yield path, method, described


def server_with(files: dict[str, str | bytes], folder: Path, environ: dict[str, str] | None = None) -> Any:
    root = folder / "vault"
    root.mkdir()
    fill(root, files)
    return serving(root, folder / "state", environ)
