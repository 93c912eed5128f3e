"""Windows into lists: limits are clamped and the clamp is said, never an error (mcp-surface §3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

Row = TypeVar("Row")

MAX_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class Page:
    """Where a window stands in its list."""

    total: int
    truncated: bool | None
    next_offset: int | None
    advisories: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a list that was asked for, its limit clamped."""

    limit: int
    offset: int
    asked: int
    most: int

    def page(self, total: int, shown: int) -> Page:
        """Where the window stands in a list of `total` rows, of which it holds `shown`."""
        rest = self.offset + shown < total
        return Page(
            total=total,
            truncated=True if rest else None,
            next_offset=self.offset + shown if rest else None,
            advisories=(f"limit {self.asked} was clamped to {self.limit} (1 to {self.most})",)
            if self.limit != self.asked
            else None,
        )


def window_of(limit: int, offset: int, *, most: int = MAX_LIMIT) -> Window:
    """The window that a call asks for."""
    return Window(min(max(limit, 1), most), offset, limit, most)


def page_of(rows: Sequence[Row], limit: int, offset: int, *, most: int = MAX_LIMIT) -> tuple[Sequence[Row], Page]:
    """The rows from `offset` on, at most `limit` of them, and what to say about the rest."""
    window = window_of(limit, offset, most=most)
    shown = rows[offset : offset + window.limit]
    return shown, window.page(len(rows), len(shown))
