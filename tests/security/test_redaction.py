"""Secrets of a whole run stand nowhere but in the answers that hand them out (auth-and-security.md §4.10, §12)."""

import json
import socket
import time
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.harness import Answer, fill
from tests.oauth.flows import ORIGIN, Client, Code, Flows, Issued
from tests.reliability.processes import KEY, HttpProcess
from tests.security.attack import SECRET_LENGTH
from tests.security.commands import vault_mcp

ENVIRON = {
    "PUBLIC_URL": ORIGIN,
    "LOG_LEVEL": "debug",
    "VAULT_MCP_SERVER__METRICS": "true",
    "VAULT_MCP_EMBEDDING__ENABLED": "false",
    "VAULT_MCP_LIMITS__OAUTH_PER_MINUTE": "1000",
    "VAULT_MCP_LIMITS__TOKEN_FAILURES_PER_MINUTE": "1000",
    "VAULT_MCP_AUTH__OAUTH__CONSENT": "key,oidc",
    "VAULT_MCP_AUTH__OIDC__ISSUER": "https://127.0.0.1:9",
    "VAULT_MCP_AUTH__OIDC__CLIENT_ID": "vault",
    "VAULT_MCP_AUTH__OIDC__ALLOW": "sub:u1",
}


class Wire:
    """A process that steps of signing in talk to over its socket; every answer is kept."""

    def __init__(self, process: HttpProcess) -> None:
        self._process = process
        self.key = KEY
        self.default_host = "vault.example"
        self.answers: list[Answer] = []

    def http(
        self,
        method: str,
        target: str,
        body: str = "",
        headers: Mapping[str, str] | None = None,
        *,
        auth: bool = True,
        peer: str | None = None,
    ) -> Answer:
        """One request over a connection of its own; everybody comes from this machine."""
        sent = {"Host": self.default_host, **(headers or {})}
        if auth:
            sent.setdefault("Authorization", f"Bearer {self.key}")
        connection = HTTPConnection("127.0.0.1", self._process.port, timeout=30)
        connection.request(method, target, body, sent)
        response = connection.getresponse()
        answer = Answer(response.status, {name.lower(): text for name, text in response.getheaders()}, response.read())
        connection.close()
        self.answers.append(answer)
        return answer


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpProcess]:
    folder = tmp_path_factory.mktemp("redaction")
    fill(folder / "vault", {"Note.md": "note\n"})
    with HttpProcess(folder / "vault", folder / "state", ENVIRON) as process:
        process.wait_until_up()
        yield process


def test_no_secret_of_a_run_stands_in_log_figures_refusals_or_file(process: HttpProcess) -> None:
    folder = process.log.parent
    wire = Wire(process)
    secrets = {"key": KEY, "named token": named_token(folder)} | signed_in(wire)
    for secret in secrets.values():
        misplaced(wire, secret)
    figures = wire.http("GET", "/metrics").text
    refusals = [answer.text for answer in wire.answers if answer.status >= 400]
    assert len(refusals) > 5 * len(secrets)
    stored = b"".join(file.read_bytes() for file in (folder / "state").glob("auth.db*"))
    leave_in_the_middle(process)
    said = process.said
    assert said.count('"message":"request"') > len(refusals)
    for name, secret in secrets.items():
        bare = secret[-SECRET_LENGTH:]  # without the prefix that says what kind it is
        assert bare not in said, name
        assert bare not in figures, name
        shown = [text for text in refusals if bare in text]
        if name == "handle":  # the form that is shown again is about this request
            shown = [text for text in shown if "<form" not in text]
        assert not shown, name
        if name != "state":  # the client's own, kept until it is sent back (§6)
            assert bare.encode() not in stored, name


def leave_in_the_middle(process: HttpProcess) -> None:
    """Go away before a body has ended: the server says so at its loudest level, and nothing else here does."""
    head = f"PUT /vault/Half.md HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Length: 9\r\n\r\nhalf"
    with socket.create_connection(("127.0.0.1", process.port)) as connection:
        connection.sendall(head.encode("ascii"))
    deadline = time.monotonic() + 30
    while '"level":"debug"' not in process.said:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def named_token(folder: Path) -> str:
    return vault_mcp(["token", "create", "n8n"], vault=folder / "vault", state=folder / "state").stdout.strip()


def signed_in(wire: Wire) -> dict[str, str]:
    """Sign in, with a few wrong turns; the secrets that were made on the way."""
    flows = Flows(wire)  # type: ignore[arg-type]  # a server as far as these steps ask for one
    _, client = flows.register(redirect_uris=["https://client.example/cb"])
    assert isinstance(client, Client)
    assert client.secret
    asked = flows.authorize(client, change={"state": "state-of-the-client-0123456789"})
    consent_cookie = cookie_of(wire.http("GET", f"/oauth/consent?request={asked.handle}", auth=False))
    session = cookie_of(flows.post("/ui/sign-in", {"key": KEY}, {"Origin": ORIGIN}))
    flows.consent(asked, key="0" * 64)
    code: Code = flows.consent(asked)
    flows.exchange(code, code_verifier="w" * 43)
    first: Issued = flows.exchange(code)
    second = flows.refresh(first)
    assert flows.call(second.access).status == 200
    flows.refresh(second, scope="vault offline_access more")
    flows.revoke(second.refresh, client)
    assert flows.call(second.access).status == 401
    flows.refresh(second)
    return {
        "client secret": client.secret,
        "verifier": asked.verifier,
        "state": "state-of-the-client-0123456789",
        "handle": asked.handle,
        "cookie of the consent page": consent_cookie,
        "session of the status page": session,
        "code": code.text,
        "first access token": first.access.rpartition(".")[2],
        "first refresh token": first.refresh,
        "second access token": second.access.rpartition(".")[2],
        "second refresh token": second.refresh,
    }


def cookie_of(answer: Answer) -> str:
    return answer.headers["set-cookie"].partition("=")[2].partition(";")[0]


def misplaced(wire: Wire, secret: str) -> None:
    """Send a secret where secrets do not belong, and where they belong to something else."""
    flows = Flows(wire)  # type: ignore[arg-type]  # as above
    wire.http("GET", f"/vault/Note.md?token={quote(secret)}")
    wire.http("GET", f"/authorize?client_id=x&state={quote(secret)}", auth=False)
    wire.http("GET", "/vault/Note.md", headers={"Authorization": f"Bearer {secret}x"})
    wire.http("GET", "/vault/Note.md", headers={"Authorization": f"Basic {secret}"})
    wire.http("GET", f"/oauth/consent?request={quote(secret)}x", headers={"Cookie": f"__Host-vault-mcp={secret}"})
    flows.post("/token", {"grant_type": "refresh_token", "refresh_token": f"{secret}x", "client_id": secret})
    flows.post("/token", {"grant_type": secret, "code": secret, "client_id": "x", "client_secret": secret})
    flows.post("/revoke", {"token": secret, "client_id": "x", "client_secret": secret})
    flows.post("/oauth/consent", {"request": secret, "key": secret, "action": "approve"}, {"Origin": ORIGIN})
    at_the_page = {"Origin": ORIGIN, "Cookie": f"__Host-vault-mcp-ui={secret}"}
    flows.post("/ui/sign-in", {"key": secret}, at_the_page)
    flows.post("/ui/undo", {"change": secret, "token": secret}, at_the_page)
    wire.http("POST", "/read", json.dumps({"path": "Note.md", "api_key": secret}), {"Content-Type": "application/json"})
    wire.http("POST", "/move", f'{{"source": "{secret}', {"Content-Type": "application/json"})
