"""All settings in one value, where each came from, and the list of what can be set."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import cache
from typing import cast

from pydantic import Field, SecretStr
from pydantic.fields import FieldInfo

from app.auth.static_key import API_KEY_VARIABLE
from app.settings.access_sections import AuthSettings, LimitSettings
from app.settings.automation_sections import ChangeSettings, MaintenanceSettings, PromptSettings, Webhooks, WebSettings
from app.settings.declaring import NONE_WORD, CanBeNone, Env, MayBeEmpty, Otherwise, Section, Word
from app.settings.search_sections import EmbeddingSettings, IndexSettings, RerankSettings, SearchSettings, WatchSettings
from app.settings.server_sections import LogSettings, McpSettings, ServerSettings
from app.settings.values import KIBIBYTE
from app.settings.vault_sections import (
    DeleteSettings,
    DocumentSettings,
    FileSettings,
    JournalSettings,
    LinkSettings,
    LockSettings,
    MemorySettings,
    NoteSettings,
    PeriodicSettings,
    VaultSettings,
    WriteSettings,
)
from operations.store.paths import FolderPath
from operations.vault import MEBIBYTE


class Layer(StrEnum):
    """Where a value comes from; a later layer wins."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    ARGUMENT = "argument"


@dataclass(frozen=True, slots=True)
class Source:
    """Layer of a value and the place in it: `config.yaml, line 3`, a variable's name."""

    layer: Layer
    place: str = ""

    def __str__(self) -> str:
        return f"{self.layer} ({self.place})" if self.place else str(self.layer)


class Settings(Section):
    """All settings as they hold for one run; made by `load_settings`, which fills what the defaults leave open."""

    vault: VaultSettings = VaultSettings()
    server: ServerSettings = ServerSettings()
    locks: LockSettings = LockSettings()
    writes: WriteSettings = WriteSettings()
    notes: NoteSettings = NoteSettings()
    documents: DocumentSettings = DocumentSettings()
    files: FileSettings = FileSettings()
    delete: DeleteSettings = DeleteSettings()
    journal: JournalSettings = JournalSettings()
    index: IndexSettings = IndexSettings()
    watch: WatchSettings = WatchSettings()
    search: SearchSettings = SearchSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    rerank: RerankSettings = RerankSettings()
    links: LinkSettings = LinkSettings()
    periodic: PeriodicSettings = PeriodicSettings()
    memory: MemorySettings = MemorySettings()
    changes: ChangeSettings = ChangeSettings()
    webhooks: Webhooks = ()
    """Addresses that changes are sent to; each has a url, secret_env, and may have events and paths."""
    maintenance: MaintenanceSettings = MaintenanceSettings()
    prompts: PromptSettings = PromptSettings()
    web: WebSettings = WebSettings()
    mcp: McpSettings = McpSettings()
    auth: AuthSettings = AuthSettings()
    limits: LimitSettings = LimitSettings()
    log: LogSettings = LogSettings()
    api_key: SecretStr | None = None
    """The static key; from the environment only."""
    webhook_secrets: Mapping[str, SecretStr] = Field(default_factory=dict, repr=False)
    """The variables named in `webhooks`, those that are set."""
    oidc_client_secret: SecretStr | None = None
    """Secret of this server at the OpenID provider; from the environment only."""
    embedding_api_key: SecretStr | None = None
    """Key of the embeddings service; from the environment only."""
    sources: Mapping[str, Source] = Field(default_factory=dict, repr=False)
    """Source of every value that is not a built-in default, by key."""


@dataclass(frozen=True, slots=True)
class Declared:
    """One setting as documentation and loading see it."""

    key: str
    type: str
    default: str
    kept_variable: str | None
    meaning: str
    can_be_empty: bool
    is_list: bool
    empty_counts: bool
    """An empty variable is the value "empty" and not the same as none at all."""
    is_path: bool

    @property
    def variable(self) -> str:
        """The name every setting has in the environment."""
        return f"VAULT_MCP_{self.key.upper().replace('.', '__')}"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of `vault-mcp config`."""

    key: str
    value: str
    source: str


@cache
def declared_settings() -> Mapping[str, Declared]:
    """Every setting by key, in the order of declaration."""
    found: dict[str, Declared] = {}
    for section, field in Settings.model_fields.items():
        if (model := _section_of(field)) is not None:
            found |= {key: _declared(key, inner) for key, inner in _fields_below(model, f"{section}.")}
        elif any(isinstance(item, Word) for item in field.metadata):
            found[section] = _declared(section, field)
    return found


def effective(settings: Settings) -> tuple[Row, ...]:
    """The value and source of every setting, in order of declaration; the key is masked."""
    rows = [
        Row(key, as_text(value_at(settings, key)), str(settings.sources.get(key, Source(Layer.DEFAULT))))
        for key in declared_settings()
    ]
    has_key = settings.api_key is not None
    layer = Layer.ENVIRONMENT if has_key else Layer.DEFAULT
    rows.append(Row(API_KEY_VARIABLE, "***" if has_key else NONE_WORD, str(layer)))
    return tuple(rows)


def as_text(value: object) -> str:
    """A value in the spelling that both layers read."""
    match value:
        case None | ():
            return NONE_WORD
        case FolderPath() if value.is_root:
            return "/"
        case bool():
            return str(value).lower()
        case tuple():
            return ", ".join(map(str, value))
        case Enum():
            return str(value.value)
        case float() if value.is_integer():
            return str(int(value))
        case _:
            return str(value)


def _section_of(field: FieldInfo) -> type[Section] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def _fields_below(model: type[Section], prefix: str) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        inner = _section_of(field)
        if inner is None:
            yield f"{prefix}{name}", field
        else:
            yield from _fields_below(inner, f"{prefix}{name}.")


def _declared(key: str, field: FieldInfo) -> Declared:
    def last(kind: type[Env | Word | Otherwise]) -> str | None:
        found = [item for item in field.metadata if isinstance(item, kind)]
        return None if not found else (found[-1].name if isinstance(found[-1], Env) else found[-1].text)

    word = last(Word)
    if word is None or field.description is None:
        raise TypeError(f"{key} is declared without a Word or a docstring")
    is_optional = field.default is None
    is_emptied = any(isinstance(item, MayBeEmpty) for item in field.metadata)
    is_list = isinstance(field.default, tuple) or any(isinstance(item, CanBeNone) for item in field.metadata)
    if is_optional:
        default = last(Otherwise) or NONE_WORD
    elif word in {"size", "1 KiB…10 MiB"}:
        default = size_text(field.default)
    else:
        default = as_text(field.default)
    return Declared(
        key=key,
        type=word,
        default=default,
        kept_variable=last(Env),
        meaning=" ".join(field.description.split()),
        can_be_empty=is_optional or is_list or is_emptied,
        is_list=is_list,
        empty_counts=is_emptied,
        is_path=word == "path",
    )


def value_at(settings: Settings, key: str) -> object:
    value: object = settings
    for name in key.split("."):
        value = cast("object", getattr(value, name))
    return value


def size_text(size: int) -> str:
    for unit, factor in (("MiB", MEBIBYTE), ("KiB", KIBIBYTE)):
        if size % factor == 0:
            return f"{size // factor} {unit}"
    return str(size)
