"""`obsidian://open` links of results (mcp-surface §10)."""

import re
from functools import lru_cache
from urllib.parse import quote

_NOT_IN_HEADING_LINK = re.compile(r"[:#|^\\\r\n]|%%|\[\[|\]\]")  # `Step 1: drain` → `Step 1  drain`; `C++` stays


def obsidian_uri(vault_name: str, path: str = "", *, heading: str | None = None, block: str | None = None) -> str:
    """The link that opens `path` in Obsidian, at a heading's text or a block id when one is given.

    Every byte but `A-Z a-z 0-9 - . _ ~` is percent-encoded, so the link survives inside markdown, HTML and shells.
    """
    link = _link_to(vault_name)
    if not path:
        return link
    target = path
    if heading is not None:
        target += "#" + heading_fragment(heading)
    elif block is not None:
        target += "#^" + block
    return f"{link}&file={_encoded(target)}"


def heading_fragment(heading: str) -> str:
    """A heading's text as Obsidian writes it behind the `#` of a link."""
    return " ".join(_NOT_IN_HEADING_LINK.sub(" ", heading).split())


@lru_cache(maxsize=64)
def _link_to(vault_name: str) -> str:
    return f"obsidian://open?vault={_encoded(vault_name)}"


def _encoded(text: str) -> str:
    return quote(text, safe="", errors="surrogateescape")
