"""How far a long operation is, told while it runs; the operation does not know who listens (mcp-surface §4)."""

from collections.abc import Callable, Collection, Iterator
from typing import Final, TypeVar

T = TypeVar("T")

Tell = Callable[[int, int | None, str], None]
"""Called with the steps that are done, all there will be when that is known, and a few words."""


class Progress:
    """Steps of one call, counted over all of its phases, so that they only ever grow. One caller's, one thread's."""

    def __init__(self, tell: Tell) -> None:
        """Tell every step to `tell`, which returns at once."""
        self._tell = tell
        self._done = 0

    def over(self, items: Collection[T], said: str, *, last: bool = False) -> Iterator[T]:
        """The items in their order, each a step when the next one is asked for.

        Args:
            said: What one step was, e.g. `notes read`.
            last: No further phase follows, so that the total is known.
        """
        total = self._done + len(items) if last else None
        for number, item in enumerate(items, start=1):
            yield item
            self._done += 1
            self._tell(self._done, total, f"{said}: {number} of {len(items)}")


class _Silence(Progress):
    """Nobody listens."""

    def __init__(self) -> None:
        super().__init__(lambda _done, _total, _said: None)

    def over(self, items: Collection[T], said: str, *, last: bool = False) -> Iterator[T]:
        return iter(items)


SILENT: Final[Progress] = _Silence()
"""For calls whose caller asked for no progress; it holds no state."""
