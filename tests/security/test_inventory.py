"""Every route of the app against every kind of principal: who is let in where (auth-and-security.md §2.3, §4.2, §12).

The table is kept by hand. A route without a line in it fails the test, and so does a line without a route.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Final

import pytest

from app.auth.named_tokens import NamedTokens
from app.auth.policies import Rights
from app.signing_in import Outside
from operations.caller import write_scope
from tests.feed.streams import Client as Listener
from tests.harness import KEY, Answer, Server, fill, serving
from tests.oauth.attacks import decoded, derived_keys, signed
from tests.oauth.fake_provider import CLIENT_ID, ISSUER, FakeProvider
from tests.oauth.flows import ORIGIN, Clock, Flows


class Way(StrEnum):
    """What lies behind a route, as far as credentials go."""

    OPEN = "open"
    """No credential is looked at."""
    SESSION = "session"
    """Buttons of the status page: no bearer is looked at, and without the page's own session nothing is done."""
    MCP = "mcp"
    """Every good credential; tools have rules of their own."""
    READ = "read"
    """An operation that changes nothing."""
    WRITE = "write"
    """An operation that changes something."""
    EVERY = "every"
    """Every credential that REST takes."""
    FIGURES = "figures"
    """Credentials that are limited in nothing but writing."""


ROUTES: Final = """
    /                                                       open    GET
    /ui/sign-in                                             open    POST
    /ui/sign-out                                            session POST
    /ui/undo                                                session POST
    /ui/revoke                                              session POST
    /healthz                                                open    GET
    /.well-known/oauth-authorization-server                 open    GET
    /.well-known/oauth-authorization-server/mcp             open    GET
    /.well-known/oauth-protected-resource                   open    GET
    /.well-known/oauth-protected-resource/mcp               open    GET
    /.well-known/oauth-protected-resource/mcp/only/{path}   open    GET
    /authorize                                              open    GET
    /oauth/consent                                          open    GET POST
    /oauth/oidc/callback                                    open    GET
    /register                                               open    POST
    /revoke                                                 open    POST
    /token                                                  open    POST
    /mcp                                                    mcp     GET POST DELETE
    /mcp/                                                   mcp     GET POST DELETE
    /mcp/only                                               mcp     GET POST DELETE
    /mcp/only/{path}                                        mcp     GET POST DELETE
    /readyz                                                 every   GET
    /openapi.yaml                                           every   GET
    /tools                                                  every   GET
    /metrics                                                figures GET
    /batch                                                  write   POST
    /bookmarks                                              read    GET
    /callouts                                               read    GET POST
    /canvas                                                 read    GET
    /canvas/edges                                           write   POST
    /canvas/elements                                        write   PATCH DELETE
    /canvas/nodes                                           write   POST
    /changes                                                read    GET
    /diff                                                   read    GET
    /edit/delete-span                                       write   POST
    /edit/insert                                            write   POST
    /edit/replace-span                                      write   POST
    /events                                                 read    GET
    /expiries                                               read    GET
    /fetch                                                  read    POST
    /file-info                                              read    GET
    /files                                                  read    GET
    /files/{path}                                           read    GET
    /files/{path}                                           write   PUT
    /find                                                   read    GET
    /folder/{path}                                          read    GET
    /folder/{path}                                          write   PUT POST DELETE
    /frontmatter                                            read    GET
    /history                                                read    GET
    /history/{change_id}                                    read    GET
    /history/{change_id}/undo                               write   POST
    /links/backlinks                                        read    GET
    /links/broken                                           read    GET
    /links/orphans                                          read    GET
    /links/outgoing                                         read    GET
    /maintenance                                            read    GET POST
    /maintenance/checks                                     read    GET
    /memory                                                 read    GET
    /memory/entries                                         read    GET
    /memory/entries                                         write   POST DELETE
    /memory/recall                                          read    GET
    /move                                                   write   POST
    /notes/by-folder                                        read    GET
    /notes/by-property                                      read    GET
    /notes/by-tag                                           read    GET
    /notes/recent                                           read    GET
    /overview                                               read    GET
    /periodic/{period}                                      read    GET
    /periodic/{period}                                      write   PUT POST PATCH DELETE
    /periodic/{period}/                                     read    GET
    /periodic/{period}/                                     write   PUT POST PATCH DELETE
    /periodic/{period}/{year}/{month}/{day}                 read    GET
    /periodic/{period}/{year}/{month}/{day}                 write   PUT POST PATCH DELETE
    /periodic/{period}/{year}/{month}/{day}/                read    GET
    /periodic/{period}/{year}/{month}/{day}/                write   PUT POST PATCH DELETE
    /properties                                             read    GET
    /properties                                             write   PATCH
    /properties/values                                      read    GET
    /query                                                  read    POST
    /read                                                   read    POST
    /refactor/block-id                                      write   POST
    /refactor/heading                                       write   POST
    /refactor/replace                                       write   POST
    /refactor/tag                                           write   POST
    /search                                                 read    GET POST
    /search/                                                read    POST
    /search/text                                            read    GET
    /server                                                 read    GET
    /tags                                                   read    GET
    /tasks                                                  read    GET
    /tasks/{path}                                           write   POST PATCH
    /templates/apply                                        write   POST
    /vault/{path}                                           read    GET
    /vault/{path}                                           write   PUT POST PATCH DELETE
    /workspace                                              read    GET
"""
INVENTORY: Final[Mapping[tuple[str, str], Way]] = {
    (method, template): Way(way)
    for template, way, *methods in (line.split() for line in ROUTES.strip().splitlines())
    for method in methods
}
_EXAMPLES: Final = {
    "{path}": "Absent.md",
    "{period}": "daily",
    "{year}": "2026",
    "{month}": "03",
    "{day}": "01",
    "{change_id}": "1",
}
_ENDLESS: Final = ("GET", "/events")
_CLOSED: Final = frozenset(Way) - {Way.OPEN, Way.SESSION}
REFUSED: Final[Mapping[str, Mapping[Way, int]]] = {
    "nobody": dict.fromkeys(_CLOSED, 401),
    "bad bearer": dict.fromkeys(_CLOSED, 401),
    "wrong audience": dict.fromkeys(_CLOSED, 401),
    "revoked token": dict.fromkeys(_CLOSED, 401),
    "static key": {},
    "token": {},
    "read-only token": {Way.WRITE: 403},
    "token without tools": dict.fromkeys((Way.READ, Way.WRITE, Way.FIGURES), 403),
    "token of a folder": {Way.FIGURES: 403},
    "sign-in": dict.fromkeys(_CLOSED - {Way.MCP}, 401),
    "sign-in that reads": dict.fromkeys(_CLOSED - {Way.MCP}, 401),
}
"""By principal, the status of what it may not have; everywhere else it is let in."""
ENVIRON: Final = {
    "PUBLIC_URL": ORIGIN,
    "VAULT_MCP_SERVER__METRICS": "true",
    "VAULT_MCP_WEB__FETCH": "true",
    "VAULT_MCP_AUTH__OAUTH__CONSENT": "key,oidc",
    "VAULT_MCP_AUTH__OIDC__ISSUER": ISSUER,
    "VAULT_MCP_AUTH__OIDC__CLIENT_ID": CLIENT_ID,
    "VAULT_MCP_AUTH__OIDC__ALLOW": "sub:u1",
    "VAULT_MCP_LIMITS__OAUTH_PER_MINUTE": "10000",
    "VAULT_MCP_LIMITS__TOKEN_PER_MINUTE": "10000",
    "VAULT_MCP_LIMITS__TOKEN_FAILURES_PER_MINUTE": "10000",
    "VAULT_MCP_LIMITS__BAD_BEARERS_PER_MINUTE": "10000",
}


