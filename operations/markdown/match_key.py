"""The key under which heading texts and targets meet: both sides are folded, the stored text is never rewritten.

Source: markdown-semantics.md §5.2.
"""

import re
import unicodedata

# NFKC sorts a run of combining marks in quadratic time; text with a longer run (none that people write) is left as is.
LONGEST_MARK_RUN = 64

_TYPOGRAPHY = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2043\ufe58\ufe63\uff0d", "-"),
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff\ufe0e\ufe0f", ""),
    }
)
# "## Two" has leading marks, "#tag" and "####### x" do not.
_LEADING_MARKS = re.compile(r"(#{1,6}+)\s+")
# "Fees ##" has closing marks, "C#" does not.
_CLOSING_MARKS = re.compile(r"(?:^|\s)#+$")
# "Plan ^p1" ends with a block id, "2^10" does not.
_FINAL_ID = re.compile(r"\s\^[A-Za-z0-9-]+$")
# "[[Note|alias]]" and "![[Note]]"; the alias is what is shown.
_WIKILINK = re.compile(r"!?\[\[([^\[\]|]*+)(?:\|([^\[\]]*+))?\]\]")
# "[label](address)" and "[label][key]"; "[x] y" is text.
_LINK = re.compile(r"!?\[([^\[\]]*+)\](?:\((?:[^()]|\([^()]*+\))*+\)|\[[^\[\]]*+\])")
_ESCAPE = re.compile(r"""\\([!-/:-@\[-`{-~])""")
_MARKUP = re.compile(r"[`*]|~~|==")
_UNDERSCORES = re.compile(r"_+")


def match_key(text: str) -> str:
    """`text` folded for comparison; an empty key matches nothing.

    Source: markdown-semantics.md §5.2.
    """
    key = _normalised(_normalised(text.translate(_TYPOGRAPHY)).translate(_TYPOGRAPHY)).strip()
    key = _FINAL_ID.sub("", _CLOSING_MARKS.sub("", _LEADING_MARKS.sub("", key, count=1) if key[:1] == "#" else key))
    key = _LINK.sub(r"\1", _WIKILINK.sub(_shown_text, key))
    key = _MARKUP.sub("", _ESCAPE.sub(r"\1", key))
    key = _UNDERSCORES.sub(_inner_underscores, key)
    return _normalised(" ".join(key.split()).casefold())


def leading_marks(text: str) -> tuple[int, str]:
    """The level that leading `#`s name (0 without any) and the text behind them, trimmed."""
    text = text.strip()
    marks = _LEADING_MARKS.match(text)
    return (0, text) if marks is None else (len(marks.group(1)), text[marks.end() :])


def _normalised(text: str) -> str:
    return text if text.isascii() or _has_endless_marks(text) else unicodedata.normalize("NFKC", text)


def _has_endless_marks(text: str) -> bool:
    run = 0
    for character in text:
        run = run + 1 if unicodedata.combining(character) else 0
        if run > LONGEST_MARK_RUN:
            return True
    return False


def _shown_text(link: re.Match[str]) -> str:
    return str(link.group(1) if link.group(2) is None else link.group(2))


def _inner_underscores(run: re.Match[str]) -> str:
    text, start, end = run.string, run.start(), run.end()
    is_inside = start > 0 and end < len(text) and text[start - 1].isalnum() and text[end].isalnum()
    return run.group() if is_inside else ""
