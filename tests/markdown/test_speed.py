"""Reading structure takes time in proportion to the note, whatever it is made of."""

import sys
import time
from types import FrameType

import pytest

from operations.errors import VaultError
from operations.markdown.blocks import block_ids
from operations.markdown.headings import outline_of, resolve_heading
from operations.markdown.sections import section_of
from operations.markdown.structure import parse_note

PIECES = (
    "[",
    "`",
    "$",
    "%%",
    "#",
    ">",
    "> ",
    "- ",
    "* + ",
    " ",
    "\t",
    "|",
    "<",
    "_",
    "^a ",
    "- x\n",
    "`\n",
    "```\n",
    "$$\n",
    "> $$\n",
    "- $$\n",
    "%%\n",
    "%% a\n",
    "- %%\n",
    "#\n",
    "# a ^b\n",
    ">\n",
    "> a\n\n",
    "- a\n\n",
    "a\n===\n",
    "| a |\n|-|\n",
    "<!--\n",
    '<a b="\n',
    "[a]: b\n",
    '[a]: b "\n',
    "[a\n",
    "# [a](\n",
    "# [[\n",
    "x ^a\n\n",
)
NESTED_LIST = "".join("  " * depth + "- a\n" for depth in range(100))


def read_everything(text: str) -> None:
    outline = outline_of(parse_note(text))
    for heading in outline.headings:
        section_of(outline, heading)
    block_ids(outline.note)
    with pytest.raises(VaultError):
        resolve_heading(outline.headings, "not there")


def calls_made(text: str) -> int:
    """How many functions are called, our own and built-in, while the note is read."""
    count = 0

    def on_event(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        read_everything(text)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("piece", PIECES)
def test_twice_the_text_takes_about_twice_the_calls(piece: str) -> None:
    count = 1200 // len(piece)
    once, twice = calls_made(piece * count), calls_made(piece * count * 2)
    assert twice < 2.5 * once + 2000


@pytest.mark.parametrize("piece", PIECES)
def test_a_long_run_of_one_piece_is_read_without_backtracking(piece: str) -> None:
    # Quadratic time would be minutes here, linear time is a fraction of a second: the bound is not a measurement.
    started = time.perf_counter()
    read_everything(piece * (100_000 // len(piece)))
    assert time.perf_counter() - started < 20


@pytest.mark.parametrize(
    "text",
    [
        NESTED_LIST + "\n" * 20_000,
        NESTED_LIST + (" " * 5_000 + "x\n\n") * 20,
        ("> " * 100 + "a\n\n") * 300,
        "# a" + " " * 100_000 + "b\n",
        "# a" + "\u0316\u0301" * 50_000 + "\n",
        "- " * 50_000 + "x\n",
    ],
    ids=["blank-lines-in-deep-list", "spaces-in-deep-list", "deep-quotes", "spaces", "combining-marks", "dashes"],
)
def test_shapes_that_invite_quadratic_work_stay_linear(text: str) -> None:
    started = time.perf_counter()
    read_everything(text)
    assert time.perf_counter() - started < 20
