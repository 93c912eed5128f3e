"""Geometry of a canvas: where a new node goes, which sides an edge joins, which group holds a node.

Source: canvas.md §4, §5, §7.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from operations.errors import ErrorCode, VaultError

GAP: Final = 32
MAX_ROW_WIDTH: Final = 3200
GROUP_MARGIN: Final = 40
MAX_COORDINATE: Final = 2**53 - 1
"""The largest whole number that every JSON reader keeps exact."""


class Rectangle(NamedTuple):
    """Where a node stands; `y` grows downwards."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def sized(cls, x: float, y: float, width: float, height: float) -> Self:
        """The rectangle with its upper left corner at (`x`, `y`)."""
        # As floats, since whole numbers of hundreds of digits cannot be added to fractions.
        return cls(float(x), float(y), float(x) + float(width), float(y) + float(height))

    @property
    def area(self) -> float:
        """Width times height."""
        return (self.right - self.left) * (self.bottom - self.top)

    def holds(self, other: "Rectangle") -> bool:
        """Whether the whole of `other` is inside, edges inclusive."""
        return (
            self.left <= other.left
            and self.top <= other.top
            and self.right >= other.right
            and self.bottom >= other.bottom
        )


@dataclass(frozen=True, slots=True)
class Place:
    """Position and size of a node to be written."""

    x: int
    y: int
    width: int
    height: int


def free_place(rectangles: Sequence[Rectangle], width: int, height: int) -> Place:
    """A place beside everything, or in a new row when that would get too wide.

    Raises:
        VaultError: `invalid_parameter` when the nodes reach too far for one.

    Source: canvas.md §4.
    """
    if not rectangles:
        return Place(0, 0, width, height)
    whole = bounds_of(rectangles)
    if _upwards(whole.right) + GAP + width - _downwards(whole.left) > MAX_ROW_WIDTH:
        return Place(_downwards(whole.left), _upwards(whole.bottom) + GAP, width, height)
    return Place(_upwards(whole.right) + GAP, _downwards(whole.top), width, height)


def place_around(rectangles: Sequence[Rectangle]) -> Place:
    """The place of a group around some nodes.

    Raises:
        VaultError: `invalid_parameter` when the nodes reach too far for one.
    """
    whole = bounds_of(rectangles)
    x, y = _downwards(whole.left) - GROUP_MARGIN, _downwards(whole.top) - GROUP_MARGIN
    return Place(x, y, _upwards(whole.right) + GROUP_MARGIN - x, _upwards(whole.bottom) + GROUP_MARGIN - y)


def bounds_of(rectangles: Iterable[Rectangle]) -> Rectangle:
    """The smallest rectangle around at least one."""
    lefts, tops, rights, bottoms = zip(*((r.left, r.top, r.right, r.bottom) for r in rectangles), strict=True)
    return Rectangle(min(lefts), min(tops), max(rights), max(bottoms))


def facing_sides(start: Rectangle, end: Rectangle) -> tuple[str, str]:
    """The sides by which an edge leaves `start` and reaches `end`: those that face each other.

    Source: canvas.md §5.
    """
    # Twice the distance between the centres: halves would only cost digits.
    across = (end.left + end.right) - (start.left + start.right)
    down = (end.top + end.bottom) - (start.top + start.bottom)
    if abs(across) >= abs(down):
        return ("right", "left") if across >= 0 else ("left", "right")
    return ("bottom", "top") if down > 0 else ("top", "bottom")


class GroupFinder:
    """Finds the group that holds a rectangle.

    A tree over the four edges of the groups: each branch knows how far its groups reach and how small the smallest is,
    so most are passed over. A comparison of every node with every group takes minutes for the largest files.
    """

    def __init__(self, groups: Sequence[Rectangle]) -> None:
        """Prepare for groups in file order; positions count them."""
        self._groups = groups
        self._root = _branch(groups, list(range(len(groups))), axis=0) if groups else None

    def holder_of(self, rectangle: Rectangle, *, group: int | None = None) -> int | None:
        """Position of the smallest group that holds `rectangle`; of equal ones the later.

        Args:
            group: The position of `rectangle` when it is a group itself: it is in no group of the same rectangle
                behind it.

        Source: canvas.md §7.
        """
        best: int | None = None
        best_area = math.inf
        pending = [] if self._root is None else [self._root]
        while pending:
            branch = pending.pop()
            if not branch.reach.holds(rectangle) or branch.smallest > best_area:
                continue
            pending += branch.parts
            for position in branch.groups:
                candidate = self._groups[position]
                if group is not None and (position == group or (candidate == rectangle and position > group)):
                    continue
                area = candidate.area
                if candidate.holds(rectangle) and (best is None or (area, -position) < (best_area, -best)):
                    best, best_area = position, area
        return best


@dataclass(frozen=True, slots=True)
class _Branch:
    reach: Rectangle
    """As far as any of its groups reaches."""
    smallest: float
    parts: tuple["_Branch", ...]
    """The part with the larger groups first, so that the other is looked at before it."""
    groups: tuple[int, ...]


_LEAF: Final = 8
_AXES: Final = 4


def _branch(groups: Sequence[Rectangle], positions: list[int], axis: int) -> _Branch:
    reach = bounds_of(groups[position] for position in positions)
    smallest = min(groups[position].area for position in positions)
    if len(positions) <= _LEAF:
        return _Branch(reach, smallest, (), tuple(positions))
    ordered = sorted(positions, key=lambda position: _edge_of(groups[position], axis))
    middle = len(ordered) // 2
    parts = [_branch(groups, half, (axis + 1) % _AXES) for half in (ordered[:middle], ordered[middle:])]
    parts.sort(key=lambda part: part.smallest, reverse=True)
    return _Branch(reach, smallest, tuple(parts), ())


def _edge_of(rectangle: Rectangle, axis: int) -> float:
    return (rectangle.left, rectangle.right, rectangle.top, rectangle.bottom)[axis]


def _upwards(edge: float) -> int:
    return math.ceil(_exact(edge))


def _downwards(edge: float) -> int:
    return math.floor(_exact(edge))


def _exact(edge: float) -> float:
    if abs(edge) > MAX_COORDINATE:
        raise VaultError(
            ErrorCode.INVALID_PARAMETER,
            f"a node of the canvas reaches to {edge:g}, too far for a place beside it; send x, y, width and height",
        )
    return edge
