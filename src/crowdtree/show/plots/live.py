"""Chart of the learned reliability of workers."""

from __future__ import annotations

from collections.abc import Sequence

from crowdtree.show.plots.style import LIGHT
from crowdtree.show.plots.vega import PER_CENT, Chart, Row, alt, table, title_of

SIZE = 320


def trust_chart(rows: Sequence[Row]) -> Chart:
    """Learned reliability of each worker over the true one; on the line they agree.

    Rows have `name`, `right`, `reliability`, and `kind`: worker or spammer.
    """
    ends = [value for row in rows for value in (row["right"], row["reliability"])]
    low = max(0.0, min([*ends, 0.5]) - 0.05)
    scale = alt.Scale(domain=[low, 1.0], nice=False, zero=False)
    axis = alt.Axis(labelExpr=PER_CENT, tickCount=5)
    line = (
        alt.Chart(table([{"a": low, "b": low}, {"a": 1.0, "b": 1.0}]))
        .mark_line(color=LIGHT.line, strokeWidth=1)
        .encode(x=alt.X("a:Q", scale=scale), y=alt.Y("b:Q", scale=scale))
    )
    kinds = alt.Scale(domain=["worker", "spammer"], range=[LIGHT.accent, LIGHT.error])
    shapes = alt.Scale(domain=["worker", "spammer"], range=["circle", "diamond"])
    dots = (
        alt.Chart(table(rows))
        .mark_point(filled=True, size=56, opacity=0.9)
        .encode(
            x=alt.X("right:Q", title="right answers, true share", scale=scale, axis=axis),
            y=alt.Y("reliability:Q", title="right answers, as learned", scale=scale, axis=axis),
            color=alt.Color("kind:N", scale=kinds, legend=None),
            shape=alt.Shape("kind:N", scale=shapes, legend=None),
            tooltip=["name:N"],
        )
    )
    spammers = [row for row in rows if row["kind"] == "spammer"]
    words = (
        alt.Chart(table(spammers[:1]))
        .mark_text(align="left", dx=10, color=LIGHT.error)
        .encode(
            x=alt.X("right:Q", scale=scale),
            y=alt.Y("reliability:Q", scale=scale),
            text=alt.value("spammers" if len(spammers) > 1 else "spammer"),
        )
    )
    head = title_of(
        "Learned and true reliability of the workers",
        "One dot per worker. On the line, both agree.",
    )
    return alt.layer(line, dots, words).properties(width=SIZE, height=SIZE, title=head)
