import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import CallToolResult

from app.mcp.results import Caps, render, render_refusal
from operations.caller import Caller
from operations.errors import ErrorCode, VaultError
from operations.registry import Effect, Rendering, Text
from operations.vault import Vault
from tests.mcp.samples import (
    ReadInput,
    ReadResult,
    RowsInput,
    RowsResult,
    WriteInput,
    WriteResult,
    declare,
    read,
    rows,
    show_read,
)

CAPS = Caps(text_bytes=102_400, result_bytes=400_000)
READ = declare("vault_read", read, text=show_read)
ROWS = declare("vault_rows", rows)


def write(_vault: Vault, _caller: Caller, args: WriteInput) -> WriteResult:
    return WriteResult(path=args.path, message="wrote it")


WRITE = declare("vault_write", write, effect=Effect.DESTRUCTIVE, rendering=Rendering.SENTENCE)


def texts_of(answer: CallToolResult) -> list[str]:
    return [block.text for block in answer.content if block.type == "text"]


def read_answer(content: str, text_bytes: int, **arguments: Any) -> CallToolResult:
    args = ReadInput(path="a.md", **arguments)
    result = ReadResult(path=args.path, content=content, total_lines=content.count("\n") + args.start_line - 1)
    return render(READ, args, result, Caps(text_bytes=text_bytes, result_bytes=400_000))


def test_a_text_tool_answers_the_text_byte_for_byte_then_its_footer_and_no_structure() -> None:
    answer = read_answer("# A\r\n\r\nä \r\n", 1000)
    assert answer == CallToolResult(
        content=[{"type": "text", "text": "# A\r\n\r\nä \r\n"}, {"type": "text", "text": "path: a.md"}]
    )


def test_a_text_tool_whose_answer_is_data_answers_as_a_data_tool() -> None:
    answer = read_answer("x\n", 1000, outline=True)
    data = {"path": "a.md", "content": "x\n", "total_lines": 1}
    assert answer.structured_content == data
    assert [json.loads(text) for text in texts_of(answer)] == [data]


def test_a_text_over_the_cap_is_cut_at_a_line_end_and_says_where_to_go_on() -> None:
    assert texts_of(read_answer("äää\nbbb\nccc\n", 12)) == [
        "äää\nbbb\n",
        "path: a.md\nlines: 1-2 of 3, continue with start_line=3",
    ]


def test_a_window_over_the_cap_counts_lines_of_the_note() -> None:
    assert texts_of(read_answer("aaa\nbbb\nccc\n", 9, start_line=5)) == [
        "aaa\nbbb\n",
        "path: a.md\nlines: 5-6 of 7, continue with start_line=7",
    ]


def test_a_line_longer_than_the_cap_is_cut_inside_and_never_inside_a_character() -> None:
    assert texts_of(read_answer("ääää\nb\n", 5)) == [
        "ää",
        "path: a.md\nlines: 1-1 of 2, continue with start_line=2\n"
        "cut: 4 of 11 bytes shown, line 1 is longer than one answer",
    ]


def test_a_cut_section_points_at_no_line_as_its_lines_are_not_the_notes() -> None:
    def show(result: ReadResult, _args: ReadInput) -> Text:
        return Text(result.content, {"section": "A::B"})

    args = ReadInput(path="a.md")
    answer = render(
        declare("vault_read", read, text=show),
        args,
        ReadResult(path=args.path, content="aaa\nbbb\n", total_lines=2),
        Caps(text_bytes=5, result_bytes=400_000),
    )
    assert texts_of(answer) == ["aaa\n", "section: A::B\ncut: 4 of 8 bytes shown, ask for a smaller part"]


@given(content=st.text(st.characters(codec="utf-8", exclude_characters="\r")), cap=st.integers(1, 40))
def test_the_pages_of_a_capped_text_are_the_text(content: str, cap: int) -> None:
    lines = content.split("\n")
    if any(len(line.encode()) + 1 > cap for line in lines):
        return  # such a line does not fit one answer, and the footer says so
    pages, start = [], 1
    while start <= len(lines):
        shown = "\n".join(lines[start - 1 :])
        args = ReadInput(path="a.md", start_line=start)
        operation = declare("vault_read", read, text=_show_window)
        answer = render(
            operation, args, ReadResult(path=args.path, content=shown, total_lines=len(lines)), Caps(cap, 1)
        )
        body, footer = texts_of(answer)
        assert len(body.encode()) <= cap
        pages.append(body)
        _, marker, following = footer.partition("continue with start_line=")
        if not marker:
            break
        start = int(following)
    assert "".join(pages) == content


