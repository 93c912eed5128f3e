"""A client that signed in to read, and then writes: it is told to ask for more, unless the owner has said no."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import Answer, fill, serving
from tests.oauth.flows import ORIGIN, Flows


@pytest.fixture
def flows(tmp_path: Path) -> Iterator[Flows]:
    fill(tmp_path / "vault", {"Note.md": "note\n"})
    environ = {"PUBLIC_URL": ORIGIN, "VAULT_MCP_LIMITS__OAUTH_PER_MINUTE": "1000"}
    with serving(tmp_path / "vault", tmp_path / "state", environ, now=None) as server:
        yield Flows(server)


def write(flows: Flows, access: str) -> Answer:
    return flows.call(access, "tools/call", {"name": "vault_append", "arguments": {"path": "Note.md", "content": "x"}})


def test_a_client_that_asked_to_read_is_told_to_ask_for_more(flows: Flows) -> None:
    client = flows.registered(token_endpoint_auth_method="none")
    issued = flows.grant(client, change={"scope": "vault:read"})
    refused = write(flows, issued.access)
    assert refused.status == 403
    challenge = refused.headers["www-authenticate"]
    for part in ('error="insufficient_scope"', 'scope="vault"', f'resource_metadata="{ORIGIN}/.well-known/'):
        assert part in challenge
    result = refused.json["result"]
    assert result["isError"]
    assert result["_meta"]["vault-mcp/error"]["code"] == "read_only"
    reading = flows.call(issued.access, "tools/call", {"name": "vault_read", "arguments": {"path": "Note.md"}})
    assert reading.status == 200
    assert flows.server.stored("Note.md") == b"note\n"


def test_a_client_that_the_owner_lets_read_alone_is_not_told_to_ask_again(flows: Flows) -> None:
    client = flows.registered(token_endpoint_auth_method="none")
    issued = flows.exchange(flows.consent(flows.authorize(client), access="read"))
    refused = write(flows, issued.access)
    assert refused.status == 200
    assert "www-authenticate" not in refused.headers
    assert refused.json["result"]["_meta"]["vault-mcp/error"]["code"] == "read_only"


def test_the_mark_of_one_request_is_not_that_of_the_next(flows: Flows) -> None:
    client = flows.registered(token_endpoint_auth_method="none")
    reader, writer = flows.grant(client, change={"scope": "vault:read"}), flows.grant(client)
    assert write(flows, reader.access).status == 403
    assert write(flows, writer.access).status == 200
    assert write(flows, reader.access).status == 403
