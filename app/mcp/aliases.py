"""Tool names of other servers as thin aliases: arguments renamed, results ours (mcp-surface §11, tool-map §3 to §5)."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import mcp_types as types
from pydantic import JsonValue

from app.schemas import Schema, input_schema, properties_of
from operations.errors import ErrorCode, VaultError
from operations.registry import Operation
from operations.store.tree import version_of

Arguments = dict[str, JsonValue]


class Call(NamedTuple):
    """A call of one of our tools."""

    tool: str
    arguments: Arguments


@dataclass(frozen=True, slots=True)
class Alias:
    """Another server's tool as one of ours."""

    tool: str
    """Ours; what it is published like."""
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    """Their names of arguments that have another one here."""
    fixed: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """Arguments that are always sent, unless the call has them."""
    dropped: tuple[str, ...] = ()
    """Arguments that have no meaning here."""
    extra: Mapping[str, str] = field(default_factory=dict[str, str])
    """Their arguments that `adjust` takes, with JSON types."""
    adjust: Callable[[Call], Call] | None = None
    """The last step, where names are not all that differs."""

    def call(self, given: Mapping[str, JsonValue]) -> Call:
        """The call that theirs stands for; names in camel case are taken in snake case too."""
        arguments: Arguments = dict(self.fixed)
        for name, value in given.items():
            if name not in self.dropped:
                ours = self.renamed.get(name)
                snake = name if name in self.extra else _CAMEL.sub(_snaked, name)
                arguments[ours or self.renamed.get(snake, snake)] = value
        call = Call(self.tool, arguments)
        return call if self.adjust is None else self.adjust(call)

    def published(self, name: str, operation: Operation, tool: types.Tool) -> types.Tool:
        """The tool under its other name: our arguments under theirs, those that are always sent left out."""
        theirs = {ours: name for name, ours in self.renamed.items()}
        members: Schema = {
            theirs.get(ours, ours): schema
            for ours, schema in properties_of(input_schema(operation.input_model)).items()
            if ours not in self.fixed
        }
        members |= {extra: {"type": kind} for extra, kind in self.extra.items()}
        schema: Schema = {"type": "object", "properties": members}
        said = f"The same as {operation.name}. {tool.description or ''}".strip()
        return tool.model_copy(update={"name": name, "description": said, "input_schema": schema})


_CAMEL: Final = re.compile(r"(?<=[a-z0-9])[A-Z]")  # "startLine", "expectedContent"; not "path" or "URL"


def _snaked(letter: re.Match[str]) -> str:
    return f"_{letter[0].lower()}"


class Aliases:
    """The names that are served beside our own."""

    def __init__(self, aliases: Mapping[str, Alias], refused: Mapping[str, str]) -> None:
        """Take the aliases.

        Args:
            refused: Names of tools that need the desktop app, with what to do instead.
        """
        self._aliases = aliases
        self._refused = refused

    def call_of(self, name: str, arguments: Mapping[str, JsonValue]) -> Call | None:
        """What a call of another server's tool means here; `None` for a name that is none.

        Raises:
            VaultError: `needs_obsidian` with the substitute.
        """
        if (instead := self._refused.get(name)) is not None:
            raise VaultError(ErrorCode.NEEDS_OBSIDIAN, f"{name} needs the Obsidian app; {instead}")
        alias = self._aliases.get(name)
        return None if alias is None else alias.call(arguments)

    def tools(self, served: Sequence[tuple[Operation, types.Tool]]) -> list[types.Tool]:
        """The aliases of the tools that are served, as they are listed."""
        known = {operation.name: (operation, tool) for operation, tool in served}
        return [
            alias.published(name, *known[alias.tool])
            for name, alias in self._aliases.items()
            if alias.tool in known and name not in known
        ]


def no_aliases() -> Aliases:
    """What is served unless the owner asks for more."""
    return Aliases({}, {})


def with_version_of_text(call: Call) -> Call:
    """`expected_content`, the whole text that must stand there, as the version that such a text has."""
    arguments = dict(call.arguments)
    expected = arguments.pop("expected_content", None)
    if isinstance(expected, str):
        arguments["expected_version"] = version_of(expected.encode("utf-8", "surrogatepass"))
    return call._replace(arguments=arguments)


def counted_from_one(call: Call) -> Call:
    """`line` counted from 0 as one that is counted from 1."""
    line = call.arguments.get("line")
    if not isinstance(line, int) or isinstance(line, bool):
        return call
    return call._replace(arguments={**call.arguments, "line": line + 1})
