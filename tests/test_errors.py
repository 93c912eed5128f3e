"""The closed set of codes: declared once, raised somewhere, documented, and the same on the wire."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.rest.errors import failure
from operations.errors import ErrorCode

ROOT = Path(__file__).parents[1]
SOURCES = [*sorted((ROOT / "operations").rglob("*.py")), *sorted((ROOT / "app").rglob("*.py"))]
_ROW = re.compile(r"^\| `([a-z_]+)` \| ([0-9]{3}) \| (.+) \|$")


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for source in SOURCES:
        yield source, ast.parse(source.read_text(encoding="utf-8"))


def test_every_vault_error_is_raised_with_a_declared_code() -> None:
    wrong: list[str] = []
    for source, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "VaultError":
                code = node.args[0] if node.args else None
                if not is_code(code):
                    wrong.append(f"{source.relative_to(ROOT)}:{node.lineno}")
    assert wrong == []


def test_every_declared_code_is_produced_somewhere() -> None:
    named = {
        node.attr
        for source, tree in trees()
        if source.name != "errors.py" or source.parent.name != "operations"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ErrorCode"
    }
    assert {code.name for code in ErrorCode} - named == set()


def test_the_documentation_lists_every_code_with_its_status_and_meaning() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    rows = [match.groups() for match in map(_ROW.match, page.split("\n")) if match]
    assert rows == [(code.value, str(code.status), code.meaning) for code in ErrorCode]


@pytest.mark.parametrize("code", ErrorCode, ids=str)
def test_a_code_reaches_the_wire_with_its_status_and_nothing_beside_it(code: ErrorCode) -> None:
    response = failure(code, "said")
    assert (response.status_code, response.media_type) == (code.status, "application/json")
    assert response.body == f'{{"code": "{code}", "error": "said"}}'.encode()


def is_code(node: ast.expr | None) -> bool:
    """`ErrorCode.X`, a variable or call that carries a code, but never a text."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ErrorCode":
        return node.attr in ErrorCode.__members__
    return isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.IfExp | ast.Subscript)
