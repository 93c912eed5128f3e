"""A page's content stream as positioned text runs.

pypdf parses the objects and knows fonts; its own text modes give either positions without widths or widths without
forms, fonts and sizes, and headings and tables need all of them at once.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from pypdf import PageObject
from pypdf.generic import ContentStream, DictionaryObject, PdfObject, StreamObject
from pypdf.generic._font import Font  # not exported, but the only reader of widths and character maps that pypdf has

MAX_FORM_DEPTH = 12
MAX_FORMS = 2_000
MAX_RUNS = 60_000
"""Text pieces of one page; a page of small print, each letter on its own, has a quarter of it."""
FIXED_PITCH = 1
MAX_COORDINATE = 1e9
MAX_SIZE = 1e5

Matrix = tuple[float, float, float, float, float, float]
IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Run:
    """One piece of text as it stands on the page, turned so that its line runs from left to right."""

    text: str
    x: float
    end_x: float
    y: float
    """Baseline, in points, upwards."""
    size: float
    """Effective font size in points, all transformations applied."""
    space: float
    """Width of a blank in this font and size."""
    bold: bool
    monospaced: bool
    quarter: int
    """Quarter turns by which the text stands off the horizontal, counter-clockwise."""


@dataclass(frozen=True, slots=True)
class PageContent:
    """What stands on a page."""

    runs: list[Run]
    images: int
    unreadable: int
    """Characters drawn in fonts that do not say which letters they are."""
    is_cut: bool
    """The page holds more than is read of one page."""


def read_page(page: PageObject) -> PageContent:
    """Interpret a page's content stream, forms included, up to `MAX_RUNS` pieces of text.

    Raises:
        Whatever pypdf raises on damaged objects; the caller decides what a lost page means.

    Source: ISO 32000-1 §8.4, §8.10 and §9.4 (graphics state, form XObjects, text operators).
    """
    interpreter = _Interpreter(page)
    contents = page.get("/Contents")
    resources = _dictionary(page.get("/Resources"))
    if contents is not None:
        interpreter.interpret(contents.get_object(), resources, _State(), depth=0)
    return PageContent(interpreter.runs, interpreter.images, interpreter.unreadable, interpreter.is_cut)


@dataclass(frozen=True, slots=True)
class _Glyph:
    text: str
    width: float
    """In thousandths of the font size."""


class _Face:
    """A font as far as extraction needs it: codes to text and widths, and how it looks."""

    def __init__(self, resource: DictionaryObject) -> None:
        font = Font.from_font_resource(resource)
        self._encoding = font.encoding
        self._map = cast("Mapping[Any, Any]", font.character_map)
        self._widths = font.character_widths
        self._glyphs: dict[str, _Glyph] = {}
        name = font.name.lower()
        descriptor = font.font_descriptor
        self.is_bold = any(word in name for word in ("bold", "black", "heavy", "semibd"))
        self.is_monospaced = bool(descriptor.flags & FIXED_PITCH) or any(
            word in name for word in ("courier", "mono", "consolas", "menlo", "typewriter")
        )
        self.is_readable = font.interpretable and not _is_unmapped(resource)
        horizontal, vertical = _glyph_space(resource)
        self.width_unit = horizontal
        self.height_unit = vertical
        self.space_width = float(font.space_width)

    def decode(self, raw: bytes) -> list[_Glyph]:
        """The glyphs that the bytes of a string select."""
        if isinstance(self._encoding, str):
            try:
                codes = raw.decode(self._encoding, "surrogatepass")
            except UnicodeDecodeError:
                codes = raw.decode(self._encoding, "replace")
        else:
            codes = raw.decode("latin-1")
        return [self._glyphs.get(code) or self._glyph(code) for code in codes]

    def _glyph(self, code: str) -> _Glyph:
        named = code if isinstance(self._encoding, str) else self._encoding.get(ord(code), code)
        width = self._widths.get(code, self._widths.get("default", 500))
        glyph = _Glyph(str(self._map.get(named, named)), _finite(width, 500.0))
        self._glyphs[code] = glyph
        return glyph


@dataclass(slots=True)
class _State:
    """The part of the graphics state that places text."""

    ctm: Matrix = IDENTITY
    face: _Face | None = None
    size: float = 0.0
    char_space: float = 0.0
    word_space: float = 0.0
    stretch: float = 1.0
    leading: float = 0.0
    rise: float = 0.0


class _Interpreter:
    def __init__(self, page: PageObject) -> None:
        self.runs: list[Run] = []
        self.images = 0
        self.unreadable = 0
        self.is_cut = False
        self._pdf = page.pdf
        self._forms = 0
        self._faces: dict[int, _Face | None] = {}
        self._kept: list[PdfObject] = []  # keeps the fonts alive, as `_faces` goes by identity
        self._text_matrix = IDENTITY
        self._line_matrix = IDENTITY

    def interpret(self, stream: PdfObject | None, resources: DictionaryObject, state: _State, *, depth: int) -> None:
        """Read one content stream; `state` is this stream's own and is changed."""
        if stream is None:
            return
        saved: list[_State] = []
        for operands, operator in ContentStream(stream, self._pdf, "bytes").operations:
            if self.is_cut:
                return
            values = _items(operands)
            match operator:
                case b"q":
                    saved.append(replace(state))
                case b"Q":
                    state = saved.pop() if saved else state
                case b"cm":
                    state.ctm = _times(_matrix(values), state.ctm)
                case b"Do":
                    self._draw(_at(values, 0), resources, state, depth)
                case b"INLINE IMAGE":
                    self.images += 1
                case b"Tf":
                    state.face = self._face(_at(values, 0), resources)
                    state.size = _number(values, 1, state.size)
                case _:
                    self._text_operator(operator, values, state)

    def _text_operator(self, operator: bytes, values: list[Any], state: _State) -> None:
        match operator:
            case b"BT":
                self._text_matrix = self._line_matrix = IDENTITY
            case b"Td":
                self._move(_number(values, 0), _number(values, 1))
            case b"TD":
                state.leading = -_number(values, 1)
                self._move(_number(values, 0), _number(values, 1))
            case b"Tm":
                self._text_matrix = self._line_matrix = _matrix(values)
            case b"T*":
                self._move(0.0, -state.leading)
            case b"Tj":
                self._show(_at(values, 0), state)
            case b"TJ":
                self._show_spaced(_at(values, 0), state)
            case b"'":
                self._move(0.0, -state.leading)
                self._show(_at(values, 0), state)
            case b'"':
                state.word_space, state.char_space = _number(values, 0), _number(values, 1)
                self._move(0.0, -state.leading)
                self._show(_at(values, 2), state)
            case b"Tc":
                state.char_space = _number(values, 0)
            case b"Tw":
                state.word_space = _number(values, 0)
            case b"Tz":
                state.stretch = _number(values, 0, 100.0) / 100.0
            case b"TL":
                state.leading = _number(values, 0)
            case b"Ts":
                state.rise = _number(values, 0)
            case _:
                pass  # paths, colours, marked content: nothing that places text

    def _draw(self, name: object, resources: DictionaryObject, state: _State, depth: int) -> None:
        form = _entry(resources, "/XObject", name)
        if not isinstance(form, StreamObject):
            return
        if form.get("/Subtype") == "/Image":
            self.images += 1
            return
        # A form can draw itself; depth and number are bounded instead of remembering who drew whom.
        if self._forms >= MAX_FORMS:
            self.is_cut = True
            return
        if depth >= MAX_FORM_DEPTH:
            return
        self._forms += 1
        own = _dictionary(form.get("/Resources"))
        matrix = form.get("/Matrix")
        inner = replace(state, ctm=_times(_matrix(_items(matrix)), state.ctm))
        outer = self._text_matrix, self._line_matrix
        self.interpret(form, own or resources, inner, depth=depth + 1)
        self._text_matrix, self._line_matrix = outer

    def _face(self, name: object, resources: DictionaryObject) -> _Face | None:
        resource = _entry(resources, "/Font", name)
        if not isinstance(resource, DictionaryObject):
            return None
        if id(resource) not in self._faces:
            self._kept.append(resource)
            try:
                self._faces[id(resource)] = _Face(resource)
            except (AttributeError, LookupError, TypeError, ValueError):
                self._faces[id(resource)] = None  # one broken font costs its own letters, not the page
        return self._faces[id(resource)]

    def _move(self, x: float, y: float) -> None:
        self._text_matrix = self._line_matrix = _times((1.0, 0.0, 0.0, 1.0, x, y), self._line_matrix)

    def _show_spaced(self, array: object, state: _State) -> None:
        for item in _items(array):
            if isinstance(item, (bytes, str)):
                self._show(item, state)
            else:
                shift = -_number([item], 0) / 1000.0 * state.size * state.stretch
                self._text_matrix = _times((1.0, 0.0, 0.0, 1.0, shift, 0.0), self._text_matrix)

    def _show(self, string: object, state: _State) -> None:
        raw = string.encode("latin-1", "replace") if isinstance(string, str) else string
        if not isinstance(raw, bytes) or not raw:
            return
        if len(self.runs) >= MAX_RUNS:
            self.is_cut = True
            return
        if state.face is None:
            self.unreadable += len(raw)
            return
        face = state.face
        glyphs = face.decode(raw)
        blanks = raw.count(b" ") if len(glyphs) == len(raw) else 0  # word spacing is for one-byte codes only
        width = sum(glyph.width for glyph in glyphs) * face.width_unit * state.size
        advance = (width + len(glyphs) * state.char_space + blanks * state.word_space) * state.stretch
        if face.is_readable:
            self._place("".join(glyph.text for glyph in glyphs), advance, face, state)
        else:
            self.unreadable += len(glyphs)
        self._text_matrix = _times((1.0, 0.0, 0.0, 1.0, advance, 0.0), self._text_matrix)

    def _place(self, text: str, advance: float, face: _Face, state: _State) -> None:
        a, b, c, d, e, f = _times(self._text_matrix, state.ctm)
        start = (state.rise * c + e, state.rise * d + f)
        end = (start[0] + advance * a, start[1] + advance * b)
        size = abs(state.size) * math.hypot(c, d) * face.height_unit * 1000.0
        # Endless matrices end in infinities; text without a size cannot be seen by anybody.
        if not all(-MAX_COORDINATE < value < MAX_COORDINATE for value in (*start, *end)) or not 0 < size < MAX_SIZE:
            return
        quarter = round(math.atan2(b, a) / (math.pi / 2)) % 4
        x, y = _turned_back(start, quarter)
        end_x, _ = _turned_back(end, quarter)
        space = face.space_width * face.width_unit * abs(state.size * state.stretch) * math.hypot(a, b)
        self.runs.append(
            Run(text, min(x, end_x), max(x, end_x), y, size, space, face.is_bold, face.is_monospaced, quarter)
        )


