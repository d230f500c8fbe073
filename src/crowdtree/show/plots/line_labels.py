"""Names of lines: at their ends, moved apart where they would touch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from crowdtree.show.plots.style import LIGHT, SMALL_SIZE
from crowdtree.show.plots.text import clean, text_width
from crowdtree.show.plots.vega import LABEL_COLOURS, WIDTH, Chart, Row, alt, table

HEIGHT = 320
GAP = 14.0
"""Pixels between the middles of two labels."""
LEAST_HEIGHT = 8.0
HALO: dict[str, Any] = {
    "stroke": LIGHT.background,
    "strokeWidth": 4,
    "strokeJoin": "round",
    "aria": False,
}
"""Look of the background of a name, which keeps it readable across a line."""


class PointLabel(NamedTuple):
    """Where the name of a marked point stands: pixels right and down from it, and its width."""

    dx: float
    dy: float
    align: str
    width: float


PLACES = (
    *((4.0, -14.0, "left"), (8.0, -11.0, "left"), (10.0, -8.0, "left"), (10.0, 0.0, "left")),
    *((4.0, 14.0, "left"), (-4.0, -14.0, "right"), (-10.0, 0.0, "right"), (-4.0, 14.0, "right")),
)
"""Places of the name of a point, the best first."""


def positions(ends: list[float], log: bool) -> Callable[[float], float]:
    """Pixels from the left of a cost."""
    low, high = (math.log(ends[0]), math.log(ends[1])) if log else ends

    def place(x: float) -> float:
        return WIDTH * ((math.log(x) if log else x) - low) / ((high - low) or 1.0)

    return place


def end_labels(
    rows: Sequence[Row],
    scale: alt.Scale,
    log: bool,
    place: Callable[[float], float],
    points: Sequence[Row] = (),
    marks: Sequence[PointLabel] = (),
) -> list[Chart]:
    """Names at the ends of the lines, moved away from each other and from the names of points."""
    ends: dict[str, Row] = {}
    for row in rows:
        if row["series"] not in ends or row["x"] >= ends[row["series"]]["x"]:
            ends[row["series"]] = row
    rank = list(LABEL_COLOURS)  # the most important lines keep their names at their ends
    ends = dict(sorted(ends.items(), key=lambda end: rank.index(end[1].get("kind", "baseline"))))
    low, span = _heights(scale, log)
    # lines that stop early keep their label there; those that end together share one column

    def height(row: Row) -> float:
        return ((math.log(row["y"]) if log else float(row["y"])) - low) / span

    wanted = [height(row) for row in ends.values()]
    column = [place(r["x"]) for r in ends.values()]
    widths = [text_width(str(name), SMALL_SIZE, bold=True) + 8 for name in ends]
    taken = [height(row) - mark.dy for row, mark in zip(points, marks, strict=True)]
    starts = [
        place(row["x"]) + mark.dx - (mark.width if mark.align == "right" else 0)
        for row, mark in zip(points, marks, strict=True)
    ]
    placed = _free(
        [*taken, *_apart(wanted, column, GAP, lowest=LEAST_HEIGHT)],
        [*starts, *column],
        [*(mark.width for mark in marks), *widths],
    )[len(points) :]
    labels = [
        {
            "x": row["x"],
            "y": math.exp(low + at * span) if log else low + at * span,
            "label": clean(str(row["series"])),
            "colour": LABEL_COLOURS[row.get("kind", "baseline")],
        }
        for row, at in zip(ends.values(), placed, strict=True)
    ]
    base = alt.Chart(table(labels)).encode(
        x="x:Q", y=alt.Y("y:Q", scale=scale), text="label:N", description="label:N"
    )
    look: dict[str, Any] = {"align": "left", "dx": 8, "baseline": "middle", "fontWeight": 600}
    return [  # a halo keeps a name readable where it lies across another line
        *([base.mark_text(**look, **HALO)] if len(set(column)) > 1 else []),
        base.mark_text(**look).encode(color=alt.Color("colour:N", scale=None)),
    ]


def _heights(scale: alt.Scale, log: bool) -> tuple[float, float]:
    """Lower end of the axis of errors (its logarithm), and what a pixel is worth."""
    low, high = scale.to_dict()["domain"]
    low, high = (math.log(low), math.log(high)) if log else (low, high)
    return low, (high - low) / HEIGHT


def point_labels(
    points: Sequence[Row],
    rows: Sequence[Row],
    scale: alt.Scale,
    log: bool,
    place: Callable[[float], float],
) -> list[PointLabel]:
    """Places of the names of marked points that cross as little of the lines as possible."""
    low, span = _heights(scale, log)

    def pixel(row: Row) -> tuple[float, float]:
        up = math.log(max(row["y"], 1e-300)) if log else float(row["y"])
        return place(row["x"]), (up - low) / span

    lines: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        lines.setdefault(str(row["series"]), []).append(pixel(row))
    dots = [
        (x0 + way * (x1 - x0), y0 + way * (y1 - y0))
        for line in lines.values()
        for (x0, y0), (x1, y1) in itertools.pairwise(line)
        for way in _steps(math.hypot(x1 - x0, y1 - y0))
    ]

    def crossed(point: Row, mark: PointLabel) -> float:
        x, y = pixel(point)
        left = x + mark.dx - (mark.width if mark.align == "right" else 0.0)
        middle = y - mark.dy
        outside = left < 0 or not GAP / 2 < middle < HEIGHT
        inside = sum(left < a < left + mark.width and abs(b - middle) < GAP / 2 for a, b in dots)
        return inside + (1000 if outside else 0)

    made = []
    for point in points:
        width = text_width(str(point["label"]), SMALL_SIZE, bold=True) + 8
        made.append(
            min((PointLabel(*way, width) for way in PLACES), key=lambda mark: crossed(point, mark))
        )
    return made


def _steps(length: float) -> list[float]:
    """Parts of a line about two pixels apart."""
    count = max(1, int(min(length, 5000.0) / 2))
    return [step / count for step in range(count + 1)]


def _free(heights: Sequence[float], left: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Move labels that lie across one that was placed before to the nearest free height.

    >>> _free([50.0, 52.0, 52.0], [0.0, 30.0, 400.0], [60.0, 60.0, 60.0])
    [50.0, 64.0, 52.0]
    """
    placed: list[float] = []
    for at, height in enumerate(heights):
        beside = [
            placed[other]
            for other in range(at)
            if left[at] < left[other] + widths[other] and left[other] < left[at] + widths[at]
        ]
        # where it is, or just below or just above a label in the way
        tries = [height, *(there + way * GAP for there in beside for way in (-1, 1))]
        free = [
            y for y in tries if y >= LEAST_HEIGHT and all(abs(y - z) > GAP - 1e-6 for z in beside)
        ]
        placed.append(min(free, key=lambda y: abs(y - height), default=height))
    return placed


def _apart(
    wanted: Sequence[float], column: Sequence[float], gap: float, lowest: float
) -> list[float]:
    """Move heights of the same column apart, as little as possible; groups keep their mean.

    >>> _apart([10.0, 12.0, 50.0], [1, 1, 1], 14.0, lowest=0.0)
    [4.0, 18.0, 50.0]
    """
    placed = list(wanted)
    for at in set(column):
        crowds: list[list[int]] = []
        for place in sorted((i for i, c in enumerate(column) if c == at), key=lambda i: wanted[i]):
            crowds.append([place])
            while len(crowds) > 1 and _start(crowds[-1], wanted, gap) < gap + _start(
                crowds[-2], wanted, gap
            ) + gap * (len(crowds[-2]) - 1):
                last = crowds.pop()
                crowds[-1] += last
        for crowd in crowds:
            for row, place in enumerate(crowd):
                placed[place] = max(_start(crowd, wanted, gap), lowest) + gap * row
    return placed


def _start(crowd: Sequence[int], wanted: Sequence[float], gap: float) -> float:
    return sum(wanted[place] for place in crowd) / len(crowd) - gap * (len(crowd) - 1) / 2
