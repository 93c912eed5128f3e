"""The operation registry: every operation is declared once and both surfaces are made from that declaration."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict

from operations.caller import Caller, Surface
from operations.vault import Vault


class OperationInput(BaseModel):
    """Arguments of one operation; an unknown one is an error that names it."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class OperationResult(BaseModel):
    """Answer of one operation; absent values are left out of the JSON, so `None` means "not there"."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class WriteResult(OperationResult):
    """Answer of an operation that writes."""

    advisories: tuple[str, ...] | None = None
    replayed: bool | None = None
    """The call was sent before under the same key: this is what it answered then."""


def not_given() -> None:
    """The default of an argument for which null is a value, which is that it is cleared."""


class Whole:
    """Marks a list (`Annotated[tuple[str, ...], Whole()]`) whose texts can hold commas: in a query it only repeats."""


class Effect(Enum):
    """What a call may do to the vault."""

    READ = "read"
    ADDITIVE = "additive"
    DESTRUCTIVE = "destructive"


class Group(Enum):
    """Sections of the catalogue."""

    SEARCH = "search"
    NOTES = "notes"
    LINKS = "links"
    TASKS = "tasks"
    FILES = "files"
    HISTORY = "history"
    VAULT = "vault"
    LOADING = "loading"


@dataclass(frozen=True, slots=True)
class Route:
    """One REST binding. `path` uses `{name}` for a segment and `{name:path}` for the rest of the URL."""

    method: str
    path: str
    handwritten: bool = False
    """The route has a historic shape (raw bodies, plugin headers) and a function of its own in `app/rest`."""
    variant: str = ""
    """What else selects the operation on a shared route, e.g. `Target-Type: text`."""
    renamed: tuple[tuple[str, str], ...] = ()
    """Further names of query parameters, as (name here, argument): `q` of a search is its `query`."""
    spread: tuple[str, ...] = ()
    """Arguments that are objects and whose members are query parameters too: `due_before` is `due`'s `before`."""
    leaves_out: tuple[str, ...] = ()
    """Arguments that another route of the operation takes in place of those of this one."""
    bare: str = ""
    """The member of the result that is the whole answer on this route, where history gave it no object around it."""

    @property
    def spelled(self) -> str:
        """The route as a person writes it, e.g. `PATCH /vault/<path>`."""
        path = self.path.replace(":path}", "}").replace("{", "<").replace("}", ">")
        return f"{self.method} {path}" + (f" ({self.variant})" if self.variant else "")


@dataclass(frozen=True, slots=True)
class ShownPicture:
    """A picture as a client shows it."""

    media_type: str
    content: str
    """Base64."""


@dataclass(frozen=True, slots=True)
class Text:
    """What a text tool answers: the text byte for byte, then a footer of `key: value` lines."""

    body: str
    footer: Mapping[str, str] = field(default_factory=dict[str, str])
    pictures: tuple[ShownPicture, ...] = ()
    """Come before the text, which says what they are."""
    is_cut_inside_lines: bool = True
    """Whether a line longer than one answer is shown in part; it is refused otherwise."""


Renderer = Callable[[OperationResult, OperationInput], Text | None]
"""Turns a result into text; `None` where this call's answer is data (an outline, properties)."""


class Rendering(Enum):
    """How MCP shows a result (the structured form is the same everywhere)."""

    DATA = "data"
    SENTENCE = "sentence"
    TEXT = "text"
    LIST = "list"
    """Text as in `TEXT`, and the structured form beside it."""


Run = Callable[[Vault, Caller, OperationInput], OperationResult]
RunAtOnce = Callable[[Vault, Caller, OperationInput], OperationResult | None]


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a call waits for that has nothing to answer yet; it is held back without a thread of its own."""

    seconds: float
    is_over: Callable[[], bool]
    """Whether there may be something by now, as far as this process knows; costs nothing."""
    look: Callable[[], bool]
    """Whether there may be something by now, other processes asked too; costs a look at a file."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One entry of the registry."""

    name: str
    title: str
    description: str
    group: Group
    effect: Effect
    idempotent: bool
    core: bool
    multi_note: bool
    input_model: type[OperationInput]
    result_model: type[OperationResult]
    rest: tuple[Route, ...]
    rendering: Rendering
    text: Renderer | None
    large_result: bool
    long: bool
    open_world: bool
    """It reaches things outside the vault."""
    at_once: RunAtOnce | None
    run: Run
    waiting: Callable[[Vault, Caller, OperationInput], Waiting | None] | None = None

    @property
    def writes(self) -> bool:
        """Whether a call can change the vault; loading a tool changes a list of ours."""
        return self.effect is not Effect.READ and self.group is not Group.LOADING


