"""The rows of the attack table about signing in, each over HTTP against a whole server."""

import logging
from contextlib import closing
from contextlib import nullcontext as does_not_raise
from pathlib import Path

import pytest
import yaml

from app.auth.client_address import TrustedHops
from app.auth.oauth.client_documents import DocumentRefusedError, require_document_url
from app.auth.oauth.redirects import RedirectRules, is_asked_address, why_not_registrable
from app.auth.oauth.scopes import granted_scope
from operations.net.guarded import RefusedAddressError
from tests.conformance.cases import TABLES, TableLoader
from tests.harness import fill
from tests.oauth.attacks import Attack, World, check_after
from tests.oauth.fake_web import fake_web
from tests.oauth.flows import Clock
from tests.security.cases import SecurityCase

AREAS = {
    "access token", "authorize", "client address", "client document", "consent", "discovery", "external issuer",
    "key rotation", "openid sign-in", "rate", "refresh", "registration", "revocation", "token",
}  # fmt: skip
ALSO = {"SEC-129"}
ELSEWHERE = {"SEC-099": "tests/security runs it: nobody signs in"}
FILES = {"Note.md": "note\n", "Inbox/In.md": "in\n"}
TABLE = yaml.load((TABLES / "security.yaml").read_text(encoding="utf-8"), TableLoader)  # noqa: S506 - a SafeLoader
CASES = [
    SecurityCase.model_validate(row)
    for row in TABLE["cases"]
    if (row["area"] in AREAS or row["id"] in ALSO) and row["id"] not in ELSEWHERE
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.id}: {case.title}")
def test_signing_in_goes_as_the_attack_table_says(
    case: SecurityCase, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    fill(tmp_path / "vault", FILES)
    with fake_web(tmp_path) as web, closing(World(tmp_path, case.given.get("config", {}), Clock(), web)) as world:
        for name, options in case.given.get("tokens", {}).items():
            world.make_token(name, options)
        before = world.server.snapshot()
        attack = Attack(world)
        for step in case.steps:
            attack.take(step)
        check_after(world, case.after, caplog.records, before)


def rows(name: str) -> list[dict[str, object]]:
    return list(TABLE["vectors"][name]["rows"])


@pytest.mark.parametrize("row", rows("redirect_registration"), ids=lambda row: str(row["uri"])[:60])
def test_addresses_that_may_be_registered(row: dict[str, object]) -> None:
    reason = why_not_registrable(str(row["uri"]), RedirectRules())
    assert (reason is None) == row["ok"], reason


@pytest.mark.parametrize("row", rows("redirect_match"), ids=lambda row: f"{row['registered']} {row['asked']}")
def test_addresses_that_a_request_may_name(row: dict[str, object]) -> None:
    assert is_asked_address(str(row["registered"]), str(row["asked"])) is row["ok"]


@pytest.mark.parametrize("row", rows("document_urls"), ids=lambda row: str(row["url"])[:60])
def test_addresses_that_may_be_a_clients(row: dict[str, object]) -> None:
    refusal = does_not_raise() if row["ok"] else pytest.raises((DocumentRefusedError, RefusedAddressError))
    with refusal:
        require_document_url(str(row["url"]))


@pytest.mark.parametrize("row", rows("scopes"), ids=lambda row: str(row["asked"]))
def test_scopes_that_are_granted(row: dict[str, str | None]) -> None:
    assert granted_scope(row["asked"]) == row["granted"]


@pytest.mark.parametrize("row", rows("client_address"), ids=str)
def test_the_address_of_a_client(row: dict[str, object]) -> None:
    hops = TrustedHops(forwarded=int(str(row["forwarded_hops"])), proxy=int(str(row["proxy_hops"])))
    forwarded, others = row["forwarded"], row["xff"]
    assert isinstance(forwarded, list)
    assert isinstance(others, list)
    assert hops.address(str(row["peer"]), forwarded, others) == row["address"]
