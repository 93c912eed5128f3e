"""Sections about what runs beside the calls: the change feed, checks, prompts, the web."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, field_validator

from app.settings.declaring import Section, Word
from app.settings.values import Folders, OneFolder, OptionalText, Ports, Switch, Whole, read_items, read_maps
from operations.store.paths import FolderPath


class ChangeSettings(Section):
    """The change feed."""

    max_days: Whole = 30
    """How long a change is kept in it."""


class WebhookSettings(Section):
    """One address that changes are sent to."""

    url: str
    events: Annotated[tuple[Literal["created", "modified", "deleted", "moved"], ...], BeforeValidator(read_items)] = ()
    paths: Folders = ()
    secret_env: str

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must be an address such as https://n8n.example.org/webhook/vault")
        return url

    @field_validator("secret_env")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        if not name.isascii() or not name.isidentifier():
            raise ValueError("must be the name of an environment variable, which holds the secret")
        return name

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


Webhooks = Annotated[tuple[WebhookSettings, ...], BeforeValidator(read_maps), Word("list of maps")]


class MaintenanceSettings(Section):
    """The checks of the vault."""

    scripts: Switch = True
    """Run the vault's own checks, the Python files in `.scripts`."""
    allow_writable_scripts: Switch = False
    """Run them even if the server's user could write to them."""


class PromptSettings(Section):
    """Prompts that the owner writes as notes."""

    folder: OneFolder = FolderPath("Prompts")
    """Where they lie."""


class WebSettings(Section):
    """Pages of the public web."""

    fetch: Switch = False
    """Serve `vault_fetch`; a model that follows what a note or page says could send text away in an address."""
    ports: Ports = ()
    """Ports beside 80 and 443."""
    proxy: Annotated[OptionalText, Word("url")] = None
    """An HTTP proxy for it, which then decides where requests may go."""
