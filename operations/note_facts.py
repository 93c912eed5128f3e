"""What every list of notes says about a note (memory-and-prompts §6): enough to decide whether to read it."""

from collections.abc import Sequence
from typing import TypedDict

from pydantic import JsonValue
from sqlalchemy import Connection

from operations.folders import iso_time
from operations.index.property_queries import properties_of, tags_of
from operations.index.queries import IndexedFile
from operations.index.summary_queries import beginnings_of
from operations.markdown.callouts import leading_callout
from operations.obsidian_uri import obsidian_uri
from operations.registry import OperationResult
from operations.vault import Vault

CALLOUT_CHARACTERS = 300
_OWN_MEMBERS = frozenset({"type", "tags", "created", "related", "title"})


class NoteFacts(OperationResult):
    """A note in a list."""

    path: str
    title: str
    type: str | None = None
    tags: tuple[str, ...]
    created: str | None = None
    modified: str
    related: tuple[str, ...] | None = None
    bytes: int
    leading_callout: str | None = None
    """The callout the note opens with, cut at 300 characters."""
    additional_properties: dict[str, JsonValue] | None = None
    count: int | None = None
    """How often the note has what was asked for."""
    uri: str


class NoteList(OperationResult):
    """Notes, and how many there are in all."""

    notes: tuple[NoteFacts, ...]
    total: int
    truncated: bool | None = None
    next_offset: int | None = None
    advisories: tuple[str, ...] | None = None


def facts_of(
    vault: Vault, connection: Connection, notes: Sequence[IndexedFile], counts: Sequence[int] | None = None
) -> tuple[NoteFacts, ...]:
    """The rows of a list, in its order."""
    ids = [note.id for note in notes]
    properties, tags = properties_of(connection, ids), tags_of(connection, ids)
    # The empty line keeps a rule at the top of a body from being read as the mark of a frontmatter.
    openings = {note_id: f"\n{body}" for note_id, body in beginnings_of(connection, ids).items()}
    return tuple(
        NoteFacts(
            path=note.path,
            title=note.title,
            tags=tuple(tags.get(note.id, ())),
            modified=iso_time(note.mtime_ns),
            bytes=note.size,
            count=counts[position] if counts is not None else None,
            uri=obsidian_uri(vault.config.name, note.path),
            leading_callout=callout_of(openings.get(note.id, "")),
            **_described(properties.get(note.id, {})),
        )
        for position, note in enumerate(notes)
    )


class _Described(TypedDict):
    type: str | None
    created: str | None
    related: tuple[str, ...] | None
    additional_properties: dict[str, JsonValue] | None


def _described(properties: dict[str, JsonValue]) -> _Described:
    """The members that come from a note's properties; texts only where a text is meant."""
    kind, created, related = (properties.get(name) for name in ("type", "created", "related"))
    names = related if isinstance(related, list) else [related]
    others = {name: value for name, value in properties.items() if name.casefold() not in _OWN_MEMBERS}
    return {
        "type": kind if isinstance(kind, str) else None,
        "created": created if isinstance(created, str) else None,
        "related": tuple(name for name in names if isinstance(name, str)) or None,
        "additional_properties": others or None,
    }


def callout_of(text: str) -> str | None:
    """The leading callout of a note as one text."""
    callout = leading_callout(text) if "[!" in text else None
    if callout is None:
        return None
    said = f"{callout.title}: {callout.body}" if callout.body else callout.title
    return said if len(said) <= CALLOUT_CHARACTERS else f"{said[: CALLOUT_CHARACTERS - 1]}…"
