"""The vault that the generated clients work on, and what it has to be afterwards."""

from typing import Final

BEFORE: Final = {
    "Home/Boiler.md": "---\nstatus: closed\n---\n# Boiler\n\n## Parts\n\n- valve\n\n## Notes\n\nkeep  \n",
    "Inbox/One.md": "one\n",
}
AFTER: Final[dict[str, bytes | None]] = {
    "Done": None,
    "Done/One.md": b"one\n",
    "Home": None,
    "Home/Boiler.md": (
        "---\nstatus: open\n---\n# Boiler\n\n## Parts\n\n- pump „Größe 2“\n\n## Notes\n\nkeep  \n".encode()
    ),
    "Inbox": None,
    "Inbox/Räume.md": "# Räume\n\nKüche\n\nBad\n".encode(),
}
"""Every file and folder: what was moved left, what no call named has the bytes it had."""
