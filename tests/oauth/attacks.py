"""The steps of the attack table that are about signing in, against a server with a clock of its own."""

import base64
import hashlib
import hmac
import json
import logging
import sqlite3
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from app.auth.oauth.keys import Keys
from app.signing_in import Outside
from tests.harness import KEY, Answer, Server, serving
from tests.oauth.fake_provider import CLIENT_ID, ISSUER, FakeProvider, external_token, tampered
from tests.oauth.fake_web import FakeWeb
from tests.oauth.flows import CALLBACK, ORIGIN, Asked, Client, Clock, Code, Flows, Issued
from tests.security.commands import vault_mcp

OTHER_KEY = "fedcba9876543210" * 4
LIFTED = {
    "limits.oauth_per_minute": 1000,
    "limits.token_failures_per_minute": 1000,
    "limits.bad_bearers_per_minute": 1000,
}
TOOLS = {"read": "vault_read", "write": "vault_write"}
_VERIFIERS: Mapping[str | None, dict[str, str | None]] = {
    "wrong": {"code_verifier": "w" * 43},
    "short": {"code_verifier": "w" * 42},
    "absent": {"code_verifier": None},
}
_ADDRESSES: Mapping[str | None, dict[str, str | None]] = {
    "absent": {"redirect_uri": None},
    "other": {"redirect_uri": "https://client.example/other"},
}


def provider_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """What the fixture says of providers that a row names."""
    if "oidc" not in config.get("auth.oauth.consent", ()):
        return {}
    return {
        "auth.oidc.issuer": ISSUER,
        "auth.oidc.client_id": CLIENT_ID,
        "auth.oidc.allow": ["email:owner@x.example"],
    }


class World:
    """One row on its way: servers, clients, and what the steps saved by name."""

    def __init__(self, folder: Path, config: Mapping[str, Any], clock: Clock, web: FakeWeb) -> None:
        self.folder = folder
        self.web = web
        self.provider = FakeProvider(clock)
        self.config = {**LIFTED, **provider_settings(config), **config}
        self.clock = clock
        self.key = KEY
        self.saved: dict[str, Any] = {}
        self.tokens: dict[str, str] = {}
        """Named tokens by the name that the row has for them."""
        self.played: list[Any] = []
        """What every step made, saved or not."""
        self._stack = ExitStack()
        self.flows = self._start(ORIGIN, folder / "state")
        self.clients = {
            "pub": self.flows.registered(CALLBACK, "http://127.0.0.1/cb", token_endpoint_auth_method="none"),
            "conf": self.flows.registered(CALLBACK, token_endpoint_auth_method="client_secret_post"),
            "other": self.flows.registered(CALLBACK, token_endpoint_auth_method="none"),
        }

    def make_token(self, name: str, options: str) -> None:
        done = vault_mcp(
            ["token", "create", name, *options.split()], vault=self.folder / "vault", state=self.folder / "state"
        )
        self.tokens[name] = done.stdout.strip()

    def secrets(self) -> list[str]:
        """Every secret that the row has seen."""
        found = [self.key, *self.tokens.values()]
        for client in self.clients.values():
            found += [client.secret] if client.secret else []
        for made in self.played:
            if isinstance(made, Asked):
                found += [made.handle, made.verifier]
            elif isinstance(made, Code):
                found += [made.text, made.asked.verifier]
            elif isinstance(made, Issued):
                found += [made.access, made.refresh]
        return [secret for secret in found if secret]

    def close(self) -> None:
        self._stack.close()

    @property
    def server(self) -> Server:
        return self.flows.server

    def client(self, name: str) -> Client:
        """A fixture's client, one that a step saved, or one that an address names."""
        found = self.clients.get(name) or self.saved.get(name)
        return found if isinstance(found, Client) else Client(name)

    def restart(self, key: str) -> None:
        self._stack.close()
        self.key = {"same": self.key, "new": OTHER_KEY, "old": KEY}[key]
        self.flows = self._start(ORIGIN, self.folder / "state")

    def second(self, origin: str) -> Flows:
        return self._start(origin, self.folder / "second")

    def keys(self) -> Keys:
        """The server's derived keys, as its owner could make them."""
        return derived_keys(self.folder / "state", self.key)

    def filled(self, text: str) -> str:
        """`$O`, `$KEY`, `$<client>` and `$<request>` replaced."""
        for name, asked in self.saved.items():
            value = asked.handle if isinstance(asked, Asked) else asked.id if isinstance(asked, Client) else None
            text = text.replace(f"${name}", value) if value else text
        for name, client in self.clients.items():
            text = text.replace(f"${name}", client.id)
        return text.replace("$KEY", self.key).replace("$O", ORIGIN)

    def _start(self, origin: str, state: Path) -> Flows:
        environ = {
            f"VAULT_MCP_{key.upper().replace('.', '__')}": ",".join(value) if isinstance(value, list) else str(value)
            for key, value in self.config.items()
        }
        server = self._stack.enter_context(
            serving(
                self.folder / "vault",
                state,
                {**environ, "PUBLIC_URL": origin, "VAULT_MCP_API_KEY": self.key},
                now=self.clock,
                outside=Outside(self.web.client(), self.provider.web()),
            )
        )
        server.key = self.key
        flows = Flows(server)
        server.default_host = urlsplit(origin).netloc
        return flows


