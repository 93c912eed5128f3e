"""Whether an answer is what `openapi.yaml` promises for its route: status, media type, headers, body."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import quote

import yaml
from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from operations.errors import ErrorCode

CONTRACT_FILE: Final = Path(__file__).parents[2] / "openapi.yaml"
CONTRACT: Final[dict[str, Any]] = yaml.safe_load(CONTRACT_FILE.read_text(encoding="utf-8"))
METHODS: Final = frozenset({"get", "put", "post", "patch", "delete"})

_NAME: Final = "openapi"
_REGISTRY: Final[Registry[Any]] = Registry().with_resource(_NAME, DRAFT202012.create_resource(CONTRACT))
_STATUS: Final = {code.value: code.status for code in ErrorCode}
_FAILURE: Final = ("components", "responses", "Failure")

Pointer = tuple[str, ...]


class Answered(Protocol):
    """An HTTP answer, as the harness gives it."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def body(self) -> bytes: ...


def conforms(answer: Answered, method: str, target: str) -> None:
    """Fail unless the contract describes this answer to this request.

    A request the contract does not know has to be refused in the one shape of refusals.

    Args:
        target: Path and query as they stood on the wire.
    """
    at = _response_of(method, target.partition("?")[0], answer.status)
    described = _found(at)
    _headers_conform(answer, described)
    content = described.get("content")
    if content is None:
        assert answer.body == b"", f"{method} {target}: {answer.status} is described without a body"
        return
    sent = answer.headers["content-type"].partition(";")[0].strip().lower()
    media_type = sent if sent in content else "*/*"
    assert media_type in content, f"{method} {target}: {answer.status} came as {sent}, described are {sorted(content)}"
    # The body of an answer to HEAD is there in process; the HTTP server below leaves it out.
    if media_type == "application/json":
        value = json.loads(answer.body)
        _value_conforms(value, (*at, "content", media_type, "schema"), f"{method} {target}: {answer.status}")
        if answer.status >= 400:
            assert _STATUS[value["code"]] == answer.status, f"{method} {target}: {value} as {answer.status}"


def template_of(path: str) -> str | None:
    """The path of the contract that a request's path belongs to."""
    for template in sorted(CONTRACT["paths"], key=lambda one: "{" in one):
        pattern = "".join(
            ".*" if part.startswith("{") else re.escape(part) for part in re.split(r"(\{\w+\})", template)
        )
        if re.fullmatch(pattern, path, re.DOTALL):
            return str(template)
    return None


def _response_of(method: str, path: str, status: int) -> Pointer:
    template = template_of(path)
    name = "get" if method == "HEAD" else method.lower()
    if template is None or name not in CONTRACT["paths"][template]:
        assert status >= 400, f"{method} {path} answered {status} and is not in the contract"
        return _FAILURE
    at: Pointer = ("paths", template, name, "responses")
    key = str(status)
    if key not in _found(at):
        assert status >= 400, f"{method} {path} answered {status}; described are {sorted(_found(at))}"
        key = "default"
    reference = _found((*at, key)).get("$ref")
    return tuple(reference.removeprefix("#/").split("/")) if reference else (*at, key)


def _found(at: Pointer) -> Any:
    node: Any = CONTRACT
    for step in at:
        node = node[step]
    return node


def _headers_conform(answer: Answered, described: Mapping[str, Any]) -> None:
    for name, header in described.get("headers", {}).items():
        value = answer.headers.get(name.lower())
        if value is not None:
            typed = int(value) if header["schema"]["type"] == "integer" else value
            Draft202012Validator(header["schema"]).validate(typed)


def _value_conforms(value: Any, at: Pointer, asked: str) -> None:
    pointer = "/".join(quote(step.replace("~", "~0").replace("/", "~1"), safe="~") for step in at)
    validator = Draft202012Validator({"$ref": f"{_NAME}#/{pointer}"}, registry=_REGISTRY)
    problems = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]
    assert not problems, f"{asked} is not what the contract says: {problems}"
