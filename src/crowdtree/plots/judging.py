"""Models beside people: accuracy with intervals, recall of labels, and joint errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from crowdtree.judging.result import PERSON
from crowdtree.plots.style import LIGHT, N_COLOURS
from crowdtree.plots.text import clean
from crowdtree.plots.vega import PER_CENT, WIDTH, Chart, alt, table, title_of
from crowdtree.text import percent_cell

MOST_ROWS = 40
ROW = 22


class _Interval(Protocol):
    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


class _Together(Protocol):
    @property
    def first(self) -> str: ...
    @property
    def second(self) -> str: ...
    @property
    def both_wrong(self) -> _Interval: ...
    @property
    def independent(self) -> float: ...


Dots = Sequence[tuple[str, str, _Interval]]
"""Row, who (a model or a person), and the share with its interval."""


def dots_chart(dots: Dots, *, title: str, axis: str, small: str) -> Chart:
    """Shares with their intervals: of each row one line per model, and a person's in grey."""
    shown = dots[:MOST_ROWS]
    rows = [
        {"row": clean(row), "who": clean(who), "value": x.value, "low": x.low, "high": x.high}
        for row, who, x in shown
    ]
    names = list(dict.fromkeys(str(row["who"]) for row in rows))
    palette = LIGHT.answers
    colours = [LIGHT.grey if n == PERSON else palette[i % N_COLOURS] for i, n in enumerate(names)]
    base = alt.Chart(table(rows)).encode(
        y=alt.Y(
            "row:N",
            sort=list(dict.fromkeys(str(row["row"]) for row in rows)),
            title=None,
            axis=alt.Axis(ticks=False, domain=False, labelLimit=200),
        ),
        yOffset=alt.YOffset("who:N", sort=names),
        color=alt.Color("who:N", title=None, scale=alt.Scale(domain=names, range=colours)),
    )
    across: dict[str, Any] = {
        "title": axis,
        "axis": alt.Axis(labelExpr=PER_CENT, tickCount=5),
        "scale": alt.Scale(zero=False),
    }
    return alt.layer(
        base.mark_rule(strokeWidth=1.5).encode(x=alt.X("low:Q", **across), x2="high:Q"),
        base.mark_point(filled=True, size=55, opacity=1).encode(x=alt.X("value:Q", **across)),
    ).properties(width=WIDTH, height=max(60, ROW * len(rows)), title=title_of(title, small))


def together_chart(pairs: Iterable[_Together], names: Sequence[str], *, title: str) -> Chart:
    """Heat table of joint errors: how often two are wrong at once, and if they were independent."""
    rows: list[dict[str, Any]] = []
    for pair in pairs:
        text = " / ".join(percent_cell(x) or "0" for x in (pair.both_wrong.value, pair.independent))
        rows.append(
            {"a": clean(pair.second), "b": clean(pair.first), "value": pair.both_wrong.value}
            | {"text": text}
        )
    order = [clean(name) for name in names]
    sides = {
        "x": alt.X(
            "a:N",
            sort=order,
            title=None,
            axis=alt.Axis(orient="top", labelAngle=-40, ticks=False, domain=False, labelLimit=160),
        ),
        "y": alt.Y(
            "b:N",
            sort=order,
            title=None,
            axis=alt.Axis(ticks=False, domain=False, labelLimit=160),
        ),
    }
    most = max((row["value"] for row in rows), default=1.0) or 1.0
    scale = alt.Scale(domain=[0.0, most], range=[0.06, 0.6])
    size = len(order) - 1
    return alt.layer(
        alt.Chart(table(rows))
        .mark_rect(color=LIGHT.error)
        .encode(opacity=alt.Opacity("value:Q", scale=scale, legend=None), **sides),
        alt.Chart(table(rows)).mark_text(color=LIGHT.text).encode(text="text:N", **sides),
    ).properties(
        width=84 * size,
        height=30 * size,
        title=title_of(title, "In % of items: both wrong / both wrong if independent."),
    )