class Attack:
    """Takes the steps of a row, one after the other."""

    def __init__(self, world: World) -> None:
        self.world = world

    def take(self, step: Mapping[str, Any]) -> Any:
        """Run a step, check what it expects, keep what it names."""
        result = self.play(step)
        if "expect" in step and step["op"] not in ("repeat", "parallel"):
            check(self.world, answer_of(result), step["expect"])
        self.world.played.append(result)
        if "as" in step:
            self.world.saved[step["as"]] = result
        return result

    def play(self, step: Mapping[str, Any]) -> Any:
        """Run a step; answers what it made."""
        played: Callable[[Mapping[str, Any]], Any] = getattr(self, f"_{step['op']}")
        return played(step)

    def _http(self, step: Mapping[str, Any]) -> Answer:
        headers = {name: self.world.filled(text) for name, text in dict(step.get("headers", {})).items()}
        body = step.get("body", "")
        if "json" in step:
            body, headers["Content-Type"] = json.dumps(step["json"]), "application/json"
        for name in ("form", "form_pairs"):
            if name in step:
                pairs = step[name].items() if isinstance(step[name], dict) else step[name]
                body = urlencode([(field, self.world.filled(value)) for field, value in pairs])
                headers["Content-Type"] = "application/x-www-form-urlencoded"
        if "host" in step:
            headers["Host"] = step["host"]
        if "bearer" in step:
            bearer = self.world.key if step["bearer"] == "static" else step["bearer"]
            headers["Authorization"] = f"Bearer {bearer}"
        path = quote(self.world.filled(step["path"]), safe="/?=&:%,+")
        return self.world.server.http(step["method"], path, body, headers, auth=False, peer=step.get("peer"))

    def _register(self, step: Mapping[str, Any]) -> Any:
        metadata = {
            name: value for name, value in step.items() if name not in ("op", "as", "expect", "headers", "peer")
        }
        if "token_endpoint_auth_method" not in metadata:
            metadata["token_endpoint_auth_method"] = "client_secret_post"
        answer, client = self.world.flows.register(step.get("headers"), peer=step.get("peer"), **metadata)
        return client if "as" in step and client is not None else answer

    def _authorize(self, step: Mapping[str, Any]) -> Asked:
        return self.world.flows.authorize(
            self.world.client(step["client"]),
            redirect_uri=step.get("redirect_uri"),
            change={name: self.world.filled(value) for name, value in step.get("set", {}).items()},
            drop=step.get("drop", ()),
            twice=step.get("twice"),
        )

    def _consent(self, step: Mapping[str, Any]) -> Code:
        named = step.get("request", "new")
        asked = self.world.flows.authorize(self.world.clients["pub"]) if named == "new" else self.world.saved[named]
        right = self.world.key
        key = {"right": right, "wrong": "0" * 64, "spaced": f" {right[:20]}\n {right[20:]} "}[step.get("key", "right")]
        return self.world.flows.consent(
            asked,
            key=key,
            action=step.get("action", "approve"),
            access=step.get("access", "full"),
            peer=step.get("peer"),
        )

    def _exchange(self, step: Mapping[str, Any]) -> Issued:
        code: Code = self.world.saved[step["code"]]
        change: dict[str, str | None] = {name: self.world.filled(text) for name, text in step.get("set", {}).items()}
        change |= _VERIFIERS.get(step.get("verifier"), {}) | _ADDRESSES.get(step.get("redirect_uri"), {})
        if "auth" in step:
            return self._exchange_with(code, step["auth"], change)
        client = self.world.client(step["client"]) if "client" in step else None
        return self.world.flows.exchange(code, client=client, **change)

    def _exchange_with(self, code: Code, auth: str, change: Mapping[str, str | None]) -> Issued:
        client = code.asked.client
        secret = "wrong" if "wrong" in auth else client.secret
        credentials = base64.b64encode(f"{client.id}:{secret}".encode()).decode()
        scheme = "basic" if "lower case" in auth else "Basic"
        headers = {} if auth == "none" else {"Authorization": f"{scheme} {credentials}"}
        fields: dict[str, str | None] = {
            "grant_type": "authorization_code",
            "code": code.text,
            "code_verifier": code.asked.verifier,
            "redirect_uri": code.asked.redirect_uri,
            "client_id": None if "only in the header" in auth else client.id,
            "client_secret": client.secret if auth == "both" else None,
            **change,
        }
        return Issued(client, self.world.flows.post("/token", fields, headers))

    def _grant(self, step: Mapping[str, Any]) -> Issued:
        return self.world.flows.grant(
            self.world.client(step["client"]), redirect_uri=step.get("redirect_uri"), change=step.get("set")
        )

    def _refresh(self, step: Mapping[str, Any]) -> Issued:
        client = self.world.client(step["client"]) if "client" in step else None
        return self.world.flows.refresh(self.world.saved[step["tokens"]], client=client, scope=step.get("scope"))

    def _revoke(self, step: Mapping[str, Any]) -> Answer:
        issued: Issued = self.world.saved[step["tokens"]]
        client = self.world.client(step["client"]) if "client" in step else issued.client
        return self.world.flows.revoke(issued.access if step["which"] == "access" else issued.refresh, client)

    def _call(self, step: Mapping[str, Any]) -> Answer:
        flows = self.world.saved[step["server"]] if "server" in step else self.world.flows
        bearer = self._bearer(step["bearer"])
        if step.get("surface") == "rest":
            path = f"/vault/{step['path']}"
            return self.world.server.http("GET", path, headers={"Authorization": f"Bearer {bearer}"})
        if step["do"] == "tools_list":
            return flows.call(bearer)
        arguments = {"path": step["path"], **({"content": "x"} if step["do"] == "write" else {})}
        return flows.call(bearer, "tools/call", {"name": TOOLS[step["do"]], "arguments": arguments})

    def _bearer(self, said: str) -> str:
        if said == "static":
            return self.world.key
        if said.startswith("external: "):
            return external_token(self.world.provider, said.removeprefix("external: "))
        if said.startswith("token:"):
            return self.world.tokens[said.removeprefix("token:")]
        name, _, change = said.removeprefix("access:").partition(" changed: ")
        token: str = self.world.saved[name].access
        return mutated(token, change.strip("'"), self.world) if change else token

    def _forge(self, step: Mapping[str, Any]) -> Answer:
        return self.world.flows.call(forged(step["bearer"].removeprefix("right key, "), self.world))

    def _document(self, step: Mapping[str, Any]) -> None:
        self.world.web.play(step)

    def _oidc(self, step: Mapping[str, Any]) -> Answer:
        world, tamper = self.world, step.get("tamper", "")
        trip = tampered(world, tamper)
        if "claims" in step:
            world.provider.claims = step["claims"]
        answer = trip.come_back()
        if tamper == "state used before":
            answer = trip.come_back()
        return answer

    def _advance(self, step: Mapping[str, Any]) -> None:
        self.world.clock.advance(step["seconds"])

    def _sweep(self, _step: Mapping[str, Any]) -> None:
        self.world.server.app.state.authorization.sweep()

    def _restart(self, step: Mapping[str, Any]) -> None:
        assert step["db"] == "keep"
        self.world.restart(step["key"])

    def _second_server(self, step: Mapping[str, Any]) -> Flows:
        return self.world.second(step["public_origin"])

    def _repeat(self, step: Mapping[str, Any]) -> None:
        answers = [
            answer_of(
                self.play(numbered({**step["step"], **({"peer": step["peer"]} if "peer" in step else {})}, number))
            )
            for number in range(1, step["times"] + 1)
        ]
        assert [answer.status for answer in answers] == step["expect"]["statuses"]
        for answer in answers:
            if answer.status == 429:
                assert int(answer.headers["retry-after"]) >= 1

    def _parallel(self, step: Mapping[str, Any]) -> None:
        with ThreadPoolExecutor(step["times"]) as pool:
            played = list(pool.map(lambda n: self.play(numbered(step["step"], n)), range(1, step["times"] + 1)))
        expect, statuses = step["expect"], [answer_of(result).status for result in played]
        for status, times in expect.get("count_status", {}).items():
            assert statuses.count(int(status)) == times, statuses
        if "at_least_one" in expect:
            assert expect["at_least_one"]["status"] in statuses
        if "distinct_refresh_tokens" in expect:
            assert len({result.refresh for result in played}) == expect["distinct_refresh_tokens"]


