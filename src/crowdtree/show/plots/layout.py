"""Layout of the boxes of a tree: pure geometry, growing down or one row per box.

Down, subtrees are set side by side as closely as their outlines allow (Reingold and Tilford 1981,
with boxes of different size). In rows, boxes follow each other in reading order, indented by level.
Either way nothing overlaps, whatever the texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Direction = Literal["down", "right"]
MAX_DOWN = 800.0
"""Width in pixels up to which a tree grows down; wider ones have one row per box."""
_STEP = 28.0
_ROW_GAP = 6.0


class Size(NamedTuple):
    """Width and height of a box."""

    width: float
    height: float


@dataclass(frozen=True)
class Layout:
    """Upper left corner of each box, start of each level, and the size of the whole."""

    corners: list[tuple[float, float]]
    levels: list[tuple[float, float]]
    """Start and extent of each level, along the way from the root to the leaves."""
    width: float
    height: float


def place_down(
    sizes: Sequence[Size], children: Sequence[Sequence[int]], level: Sequence[int]
) -> Layout:
    """Place boxes level below level; box 0 is the root and children come after their parents.

    >>> boxes = [Size(40, 20)] * 3
    >>> place_down(boxes, [[1, 2], [], []], [0, 1, 1]).corners
    [(32.0, 0.0), (0.0, 76.0), (64.0, 76.0)]
    """
    across = [size.width for size in sizes]
    along = [size.height for size in sizes]
    centre = _centres(across, children, gap=24.0)
    low = min(c - a / 2 for c, a in zip(centre, across, strict=True))
    width = max(c + a / 2 for c, a in zip(centre, across, strict=True)) - low
    levels = _level_spans(along, level, gap=56.0)
    corners = []
    for c, a, size, d in zip(centre, across, along, level, strict=True):
        start, extent = levels[d]
        corners.append((c - a / 2 - low, start + (extent - size) / 2))
    return Layout(corners, levels, width, levels[-1][0] + levels[-1][1])


def indent(level: Sequence[int], width: float) -> float:
    """Indentation per level in rows: less in deep trees, so that texts keep over half the width."""
    return min(_STEP, 0.45 * width / max(*level, 1))


def place_rows(
    sizes: Sequence[Size], children: Sequence[Sequence[int]], level: Sequence[int], width: float
) -> Layout:
    """Place one box per row in reading order, indented by its level.

    >>> boxes = [Size(40, 20)] * 3
    >>> place_rows(boxes, [[1, 2], [], []], [0, 1, 1], 100).corners
    [(0.0, 0.0), (28.0, 26.0), (28.0, 52.0)]
    """
    step = indent(level, width)
    corners = [(0.0, 0.0)] * len(sizes)
    stack, y = [0], 0.0
    while stack:
        box = stack.pop()
        corners[box] = (step * level[box], y)
        y += sizes[box].height + _ROW_GAP
        stack += reversed(children[box])
    return Layout(corners, [], width, y - _ROW_GAP)


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
            parts = [outline[child] for child in children[node]]
            places = _apart(parts, gap)
            for child, place in zip(children[node], places, strict=True):
                offset[child] = place - places[-1] / 2
                outline[child] = []
            below = _merge(parts, [place - places[-1] / 2 for place in places])
        outline[node] = [(-half, half), *below]
    centre = [0.0] * len(across)
    for node, pair in enumerate(children):
        for child in pair:
            centre[child] = centre[node] + offset[child]
    return centre


Outline = list[tuple[float, float]]


def _apart(parts: Sequence[Outline], gap: float) -> list[float]:
    """Centres of subtrees side by side, the first at 0, each clear of all that are before it."""
    places = [0.0]
    for part in parts[1:]:
        before = _merge(parts[: len(places)], places)
        places.append(
            gap + max(high - low for (_, high), (low, _) in zip(before, part, strict=False))
        )
    return places


def _merge(parts: Sequence[Outline], shifts: Sequence[float]) -> Outline:
    """Outline around subtrees, each shifted."""
    merged = []
    for depth in range(max(map(len, parts))):
        edges = [
            edge + shift
            for part, shift in zip(parts, shifts, strict=True)
            if depth < len(part)
            for edge in part[depth]
        ]
        merged.append((min(edges), max(edges)))
    return merged
