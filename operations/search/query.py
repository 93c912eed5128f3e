"""What a query asks for: words, phrases, what must not be there, and filters typed between them.

Nothing is ever a syntax error: what does not read as syntax is a word.

Source: search.md §4 (query syntax).
"""

import re
import unicodedata
from dataclasses import dataclass, replace
from typing import Final

from operations.errors import ErrorCode, VaultError
from operations.search.terms import UNSEGMENTED_RUN
from operations.search.words import STOP_WORDS, WORD, fold

MAX_QUERY_CHARS: Final = 2000
"""What is read of a query; longer ones are cut, as words behind it would not change the ranking."""
MAX_WORDS: Final = 64
_FILTERS: Final = ("tag", "path", "type")

# 'tag:x', '-"a phrase"', '"a phrase"', 'word'. A quote inside a word is text: 5'11".
_TOKEN: Final = re.compile(
    r'(?P<field>(?:tag|path|type):(?!:))(?P<value>"[^"]*"|[^\s"]+)|(?P<minus>-)?"(?P<phrase>[^"]*)"|(?P<word>\S+)',
    re.IGNORECASE,
)
# "--flag" and "-5" are words; "-word" leaves out what holds it.
_EXCLUDED: Final = re.compile(r"-(?=[^\W\d_])")
# "auto*" asks for what begins so; "*" and "2*3" do not.
_PREFIX: Final = re.compile(r"[^\W_]{2,}\*")


@dataclass(frozen=True, slots=True)
class Word:
    """One word as typed, with the pieces the index knows it by."""

    text: str
    pieces: tuple[str, ...]
    """Folded; `KE-8842071` has two, which stand next to each other where the whole stands."""
    runs: tuple[str, ...] = ()
    """Stretches in scripts without spaces between words."""
    is_prefix: bool = False
    is_exact: bool = False
    """Part of a phrase, which is meant as it is typed."""

    @property
    def is_stop_word(self) -> bool:
        """Whether the word decides nothing."""
        return not self.runs and all(piece in STOP_WORDS for piece in self.pieces)

    @property
    def can_be_misspelled(self) -> bool:
        """Letters only: digits and inner punctuation make an identifier, which is never repaired."""
        return len(self.pieces) == 1 and self.text.isalpha() and not (self.runs or self.is_prefix or self.is_exact)


@dataclass(frozen=True, slots=True)
class Query:
    """A query that was read."""

    text: str
    """What is left for the embedding model: words and phrases in order, without filters and exclusions."""
    words: tuple[Word, ...]
    """Words outside of phrases, repeated ones once."""
    phrases: tuple[Word, ...] = ()
    """Each must stand in a passage as it is."""
    excluded: tuple[Word, ...] = ()
    """None of them may stand in a passage."""
    tags: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    types: tuple[str, ...] = ()

    @property
    def terms(self) -> tuple[Word, ...]:
        """Everything asked for, words that decide nothing left out unless there is nothing else."""
        asked = (*self.phrases, *self.words)
        return tuple(word for word in asked if not word.is_stop_word) or asked

    def with_loose_phrases(self) -> "Query":
        """The same query with the words of its phrases on their own."""
        loose = {fold(word.text): word for word in self.words}
        for phrase in self.phrases:
            for part in phrase.text.split():
                word = word_of(part)
                if word is not None:
                    loose.setdefault(fold(word.text), replace(word, is_exact=True))
        return replace(self, words=tuple(loose.values()), phrases=())


def parse_query(text: str) -> Query:
    """Read a query.

    Raises:
        VaultError: `invalid_body` for a query without anything to look for, or with a NUL character.

    Source: search.md §4.
    """
    if "\0" in text:
        raise VaultError(ErrorCode.INVALID_BODY, "the query holds a NUL character; send text")
    if not text.strip():
        raise VaultError(ErrorCode.INVALID_BODY, "the query is empty; send words to look for")
    filters: dict[str, list[str]] = {name: [] for name in _FILTERS}
    words: dict[str, Word] = {}
    phrases: dict[str, Word] = {}
    excluded: dict[str, Word] = {}
    said: list[str] = []
    for token in _TOKEN.finditer(text[:MAX_QUERY_CHARS]):
        if field := token["field"]:
            value = token["value"].strip('"').strip()
            if value.strip("#/"):
                filters[field[:-1].lower()].append(value)
        elif token["phrase"] is not None:
            phrase = word_of(token["phrase"])
            if phrase is not None and token["minus"]:
                excluded[phrase.text] = phrase
            elif phrase is not None:
                phrases[phrase.text] = phrase
                said.append(phrase.text)
        elif token["word"] != "OR":
            _take_word(token["word"], words, excluded, said)
    if excluded and not words and not phrases and not any(filters.values()):
        # Nothing but exclusions: somebody typed a hyphen, not a request for the rest of the vault.
        words, excluded = excluded, {}
        said = [word.text for word in words.values()]
    return Query(
        text=" ".join(said),
        words=tuple(words.values())[:MAX_WORDS],
        phrases=tuple(phrases.values())[:MAX_WORDS],
        excluded=tuple(excluded.values())[:MAX_WORDS],
        tags=tuple(filters["tag"]),
        paths=tuple(filters["path"]),
        types=tuple(filters["type"]),
    )


def word_of(text: str, *, is_prefix: bool = False) -> Word | None:
    """`text` as a word or phrase; `None` when it has nothing that the index knows."""
    text = unicodedata.normalize("NFC", " ".join(text.split()))
    runs = tuple(UNSEGMENTED_RUN.findall(text)) if not text.isascii() else ()
    rest = UNSEGMENTED_RUN.sub(" ", text) if runs else text
    pieces = tuple(WORD.findall(fold(rest)))
    return Word(text, pieces, runs, is_prefix) if pieces or runs else None


def _take_word(token: str, words: dict[str, Word], excluded: dict[str, Word], said: list[str]) -> None:
    if _EXCLUDED.match(token) and (word := word_of(token[1:])) is not None:
        excluded[word.text] = word
        return
    is_prefix = _PREFIX.fullmatch(token) is not None
    word = word_of(token.rstrip("*") if is_prefix else token.strip("?!.,;:()[]{}'\"*"), is_prefix=is_prefix)
    if word is not None:
        words.setdefault(fold(word.text), word)
    said.append(token.rstrip("*"))
