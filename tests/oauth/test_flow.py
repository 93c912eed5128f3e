"""A client from its registration to the end of its access."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.auth.policies import Rights
from operations.caller import Profile
from tests.harness import KEY, fill, serving
from tests.oauth.flows import CALLBACK, ORIGIN, Client, Clock, Flows, Issued


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def flows(tmp_path: Path, clock: Clock) -> Iterator[Flows]:
    fill(tmp_path / "vault", {"Note.md": "note\n", "Inbox/In.md": "in\n"})
    environ = {
        "PUBLIC_URL": ORIGIN,
        "VAULT_MCP_LIMITS__OAUTH_PER_MINUTE": "1000",
        "VAULT_MCP_LIMITS__TOKEN_FAILURES_PER_MINUTE": "1000",
    }
    with serving(tmp_path / "vault", tmp_path / "state", environ, now=clock) as server:
        yield Flows(server)


@pytest.fixture
def client(flows: Flows) -> Client:
    return flows.registered(CALLBACK, "http://127.0.0.1/cb", token_endpoint_auth_method="none")


@pytest.mark.parametrize("profile", ["all", "core", "adaptive"])
def test_a_client_begins_with_the_profile_of_the_settings_and_keeps_its_own(tmp_path: Path, profile: str) -> None:
    fill(tmp_path / "vault", {"Note.md": "note\n"})
    environ = {"PUBLIC_URL": ORIGIN, "VAULT_MCP_AUTH__OAUTH__DEFAULT_PROFILE": profile}
    with serving(tmp_path / "vault", tmp_path / "state", environ, now=Clock()) as server:
        flows = Flows(server)
        client = flows.registered(token_endpoint_auth_method="none")
        listed = tools_shown(flows, flows.grant(client))
        assert ("vault_move" in listed) is (profile == "all")
        policies = server.app.state.access.policies
        policies.set_rights(f"client:{client.id}", Rights(profile=Profile.ALL))
        assert "vault_move" in tools_shown(flows, flows.grant(client)), "another sign-in changes nothing"


def tools_shown(flows: Flows, issued: Issued) -> set[str]:
    return {tool["name"] for tool in flows.call(issued.access).json["result"]["tools"]}


def test_a_client_that_the_owner_lets_in_reads_and_writes(flows: Flows, client: Client) -> None:
    issued = flows.grant(client)
    assert issued.answer.status == 200, issued.answer.text
    called = flows.call(
        issued.access, "tools/call", {"name": "vault_append", "arguments": {"path": "Note.md", "content": "more"}}
    )
    assert called.status == 200
    assert flows.server.stored("Note.md") == b"note\n\nmore\n"


def test_a_limit_on_writes_holds_for_the_tokens_of_the_grant(flows: Flows, client: Client) -> None:
    asked = flows.authorize(client)
    issued = flows.exchange(flows.consent(asked, access="full", write_prefix="Inbox"))
    inside, outside = (
        flows.call(
            issued.access, "tools/call", {"name": "vault_append", "arguments": {"path": path, "content": "more"}}
        ).json["result"]
        for path in ("Inbox/In.md", "Note.md")
    )
    assert not inside["isError"]
    assert outside["_meta"]["vault-mcp/error"]["code"] == "out_of_scope"
    assert flows.server.stored("Note.md") == b"note\n"


def test_a_limit_that_is_no_place_is_refused_on_the_page_and_the_request_stays(flows: Flows, client: Client) -> None:
    asked = flows.authorize(client)
    refused = flows.consent(asked, access="read", write_prefix="../x")
    assert refused.answer.status == 400
    assert 'value="read" checked' in refused.answer.text
    assert 'value="../x"' in refused.answer.text
    assert flows.consent(asked).text


def test_the_key_never_stands_on_the_page_that_comes_back(flows: Flows, client: Client) -> None:
    asked = flows.authorize(client)
    assert KEY not in flows.consent(asked, write_prefix="../x").answer.text
    assert "almost-right" not in flows.consent(asked, key="almost-right").answer.text


def test_files_of_the_state_folder_are_the_owners_alone(flows: Flows, client: Client) -> None:
    flows.grant(client)
    folder = flows.server.vault.state_dir
    modes = {file.name: file.stat().st_mode & 0o777 for file in folder.glob("auth.db*")}
    assert set(modes.values()) == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700


def test_five_wrong_verifiers_consume_a_code(flows: Flows, client: Client) -> None:
    code = flows.consent(flows.authorize(client))
    for _ in range(5):
        assert flows.exchange(code, code_verifier="w" * 43).answer.status == 400
    assert flows.exchange(code).answer.json["error"] == "invalid_grant"


def test_a_client_without_the_refresh_grant_gets_no_refresh_token(flows: Flows) -> None:
    client = flows.registered(token_endpoint_auth_method="none", grant_types=["authorization_code"])
    assert "refresh_token" not in flows.grant(client).answer.json


def test_an_address_keeps_its_own_query(flows: Flows) -> None:
    client = flows.registered("https://client.example/cb?a=&b=%20", token_endpoint_auth_method="none")
    code = flows.consent(flows.authorize(client))
    assert code.answer.headers["location"].startswith("https://client.example/cb?a=&b=%20&code=vmc_")
    assert flows.exchange(code).answer.status == 200


def test_without_a_public_origin_there_is_no_authorization_server(tmp_path: Path) -> None:
    fill(tmp_path / "vault", {"Note.md": "note\n"})
    with serving(tmp_path / "vault", tmp_path / "state", {"BIND_HOST": "0.0.0.0"}) as server:  # noqa: S104
        for path in ("/.well-known/oauth-authorization-server", "/authorize", "/oauth/consent"):
            assert server.http("GET", path, auth=False).status == 404
        assert "resource_metadata" not in server.http("POST", "/mcp", auth=False).headers["www-authenticate"]


def test_registration_can_be_switched_off(tmp_path: Path) -> None:
    fill(tmp_path / "vault", {"Note.md": "note\n"})
    environ = {"PUBLIC_URL": ORIGIN, "VAULT_MCP_AUTH__OAUTH__DCR": "false"}
    with serving(tmp_path / "vault", tmp_path / "state", environ) as server:
        server.default_host = "vault.example"
        document = server.http("GET", "/.well-known/oauth-authorization-server", auth=False).json
        assert "registration_endpoint" not in document
        answer = server.http("POST", "/register", "{}", {"Content-Type": "application/json"}, auth=False)
        assert answer.status == 404


def test_the_database_holds_neither_tokens_nor_codes_nor_handles(flows: Flows, client: Client) -> None:
    issued = flows.grant(client)
    asked = flows.authorize(client)
    code = flows.consent(flows.authorize(client))
    stored = b"".join(file.read_bytes() for file in flows.server.vault.state_dir.glob("auth.db*"))
    for secret in (issued.access, issued.refresh, asked.handle, code.text, KEY):
        assert secret
        assert secret.encode() not in stored
    with sqlite3.connect(flows.server.vault.state_dir / "auth.db") as connection:
        assert connection.execute("SELECT count(*) FROM grants").fetchone() == (1,)


def test_access_tokens_open_rest_where_the_owner_says_so(tmp_path: Path) -> None:
    fill(tmp_path / "vault", {"Note.md": "note\n"})
    environ = {"PUBLIC_URL": ORIGIN, "VAULT_MCP_AUTH__OAUTH__ALLOW_REST": "true"}
    with serving(tmp_path / "vault", tmp_path / "state", environ, now=None) as server:
        flows = Flows(server)
        client = flows.registered(token_endpoint_auth_method="none")
        reader, writer = flows.grant(client, change={"scope": "vault:read"}), flows.grant(client)
        with_reader, with_writer = ({"Authorization": f"Bearer {issued.access}"} for issued in (reader, writer))
        assert server.http("GET", "/vault/Note.md", headers=with_reader).body == b"note\n"
        refused = server.http("PUT", "/vault/New.md", "x", with_reader)
        assert (refused.status, refused.code) == (403, "read_only")
        assert 'error="insufficient_scope"' in refused.headers["www-authenticate"]
        assert server.http("PUT", "/vault/New.md", "x", with_writer).status in (200, 201)
        assert "resource_metadata=" in server.http("GET", "/vault/Note.md", auth=False).headers["www-authenticate"]
