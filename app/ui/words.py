"""Numbers and times as a person reads them."""

from datetime import datetime, timedelta, tzinfo
from html import escape
from typing import Final

from operations.errors import VaultError

_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB")
_STEP: Final = 1000


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 note`, `1,200 notes`."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def size(number: int) -> str:
    """`312 bytes`, `4.1 MB`."""
    value, unit = float(number), 0
    while value >= _STEP and unit < len(_UNITS) - 1:
        value, unit = value / _STEP, unit + 1
    return f"{number} {_UNITS[0]}" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def when(moment: datetime, now: datetime, zone: tzinfo | None) -> str:
    """Markup of a moment: the day in words where it is near."""
    local, today = moment.astimezone(zone), now.astimezone(zone).date()
    days = {today: "today", today - timedelta(days=1): "yesterday"}
    day = days.get(local.date()) or f"{local.day} {local:%B %Y}"
    return f'<time datetime="{escape(moment.isoformat(timespec="seconds"))}">{day}, {local:%H:%M}</time>'


def refusal(error: VaultError) -> str:
    """Markup of what was refused, with the files it names."""
    files = error.details.get("files")
    named = "".join(f"<li>{escape(str(file))}</li>" for file in files) if isinstance(files, list) else ""
    return f'<div class="alarm" role="alert">{escape(error.message)}{named and f"<ul>{named}</ul>"}</div>'
