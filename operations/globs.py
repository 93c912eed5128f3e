"""Shell patterns over vault paths: `*` stays within a segment, `**` crosses them; letter case does not matter."""

import re
from fnmatch import translate
from functools import lru_cache

from operations.errors import ErrorCode, VaultError

MAX_PATTERN = 1000


def matches_glob(pattern: str, path: str) -> bool:
    """Whether a path answers to a pattern; a pattern without `/` is about the last segment alone.

    Raises:
        VaultError: `invalid_parameter` for an overlong pattern.
    """
    if len(pattern) > MAX_PATTERN:
        raise VaultError(
            ErrorCode.INVALID_PARAMETER, f"the glob has {len(pattern)} characters; {MAX_PATTERN} are allowed"
        )
    if "/" not in pattern:
        return _segment_pattern(pattern)(path.rpartition("/")[2].casefold())
    return _matches(tuple(pattern.strip("/").split("/")), tuple(path.split("/")))


def _matches(pattern: tuple[str, ...], segments: tuple[str, ...]) -> bool:
    # Row by row, as for an edit distance: linear in pattern × path, whatever the pattern.
    reachable: set[int] = {0}
    for part in pattern:
        if not reachable:
            return False
        if part == "**":
            reachable = set(range(min(reachable), len(segments) + 1))
            continue
        matcher = _segment_pattern(part)
        reachable = {at + 1 for at in reachable if at < len(segments) and matcher(segments[at].casefold())}
    return len(segments) in reachable


class _SegmentMatcher:
    __slots__ = ("_expression",)

    def __init__(self, pattern: str) -> None:
        self._expression = re.compile(translate(pattern))

    def __call__(self, segment: str) -> bool:
        return self._expression.match(segment) is not None


@lru_cache(maxsize=64)
def _segment_pattern(pattern: str) -> _SegmentMatcher:
    return _SegmentMatcher(pattern.casefold())