class World:
    """A server with everything switched on, and one credential of each kind."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        vault, state = folder / "vault", folder / "state"
        fill(vault, {"Note.md": "note\n"})
        clock = Clock()
        outside = Outside(providers=FakeProvider(clock).web())
        self.server: Server = stack.enter_context(serving(vault, state, ENVIRON, now=clock, outside=outside))
        flows = Flows(self.server)
        client = flows.registered(token_endpoint_auth_method="none")
        full = flows.grant(client).access
        tokens: NamedTokens = self.server.app.state.access.tokens
        header, claims = (decoded(part) for part in full.split(".")[:2])
        self.credentials: Mapping[str, str | None] = {
            "nobody": None,
            "bad bearer": f"vmt_zzzzzzzzzz_{'A' * 43}",
            "wrong audience": signed(
                header, {**claims, "aud": "https://other.example/mcp"}, derived_keys(state, KEY).access
            ),
            "static key": KEY,
            "token": tokens.create("full")[1],
            "read-only token": tokens.create("reads", rights=Rights(read_only=True))[1],
            "token without tools": tokens.create("nothing", rights=Rights(allowed=frozenset()))[1],
            "token of a folder": tokens.create("inbox", rights=Rights(write_prefixes=(write_scope("Inbox"),)))[1],
            "revoked token": tokens.create("gone")[1],
            "sign-in": full,
            "sign-in that reads": flows.grant(client, change={"scope": "vault:read"}).access,
        }
        tokens.revoke("gone")

    def ask(self, method: str, template: str, principal: str) -> Answer:
        """A request to a route, with a body that says nothing."""
        target = template
        for name, example in _EXAMPLES.items():
            target = target.replace(name, example)
        bearer = self.credentials[principal]
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Origin": ORIGIN}
        if bearer is not None:
            headers["Authorization"] = f"Bearer {bearer}"
        return self.server.http(method, target, b"" if method == "GET" else b"{}", headers, auth=False)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with ExitStack() as stack:
        yield World(tmp_path_factory.mktemp("inventory"), stack)


def registered(server: Server) -> set[tuple[str, str]]:
    """Method and template of every route; HEAD goes with GET, and routes for every method stand for these three."""
    return {
        (method, route.path.replace("{path:path}", "{path}"))  # type: ignore[attr-defined]  # all are routes
        for route in server.app.router.routes
        for method in (getattr(route, "methods", None) or {"GET", "POST", "DELETE"}) - {"HEAD"}
    }


def test_every_route_has_a_line_and_every_line_a_route(world: World) -> None:
    assert registered(world.server) == set(INVENTORY)


@pytest.mark.parametrize("principal", REFUSED)
def test_who_is_let_in_where(world: World, principal: str) -> None:
    wrong = {}
    for (method, template), way in INVENTORY.items():
        wanted = 403 if way is Way.SESSION else REFUSED[principal].get(way)
        if (method, template) == _ENDLESS and wanted is None:
            continue
        status = world.ask(method, template, principal).status
        if (status != wanted) if wanted is not None else (status in (401, 403) or status >= 500):
            wrong[method, template] = status
    assert not wrong


@pytest.mark.parametrize("principal", [name for name, ways in REFUSED.items() if Way.READ not in ways])
def test_who_may_listen(world: World, principal: str) -> None:
    with Listener(world.server, key=world.credentials[principal]) as listener:
        assert listener.status == 200
