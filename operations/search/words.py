"""Words as the lexical arm sees them: folded, stemmed, and without those that decide nothing.

The full-text index tokenizes and stems by itself (`porter unicode61 remove_diacritics 2`). What is here does the same
in Python for the few texts of one search: which words of the query a hit holds, and which passage answers best.

Source: search.md §3.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

# "KE-8842071" is "KE" and "8842071"; "under_score" is two words, as the tokenizer of the index has it.
WORD: Final = re.compile(r"[^\W_]+")

_FUNCTION_WORDS: Final = """
    a about after all also am an and any are as at be because been before being both but by can could did do does doing
    done each few for from get gets getting got had has have having he her here him his how i if in into is it its just
    let may me might more most much must my no nor not now of off on once only onto or other our out over own per please
    same shall she should so some such than that the their them then there these they this those through to too under
    until up upon us very was way we were what when where which while who whom whose why will with within without would
    you your
    don doesn didn isn aren wasn weren won wouldn couldn shouldn hasn haven hadn ll ve re t s d m
"""
STOP_WORDS: Final = frozenset(_FUNCTION_WORDS.split())
"""English function words. A query of nothing else is taken as it is."""

_LONGEST_STEMMED: Final = 64
_VOWELS: Final = frozenset("aeiou")


def fold(text: str) -> str:
    """`text` in lower case and without diacritics."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFD", text.lower())
    return unicodedata.normalize("NFC", "".join(char for char in decomposed if not unicodedata.combining(char)))


def words_of(text: str) -> list[str]:
    """The words of `text` in order, folded."""
    return WORD.findall(fold(text))


def stems_of(text: str) -> list[str]:
    """The stems of the words of `text`, in order."""
    return [stem(word) for word in words_of(text)]


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """The stem of a folded word, as the index has it.

    Source: M. F. Porter, "An algorithm for suffix stripping", 1980, with the limits of SQLite's tokenizer: words of one
    or two bytes and very long ones stay as they are.
    """
    if not 3 <= len(word.encode()) <= _LONGEST_STEMMED or word.isdigit():
        return word
    for step in (_plural, _past, _final_y, _double_suffix, _suffix, _residual, _final_e):
        word = step(word)
    return word


def _is_vowel(word: str, index: int) -> bool:
    letter = word[index]
    return letter in _VOWELS or (letter == "y" and index > 0 and not _is_vowel(word, index - 1))


def _measure(word: str) -> int:
    """How many times a run of vowels is followed by a consonant."""
    count, was_vowel = 0, False
    for index in range(len(word)):
        letter = word[index]
        is_vowel = letter in _VOWELS or (letter == "y" and index > 0 and not was_vowel)
        count += was_vowel and not is_vowel
        was_vowel = is_vowel
    return count


def _has_vowel(word: str) -> bool:
    return any(_is_vowel(word, index) for index in range(len(word)))


def _ends_double(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and not _is_vowel(word, len(word) - 1)


def _ends_short(word: str) -> bool:
    """Whether the word ends with consonant, vowel, consonant, the last none of `w x y`."""
    last = len(word) - 1
    return (
        last >= 2
        and not _is_vowel(word, last)
        and _is_vowel(word, last - 1)
        and not _is_vowel(word, last - 2)
        and word[last] not in "wxy"
    )


def _ends_with(word: str, suffix: str) -> bool:
    """Whether the word is more than the suffix: the index's stemmer never takes a suffix for a word that it is."""
    return len(word) > len(suffix) and word.endswith(suffix)


def _plural(word: str) -> str:
    if word.endswith("s"):
        if _ends_with(word, "sses") or _ends_with(word, "ies"):
            return word[:-2]
        if not word.endswith("ss"):
            return word[:-1]
    return word


def _past(word: str) -> str:
    if _ends_with(word, "eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    base = next((word[: -len(end)] for end in ("ed", "ing") if _ends_with(word, end)), None)
    if base is None or not _has_vowel(base):
        return word
    if base.endswith(("at", "bl", "iz")):
        return base + "e"
    if _ends_double(base) and base[-1] not in "lsz":
        return base[:-1]
    return base + "e" if _measure(base) == 1 and _ends_short(base) else base


def _final_y(word: str) -> str:
    return f"{word[:-1]}i" if word.endswith("y") and _has_vowel(word[:-1]) else word


_DOUBLE_SUFFIXES: Final = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("logi", "log"),
    ("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"),
    ("ation", "ate"), ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"),
    ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"),
)  # fmt: skip
_SUFFIXES: Final = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""),
)  # fmt: skip
_RESIDUALS: Final = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ou", "ism", "ate", "iti", "ous",
    "ive", "ize",
)  # fmt: skip


def _double_suffix(word: str) -> str:
    return _replaced(word, _DOUBLE_SUFFIXES)


def _suffix(word: str) -> str:
    return _replaced(word, _SUFFIXES)


def _replaced(word: str, suffixes: tuple[tuple[str, str], ...]) -> str:
    for suffix, replacement in suffixes:
        if _ends_with(word, suffix):
            base = word[: -len(suffix)]
            return base + replacement if _measure(base) > 0 else word
    return word


def _residual(word: str) -> str:
    for suffix in _RESIDUALS:
        if _ends_with(word, suffix):
            base = word[: -len(suffix)]
            return base if _measure(base) > 1 else word
    if word.endswith(("sion", "tion")) and _measure(word[:-3]) > 1:
        return word[:-3]
    return word


def _final_e(word: str) -> str:
    if word.endswith("e"):
        base = word[:-1]
        measure = _measure(base)
        if measure > 1 or (measure == 1 and not _ends_short(base)):
            word = base
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word
