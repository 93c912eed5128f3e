"""Host and Origin values: what is one, which are allowed."""

import ipaddress

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from app.auth.hosts import AllowedHosts, AllowedOrigins, Host, Origin, parse_host, parse_origin, parse_public_origin
from tests.conformance.cases import TABLES, TableLoader

ALLOWED = AllowedHosts.of(("notes.example", "lan:8080"), "https://vault.example")


def vector_rows() -> list[tuple[str, bool]]:
    table = yaml.load((TABLES / "security.yaml").read_text(encoding="utf-8"), Loader=TableLoader)  # noqa: S506
    return [(row["host"], row["ok"]) for row in table["vectors"]["hosts"]["rows"]]


def is_allowed(text: str) -> bool:
    try:
        host = parse_host(text)
    except ValueError:
        return False
    return ALLOWED.allows(host)


@pytest.mark.parametrize(("host", "ok"), vector_rows())
def test_a_host_is_allowed_as_the_table_says(host: str, ok: bool) -> None:
    assert is_allowed(host) is ok


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("Vault.Example.", Host("vault.example")),
        ("vault.example:443", Host("vault.example", 443)),
        ("my_service:80", Host("my_service", 80)),
        ("[::1]:8000", Host("::1", 8000)),
        ("[0:0:0:0:0:0:0:1]", Host("::1")),
        ("127.0.0.1:0", Host("127.0.0.1", 0)),
    ],
)
def test_a_host_is_split_into_name_and_port(text: str, host: Host) -> None:
    assert parse_host(text) == host


@pytest.mark.parametrize(
    "text",
    [
        "", ".", ":80", "a b", "a\tb", "a:", "a:b", "a:1:1", "a:65536", "a:-1", "user@a", "a/x", "a?x", "a#x", "[::1",
        "::1", "[a]", "[::1]x", "a\n", "a%2e", "a,b", "é.example", "[1.2.3.4]", "a\\b", "a:١",
    ],
)  # fmt: skip
def test_anything_else_is_no_host(text: str) -> None:
    with pytest.raises(ValueError, match=r"must|port|address|At least|Expected|Octet|Only|Unexpected"):
        parse_host(text)


@pytest.mark.parametrize("text", ["localhost", "LOCALHOST.", "127.0.0.1", "127.255.255.254", "[::1]"])
def test_a_loopback_name_means_this_machine(text: str) -> None:
    assert parse_host(text).is_loopback


@pytest.mark.parametrize(
    "text",
    ["localhost.evil.example", "127.0.0.1.evil.example", "128.0.0.1", "127.1", "0177.0.0.1", "[::]", "[::2]"],
)
def test_a_name_that_only_looks_like_loopback_does_not(text: str) -> None:
    assert not parse_host(text).is_loopback


def test_an_entry_with_a_port_means_that_port_and_a_star_means_any_host() -> None:
    assert [is_allowed(text) for text in ("lan", "lan:8080", "lan:8081", "notes.example:1")] == [
        False,
        True,
        False,
        True,
    ]
    assert AllowedHosts.of(("*",), None).allows(Host("anything.example"))
    assert not AllowedHosts.of((), None).allows(Host("anything.example"))


@given(st.text(max_size=30))
@example("0..")
@example("..")
def test_parsing_a_host_never_fails_otherwise_than_by_refusing_and_is_idempotent(text: str) -> None:
    try:
        host = parse_host(text)
    except ValueError:
        return
    assert parse_host(str(host)) == host


@given(st.ip_addresses(), st.integers(0, 65535))
def test_every_address_is_a_host_and_loopback_exactly_when_the_address_is(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int
) -> None:
    text = f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"
    host = parse_host(text)
    assert (host.name, host.port) == (str(address), port)
    assert host.is_loopback is address.is_loopback


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://App.example:443", Origin("https", Host("app.example"))),
        ("http://app.example:80", Origin("http", Host("app.example"))),
        ("https://app.example:80", Origin("https", Host("app.example", 80))),
        ("http://[::1]:5173", Origin("http", Host("::1", 5173))),
        ("app://obsidian.md", Origin("app", Host("obsidian.md"))),
    ],
)
def test_an_origin_is_scheme_host_and_port(text: str, origin: Origin) -> None:
    assert parse_origin(text) == origin
    assert parse_origin(str(origin)) == origin


PAGES = AllowedOrigins.of(("https://vault.example", "app://obsidian.md"), loopback=True)


@pytest.mark.parametrize(
    ("text", "ok"),
    [
        ("https://vault.example", True),
        ("https://vault.example:443", True),
        ("app://obsidian.md", True),
        ("http://localhost:6274", True),
        ("https://127.0.0.1", True),
        ("http://[::1]:1", True),
        ("http://vault.example", False),
        ("https://vault.example:8443", False),
        ("https://vault.example.evil.example", False),
        ("http://localhost:3000.evil.example", False),
        ("ftp://localhost", False),
        ("https://vault.example/", False),
        ("https://u@vault.example", False),
        ("null", False),
        ("", False),
        ("https://vault.example, https://evil.example", False),
    ],
)
def test_an_origin_is_allowed_when_it_is_listed_or_loopback(text: str, ok: bool) -> None:
    assert PAGES.allows(text) is ok


def test_loopback_pages_and_null_count_only_where_they_are_meant_to() -> None:
    listed = AllowedOrigins.of(("null",), loopback=False)
    assert (listed.allows("null"), listed.allows("http://localhost")) == (True, False)


@pytest.mark.parametrize("text", ["https://vault.example/", "HTTPS://Vault.Example:443", "https://vault.example"])
def test_a_public_origin_is_normalised(text: str) -> None:
    assert str(parse_public_origin(text)) == "https://vault.example"
