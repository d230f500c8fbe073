"""The confusion heat map, from a handful of classes to hundreds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from crowdtree.core.text import percent, percent_cell
from crowdtree.show.plots.style import LIGHT, SMALL_SIZE
from crowdtree.show.plots.text import distinct, text_width
from crowdtree.show.plots.vega import Chart, Row, alt, table, title_of

MOST_CELLS = 6000
MOST_LETTERS = 28
"""Characters of a name beside the chart."""


def confusion_chart(confusion: Any, classes: Sequence[str], *, title: str) -> Chart:
    """Heat map of label given class: right answers teal, confusions in the colour of errors.

    Of a large table the largest `MOST_CELLS` cells are drawn and labels are thinned.
    """
    n = len(classes)
    cells = sorted(
        (
            (float(confusion[i][j]), i, j)
            for i in range(n)
            for j in range(n)
            if confusion[i][j] >= (5e-5 if n > 8 else 1e-12) or i == j
        ),
        reverse=True,
    )[:MOST_CELLS]
    names = distinct(classes, MOST_LETTERS)
    size = 48 if n <= 8 else max(3.2, min(26.0, 560 / n))
    rows: list[dict[str, Any]] = [
        {"truth": names[i], "label": names[j], "value": v, "text": percent_cell(v)}
        for v, i, j in cells
    ]
    right = [row for row in rows if row["truth"] == row["label"]]
    wrong = [row for row in rows if row["truth"] != row["label"]]
    shown = _thinned(names, size)
    subtitle = [_explained(wrong, n)]
    if len(shown) < n:
        every = f"{len(shown)} of {n} classes are named at the edges."
        subtitle = [*subtitle, every]
    x, y = _class_axes(names, shown)
    layers = [_cells(right, x, y, LIGHT.accent, 1.0), _cells(wrong, x, y, LIGHT.error, 0.5)]
    if n <= 8:
        most = max((row["value"] for row in wrong), default=1.0)
        strong = [*right, *(row for row in wrong if row["value"] > 0.4 * most)]
        faint = [row for row in wrong if row["value"] <= 0.4 * most]
        layers += [
            _cell_words(strong, x, y, LIGHT.background),
            _cell_words(faint, x, y, LIGHT.text),
        ]
    return (
        alt.layer(*(layer for layer in layers if layer is not None))
        .resolve_scale(opacity="independent")
        .properties(width=size * n, height=size * n, title=title_of(title, *subtitle))
    )


def _explained(wrong: Sequence[Row], n: int) -> str:
    """Say what the colours are, and the numbers or the darkest shade."""
    if n <= 8:
        return "Teal: right. Orange: wrong. In % of the class."
    most = max((row["value"] for row in wrong), default=0.0)
    return f"Teal: right. Orange: wrong; the darkest cell is {percent(most)} of its class."


def _thinned(names: Sequence[str], size: float) -> list[str]:
    """Every k-th name, so that labels of 11 px do not touch."""
    step = max(1, math.ceil(12.5 / size))
    return list(names[::step])


def _class_axes(names: Sequence[str], shown: Sequence[str]) -> tuple[alt.X, alt.Y]:
    order = list(names)
    wide = max(text_width(name, SMALL_SIZE) for name in names)
    axis: dict[str, Any] = {
        "values": list(shown), "ticks": False, "domain": False,
        "labelOverlap": False, "labelLimit": 0, "labelPadding": 6,
    }  # fmt: skip
    flat = wide < 44 and len(names) <= 8
    # space for the names in a wide font, so that the name of the axis stays clear of them
    above = 22 if flat else 16 + wide * math.sin(math.radians(60))
    return (
        alt.X(
            "label:N",
            sort=order,
            scale=alt.Scale(domain=order, paddingInner=0.04),
            title="label given",
            axis=alt.Axis(orient="top", labelAngle=0 if flat else -60, minExtent=above, **axis),
        ),
        alt.Y(
            "truth:N",
            sort=order,
            scale=alt.Scale(domain=order, paddingInner=0.04),
            title="true class",
            axis=alt.Axis(titleAlign="right", titleX=-8, **axis),
        ),
    )


def _cells(rows: Sequence[Row], x: alt.X, y: alt.Y, colour: str, exponent: float) -> Chart:
    """Rectangles in one colour, more opaque where more likely, which works on any background."""
    if not rows:
        return None
    high = max(row["value"] for row in rows)
    scale = alt.Scale(type="pow", exponent=exponent, domain=[0.0, high], range=[0.06, 1.0])
    return (
        alt.Chart(table(rows))
        .mark_rect(color=colour)
        .encode(x=x, y=y, opacity=alt.Opacity("value:Q", scale=scale, legend=None))
    )


def _cell_words(rows: Sequence[Row], x: alt.X, y: alt.Y, colour: str) -> Chart:
    if not rows:
        return None
    return alt.Chart(table(rows)).mark_text(color=colour).encode(x=x, y=y, text="text:N")