def _show_window(result: ReadResult, args: ReadInput) -> Text:
    return Text(result.content, {"lines": f"{args.start_line}-{result.total_lines} of {result.total_lines}"})


def test_a_write_answers_its_sentence_and_the_structure_with_the_same_sentence() -> None:
    args = WriteInput(path="a.md", content="")
    answer = render(WRITE, args, WriteResult(path=args.path, message="wrote it"), CAPS)
    assert texts_of(answer) == ["wrote it"]
    assert answer.structured_content == {"path": "a.md", "message": "wrote it"}


def test_data_is_the_same_as_text_and_as_structure_and_keeps_nulls_that_are_values() -> None:
    result = RowsResult(rows=("ä",), total=1, properties={"empty": None, "odd": float("nan")})
    answer = render(ROWS, RowsInput(), result, CAPS)
    assert texts_of(answer) == ['{"rows":["ä"],"total":1,"properties":{"empty":null,"odd":null}}']
    assert answer.structured_content == {"rows": ["ä"], "total": 1, "properties": {"empty": None, "odd": None}}


def test_data_over_the_cap_drops_rows_from_the_end_and_says_so() -> None:
    result = RowsResult(rows=tuple(f"row {number:04}" for number in range(100)), total=200, advisories=("clamped",))
    answer = render(ROWS, RowsInput(offset=20), result, Caps(text_bytes=1, result_bytes=800))
    data = answer.structured_content
    assert data is not None
    kept = len(data["rows"])
    assert data == {
        "rows": [f"row {number:04}" for number in range(kept)],
        "total": 200,
        "properties": {},
        "advisories": ["clamped", f"rows: the first {kept} of 100, as more would not fit one answer"],
        "truncated": True,
        "next_offset": 20 + kept,
    }
    assert 20 < kept < 80
    assert len(texts_of(answer)[0].encode()) <= 800
    assert json.loads(texts_of(answer)[0]) == data


def test_data_that_no_shorter_list_brings_under_the_cap_is_refused_with_both_figures() -> None:
    result = RowsResult(rows=(), total=0, properties={"text": "x" * 900})
    with pytest.raises(VaultError) as caught:
        render(ROWS, RowsInput(), result, Caps(text_bytes=1, result_bytes=800))
    assert (caught.value.code, caught.value.message) == (
        ErrorCode.TOO_LARGE,
        "the answer has 946 bytes, more than the 800 that one answer may have; ask for a smaller part",
    )


def test_a_write_that_is_done_is_never_reported_as_refused_for_its_size() -> None:
    args = WriteInput(path="a.md", content="")
    answer = render(WRITE, args, WriteResult(path=args.path, message="m" * 900), Caps(text_bytes=1, result_bytes=800))
    assert texts_of(answer) == ["m" * 900]
    assert not answer.is_error


def test_a_refusal_is_its_code_and_message_with_details_for_programs_and_no_structure() -> None:
    refusal = VaultError(ErrorCode.TARGET_AMBIGUOUS, "several answer to 'A'", {"candidates": ["A::B"], "code": "other"})
    assert render_refusal(refusal).model_dump(by_alias=True, exclude_none=True) == {
        "content": [{"type": "text", "text": "target_ambiguous: several answer to 'A'"}],
        "isError": True,
        "_meta": {"vault-mcp/error": {"candidates": ["A::B"], "code": "target_ambiguous"}},
        "resultType": "complete",
    }


def test_a_list_that_does_not_fit_loses_the_same_rows_as_text_and_as_data() -> None:
    def show(result: RowsResult, _args: RowsInput) -> Text:
        return Text("\n".join(result.rows), {"advisories": "; ".join(result.advisories or ())})

    listed = declare("vault_rows", rows, rendering=Rendering.LIST, text=show)
    result = RowsResult(rows=tuple(f"row {number:04}" for number in range(200)), total=200)
    answer = render(listed, RowsInput(count=200), result, Caps(text_bytes=1024, result_bytes=1500))
    assert answer.structured_content is not None
    kept = answer.structured_content["rows"]
    assert 0 < len(kept) < 200
    said = f"rows: the first {len(kept)} of 200, as more would not fit one answer"
    assert texts_of(answer) == ["\n".join(kept), f"advisories: {said}"]
    assert answer.structured_content["advisories"] == [said]