def answer_of(result: Any) -> Answer:
    """The HTTP answer of a step."""
    return result if isinstance(result, Answer) else result.answer


def numbered(value: Any, number: int) -> Any:
    """A step with `$i` replaced."""
    if isinstance(value, dict):
        return {name: numbered(member, number) for name, member in value.items()}
    return value.replace("$i", str(number)) if isinstance(value, str) else value


def check(world: World, answer: Answer, expect: Mapping[str, Any]) -> None:
    """Everything a row says about one answer."""
    unknown = set(expect) - set(CHECKS)
    assert not unknown, f"the runner knows no {unknown}"
    for name, wanted in expect.items():
        CHECKS[name](world, answer, wanted)


def _check_status(_world: World, answer: Answer, wanted: int) -> None:
    assert answer.status == wanted, answer.text


def _check_code(_world: World, answer: Answer, wanted: str) -> None:
    if answer.status == 200:
        assert answer.json["result"]["_meta"]["vault-mcp/error"]["code"] == wanted
    else:
        assert answer.code == wanted, answer.text


def _check_error(_world: World, answer: Answer, wanted: str) -> None:
    assert answer.json["error"] == wanted, answer.text
    assert set(answer.json) <= {"error", "error_description"}
    assert answer.headers["cache-control"] == "no-store"


