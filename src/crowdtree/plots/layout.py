"""Layout of the boxes of a tree: pure geometry, top-down or left to right.

Subtrees are set side by side as closely as their outlines allow (Reingold and Tilford 1981, with
boxes of different size), so nothing overlaps, whatever the texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

__all__ = ["Direction", "Layout", "Size", "place"]

Direction = Literal["down", "right"]
_WIDEST_DOWN = 1000.0
_DEEPEST_DOWN = 7


class Size(NamedTuple):
    """Width and height of a box."""

    width: float
    height: float


@dataclass(frozen=True)
class Layout:
    """Upper left corner of each box, start of each level, and the size of the whole."""

    direction: Direction
    corners: list[tuple[float, float]]
    levels: list[tuple[float, float]]
    """Start and extent of each level, along the way from the root to the leaves."""
    width: float
    height: float


def place(
    sizes: Sequence[Size],
    children: Sequence[Sequence[int]],
    level: Sequence[int],
    *,
    direction: Direction | None = None,
) -> Layout:
    """Place the boxes of a tree; box 0 is the root and children come after their parents.

    Without a `direction` the tree grows down while that is narrow and shallow, else to the right.

    >>> boxes = [Size(40, 20)] * 3
    >>> place(boxes, [[1, 2], [], []], [0, 1, 1]).corners
    [(32.0, 0.0), (0.0, 76.0), (64.0, 76.0)]
    """
    if direction is None:
        down = _place(sizes, children, level, "down")
        if down.width <= _WIDEST_DOWN and max(level) <= _DEEPEST_DOWN:
            return down
        direction = "right"
    return _place(sizes, children, level, direction)


def _place(
    sizes: Sequence[Size],
    children: Sequence[Sequence[int]],
    level: Sequence[int],
    direction: Direction,
) -> Layout:
    down = direction == "down"
    across = [size.width if down else size.height for size in sizes]
    along = [size.height if down else size.width for size in sizes]
    centre = _centres(across, children, gap=24.0 if down else 14.0)
    low = min(c - a / 2 for c, a in zip(centre, across, strict=True))
    whole = max(c + a / 2 for c, a in zip(centre, across, strict=True)) - low
    levels = _level_spans(along, level, gap=56.0 if down else 64.0)
    corners = []
    for c, a, size, d in zip(centre, across, along, level, strict=True):
        start, extent = levels[d]
        side = c - a / 2 - low
        # down: boxes of a level are centred on a line; right: they start at one edge
        corners.append((side, start + (extent - size) / 2) if down else (start, side))
    length = levels[-1][0] + levels[-1][1]
    width, height = (whole, length) if down else (length, whole)
    return Layout(direction, corners, levels, width, height)


def _level_spans(
    along: Sequence[float], level: Sequence[int], gap: float
) -> list[tuple[float, float]]:
    extent = [0.0] * (max(level) + 1)
    for size, d in zip(along, level, strict=True):
        extent[d] = max(extent[d], size)
    spans, start = [], 0.0
    for size in extent:
        spans.append((start, size))
        start += size + gap
    return spans


def _centres(across: Sequence[float], children: Sequence[Sequence[int]], gap: float) -> list[float]:
    """Centre of each box: children set apart by their outlines, parents above their middle."""
    offset = [0.0] * len(across)
    # outline of each subtree about the centre of its root: (lowest, highest) edge, level by level
    outline: list[list[tuple[float, float]]] = [[] for _ in across]
    for node in reversed(range(len(across))):
        half = across[node] / 2
        below: list[tuple[float, float]] = []
        if children[node]:
            first, second = children[node]
            apart = gap + max(
                high - low
                for (_, high), (low, _) in zip(outline[first], outline[second], strict=False)
            )
            offset[first], offset[second] = -apart / 2, apart / 2
            below = _merge(outline[first], outline[second], apart / 2)
            outline[first] = outline[second] = []
        outline[node] = [(-half, half), *below]
    centre = [0.0] * len(across)
    for node, pair in enumerate(children):
        for child in pair:
            centre[child] = centre[node] + offset[child]
    return centre


def _merge(
    first: list[tuple[float, float]], second: list[tuple[float, float]], shift: float
) -> list[tuple[float, float]]:
    merged = []
    for depth in range(max(len(first), len(second))):
        edges = []
        if depth < len(first):
            edges += [edge - shift for edge in first[depth]]
        if depth < len(second):
            edges += [edge + shift for edge in second[depth]]
        merged.append((min(edges), max(edges)))
    return merged
