"""The timestamp property that writes set to now."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from operations.errors import VaultError
from operations.markdown.frontmatter import read_properties
from operations.markdown.properties import set_property
from operations.markdown.yaml_nodes import JsonValue

# "2026-09-12", "2026-09-12T13:57Z", "2026-09-12T13:57:17.250Z": UTC, more or less precise. Not "…T13:57" (no zone).
_UTC_STYLE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}(:[0-9]{2}(?:\.(?P<fraction>[0-9]{1,9}))?)?Z)?")
# A template fills these in when a note is made from it: "{{date}}", "<% tp.date.now() %>".
_PLACEHOLDER = re.compile(r"\{\{|<%")


def bump_timestamp(
    text: str, key: str, now: datetime, *, always: bool, field_order: Sequence[str] = ()
) -> tuple[str, bool, str | None]:
    """Set the timestamp property to `now`, in UTC as `YYYY-MM-DDTHH:MM:SSZ` or the note's own precision.

    A value that no timestamp can replace without loss (a list, a mapping, a template's placeholder) stays. Never
    raises for what the note holds: the write that asks for the bump is worth more than the bump.

    Args:
        now: Timezone-aware.
        always: Add the property to a note that has a block without it.

    Returns:
        The note, whether its timestamp is now `now`, and why not where one was due: a note without the property is due
        none unless `always`.

    Source: vault-contract.md §6.
    """
    properties = read_properties(text)
    if not properties.exists:
        return text, False, "the note has no properties block" if always else None
    if properties.problem is not None:
        problem = properties.problem
        return text, False, f"the properties cannot be read (line {problem.line}, column {problem.column})"
    name = _name_in(properties.values, key)
    if name is None and not always:
        return text, False, None
    old = None if name is None else properties.values[name]
    if isinstance(old, list | dict):
        return text, False, f"'{key}' holds a {'list' if isinstance(old, list) else 'mapping'}"
    if isinstance(old, str) and _PLACEHOLDER.search(old):
        return text, False, f"'{key}' holds a template's placeholder"
    try:
        return set_property(text, key, _in_style(old, now.astimezone(UTC)), field_order=field_order), True, None
    except VaultError as refusal:
        return text, False, refusal.message


def _name_in(values: dict[str, JsonValue], key: str) -> str | None:
    if key in values:
        return key
    others = [name for name in values if name.casefold() == key.casefold()]
    return others[0] if len(others) == 1 else None


def _in_style(old: JsonValue, now: datetime) -> str:
    match = _UTC_STYLE.fullmatch(old) if isinstance(old, str) else None
    if match is None:
        return f"{now:%Y-%m-%dT%H:%M:%SZ}"
    if match[1] is None:
        return f"{now:%Y-%m-%d}"
    if match[2] is None:
        return f"{now:%Y-%m-%dT%H:%MZ}"
    if match["fraction"] is None:
        return f"{now:%Y-%m-%dT%H:%M:%SZ}"
    fraction = f"{now:%f}000"[: len(match["fraction"])]
    return f"{now:%Y-%m-%dT%H:%M:%S}.{fraction}Z"
