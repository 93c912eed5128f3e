"""A note cut into the passages that are indexed.

Source: search.md §2.
"""

import hashlib
import re
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from operations.index.note_rows import IndexedText
from operations.markdown.block_tree import Block, BlockKind
from operations.markdown.headings import DELIMITER, Heading, Outline
from operations.markdown.memory import MemoryEntry, entries_of
from operations.markdown.structure import ParsedNote
from operations.markdown.yaml_nodes import JsonValue
from operations.search.plain_text import plain_text
from operations.search.tokens import SPECIAL_TOKENS, TokenBudget
from operations.store.paths import guard_path

CHUNKER_VERSION: Final = 2
"""Raised when the same note comes out in other chunks: they are made anew then, vectors of equal texts are kept."""

CHARS_A_TOKEN: Final = 8
"""A text counts at least a token for this many characters: BERT's tokenizers call a word of over 100 characters one
unknown token, which would make a passage of 55,000 Khmer characters a short one."""
PREFIX_SHARE: Final = 3
"""Title, headings and description take at most this part of the window (one in so many)."""
DESCRIPTION_SHARE: Final = 4
"""A note's description stands in a chunk whose own text is at least so many times as long, and in the first one; in
short chunks it would say more than they do (household: nDCG 0.866 → 0.878, paraphrases 0.74 → 0.80)."""

MIN_LIST_ITEMS: Final = 7
MIN_ITEM_TOKENS: Final = 8
"""A flat list of at least so many items of at least so many tokens (median) holds a fact an item; shorter ones are
recipes and registers, which are read as a whole."""
WORDS_AT_ONCE: Final = 8
"""A sentence longer than a window is cut between words, so many at a time."""
FIELD_SHARE: Final = 0.5
"""Above this share of `name: value` items a list describes one thing."""
MAX_PROPERTY_CHARS: Final = 4000

# "Policy number: 12", "**Plate:** X": a field; "See also: …" in the middle of a sentence is too far in.
_FIELD: Final = re.compile(r"[^\n:]{1,32}:(?:\s|$)")
# Where a line or a sentence ends: a line end, the blanks behind ". ", "! " and "? ", and behind the ideographic marks,
# which no blank follows. "3.5" and "e.g.x" hold none.
# It begins with the one set of characters that the engine can skip to.
_ATOM_END: Final = re.compile(r"[\n.!?。！？\r](?:(?<=[\n。！？])|(?<=[.!?])[ \t]+|(?<=\r)\n?)")
_WORD_GAP: Final = re.compile(r"[ \t]+")


# Tuples, as a large vault has hundreds of thousands: a frozen dataclass takes three times as long to make.
class ChunkTerms(NamedTuple):
    """The texts of a chunk's columns, in the order that the full-text table has them."""

    body: str
    title: str = ""
    heading: str = ""
    tags: str = ""
    aliases: str = ""
    properties: str = ""


class Chunk(NamedTuple):
    """One passage of a file."""

    ordinal: int
    heading: str
    """`::` path of its section; empty above the first heading, and for the outline of a note."""
    line: int
    end_line: int
    """1-based, inclusive."""
    start: int
    end: int
    """Offsets into the text that was cut; line ends behind the passage are left out."""
    embedded_text: str
    """What the vector stands for: title, headings and description, then the passage without its syntax."""
    terms: ChunkTerms
    """What the lexical arm finds it by."""

    @property
    def embedded_sha(self) -> bytes:
        """SHA-256 of the embedded text: the key of its vector."""
        return hashlib.sha256(self.embedded_text.encode("utf-8", "replace")).digest()


class _Section(NamedTuple):
    heading: Heading | None
    start: int
    end: int
    blocks: list[Block]
    path: tuple[str, ...]


def _path_of(heading: Heading | None) -> tuple[str, ...]:
    if heading is None:
        return ()
    return (*heading.parents, heading.text) if heading.key else heading.parents


