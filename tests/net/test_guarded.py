"""Requests to addresses that strangers name: which are asked, and what is taken of an answer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from operations.net.addresses import is_public_address, is_public_name
from operations.net.guarded import FetchError, GuardedClient, RefusedAddressError
from tests.conformance.cases import TABLES, TableLoader
from tests.oauth.fake_web import PUBLIC, FakeWeb, Page, fake_web

TABLE = yaml.load((TABLES / "security.yaml").read_text(encoding="utf-8"), TableLoader)  # noqa: S506 - a SafeLoader
URL = "https://app.example/c.json"


@pytest.fixture
def web(tmp_path: Path) -> Iterator[FakeWeb]:
    with fake_web(tmp_path) as web:
        yield web


@pytest.mark.parametrize("row", TABLE["vectors"]["addresses"]["rows"], ids=lambda row: row["ip"])
def test_which_addresses_are_public(row: dict[str, Any]) -> None:
    assert is_public_address(row["ip"]) is row["public"]


@pytest.mark.parametrize("text", ["fe80::1%eth0", "2606:4700::1111%1", "93.184.216.34.5", "", "0x7f.1", "127.1"])
def test_what_is_no_plain_address_is_not_public(text: str) -> None:
    assert not is_public_address(text)


@pytest.mark.parametrize("row", TABLE["vectors"]["fetch_hosts"]["rows"], ids=lambda row: row["host"] or "empty")
def test_which_names_may_be_looked_up(row: dict[str, Any]) -> None:
    assert is_public_name(row["host"]) is row["ok"]


def test_an_answer_comes_whole(web: FakeWeb) -> None:
    web.publish(URL, {"a": 1}, **{"Cache-Control": "max-age=60"})
    answer = web.client().get(URL, max_bytes=100, seconds=5)
    assert (answer.status, answer.media_type, answer.body) == (200, "application/json", b'{"a": 1}')
    assert answer.headers["cache-control"] == "max-age=60"
    assert web.dialed == [PUBLIC]


@pytest.mark.parametrize(
    "addresses", [["10.0.0.1"], [PUBLIC, "10.0.0.1"], ["::ffff:93.184.216.34"], ["169.254.169.254"], []]
)
def test_one_private_address_among_a_names_addresses_refuses_it(web: FakeWeb, addresses: list[str]) -> None:
    web.publish(URL, {})
    web.names["app.example"] = addresses
    with pytest.raises(RefusedAddressError) as refused:
        web.client().get(URL, max_bytes=100, seconds=5)
    assert web.dialed == []
    assert not [address for address in addresses if address in str(refused.value)]


@pytest.mark.parametrize(
    "url",
    [
        "http://app.example/c",
        "https://u:p@app.example/c",
        "https://app.example:8443/c",
        "https://localhost/c",
        "https://intranet/c",
        "https://127.0.0.1/c",
        "https://[::1]/c",
        "https:///c",
        "https://app.example:port/c",
    ],
)
def test_addresses_that_are_refused_before_a_look_up(web: FakeWeb, url: str) -> None:
    with pytest.raises(RefusedAddressError):
        web.client().get(url, max_bytes=100, seconds=5)
    assert web.dialed == []


def test_a_larger_answer_is_refused_while_it_comes(web: FakeWeb) -> None:
    web.names["app.example"] = [PUBLIC]
    web.pages[URL] = Page(b"x" * 101)
    with pytest.raises(FetchError, match="more than 100 bytes"):
        web.client().get(URL, max_bytes=100, seconds=5)


def test_a_redirect_is_an_answer_and_is_not_followed(web: FakeWeb) -> None:
    web.names["app.example"] = [PUBLIC]
    web.pages[URL] = Page(status=302, headers={"Location": "https://169.254.169.254/latest"})
    assert web.client().get(URL, max_bytes=100, seconds=5).status == 302
    assert web.dialed == [PUBLIC]


def test_a_certificate_of_nobody_known_is_no_answer(web: FakeWeb) -> None:
    web.publish(URL, {})
    trusting_nobody = web.client()
    distrusting = GuardedClient(resolve=trusting_nobody.resolve, dial=trusting_nobody.dial)
    with pytest.raises(FetchError):
        distrusting.get(URL, max_bytes=100, seconds=5)
    assert web.asked == []


def test_a_name_that_does_not_resolve_is_no_answer(web: FakeWeb) -> None:
    with pytest.raises(FetchError):
        web.client().get(URL, max_bytes=100, seconds=5)
