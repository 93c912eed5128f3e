"""What `auth doctor` says of the address that limits count by."""

from pathlib import Path

import pytest

from app.auth.doctor import examine_access
from app.doctor import Verdict
from app.settings.loading import load_settings


@pytest.mark.parametrize(
    ("environ", "verdict", "said"),
    [
        ({}, Verdict.OK, "none: clients count by the address that connects"),
        (
            {"PUBLIC_URL": "https://notes.example"},
            Verdict.WARN,
            "none, although https is spoken by something in front: all clients share the limits of one address",
        ),
        (
            {"PUBLIC_URL": "https://notes.example", "TRUST_PROXY_HOPS": "1"},
            Verdict.OK,
            "X-Forwarded-For 1, Forwarded 0: right only if no way leads around those proxies",
        ),
        (
            {"TRUST_FORWARDED_HOPS": "2", "BIND_HOST": "10.0.0.5"},
            Verdict.WARN,
            "X-Forwarded-For 0, Forwarded 2, and 10.0.0.5 may be reached around the proxies: by who chooses the "
            "address that counts",
        ),
    ],
)
def test_hops_that_do_not_fit_the_way_in_are_named(
    tmp_path: Path, environ: dict[str, str], verdict: Verdict, said: str
) -> None:
    settings = load_settings(None, {"VAULT_MCP_CONFIG": "", "HOME": str(tmp_path), **environ})
    hops = next(finding for finding in examine_access(settings) if finding.subject == "trusted hops")
    assert (hops.verdict, hops.said) == (verdict, said)
    assert bool(hops.remedy) is (verdict is not Verdict.OK)