def chunk_note(
    outline: Outline,
    *,
    path: str,
    title: str,
    properties: Mapping[str, JsonValue],
    tags: Sequence[str],
    aliases: Sequence[str],
    budget: TokenBudget,
    entries: Sequence[MemoryEntry] = (),
) -> list[Chunk]:
    """Cut a note, or a document's extracted text, into chunks the embedder accepts.

    Args:
        title: As search shows it; stands in every chunk.
        properties: The note's own; `description` is embedded with every chunk, all are found by the first one.
        entries: Of a memory file: each is a chunk of its own, whatever its length.

    Returns:
        Chunks in file order, the outline of a note of several chunks last. A note without text has one all the same,
        so that its name is found. Same note, same chunks.

    Source: search.md §2.
    """
    cutter = _Cutter(outline.note, title, properties, budget)
    sections = _sections(outline, budget)
    if entries:
        spans = [(section, *span) for section in sections for span in cutter.cut_at_entries(section, entries)]
    else:
        spans = [(section, *span) for section in sections for span in cutter.cut(section)]
    if not spans:
        start, end = outline.note.body_start, len(outline.note.text)
        spans = [(_Section(None, start, end, [], ()), start, end)]
    once = ", ".join((*aliases, *(tag.replace("/", " ") for tag in tags)))
    name = PurePosixPath(path).stem
    found_by = ChunkTerms(
        body="",
        title=title if name in title else f"{title}\n{name}",
        tags=" ".join(tags),
        aliases="\n".join(aliases),
    )
    chunks: list[Chunk] = []
    entry_at = {entry.start: entry for entry in entries}
    for ordinal, (section, start, end) in enumerate(spans):
        terms = found_by._replace(properties=_described(properties)) if ordinal == 0 else found_by
        chunk = cutter.chunk(ordinal, section, start, end, terms, once=once if len(spans) == 1 else "")
        if (entry := entry_at.get(start)) is not None:
            said = entry_text(name, entry.section, entry.text)
            chunk = chunk._replace(embedded_text=cutter.shortened(said, cutter.room))
        chunks.append(chunk)
    if len(spans) > 1:
        chunks.append(_outline_chunk(cutter, outline, chunks, path, once))
    return chunks


def chunk_source(source: IndexedText, budget: TokenBudget) -> list[Chunk]:
    """As `chunk_note`, from what the index reads of a file; a memory file is cut at its entries."""
    is_memory = budget.memory_folder is not None and _is_directly_in(source.path, budget.memory_folder)
    return chunk_note(
        source.outline,
        path=source.path,
        title=source.title,
        properties=source.properties,
        tags=source.tags,
        aliases=source.aliases,
        budget=budget,
        entries=entries_of(source.outline) if is_memory else (),
    )


def entry_text(file: str, section: str, text: str) -> str:
    """What is embedded, and judged by a reranker, of an entry of the memory: its place, then what it says.

    The date has no part in it, so the same words of two days share a vector.

    Source: memory-and-prompts.md §4.
    """
    return f"{file} > {plain_text(section)}\n{plain_text(text)}"


def _is_directly_in(path: str, folder: str) -> bool:
    return guard_path(path.rpartition("/")[0]) == guard_path(folder)


