"""Lines of error over cost, labelled at their ends."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from crowdtree.show.plots.line_labels import (
    HALO,
    HEIGHT,
    PointLabel,
    end_labels,
    point_labels,
    positions,
)
from crowdtree.show.plots.style import LIGHT
from crowdtree.show.plots.vega import COLOURS, PER_CENT, WIDTH, Chart, Row, alt, table, title_of

LOWEST = 1e-9
"""Errors below this leave every chart."""
MOST_DIRECT = 6
"""Lines that are named at their ends; more have a legend beside the chart."""
WIDE = 20.0
"""Ratio of costs from which their axis is logarithmic."""
_LEGEND: dict[str, Any] = {
    "title": None, "orient": "right", "symbolType": "stroke", "symbolSize": 900,
    "symbolStrokeWidth": 2.25, "labelLimit": 0, "rowPadding": 6, "offset": 24,
}  # fmt: skip
_DASHES = {
    "plain": [1, 0], "dashed": [6, 3], "dotted": [2, 3], "floor": [1, 2], "guide": [7, 3, 1, 3],
}  # fmt: skip
LIMITS = {"floor": "lower limit (Fano)", "guide": "ideal (Burnashev)"}
"""Names of the limits in charts."""
EXPLAINED = (
    "Lower limit: fewer answers cannot carry the information, whatever is asked (Fano's bound).",
    "Ideal: what the best adaptive questions approach as errors get small; not a strict limit.",
)


def curve_chart(
    rows: Sequence[Row],
    *,
    title: str,
    x: str,
    y: str = "misclassified items",
    log: bool = True,
    log_x: bool | None = None,
    least: float | None = None,
    subtitle: Sequence[str] = (),
    points: Sequence[Row] = (),
    share: bool = True,
) -> Chart:
    """Lines of error over cost, labelled at their ends or, if there are many, in a legend.

    Lines that coincide become one with both names, and a line of one point is drawn as a dot. Rows
    have ``series``, ``x``, ``y`` and optionally ``kind`` (``ours``, ``paper``, ``baseline``),
    ``dash`` and, for a band, ``low`` and ``high``. `x` and `y` name the axes. The error axis is
    logarithmic with `log`, as far as any error is left to show; errors below `least` (a fourth of
    the least error of the important lines) leave it. The cost axis is where costs span more than
    a factor of `WIDE`. `points` to mark have ``x``, ``y`` and ``label``. A `share` is in per cent.
    """
    log = log and any(row["y"] >= LOWEST for row in rows)
    floor = (least or _floor(rows)) if log else 0.0
    rows = _merged(rows)
    costs = [row["x"] for row in rows if row["y"] >= floor]
    if log_x is None:
        log_x = 0 < WIDE * min(costs) < max(costs)
    shown = _above(rows, floor, log_x) if log else [dict(row) for row in rows]
    scale, ticks = _error_scale(shown, floor, log, 1.0 if share else math.inf)
    ends = [min(row["x"] for row in shown), max(row["x"] for row in shown)]
    across = _cost_axis(x, ends, log_x)
    words: dict[str, Any] = {"labelExpr": PER_CENT} if share else {}
    up = alt.Y("y:Q", title=y, scale=scale, axis=alt.Axis(**words, **ticks))
    layers: list[Chart] = []
    low, high = scale.to_dict()["domain"]
    bands = [
        row | {"low": max(row["low"], low), "high": min(row["high"], high)}
        for row in shown
        if row.get("high", 0) > row.get("low", 0)
    ]
    if bands:
        layers.append(_band(bands, across, scale))
    count = Counter(row["series"] for row in shown)
    legend = len(count) > MOST_DIRECT
    layers += _lines(shown, count, across, up, legend)
    marks = point_labels(points, shown, scale, log, positions(ends, log_x))
    named = [row for row in shown if not legend or count[row["series"]] == 1]
    if named:
        layers += end_labels(named, scale, log, positions(ends, log_x), points, marks)
    if points:
        layers += _marked(points, across, up, marks)
    return alt.layer(*layers).properties(
        width=WIDTH, height=HEIGHT, title=title_of(title, *subtitle)
    )


def _merged(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Give lines that coincide one name, in the look of the most important of them."""
    lines: dict[str, list[Row]] = {}
    for row in rows:
        lines.setdefault(str(row["series"]), []).append(row)
    same: dict[Any, list[str]] = {}
    for name, line in lines.items():
        places = sorted((float(f"{row['x']:.6g}"), float(f"{row['y']:.6g}")) for row in line)
        same.setdefault(tuple(places), []).append(name)
    rank = list(COLOURS)
    found: list[dict[str, Any]] = []
    for names in same.values():
        first = min(names, key=lambda name: rank.index(lines[name][0].get("kind", "baseline")))
        found += [dict(row) | {"series": ", ".join(names)} for row in lines[first]]
    return found


