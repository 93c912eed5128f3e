"""What each note says of itself, in a title and a sentence; remembered as long as the note stays the same.

Source: vault-contract.md §12.
"""

import re
from typing import Final

from sqlalchemy import Connection

from operations.index.summary_queries import ListedNote, beginnings_of, descriptions_of, listed_notes
from operations.markdown.index_document import MAX_DESCRIPTION, NoteLine
from operations.search.plain_text import plain_text

_AT_ONCE: Final = 500
"""Notes whose text is in memory at once."""
# The end of a sentence: "Service is due. Call", "fertig?", "完了。次"; not "v1.2", "e.g. this", "z.B. der".
_SENTENCE_END: Final = re.compile(r"(?:(?<!\b\w)[.!?…]+[\"'”’»)]*(?=\s+[^\sa-z]|\s*$)|[。！？])")
# Lines that are no prose: headings, rules, tables, quotes and callouts, HTML and comments, pictures, "key:: value".
_NO_PROSE: Final = re.compile(r"\s*(?:#{1,6}(?:\s|$)|([-*_=])\1{2,}\s*$|\||>|<|%%|!\[|\[[^\]]*\]:|\w[\w -]{0,40}::)")
# "- item", "12. item"; not "-5" or "1.5".
_ITEM: Final = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s")
_FENCE: Final = re.compile(r"\s*(`{3,}|~{3,})")


class NoteSummaries:
    """The summaries of all notes of one index. Not for several threads at once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[ListedNote, NoteLine]] = {}

    def read(self, connection: Connection) -> list[NoteLine]:
        """The summary of every note, by path; only notes that changed since the last call are looked into."""
        notes = listed_notes(connection)
        changed = [note for note in notes if note.id not in self._known or self._known[note.id][0] != note]
        fresh: dict[int, tuple[ListedNote, NoteLine]] = {}
        for start in range(0, len(changed), _AT_ONCE):
            some = changed[start : start + _AT_ONCE]
            descriptions = descriptions_of(connection, [note.id for note in some])
            beginnings = beginnings_of(connection, [note.id for note in some if note.id not in descriptions])
            for note in some:
                said = descriptions.get(note.id) or first_sentence(beginnings.get(note.id, ""))
                is_new = said.casefold() != note.title.casefold()
                fresh[note.id] = note, NoteLine(note.path, note.title, said if is_new else "")
        self._known = {note.id: fresh.get(note.id) or self._known[note.id] for note in notes}
        return [line for _, line in self._known.values()]

    def forget(self) -> None:
        """Begin anew with the next call, and hold nothing until then."""
        self._known = {}


def first_sentence(body: str) -> str:
    """The first sentence of the first paragraph as plain text, at most `MAX_DESCRIPTION` characters; may be empty.

    Args:
        body: The beginning of a note, without its frontmatter.
    """
    said = " ".join(plain_text(_first_paragraph(body)).split())
    end = _SENTENCE_END.search(said)
    sentence = said if end is None else said[: end.end()]
    if len(sentence) <= MAX_DESCRIPTION:
        return sentence
    return f"{sentence[: MAX_DESCRIPTION - 1].rstrip()}…"


def _first_paragraph(body: str) -> str:
    """The first lines that are prose, in a row; of a list the first item."""
    lines: list[str] = []
    fence = ""
    for line in body.splitlines():
        opened = _FENCE.match(line)
        if fence:
            if opened is not None and opened[1].startswith(fence):
                fence = ""
        elif opened is not None:
            fence = opened[1]
        elif line.strip() and _NO_PROSE.match(line) is None and not (lines and _ITEM.match(line)):
            lines.append(line)
            continue
        if lines:
            break
    return "\n".join(lines)
