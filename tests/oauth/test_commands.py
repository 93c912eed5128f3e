"""What the owner does with sign-ins at the command line, beside a running server."""

import hmac
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import KEY, fill, serving
from tests.oauth.attacks import decoded, encoded
from tests.oauth.flows import ORIGIN, Flows
from tests.security.commands import Done, vault_mcp


class Owner:
    """Runs commands on the files of a server."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(self, arguments: str, **environ: str) -> Done:
        given = {"PUBLIC_URL": ORIGIN, **environ}
        return vault_mcp(arguments.split(), vault=self._folder / "vault", state=self._folder / "state", **given)


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    return Owner(tmp_path)


@pytest.fixture
def flows(tmp_path: Path) -> Iterator[Flows]:
    fill(tmp_path / "vault", {"Note.md": "note\n"})
    environ = {"PUBLIC_URL": ORIGIN, "VAULT_MCP_LIMITS__OAUTH_PER_MINUTE": "1000"}
    with serving(tmp_path / "vault", tmp_path / "state", environ, now=None) as server:
        yield Flows(server)


def test_a_sign_in_is_listed_and_ended_while_the_server_runs(flows: Flows, owner: Owner) -> None:
    client = flows.registered(token_endpoint_auth_method="none")
    issued = flows.grant(client)
    assert flows.call(issued.access).status == 200
    listed = json.loads(owner.run("grant list --json").stdout)
    assert [(row["client"], row["client_id"], row["rights"]) for row in listed] == [("Client", client.id, "everything")]
    assert issued.refresh not in str(listed)
    done = owner.run(f"grant revoke {listed[0]['id']}")
    assert (done.returncode, done.stderr.strip()) == (0, "ended: 1")
    assert flows.call(issued.access).status == 401
    assert flows.refresh(issued).answer.json["error"] == "invalid_grant"
    again = owner.run(f"grant revoke {listed[0]['id']}")
    assert again.returncode == 1
    assert "there is no sign-in" in again.stderr


def test_sign_ins_of_one_client_or_all_are_ended(flows: Flows, owner: Owner) -> None:
    one, other = (flows.registered(token_endpoint_auth_method="none") for _ in range(2))
    issued = [flows.grant(one), flows.grant(one), flows.grant(other)]
    assert owner.run(f"grant revoke --client {one.id}").stderr.strip() == "ended: 2"
    assert [flows.call(tokens.access).status for tokens in issued] == [401, 401, 200]
    assert owner.run("grant revoke --all").stderr.strip() == "ended: 1"
    assert flows.call(issued[2].access).status == 401
    assert owner.run("grant revoke").returncode == 2


def test_a_client_is_listed_and_removed(flows: Flows, owner: Owner) -> None:
    client = flows.registered("http://127.0.0.1/cb", client_name="\x1b[31mRed\u202e")
    issued = flows.grant(client)
    listed = json.loads(owner.run("client list --json").stdout)
    assert [(row["client_id"], row["name"], row["grants"]) for row in listed] == [(client.id, "[31mRed", 1)]
    assert owner.run("client list").stdout.count(client.id) == 1
    assert owner.run(f"client remove {client.id}").returncode == 0
    assert flows.call(issued.access).status == 401
    assert flows.refresh(issued).answer.json["error"] == "invalid_client"
    assert owner.run(f"client remove {client.id}").returncode == 1


def test_the_key_of_an_edge_verifies_tokens_and_is_not_the_static_key(flows: Flows, owner: Owner) -> None:
    issued = flows.grant(flows.registered(token_endpoint_auth_method="none"))
    done = owner.run("auth edge-key", VAULT_MCP_API_KEY=KEY)
    said = json.loads(done.stdout)
    text, _, signature = issued.access.rpartition(".")
    claims = decoded(text.partition(".")[2])
    assert (said["iss"], said["aud"]) == (claims["iss"], claims["aud"])
    assert encoded(hmac.digest(bytes.fromhex(said["key"]), text.encode(), "sha256")) == signature
    assert KEY not in done.stdout
    assert owner.run("auth edge-key").returncode == 2


def test_sweeping_by_hand_tells_how_many_clients_went(flows: Flows, owner: Owner) -> None:
    flows.registered(token_endpoint_auth_method="none")
    assert owner.run("auth sweep").stderr.strip() == "clients forgotten: 0"


def test_the_doctor_of_access_finds_what_is_open(flows: Flows, owner: Owner) -> None:
    good = owner.run("auth doctor", VAULT_MCP_API_KEY=KEY)
    assert good.returncode == 0, good.stdout
    assert "ok    key: it is strong" in good.stdout
    file = flows.server.vault.state_dir / "auth.db"
    file.chmod(0o644)
    bad = owner.run("auth doctor", VAULT_MCP_API_KEY="short", MCP_ALLOWED_HOSTS="*")
    assert bad.returncode == 1
    assert "bad   file modes" in bad.stdout
    assert "warn  key: it is weak" in bad.stdout
    assert "warn  hosts" in bad.stdout


@pytest.mark.parametrize("command", ["token list", "grant list", "client list", "auth sweep", "auth doctor"])
def test_the_state_folder_alone_says_whose_credentials_are_meant(owner: Owner, tmp_path: Path, command: str) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    done = owner.run(command, VAULT_PATH="")
    assert (done.returncode, "vault.path" in done.stderr) == (0, False), done.stderr


@pytest.mark.parametrize("command", ["token list", "grant list", "client list"])
def test_without_vault_and_state_folder_a_command_says_what_to_name(owner: Owner, tmp_path: Path, command: str) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    done = owner.run(command, VAULT_PATH="", VAULT_MCP_SERVER__STATE_DIR="")
    assert (done.returncode, done.stdout) == (2, "")
    assert "name the vault (--vault, VAULT_PATH) or the state folder (VAULT_MCP_SERVER__STATE_DIR)" in done.stderr
