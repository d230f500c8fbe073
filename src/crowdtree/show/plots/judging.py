"""Models beside people: shares with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crowdtree.learning.judges.intervals import Interval
from crowdtree.learning.judges.result import PERSON
from crowdtree.show.plots.style import LIGHT, N_COLOURS
from crowdtree.show.plots.text import clean
from crowdtree.show.plots.vega import PER_CENT, WIDTH, Chart, alt, table, title_of

MOST_ROWS = 40
ROW = 22


Dots = Sequence[tuple[str, str, Interval]]
"""Row, who (a model or a person), and the share with its interval."""


def dots_chart(dots: Dots, title: str, axis: str, small: str) -> Chart | None:
    """Draw shares: in each row a line per model, and a person's in grey; none without rows."""
    if not dots:
        return None
    rows = [
        {"row": clean(row), "who": clean(who), "value": x.value, "low": x.low, "high": x.high}
        for row, who, x in dots[:MOST_ROWS]
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
        color=alt.Color(
            "who:N",
            title=None,
            scale=alt.Scale(domain=names, range=colours),
            legend=alt.Legend(orient="top", columns=4),  # seen on a phone without scrolling
        ),
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
