"""PyYAML's event stream, brought to YAML 1.2.

PyYAML follows YAML 1.1 and its C and Python readers differ in details. What Obsidian sees otherwise is evened out
before the reader, one character for one, so that every offset is one of the given text.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, cast

import yaml

# Line ends to a YAML 1.1 reader, ordinary characters in YAML 1.2.
_FORMER_LINE_ENDS = re.compile("[\x85\u2028\u2029]")
# "x?y" and "x\ty": the Python reader stops there, YAML 1.2 and libyaml read on. Not "[?", ", ?", ":\t" or "x\t#".
_TAKEN_WRONGLY_BY_PYTHON = re.compile(
    "[\x85\u2028\u2029]" r"|(?<=[^\s\[\]{},?:-])\?" r"|(?<=[^\s\[\]{},?:\"'-])[ ]*\t[ \t]*(?=[^\s#])"
)

# The stubs of PyYAML leave `parse` partly untyped.
_parse = cast("Callable[..., Iterator[yaml.Event]]", yaml.parse)  # pyright: ignore[reportUnknownMemberType]


class YamlEvents:
    """The events of one text.

    Texts inside them may hold stand-ins: `text.translate(events.stand_ins)` gives what is written. Iterating raises
    `yaml.YAMLError` where the text is not YAML.
    """

    def __init__(self, source: str, *, pure: bool = False) -> None:
        self._loader = _PythonReader if pure or not yaml.__with_libyaml__ else yaml.CSafeLoader
        self._source, self.stand_ins = _evened_out(source, for_python=self._loader is _PythonReader)

    def __iter__(self) -> Iterator[yaml.Event]:
        return _parse(self._source, Loader=self._loader)


def _evened_out(source: str, *, for_python: bool) -> tuple[str, dict[int, str]]:
    """`source` with the characters a reader takes wrongly replaced one for one, and the table that brings them back."""
    pattern = _TAKEN_WRONGLY_BY_PYTHON if for_python else _FORMER_LINE_ENDS
    characters = sorted(set("".join(pattern.findall(source))))
    if not characters:
        return source, {}
    present = set(source)
    unused = (chr(code) for code in range(0xF0000, 0xFFFFE) if chr(code) not in present)
    stand_ins = dict(zip(characters, unused, strict=False))
    prepared = pattern.sub(lambda match: "".join(stand_ins[character] for character in match.group()), source)
    return prepared, {ord(stand_in): character for character, stand_in in stand_ins.items()}


class _PythonReader(yaml.SafeLoader):
    """The Python reader, for installations without libyaml, with libyaml's view of tabs."""

    def scan_to_next_token(self) -> None:
        """Skip blanks, comments and line ends; a tab is a blank wherever indentation does not count."""
        scanner: Any = self  # the stubs of PyYAML leave its scanner untyped
        while True:
            blanks = " " if scanner.allow_simple_key and not scanner.flow_level else " \t"
            while scanner.peek() in blanks:
                scanner.forward()
            if scanner.peek() == "#":
                while scanner.peek() not in "\0\r\n":
                    scanner.forward()
            if not scanner.scan_line_break():
                return
            if not scanner.flow_level:
                scanner.allow_simple_key = True
