"""Vault-relative paths: the one way from text to a path, the keys deny rules compare, and the rules for new names.

Pure: nothing here looks at the disk. `VaultPath` names a file or a folder inside the vault, `FolderPath` a folder or
the vault's root; a value of either type has passed the rules, so no inner function checks a `str` again.

Source: auth-and-security.md §7 (rules 1-12, guard keys).
"""

import os
import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any, Literal, NoReturn, Self, TypeVar, overload
from urllib.parse import unquote, unquote_to_bytes

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticKnownError, core_schema

from operations.errors import ErrorCode, VaultError

MAX_PATH_BYTES = 4096
MAX_NAME_BYTES = 255
_FURTHER_DECODINGS = 3

# Default-ignorable code points outside category Cf: ext4 and f2fs with case folding ignore them in names just as
# HFS+ ignores some of Cf, so `\ufe00.git` could open `.git`.
_IGNORABLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
# `Home Notes.md` matches; `.git`, `a%2e`, `a\b`, `C:a`, `a<TAB>b` and every name beyond ASCII take the long way.
_PLAIN_NAME = re.compile(r"[0-9A-Za-z_(-][ -$&-.0-9;-\[\]-~]*")
_FORBIDDEN_IN_NEW = re.compile(r'[<>:"|?*]')
_INVISIBLE_IN_NEW = re.compile("[\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_WINDOWS_DEVICES = frozenset(
    {"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"}
    | {f"{device}{digit}" for device in ("COM", "LPT") for digit in "123456789¹²³"}
)


class ResolvedPath(str):
    """What `VaultPath` and `FolderPath` share. Compares and hashes as its text; `/` separates, none leads or trails."""

    __slots__ = ()
    _may_be_root = True

    def __new__(cls, raw: str) -> Self:
        """Run the rules over `raw`; a path that has passed them is kept as it is, the listed spelling included.

        Raises:
            VaultError: `invalid_path`, the reason in the message.
        """
        text = str(raw) if isinstance(raw, ResolvedPath) else _resolve(raw, folder=cls._may_be_root)
        if not text and not cls._may_be_root:
            _refuse(raw, "names the vault's root; name a file or folder in it")
        return super().__new__(cls, text)

    @property
    def segments(self) -> tuple[str, ...]:
        """The names from the root down; none for the root."""
        return tuple(self.split("/")) if self else ()

    @property
    def name(self) -> str:
        """The last segment; empty for the root."""
        return self.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """From the last dot of the name on, in lower case (`.md`); empty when there is none or nothing follows it."""
        return self.name[len(self.stem) :].lower()

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        name = self.name
        dot = name.rfind(".")
        return name[:dot] if 0 < dot < len(name) - 1 else name

    @property
    def parent(self) -> "FolderPath":
        """The folder above; the root's parent is the root."""
        return _trusted(FolderPath, self.rpartition("/")[0])

    @property
    def is_root(self) -> bool:
        """Whether this is the vault itself."""
        return not self

    @property
    def normalized(self) -> Self:
        """The path in NFC, which allow rules compare; differs only for names that the disk lists in another form."""
        return _trusted(type(self), unicodedata.normalize("NFC", self))

    def child(self, name: str) -> "VaultPath":
        """The path of `name` directly inside this folder.

        Raises:
            VaultError: `invalid_path` when `name` breaks a rule, has a separator, or makes the path too long.
        """
        segment = VaultPath(name)
        if "/" in segment:
            _refuse(name, "is more than one name")
        text = f"{self}/{segment}" if self else str(segment)
        if len(text.encode()) > MAX_PATH_BYTES:
            _refuse(text, f"is longer than {MAX_PATH_BYTES} bytes")
        return _trusted(VaultPath, text)

    def require_creatable(self) -> None:
        """Check every segment against the rules for new names, which hold on all platforms a vault is synced to.

        Raises:
            VaultError: `invalid_path`, naming the segment and the reason.

        Source: auth-and-security.md §7 rule 12.
        """
        for segment in self.segments:
            require_creatable_name(segment)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        """Accept text (and paths as they are); the JSON schema is that of a string."""
        from_text = core_schema.no_info_after_validator_function(cls, core_schema.str_schema())
        return core_schema.json_or_python_schema(
            json_schema=from_text,
            python_schema=core_schema.no_info_plain_validator_function(cls._validated),
            serialization=core_schema.plain_serializer_function_ser_schema(str, return_schema=core_schema.str_schema()),
        )

    @classmethod
    def _validated(cls, value: object) -> Self:
        # A plain function, because `str_schema` would turn a path into text and lose the listed spelling.
        if isinstance(value, str):
            return cls(value)
        raise PydanticKnownError("string_type")


_Path = TypeVar("_Path", bound=ResolvedPath)


