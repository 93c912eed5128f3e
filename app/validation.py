"""What a pydantic refusal means in our codes and words, the same on both surfaces."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Final

import pydantic_core
from pydantic import BaseModel, JsonValue, ValidationError

from app.schemas import input_schema, is_schema, properties_of
from operations.errors import ErrorCode, VaultError

_OF_TYPE: Final = ("_type", "_parsing", "_from_float")
_SAID: Final = 5
"""How many complaints one refusal makes."""
_SHOWN_CHARACTERS: Final = 60
"""How much of a wrong value a refusal repeats."""
_WORDS: Final = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}

Location = tuple[int | str, ...]


def refusal_of(
    error: ValidationError,
    model: type[BaseModel],
    *,
    wrong_type: ErrorCode = ErrorCode.INVALID_PARAMETER,
    elsewhere: Collection[str] = (),
) -> VaultError:
    """The first few complaints about an input as one refusal.

    Args:
        wrong_type: The code for a value that is missing or has the wrong type (`invalid_body` in a JSON body).
        elsewhere: Arguments that the caller does not send beside the others, as the URL's path.
    """
    details = error.errors(include_url=False)
    schema = input_schema(model)
    known = [detail for detail in details if detail["type"] != "extra_forbidden"]
    unknown: dict[Location, list[str]] = {}
    for detail in details:
        if detail["type"] == "extra_forbidden":
            unknown.setdefault(detail["loc"][:-1], []).append(str(detail["loc"][-1]))
    complaints = dict.fromkeys(
        [
            *(_complaint(detail, schema) for detail in known),
            *(_about_unknown(where, names, schema, elsewhere) for where, names in unknown.items()),
        ]
    )
    by_type = not unknown and all(_is_about_type(detail) for detail in known)
    return VaultError(wrong_type if by_type else ErrorCode.INVALID_PARAMETER, "; ".join(list(complaints)[:_SAID]))


def unknown_names(unknown: Iterable[str], known: Collection[str], *, of: str = "") -> str:
    """What is said of names that nothing here has: the nearest ones that there are, then all of them.

    Args:
        of: The argument whose members are meant.
    """
    guesses = {name: get_close_matches(name, known, n=1, cutoff=0.6) for name in unknown}
    named = ", ".join(
        f"'{_clipped(name)}'" + (f" (did you mean '{near[0]}'?)" if near else "") for name, near in guesses.items()
    )
    takes = f"it takes {', '.join(known)}" if known else "it takes none"
    return f"'{of}' has no member {named}; {takes}" if of else f"no argument {named}; {takes}"


def wrong_value(name: str, taken: str, value: object) -> str:
    """What is said of a value that an argument does not take."""
    return f"'{name}' takes {taken}, not {_shown(value)}"


def _is_about_type(detail: pydantic_core.ErrorDetails) -> bool:
    return detail["type"] == "missing" or detail["type"].endswith(_OF_TYPE)


def _about_unknown(
    where: Location, names: Iterable[str], schema: Mapping[str, JsonValue], elsewhere: Collection[str]
) -> str:
    spelled, member = _member_at(where, schema)
    known = [name for name in properties_of(member) if where or name not in elsewhere]
    return unknown_names(names, known, of=spelled)


def _complaint(detail: pydantic_core.ErrorDetails, schema: Mapping[str, JsonValue]) -> str:
    if not detail["loc"]:
        return _reason_of(detail)
    name, member = _member_at(detail["loc"], schema)
    if detail["type"] == "missing":
        return f"'{name}' is required"
    if detail["type"] in {"value_error", "assertion_error"}:
        return f"'{name}': {_reason_of(detail)}"
    taken = _taken_by(member)
    return wrong_value(name, taken, detail["input"]) if taken else f"'{name}': {_reason_of(detail)}"


def _reason_of(detail: pydantic_core.ErrorDetails) -> str:
    said = detail["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return f"{said[:1].lower()}{said[1:]}"


def _member_at(location: Location, schema: Mapping[str, JsonValue]) -> tuple[str, Mapping[str, JsonValue]]:
    """Spelling and schema of what an error is about; steps that only name a union's branch are left out."""
    spelled = ""
    for step in location:
        members = properties_of(schema)
        if isinstance(step, int):
            spelled += f"[{step}]"
            items = schema.get("items")
            schema = items if is_schema(items) else {}
        elif step in members or not spelled:
            spelled += f".{step}" if spelled else step
            schema = members.get(step, {})
    return spelled, schema


def _taken_by(schema: Mapping[str, JsonValue]) -> str:
    """What an argument accepts, in words; empty where the schema does not say it."""
    if isinstance(enum := schema.get("enum"), list):
        return f"one of {', '.join(str(value) for value in enum)}"
    types = schema.get("type")
    known = [
        _WORDS[name]
        for name in (types if isinstance(types, list) else [types])
        if isinstance(name, str) and name in _WORDS
    ]
    return " ".join([" or ".join(known), *_bounds_of(schema)]) if known else ""


def _bounds_of(schema: Mapping[str, JsonValue]) -> Iterator[str]:
    unit = {"string": " characters", "array": " entries"}.get(str(schema.get("type")), "")
    if (least := schema.get("minimum", schema.get("minItems", schema.get("minLength")))) is not None:
        yield f"of at least {least}{unit}"
    if (most := schema.get("maximum", schema.get("maxItems", schema.get("maxLength")))) is not None:
        yield f"of at most {most}{unit}"
    if isinstance(form := schema.get("format"), str):
        yield f"in the form of a {form}"


def _shown(value: object) -> str:
    try:
        return _clipped(pydantic_core.to_json(value).decode("utf-8"))
    except ValueError:  # a lone surrogate has no UTF-8 form
        return "that value"


def _clipped(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
