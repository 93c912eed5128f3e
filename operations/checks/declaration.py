"""What a check says of itself, ours and the vault's own alike."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Declaration:
    """Name and purpose of a check."""

    check: str
    """In `snake_case`."""
    title: str
    description: str
    order: int
    """Checks come by this number, then by name."""
