"""Lines of error over cost, labelled at their ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import altair as alt

from crowdtree.plots.style import LIGHT, SMALL_SIZE
from crowdtree.plots.text import clean, text_width
from crowdtree.plots.vega import (
    COLOURS,
    LABEL_COLOURS,
    PER_CENT,
    WIDTH,
    Chart,
    Row,
    table,
    title_of,
)

__all__ = ["ErrorPoint", "curve_chart"]

HEIGHT = 320
GAP = 14.0
"""Pixels between the middles of two labels."""
LEAST_HEIGHT = 8.0
LOWEST = 1e-9
"""Errors below this leave every chart."""
_DASHES = {"plain": [1, 0], "dashed": [6, 3], "dotted": [2, 3], "floor": [1, 2]}


class ErrorPoint(Protocol):
    """A point of a curve of errors, with its interval."""

    @property
    def series(self) -> str:
        """Name of the curve."""
        ...

    @property
    def misclassification(self) -> float:
        """Share of wrong labels."""
        ...

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        ...

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        ...


def curve_chart(
    rows: Sequence[Row],
    *,
    title: str,
    x: str,
    y: str = "misclassified items",
    log: bool = True,
    log_x: bool = False,
    subtitle: Sequence[str] = (),
    points: Sequence[Row] = (),
    share: bool = True,
) -> Chart:
    """Lines of error over cost, labelled at their ends.

    Parameters
    ----------
    rows
        ``series``, ``x``, ``y`` and optionally ``kind`` (``ours``, ``paper``, ``baseline``),
        ``dash`` (``plain``, ``dashed``, ``dotted``, ``floor``), ``low`` and ``high`` for a band.
    title, subtitle
        Title and small print.
    x, y
        Names of the axes, with units.
    log
        A logarithmic error axis, where any error is left to show on it.
    log_x
        A logarithmic cost axis.
    points
        Single points to mark: ``x``, ``y`` and ``label``.
    share
        Whether `y` is a share, written in per cent.
    """
    log = log and any(row["y"] >= LOWEST for row in rows)
    floor = _floor(rows) if log else 0.0
    shown = [dict(row) for row in rows if row["y"] >= floor]
    scale, ticks = _error_scale(shown, floor, log)
    ends = [min(row["x"] for row in shown), max(row["x"] for row in shown)]
    across = _cost_axis(x, ends, log_x)
    words: dict[str, Any] = {"labelExpr": PER_CENT} if share else {}
    up = alt.Y("y:Q", title=y, scale=scale, axis=alt.Axis(**words, **ticks))
    layers: list[Chart] = []
    bands = [
        row | {"low": max(row["low"], floor)}
        for row in shown
        if row.get("high", 0) > row.get("low", 0)
    ]
    if bands:
        layers.append(_band(bands, across, scale))
    layers.append(_lines(shown, across, up))
    layers += _end_labels(shown, scale, log, _positions(ends, log_x))
    if points:
        layers += _marked(points, across, up)
    return alt.layer(*layers).properties(
        width=WIDTH, height=HEIGHT, title=title_of(title, *subtitle)
    )


def _cost_axis(title: str, ends: list[float], log: bool) -> alt.X:
    if not log:
        scale = alt.Scale(domain=ends, nice=False)
        return alt.X("x:Q", title=title, scale=scale, axis=alt.Axis(tickCount=8))
    decades = range(math.floor(math.log10(ends[0])), math.ceil(math.log10(ends[1])) + 1)
    ticks = [step * 10.0**d for d in decades for step in (1, 2, 5)]
    values = [tick for tick in ticks if ends[0] <= tick <= ends[1]]
    scale = alt.Scale(type="log", domain=ends, nice=False)
    axis = alt.Axis(values=values, labelExpr="format(datum.value, '~r')")
    return alt.X("x:Q", title=title, scale=scale, axis=axis)


def _floor(rows: Sequence[Row]) -> float:
    """Lower end of a logarithmic axis: below the important lines; others may leave the chart."""
    chief = [row["y"] for row in rows if row.get("kind") in ("ours", "paper")]
    positive = [value for value in chief or [row["y"] for row in rows] if value > 0]
    return max(LOWEST, min(positive, default=LOWEST) / 4)


def _error_scale(rows: Sequence[Row], floor: float, log: bool) -> tuple[alt.Scale, dict[str, Any]]:
    high = max(row.get("high", row["y"]) for row in rows)
    if not log:
        return alt.Scale(domain=[0.0, high * 1.05 or 1.0], nice=False), {"tickCount": 6}
    domain = [max(floor, min(row["y"] for row in rows)) / 1.1, min(1.0, high * 1.3)]
    decades = range(math.floor(math.log10(domain[0])), 1)
    steps = (1, 2, 5) if len(decades) <= 5 else (1,)
    ticks = [step * 10.0**d for d in decades for step in steps]
    values = [tick for tick in ticks if domain[0] <= tick <= domain[1]]
    return alt.Scale(type="log", domain=domain, nice=False), {"values": values}


def _lines(rows: Sequence[dict[str, Any]], across: alt.X, up: alt.Y) -> Chart:
    dashes: dict[str, str] = {}
    for row in rows:
        dashes.setdefault(str(row["series"]), str(row.get("dash", "plain")))
    names = list(dashes)
    coloured = [row | {"colour": COLOURS[row.get("kind", "baseline")]} for row in rows]
    return (
        alt.Chart(table(coloured))
        .mark_line(strokeWidth=2.25)
        .encode(
            x=across,
            y=up,
            color=alt.Color("colour:N", scale=None),
            description="series:N",  # text for screen readers, in place of the colour
            strokeDash=alt.StrokeDash(
                "series:N",
                scale=alt.Scale(domain=names, range=[_DASHES[dashes[n]] for n in names]),
                legend=None,
            ),
        )
    )


def _band(rows: Sequence[Row], across: alt.X, scale: alt.Scale) -> Chart:
    return (
        alt.Chart(table(rows))
        .mark_area(color=LIGHT.grey, opacity=0.22)
        .encode(
            x=across,
            y=alt.Y("low:Q", scale=scale),
            y2="high:Q",
            detail="series:N",
        )
    )


def _positions(ends: list[float], log: bool) -> Callable[[float], float]:
    """Pixels from the left of a cost."""
    low, high = (math.log(ends[0]), math.log(ends[1])) if log else ends

    def place(x: float) -> float:
        return WIDTH * ((math.log(x) if log else x) - low) / ((high - low) or 1.0)

    return place


def _end_labels(
    rows: Sequence[Row], scale: alt.Scale, log: bool, place: Callable[[float], float]
) -> list[Chart]:
    """Names at the ends of the lines, moved apart where they would touch."""
    ends: dict[str, Row] = {}
    for row in rows:
        if row["series"] not in ends or row["x"] >= ends[row["series"]]["x"]:
            ends[row["series"]] = row
    low, high = scale.to_dict()["domain"]
    low, high = (math.log(low), math.log(high)) if log else (low, high)
    span = (high - low) / HEIGHT
    # lines that stop early keep their label there; those that end together share one column
    wanted = [((math.log(r["y"]) if log else r["y"]) - low) / span for r in ends.values()]
    column = [place(r["x"]) for r in ends.values()]
    widths = [text_width(str(name), SMALL_SIZE, bold=True) + 8 for name in ends]
    placed = _free(_apart(wanted, column, GAP, lowest=LEAST_HEIGHT), column, widths)
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
    halo: dict[str, Any] = {
        "stroke": LIGHT.background,
        "strokeWidth": 4,
        "strokeJoin": "round",
        "aria": False,
    }
    return [  # a halo keeps a name readable where it lies across another line
        *([base.mark_text(**look, **halo)] if len(set(column)) > 1 else []),
        base.mark_text(**look).encode(color=alt.Color("colour:N", scale=None)),
    ]


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


def _marked(points: Sequence[Row], across: alt.X, up: alt.Y) -> list[Chart]:
    base = alt.Chart(table(points)).encode(x=across, y=up)
    return [
        base.mark_point(filled=True, size=90, color=LIGHT.accent, opacity=1),
        base.mark_text(dy=-14, dx=4, align="left", fontWeight=600, color=LIGHT.accent).encode(
            text="label:N"
        ),
    ]
