"""What Obsidian's own files say: read on every call, never kept, never written.

A file that is there and cannot be used counts as missing and is named once in the log; a key of the wrong type counts
as blank.

Source: periodic-notes.md §2, tasks.md §11, tool-map.md §6.11.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeGuard

from pydantic import JsonValue

from operations.store.tree import ObsidianFile, Tree, UnusableSettingsError

logger = logging.getLogger(__name__)

_KINDS: Final[Mapping[ObsidianFile, tuple[type, ...]]] = {
    ObsidianFile.COMMUNITY_PLUGINS: (list,),
    ObsidianFile.CORE_PLUGINS: (dict, list),
}
"""The JSON values a file may hold, where it is not an object alone."""

_SESSION: Final = frozenset({ObsidianFile.WORKSPACE, ObsidianFile.WORKSPACE_MOBILE, ObsidianFile.BOOKMARKS})
"""Files that decide nothing: the operation that shows one says itself what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Members:
    """An object of a settings file; whatever has another type than is asked for is not there."""

    values: Mapping[str, JsonValue]

    def text(self, key: str) -> str:
        """A text without white space around it; empty when blank or none."""
        value = self.values.get(key)
        return value.strip() if _is_text(value) else ""

    def exact_text(self, key: str) -> str:
        """A text with the white space around it; empty when none."""
        value = self.values.get(key)
        return value if isinstance(value, str) else ""

    def switch(self, key: str, *, default: bool) -> bool:
        """A switch."""
        value = self.values.get(key)
        return value if isinstance(value, bool) else default

    def whole(self, key: str, default: int) -> int:
        """A whole number."""
        value = self.values.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else default

    def texts(self, key: str) -> list[str]:
        """The texts of a list."""
        value = self.values.get(key)
        return [item for item in value if _is_text(item)] if isinstance(value, list) else []

    def objects(self, key: str) -> "list[Members]":
        """The objects of a list."""
        value = self.values.get(key)
        return [Members(item) for item in value if isinstance(item, dict)] if isinstance(value, list) else []

    def object(self, key: str) -> "Members":
        """An object; an empty one when there is none."""
        value = self.values.get(key)
        return Members(value if isinstance(value, dict) else {})


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """One of Obsidian's files as it is now."""

    value: JsonValue = None
    """What it holds; `None` when it is missing or unusable."""
    problem: str | None = None
    """Why a file that is there cannot be used."""
    mtime_ns: int | None = None
    """When it was written; `None` when it is missing or unusable."""

    @property
    def is_usable(self) -> bool:
        """Whether the file is there and says something."""
        return self.mtime_ns is not None

    @property
    def members(self) -> Members:
        """The object that the file holds; an empty one when it is missing or unusable."""
        return Members(self.value if isinstance(self.value, dict) else {})


class ObsidianSettings:
    """The settings files of one vault."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._said: dict[ObsidianFile, str] = {}
        """Problems that the log has, so that each is there once."""

    def read(self, file: ObsidianFile) -> SettingsFile:
        """The file as it stands now."""
        found = self._read(file)
        if found.problem is None:
            self._said.pop(file, None)
        elif self._said.get(file) != found.problem:
            self._said[file] = found.problem
            logger.warning(
                "a settings file of Obsidian cannot be used", extra={"file": file.path, "problem": found.problem}
            )
        return found

    def members(self, file: ObsidianFile) -> Members:
        """The object in a file; an empty one when it is missing or unusable."""
        return self.read(file).members

    def lists_plugin(self, plugin: str) -> bool:
        """Whether a community plugin is switched on."""
        listed = self.read(ObsidianFile.COMMUNITY_PLUGINS).value
        return isinstance(listed, list) and plugin in listed

    def switches_off(self, core_plugin: str) -> bool:
        """Whether a core plugin is off explicitly: a vault that was synced without the file has it on."""
        value = self.read(ObsidianFile.CORE_PLUGINS).value
        if isinstance(value, list):
            return core_plugin not in value
        return isinstance(value, dict) and value.get(core_plugin) is False

    def problems(self) -> Iterator[str]:
        """What is wrong with files that decide something, for people."""
        for file in ObsidianFile:
            if file not in _SESSION and (problem := self.read(file).problem) is not None:
                yield f"{file.path} cannot be used: {problem}; it counts as missing"

    def _read(self, file: ObsidianFile) -> SettingsFile:
        try:
            found = self._tree.settings_file(file)
        except UnusableSettingsError as error:
            return SettingsFile(problem=str(error))
        if found is None:
            return SettingsFile()
        try:
            value: JsonValue = json.loads(found.data)
        except (ValueError, RecursionError):
            return SettingsFile(problem="it is not JSON")
        if not isinstance(value, _KINDS.get(file, (dict,))):
            return SettingsFile(problem=f"it holds {_KIND_NAMES[type(value)]}, which it should not")
        return SettingsFile(value, mtime_ns=found.mtime_ns)


_KIND_NAMES: Final[Mapping[type, str]] = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "a switch",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def _is_text(value: JsonValue) -> TypeGuard[str]:
    """Whether a value is a text that a name or an answer can hold: JSON can spell half of a surrogate pair."""
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)
