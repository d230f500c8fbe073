"""Comparison of policies: cost, answers per question, and calibration."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from crowdtree.core.text import amount, number, percent, plural
from crowdtree.show.plots.curves import EXPLAINED, LIMITS, curve_chart
from crowdtree.show.plots.style import LIGHT, SMALL_SIZE
from crowdtree.show.plots.text import clean, distinct, wrap
from crowdtree.show.plots.vega import (
    COLOURS,
    LABEL_COLOURS,
    PER_CENT,
    Chart,
    alt,
    draw_chart,
    table,
    title_of,
)
from crowdtree.simulation.compare import CurveRow

LOOKS = {
    "adaptive": ("ours", "plain"),
    "frontier, margin": ("ours", "dotted"),
    "frontier, majority": ("ours", "dashed"),
    "paper": ("paper", "plain"),
    "paper, curtailed": ("paper", "dashed"),
    "paper, margin": ("paper", "dotted"),
    "batch, nearest": ("baseline", "plain"),
    "batch, posterior": ("baseline", "dashed"),
    "batch, Dawid-Skene": ("baseline", "dotted"),
}
MOST_QUESTIONS = 16
PANEL = 96
LONE_PANEL = 320
"""Width of the bars of a policy beside others, and alone."""
LABEL_WIDTH = 230
"""Pixels of a line of a question beside its bars."""
MOST_LETTERS = 64
"""Characters of a question beside its bars: two lines."""
GROUPS = 8
"""Groups of items whose stated and observed errors are compared."""


def policy_chart(curves: Iterable[CurveRow], error: float, loss: float | None = None) -> Chart:
    """Error over answers of every policy, intervals as bands, with the floor and the guide.

    With `loss`, the expected loss at which policies are compared: expected loss over answers.
    """
    rows: list[dict[str, Any]] = []
    for row in curves:
        name = LIMITS.get(row.series, row.series)
        kind, dash = LOOKS.get(row.series, ("baseline", row.series))
        if row.answers > 0:
            look = {"series": name, "kind": kind, "dash": dash}
            place = {"low": row.low, "high": row.high, "y": row.misclassification}
            if loss is not None and row.risk is not None:
                place = {"low": row.risk.low, "high": row.risk.high, "y": float(row.risk)}
            rows.append(look | place | {"x": row.answers})
    # the limits are drawn only over the range of the policies
    named = set(LIMITS.values())
    least = min(row["x"] for row in rows if row["series"] not in named)
    rows = [row for row in rows if row["series"] not in named or row["x"] >= least / 2]
    order = list(dict.fromkeys(row["series"] for row in rows))
    rows.sort(key=lambda row: (order.index(row["series"]), row["x"]))
    floor = (error if loss is None else loss) / 10
    drawn = {row["series"] for row in rows if row["y"] >= floor}
    small = percent(floor) if loss is None else number(floor)
    below = "; ".join(name for name in order if name not in drawn)
    return curve_chart(
        rows,
        title="What each policy costs: lower left is better",
        x="answers per item",
        y="misclassified items" if loss is None else "expected loss per item",
        log_x=True,
        least=floor,
        share=loss is None,
        subtitle=[
            "Plans are exact; adaptive and batch are simulated, with 95 % intervals as bands.",
            *EXPLAINED,
            *([f"Not shown because they are always below {small}: {below}."] if below else ()),
        ],
    )


def spending_chart(runs: Mapping[str, Any], answers: Mapping[str, float] | None = None) -> Chart:
    """Answers per item to each question, one column per policy; the busiest questions first.

    `answers` per item by policy, where they are known better than from the simulations.
    """
    paid = {name: float(run.answers_per_item) for name, run in runs.items()} | dict(answers or {})
    spent = {name: run.answers_per_question for name, run in runs.items()}
    first = next(iter(runs.values()))
    total: dict[str, float] = {}
    for shares in spent.values():  # each policy has equal weight, however many answers it takes
        whole = sum(shares.values()) or 1.0
        for question, share in shares.items():
            total[question] = total.get(question, 0.0) + share / whole
    order = sorted(total, key=lambda q: -total[q])[:MOST_QUESTIONS]
    problem = first.problem
    asked = [problem.text(problem.question_index(q)) for q in order]
    texts = dict(zip(order, distinct(asked, MOST_LETTERS), strict=True))
    more = len(total) - len(order)
    width = LONE_PANEL if len(runs) == 1 else PANEL
    panels = [
        _spent(name, paid[name], spent[name], order, texts, width, first_panel=place == 0)
        for place, name in enumerate(runs)
    ]
    small = "Answers per item to each question"
    small += ", each policy to its own scale" if len(runs) > 1 else ""
    small += f"; {plural(more, 'question')} less asked not shown." if more else "."
    return alt.hconcat(*panels, spacing=14).properties(
        title=title_of(
            "Where each policy spends its answers" if len(runs) > 1 else "Where the answers go",
            small,
        )
    )


def _spent(
    name: str,
    answers: float,
    shares: Mapping[str, float],
    order: Sequence[str],
    texts: Mapping[str, str],
    width: int,
    *,
    first_panel: bool,
) -> Chart:
    kind = LOOKS.get(name, ("ours", ""))[0]
    rows: list[dict[str, Any]] = [
        {"question": texts[q], "value": shares.get(q, 0.0), "text": _brief(shares.get(q, 0.0))}
        for q in order
    ]
    lines = {text: wrap(text, LABEL_WIDTH, SMALL_SIZE, most=2) for text in texts.values()}
    step = 9 + 13 * max(map(len, lines.values()))
    down = alt.Y("question:N", sort=[texts[q] for q in order], title=None, axis=None)
    most = max(row["value"] for row in rows) or 1.0
    room = 58 / width  # for the numbers behind the bars
    scale = alt.Scale(domain=[0.0, most * (1 + room)], nice=False)
    base = alt.Chart(table(rows)).encode(y=down)
    across = alt.X("value:Q", title=None, scale=scale, axis=None)
    head = alt.TitleParams(
        [*name.split(", "), amount(answers, "answer")],
        fontSize=11,
        anchor="start",
        color=LABEL_COLOURS[kind],
        offset=4,
        frame="group",
    )
    return alt.layer(
        base.mark_bar(height=10, color=COLOURS[kind]).encode(x=across),
        base.mark_text(align="left", dx=4).encode(x=across, text="text:N"),
        *(_row_names(lines, down) if first_panel else ()),
    ).properties(width=width, height=step * len(rows), title=head)


def _row_names(lines: Mapping[str, Sequence[str]], down: alt.Y) -> Iterator[Chart]:
    """Names beside the rows, centred on them however many lines they take."""
    for count in sorted(set(map(len, lines.values()))):
        rows = [
            {"question": name, "name": "\n".join(shown)}
            for name, shown in lines.items()
            if len(shown) == count
        ]
        look: dict[str, Any] = {"lineBreak": "\n", "lineHeight": 13, "align": "right", "dx": -6}
        yield (
            alt.Chart(table(rows))
            .mark_text(**look, dy=-6.5 * (count - 1), color=LIGHT.muted)
            .encode(x=alt.value(0), y=down, text="name:N")
        )


def _brief(value: float) -> str:
    return "" if value == 0 else "< 0.01" if value < 0.01 else number(value, 2)


def calibration_chart(runs: Mapping[str, Any]) -> Chart:
    """Stated against observed error in groups of items; calibrated ones are on the diagonal."""
    rows = [
        {
            "policy": clean(name),
            "stated": row.stated,
            "observed": row.observed,
            "low": row.low,
            "high": row.high,
            "colour": COLOURS[LOOKS.get(name, ("ours", ""))[0]],
        }
        for name, run in runs.items()
        for row in run.calibration(GROUPS)
    ]
    most = min(1.0, 1.08 * max(max(row["high"], row["stated"]) for row in rows))
    # the square root keeps small errors apart and has a place for zero
    scale = alt.Scale(type="sqrt", domain=[0.0, most], nice=False)
    marks = alt.Axis(labelExpr=PER_CENT, values=_ticks(most))
    across = alt.X("stated:Q", title="stated chance of a wrong label", scale=scale, axis=marks)
    up = alt.Y("observed:Q", title="share of wrong labels", scale=scale, axis=marks)
    honest = alt.Chart(table([{"stated": v, "observed": v} for v in (0.0, most)]))
    base = alt.Chart(table(rows)).encode(
        x=across, color=alt.Color("colour:N", scale=None), description="policy:N"
    )
    layers = [
        honest.mark_line(color=LIGHT.grey, strokeDash=[4, 4], strokeWidth=1).encode(x=across, y=up),
        base.mark_rule(strokeWidth=1.5).encode(
            y=alt.Y("low:Q", scale=scale, title="share of wrong labels"), y2="high:Q"
        ),
        base.mark_point(filled=True, size=55, opacity=1).encode(y=up),
    ]
    wrong = [
        f"{clean(name)}: stated {percent(run.stated_error)}, "
        f"observed {percent(run.misclassification)}."
        for name, run in runs.items()
    ]
    return alt.layer(*layers).properties(
        width=320,
        height=320,
        title=title_of(
            "Stated errors are calibrated where the points meet the diagonal",
            "Groups of about equally many items, with 95 % intervals.",
            *wrong,
        ),
    )


def _ticks(most: float) -> list[float]:
    steps = [digit * 10.0**power for power in range(-5, 0) for digit in (1, 2, 5)] + [1.0]
    kept = [0.0]
    for step in steps:  # on a square root scale the small ones would be too close
        if step <= most and step**0.5 - kept[-1] ** 0.5 > 0.12 * most**0.5:
            kept.append(step)
    return kept


def comparison_chart(comparison: Any) -> Chart:
    """Costs, spending and calibration of all policies as one chart."""
    runs = {row.policy: row.run for row in comparison.rows}
    asked_alike = [name for name in runs if name.startswith("batch")][1:]
    for name in asked_alike:  # all of them ask every question equally often: one is enough
        del runs[name]
    simulated = {row.policy: row.run for row in comparison.rows if row.policy == "adaptive"}
    chart = alt.concat(
        policy_chart(comparison.curves, comparison.error, comparison.loss),
        spending_chart(runs, {row.policy: float(row.answers) for row in comparison.rows}),
        calibration_chart(simulated),
        columns=1,
        spacing=48,
        align="none",  # align the panels at the left, however long the names of their axes
    ).properties(title=title_of(f"All policies at {_level(comparison)}"))
    # the legend stays beside its own chart
    return chart.resolve_scale(color="independent", strokeDash="independent")


def _level(comparison: Any) -> str:
    if comparison.loss is not None:
        return f"an expected loss of {number(comparison.loss)} per item"
    return f"{percent(comparison.error)} misclassified"


def draw_comparison(comparison: Any, path: str | os.PathLike[str]) -> Path:
    """Write costs, spending and calibration of all policies as one picture."""
    return draw_chart(comparison_chart(comparison), path)


def run_chart(run: Any, name: str = "adaptive") -> Chart:
    """Calibration and spending of one simulation."""
    shown = f"{percent(run.misclassification)} misclassified, "
    shown += f"{amount(run.answers_per_item, 'answer')} per item"
    return alt.vconcat(
        calibration_chart({name: run}), spending_chart({name: run}), spacing=48
    ).properties(title=title_of(shown))


def draw_run(run: Any, path: str | os.PathLike[str], name: str = "adaptive") -> Path:
    """Write calibration and spending of one simulation."""
    return draw_chart(run_chart(run, name), path)
