"""What a rule can ask of a note: the variables of `vault_query`, and each note's values for those that are asked for.

Source: tool-map.md §6.2.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from sqlalchemy import Connection

from operations.index.property_queries import properties_of, tags_of
from operations.index.queries import IndexedFile, Scope, texts_of
from operations.link_index import IndexedLinks
from operations.linking.graph import link_ends
from operations.markdown.yaml_nodes import JsonValue

VARIABLES: Final = (
    "path",
    "folder",
    "name",
    "basename",
    "title",
    "content",
    "frontmatter",
    "tags",
    "links",
    "backlinks",
    "unresolvedLinks",
    "stat",
    "created",
    "modified",
    "size",
)
"""First words of the names a rule can use."""

_OF_THE_GRAPH: Final = frozenset({"links", "backlinks", "unresolvedLinks"})
_NOTES_AT_ONCE: Final = 200
"""Notes whose texts are in memory together."""
_NANOSECONDS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class NoteData:
    """A note and the values of the variables that were asked for."""

    file: IndexedFile
    values: dict[str, JsonValue]


def note_data(
    connection: Connection, notes: Sequence[IndexedFile], variables: Collection[str], scope: Scope
) -> Iterator[NoteData]:
    """The values of some variables for each note, in the order of the notes.

    Args:
        variables: Of `VARIABLES`; what is not among them is not even read.
        scope: Every file the caller sees, as links lead out of the notes that are asked about.
    """
    graph = _Graph(connection, scope) if _OF_THE_GRAPH.intersection(variables) else None
    for start in range(0, len(notes), _NOTES_AT_ONCE):
        some = notes[start : start + _NOTES_AT_ONCE]
        ids = [note.id for note in some]
        properties = properties_of(connection, ids) if "frontmatter" in variables else {}
        tags = tags_of(connection, ids) if "tags" in variables else {}
        texts = texts_of(connection, ids) if "content" in variables else {}
        for note in some:
            values = _values_of_file(note)
            values["frontmatter"] = properties.get(note.id, {})
            values["tags"] = list(tags.get(note.id, ()))
            values["content"] = texts.get(note.id, "")
            if graph is not None:
                values |= graph.values_of(note.path)
            yield NoteData(note, {name: values[name] for name in VARIABLES if name in variables})


def _values_of_file(note: IndexedFile) -> dict[str, JsonValue]:
    folder, _, name = note.path.rpartition("/")
    created, modified = note.created_ns // _NANOSECONDS, note.mtime_ns // _NANOSECONDS
    return {
        "path": note.path,
        "folder": folder,
        "name": name,
        "basename": name.rpartition(".")[0],
        "title": note.title,
        "stat": {"ctime": created, "mtime": modified, "size": note.size},
        "created": created,
        "modified": modified,
        "size": note.size,
    }


class _Graph:
    """The links of the vault by note: each path, or text of a link that reaches none, once."""

    def __init__(self, connection: Connection, scope: Scope) -> None:
        links = IndexedLinks(connection, scope)
        self._outgoing: dict[str, dict[str, None]] = {}
        self._unresolved: dict[str, dict[str, None]] = {}
        self._sources: dict[str, set[str]] = {}
        # Ids grow in document order within a file.
        for (source, _, target, *_), end in link_ends(sorted(links.edges(), key=itemgetter(-1)), links.resolver()):
            if not target:
                continue
            if end is None:
                self._unresolved.setdefault(source, {})[target] = None
                continue
            self._outgoing.setdefault(source, {})[end] = None
            if end != source:
                self._sources.setdefault(end, set()).add(source)

    def values_of(self, path: str) -> dict[str, JsonValue]:
        return {
            "links": [*self._outgoing.get(path, ())],
            "backlinks": [*sorted(self._sources.get(path, ()))],
            "unresolvedLinks": [*self._unresolved.get(path, ())],
        }
