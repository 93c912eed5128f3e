"""JSON that a caller sends as text: property values, replacement orders."""

import json
import math
from typing import NoReturn, cast

from pydantic import JsonValue

from operations.errors import ErrorCode, VaultError
from operations.markdown.text import require_writable

MAX_DEPTH = 64


def parse_json(text: str, *, what: str) -> JsonValue:
    """The value a JSON text stands for; integers of any size stay exact.

    Args:
        what: What the text is, for the message, e.g. `a property value`.

    Raises:
        VaultError: `invalid_body` with line and column, or for `NaN`, `Infinity`, half a surrogate pair.
    """
    try:
        value = cast("JsonValue", json.loads(text, parse_constant=_refuse_constant))
    except json.JSONDecodeError as error:
        raise VaultError(
            ErrorCode.INVALID_BODY,
            f"{what} is JSON, and this is not: {error.msg} at line {error.lineno}, column {error.colno}; "
            'a text needs double quotes ("approved"), a list brackets (["a", "b"])',
        ) from error
    except RecursionError as error:
        raise VaultError(ErrorCode.INVALID_BODY, f"{what} is nested more than {MAX_DEPTH} deep") from error
    require_storable(value)
    return value


def require_storable(value: JsonValue, depth: int = 0) -> None:
    """Refuse values whose texts a note cannot hold, wherever they stand.

    Raises:
        VaultError: `invalid_body`.
    """
    if depth > MAX_DEPTH:
        raise VaultError(ErrorCode.INVALID_BODY, f"the value is nested more than {MAX_DEPTH} deep")
    match value:
        case str():
            require_writable(value)
        case float() if not math.isfinite(value):
            raise VaultError(ErrorCode.INVALID_BODY, f"{value} is no JSON value; send a finite number or a text")
        case list():
            for member in value:
                require_storable(member, depth + 1)
        case dict():
            for key, member in value.items():
                require_writable(key)
                require_storable(member, depth + 1)
        case _:
            return


def _refuse_constant(name: str) -> NoReturn:
    raise VaultError(ErrorCode.INVALID_BODY, f"{name} is no JSON value")
