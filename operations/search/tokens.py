"""How long a text is for an embedding model, and how long a chunk may be."""

import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LONGEST_CHUNK_TOKENS: Final = 400
"""Longer passages say too many things for one vector, even where the model's window is wider."""
CHUNK_SHARE: Final = (35, 64)
"""A chunk's own text takes this part of the window by default, 200 tokens of 256 (nDCG@10 on the help set: 220 tokens
0.836, 200 0.848, 180 0.847, 120 0.854, of which 200 has by far the best recall)."""
SPECIAL_TOKENS: Final = 2
"""Marks that models put around a text."""
_BATCH_FROM: Final = 256
"""Fewer words are done before a batch has woken its threads."""
MOST_WORDS: Final = 60_000
"""Of a vault of 10,000 notes the words that come again are in it; 8 MB."""


CountTokens = Callable[[str], int]
"""Tokens of a text in a model's own terms, without the special ones."""


class TokenizerFile:
    """The lengths of words by a model's own tokenizer, which is small and is read apart from the model."""

    __slots__ = ("_tokenizer", "parts_punctuation")

    def __init__(self, file: Path) -> None:
        """Read it.

        Raises:
            Exception: Whatever the library says of a file that it cannot read.
        """
        # A native library that a lexical-only server does not need.
        from tokenizers import Tokenizer  # noqa: PLC0415
        from tokenizers.normalizers import BertNormalizer  # noqa: PLC0415
        from tokenizers.pre_tokenizers import BertPreTokenizer  # noqa: PLC0415

        self._tokenizer = Tokenizer.from_file(str(file))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        normalizer = self._tokenizer.normalizer
        is_bert = isinstance(self._tokenizer.pre_tokenizer, BertPreTokenizer)
        self.parts_punctuation: bool = is_bert and isinstance(normalizer, BertNormalizer) and normalizer.lowercase
        """Whether every mark is a token of its own and letter case makes no difference."""

    def __call__(self, words: list[str]) -> list[int]:
        """Tokens of every word, without the special ones."""
        if len(words) < _BATCH_FROM:
            return [len(self._tokenizer.encode(word, add_special_tokens=False)) for word in words]
        return [len(encoding) for encoding in self._tokenizer.encode_batch_fast(words, add_special_tokens=False)]


class WordCounter:
    """Counts by words, each looked up once: a tokenizer takes 30 s for 45 MB of notes, this 3 s.

    Exact for tokenizers that cut at blanks before anything else, which BERT's and most others do.
    """

    __slots__ = ("_before", "_count_words", "_known", "_most_words", "_parts_punctuation")

    def __init__(
        self,
        count_words: Callable[[list[str]], list[int]],
        *,
        parts_punctuation: bool = False,
        most_words: int = MOST_WORDS,
    ) -> None:
        """Know no word yet.

        Args:
            parts_punctuation: Whether every ASCII punctuation mark is a token of its own and letter case makes no
                difference, so that `Word,` is one more than `word`; as with BERT's uncased tokenizers.
            most_words: From so many on those that were not met lately are forgotten; up to twice as many are held.
        """
        self._count_words = count_words
        self._parts_punctuation = parts_punctuation
        self._most_words = most_words
        self._known: dict[str, int] = {}
        self._before: dict[str, int] = {}
        """What was known before there was too much of it: words that come again are taken over."""

    def __call__(self, text: str) -> int:
        """Tokens of `text`."""
        words = text.split()
        try:
            return sum(map(self._known.__getitem__, words))
        except KeyError:
            known = self._knowing(words)
            return sum(map(known.__getitem__, words))

    def each(self, texts: Sequence[str]) -> list[int]:
        """Tokens of every text."""
        known = self._known.__getitem__
        try:
            return [sum(map(known, text.split())) for text in texts]
        except KeyError:
            known = self._knowing([word for text in texts for word in text.split()]).__getitem__
            return [sum(map(known, text.split())) for text in texts]

    def _knowing(self, words: Sequence[str]) -> dict[str, int]:
        """Lengths that include those of `words`."""
        # Threads that learn at the same time each keep to the lengths they hold: losing some costs time only.
        known, before = self._known, self._before
        if len(known) >= self._most_words:
            before, known = known, {}
        missing = [word for word in dict.fromkeys(words) if word not in known]
        known.update((word, before[word]) for word in missing if word in before)
        self._learn(known, [word for word in missing if word not in known])
        self._known, self._before = known, before
        return known

    def _learn(self, known: dict[str, int], words: list[str]) -> None:
        if not self._parts_punctuation:
            known.update(zip(words, self._count_words(words), strict=True))
            return
        bare = {word: word.strip(string.punctuation).lower() if word.isascii() else word for word in words}
        unknown = [core for core in dict.fromkeys(bare.values()) if core and core not in known]
        known.update(zip(unknown, self._count_words(unknown), strict=True))
        known.update((word, (known[core] if core else 0) + len(word) - len(core)) for word, core in bare.items())


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """What the chunker keeps to: lengths in tokens of the embedding model, and where it cuts at entries."""

    window: int
    """What the model reads of one text; a chunk with its prefix never exceeds it."""
    count: CountTokens
    chunk_tokens: int | None = None
    """Wanted length of a chunk without its prefix; by default 200 of a window of 256, at most 400."""
    overlap_tokens: int = 50
    """What a window of a long section repeats of the one before (40: recall@10 0.959 instead of 0.971 on the help set,
    which has the long sections)."""
    min_tokens: int = 0
    """Shorter sections join the next one below the same parent."""
    memory_folder: str | None = None
    """Notes directly in it are memory files, of which every entry is a passage."""

    def body_tokens(self, prefix_tokens: int) -> int:
        """Tokens that a chunk's own text may have behind a prefix of that length."""
        room = max(self.window - SPECIAL_TOKENS - prefix_tokens, 1)
        wanted = self.chunk_tokens or self.window * CHUNK_SHARE[0] // CHUNK_SHARE[1]
        return min(wanted, LONGEST_CHUNK_TOKENS, room)

    def each(self, texts: Sequence[str]) -> list[int]:
        """Tokens of every text: half the time of one by one, for the short ones that a note is measured by."""
        return self.count.each(texts) if isinstance(self.count, WordCounter) else [*map(self.count, texts)]


def estimate_tokens(text: str) -> int:
    """A count for models whose tokenizer is not at hand: never far below, as a text that is too long would be cut."""
    wide = sum(1 for character in text if character > "\u2e7f") if not text.isascii() else 0
    return len(text.split()) // 2 + (len(text) - wide) // 5 + wide
