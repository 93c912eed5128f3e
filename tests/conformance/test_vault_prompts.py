"""Every row of `vault-prompts.yaml`: what is listed, and the text that a client gets."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from tests.conformance.cases import Case, cases_of
from tests.harness import Server, fill, serving

BUILT_IN = {"vault-orientation", "memory-review", "daily-review"}


class Repeated(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    times: int


class PromptCase(Case):
    vault: dict[str, str | Repeated]
    list_: list[dict[str, Any]] | None = Field(default=None, alias="list")
    get: str | None = None
    arguments: dict[str, str] = Field(default_factory=dict)
    text: str | None = None
    error: int | None = None


CASES = cases_of("vault-prompts.yaml", PromptCase)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_prompts_written_as_notes_are_as_the_table_says(case: PromptCase, tmp_path: Path) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    fill(root, {path: _text(content) for path, content in case.vault.items()})
    with serving(root, tmp_path / "state") as server:
        if case.list_ is not None:
            assert listed(server) == case.list_
        if case.get is not None:
            answer = server.rpc("prompts/get", {"name": case.get, "arguments": case.arguments})
            if case.error is not None:
                assert answer["error"]["code"] == case.error
            else:
                [message] = answer["result"]["messages"]
                assert (message["role"], message["content"]["text"]) == ("user", case.text)


def listed(server: Server) -> list[dict[str, Any]]:
    prompts: list[dict[str, Any]] = server.rpc("prompts/list")["result"]["prompts"]
    return [prompt for prompt in prompts if prompt["name"] not in BUILT_IN]


def _text(content: str | Repeated) -> str:
    return content if isinstance(content, str) else content.text * content.times
