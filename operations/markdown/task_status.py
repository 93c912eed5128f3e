"""What the character in a checkbox means, and which character says it.

Source: tasks.md §4.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from operations.errors import ErrorCode, VaultError


class Status(StrEnum):
    """What a task can be; the value is the wire name."""

    TODO = "todo"
    IN_PROGRESS = "in_progress"
    ON_HOLD = "on_hold"
    DONE = "done"
    CANCELLED = "cancelled"

    @property
    def is_open(self) -> bool:
        """Whether the task still waits to be done."""
        return self not in (Status.DONE, Status.CANCELLED)


@dataclass(frozen=True, slots=True)
class StatusEntry:
    """One entry of the plugin's status settings, as it stands there."""

    symbol: str
    next_symbol: str
    type: str


_NON_TASK = "NON_TASK"
_TYPES = {
    "TODO": Status.TODO,
    "IN_PROGRESS": Status.IN_PROGRESS,
    "ON_HOLD": Status.ON_HOLD,
    "DONE": Status.DONE,
    "CANCELLED": Status.CANCELLED,
    "EMPTY": Status.TODO,
}
_UNREGISTERED = {"x": Status.DONE, "X": Status.DONE, "/": Status.IN_PROGRESS, "-": Status.CANCELLED}
_CONVENTIONAL = {Status.TODO: " ", Status.IN_PROGRESS: "/", Status.DONE: "x", Status.CANCELLED: "-"}


@dataclass(frozen=True, slots=True)
class StatusRegistry:
    """The statuses of a vault."""

    entries: Mapping[str, StatusEntry] = field(default_factory=dict[str, StatusEntry])
    """By symbol, in the order of the settings."""

    @classmethod
    def of(cls, entries: Iterable[StatusEntry]) -> "StatusRegistry":
        """The registry of the settings' entries, core ones first; a symbol's first wins, empty symbols are skipped."""
        registered: dict[str, StatusEntry] = {}
        for entry in entries:
            if entry.symbol:
                registered.setdefault(entry.symbol, entry)
        return cls(registered)

    def status_of(self, symbol: str) -> Status | None:
        """The status that `symbol` stands for; `None` when a checkbox with it is no task."""
        entry = self.entries.get(symbol)
        if entry is None:
            return _UNREGISTERED.get(symbol, Status.TODO)
        return None if entry.type == _NON_TASK else _TYPES.get(entry.type, Status.TODO)

    def symbol_for(self, status: Status) -> str:
        """The symbol to write for `status`.

        Raises:
            VaultError: `status_unavailable` when none stands for it.
        """
        conventional = _CONVENTIONAL.get(status)
        if conventional is not None and self.status_of(conventional) is status:
            return conventional
        for symbol in self.entries:
            if self.status_of(symbol) is status:
                return symbol
        offered = [each for each in Status if each is not status and self._offers(each)]
        raise VaultError(
            ErrorCode.STATUS_UNAVAILABLE,
            f"no checkbox symbol of this vault means '{status}'; register one in the Tasks plugin, or use one of "
            f"{', '.join(offered)}",
            {"candidates": [str(each) for each in offered]},
        )

    def reopened_symbol(self, done_symbol: str) -> str:
        """The symbol of the occurrence that follows a done one.

        From the done symbol the `next` symbols are followed to the first `todo`, else the first `in_progress` met.

        Source: tasks.md §10.3.
        """
        seen: list[str] = []
        symbol = done_symbol
        while symbol in self.entries and symbol not in seen:
            seen.append(symbol)
            symbol = self.entries[symbol].next_symbol
        chain = [*seen[1:], symbol] if seen and symbol and symbol not in seen else seen[1:]
        for wanted in (Status.TODO, Status.IN_PROGRESS):
            for candidate in chain:
                if self.status_of(candidate) is wanted:
                    return candidate
        return " "

    def _offers(self, status: Status) -> bool:
        conventional = _CONVENTIONAL.get(status)
        return (conventional is not None and self.status_of(conventional) is status) or any(
            self.status_of(symbol) is status for symbol in self.entries
        )


DEFAULT_REGISTRY = StatusRegistry.of(
    (
        StatusEntry(" ", "x", "TODO"),
        StatusEntry("x", " ", "DONE"),
        StatusEntry("/", "x", "IN_PROGRESS"),
        StatusEntry("-", " ", "CANCELLED"),
    )
)
