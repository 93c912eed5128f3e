"""`vault_server_info`: what is served, and what this caller may do."""

from importlib.metadata import PackageNotFoundError, version

from operations.access import is_hidden
from operations.caller import Caller
from operations.kinds import Kind, kind_of
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, declared_operations, operation
from operations.store.tree import EntryKind
from operations.store.walk import walk
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
    tools_active: int
    read_only: bool
    write_scope: str | None = None


class ServerInfoResult(OperationResult):
    """What is served, and what this caller may do."""

    name: str
    version: str
    protocol: str
    vault: VaultFacts
    you: CallerFacts


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
    usable = [one for one in declared_operations() if may_use(vault, caller, one.name, writes=one.writes)]
    return ServerInfoResult(
        name="vault-mcp",
        version=package_version(),
        protocol=PROTOCOL,
        vault=VaultFacts(name=vault.config.name, notes=notes, documents=documents),
        you=CallerFacts(
            token=caller.principal,
            tools_active=len(usable),
            read_only=caller.read_only or vault.config.read_only,
            write_scope=", ".join(caller.scope_names) or None,
        ),
    )


def may_use(vault: Vault, caller: Caller, name: str, *, writes: bool) -> bool:
    """Whether a caller can use an operation at all."""
    if name in caller.switched_off or (caller.allowed is not None and name not in caller.allowed):
        return False
    return not (writes and (caller.read_only or vault.config.read_only))


def count_files(vault: Vault, caller: Caller) -> tuple[int, int]:
    """Notes and documents that this caller can see."""
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
