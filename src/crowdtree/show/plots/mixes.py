"""A chart of mixes of sources: error over cost."""

from __future__ import annotations

from typing import Any

from crowdtree.planning.choices import PlanChoices
from crowdtree.show.plots.curves import curve_chart
from crowdtree.show.plots.vega import Chart


def mix_chart(choices: PlanChoices) -> Chart:
    """Error (or expected loss) over cost, a line per mix; the goal is marked on the chosen one."""
    rows: list[dict[str, Any]] = []
    for name, mix in zip(choices.mix_names, choices.mixes, strict=True):
        ours = mix is choices.mixes[0]
        look = {"kind": "ours"} if ours else {"kind": "baseline", "dash": "dashed"}
        named = {"series": "chosen mix" if ours else name} | look
        rows += [named | {"x": cost, "y": risk} for cost, risk in mix.curve if cost]
    found, by_loss, points = choices.mixes[0].performance, choices.problem.loss is not None, []
    if found is not None:
        risk = float(found.risk if by_loss else found.error)
        points = [{"x": float(found.cost), "y": risk, "label": "this plan"}]
    return curve_chart(
        rows,
        title="What each mix of sources costs: lower left is better",
        x="cost per item",
        y="expected loss per item" if by_loss else "misclassified items",
        subtitle=["Adaptive policies at several stopping rules, simulated."],
        points=points,
        share=not by_loss,
    )
