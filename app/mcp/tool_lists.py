"""What callers' lists of tools depend on beside the request (mcp-surface §7)."""

from collections.abc import Callable

from operations.caller import Caller
from operations.registry import Operation


class ToolLists:
    """What callers' lists depend on beside the request; here it is nothing, and nothing is counted."""

    def renewed(self, caller: Caller) -> Caller:
        """The caller with its list as it is now."""
        return caller

    def written(self) -> int:
        """A number that changes when another process has written what lists depend on."""
        return 0

    def on_change(self, told: Callable[[], None]) -> None:
        """Call `told`, in whatever thread, when somebody's list has changed."""

    def came(self, caller: Caller, *, modern: bool) -> None:
        """Note a request and the protocol era it is of."""

    def called(self, caller: Caller, operation: Operation) -> None:
        """Count a call that ran."""
