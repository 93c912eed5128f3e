"""A handful of operations of every rendering over a temporary vault, and a facade that serves them."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import MISSING, Field, JsonValue
from starlette.types import Scope

from app.mcp.server import McpOptions
from app.mcp.transport import McpFacade
from app.opening import open_vault as open_from
from app.workers import Workers
from operations.access import require_in_scope
from operations.caller import Caller, Surface
from operations.errors import ErrorCode, VaultError
from operations.registry import (
    Effect,
    Group,
    Operation,
    OperationInput,
    OperationResult,
    Renderer,
    Rendering,
    Run,
    Text,
)
from operations.store.paths import VaultPath
from operations.vault import Vault
from tests.harness import settings_for


class ReadInput(OperationInput):
    path: VaultPath
    start_line: int = Field(default=1, ge=1)
    outline: bool = False


class ReadResult(OperationResult):
    path: VaultPath
    content: str
    total_lines: int


class WriteInput(OperationInput):
    path: VaultPath
    content: str
    overwrite: bool = False
    """Replace the note that is there."""
    request_id: str | None = None


class WriteResult(OperationResult):
    path: VaultPath
    message: str
    advisories: tuple[str, ...] | None = None


class RowsInput(OperationInput):
    count: int = 3
    offset: int = 0


class RowsResult(OperationResult):
    rows: tuple[str, ...]
    total: int
    properties: dict[str, JsonValue] = Field(default_factory=dict)
    advisories: tuple[str, ...] | None = None


class Step(OperationInput):
    operation: Literal["append", "delete"]
    line: int | None = None


class EveryKindInput(OperationInput):
    number: int = 0
    ratio: float = 0.0
    flag: bool = False
    names: tuple[str, ...] = ()
    statuses: str | tuple[str, ...] = "open"
    lines: tuple[int, ...] = ()
    steps: tuple[Step, ...] = ()
    filters: dict[str, JsonValue] | None = None
    kind: Literal["note", "folder"] = "note"
    due: str | MISSING | None = MISSING
    """Date; null clears it."""
    value: JsonValue = None
    text: str = ""
    optional: str | None = None


class EveryKindResult(OperationResult):
    got: dict[str, JsonValue]


class NothingInput(OperationInput):
    pass


class WhoResult(OperationResult):
    principal: str
    scopes: tuple[str, ...]


def read(vault: Vault, _caller: Caller, args: ReadInput) -> ReadResult:
    text = vault.tree.read(args.path, max_bytes=1024 * 1024).data.decode("utf-8")
    lines = text.splitlines(keepends=True)
    return ReadResult(path=args.path, content="".join(lines[args.start_line - 1 :]), total_lines=len(lines))


def show_read(result: ReadResult, args: ReadInput) -> Text | None:
    if args.outline:
        return None
    footer = {"path": str(result.path)}
    if args.start_line > 1:
        footer["lines"] = f"{args.start_line}-{result.total_lines} of {result.total_lines}"
    return Text(result.content, footer)


def rows(_vault: Vault, _caller: Caller, args: RowsInput) -> RowsResult:
    texts = tuple(f"row {number:04}" for number in range(args.count))
    return RowsResult(rows=texts[args.offset :], total=args.count, properties={"empty": None, "odd": float("nan")})


def every_kind(_vault: Vault, _caller: Caller, args: EveryKindInput) -> EveryKindResult:
    return EveryKindResult(got=args.model_dump(mode="json", exclude_unset=True))


class StepsInput(OperationInput):
    count: int = 3
    seconds: float = 0.0


class StepsResult(OperationResult):
    steps: int


def steps(_vault: Vault, caller: Caller, args: StepsInput) -> StepsResult:
    """Two phases of steps, each of which takes its time."""
    for _ in caller.progress.over(range(args.count), "looked at"):
        threading.Event().wait(args.seconds)
    for _ in caller.progress.over(range(args.count), "written", last=True):
        threading.Event().wait(args.seconds)
    return StepsResult(steps=2 * args.count)


def crash(_vault: Vault, _caller: Caller, _args: NothingInput) -> EveryKindResult:
    raise RuntimeError("no such file: /srv/secret/vault.md")


def refuse(_vault: Vault, _caller: Caller, _args: NothingInput) -> EveryKindResult:
    raise VaultError(ErrorCode.TARGET_AMBIGUOUS, "several answer to 'A'", {"candidates": ["A::B", "C::A"]})


def who(_vault: Vault, caller: Caller, _args: NothingInput) -> WhoResult:
    return WhoResult(principal=caller.principal, scopes=tuple(str(scope.path) for scope in caller.scopes))


@dataclass(slots=True)
class Gathering:
    """A call that returns only when `expected` calls are inside at once."""

    expected: int
    barrier: threading.Barrier = field(init=False)

    def __post_init__(self) -> None:
        self.barrier = threading.Barrier(self.expected)

    def run(self, vault: Vault, caller: Caller, args: NothingInput) -> WhoResult:
        self.barrier.wait(timeout=10)
        return who(vault, caller, args)


def declare(
    name: str,
    run: Callable[[Vault, Caller, Any], OperationResult],
    *,
    effect: Effect = Effect.READ,
    rendering: Rendering = Rendering.DATA,
    text: Callable[[Any, Any], Text | None] | None = None,
    idempotent: bool = False,
    large_result: bool = False,
    long: bool = False,
    description: str = "",
) -> Operation:
    """An operation outside the registry, so that tests do not add to what the product serves."""
    annotations = dict(run.__annotations__)
    result_model = annotations.pop("return")
    *_, input_model = annotations.values()
    return Operation(
        name=name,
        title=name.replace("_", " "),
        description=description or f"Test {name}.",
        group=Group.NOTES,
        effect=effect,
        idempotent=idempotent,
        core=False,
        multi_note=False,
        input_model=input_model,
        result_model=result_model,
        rest=(),
        rendering=Rendering.TEXT if text and rendering is Rendering.DATA else rendering,
        text=cast("Renderer | None", text),
        large_result=large_result,
        long=long,
        open_world=False,
        at_once=None,
        run=cast("Run", run),
    )


def writer_into(root: Path) -> Callable[[Vault, Caller, WriteInput], WriteResult]:
    """A write that knows the scope and nothing else; the product's own goes through the store."""

    def write(_vault: Vault, caller: Caller, args: WriteInput) -> WriteResult:
        require_in_scope(caller, args.path)
        file = root / args.path
        if file.exists() and not args.overwrite:
            raise VaultError(ErrorCode.ALREADY_EXISTS, f"'{args.path}' exists")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(args.content.encode("utf-8"))
        return WriteResult(path=args.path, message=f"wrote {args.path}")

    return write


