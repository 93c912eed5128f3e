"""Regular expressions that callers send: compiled by an engine that can be stopped.

Source: tool-map.md §6.2, §6.7.
"""

import re
from typing import Final, TypeAlias

import regex

from operations.errors import ErrorCode, VaultError

MAX_PATTERN: Final = 1000
MAX_REPEATED: Final = 200_000
"""Characters of a pattern times how often they are repeated: the engine compiles each of them, 0.1 s in all."""

# "{3}", "{3,"; not "{e<=1}" or "{,3}". The group is the parenthesis of a repeated group: its repeats multiply.
_REPEAT: Final = re.compile(r"(\)\s*)?\{\s*([0-9]+)")
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
# "(?x)", "(?i-x:": with blanks and remarks between, what a repeat is for cannot be told.
_VERBOSE: Final = re.compile(r"\(\?[A-Za-z0-9-]*x")

Pattern: TypeAlias = "regex.Pattern[str]"


def compiled(pattern: str, flags: int = 0) -> Pattern:
    """A regular expression ready to search.

    Raises:
        VaultError: `query_invalid` when it does not compile, is longer than `MAX_PATTERN` or repeats too much.
    """
    if len(pattern) > MAX_PATTERN:
        raise VaultError(
            ErrorCode.QUERY_INVALID,
            f"the regular expression has {len(pattern)} characters; {MAX_PATTERN} are allowed",
        )
    if _is_repetitive(pattern):
        raise VaultError(
            ErrorCode.QUERY_INVALID,
            f"the regular expression '{pattern}' repeats repeats too often; use smaller numbers, or * and +",
        )
    try:
        return regex.compile(pattern, flags)
    except (regex.error, RecursionError, OverflowError, ValueError) as error:
        raise VaultError(
            ErrorCode.QUERY_INVALID,
            f"the regular expression '{pattern}' does not compile: {str(error) or 'nested too deep'}",
        ) from error


def compiled_literal(text: str, flags: int = 0) -> Pattern:
    """A pattern that finds exactly this text; a line end in it is any line end."""
    return regex.compile(r"(?>\r\n|\n|\r)".join(map(regex.escape, _LINE_END.split(text))), flags)


def _is_repetitive(pattern: str) -> bool:
    """Whether compiling would take long: an upper bound, wherever the repeats stand."""
    multiplies = _VERBOSE.search(pattern) is not None
    of_groups, of_others = 1, 1
    for group, count in _REPEAT.findall(pattern):
        if len(count) > len(str(MAX_REPEATED)):
            return True
        if group or multiplies:
            of_groups *= max(int(count), 1)
        else:
            of_others = max(int(count), of_others)
    return len(pattern) * of_groups * of_others > MAX_REPEATED
