"""Levels, bounds and designs: bars and intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from crowdtree.evaluation import Evaluation
from crowdtree.plots.style import LIGHT
from crowdtree.plots.vega import COLOURS, PER_CENT, WIDTH, Chart, Row, alt, table, title_of
from crowdtree.text import number, percent
from crowdtree.tree import Level

__all__ = ["bounds_chart", "design_chart", "level_chart"]

INTERVAL_WIDTH = 250


def level_chart(levels: Sequence[Level], *, title: str | None = None) -> Chart:
    """Entropy left at each level, and the error that each step to it adds."""
    left = [
        {"level": f"L{v.depth}", "value": v.entropy, "text": f"{v.entropy:.3g}"} for v in levels
    ]
    added = [
        {"level": f"L{v.depth - 1} → L{v.depth}", "value": v.g, "text": percent(v.g)}
        for v in levels
        if v.g is not None
    ]
    steps = len(added)
    head = title or f"{steps} level{'s' * (steps > 1)} of questions leave no uncertainty"
    entropy = _columns(
        left, "level", "entropy left (bits)", LIGHT.accent, "format(datum.value, '~g')"
    )
    error = _columns(added, "step", "error added, g (share of items)", LIGHT.error, PER_CENT)
    return alt.hconcat(entropy, error).properties(title=title_of(head))


def _columns(rows: Sequence[Row], x: str, y: str, colour: str, form: str) -> Chart:
    order = [row["level"] for row in rows]
    many = len(rows) > 6
    most = max(row["value"] for row in rows) or 1.0
    top = alt.Scale(domain=[0.0, 1.12 * most], nice=False)  # space for the number on a bar
    base = alt.Chart(table(rows)).encode(
        x=alt.X(
            "level:N",
            sort=order,
            title=x,
            axis=alt.Axis(labelAngle=-60 if many else 0, ticks=False, labelOverlap=True),
        ),
        y=alt.Y("value:Q", title=y, scale=top, axis=alt.Axis(labelExpr=form, tickCount=5)),
    )
    bars = base.mark_bar(color=colour, size=max(3, min(22, 190 // len(rows))))
    if many:
        return alt.layer(bars).properties(width=360, height=200)
    words = base.mark_text(dy=-7).encode(text="text:N")
    return alt.layer(bars, words).properties(width=max(68 * len(rows), 136), height=200)


def bounds_chart(value: Evaluation) -> Chart:
    """Proven intervals of the level scores, next to those that the paper prints."""
    bounds = value.bounds
    exact_m, exact_c = value.misclassification, 1 - value.misclassification
    wrong = [
        ("bound (F^m)", 0.0, bounds.misclassification_upper, "ours"),
        ("as printed (F^m)", *bounds.printed_misclassification, "paper"),
    ]
    right = [
        ("bounds of Π b (F^c)", *bounds.product, "ours"),
        ("as printed (F^c)", *bounds.printed_correct, "paper"),
    ]
    head = "Proven bounds (teal) and bounds as printed in the paper (orange)"
    return alt.hconcat(
        _intervals(wrong, exact_m, "chance of a wrong label", None),
        _intervals(right, exact_c, "chance of the right label", 1.0),
        spacing=72,
    ).properties(title=title_of(head, "The vertical line is the exact value."))


def _intervals(
    rows: Sequence[tuple[str, float, float, str]], exact: float, x: str, most: float | None
) -> Chart:
    data: list[dict[str, Any]] = [
        {
            "name": name,
            "low": low,
            "high": high,
            "kind": kind,
            "text": f"{number(low, 4)} to {number(high, 4)}"
            if low
            else f"at most {number(high, 4)}",
        }
        for name, low, high, kind in rows
        if math.isfinite(low) and math.isfinite(high)
    ]
    order = [name for name, *_ in rows]
    edges = [exact, *(row["low"] for row in data), *(row["high"] for row in data)]
    edges += [most] if most else []
    pad = 0.06 * (max(edges) - min(edges))
    scale = alt.Scale(domain=[max(min(edges) - pad, 0.0), max(edges) + pad], nice=False, zero=False)
    base = alt.Chart(table(data)).encode(
        y=alt.Y("name:N", sort=order, title=None, axis=alt.Axis(ticks=False, domain=False)),
        color=alt.Color(
            "kind:N",
            scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
            legend=None,
        ),
    )
    across = alt.X(
        "low:Q",
        title=x,
        scale=scale,
        axis=alt.Axis(tickCount=4, labelExpr="format(datum.value, '~g')"),
    )
    layers: list[Chart] = [
        base.mark_bar(height=12).encode(x=across, x2="high:Q"),
        base.mark_text(align="left", dx=8).encode(
            x=alt.value(INTERVAL_WIDTH), text="text:N", color=alt.value(LIGHT.text)
        ),
        *_rule(exact, f"exact {number(exact, 4)}", LIGHT.text, scale, left=True),
    ]
    if most is not None and max(edges) > most:
        layers += _rule(most, "a probability cannot exceed 1", LIGHT.error, scale, left=False)
    return alt.layer(*layers).properties(width=INTERVAL_WIDTH, height=88)


def _rule(at: float, words: str, colour: str, scale: alt.Scale, left: bool) -> list[Chart]:
    """A vertical line with a label at its upper end."""
    base = alt.Chart(table([{"at": at, "text": words}])).encode(x=alt.X("at:Q", scale=scale))
    side: dict[str, Any] = {"align": "right", "dx": -2} if left else {"align": "left", "dx": 3}
    return [
        base.mark_rule(color=colour, strokeWidth=1.5),
        base.mark_text(color=colour, **side).encode(y=alt.value(-8), text="text:N"),
    ]


def design_chart(rows: Sequence[Row], *, title: str) -> Chart:
    """Bars of the error of several designs, with an interval where one is given.

    Rows hold ``name``, ``value``, ``kind`` and optionally ``low`` and ``high``.
    """
    x = "misclassified items"
    data = [dict(row) | {"text": percent(row["value"])} for row in rows]
    order = [row["name"] for row in data]
    reach = max(max(row.get("high", 0.0), row["value"]) for row in data)
    scale = alt.Scale(domain=[0.0, reach * 1.18 or 1.0], nice=False)
    across = alt.X("value:Q", title=x, scale=scale, axis=alt.Axis(labelExpr=PER_CENT, tickCount=5))
    down = alt.Y(
        "name:N", sort=order, title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=260)
    )
    colour = alt.Color(
        "kind:N",
        scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
        legend=None,
    )
    base = alt.Chart(table(data))
    layers = [base.mark_bar(height=16).encode(x=across, y=down, color=colour)]
    ranged = [row for row in data if row.get("high", 0) > row.get("low", 0)]
    if ranged:
        layers.append(
            alt.Chart(table(ranged))
            .mark_rule(color=LIGHT.text, strokeWidth=1.5)
            .encode(x=alt.X("low:Q", scale=scale, title=x), x2="high:Q", y=down)
        )
    ends = [row | {"end": max(row.get("high", 0.0), row["value"])} for row in data]
    layers.append(
        alt.Chart(table(ends))
        .mark_text(align="left", dx=6)
        .encode(x=alt.X("end:Q", scale=scale, title=x), y=down, text="text:N")
    )
    return alt.layer(*layers).properties(width=WIDTH, height=30 * len(data), title=title_of(title))
