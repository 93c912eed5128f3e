"""From settings to an open vault: tree, locks, extractor, index and search, put together once."""

from pathlib import Path

from app.settings.configs import embedding_config, index_config, search_options, vault_config
from app.settings.declaring import ConfigError
from app.settings.model import Settings
from operations.checks.scripts import CheckScripts
from operations.extraction.extractor import Extractor, ocr_is_installed
from operations.index.database import Driver, IndexUnavailableError
from operations.index.indexer import ChunkFile
from operations.index.service import VaultIndex
from operations.index_document import DocumentOptions, IndexDocument
from operations.kinds import kind_by_suffix
from operations.obsidian_settings import ObsidianSettings
from operations.search.choosing import ChosenEmbedder, choose_embedder
from operations.search.chunker import CHUNKER_VERSION, chunk_source
from operations.search.reranker import CrossEncoder, Reranker
from operations.search.service import SearchService
from operations.search.tokens import TokenBudget, estimate_tokens
from operations.store.change_feed import ChangeFeed, FeedOptions
from operations.store.feed_database import FILE_NAME, FeedDatabase
from operations.store.journal import Journal
from operations.store.journal_records import JournalOptions
from operations.store.locks import PathLocks, state_folder
from operations.store.paths import guards
from operations.store.request_memory import RequestMemory
from operations.store.tree import Tree
from operations.task_settings import task_rules
from operations.vault import RerankMode, Vault, VaultConfig

WINDOW_WITHOUT_MODEL = 256
_QUIET_TIMES = 4
"""How much longer the index document waits for silence than the index: it is written for people, and synced."""


def open_vault(settings: Settings, *, driver: Driver | None = None) -> Vault:
    """The vault that the settings name, opened for work; `Vault.start` begins to index it.

    Args:
        driver: The SQLite of the index; by default the best one there is.

    Raises:
        ConfigError: There is no vault, or it cannot be opened, or no SQLite here is new enough.
        VaultError: `storage_unavailable` when the state folder cannot be made.
    """
    config = vault_config(settings)
    path, state_dir = settings.vault.path, settings.server.state_dir
    if path is None or state_dir is None:
        raise ConfigError("vault.path: no vault was named; give its folder as argument or in VAULT_PATH")
    state = state_folder(Path(state_dir))
    tree = Tree.open(path)
    obsidian = ObsidianSettings(tree)
    rules = task_rules(obsidian)
    extractor = Extractor(
        max_pages=config.max_document_pages,
        seconds=config.extract_seconds,
        ocr=settings.documents.ocr and ocr_is_installed(),
    )
    embedding = embedding_config(settings)
    chosen = choose_embedder(embedding)
    budget = token_budget(settings, chosen)
    locks = PathLocks(state, settings.locks.wait_seconds)
    feed = ChangeFeed(tree, FeedDatabase(state / FILE_NAME), locks, feed_options(settings, config))
    try:
        index = VaultIndex(
            tree,
            index_config(settings, chunk_digest(settings, chosen, budget), rules),
            extractor=extractor,
            chunk_file=_chunker(budget),
            on_chunks=lambda: search.chunks_changed(),
            on_change=lambda: document.changed(),
            listener=feed,
            driver=driver,
        )
    except IndexUnavailableError as error:
        raise ConfigError(str(error)) from error
    document = IndexDocument(tree, index, locks, feed, document_options(settings, config))
    is_named = settings.rerank.mode is not RerankMode.NONE and settings.rerank.path is None
    search = SearchService(
        index,
        embedding,
        budget,
        search_options(settings),
        chosen=chosen,
        reranker=reranker_of(settings),
        reranker_to_fetch=settings.rerank.model if is_named else None,
    )
    return Vault(
        tree=tree,
        obsidian=obsidian,
        statuses=rules.statuses,
        locks=locks,
        feed=feed,
        requests=RequestMemory(feed.database, PathLocks(state / "requests", settings.locks.wait_seconds)),
        config=config,
        state_dir=state,
        extractor=extractor,
        index=index,
        index_document=document,
        search=search,
        journal=Journal(state / "journal", journal_options(settings)),
        scripts=CheckScripts(path, may_be_writable=settings.maintenance.allow_writable_scripts)
        if settings.maintenance.scripts
        else None,
    )


def document_options(settings: Settings, config: VaultConfig) -> DocumentOptions:
    """How the index document is made; of a hidden folder it says nothing."""
    series = settings.index.exclude_dirs
    return DocumentOptions(
        mode=settings.index.document,
        vault=config.name,
        quiet_seconds=_QUIET_TIMES * settings.watch.debounce_seconds,
        series=tuple(one for one in series if one and not any(guards(hidden, one) for hidden in config.hidden_folders)),
    )


def feed_options(settings: Settings, config: VaultConfig) -> FeedOptions:
    """What the change feed tells of, and what goes when."""
    return FeedOptions(
        kind_of=lambda path: kind_by_suffix(path, config.document_suffixes),
        is_hidden=lambda path: any(guards(folder, path) for folder in config.hidden_folders),
        max_bytes=config.max_note_bytes,
        max_days=settings.changes.max_days,
        trash_days=0 if config.read_only else settings.delete.retention_days,
    )


def journal_options(settings: Settings) -> JournalOptions:
    """How former texts are kept."""
    journal = settings.journal
    return JournalOptions(
        enabled=journal.enabled, required=journal.required, max_days=journal.max_days, max_bytes=journal.max_bytes
    )


def token_budget(settings: Settings, chosen: ChosenEmbedder) -> TokenBudget:
    """The lengths of passages: those of the model's window, in its own tokens."""
    embedder, search = chosen.embedder, settings.search
    return TokenBudget(
        window=embedder.window if embedder is not None else WINDOW_WITHOUT_MODEL,
        count=embedder.count_tokens if embedder is not None else estimate_tokens,
        chunk_tokens=search.chunk_tokens,
        overlap_tokens=search.chunk_overlap_tokens,
        min_tokens=search.chunk_min_tokens,
        memory_folder=settings.memory.dir if settings.memory.enabled else None,
    )


def chunk_digest(settings: Settings, chosen: ChosenEmbedder, budget: TokenBudget) -> str:
    """Names everything that decides where passages begin and end."""
    search = settings.search
    tokens = chosen.embedder.name if chosen.embedder is not None else "estimate"
    lengths = (budget.window, search.chunk_tokens, search.chunk_overlap_tokens, search.chunk_min_tokens)
    return f"{CHUNKER_VERSION}/{tokens}/{'/'.join(map(str, lengths))}/{budget.memory_folder}"


def reranker_of(settings: Settings) -> Reranker | None:
    """The cross-encoder, where one is asked for; it is loaded by the first search."""
    rerank = settings.rerank
    if rerank.mode is RerankMode.NONE:
        return None
    if rerank.path is not None:
        return CrossEncoder.of_folder(rerank.path)
    return CrossEncoder.of_cache(rerank.model, embedding_config(settings).cache_dir)


def _chunker(budget: TokenBudget) -> ChunkFile:
    return lambda source: chunk_source(source, budget)
