"""What `/readyz` says: every part, how it stands, and in `warnings` why the whole is less than ready."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from app.runtime import Runtime
from app.webhooks import HookState, Webhooks
from operations.access import is_hidden
from operations.caller import Caller
from operations.errors import VaultError
from operations.index.queries import files_with_problems
from operations.index.values import IndexPhase, IndexState
from operations.index_access import caller_scope, reading_index
from operations.index_document import DocumentState
from operations.periodic_places import format_warnings
from operations.search.service import EmbeddingState
from operations.server_info import VaultFacts, count_files, package_version
from operations.store.watcher import WatchState
from operations.vault import Vault


class Part(BaseModel):
    """One part of the answer."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class IndexPart(Part):
    """The index."""

    state: Literal["building", "ready", "failed"]
    search_mode: Literal["hybrid", "lexical"]
    """`lexical` until there are vectors."""
    notes: int
    chunks: int
    vectors: int
    built_at: datetime | None = None
    progress: float
    """Share of the files that needed a look and had it."""
    error: str | None = None


class IndexDocumentPart(Part):
    """The generated `index.md`."""

    state: DocumentState
    """`foreign`: another file has its name and is left alone."""
    reason: str | None = None


class WatcherPart(Part):
    """How changes by other programs are seen."""

    mode: str | None = None
    state: str
    last_event_at: datetime | None = None
    last_reconcile_at: datetime | None = None


class EmbeddingPart(Part):
    """The model behind search by meaning."""

    model: str | None = None
    state: str
    source: str
    error: str | None = None
    download: float | None = None


class RerankPart(Part):
    """The second model, when there is one."""

    mode: str
    state: str
    """`off`, `ready`, `downloading`, `failed`."""
    error: str | None = None


class CachePart(Part):
    """Where the index is kept."""

    state: Literal["file", "memory"]


class SqlitePart(Part):
    """The database library."""

    driver: str
    extensions: bool


class JournalPart(Part):
    """Where former texts are kept."""

    state: Literal["on", "off", "failed"]
    """`off`: nothing is kept; `failed`: the last change could not be recorded."""
    bytes: int
    oldest_at: datetime | None = None


class WebhookPart(Part):
    """One address that changes are sent to."""

    url: str
    """Without a query."""
    state: HookState
    """`dead`: changes were dropped, as nobody took them for a day."""
    pending: int
    """Changes that are not dealt with yet."""
    last_error: str | None = None


class Readiness(Part):
    """What works and what does not; parts that this version does not have are not listed."""

    status: Literal["ready", "degraded", "building", "failed"]
    """`degraded` is served all the same; `warnings` says what is wrong."""
    version: str
    index: IndexPart
    index_document: IndexDocumentPart
    watcher: WatcherPart
    embedding: EmbeddingPart
    rerank: RerankPart
    cache: CachePart
    sqlite: SqlitePart
    journal: JournalPart
    webhooks: tuple[WebhookPart, ...]
    extraction_failures: tuple[str, ...]
    """Documents without text, and notes that could not be read."""
    recovered: tuple[str, ...]
    """What the last start found damaged or half done, and what became of it."""
    vault: VaultFacts
    warnings: tuple[str, ...]

    @property
    def http_status(self) -> int:
        """503 while nothing is searchable yet, and when the index failed."""
        return 503 if self.status in ("building", "failed") else 200


