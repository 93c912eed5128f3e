"""`vault_server_info`: what is served, and what this caller may do."""

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

from operations.access import is_hidden
from operations.caller import Caller, Profile
from operations.errors import VaultError
from operations.index.indexer import DOCUMENT, NOTE
from operations.index.queries import count_kinds
from operations.index.values import IndexPhase
from operations.index_access import caller_scope, is_index_complete, reading_index
from operations.kinds import Kind, kind_of
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, operation
from operations.store.tree import EntryKind
from operations.store.walk import walk
from operations.tool_lists import existing, is_active, is_allowed
from operations.vault import Vault

PROTOCOL = "2026-07-28"
"""Latest revision of MCP that is spoken; older ones are too."""


class ServerInfoInput(OperationInput):
    """`vault_server_info` takes no arguments."""


class VaultFacts(OperationResult):
    """The vault as this caller sees it."""

    name: str
    notes: int
    documents: int


class CallerFacts(OperationResult):
    """Who is asking."""

    token: str
    profile: Profile
    tools_active: int
    """Tools in the caller's list; on REST every one it may use has its route."""
    read_only: bool
    write_scope: str | None = None


class IndexFacts(OperationResult):
    """How search stands."""

    state: str
    """`building`, `ready` or `failed`."""
    search_mode: str
    """`hybrid`, or `lexical` until there are vectors."""
    progress: float | None = None
    """Share of the files that had a look, while it is building."""


class FeatureFacts(OperationResult):
    """What the owner left on."""

    memory: bool
    files: bool
    fetch: bool
    apps: bool
    """Search results come with a page to show."""
    semantic: bool
    """Search goes by meaning too."""


class ServerInfoResult(OperationResult):
    """What is served, and what this caller may do."""

    name: str
    version: str
    protocol: str
    vault: VaultFacts
    index: IndexFacts
    you: CallerFacts
    features: FeatureFacts


@operation(
    name="vault_server_info",
    title="About this server",
    group=Group.VAULT,
    effect=Effect.READ,
    core=True,
    rest=(Route("GET", "/server"),),
)
def server_info(vault: Vault, caller: Caller, _args: ServerInfoInput) -> ServerInfoResult:
    """Say what vault this is and what you may do: read-only, write scope, number of tools."""
    notes, documents = count_files(vault, caller)
    index = _index(vault)
    there = {one.name for one in existing(vault, caller)}
    shown = [one for one in existing(vault, caller) if is_allowed(caller, one) and is_active(caller, one)]
    return ServerInfoResult(
        name="vault-mcp",
        version=package_version(),
        protocol=PROTOCOL,
        vault=VaultFacts(name=vault.config.name, notes=notes, documents=documents),
        index=index,
        you=CallerFacts(
            token=caller.principal,
            profile=caller.profile,
            tools_active=len(shown),
            read_only=caller.read_only or vault.config.read_only,
            write_scope=", ".join(caller.scope_names) or None,
        ),
        features=FeatureFacts(
            memory="vault_get_memory" in there,
            files="vault_read_file" in there,
            fetch="vault_fetch" in there,
            apps=bool(caller.apps),
            semantic=index.search_mode == "hybrid",
        ),
    )


def _index(vault: Vault) -> IndexFacts:
    state = vault.index.state()
    return IndexFacts(
        state=state.phase.value,
        search_mode="hybrid" if state.vectors and vault.search.state().model else "lexical",
        progress=round(state.progress, 3) if state.phase is IndexPhase.BUILDING else None,
    )


def count_files(vault: Vault, caller: Caller) -> tuple[int, int]:
    """Notes and documents that this caller can see; from the index once it is complete."""
    if is_index_complete(vault):
        with suppress(VaultError), reading_index(vault) as connection:
            kinds = count_kinds(connection, caller_scope(vault, caller))
            return kinds.get(NOTE, 0), kinds.get(DOCUMENT, 0)
    counted = dict.fromkeys(Kind, 0)
    for entry in walk(vault.tree, is_visible=lambda path, _is_folder: not is_hidden(vault, caller, path)):
        if entry.kind is EntryKind.FILE:
            counted[kind_of(vault, entry.path)] += 1
    return counted[Kind.NOTE], counted[Kind.DOCUMENT]


def package_version() -> str:
    """The installed version, or `0` where the code runs without being installed."""
    try:
        return version("vault-mcp")
    except PackageNotFoundError:
        return "0"