def _check_to_client(world: World, answer: Answer, wanted: Mapping[str, Any]) -> None:
    assert answer.status == 303, answer.text
    location = answer.headers["location"]
    assert location.startswith(f"{CALLBACK}?"), location
    said = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
    assert said["iss"] == ORIGIN
    for name in wanted.get("has", ()):
        assert said[name]
    for name in set(wanted) - {"has"}:
        assert said[name] == world.filled(wanted[name])


def _check_headers(_world: World, answer: Answer, wanted: Mapping[str, str]) -> None:
    for name, text in wanted.items():
        found = answer.headers.get(name, "")
        if text.startswith("contains "):
            for part in text.removeprefix("contains ").split(" and "):
                assert part in found, (name, found)
        else:
            assert found == text, (name, found)


def _check_json(world: World, answer: Answer, wanted: Mapping[str, Any]) -> None:
    said = {name: value for name, value in answer.json.items() if name != "resource_name"}
    assert said == filled_values(world, wanted)


def _check_subset(world: World, answer: Answer, wanted: Mapping[str, Any]) -> None:
    for name, value in filled_values(world, wanted).items():
        assert answer.json[name] == value, (name, answer.json[name])


def _check_lists(_world: World, answer: Answer, wanted: Mapping[str, Any]) -> None:
    for name, values in wanted.items():
        assert set(values) <= set(answer.json[name])


def _check_challenge(world: World, answer: Answer, wanted: list[str]) -> None:
    for part in wanted:
        assert world.filled(part) in answer.headers["www-authenticate"]


def _check_tools_lack(_world: World, answer: Answer, wanted: list[str]) -> None:
    names = {tool["name"] for tool in answer.json["result"]["tools"]}
    assert not names & set(wanted)
    assert "vault_read" in names


def _check_jwt(world: World, answer: Answer, wanted: Mapping[str, Any]) -> None:
    header, claims = (decoded(part) for part in answer.json["access_token"].split(".")[:2])
    assert header == wanted["header"]
    for name, value in filled_values(world, wanted["claims"]).items():
        assert claims[name] == value
    assert set(claims) == set(wanted["claims_exactly"])
    assert claims["exp"] - claims["iat"] == wanted["exp_minus_iat"]


def _lacking(find: Callable[[Answer], str]) -> Callable[[World, Answer, list[str]], None]:
    def check_lacks(world: World, answer: Answer, wanted: list[str]) -> None:
        for text in wanted:
            assert world.filled(text) not in find(answer)

    return check_lacks


def _check_contains(world: World, answer: Answer, wanted: list[str]) -> None:
    for text in wanted:
        assert world.filled(text) in answer.text


def _check_no_redirect(_world: World, answer: Answer, _wanted: bool) -> None:
    assert "location" not in answer.headers


