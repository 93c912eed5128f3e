"""Containment of paths: the vectors of the security table and the laws that hold for every text."""

import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from operations.errors import ErrorCode, VaultError
from operations.store.paths import FolderPath, ResolvedPath, VaultPath, guard_key, guards, safe_resolve

TABLE = Path(__file__).parents[1] / "conformance" / "security.yaml"


AnyPath = TypeVar("AnyPath", bound=ResolvedPath)


class PathVector(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    raw: str
    read: str
    new: str


class GuardVector(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    a: str
    b: str
    same: bool


def rows_of(vectors: Literal["paths", "guard_keys"]) -> list[dict[str, Any]]:
    table = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    rows: list[dict[str, Any]] = table["vectors"][vectors]["rows"]
    assert rows
    return rows


@pytest.mark.parametrize("row", [PathVector(**row) for row in rows_of("paths")], ids=lambda row: ascii(row.raw))
def test_a_raw_path_gives_the_path_of_the_table_or_is_refused(row: PathVector) -> None:
    assert outcome(row.raw, new=False) == row.read
    assert outcome(row.raw, new=True) == row.new


@pytest.mark.parametrize("row", [GuardVector(**row) for row in rows_of("guard_keys")], ids=lambda row: ascii(row.b))
def test_deny_rules_take_two_spellings_for_one_where_the_table_says_so(row: GuardVector) -> None:
    assert (guard_key(row.a) == guard_key(row.b)) is row.same
    assert guards(f"Top/{row.a}", f"top/{row.b}/below.md") is row.same
    assert guards(row.a, row.b) is row.same
    assert not guards(f"{row.a}/deeper", row.b)


def outcome(raw: str, *, new: bool) -> str:
    path = resolved(lambda: safe_resolve(raw, new=new))
    return "refused" if path is None else str(path)


def resolved(resolve: Callable[[], AnyPath]) -> AnyPath | None:
    """The path, or `None` for a refusal that has the right code and a message fit for a log line."""
    try:
        return resolve()
    except VaultError as error:
        refusal = error
    assert refusal.code is ErrorCode.INVALID_PATH
    assert refusal.message.isprintable(), "a message must not carry a control character of the request"
    return None


# Arbitrary text seldom has what the rules are about, so its alphabet leans towards that.
hostile_text = st.lists(
    st.sampled_from(["..", ".", "/", "\\", "%2e", "%2f", "%25", "%5c", "%00", "\0", "\n", "\u200c", "\ufe00", "\u3164"])
    | st.sampled_from(["a", "É", "e\u0301", "\u212b", " ", "CON", ".md", "é" * 130, "\ud800", "\u202e"])
    | st.text(max_size=5),
    max_size=12,
).map("".join)


@given(hostile_text)
@example("a/" * 3000)
@example("\u0958" * 1365)
def test_no_resolved_segment_breaks_a_rule_and_resolving_again_changes_nothing(raw: str) -> None:
    for is_folder in (False, True):
        path = resolved(lambda: FolderPath(raw)) if is_folder else resolved(lambda: VaultPath(raw))
        if path is None:
            continue
        assert safe_resolve(str(path), folder=True) == path
        if not is_folder:
            assert safe_resolve(str(path)) == path
            assert isinstance(path, VaultPath)
            assert path != ""
        assert len(path.encode()) <= 4096
        assert unicodedata.is_normalized("NFC", path)
        for segment in path.segments:
            assert segment not in {"", ".", ".."}
            assert 0 < len(segment.encode()) <= 255
            assert not set(segment) & {"/", "\\", "\0"}
            assert not any(unicodedata.category(character) == "Cc" for character in segment)
            assert not visible(segment).startswith(".")
            assert visible(segment).strip()


@given(hostile_text)
def test_a_path_that_may_be_created_is_one_that_may_be_read(raw: str) -> None:
    created = outcome(raw, new=True)
    assert created in {"refused", outcome(raw, new=False)}


@given(st.text(max_size=12))
@example("\u0345\u0301")
@example("a\u200d\u0301")
def test_a_guard_key_ignores_unicode_form_letter_case_and_what_cannot_be_seen(segment: str) -> None:
    key = guard_key(segment)
    assert guard_key(key) == key
    for form in ("NFC", "NFD"):
        assert guard_key(unicodedata.normalize(form, segment)) == key
    # Folded after decomposing, as Unicode defines it: U+0345 folds to a letter, which no longer moves behind accents.
    assert guard_key(unicodedata.normalize("NFD", segment).casefold()) == key
    assert guard_key(f"{segment}. .") == key
    assert guard_key(f"\u200b{segment}\ufeff") == key


def visible(segment: str) -> str:
    return "".join(character for character in segment if unicodedata.category(character) != "Cf")
