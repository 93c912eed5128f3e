"""Canvas files for property tests: many ways of writing, odd entries, repeated names."""

import json
import re

from hypothesis import strategies as st

from operations.markdown.canvas_json import JsonObject
from operations.markdown.text import BOM
from operations.markdown.yaml_nodes import JsonValue

BLANKS = st.sampled_from(["", " ", "  ", "\n", "\r\n\t", "\n    ", "\t"])
TEXTS = st.text(max_size=6) | st.sampled_from(["# Title\n\nbody", "a/b", '"', "\\", "\ud800", "}{][,:", "\u2028"])
SCALARS = st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats(-1e4, 1e4, width=16) | TEXTS
JSON: st.SearchStrategy[JsonValue] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
)
IDS = st.sampled_from(["a", "b", "c", "d", "e", "é"])
EXTRA: st.SearchStrategy[JsonObject] = st.dictionaries(
    st.sampled_from(["zz", "color", "label", "x-y", "styleAttributes"]), JSON, max_size=3
)


def filled(template: str, *values: object) -> str:
    """`template` with each `%s` or `%d` replaced in turn; JSON's braces stand as they are."""
    first, *rest = re.split("%[sd]", template)
    return first + "".join(f"{value}{part}" for value, part in zip(values, rest, strict=True))


@st.composite
def nodes(draw: st.DrawFn) -> JsonObject:
    """A node that counts."""
    kind = draw(st.sampled_from(["text", "file", "link", "group", "custom"]))
    content = {"text": "text", "file": "file", "link": "url", "group": "label", "custom": "own"}[kind]
    node: JsonObject = {"id": draw(IDS), "type": kind, content: draw(TEXTS)}
    node |= {name: draw(st.integers(-500, 500) | st.floats(-500, 500, width=16)) for name in ("x", "y")}
    node |= {name: draw(st.integers(1, 500)) for name in ("width", "height")}
    return node | draw(EXTRA)


@st.composite
def edges(draw: st.DrawFn) -> JsonObject:
    """An edge that counts, its ends may be missing."""
    return {"id": draw(IDS), "fromNode": draw(IDS), "toNode": draw(IDS)} | draw(EXTRA)


@st.composite
def written(draw: st.DrawFn, value: object) -> str:
    """A value in one of the ways in which JSON can be written."""
    if isinstance(value, dict):
        blanks = draw(BLANKS)
        members = [
            f"{draw(BLANKS)}{json.dumps(key, ensure_ascii=draw(st.booleans()))}{draw(BLANKS)}:{draw(BLANKS)}"
            f"{draw(written(member))}{draw(BLANKS)}"
            for key, member in value.items()
        ]
        if members and draw(st.integers(0, 4)) == 0:
            members.insert(0, members[-1])  # a repeated name
        return "{" + (",".join(members) or blanks) + "}"
    if isinstance(value, list):
        entries = [f"{draw(BLANKS)}{draw(written(entry))}{draw(BLANKS)}" for entry in value]
        return "[" + (",".join(entries) or draw(BLANKS)) + "]"
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


@st.composite
def canvas_texts(draw: st.DrawFn) -> str:
    """A canvas file."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from(["", " \n", BOM, "{}", " { \n } \n", BOM + "{}\r\n"]))
    root: dict[str, object] = {}
    if draw(st.integers(0, 5)):
        root["nodes"] = draw(st.lists(nodes() | JSON, max_size=5))
    if draw(st.booleans()):
        root["metadata"] = draw(JSON)
    if draw(st.integers(0, 5)):
        root["edges"] = draw(st.lists(edges() | JSON, max_size=5))
    return draw(st.sampled_from(["", BOM])) + draw(written(root)) + draw(BLANKS)
