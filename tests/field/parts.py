"""Parts of the server that rows of the tables wait for, and how to see that one has come."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel

from app.settings.model import Settings
from operations.catalogue import OPERATIONS
from operations.deleting import DeleteResult

_TOOLS: Final = frozenset(operation.name for operation in OPERATIONS)


@dataclass(frozen=True, slots=True)
class Part:
    """Something that a step needs."""

    name: str
    is_here: Callable[[], bool]


def tool(name: str) -> Part:
    """A tool, there once it is registered."""
    return Part(name, lambda: name in _TOOLS)


def has_setting(key: str) -> bool:
    """Whether the owner can set `section.key`: a part that has settings comes together with them."""
    model: object = Settings
    for name in key.split("."):
        if not (isinstance(model, type) and issubclass(model, BaseModel)) or name not in model.model_fields:
            return False
        model = model.model_fields[name].annotation
    return True


OAUTH: Final = Part("OAuth", lambda: has_setting("auth.oauth"))
METRICS: Final = Part("metrics", lambda: has_setting("server.metrics"))
TOKENS: Final = Part("named tokens", lambda: has_setting("auth.max_tokens"))
PROMPTS: Final = Part("prompts", lambda: has_setting("prompts.folder"))
INDEX_DOCUMENT: Final = Part("the index document", lambda: has_setting("index.document"))
WATCHER: Final = Part("the watcher", lambda: has_setting("watch.mode"))
DANGLING: Final = Part("dangling links in the answer of a delete", lambda: "dangling" in DeleteResult.model_fields)
