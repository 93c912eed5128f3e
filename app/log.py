"""Logging: one line a record, JSON or text, without secrets, control characters or absolute vault paths.

Source: auth-and-security.md §4.10.
"""

import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from io import TextIOWrapper
from itertools import islice
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TextIO

import pydantic_core

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
operation: ContextVar[str | None] = ContextVar("operation", default=None)
principal: ContextVar[str | None] = ContextVar("principal", default=None)

FILE_NAME = "vault-mcp.log"
_FILE_BYTES = 10 * 1024 * 1024
_FILES_KEPT = 5
_CONTEXT = {"request_id": request_id, "operation": operation, "principal": principal}
# Libraries whose own lines repeat what the request line says, or hold bodies and headers at DEBUG.
_QUIET = (
    "asyncio", "authlib", "httpcore", "httpcore2", "httpx", "httpx2", "mcp", "multipart", "pypdf", "python_multipart",
    "sqlalchemy.engine", "uvicorn.access", "watchfiles",
)  # fmt: skip
_MASK = "***"
_REMEMBERED_TEXTS = 256
_REMEMBERED_CHARACTERS = 64
_VALUE_NAMES = (
    "access_token|client_assertion|client_secret|code|code_verifier|id_token|key|password|refresh_token|state|token"
)
_SECRETS = re.compile(
    r"(?P<named>vmt_[0-9a-z]+_)[\w-]+"  # a named token: its id may be read, `vmt_0123456789_AAAA`
    r"|(?P<refresh>vmr_)[\w-]+"
    r"|\beyJ[\w-]{5,}\.[\w-]*\.[\w-]*"  # a JWT; `eyJ` alone or `a.b.c` is not one
    r"|(?P<bearer>\bBearer\s+)[^\s\"',]+"
    # `?code=abc`, `"token": "abc"`; prose such as `the key is wrong` and `monkey=1` stay
    rf"|(?P<name>(?<![\w-])(?:{_VALUE_NAMES})(?:=|[\"']\s*:\s*[\"']))[^\s&\"',;}}]+",
    re.IGNORECASE | re.ASCII,
)
# A record's own field is masked by its name only where the word has no other use: `code` is our error code.
_SECRET_FIELDS = frozenset({
    "access_token", "api_key", "authorization", "client_assertion", "client_secret", "code_verifier", "cookie",
    "id_token", "password", "refresh_token", "token",
})  # fmt: skip
# C0, DEL and C1; line and paragraph separators; marks that turn the reading direction; halves of surrogate pairs.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_encode_anything = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_PLAIN_VALUE = re.compile(r"[^\s\"=]+")
_PLAIN_FIELDS = tuple(vars(logging.makeLogRecord({})))  # the first of every record, in this order
_STANDARD_FIELDS = frozenset(_PLAIN_FIELDS) | {"message", "asctime", "color_message", "taskName"}


class LogFormat(StrEnum):
    """How a record is written."""

    AUTO = "auto"
    JSON = "json"
    TEXT = "text"


class LogLevel(StrEnum):
    """The least level that is written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def configure_logging(
    level: LogLevel, style: LogFormat, folder: Path | None, *, vault: Path | None = None, secrets: Iterable[str] = ()
) -> None:
    """Write every record to stderr, and to files in `folder` when one is given; a second call replaces the first.

    Args:
        folder: Gets `vault-mcp.log` (mode 0600), begun anew at 10 MiB, five older ones kept. One process a folder.
        vault: Root whose absolute paths are written vault-relative.
        secrets: Texts that must not occur in a line, beside everything that looks like a credential.
    """
    clean = cleaner(vault, secrets)
    root = logging.getLogger()
    for handler in root.handlers[:]:
        if isinstance(handler.formatter, LineFormatter):
            root.removeHandler(handler)
            handler.close()
    on_terminal = sys.stderr.isatty()
    _add_handler(root, _StderrHandler(), _formatter(style, clean, on_terminal=on_terminal))
    if folder is not None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _add_handler(root, _PrivateFileHandler(folder / FILE_NAME), _formatter(style, clean, on_terminal=False))
    root.setLevel(level.upper())
    # Neither form shows thread or process; to look them up is a tenth of a line's cost.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


class _StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to what stands for stderr at the moment: while a progress bar is shown, lines go above it."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def cleaner(vault: Path | None, secrets: Iterable[str] = ()) -> Callable[[str], str]:
    """A function that masks credentials and makes absolute paths below `vault` relative."""
    literal = _alternatives(secrets)
    roots = _alternatives({str(vault), str(vault.resolve())} if vault is not None else ())
    # `/data/vault/Note.md` is a path of the vault /data/vault; `/data/vault2` and `/x/data/vault` are not.
    root_pattern = None if roots is None else re.compile(rf"(?<![\w/.-])(?:{roots})(?:(/)|(?![\w.-]))")
    secret_pattern = None if literal is None else re.compile(literal)

    def cleaned(text: str) -> str:
        if secret_pattern is not None:
            text = secret_pattern.sub(_MASK, text)
        if text.isalnum():  # neither a path nor a pattern fits one word, and most values of a request line are one
            return text
        text = _SECRETS.sub(_masked, text)
        if root_pattern is not None:
            text = root_pattern.sub(lambda found: "" if found[1] else ".", text)
        return text

    # Lines repeat their short texts – methods, routes, tools, addresses –, and the patterns are most of a line's cost.
    remembered = lru_cache(maxsize=_REMEMBERED_TEXTS)(cleaned)

    def clean(text: str) -> str:
        return remembered(text) if len(text) <= _REMEMBERED_CHARACTERS else cleaned(text)

    return clean


class LineFormatter(logging.Formatter):
    """What both forms share: the fields of a record, cleaned."""

    def __init__(self, clean: Callable[[str], str]) -> None:
        super().__init__()
        self._clean = clean

    def fields_of(self, record: logging.LogRecord) -> dict[str, object]:
        """Context variables, then the record's `extra`; secrets masked, paths relative."""
        fields: dict[str, object] = {}
        for name, variable in _CONTEXT.items():
            value = variable.get()
            if value is not None:
                fields[name] = value
        for name, extra in islice(vars(record).items(), len(_PLAIN_FIELDS), None):
            if name not in _STANDARD_FIELDS:
                fields[name] = _MASK if _is_secret(name) else self._cleaned(extra)
        return fields

    def message_of(self, record: logging.LogRecord) -> str:
        """The message with its arguments, cleaned."""
        return self._clean(record.getMessage())

    def trace_of(self, record: logging.LogRecord) -> str | None:
        """The traceback of a record that has one, cleaned."""
        if record.exc_info and record.exc_info[0] is not None:
            return self._clean(self.formatException(record.exc_info))
        return None

    def _cleaned(self, value: object) -> object:
        match value:
            case None | bool() | int() | float():
                return value
            case StrEnum():
                return value.value
            case str():
                return self._clean(value)
            case Mapping():
                return {
                    self._clean(str(key)): _MASK if _is_secret(str(key)) else self._cleaned(item)
                    for key, item in value.items()
                }
            case list() | tuple() | set() | frozenset():
                return [self._cleaned(item) for item in value]
            case _:
                return self._clean(str(value))


