"""Keys that people type into a page: compared like every secret, and counted over all addresses (§4.8)."""

from dataclasses import dataclass

from app.auth.limits import SlidingMinute
from app.auth.static_key import StaticKey

_EVERYBODY = ""


@dataclass(frozen=True, slots=True)
class TypedKeys:
    """The static key as pages ask for it."""

    key: StaticKey
    wrong: SlidingMinute

    def seconds_to_wait(self) -> int:
        """Seconds until a key is looked at again, because too many were wrong; 0 when one is."""
        return self.wrong.seconds_to_wait(_EVERYBODY)

    def is_key(self, text: str) -> bool:
        """Whether a text is the key; a wrong one counts."""
        is_right = self.key.is_key(text.encode("utf-8"))
        if not is_right:
            self.wrong.count(_EVERYBODY)
        return is_right