def _above(rows: Sequence[Row], floor: float, log_x: bool) -> list[dict[str, Any]]:
    """Cut lines off where they pass below `floor`.

    >>> line = [{"series": "a", "x": 1.0, "y": 0.1}, {"series": "a", "x": 3.0, "y": 0.001}]
    >>> [(round(row["x"], 6), row["y"]) for row in _above(line, 0.01, False)]
    [(1.0, 0.1), (2.0, 0.01)]
    """
    lines: dict[str, list[Row]] = {}
    for row in rows:
        lines.setdefault(row["series"], []).append(row)
    return [row for line in lines.values() for row in _line_above(line, floor, log_x)]


def _line_above(line: Sequence[Row], floor: float, log_x: bool) -> Iterator[dict[str, Any]]:
    for row, after in zip_longest(line, line[1:]):
        if row["y"] >= floor:
            yield dict(row)
        if after is None or (row["y"] >= floor) == (after["y"] >= floor):
            continue
        heights = [_height(end["y"], floor) for end in (row, after)]
        way = (math.log(floor) - heights[0]) / (heights[1] - heights[0])
        if 0 < way < 1:
            ends = [math.log(end["x"]) if log_x else end["x"] for end in (row, after)]
            at = ends[0] + way * (ends[1] - ends[0])
            band = {}
            for k in {"low", "high"} & row.keys():
                edge = [_height(end[k], floor) for end in (row, after)]
                band[k] = math.exp(edge[0] + way * (edge[1] - edge[0]))
            yield dict(row) | band | {"x": math.exp(at) if log_x else at, "y": floor}


def _height(error: float, floor: float) -> float:
    """Place of an error on a logarithmic axis; 0 is far below the floor."""
    return math.log(max(error, floor / 1000))


def _cost_axis(title: str, ends: list[float], log: bool) -> alt.X:
    if not log:
        scale = alt.Scale(domain=ends, nice=False)
        few = all(isinstance(end, int) for end in ends) and ends[1] - ends[0] < 8
        axis = alt.Axis(tickCount=8)
        if few:
            axis = alt.Axis(values=[*range(int(ends[0]), int(ends[1]) + 1)], format="d")
        return alt.X("x:Q", title=title, scale=scale, axis=axis)
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


def _error_scale(
    rows: Sequence[Row], floor: float, log: bool, most: float
) -> tuple[alt.Scale, dict[str, Any]]:
    high = max(row.get("high", row["y"]) for row in rows)
    if not log:
        return alt.Scale(domain=[0.0, high * 1.05 or 1.0], nice=False), {"tickCount": 6}
    domain = [max(floor, min(row["y"] for row in rows)) / 1.1, min(most, high * 1.3)]
    decades = range(math.floor(math.log10(domain[0])), math.ceil(math.log10(domain[1])) + 1)
    steps = (1, 2, 5) if len(decades) <= 5 else (1,)
    ticks = [step * 10.0**d for d in decades for step in steps]
    values = [tick for tick in ticks if domain[0] <= tick <= domain[1]]
    return alt.Scale(type="log", domain=domain, nice=False), {"values": values}


def _lines(
    rows: Sequence[Row], count: Counter[str], across: alt.X, up: alt.Y, legend: bool
) -> list[Chart]:
    names = list(count)
    looks: dict[str, Row] = {}
    for row in rows:
        looks.setdefault(row["series"], row)
    colours = [COLOURS[looks[name].get("kind", "baseline")] for name in names]
    dashes = [_DASHES[looks[name].get("dash", "plain")] for name in names]
    drawn = [name for name in names if count[name] > 1]
    key = alt.Legend(values=drawn, **_LEGEND) if legend else None
    colour = alt.Color("series:N", scale=alt.Scale(domain=names, range=colours), legend=key)
    dash = alt.StrokeDash("series:N", scale=alt.Scale(domain=names, range=dashes), legend=key)
    base = alt.Chart(table(rows)).encode(x=across, y=up, color=colour, description="series:N")
    alone = [row for row in rows if count[row["series"]] == 1]
    dots = alt.Chart(table(alone)).mark_circle(size=40, opacity=1)
    return [
        base.mark_line(strokeWidth=2.25).encode(strokeDash=dash),
        *([dots.encode(x=across, y=up, color=colour, description="series:N")] if alone else []),
    ]


def _band(rows: Sequence[Row], across: alt.X, scale: alt.Scale) -> Chart:
    return (
        alt.Chart(table(rows))
        .mark_area(color=LIGHT.grey, opacity=0.22)
        .encode(x=across, y=alt.Y("low:Q", scale=scale), y2="high:Q", detail="series:N")
    )


def _marked(
    points: Sequence[Row], across: alt.X, up: alt.Y, marks: Sequence[PointLabel]
) -> list[Chart]:
    base = alt.Chart(table(points)).encode(x=across, y=up)
    layers = [base.mark_point(filled=True, size=90, color=LIGHT.accent, opacity=1)]
    for row, mark in zip(points, marks, strict=True):
        look: dict[str, Any] = {
            "dy": mark.dy,
            "dx": mark.dx,
            "align": mark.align,
            "baseline": "middle",
            "fontWeight": 600,
        }
        text = alt.Chart(table([row])).encode(x=across, y=up, text="label:N")
        layers += [text.mark_text(**look, **HALO), text.mark_text(**look, color=LIGHT.accent)]
    return layers
