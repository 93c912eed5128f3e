"""The rows of the attack table that run over the whole server, and the parts that other rows wait for."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml
from pydantic import BaseModel, ConfigDict

from tests.conformance.cases import TABLES, TableLoader
from tests.field.parts import INDEX_DOCUMENT, METRICS, OAUTH, PROMPTS, TOKENS, Part, tool

AREAS: Final = frozenset(
    {
        "bearer",
        "derived surfaces",
        "fetch",
        "hidden folder",
        "host",
        "key rotation",
        "logs",
        "named token",
        "origin",
        "paths",
        "routes",
        "sizes",
        "start",
        "untrusted text",
        "write scope",
    }
)
OAUTH_ROUTES: Final = frozenset({"/token", "/register", "/revoke", "/authorize"})
OAUTH_STEPS: Final = frozenset({"grant", "refresh", "authorize", "consent", "revoke"})
TOOL_OF: Final[Mapping[str, str]] = {
    "read": "vault_read",
    "write": "vault_write",
    "append": "vault_append",
    "delete": "vault_delete",
    "move": "vault_move",
    "list": "vault_list",
    "create_folder": "vault_create_folder",
    "delete_folder": "vault_delete_folder",
    "search": "vault_search",
    "server_info": "vault_server_info",
    "list_tags": "vault_list_tags",
    "overview": "vault_overview",
    "orphans": "vault_find_orphans",
    "recent": "vault_recent_notes",
    "broken_links": "vault_find_broken_links",
    "tasks": "vault_list_tasks",
    "backlinks": "vault_get_backlinks",
    "batch": "vault_batch",
    "history": "vault_history",
    "undo": "vault_undo",
    "changes": "vault_changes",
    "fetch": "vault_fetch",
}
"""The tool behind each thing that a `call` does; `tools_list` is no tool."""


class SecurityCase(BaseModel):
    """One row."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    area: str
    title: str
    rule: str
    standard: str | None = None
    given: dict[str, Any] = {}
    steps: tuple[dict[str, Any], ...]
    after: dict[str, Any] = {}
    note: str | None = None


def security_cases() -> list[SecurityCase]:
    """Every row of the areas that this suite answers for, in order; `tests/oauth` runs those that sign in."""
    table = yaml.load((TABLES / "security.yaml").read_text(encoding="utf-8"), TableLoader)  # noqa: S506 - a SafeLoader
    cases = [SecurityCase.model_validate(row) for row in table["cases"] if row["area"] in AREAS]
    return [case for case in cases if not OAUTH_STEPS.intersection(step["op"] for step in case.steps)]


def missing_parts(case: SecurityCase) -> frozenset[str]:
    """Names of the parts that steps of a row need and the server does not have yet."""
    needed = [part for step in case.steps for part in _needed_by(step)]
    if "index.document" in case.given.get("config", {}):
        needed.append(INDEX_DOCUMENT)
    return frozenset(part.name for part in needed if not part.is_here())


def runs(case: SecurityCase, step: Mapping[str, Any]) -> bool:
    """Whether the server has all that a step needs."""
    if "index.document" in case.given.get("config", {}) and not INDEX_DOCUMENT.is_here():
        return False
    return all(part.is_here() for part in _needed_by(step))


def _needed_by(step: Mapping[str, Any]) -> Iterator[Part]:
    if step["op"] in OAUTH_STEPS or step.get("path") in OAUTH_ROUTES:
        yield OAUTH
    if any("resource_metadata" in part for part in step.get("expect", {}).get("challenge", ())):
        yield OAUTH
    if any(name.endswith("auth.db") for name in step.get("expect", {}).get("mode", ())):
        yield OAUTH
    if str(step.get("bearer", "")).startswith("token:") or step["op"] == "cli":
        yield TOKENS
    if str(step.get("bearer", "")).startswith(("access:", "external:")):
        yield OAUTH
    if step.get("path") == "/metrics":
        yield METRICS
    if "Idempotency-Key" in step.get("headers", ()):
        yield tool("vault_history")
    if step["op"] in ("stream", "stream_state"):
        yield tool("vault_changes")
    doing: str | None = step.get("do")
    if doing is not None and doing in TOOL_OF:
        yield tool(TOOL_OF[doing])
    elif doing is not None and doing.startswith("prompt "):
        yield PROMPTS
    for inner in ("step", "first", "second"):
        if inner in step:
            yield from _needed_by(step[inner])


WAITING: Final[Mapping[str, frozenset[str]]] = {}
"""Rows with steps that cannot run yet, and the parts those wait for; their other steps run."""
