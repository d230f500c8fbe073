"""Levels of a tree as bars: entropy left, error added."""

from __future__ import annotations

from collections.abc import Sequence

from crowdtree.core.text import percent
from crowdtree.core.tree import Level
from crowdtree.show.plots.style import LIGHT
from crowdtree.show.plots.vega import PER_CENT, Chart, Row, alt, table, title_of


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
