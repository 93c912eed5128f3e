"""Lists of tools as the file of credentials has them."""

from collections.abc import Callable

from app.auth.access import Access
from app.auth.usage import Kind
from app.mcp.tool_lists import ToolLists
from operations.caller import Caller
from operations.registry import Operation


class StoredLists(ToolLists):
    """Rights, promotions and counts of one process and its file."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def renewed(self, caller: Caller) -> Caller:
        return self._access.callers.renewed(caller)

    def written(self) -> int:
        return self._access.database.changes

    def on_change(self, told: Callable[[], None]) -> None:
        self._access.tool_use.on_change(told)

    def came(self, caller: Caller, *, modern: bool) -> None:
        self._access.tool_use.came(caller, Kind.MODERN if modern else Kind.HANDSHAKE)

    def called(self, caller: Caller, operation: Operation) -> None:
        self._access.tool_use.called(caller, operation)