class VaultPath(ResolvedPath):
    """A file or folder inside the vault, never the root."""

    __slots__ = ()
    _may_be_root = False


class FolderPath(ResolvedPath):
    """A folder, the root (empty) included; one trailing `/` of the text is dropped."""

    __slots__ = ()


ROOT = str.__new__(FolderPath, "")
# The one hidden folder that is written to; no text resolves to it.
TRASH = str.__new__(FolderPath, ".trash")


@overload
def safe_resolve(raw: str, *, new: bool = False, folder: Literal[False] = False) -> VaultPath: ...
@overload
def safe_resolve(raw: str, *, new: bool = False, folder: Literal[True]) -> FolderPath: ...
def safe_resolve(raw: str, *, new: bool = False, folder: bool = False) -> VaultPath | FolderPath:
    """Turn text from anywhere into a path, or refuse it; says nothing about what exists.

    Args:
        raw: Text with `/` between names, at most 4,096 bytes as UTF-8; not percent-encoded (see `decode_url_path`).
        new: The rules for new names hold too, for every segment.
        folder: One trailing `/` is dropped and the root is allowed.

    Raises:
        VaultError: `invalid_path`, the reason in the message.

    Source: auth-and-security.md §7.
    """
    path = FolderPath(raw) if folder else VaultPath(raw)
    if new:
        path.require_creatable()
    return path


def decode_url_path(raw: bytes) -> str:
    """Percent-decode the path bytes of a request line exactly once; a `%` without two hex digits stays.

    Raises:
        VaultError: `invalid_path` when the bytes are not strict UTF-8: a lenient decoder would let two requests name
            one file.

    Source: auth-and-security.md §7 rule 2.
    """
    decoded = unquote_to_bytes(raw)
    try:
        return decoded.decode("utf-8")
    except UnicodeDecodeError as error:
        raise VaultError(
            ErrorCode.INVALID_PATH, f"the path's bytes are not UTF-8 at byte {error.start + 1}; percent-encode UTF-8"
        ) from error


def guard_key(segment: str) -> str:
    """The form in which deny rules and locks compare a segment: equal keys may be one file on some file system.

    Source: auth-and-security.md §7, "Guard key".
    """
    folded = unicodedata.normalize("NFD", segment).casefold()
    visible = unicodedata.normalize("NFC", _without_ignorables(folded)).rstrip(". ")
    return unicodedata.normalize("NFC", visible)


def guard_path(path: str) -> str:
    """The guard keys of all segments, joined again."""
    return "/".join(guard_key(segment) for segment in path.split("/"))


def guards(prefix: str, path: str) -> bool:
    """Whether `path` is `prefix` or lies below it, as deny rules compare; the root guards everything."""
    if not prefix:
        return True
    key = guard_path(prefix)
    guarded = guard_path(path)
    return guarded == key or guarded.startswith(f"{key}/")


def inside(places: Iterable[str]) -> Callable[[str], bool]:
    """Whether a path is one of these places or lies below one, as `guards`; for the many paths of a vault."""
    keys = {guard_path(place) for place in places}

    def is_inside(path: str) -> bool:
        if not keys:
            return False
        key = guard_path(path)
        while key and key not in keys:
            key = key.rpartition("/")[0]
        return key in keys

    return is_inside


def is_visible_name(name: str) -> bool:
    """Whether a name that a folder lists can be part of a path: not hidden, and no rule refuses it.

    The predicate of every listing and walk, so that whatever is listed can be named and nothing hidden is.
    """
    return _is_plain(name) or (
        _encoded_length(name) is not None and _fault_of(unicodedata.normalize("NFC", name)) is None
    )


def listed_path(folder: str, name: str) -> VaultPath | None:
    """The path of an entry as its folder lists it, or `None` when it is hidden or no path can name it.

    The one maker of a path that may not be in NFC: a vault copied from a Mac lists decomposed names, and what is found
    must be opened, locked and reported under the name it has.
    """
    if not is_visible_name(name):
        return None
    text = f"{folder}/{name}" if folder else name
    # Most paths are far below the bound even at four bytes a character.
    if len(text) * 4 > MAX_PATH_BYTES and len(text.encode()) > MAX_PATH_BYTES:
        return None
    return _trusted(VaultPath, text)


def as_listed(path: str) -> VaultPath | None:
    """The path that folders list in exactly this spelling, in whatever Unicode form; `None` when it is hidden."""
    folder = FolderPath("")
    listed: VaultPath | None = None
    for segment in path.split("/"):
        listed = listed_path(folder, segment)
        if listed is None:
            return None
        folder = FolderPath(listed)
    return listed