def _check_location(_world: World, answer: Answer, wanted: str) -> None:
    assert answer.headers["location"].startswith(wanted)


def _check_json_has(_world: World, answer: Answer, wanted: list[str]) -> None:
    assert set(wanted) <= set(answer.json)


def _check_json_lacks(_world: World, answer: Answer, wanted: list[str]) -> None:
    assert not set(wanted) & set(answer.json)


def _check_header_lacks(_world: World, answer: Answer, wanted: list[str]) -> None:
    assert not set(wanted) & set(answer.headers)


def _check_body(_world: World, answer: Answer, wanted: str) -> None:
    assert answer.text == wanted


def _check_new_refresh(world: World, answer: Answer, _wanted: bool) -> None:
    known = [saved.refresh for saved in world.saved.values() if isinstance(saved, Issued)]
    assert answer.json["refresh_token"] not in known


def _check_same_refresh(world: World, answer: Answer, wanted: str) -> None:
    assert answer.json["refresh_token"] == world.saved[wanted].refresh


def _check_other_access(world: World, answer: Answer, wanted: str) -> None:
    assert answer.json["access_token"] != world.saved[wanted].access


def _nothing(_world: World, _answer: Answer, _wanted: Any) -> None:
    """For keys that say how another one is to be read."""


AFTER = {
    "alive", "audit", "clients", "db_lacks", "db_rows", "log_lacks", "provider_token_requests_with", "requests_to",
    "revoked", "unchanged",
}  # fmt: skip
CHECKS: Mapping[str, Callable[[World, Answer, Any], None]] = {
    "status": _check_status,
    "code": _check_code,
    "error": _check_error,
    "to_client": _check_to_client,
    "no_redirect": _check_no_redirect,
    "location_starts": _check_location,
    "header": _check_headers,
    "header_lacks": _check_header_lacks,
    "csp_lacks": _lacking(lambda answer: answer.headers["content-security-policy"]),
    "challenge": _check_challenge,
    "challenge_lacks": _lacking(lambda answer: answer.headers["www-authenticate"]),
    "contains": _check_contains,
    "lacks": _lacking(lambda answer: answer.text),
    "json": _check_json,
    "json_may_have": _nothing,
    "json_subset": _check_subset,
    "json_has": _check_json_has,
    "json_lacks": _check_json_lacks,
    "json_list_has": _check_lists,
    "tools_lack": _check_tools_lack,
    "jwt": _check_jwt,
    "body": _check_body,
    "new_refresh_token": _check_new_refresh,
    "same_refresh_token_as": _check_same_refresh,
    "different_access_token_from": _check_other_access,
}