def readiness(runtime: Runtime, caller: Caller, warnings: tuple[str, ...], webhooks: Webhooks) -> Readiness:
    """How the server stands, as this caller may know it."""
    vault = runtime.vault
    index, embedding = vault.index.state(), vault.search.state()
    notes, documents = count_files(vault, caller)
    problems = [
        *warnings,
        *index.warnings,
        *vault.feed.database.warnings,
        *_embedding_problems(embedding),
        *vault.obsidian.problems(),
        *format_warnings(vault),
    ]
    rerank = vault.search.rerank_state()
    if index.error is not None:
        problems.append(f"the index is not up to date: {index.error}")
    if rerank.error is not None:
        problems.append(f"rerank: {rerank.error}")
    if not index.sqlite_extensions:
        problems.append(
            f"vector search inside SQLite is off: '{index.sqlite_driver}' cannot load the sqlite-vec extension. "
            "Vectors are compared in memory, which takes longer at a start; install the package pysqlite3, or a Python "
            "whose sqlite3 loads extensions"
        )
    document = _index_document(vault, caller)
    if document.state in (DocumentState.FOREIGN, DocumentState.FAILED):
        problems.append(f"index document: {document.reason}")
    hooks = _hooks(webhooks, caller)
    problems += [f"webhook {hook.url}: {hook.last_error}" for hook in hooks if hook.state is not HookState.OK]
    journal = _journal(vault)
    if vault.journal.problem is not None:
        problems.append(f"journal: {vault.journal.problem}")
    if not vault.tree.is_writable:
        problems.append("the vault cannot be written to: every write will be refused")
    if index.watcher is not None and index.watcher.state is WatchState.FAILED:
        problems.append("changes by other programs are seen late: watching failed")
    return Readiness(
        status=_status(index, problems),
        version=package_version(),
        index=IndexPart(
            state=index.phase.value,
            search_mode="hybrid" if index.vectors and embedding.model else "lexical",
            notes=index.notes,
            chunks=index.chunks,
            vectors=index.vectors,
            built_at=index.built_at,
            progress=round(index.progress, 3),
            error=index.error,
        ),
        index_document=document,
        watcher=WatcherPart(
            mode=index.watcher.mode.value if index.watcher else None,
            state=index.watcher.state.value if index.watcher else "elsewhere" if not index.leads else "starting",
            last_event_at=index.watcher.last_event_at if index.watcher else None,
            last_reconcile_at=index.last_reconcile_at,
        ),
        embedding=EmbeddingPart(
            model=embedding.model,
            state=embedding.state,
            source=embedding.source.value,
            error=embedding.error,
            download=embedding.download,
        ),
        rerank=RerankPart(mode="none" if rerank.state == "off" else "blended", state=rerank.state, error=rerank.error),
        cache=CachePart(state="memory" if index.cache.in_memory else "file"),
        journal=journal,
        webhooks=hooks,
        sqlite=SqlitePart(driver=index.sqlite_driver, extensions=index.sqlite_extensions),
        extraction_failures=_failures(vault, caller),
        recovered=(
            *index.recovered,
            *vault.journal.recovered,
            *vault.feed.database.recovered,
            *_settled(vault, caller),
        ),
        vault=VaultFacts(name=vault.config.name, notes=notes, documents=documents),
        warnings=tuple(problems),
    )


def _index_document(vault: Vault, caller: Caller) -> IndexDocumentPart:
    """How the index document stands; there is none for who may not see every folder."""
    if caller.hidden_folders:
        return IndexDocumentPart(state=DocumentState.OFF)
    status = vault.index_document.status()
    return IndexDocumentPart(state=status.state, reason=status.reason)


def _hooks(webhooks: Webhooks, caller: Caller) -> tuple[WebhookPart, ...]:
    """How deliveries go; nothing for who may not see every folder, as the numbers count what happens there too."""
    if caller.hidden_folders:
        return ()
    try:
        return tuple(WebhookPart(**status._asdict()) for status in webhooks.statuses())
    except VaultError:
        return ()


def _journal(vault: Vault) -> JournalPart:
    journal = vault.journal
    try:
        state = journal.state()
    except VaultError as refusal:
        journal.problem = refusal.message
        return JournalPart(state="failed", bytes=0)
    name: Literal["on", "off", "failed"] = "on" if journal.options.enabled else "off"
    return JournalPart(
        state="failed" if journal.problem is not None else name, bytes=state.bytes, oldest_at=state.oldest_at
    )


def _settled(vault: Vault, caller: Caller) -> list[str]:
    """What became of changes that a crash interrupted; only that there was one where it may not be named."""
    return [
        "a crash interrupted a change, which is settled now"
        if any(is_hidden(vault, caller, path) for path in settled.paths)
        else settled.said
        for settled in vault.recovered
    ]


def _failures(vault: Vault, caller: Caller) -> tuple[str, ...]:
    """Files without text; none while the index cannot be asked, as its own part says why."""
    try:
        with reading_index(vault) as connection:
            return tuple(files_with_problems(connection, caller_scope(vault, caller)))
    except VaultError:
        return ()


def _status(index: IndexState, problems: list[str]) -> Literal["ready", "degraded", "building", "failed"]:
    if index.phase is IndexPhase.FAILED:
        return "failed"
    if index.phase is IndexPhase.BUILDING and index.built_at is None and not index.chunks:
        return "building"
    return "degraded" if problems else "ready"


def _embedding_problems(embedding: EmbeddingState) -> list[str]:
    return [f"embedding: {embedding.error}"] if embedding.error else []
