"""What each part of the server needs to know, taken from the settings as plain values."""

import os
from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import SecretStr

from app.auth.static_key import API_KEY_VARIABLE
from app.settings.declaring import ConfigError
from app.settings.file import nearest
from app.settings.machine import local_timezone, platform_cache_folder
from app.settings.model import Layer, Settings, Source
from app.settings.vault_sections import PeriodicSettings
from operations.index.task_rows import DEFAULT_TASK_RULES, TaskRules
from operations.index.values import IndexConfig
from operations.search.choosing import EmbeddingConfig
from operations.search.engine import SearchOptions
from operations.search.model_cache import BUNDLED_WORD
from operations.store.paths import FolderPath
from operations.vault import PeriodicChoice, VaultConfig


def vault_config(settings: Settings) -> VaultConfig:
    """What the operations need to know, as plain values."""
    if settings.vault.name is None:
        raise ConfigError("vault.path: no vault was named; give its folder as argument or in VAULT_PATH")
    return VaultConfig(
        name=settings.vault.name,
        hidden_folders=settings.vault.hidden_folders,
        protected_paths=_unless_auto(settings.vault.protected_paths),
        web_ports=settings.web.ports,
        web_proxy=settings.web.proxy,
        prompts_folder=settings.prompts.folder,
        memory_folder=settings.memory.dir if settings.memory.enabled else None,
        read_only=settings.server.read_only,
        require_version=settings.writes.require_version,
        timestamp=settings.notes.timestamp,
        timestamp_key=settings.notes.timestamp_key,
        field_order=settings.notes.field_order,
        max_note_bytes=settings.notes.max_bytes,
        document_suffixes=settings.documents.suffixes,
        documents_folder=settings.documents.folder,
        max_document_bytes=settings.documents.max_bytes,
        max_document_pages=settings.documents.max_pages,
        extract_seconds=settings.documents.extract_seconds,
        attachment_suffixes=settings.files.write_suffixes,
        attachment_folders=settings.files.write_folders,
        max_written_bytes=settings.files.write_max_bytes,
        text_suffixes=settings.files.text_suffixes,
        max_file_bytes=settings.files.max_bytes,
        max_picture_bytes=settings.files.max_image_bytes,
        max_pictured_pages=settings.files.max_pdf_pages,
        delete_mode=settings.delete.mode,
        orphan_exclude_folders=_unless_auto(settings.links.orphan_exclude_folders),
        periodic=_periodic_choices(settings.periodic),
        week_start=settings.periodic.week_start,
        text_in_documents=settings.search.text_in_documents,
        timezone=settings.server.timezone or local_timezone(),
    )


def index_config(settings: Settings, chunk_digest: str, task_rules: TaskRules = DEFAULT_TASK_RULES) -> IndexConfig:
    """What the index needs to know, as plain values.

    Args:
        chunk_digest: Names the chunking code and the lengths it keeps.
        task_rules: What the vault's own settings count as a task.
    """
    if settings.vault.path is None:
        raise ConfigError("vault.path: no vault was named; give its folder as argument or in VAULT_PATH")
    return IndexConfig(
        root=settings.vault.path,
        cache_path=settings.index.cache_path,
        chunk_digest=chunk_digest,
        task_rules=task_rules,
        hidden_folders=settings.vault.hidden_folders,
        unsearched_folders=settings.search.exclude_dirs,
        honour_obsidian_excludes=settings.search.honour_obsidian_excludes,
        document_suffixes=settings.documents.suffixes,
        searches_files=settings.files.enabled,
        text_suffixes=settings.files.text_suffixes,
        max_note_bytes=settings.notes.max_bytes,
        max_searched_bytes=settings.index.max_file_bytes,
        max_document_bytes=settings.documents.max_bytes,
        reconcile_seconds=settings.index.reconcile_seconds,
        watch_mode=settings.watch.mode,
        watch_poll_seconds=settings.watch.poll_seconds,
        watch_debounce_seconds=settings.watch.debounce_seconds,
        busy_seconds=settings.locks.wait_seconds,
    )


def embedding_config(settings: Settings) -> EmbeddingConfig:
    """What the embedding model needs to know, as plain values."""
    embedding = settings.embedding
    key = settings.embedding_api_key
    return EmbeddingConfig(
        cache_dir=embedding.cache_dir or platform_cache_folder(os.environ) / "vault-mcp" / "models",
        enabled=embedding.enabled,
        model=embedding.model or BUNDLED_WORD,
        path=embedding.path,
        endpoint=embedding.endpoint,
        api_key=key.get_secret_value() if key is not None else None,
        threads=embedding.threads,
        idle_unload_seconds=embedding.idle_unload_seconds,
    )


def search_options(settings: Settings) -> SearchOptions:
    """How search is tuned, as plain values."""
    search = settings.search
    return SearchOptions(
        k=search.default_k,
        candidates=search.candidates,
        rrf_k=search.rrf_k,
        lexical_floor=search.lexical_floor,
        pin_max_chunks=search.pin_max_chunks,
        per_note_cap=search.per_note_cap,
        spelling=search.spelling,
        excerpt_tokens=search.excerpt_tokens,
        document_weight=search.document_weight,
        file_weight=search.file_weight,
        rerank_candidates=settings.rerank.candidates,
    )


def check_tool_names(settings: Settings, known: Iterable[str]) -> None:
    """Refuse to start with a name in `server.disabled_tools` that no tool has.

    Raises:
        ConfigError: Names the first unknown tool and the nearest known one.
    """
    names = tuple(known)
    for name in settings.server.disabled_tools:
        if name not in names:
            place = settings.sources.get("server.disabled_tools", Source(Layer.DEFAULT)).place
            raise ConfigError(f"server.disabled_tools ({place}): no tool is named {name!r}{nearest(name, names)}")


def require_api_key(settings: Settings) -> SecretStr:
    """The static key, which a server cannot do without.

    Raises:
        ConfigError: There is none; says how to make one.
    """
    if settings.api_key is None:
        raise ConfigError(
            f"{API_KEY_VARIABLE} is not set; make a key with `openssl rand -hex 32`, or start with --generate-key"
        )
    return settings.api_key


def _unless_auto(folders: tuple[FolderPath, ...] | Literal["auto"]) -> tuple[FolderPath, ...] | None:
    return folders if isinstance(folders, tuple) else None


def _periodic_choices(periodic: PeriodicSettings) -> Mapping[str, PeriodicChoice]:
    choices = {
        period: PeriodicChoice(chosen.folder, chosen.format, chosen.template)
        for period, chosen in (
            ("daily", periodic.daily),
            ("weekly", periodic.weekly),
            ("monthly", periodic.monthly),
            ("quarterly", periodic.quarterly),
            ("yearly", periodic.yearly),
        )
    }
    return {period: choice for period, choice in choices.items() if choice != PeriodicChoice()}