class _Cutter:
    """Knows the lengths: what a prefix leaves for a passage, and how long passages are."""

    def __init__(self, note: ParsedNote, title: str, properties: Mapping[str, JsonValue], budget: TokenBudget) -> None:
        self._note = note
        self._title = title
        self._budget = budget
        self._prefixes: dict[tuple[tuple[str, ...], str], str] = {}
        self._line_starts = [line.start for line in note.lines]
        self.room = max(budget.window - SPECIAL_TOKENS, 1)
        """Tokens that a text to embed may have."""
        description = properties.get("description")
        self.description = " ".join(description.split()) if isinstance(description, str) else ""

    def prefix(self, section_path: tuple[str, ...], description: str = "") -> str:
        """Title, headings and description, at most a part of the window."""
        known = self._prefixes.get((section_path, description))
        if known is None:
            known = self._prefixes[section_path, description] = self._prefix(section_path, description)
        return known

    def _prefix(self, section_path: Sequence[str], description: str) -> str:
        headings = [plain_text(text) for text in section_path]
        parts = [self._title, *(text for text in headings if text and text != self._title)]
        return self.shortened(f"{': '.join(parts)}\n{description}".strip(), self._budget.window // PREFIX_SHARE)

    def shortened(self, text: str, limit: int) -> str:
        """As many words from the start of `text` as `limit` tokens allow."""
        if len(text) <= limit or self._measure(text) <= limit:
            return text
        words = text.split(" ")
        low, high = 0, len(words)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._measure(" ".join(words[:middle])) <= limit else (low, middle - 1)
        return " ".join(words[:low]) or text[:limit]

    def chunk(self, ordinal: int, section: _Section, start: int, end: int, found_by: ChunkTerms, *, once: str) -> Chunk:
        """The chunk for a span of a section."""
        note = self._note
        text = note.text[start:end].rstrip()
        end = start + len(text)
        body = plain_text(text)
        is_told = ordinal == 0 or len(self.description) <= len(body) // DESCRIPTION_SHARE
        prefix = self.prefix(section.path, self.description if is_told else "")
        heading = plain_text(section.heading.text) if section.heading is not None else ""
        if heading and body.startswith(heading):
            body = body[len(heading) :].lstrip("\n")
        embedded = "\n".join(part for part in (prefix, body, once) if part)
        return Chunk(
            ordinal=ordinal,
            heading=DELIMITER.join(section.path),
            line=self._line_at(start) if start < len(note.text) else max(len(note.lines), 1),
            end_line=self._line_at(max(end - 1, start)),
            start=start,
            end=end,
            embedded_text=self.shortened(embedded, self.room),
            terms=found_by._replace(body=text, heading="\n".join(section.path)),
        )

    def cut(self, section: _Section) -> list[tuple[int, int]]:
        """Spans of a section: one, its items, or windows that overlap."""
        limit = self._budget.body_tokens(self._measure(self.prefix(section.path, self.description)))
        items = self._flat_items(section)
        if items is not None:
            return [window for item in items for window in self._windows([item], limit)]
        return self._windows(list(self._units(section)), limit)

    def cut_at_entries(self, section: _Section, entries: Sequence[MemoryEntry]) -> Iterator[tuple[int, int]]:
        """Spans of a section of a memory file: its text above the first entry where there is any, then the entries."""
        own = [entry for entry in entries if section.start <= entry.start < section.end]
        if not own:
            yield from self.cut(section)
            return
        body = section.heading.body_start if section.heading is not None else section.start
        if self._note.text[body : own[0].start].strip():
            yield section.start, own[0].start
        for entry in own:
            yield entry.start, entry.end

    def _line_at(self, offset: int) -> int:
        """`ParsedNote.line_at` of an offset in the text, from a plain list of starts."""
        return max(bisect_right(self._line_starts, offset), 1)

    def _measure(self, plain: str) -> int:
        return max(self._budget.count(plain), len(plain) // CHARS_A_TOKEN)

    def _measure_each(self, texts: Sequence[str]) -> list[int]:
        tokens = self._budget.each(texts)
        return [max(count, len(text) // CHARS_A_TOKEN) for count, text in zip(tokens, texts, strict=True)]

    def _units(self, section: _Section) -> Iterator[tuple[int, int]]:
        """Blocks of the section, items of lists apart: what is kept whole where it fits."""
        lines = self._note.lines
        starts: list[int] = [section.start]
        for block in section.blocks:
            parts = block.children if block.kind is BlockKind.LIST else [block]
            starts.extend(lines[part.first_line - 1].start for part in parts)
        ordered = sorted({start for start in starts if section.start <= start < section.end})
        yield from zip(ordered, (*ordered[1:], section.end), strict=True)

    def _windows(self, units: Sequence[tuple[int, int]], limit: int) -> list[tuple[int, int]]:
        """As many units a window as fit; each window but the first starts with the end of the one before."""
        text = self._note.text
        start, end = units[0][0], units[-1][1]
        if not text[start:end].strip():
            return []
        # A token is a character at least, in scripts that the tokenizer does not take apart further.
        if end - start <= limit and text[start:end].isascii():
            return [(start, end)]
        atoms = _Atoms(text, start, end, self._measure_each)
        if atoms.tokens(start, end) <= limit:
            return [(start, end)]
        windows: list[tuple[int, int]] = []
        end, used = start, 0
        for _piece_start, piece_end, tokens in (piece for unit in units for piece in atoms.pieces(unit, limit)):
            if used and used + tokens > limit:
                windows.append((start, end))
                start = atoms.overlap_start(start, end, min(self._budget.overlap_tokens, limit - tokens))
                used = atoms.tokens(start, end)
            end = piece_end
            used += tokens
        windows.append((start, end))
        return [window for window in windows if text[window[0] : window[1]].strip()]

    def _flat_items(self, section: _Section) -> list[tuple[int, int]] | None:
        """Spans of the items when the section is one flat list of unrelated facts."""
        blocks = [block for block in section.blocks if block.kind is not BlockKind.HEADING]
        if len(blocks) != 1 or blocks[0].kind is not BlockKind.LIST or blocks[0].mark not in ("-", "*", "+"):
            return None
        items = blocks[0].children
        if len(items) < MIN_LIST_ITEMS or any(_holds_list(item) for item in items):
            return None
        lines, text = self._note.lines, self._note.text
        starts = [lines[item.first_line - 1].start for item in items]
        spans = list(zip(starts, (*starts[1:], section.end), strict=True))
        shown = [plain_text(text[start:end]) for start, end in spans]
        said = [_LINK_ONLY.sub("", text[start:end]).strip("-*+ \t\r\n") for start, end in spans]
        if sum(1 for words in said if words) <= len(said) // 2:
            return None
        if sum(1 for words in shown if _FIELD.match(words)) > FIELD_SHARE * len(shown):
            return None
        return spans if statistics.median(self._measure_each(shown)) >= MIN_ITEM_TOKENS else None


# "[[Note]]", "[label](address)", "https://x": what is left of an item without them is what it says.
_LINK_ONLY: Final = re.compile(r"!?\[\[[^\[\]\n]*+\]\]|!?\[[^\[\]\n]*+\]\([^()\n]*+\)|https?://\S++")


def _holds_list(item: Block) -> bool:
    return any(child.kind is BlockKind.LIST for child in item.children)


class _Atoms:
    """The lines and sentences of a stretch of text, each measured once: where windows may begin and end."""

    def __init__(self, text: str, start: int, end: int, measure: Callable[[Sequence[str]], list[int]]) -> None:
        self._text = text
        self._measure = measure
        ends = [match.end() for match in _ATOM_END.finditer(text, start, end)]
        if ends and ends[-1] == end:
            ends.pop()
        self._starts = [start, *ends]
        self._ends = [*ends, end]
        # Without its line end most of what is measured holds nothing that `plain_text` would have to look for.
        atoms = [text[first:last].rstrip("\r\n") for first, last in zip(self._starts, self._ends, strict=True)]
        self._sums = list(accumulate(measure([*map(plain_text, atoms)]), initial=0))

    def tokens(self, start: int, end: int) -> int:
        """Tokens of a stretch that begins and ends with atoms, or with parts of them."""
        first = bisect_right(self._starts, start) - 1
        behind = bisect_left(self._starts, end)
        return self._sums[behind] - self._sums[first] if start < end else 0

    def pieces(self, span: tuple[int, int], limit: int) -> Iterator[tuple[int, int, int]]:
        """`span` whole when it fits, else its lines, their sentences, their words, and last characters."""
        start, end = span
        tokens = self.tokens(start, end)
        if tokens <= limit:
            yield start, end, tokens
            return
        for line in self._lines(start, end):
            tokens = self.tokens(*line)
            if tokens <= limit:
                yield *line, tokens
                continue
            first, behind = bisect_left(self._starts, line[0]), bisect_left(self._starts, line[1])
            for atom in zip(self._starts[first:behind], self._ends[first:behind], strict=True):
                tokens = self.tokens(*atom)
                yield from [(*atom, tokens)] if tokens <= limit else self._words(*atom, limit)

    def overlap_start(self, start: int, end: int, tokens: int) -> int:
        """Where the end of a window begins that the next one repeats: as many whole atoms as `tokens` allow."""
        behind = bisect_left(self._starts, end)
        first = bisect_left(self._sums, self._sums[behind] - tokens, 0, behind)
        candidate = self._starts[first] if first < behind else end
        return candidate if start < candidate and self._text[candidate:end].strip() else end

    def _lines(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        first = start
        for index in range(bisect_left(self._starts, start), bisect_left(self._starts, end)):
            if self._text[self._ends[index] - 1] in "\r\n" or self._ends[index] == end:
                yield first, self._ends[index]
                first = self._ends[index]

    def _words(self, start: int, end: int, limit: int) -> Iterator[tuple[int, int, int]]:
        """A few words at a time, those that are too long on their own."""
        gaps = self._gaps(start, end)
        bounds = [start, *gaps[WORDS_AT_ONCE - 1 :: WORDS_AT_ONCE], end]
        sizes = self._measure([self._text[first:last] for first, last in pairwise(bounds)])
        for (first, last), tokens in zip(pairwise(bounds), sizes, strict=True):
            if tokens <= limit:
                yield first, last, tokens
                continue
            inner = [first, *(gap for gap in gaps if first < gap < last), last]
            for word in pairwise(inner):
                yield from self._characters(*word, limit)

    def _gaps(self, start: int, end: int) -> list[int]:
        """Where the words of a sentence begin, the first one left out; its end when blanks stand there."""
        text = self._text[start:end]
        if "\t" in text or "  " in text:
            return [start + gap.end() for gap in _WORD_GAP.finditer(text)]
        lengths = accumulate(map(len, text.split(" ")), initial=start)
        return [offset + blanks for blanks, offset in enumerate(lengths)][1:-1]

    def _characters(self, start: int, end: int, limit: int) -> Iterator[tuple[int, int, int]]:
        """A word whole when it fits; else cut hard."""
        [tokens] = self._measure([self._text[start:end]])
        if tokens <= limit:
            if start < end:
                yield start, end, tokens
            return
        step = limit
        while start < end:
            stop = min(start + step, end)
            [tokens] = self._measure([self._text[start:stop]])
            if tokens > limit and stop - start > 1:
                step = max(step // 2, 1)
                continue
            yield start, stop, min(tokens, limit)
            start, step = stop, limit


def _sections(outline: Outline, budget: TokenBudget) -> list[_Section]:
    """The body at its headings, each with its own text only; a heading that only holds others has no section."""
    note, headings = outline.note, outline.headings
    starts = (note.body_start, *(heading.start for heading in headings))
    sections: list[_Section] = []
    blocks = note.root.children
    block = 0
    for index, heading in enumerate((None, *headings)):
        start, end = starts[index], starts[index + 1] if index + 1 < len(starts) else len(note.text)
        first_block = block
        while block < len(blocks) and note.lines[blocks[block].first_line - 1].start < end:
            block += 1
        own = blocks[first_block:block]
        follows = headings[index] if index < len(headings) else None
        is_leaf = heading is not None and not (follows is not None and follows.level > heading.level)
        if is_leaf or _says_something(own):
            sections.append(_Section(heading, start, end, own, _path_of(heading)))
    return _joined(sections, note, budget) if budget.min_tokens else sections


def _says_something(blocks: Iterable[Block]) -> bool:
    return any(block.kind not in (BlockKind.COMMENT, BlockKind.HEADING, BlockKind.RULE) for block in blocks)


def _joined(sections: list[_Section], note: ParsedNote, budget: TokenBudget) -> list[_Section]:
    """Short sections together with the next one below the same parent, under the first one's heading."""
    joined: list[_Section] = []
    for section in sections:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.path[:-1] == section.path[:-1]
            and budget.count(plain_text(note.text[last.start : last.end])) < budget.min_tokens
        ):
            joined[-1] = last._replace(end=section.end, blocks=[*last.blocks, *section.blocks])
        else:
            joined.append(section)
    return joined


def _outline_chunk(cutter: _Cutter, outline: Outline, chunks: Sequence[Chunk], path: str, once: str) -> Chunk:
    """What the note is about as a whole: folder, title, names of its headings.

    Its span is empty: it leads to the note's passages.
    """
    names = [plain_text(heading.text) for heading in outline.headings if heading.key]
    folder = path.rpartition("/")[0].replace("/", " > ")
    parts = (folder, cutter.prefix((), cutter.description), ", ".join(dict.fromkeys(names)), once)
    embedded = cutter.shortened("\n".join(part for part in parts if part), cutter.room)
    line, start = chunks[0].line, chunks[0].start
    return Chunk(len(chunks), "", line, line, start, start, embedded, ChunkTerms(body=""))


def _described(properties: Mapping[str, JsonValue]) -> str:
    """Properties as words, one line a property."""
    lines = (f"{key}: {' '.join(_texts(value))}" for key, value in properties.items())
    return "\n".join(lines)[:MAX_PROPERTY_CHARS]


def _texts(value: JsonValue) -> Iterator[str]:
    match value:
        case dict():
            for key, inner in value.items():
                yield key
                yield from _texts(inner)
        case list():
            for inner in value:
                yield from _texts(inner)
        case None:
            return
        case _:
            yield str(value)
