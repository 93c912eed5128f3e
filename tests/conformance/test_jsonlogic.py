"""Every row of `jsonlogic.yaml`."""

from typing import Any

import pytest
import yaml
from pydantic import BaseModel, ConfigDict

from operations.errors import VaultError
from operations.json_logic import checked_rule
from operations.json_logic_evaluation import Evaluation
from operations.json_logic_values import is_match
from operations.markdown.yaml_nodes import JsonValue
from tests.conformance.cases import TABLES, Case, TableLoader, cases_of

TABLE = "jsonlogic.yaml"


class Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    folder: str
    name: str
    basename: str
    title: str
    tags: list[str]
    frontmatter: dict[str, Any]
    content: str
    links: list[str]
    backlinks: list[str]
    unresolvedLinks: list[str]  # noqa: N815 - the variable's name
    stat: dict[str, int]


class Found(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    result: Any = True


class LogicCase(Case):
    kind: str
    rule: Any  # the rule itself; elsewhere the field is the name of one
    data: Any = None
    result: Any = None
    paths: list[str] | None = None
    rows: list[Found] | None = None
    or_paths: list[str] | None = None
    error: str | None = None


CASES = cases_of(TABLE, LogicCase)


def of_kind(kind: str) -> list[LogicCase]:
    return [case for case in CASES if case.kind == kind]


def found_by(rule: JsonValue, documents: list[Document]) -> list[Found]:
    evaluation = Evaluation(checked_rule(rule).logic)
    results = ((document.path, evaluation.result(document.model_dump())) for document in documents)
    return [Found(path=path, result=result) for path, result in results if is_match(result)]


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    with (TABLES / TABLE).open(encoding="utf-8") as stream:
        table = yaml.load(stream, TableLoader)  # noqa: S506 - a SafeLoader with fewer guesses
    return [Document.model_validate(row) for row in table["documents"]]


def test_every_kind_of_the_table_is_run() -> None:
    assert {case.kind for case in CASES} == {"select", "evaluate", "error"}


@pytest.mark.parametrize("case", of_kind("select"), ids=lambda case: case.id)
def test_a_rule_finds_the_notes_the_table_says(case: LogicCase, documents: list[Document]) -> None:
    expected = case.rows if case.rows is not None else [Found(path=path) for path in case.paths or ()]
    assert found_by(case.rule, documents) == expected


@pytest.mark.parametrize("case", of_kind("evaluate"), ids=lambda case: case.id)
def test_a_rule_gives_what_the_table_says(case: LogicCase) -> None:
    result = Evaluation(checked_rule(case.rule).logic).result(case.data)
    assert (result, type(result)) == (case.result, type(case.result))


@pytest.mark.parametrize("case", of_kind("error"), ids=lambda case: case.id)
def test_a_rule_is_refused_as_the_table_says(case: LogicCase, documents: list[Document]) -> None:
    assert outcome(case.rule, documents) in (case.error, case.error if case.or_paths is None else case.or_paths)


def outcome(rule: JsonValue, documents: list[Document]) -> str | list[str]:
    try:
        return [found.path for found in found_by(rule, documents)]
    except VaultError as refusal:
        return refusal.code.value
