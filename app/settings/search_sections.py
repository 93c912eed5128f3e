"""Sections about the index, search and the models."""

from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from app.settings.declaring import Env, MayBeEmpty, Otherwise, Section, Word
from app.settings.values import (
    Count,
    Folders,
    OptionalPath,
    OptionalText,
    OptionalWhole,
    Seconds,
    Size,
    Switch,
    Text,
    Whole,
    read_number,
    read_switch_or_auto,
    read_word,
)
from operations.index_document import DocumentMode
from operations.store.watcher import WatchMode
from operations.vault import MEBIBYTE, RerankMode


def _read_document_mode(value: object) -> object:
    """YAML reads an unquoted `on` as a switch."""
    switch = read_switch_or_auto(value)
    if isinstance(switch, bool):
        return DocumentMode.ON if switch else DocumentMode.OFF
    return switch


class IndexSettings(Section):
    """The index behind search, tags, properties and links; derived from the files, it can be deleted at any time."""

    cache_path: Annotated[OptionalPath, Word("path, empty"), Env("INDEX_CACHE_PATH"), MayBeEmpty()] = Path("index.db")
    """Where it is kept, seen from the state folder; empty keeps it in memory."""
    document: Annotated[DocumentMode, BeforeValidator(_read_document_mode), Word("auto, on, off")] = DocumentMode.AUTO
    """The generated `index.md`, one line for each note; `auto` keeps one right that is there already."""
    exclude_dirs: Annotated[Folders, Word("prefixes"), Env("INDEX_EXCLUDE_DIRS")] = ()
    """Folders that get one line in it, in place of one for each note."""
    reconcile_seconds: Annotated[Whole, Env("INDEX_RECONCILE_SECONDS")] = 900
    """Full comparison with the disk, beside watching."""
    max_file_bytes: Size = 8 * MEBIBYTE
    """Larger notes and text files are not searched."""


class WatchSettings(Section):
    """Seeing what other programs change in the vault."""

    mode: Annotated[WatchMode, BeforeValidator(read_word), Word("auto, native, poll")] = WatchMode.AUTO
    """How changes are seen; `poll` works on network and container mounts too."""
    poll_seconds: Seconds = 2.0
    """Pause between two looks when polling."""
    debounce_seconds: Annotated[Seconds, Env("WATCH_DEBOUNCE_SECONDS")] = 0.5
    """Quiet time after a change before it is indexed; at most 2 s under a storm."""


class SearchSettings(Section):
    """Ranking and what is searched; every default is the best measured on two judged sets."""

    default_k: Annotated[Whole, Field(le=50), Word("1…50"), Env("SEARCH_DEFAULT_K")] = 6
    """Hits when a call does not say how many."""
    exclude_dirs: Annotated[Folders, Word("prefixes"), Env("SEARCH_EXCLUDE_DIRS")] = ()
    """Folders that are not searched."""
    honour_obsidian_excludes: Switch = True
    """Files that Obsidian excludes are not searched."""
    candidates: Whole = 50
    """Hits each arm gives to the fusion."""
    rrf_k: Whole = 10
    """Constant of the rank fusion."""
    lexical_floor: Annotated[float, BeforeValidator(read_number), Field(ge=0, le=1), Word("number")] = 0.05
    """Least weight of the lexical arm."""
    pin_max_chunks: Count = 5
    """An identifier that occurs in at most so many passages comes first; 0 switches the rule off."""
    per_note_cap: Annotated[OptionalWhole, Otherwise("auto")] = None
    """Passages of one note among the hits; auto is 2, above nine hits a third of them."""
    spelling: Switch = True
    """Repair misspelled words of a query."""
    excerpt_tokens: Whole = 160
    """Longest excerpt."""
    chunk_tokens: Annotated[OptionalWhole, Otherwise("auto, ≤ 400"), Env("CHUNK_TARGET_TOKENS")] = None
    """Longest passage; auto is what fits the model's window."""
    chunk_overlap_tokens: Annotated[Count, Env("CHUNK_OVERLAP_TOKENS")] = 50
    """What neighbouring passages of a long section share."""
    chunk_min_tokens: Annotated[Count, Env("CHUNK_MIN_TOKENS")] = 0
    """Shorter sections join the next one; 0 keeps them apart."""
    document_weight: Annotated[Seconds, Field(le=10), Word("number")] = 0.9
    """Weight of documents beside notes."""
    file_weight: Annotated[Seconds, Field(le=10), Word("number")] = 0.5
    """Weight of other files beside notes."""
    text_in_documents: Switch = True
    """Literal text search looks into documents too."""


class EmbeddingSettings(Section):
    """The model behind search by meaning."""

    enabled: Annotated[Switch, Env("EMBEDDING_ENABLED")] = True
    """Off searches by words alone and loads no model."""
    model: Annotated[OptionalText, Word("name"), Otherwise("bundled"), Env("EMBED_MODEL")] = None
    """Any model fastembed knows, downloaded when it is not in the cache."""
    path: OptionalPath = None
    """A folder with an ONNX model and its tokenizer."""
    endpoint: Annotated[OptionalText, Word("url")] = None
    """An OpenAI-compatible embeddings service; its key is VAULT_MCP_EMBEDDING_API_KEY."""
    cache_dir: Annotated[OptionalPath, Otherwise("platform cache folder")] = None
    """Where downloaded models are kept."""
    threads: Annotated[OptionalWhole, Otherwise("cores")] = None
    """Threads of the model."""
    idle_unload_seconds: Count = 0
    """Forget the model after so long without use; 0 keeps it."""


class RerankSettings(Section):
    """A second model that orders the best hits anew."""

    mode: Annotated[RerankMode, BeforeValidator(read_word), Word("none, blended"), Env("RERANK_MODE")] = RerankMode.NONE
    """`blended` mixes its judgement with the ranks."""
    model: Annotated[Text, Word("name")] = "Xenova/ms-marco-MiniLM-L-6-v2"
    """Any cross-encoder fastembed knows, downloaded when the mode asks for it."""
    path: OptionalPath = None
    """A folder with a cross-encoder as ONNX."""
    candidates: Whole = 20
    """Hits it looks at."""