In = TypeVar("In", bound=OperationInput)
Out = TypeVar("Out", bound=OperationResult)

_declared: dict[str, Operation] = {}


def operation(
    *,
    name: str,
    title: str,
    group: Group,
    effect: Effect,
    rest: tuple[Route, ...],
    idempotent: bool = False,
    core: bool = False,
    multi_note: bool = False,
    large_result: bool = False,
    long: bool = False,
    open_world: bool = False,
    text: Callable[[Any, Any], Text | None] | None = None,
    at_once: Callable[[Vault, Caller, Any], OperationResult | None] | None = None,
    waiting: Callable[[Vault, Caller, Any], Waiting | None] | None = None,
    beside_data: bool = False,
) -> Callable[[Callable[[Vault, Caller, In], Out]], Callable[[Vault, Caller, In], Out]]:
    """Register the decorated function; its annotations name the models, its docstring is the description.

    Args:
        text: Renderer of a text tool, called with the decorated function's models; without it a writing operation
            shows its `message`, a reading one its data.
        beside_data: The text says the same as the data and comes beside it, instead of in its place.
        large_result: The answer can exceed what clients show by default.
        at_once: The result of a call that waits for nothing, else `None`. It may be called in the event loop, as the
            way to a thread and back costs more than such a call.
        waiting: What a call waits for, `None` as soon as it has something to answer. A surface asks before it runs the
            operation, and again when what was waited for may be there.
        long: It may take more than a moment and tells its steps to `caller.progress`.
    """

    def declare(function: Callable[[Vault, Caller, In], Out]) -> Callable[[Vault, Caller, In], Out]:
        input_model, result_model = _models_of(function)
        if name in _declared:
            raise ValueError(f"operation {name} is declared twice")
        _declared[name] = Operation(
            name=name,
            title=title,
            description=" ".join((function.__doc__ or "").split()),
            group=group,
            effect=effect,
            idempotent=idempotent,
            core=core,
            multi_note=multi_note,
            input_model=input_model,
            result_model=result_model,
            rest=rest,
            rendering=_rendering_of(effect, result_model, has_text=text is not None, beside_data=beside_data),
            text=text,
            large_result=large_result,
            long=long,
            open_world=open_world,
            at_once=at_once,
            waiting=waiting,
            run=cast("Run", function),  # `invoke` passes an instance of `input_model`
        )
        return function

    return declare


def declared_operations() -> Iterator[Operation]:
    """Every operation declared so far: in the catalogue's order once there is one, else in order of declaration."""
    return iter(_declared.values())


def arrange(order: Sequence[str]) -> tuple[Operation, ...]:
    """Put the declared operations into an order, for all who list them.

    Raises:
        ValueError: `order` does not name one of them.
    """
    arranged = sorted(_declared.values(), key=lambda operation: order.index(operation.name))
    _declared.clear()
    _declared.update((operation.name, operation) for operation in arranged)
    return tuple(arranged)


def spelled(caller: Caller, name: str) -> str | None:
    """How this caller calls an operation (`vault_append`, or `POST /vault/<path>`); `None` when it has no such one."""
    found = _declared.get(name)
    if found is None or name in caller.switched_off or (caller.allowed is not None and name not in caller.allowed):
        return None
    if caller.surface is Surface.REST:
        return found.rest[0].spelled if found.rest else None
    return name


def _models_of(function: Callable[..., object]) -> tuple[type[OperationInput], type[OperationResult]]:
    annotations = dict(function.__annotations__)
    result_model = annotations.pop("return")
    *_, input_model = annotations.values()
    return input_model, result_model


def _rendering_of(
    effect: Effect, result_model: type[OperationResult], *, has_text: bool, beside_data: bool
) -> Rendering:
    if has_text:
        return Rendering.LIST if beside_data else Rendering.TEXT
    if effect is not Effect.READ and "message" in result_model.model_fields:
        return Rendering.SENTENCE
    return Rendering.DATA
