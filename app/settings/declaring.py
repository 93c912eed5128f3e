"""How a setting is declared: the marks that documentation and loading read, and the section it stands in.

Adding a setting is one line in its section, a row in `docs/settings.md` and a line in `config.example.yaml`.
Source: settings.md; vault-contract.md §15.
"""

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

NONE_WORD = "none"


class ConfigError(Exception):
    """A configuration that cannot be used; the message names the key and the place, never a secret."""


@dataclass(frozen=True, slots=True)
class Env:
    """The environment name a setting keeps beside `VAULT_MCP_<SECTION>__<KEY>`."""

    name: str


@dataclass(frozen=True, slots=True)
class Word:
    """What the documentation calls the type."""

    text: str


@dataclass(frozen=True, slots=True)
class MayBeEmpty:
    """Empty is a value of its own, which is not the default."""


@dataclass(frozen=True, slots=True)
class CanBeNone:
    """A list with another default than a list: `none` empties it."""


@dataclass(frozen=True, slots=True)
class Otherwise:
    """What holds while an optional setting is unset."""

    text: str


class Section(BaseModel):
    """One section of `config.yaml`; a key it does not know refuses to start."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        arbitrary_types_allowed=True,
        hide_input_in_errors=True,
    )
