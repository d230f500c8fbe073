"""Drawings and charts of results."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from crowdtree.audit import Audit
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.evaluation import Evaluation
from crowdtree.core.fixed_plan import Plan
from crowdtree.core.result_methods import Picture
from crowdtree.core.text import percent
from crowdtree.core.tree import Tree
from crowdtree.designs.frontiers import Frontier
from crowdtree.designs.frontiers.compare import compare, vote_limit
from crowdtree.learning.judges.result import Judgement
from crowdtree.learning.model import Learned
from crowdtree.planning import PlanChoices
from crowdtree.show.plots import draw_tree, tree_svg
from crowdtree.simulation.compare import Comparison
from crowdtree.simulation.run import Run


@singledispatch
def draw(result: Any) -> Picture:
    """Draw a result; see :meth:`crowdtree.core.result_methods.Plotted.draw`."""
    from crowdtree.show.plots.vega import chart_svg, draw_chart

    chart = chart_of(result)
    return Picture(chart_svg(chart), lambda path: draw_chart(chart, path))


@draw.register
def _tree(tree: Tree | Plan, **options: Any) -> Picture:
    return Picture(tree_svg(tree, **options), lambda path: draw_tree(tree, path, **options))


def plot(result: Any) -> Any:
    """Plot a result as an Altair chart with the colours and fonts of crowdtree."""
    from crowdtree.show.plots.vega import finished

    return finished(chart_of(result))


@singledispatch
def chart_of(result: Any) -> Any:
    """Chart of a result, before fonts and colours are fixed."""
    raise CrowdtreeError(f"plot: {type(result).__name__} has no chart")


@chart_of.register
def _frontier(front: Frontier) -> Any:
    from crowdtree.show.plots.frontiers import frontier_chart

    plain = bool((front.options.price == 1).all())
    rows, cost = compare(front, allow_groups=True), "answers" if plain else "price"
    return frontier_chart(rows, cost=cost, most_votes=vote_limit(front))


@chart_of.register
def _choices(choices: PlanChoices) -> Any:
    from crowdtree.show.plots.mixes import mix_chart

    if not choices.mixes:
        raise CrowdtreeError(
            "plot: the plan has one source, so there are no mixes to compare; draw its fixed_plan"
        )
    return mix_chart(choices)


@chart_of.register
def _evaluation(value: Evaluation) -> Any:
    from crowdtree.show.plots.confusion import confusion_chart

    title = f"{percent(value.misclassification)} wrong labels"
    classes = value.tree.problem.classes
    return confusion_chart(value.confusion, classes, title=title)


@chart_of.register
def _run(run: Run) -> Any:
    from crowdtree.show.plots.policies import run_chart

    return run_chart(run)


@chart_of.register
def _comparison(comparison: Comparison) -> Any:
    from crowdtree.show.plots.policies import comparison_chart

    return comparison_chart(comparison)


@chart_of.register
def _audit(audit: Audit) -> Any:
    from crowdtree.show.plots.audits import audit_chart

    if not audit.history:
        raise CrowdtreeError("plot: nothing to plot before the first check; record a result")
    return audit_chart(audit.history, audit.confidence, audit.bound)


@chart_of.register
def _learned(learned: Learned) -> Any:
    from crowdtree.show.plots.learned import worker_chart

    return worker_chart(list(learned.workers.values()), learned.level)


@chart_of.register
def _judgement(judgement: Judgement) -> Any:
    from crowdtree.show.report.judging import accuracy_chart

    chart = accuracy_chart(judgement)
    if chart is None:
        raise CrowdtreeError("plot: nothing to plot; no model was compared with people")
    return chart
