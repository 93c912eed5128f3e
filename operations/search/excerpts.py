"""The part of a chunk that is shown: the lines that answer best, whole, and no more than asked for.

Source: search.md §1 (`excerpt`).
"""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final, cast

from operations.search.plain_text import plain_text
from operations.search.tokens import estimate_tokens
from operations.search.words import WORD, fold, stem, stems_of

MARK: Final = "=="
"""Obsidian's highlight, around the words that matched."""
_CHARS_A_TOKEN: Final = 4
_ROW_ENDS: Final = " ,"
"""What plain text puts where a row of a table begins and ends."""

# A line, or a sentence of a long one: "One. Two" is two; "3.5" is one.
_SENTENCE: Final = re.compile(r"(?<=[.!?])[ \t]+|(?<=[。！？])")


def excerpt_of(text: str, stems: Collection[str], *, tokens: int, mark: bool = False) -> str:
    """The stretch of `text` that answers best, as people read it.

    Args:
        stems: Of the query; with none of them in the text its beginning is shown.
        tokens: At most so many, estimated.
        mark: Put Obsidian's highlight around the words that matched.
    """
    parts = _parts(text, tokens)
    if not parts:
        return ""
    first, last = _best_window(parts, stems, tokens)
    lines: list[str] = []
    for part in parts[first:last]:
        if lines and not part.starts_line:
            lines[-1] = f"{lines[-1]} {part.text}"
        else:
            lines.append(part.text)
    shown = "\n".join(lines)
    return _marked(shown, stems) if mark else shown


class _Part:
    __slots__ = ("starts_line", "stems", "text", "tokens")

    def __init__(self, text: str, *, starts_line: bool) -> None:
        self.text = text
        self.starts_line = starts_line
        self.tokens = estimate_tokens(text) + 1
        self.stems = stems_of(text)


def _parts(text: str, tokens: int) -> list[_Part]:
    longest = tokens * _CHARS_A_TOKEN
    parts: list[_Part] = []
    for row in plain_text(text).split("\n"):
        line = row.strip(_ROW_ENDS)
        if not line:
            continue
        pieces = [line] if len(line) <= longest // 2 else [piece for piece in _SENTENCE.split(line) if piece.strip()]
        for index, piece in enumerate(pieces):
            cuts = [piece[start : start + longest] for start in range(0, len(piece), longest)]
            parts.extend(_Part(cut.strip(), starts_line=index == 0 and at == 0) for at, cut in enumerate(cuts))
    return parts


def _best_window(parts: Sequence[_Part], stems: Collection[str], tokens: int) -> tuple[int, int]:
    """The window of whole parts with the highest score; of equal ones the first."""
    wanted = list(stems)
    total = sum(part.tokens for part in parts)
    if total <= tokens:
        return 0, len(parts)
    scores = [0.0] * len(parts)
    if wanted and any(stem in part.stems for part in parts for stem in wanted):
        # With it comes numpy, 14 MB that a server which waits does not need.
        from rank_bm25 import BM25Plus  # type: ignore[import-untyped]  # noqa: PLC0415 - the package has no types

        ranking = BM25Plus([part.stems or [""] for part in parts])
        for stemmed in wanted:
            found = cast("Iterable[float]", ranking.get_scores([stemmed]))  # pyright: ignore[reportUnknownMemberType]
            # BM25+ gives every part something for every word; only those that hold it answer.
            for index, score in enumerate(found):
                scores[index] += float(score) if stemmed in parts[index].stems else 0.0
    best, best_score = (0, 0), -1.0
    last, used, score = 0, 0, 0.0
    for first in range(len(parts)):
        while last < len(parts) and (last == first or used + parts[last].tokens <= tokens):
            used += parts[last].tokens
            score += scores[last]
            last += 1
        if score > best_score + 1e-9:
            best, best_score = (first, last), score
        used -= parts[first].tokens
        score -= scores[first]
    return best


def _marked(text: str, stems: Collection[str]) -> str:
    def highlight(word: re.Match[str]) -> str:
        return f"{MARK}{word[0]}{MARK}" if stem(fold(word[0])) in stems else word[0]

    return WORD.sub(highlight, text)