def _is_unmapped(resource: DictionaryObject) -> bool:
    """Whether codes are glyph numbers of an embedded font that nobody says the letters of."""
    return (
        resource.get("/Subtype") == "/Type0"
        and "/ToUnicode" not in resource
        and str(resource.get("/Encoding", "")).startswith("/Identity")
    )


def _glyph_space(resource: DictionaryObject) -> tuple[float, float]:
    """Text units per width and height unit; only Type 3 fonts choose their own."""
    matrix = _items(resource.get("/FontMatrix")) if resource.get("/Subtype") == "/Type3" else []
    if len(matrix) < 4:
        return 0.001, 0.001
    return abs(_number(matrix, 0)) or 0.001, abs(_number(matrix, 3)) or 0.001


def _turned_back(point: tuple[float, float], quarter: int) -> tuple[float, float]:
    x, y = point
    return ((x, y), (y, -x), (-x, -y), (-y, x))[quarter]


def _times(first: Matrix, then: Matrix) -> Matrix:
    a, b, c, d, e, f = first
    p, q, r, s, t, u = then
    return (a * p + b * r, a * q + b * s, c * p + d * r, c * q + d * s, e * p + f * r + t, e * q + f * s + u)


def _matrix(values: list[Any]) -> Matrix:
    if len(values) < len(IDENTITY):
        return IDENTITY
    a, b, c, d, e, f = (_number(values, i) for i in range(6))
    return (a, b, c, d, e, f)


def _number(values: list[Any], index: int, default: float = 0.0) -> float:
    return _finite(_at(values, index), default)


def _finite(value: object, default: float) -> float:
    """The number, or `default` for anything that is none or that no page can hold."""
    value = value.get_object() if isinstance(value, PdfObject) else value
    if not isinstance(value, (int, float)) or not -MAX_COORDINATE < value < MAX_COORDINATE:
        return default
    return float(value)


def _at(values: list[Any], index: int) -> object:
    return values[index] if index < len(values) else None


def _items(value: object) -> list[Any]:
    value = value.get_object() if isinstance(value, PdfObject) else value
    return list(cast("Iterable[Any]", value)) if isinstance(value, list) else []


def _dictionary(value: object) -> DictionaryObject:
    value = value.get_object() if isinstance(value, PdfObject) else value
    return value if isinstance(value, DictionaryObject) else DictionaryObject()


def _entry(resources: DictionaryObject, kind: str, name: object) -> PdfObject | None:
    entry = _dictionary(resources.get(kind)).get(name) if isinstance(name, str) else None
    return entry.get_object() if isinstance(entry, PdfObject) else None
