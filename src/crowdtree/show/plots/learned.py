"""Skills of the workers, with their intervals."""

from __future__ import annotations

from collections.abc import Sequence

from crowdtree.core.text import percent
from crowdtree.learning.model import Worker
from crowdtree.show.plots.style import LIGHT
from crowdtree.show.plots.text import clean
from crowdtree.show.plots.vega import COLOURS, PER_CENT, WIDTH, Chart, alt, table, title_of

MOST_WORKERS = 40


def worker_chart(workers: Sequence[Worker], level: float) -> Chart:
    """Error of each worker with its interval, the largest first; of many, both ends."""
    ranked = sorted(workers, key=lambda w: (-w.error, w.name))
    shown = ranked
    small = f"{percent(level)} intervals, the largest errors first"
    if len(ranked) > MOST_WORKERS:
        half = MOST_WORKERS // 2
        shown = [*ranked[:half], *ranked[-half:]]
        small += f"; the {half} largest and smallest of {len(ranked):,}"
    rows = [
        {"worker": clean(w.name), "error": w.error, "low": w.error_low, "high": w.error_high}
        for w in shown
    ]
    down = alt.Y(
        "worker:N",
        sort=[str(row["worker"]) for row in rows],
        title=None,
        axis=alt.Axis(ticks=False, domain=False, labelLimit=200),
    )
    axis = alt.Axis(labelExpr=PER_CENT, tickCount=5)
    title = "share of wrong answers"
    base = alt.Chart(table(rows)).encode(y=down)
    return alt.layer(
        base.mark_rule(color=LIGHT.grey, strokeWidth=1.5).encode(
            x=alt.X("low:Q", title=title, axis=axis), x2="high:Q"
        ),
        base.mark_point(filled=True, size=55, opacity=1, color=COLOURS["ours"]).encode(
            x=alt.X("error:Q", title=title, axis=axis)
        ),
    ).properties(
        width=WIDTH, height=18 * len(rows), title=title_of("How often each worker errs", small)
    )
