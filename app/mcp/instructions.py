"""What a model is told before its first call (mcp-surface §1)."""

from typing import Final

from operations.caller import Caller
from operations.vault import Vault

INSTRUCTIONS_CHARACTERS: Final = 1200
_NAME_CHARACTERS: Final = 120


def instructions_for(caller: Caller, vault: Vault, served: frozenset[str]) -> str:
    """What a model should know before its first call, from what this caller may do; at most 1,200 characters."""
    steps = [
        f"{doing} {' or '.join(names)}"
        for doing, tools in _USUAL_WAY
        if (names := [name for name in tools if name in served])
    ]
    writes = any(operation_name in served for operation_name in _USUAL_WAY[-1][1])
    sentences = [
        f"The Obsidian vault '{_shortened(vault.config.name)}': Markdown notes with YAML properties and [[links]]. "
        "Paths are relative to the vault.",
        f"The usual way: {'; '.join(steps)}." if steps else "",
        "A target names a heading by its path, A::B; a last part that is unique is enough.",
        "A read gives the note's version; sent as expected_version, it keeps an edit from overwriting a newer note."
        if writes
        else "",
        "A refusal starts with a code and says what would work.",
        *_limits_on(caller, vault),
    ]
    return " ".join(filter(None, sentences))[:INSTRUCTIONS_CHARACTERS]


_USUAL_WAY: Final = (
    ("find notes with", ("vault_search", "vault_search_text", "vault_list")),
    ("look into one with", ("vault_read", "vault_map")),
    ("change a part of it with", ("vault_patch", "vault_replace_text", "vault_append", "vault_set_frontmatter")),
)


def _limits_on(caller: Caller, vault: Vault) -> list[str]:
    limits = [f"Writes reach only '{_shortened(place)}'; reads are not confined." for place in caller.scope_names]
    if caller.read_only or vault.config.read_only:
        limits.append("This connection may read and change nothing.")
    return limits


def _shortened(text: str) -> str:
    """Names and paths have no bound of their own, the instructions have."""
    return text if len(text) <= _NAME_CHARACTERS else f"{text[:_NAME_CHARACTERS]}…"