class JsonFormatter(LineFormatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _time_of(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self.message_of(record),
        }
        line |= {name: value for name, value in self.fields_of(record).items() if name not in line}
        trace = self.trace_of(record)
        if trace is not None:
            line["trace"] = trace
        return _escaped(_encode(line))


class TextFormatter(LineFormatter):
    """Words for a terminal; the lines of a traceback are indented, so that none can pass for a record."""

    def format(self, record: logging.LogRecord) -> str:
        fields = (f"{name}={_text_value(value)}" for name, value in self.fields_of(record).items())
        message = _escaped(self.message_of(record))
        line = " ".join((_time_of(record), f"{record.levelname:<7}", record.name, message, *fields))
        trace = self.trace_of(record)
        if trace is None:
            return line
        return "\n".join((line, *(f"    {_escaped(part)}" for part in trace.split("\n"))))


class _PrivateFileHandler(RotatingFileHandler):
    """A rotating file that only its owner may read."""

    def __init__(self, file: Path) -> None:
        super().__init__(file, maxBytes=_FILE_BYTES, backupCount=_FILES_KEPT, encoding="utf-8")

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace")


def _formatter(style: LogFormat, clean: Callable[[str], str], *, on_terminal: bool) -> LineFormatter:
    is_text = style is LogFormat.TEXT or (style is LogFormat.AUTO and on_terminal)
    return TextFormatter(clean) if is_text else JsonFormatter(clean)


def _add_handler(root: logging.Logger, handler: logging.Handler, formatter: LineFormatter) -> None:
    handler.setFormatter(formatter)
    root.addHandler(handler)


def _alternatives(texts: Iterable[str]) -> str | None:
    """A pattern that matches each of `texts`, the longest first; `None` when there is none."""
    escaped = [re.escape(text) for text in sorted(texts, key=len, reverse=True) if text]
    return "|".join(escaped) or None


@lru_cache(maxsize=_REMEMBERED_TEXTS)
def _is_secret(name: str) -> bool:
    return name.lower() in _SECRET_FIELDS


def _masked(found: re.Match[str]) -> str:
    return (found["named"] or found["refresh"] or found["bearer"] or found["name"] or "") + _MASK


def _encode(line: dict[str, object]) -> str:
    try:
        return pydantic_core.to_json(line).decode("utf-8")  # five times as fast
    except ValueError:  # half of a surrogate pair, which it refuses and which is escaped later
        return _encode_anything(line)


def _time_of(record: logging.LogRecord) -> str:
    seconds = int(record.created)
    return f"{_second_of(seconds)}.{int((record.created - seconds) * 1000):03d}Z"


@lru_cache(maxsize=2)
def _second_of(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _json_escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _escaped(text: str) -> str:
    if text.isprintable():  # knows more characters than the pattern and answers ten times as fast
        return text
    return _UNPRINTABLE.sub(_json_escape, text)


def _text_value(value: object) -> str:
    if isinstance(value, str) and _PLAIN_VALUE.fullmatch(value):
        return _escaped(value)
    return _escaped(json.dumps(value, ensure_ascii=False))
