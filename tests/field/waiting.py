"""Field reports that cannot run yet, each with the part it waits for; a part that has come makes its rows stale."""

from collections.abc import Mapping
from typing import Final

from tests.field.parts import OAUTH, Part

WAITING: Final[Mapping[str, tuple[Part, ...]]] = {
    "FR-037": (OAUTH,),
    "FR-038": (OAUTH,),
    "FR-039": (OAUTH,),
    "FR-040": (OAUTH,),
    "FR-041": (OAUTH,),
}
