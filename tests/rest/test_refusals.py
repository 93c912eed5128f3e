"""What the routes of `/vault` say to requests that are not for them (vault-contract §2, §3)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import Server, fill, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("refusals")
    (folder / "vault").mkdir()
    fill(folder / "vault", {"Home/Boiler.md": "# Boiler\n"})
    environ = {"VAULT_MCP_FILES__WRITE_SUFFIXES": ".pdf,.png"}
    with serving(folder / "vault", folder / "state", environ) as started:
        yield started


@pytest.mark.parametrize(
    ("method", "way"),
    [
        ("DELETE", "DELETE /folder/<path>"),
        ("PUT", "PUT /folder/<path>"),
        ("POST", "PUT /folder/<path>"),
        ("PATCH", "GET /vault/<path> (path ends in /)"),
    ],
)
def test_a_path_with_a_final_slash_names_a_folder_and_the_refusal_what_is_for_folders(
    server: Server, method: str, way: str
) -> None:
    before = server.snapshot()
    answer = server.http(method, "/vault/Home/", b"" if method == "DELETE" else b"x")
    assert (answer.status, answer.code) == (400, "is_directory")
    assert answer.json["error"] == f"'Home/' ends in a slash and so names a folder; use {way} for folders"
    assert server.snapshot() == before


def test_a_delete_of_a_folder_names_the_delete_of_folders_on_both_surfaces(server: Server) -> None:
    before = server.snapshot()
    rest, mcp = server.http("DELETE", "/vault/Home"), server.tool("vault_delete", {"path": "Home"})
    assert (rest.code, rest.json["error"]) == (
        "is_directory",
        "'Home' is a folder; delete it with DELETE /folder/<path>",
    )
    assert (mcp.code, mcp.message) == ("is_directory", "'Home' is a folder; delete it with vault_delete_folder")
    slashed = server.tool("vault_delete", {"path": "Home/"})
    assert (slashed.code, slashed.message) == (
        "invalid_path",
        "'Home/' ends in a slash, as a folder's path may; a note or file has a name there",
    )
    assert server.snapshot() == before


def test_every_storable_suffix_is_named_once(server: Server) -> None:
    answer = server.http("PUT", "/vault/x.exe", b"x")
    assert answer.code == "document_unsupported"
    assert answer.json["error"] == (
        "files ending in '.exe' are not stored; notes end in .md, files that may be stored in .pdf, .png"
    )


@pytest.mark.parametrize(
    ("method", "target", "allowed"),
    [
        ("OPTIONS", "/vault/Home/Boiler.md", "DELETE, GET, HEAD, PATCH, POST, PUT"),
        ("TRACE", "/vault/Home/", "DELETE, GET, HEAD, PATCH, POST, PUT"),
        ("PUT", "/move", "POST"),
        ("POST", "/healthz", "GET, HEAD"),
    ],
)
def test_a_wrong_method_is_refused_with_those_that_work(server: Server, method: str, target: str, allowed: str) -> None:
    answer = server.http(method, target)
    assert (answer.status, answer.headers["allow"]) == (405, allowed)
    assert answer.json == {
        "code": "method_not_allowed",
        "error": f"{method} is not for {target}; it takes {allowed}",
    }


def test_head_has_the_headers_of_get(server: Server) -> None:
    got, head = (server.http(method, "/vault/Home/Boiler.md") for method in ("GET", "HEAD"))
    assert head.status == 200
    assert {name: head.headers[name] for name in ("etag", "content-type", "content-length")} == {
        name: got.headers[name] for name in ("etag", "content-type", "content-length")
    }


@pytest.mark.parametrize(
    "target",
    ["/vault//Home/Boiler.md", "/vault/%2FHome/Boiler.md", "/vault/Home%2FBoiler.md", "/vault/Home/%42oiler.md"],
)
def test_a_path_is_decoded_once_and_may_begin_with_a_slash(server: Server, target: str) -> None:
    assert server.http("GET", target).body == b"# Boiler\n"


@pytest.mark.parametrize("target", ["/%76ault/Home/Boiler.md", "/vault%2FHome/Boiler.md", "/VAULT/Home", "/healthz/"])
def test_another_spelling_of_a_route_is_no_route(server: Server, target: str) -> None:
    assert (server.http("GET", target).status, server.http("GET", target).code) == (404, "not_found")
