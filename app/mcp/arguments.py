"""From the arguments of a tool call to an input model, forgiving what models slip on (mcp-surface §2)."""

import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import Final

import pydantic_core
from pydantic import AliasChoices, JsonValue, ValidationError

from app.schemas import Schema, input_schema, is_schema, null_means_something, properties_of
from app.validation import refusal_of
from operations.errors import ErrorCode, VaultError
from operations.registry import Operation, OperationInput

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")  # "5" and " -12 " once stripped; "5.0", "1_000" and "five" are none
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}(?:\.[0-9]{1,18})?")  # "0.5"; "1e9" and "nan" are none
_BOOLEANS: Final = {"true": True, "false": False}


def parse_arguments(
    operation: Operation, arguments: Mapping[str, JsonValue], ignored: Collection[str] = ()
) -> OperationInput:
    """The call's arguments as the operation's input model.

    Args:
        ignored: Names that are dropped where the tool does not declare them; clients add them to every call.

    Raises:
        VaultError: `invalid_parameter` naming the argument and what it takes, or the code of the argument's own type.
    """
    _require_text(arguments)
    model = operation.input_model
    declared = _declared_names(model)
    schemas = properties_of(input_schema(model))
    keeps_null = null_means_something(model)
    repaired = {
        name: _repaired(value, schemas[name]) if name in schemas else value
        for name, value in arguments.items()
        if (value is not None or name in keeps_null if name in declared else name not in ignored)
    }
    try:
        return model.model_validate(repaired)
    except ValidationError as error:
        raise refusal_of(error, model) from error


def declared_among(operation: Operation, arguments: Mapping[str, JsonValue]) -> list[str]:
    """Names of the declared arguments a call sets, sorted; what else it sends may be text and stays out of logs."""
    return sorted(name for name in _declared_names(operation.input_model) if name in arguments)


@cache
def _declared_names(model: type[OperationInput]) -> tuple[str, ...]:
    """Every name an argument answers to; the schema publishes the first of each."""
    names: list[str] = []
    for name, field in model.model_fields.items():
        choices = field.validation_alias
        if isinstance(choices, AliasChoices):
            names.extend(choice for choice in choices.choices if isinstance(choice, str))
        else:
            names.append(field.alias or name)
    return tuple(names)


def _require_text(arguments: Mapping[str, JsonValue]) -> None:
    try:
        pydantic_core.to_json(arguments)
    except ValueError as error:  # JSON can spell half of a surrogate pair; no file and no answer could hold it
        raise VaultError(
            ErrorCode.INVALID_PARAMETER, "an argument has a lone surrogate, which is no text; send UTF-8"
        ) from error


def _repaired(value: JsonValue, schema: Schema) -> JsonValue:
    """`value` as the one type the schema asks for, where it says the same; anything else is left to validation."""
    match schema.get("type"):
        case "integer" if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
            return int(value)
        case "number" if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
            return float(value)
        case "boolean" if isinstance(value, str):
            return _BOOLEANS.get(value.strip().lower(), value)
        case "array":
            return _repaired_list(value, schema)
        case "object":
            return _repaired_object(value, schema)
        case _:
            return value


def _repaired_list(value: JsonValue, schema: Schema) -> JsonValue:
    parsed = _parsed(value) if isinstance(value, str) else value
    members = parsed if isinstance(parsed, list) else [value]
    items = schema.get("items")
    return [_repaired(member, items) for member in members] if is_schema(items) else members


def _repaired_object(value: JsonValue, schema: Schema) -> JsonValue:
    parsed = _parsed(value) if isinstance(value, str) else value
    if not isinstance(parsed, dict):
        return value
    members = properties_of(schema)
    return {name: _repaired(member, members[name]) if name in members else member for name, member in parsed.items()}


def _parsed(text: str) -> JsonValue:
    """The list or object a text spells as JSON, else the text."""
    if not text.lstrip().startswith(("[", "{")):
        return text
    try:
        parsed: JsonValue = pydantic_core.from_json(text)
    except ValueError:
        return text
    return parsed
