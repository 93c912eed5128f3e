"""The pattern of JsonLogic rules that is no regular expression: `glob`.

Source: tool-map.md §6.2.
"""


def matches(pattern: str, text: str) -> bool:
    """Whether a whole text fits a pattern in which `*` is any run and nothing else is special; letter case counts."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    *middle, last = rest
    end = len(text) - len(last)
    at = len(first)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True
