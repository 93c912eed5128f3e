"""Prompts and completion over MCP (mcp-surface §8)."""

from typing import Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from operations.builtin_prompts import builtin_prompts
from operations.caller import Caller
from operations.completion import completions_for
from operations.prompts import Prompt, prompts_in_notes
from operations.vault import Vault

MAX_COMPLETIONS: Final = 100


def prompts_for(vault: Vault, caller: Caller) -> list[Prompt]:
    """Every prompt of a caller: built-in ones first; a note's prompt hides a built-in one of its name."""
    written = prompts_in_notes(vault, caller)
    names = {prompt.name for prompt in written}
    return [*(prompt for prompt in builtin_prompts(vault, caller) if prompt.name not in names), *written]


def list_prompts(vault: Vault, caller: Caller) -> types.ListPromptsResult:
    """The answer to `prompts/list`."""
    return types.ListPromptsResult(prompts=[_listed(prompt) for prompt in prompts_for(vault, caller)])


def get_prompt(vault: Vault, caller: Caller, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    """The answer to `prompts/get`: one message of the user.

    Raises:
        MCPError: There is no such prompt for this caller.
    """
    found = next((prompt for prompt in prompts_for(vault, caller) if prompt.name == params.name), None)
    if found is None:
        raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
    text = found.render(params.arguments or {})
    message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.GetPromptResult(description=found.description, messages=[message])


def complete(vault: Vault, caller: Caller, params: types.CompleteRequestParams) -> types.CompleteResult:
    """The answer to `completion/complete`: values for the argument of a prompt, nothing for anything else."""
    prompt = params.ref.name if isinstance(params.ref, types.PromptReference) else ""
    values = completions_for(vault, caller, prompt, params.argument.name, params.argument.value) if prompt else []
    return types.CompleteResult(
        completion=types.Completion(
            values=values[:MAX_COMPLETIONS], total=len(values), has_more=len(values) > MAX_COMPLETIONS
        )
    )


def _listed(prompt: Prompt) -> types.Prompt:
    return types.Prompt(
        name=prompt.name,
        title=prompt.title,
        description=prompt.description,
        arguments=[
            types.PromptArgument(name=argument.name, description=argument.description, required=False)
            for argument in prompt.arguments
        ],
    )
