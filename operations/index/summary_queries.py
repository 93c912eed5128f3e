"""What the notes say of themselves, for lists of all of them."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, func, select

from operations.index.property_queries import properties_of
from operations.index.schema import files, texts

BEGINNING_CHARS: Final = 4000
_AT_ONCE: Final = 500


class ListedNote(NamedTuple):
    """A note; `id` and `version` together name one state of its text."""

    id: int
    path: str
    title: str
    version: str


def listed_notes(connection: Connection) -> list[ListedNote]:
    """Every note of the index, by path."""
    columns = (files.c[name] for name in ListedNote._fields)
    statement = select(*columns).where(files.c.kind == "note").order_by(files.c.path)
    return [ListedNote._make(row) for row in connection.execute(statement)]


def beginnings_of(connection: Connection, file_ids: Sequence[int]) -> dict[int, str]:
    """The first `BEGINNING_CHARS` characters behind the frontmatter, of those files that have a text."""
    found: dict[int, str] = {}
    for start in range(0, len(file_ids), _AT_ONCE):
        some = file_ids[start : start + _AT_ONCE]
        body = func.substr(texts.c.text, texts.c.body_start + 1, BEGINNING_CHARS)
        rows = connection.execute(select(texts.c.file_id, body).where(texts.c.file_id.in_(some)))
        found.update((file_id, text) for file_id, text in rows)
    return found


def descriptions_of(connection: Connection, file_ids: Sequence[int]) -> Mapping[int, str]:
    """The property `description` of files that have one that is a text."""
    given = properties_of(connection, file_ids)
    found = {
        file_id: value
        for file_id, values in given.items()
        for key, value in values.items()
        if key.casefold() == "description" and isinstance(value, str)
    }
    return {file_id: value.strip() for file_id, value in found.items() if value.strip()}
