"""Pictures of Fig. 1 to 4."""

from __future__ import annotations

from typing import Any

from crowdtree.core.text import percent
from crowdtree.paper.figures import fig_1_tree
from crowdtree.show.plots.curves import curve_chart
from crowdtree.show.plots.levels import level_chart

Rows = list[dict[str, Any]]
LOOKS = {
    "marginal": ("ours", "plain"),
    "paper-fm": ("paper", "plain"),
    "paper-fc": ("paper", "dashed"),
    "random": ("baseline", "dashed"),
    "single": ("baseline", "plain"),
    "everyone": ("baseline", "dotted"),
}
"""Colour and line of each staffing method."""


def chart_of_fig_2() -> Any:
    """Entropy and error of the levels of Fig. 1(a)."""
    levels = fig_1_tree("a").levels
    start = levels[0].entropy
    return level_chart(
        levels, title=f"Fig. 2: three levels reduce the {start:.3g} bits of Fig. 1(a) to 0"
    )


def chart_of_fig_3(rows: Rows) -> Any:
    """Misclassification over the error of every answer, proposed and random order."""
    table: Rows = []
    for row in rows:
        x = row["worker_error"]
        band = {"low": row["random_best"], "high": row["random_worst"]}
        look = {"series": "mean of all 120 orders", "kind": "baseline", "dash": "dashed"}
        table.append(look | band | {"x": x, "y": row["random_mean"]})
        table.append({"series": "F^m tree", "kind": "ours", "x": x, "y": row["proposed"]})
    at = next(row for row in rows if row["worker_error"] == 0.2)
    return curve_chart(
        table,
        title="Fig. 3: the order of the questions matters at every error",
        x="error of one answer, p*",
        log=False,
        subtitle=[
            f"At p* = 0.2 the tree misclassifies {percent(at['proposed'])}, a random order "
            f"{percent(at['random_mean'])}. Band: best to worst order."
        ],
    )


def chart_of_fig_4(rows: Rows) -> Any:
    """Misclassification over the extra workers, by staffing method."""
    table = [
        {"series": name, "kind": kind, "dash": dash, "x": row["extra_workers"], "y": row[name]}
        for name, (kind, dash) in LOOKS.items()
        for row in rows
        if name in row
    ]
    at = next(row for row in rows if row["K"] == 10)
    saved = 1 - at["marginal"] / at["paper-fm"]
    return curve_chart(
        table,
        title="Fig. 4: pairs of workers help most where the error falls most",
        x="extra workers, 2K (everyone: each answers every question)",
        subtitle=[
            f"At 2K = 20 marginal staffing errs {percent(saved)} less often than the paper's rule."
        ],
    )
