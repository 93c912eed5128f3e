"""Every row of `obsidian-uri.yaml`."""

import pytest

from operations.obsidian_uri import obsidian_uri
from tests.conformance.cases import Case, cases_of


class UriCase(Case):
    vault: str
    path: str = ""
    heading: str | None = None
    block: str | None = None
    uri: str


@pytest.mark.parametrize("case", cases_of("obsidian-uri.yaml", UriCase), ids=lambda case: case.id)
def test_a_link_is_spelled_as_the_table_says(case: UriCase) -> None:
    assert obsidian_uri(case.vault, case.path, heading=case.heading, block=case.block) == case.uri