def require_creatable_name(segment: str) -> None:
    """Refuse a name that some platform cannot hold, or that hides what it is.

    Raises:
        VaultError: `invalid_path`, naming the segment and the reason.

    Source: auth-and-security.md §7 rule 12.
    """
    if found := _FORBIDDEN_IN_NEW.search(segment):
        _refuse(segment, f"has '{found[0]}', which Windows and some sync tools cannot store; leave it out")
    if segment.startswith(" "):
        _refuse(segment, "begins with a space; start the name with another character")
    if segment.endswith((".", " ")):
        _refuse(
            segment, f"ends with a {'dot' if segment.endswith('.') else 'space'}, which Windows drops; leave it out"
        )
    if segment.partition(".")[0].rstrip(" ").upper() in _WINDOWS_DEVICES:
        _refuse(segment, "is a device name on Windows; choose another")
    if found := _INVISIBLE_IN_NEW.search(segment):
        _refuse(segment, f"has the invisible character U+{ord(found[0]):04X}; leave it out")


def cut_to_bytes(text: str, max_bytes: int) -> str:
    """The longest start of `text` with at most `max_bytes` as UTF-8."""
    return text.encode()[: max(0, max_bytes)].decode(errors="ignore")


def _resolve(raw: str, *, folder: bool) -> str:
    _require_length(raw)
    text = unicodedata.normalize("NFC", raw)
    # Normalising can lengthen, and the result must pass when it comes back.
    _require_length(text)
    text = text.removeprefix("/")
    if folder:
        text = text.removesuffix("/")
    segments = text.split("/") if text else []
    if segments and not segments[-1]:
        _refuse(raw, "ends in a slash, as a folder's path may; a note or file has a name there")
    if "" in segments:
        _refuse(raw, "has an empty name between two slashes; write one slash")
    kept = [segment for segment in segments if segment != "."]
    for segment in kept:
        if not _is_plain(segment) and (fault := _fault_of(segment)):
            _refuse(raw, fault)
    return "/".join(kept)


def _require_length(text: str) -> None:
    length = _encoded_length(text)
    if length is None:
        _refuse(text, "has a lone surrogate, which is no text")
    if length > MAX_PATH_BYTES:
        _refuse(text, f"is {length} bytes long; a path has at most {MAX_PATH_BYTES}")


def _encoded_length(text: str) -> int | None:
    try:
        return len(text.encode("utf-8"))
    except UnicodeEncodeError:
        return None


def _is_plain(name: str) -> bool:
    """Whether a name is of so few kinds of characters that no rule can refuse it; most are."""
    return len(name) <= MAX_NAME_BYTES and _PLAIN_NAME.fullmatch(name) is not None


def _fault_of(segment: str) -> str | None:
    """Why an NFC segment is refused (rules 4 to 9 and 11), or `None`."""
    if any(unicodedata.category(character) == "Cc" for character in segment):
        return "has a control character"
    if "\\" in segment:
        return "has a backslash; separate names with '/'"
    if segment == "..":
        return "has '..'; write the path from the vault's root"
    if _hides_a_separator(segment):
        return f"has {_shown(segment)}, which decodes to a separator or a dot name; send it percent-decoded"
    visible = _without_ignorables(segment)
    if visible.startswith("."):
        return f"has the hidden name {_shown(segment)}; names that begin with a dot are not served"
    if not visible.strip(" \u2800") or visible.isspace():
        return "has a name without a visible character"
    if len(segment.encode()) > MAX_NAME_BYTES:
        return f"has a name of {len(segment.encode())} bytes; a name has at most {MAX_NAME_BYTES} bytes (UTF-8)"
    if os.name == "nt" and ":" in segment:
        return "has ':', which Windows reads as a drive or a stream"
    return None


def _hides_a_separator(segment: str) -> bool:
    """Whether some decoder further on could make another path of the segment: `%2e%2e`, `..%2fx` do, `50% off` not."""
    decoded = segment
    for _ in range(_FURTHER_DECODINGS):
        if "%" not in decoded:
            return False
        decoded = unquote(decoded)
        if decoded in {".", ".."} or any(character in decoded for character in "/\\\0"):
            return True
    return False


def _without_ignorables(text: str) -> str:
    if text.isascii():
        return text
    return "".join(c for c in _IGNORABLE.sub("", text) if unicodedata.category(c) != "Cf")


def _trusted(kind: type[_Path], text: str) -> _Path:
    return str.__new__(kind, text)


def _refuse(raw: str, reason: str) -> NoReturn:
    raise VaultError(ErrorCode.INVALID_PATH, f"{_shown(raw)} {reason}")


def _shown(raw: str) -> str:
    """`raw` in quotes for a message: bounded, and with nothing in it that could move a cursor or break a line."""
    short = raw if len(raw) <= 120 else f"{raw[:117]}..."
    return "'" + "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in short) + "'"
