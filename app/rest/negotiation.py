"""Which representation an `Accept` header asks for."""

from collections.abc import Sequence

JSON = "application/json"
PLUGIN_NOTE = "application/vnd.olrapi.note+json"
MARKDOWN = "text/markdown"
PLAIN = "text/plain"
BYTES = "application/octet-stream"


def preferred(accept: str | None, offered: Sequence[str]) -> str:
    """The offered media type that `accept` likes best; the first one where it names nothing we have.

    Equal wishes fall to the earlier offer; a type named in full beats a wildcard of the same weight, so that
    `application/json, */*` gets JSON.
    """
    if not accept:
        return offered[0]
    wishes = [_wish(part) for part in accept.lower().split(",")]
    best, best_rank = offered[0], (0.0, 0)
    for media_type in offered:
        rank = max((_rank(media_type, name, weight) for name, weight in wishes), default=(0.0, 0))
        if rank > best_rank:
            best, best_rank = media_type, rank
    return best


def _wish(part: str) -> tuple[str, float]:
    name, *parameters = (piece.strip() for piece in part.split(";"))
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return name, min(max(float(parameter[2:]), 0.0), 1.0)
            except ValueError:
                return name, 0.0
    return name, 1.0


def _rank(offered: str, name: str, weight: float) -> tuple[float, int]:
    if name == offered:
        return weight, 2
    if name == "*/*" or (name.endswith("/*") and offered.startswith(name[:-1])):
        return weight, 1
    return 0.0, 0
