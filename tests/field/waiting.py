"""Field reports that cannot run yet, each with the part it waits for; a part that has come makes its rows stale."""

from collections.abc import Mapping
from typing import Final

from tests.field.parts import Part

WAITING: Final[Mapping[str, tuple[Part, ...]]] = {}