def sample_operations(root: Path) -> tuple[Operation, ...]:
    return (
        declare(
            "vault_read",
            read,
            text=show_read,
            large_result=True,
            description="Read a note. Use vault_map to see the headings first, vault_write to change it.",
        ),
        declare(
            "vault_write", writer_into(root), effect=Effect.DESTRUCTIVE, rendering=Rendering.SENTENCE, idempotent=True
        ),
        declare("vault_rows", rows),
        declare("every_kind", every_kind, effect=Effect.ADDITIVE),
        declare("crash", crash),
        declare("refuse", refuse),
        declare("who", who),
    )


def files_in(root: Path) -> list[str]:
    """Every file below `root`, as paths relative to it."""
    return sorted(file.relative_to(root).as_posix() for file in root.rglob("*") if file.is_file())


def open_vault(root: Path, state_dir: Path, **config: Any) -> Vault:
    root.mkdir(exist_ok=True)
    state_dir.mkdir(exist_ok=True)
    vault = open_from(settings_for(root, state_dir))
    return replace(vault, config=replace(vault.config, name="Home", **config))


def caller_named(principal: str, **rights: Any) -> Caller:
    return Caller(principal=principal, surface=Surface.MCP, **rights)


def caller_in(scope: Scope) -> Caller:
    """The caller the test's gate put into the request's state; a token's name travels in its bearer."""
    headers = dict(scope["headers"])
    return caller_named(headers.get(b"authorization", b"Bearer static").decode("latin-1").removeprefix("Bearer "))


def facade_over(
    vault: Vault,
    operations: tuple[Operation, ...],
    options: McpOptions | None = None,
    *,
    caller_for: Callable[[Scope], Caller] = caller_in,
    threads: int = 16,
) -> McpFacade:
    return McpFacade(
        vault,
        operations,
        options or McpOptions(),
        caller_for=caller_for,
        workers=Workers(threads),
    )
