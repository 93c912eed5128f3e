"""How memory files begin: the ones a new vault gets, and one that the first entry makes.

Source: memory-and-prompts.md §1, §2.
"""

import logging
from dataclasses import dataclass
from typing import Final

from operations.errors import ErrorCode, VaultError
from operations.markdown.memory import APPEND_ONLY, LIVING, NEWEST_FIRST
from operations.markdown.yaml_values import scalar_text
from operations.periodic_places import today_in
from operations.store.paths import VaultPath
from operations.store.writes import create
from operations.vault import Vault

logger = logging.getLogger(__name__)

SCOPE_TITLE: Final = "Scope of this file"
_PLACEHOLDER: Final = ("To be written by the owner: what belongs into this file, and what does not.",)


@dataclass(frozen=True, slots=True)
class MemoryTemplate:
    """A memory file before its first entry."""

    name: str
    scope: tuple[str, ...]
    """Lines of the callout."""
    sections: tuple[str, ...] = ()
    policy: str = APPEND_ONLY


TEMPLATES: Final = (
    MemoryTemplate(
        "Me",
        (
            "Facts about the owner that stay true for long: people, places, health, work, what was lived through.",
            "Not here: what the owner thinks of things (Opinions) and what changes from week to week (Routines).",
        ),
        ("People", "Work and learning", "Home and health", "History"),
    ),
    MemoryTemplate(
        "Opinions",
        (
            "Likes, dislikes and judgements, each with its reason where one was given.",
            "An opinion that changed gets a new entry; the old one stays, as it shows how the view moved.",
        ),
        ("Likes", "Dislikes", "Views"),
    ),
    MemoryTemplate(
        "Principles",
        (
            "Rules the owner decides by, in their own words, and decisions that show them at work.",
            "Not here: preferences without consequence, which are Opinions.",
        ),
        ("Values", "How decisions are made"),
    ),
    MemoryTemplate(
        "Routines",
        (
            "How days and weeks go at present, and what is being done about what.",
            "This file describes now: entries that no longer hold may be removed.",
        ),
        ("Daily", "Weekly", "Under way"),
        LIVING,
    ),
    MemoryTemplate(
        "Agents",
        (
            "What assistants are asked to do or to leave, and corrections they were given.",
            "Not here: anything about the owner that matters without an assistant.",
        ),
        ("Style", "Working together", "Corrections"),
    ),
)


def bootstrap_memory(vault: Vault) -> None:
    """Make the first memory files where there is no memory folder; what stands there, an empty folder too, stays so.

    Never fails: a memory that cannot be made is logged.
    """
    folder = vault.config.memory_folder
    try:
        if folder is None or vault.config.read_only or vault.tree.find(VaultPath(folder)) is not None:
            return
        for template in TEMPLATES:
            text = rendered(template, today_in(vault).isoformat())
            create(vault.tree, VaultPath(f"{folder}/{template.name}.md"), text.encode())
    except VaultError as refusal:
        # Another process of the same vault may begin at the same moment: the files it made are as good.
        if refusal.code is not ErrorCode.ALREADY_EXISTS:
            logger.warning("the memory folder was not made", extra={"cause": refusal.message})
        return
    logger.info("memory folder made", extra={"files": len(TEMPLATES)})


def started_file(name: str, today: str) -> str:
    """A file that the first entry makes."""
    return rendered(MemoryTemplate(name, _PLACEHOLDER), today)


def rendered(template: MemoryTemplate, today: str) -> str:
    """The text of a new memory file."""
    lines = [
        "---",
        f"title: {scalar_text(template.name)}",
        f"created: {today}",
        "type: profile",
        f"entry-policy: {template.policy}",
        "---",
        f"# {template.name}",
        "",
        f"> [!info] {SCOPE_TITLE}",
        *(f"> {line}" for line in template.scope),
        "",
    ]
    for section in template.sections:
        lines.extend((f"## {section} {NEWEST_FIRST}", ""))
    return "\n".join(lines)
