"""The form in which both surfaces declare their routes."""

import re
from collections.abc import Callable
from typing import Any

from starlette.routing import Match, Route
from starlette.types import Scope


class TemplateRoute(Route):
    """A route that names itself in the scope, as FastAPI's do: the request line shows its template, never the path."""

    def __init__(self, path: str, endpoint: Callable[..., object], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        # A dot of the framework's patterns takes no line end: `a%0Ab.md` is a bad name, not an unknown route.
        self.path_regex = re.compile(self.path_regex.pattern, re.DOTALL)
        self._literal = path.partition("{")[0]

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        # Every request is held against every route before its own, and a comparison costs a tenth of a pattern.
        if self._literal not in scope["path"]:
            return Match.NONE, {}
        match, found = super().matches(scope)
        return match, {**found, "route": self} if found else found