def filled_values(world: World, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a mapping with names replaced."""
    return {
        name: world.filled(value)
        if isinstance(value, str)
        else [world.filled(item) if isinstance(item, str) else item for item in value]
        if isinstance(value, list)
        else value
        for name, value in wanted.items()
    }


def derived_keys(state: Path, key: str) -> Keys:
    """The keys of the server with this state and static key."""
    with sqlite3.connect(state / "auth.db") as connection:
        [salt] = connection.execute("SELECT value FROM meta WHERE name = 'salt'").fetchone()
    return Keys.derive(key, salt)


def decoded(part: str) -> Any:
    """A segment of a token."""
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def encoded(value: object) -> str:
    """A segment of a token, from JSON or bytes."""
    data = value if isinstance(value, bytes) else json.dumps(value, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed(header: object, claims: object, key: bytes, algorithm: str = "sha256") -> str:
    """A token, made by hand: libraries refuse to make most of those that are needed here."""
    text = f"{encoded(header)}.{encoded(claims)}"
    return f"{text}.{encoded(hmac.digest(key, text.encode(), algorithm))}"


def mutated(token: str, change: str, world: World) -> str:
    """A valid token, changed as a row says."""
    head, body, signature = token.split(".")
    header, claims = decoded(head), decoded(body)
    key = world.keys().access
    changes: Mapping[str, Callable[[], str]] = {
        "alg none, no signature": lambda: f"{encoded({**header, 'alg': 'none'})}.{body}.",
        "signature removed": lambda: f"{head}.{body}.",
        "payload scope widened": lambda: f"{head}.{encoded({**claims, 'scope': 'vault admin'})}.{signature}",
        "'!!' appended": lambda: f"{token}!!",
        "!!' appended": lambda: f"{token}!!",
        "=' appended": lambda: f"{token}=",
        "last character replaced by its base64 twin": lambda: token[:-1] + twin(token[-1]),
        "signed with the raw static key": lambda: signed(header, claims, world.key.encode()),
        "HS512 with the derived key": lambda: signed({**header, "alg": "HS512"}, claims, key, "sha512"),
        "header with kid": lambda: signed({**header, "kid": "1"}, claims, key),
        "header with crit": lambda: signed({**header, "crit": ["exp"]}, claims, key),
        "typ JWT": lambda: signed({**header, "typ": "JWT"}, claims, key),
        "fourth segment added": lambda: f"{token}.{signature}",
    }
    return changes[change]()


def twin(character: str) -> str:
    """The character that decodes to the same bits where four of six are padding."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return alphabet[alphabet.index(character) ^ 1]


def forged(change: str, world: World) -> str:
    """A token with the right signature and a claim that does not hold."""
    issued = world.flows.grant(world.clients["pub"])
    header, claims = (decoded(part) for part in issued.access.split(".")[:2])
    now = int(world.clock().timestamp())
    changes: Mapping[str, tuple[str, object]] = {
        "aud of another server": ("aud", "https://other.example/mcp"),
        "aud as a list with ours in it": ("aud", [f"{ORIGIN}/mcp"]),
        "iss with trailing slash": ("iss", f"{ORIGIN}/"),
        "exp past": ("exp", now - 1),
        "exp as text": ("exp", str(now + 600)),
        "exp Infinity": ("exp", float("inf")),
        "iat null": ("iat", None),
        "iat in an hour": ("iat", now + 3600),
        "unknown gid": ("gid", hashlib.sha256(b"x").hexdigest()[:32]),
    }
    if change.startswith("no "):
        claims.pop(change.removeprefix("no "))
    else:
        name, value = changes[change]
        claims[name] = value
    return signed(header, claims, world.keys().access)


def check_after(
    world: World, after: Mapping[str, Any], logged: list[logging.LogRecord], vault: Mapping[str, Any]
) -> None:
    """What a row says about the state behind its steps."""
    unknown = set(after) - AFTER
    assert not unknown, f"the runner knows no {unknown}"
    with sqlite3.connect(world.folder / "state" / "auth.db") as connection:
        for name in (*after.get("revoked", ()), *after.get("alive", ())):
            grant = decoded(world.saved[name].access.split(".")[1])["gid"]
            [revoked_at] = connection.execute("SELECT revoked_at FROM grants WHERE id = ?", (grant,)).fetchone()
            assert (revoked_at is not None) == (name in after.get("revoked", ()))
        if "clients" in after:
            assert connection.execute("SELECT count(*) FROM clients").fetchone() == (after["clients"],)
        if "db_rows" in after:
            assert after["db_rows"] == {"refresh_tokens of t, unexpired": 0}
            now = world.clock().timestamp()
            grant = decoded(world.saved["t"].access.split(".")[1])["gid"]
            found = connection.execute(
                "SELECT count(*) FROM refresh_tokens WHERE grant_id = ? AND expires_at > ?", (grant, now)
            )
            assert found.fetchone() == (0,)
    for address, times in after.get("requests_to", {}).items():
        assert world.web.dialed.count(address) == times
    for grant_type, times in after.get("provider_token_requests_with", {}).items():
        assert [asked["grant_type"] for asked in world.provider.asked].count(grant_type) == times
    if "log_lacks" in after:
        written = "".join(f"{record.getMessage()} {vars(record)}" for record in logged)
        assert not [secret for secret in world.secrets() if secret in written]
        assert len(world.secrets()) > len(world.clients)
    if "audit" in after:
        assert after["audit"] in {record.getMessage() for record in logged}
    stored = b"".join(file.read_bytes() for file in (world.folder / "state").glob("auth.db*"))
    for secret in (secret_named(world, name) for name in after.get("db_lacks", ())):
        assert secret.encode() not in stored
    if after.get("unchanged") == "all":
        assert world.server.snapshot() == vault


def secret_named(world: World, name: str) -> str:
    """The secret that a row names: `t.access_token`, a code, `request handle r`."""
    if name == "client_secret":
        secret = world.clients["conf"].secret
        assert secret is not None
        return secret
    if name.startswith("$"):
        return world.filled(name)
    saved = world.saved[name.removeprefix("request handle ").partition(".")[0]]
    match saved:
        case Issued():
            return saved.access if name.endswith("access_token") else saved.refresh
        case Asked():
            return saved.handle
        case _:
            return str(saved.text)
