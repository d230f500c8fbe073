"""Chart of the frontier of error and cost, with its alternatives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from crowdtree.core.text import number, percent
from crowdtree.designs.frontiers import Point
from crowdtree.designs.frontiers.compare import Row as CurvePoint
from crowdtree.show.plots.curves import EXPLAINED, LIMITS, curve_chart
from crowdtree.show.plots.vega import Chart

_LOOK = {
    "ours": ("co-design", "ours", "plain"),
    "paper": ("paper", "paper", "plain"),
    "random": ("random", "baseline", "dashed"),
    "everyone": ("everyone", "baseline", "dotted"),
    "floor": (LIMITS["floor"], "baseline", "floor"),
    "guide": (LIMITS["guide"], "baseline", "guide"),
}


def frontier_chart(
    rows: Iterable[CurvePoint],
    chosen: Point | None = None,
    *,
    cost: str = "answers",
    most_votes: int | None = None,
) -> Chart:
    """Error over cost: the frontier, the paper, the baselines and the information floor.

    `cost` names what is paid per item: answers, or their price. `most_votes` is the limit of votes
    per question of the frontier and the paper, which the chart states.
    """
    table: list[dict[str, Any]] = []
    for row in sorted(rows, key=lambda row: row.series == "ours"):  # the last line is drawn on top
        name, kind, dash = _LOOK.get(row.series, (row.series, "baseline", "plain"))
        look = {"series": name, "kind": kind, "dash": dash}
        band = {"low": row.low, "high": row.high}
        table.append(look | band | {"x": row.cost, "y": row.misclassification})
    points = []
    if chosen is not None:
        error = chosen.decided_error
        paid = number(chosen.expected_cost)
        paid = f"{paid} answers" if cost == "answers" else f"{cost} {paid}"
        words = f"{percent(error)} for {paid}"
        if chosen.undecided:
            words += f", {percent(chosen.undecided)} undecided"
        points = [{"x": chosen.expected_cost, "y": error, "label": words}]
    limit = f"Both: at most {most_votes} votes per question."
    return curve_chart(
        table,
        title="What each error costs: lower left is better",
        x=f"expected {cost} per item",
        subtitle=[
            "Co-design: questions and votes chosen together. Paper: first a tree, then its votes.",
            *([limit] if most_votes else []),
            "Everyone: all workers answer every question. Random: the mean of random plans.",
            *EXPLAINED,
        ],
        points=points,
    )


def loss_chart(points: Iterable[Any], chosen: Any = None, *, cost: str = "answers") -> Chart:
    """Expected loss over cost, for a problem whose mistakes have different costs."""
    look = {"series": "this frontier", "kind": "ours", "dash": "plain"}
    rows = [look | {"x": point.expected_cost, "y": point.risk} for point in points]
    marks = []
    if chosen is not None:
        words = f"loss {number(chosen.risk)}, {cost} {number(chosen.expected_cost)}"
        marks = [{"x": chosen.expected_cost, "y": chosen.risk, "label": words}]
    return curve_chart(
        rows,
        title="What each expected loss costs: lower left is better",
        x=f"expected {cost} per item",
        y="expected loss per item",
        points=marks,
        share=False,
    )
