"""What a manager needs from a plan: error, answers, cost, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from crowdtree.core.bounds import checked_price
from crowdtree.core.evaluation import Evaluation
from crowdtree.core.loss import Loss
from crowdtree.core.problem import Problem
from crowdtree.core.text import amount, number, percent, plural
from crowdtree.core.tree import Tree
from crowdtree.show.report.ways import Way

ITEMS = 1000
"""Items of the examples in the text."""
PRICE = 0.05
"""Price per answer of the example, unless one is given."""
ADAPTIVE = (
    "It chooses each question by the answers so far, and labels an item when the label is sure "
    "enough."
)
PILOT = "Check the assumed errors with a few real answers before the campaign (crowdtree pilot)"
START = f"{PILOT}, and start the campaign with crowdtree serve."
NO_CAMPAIGN = f"{PILOT}. Campaigns of crowdtree serve ask yes/no questions only, so far."
ONE_SOURCE = f"{PILOT}. Campaigns of crowdtree serve ask one source only, so far."


class Point(NamedTuple):
    """A point of the summary: what it is about, and a few sentences."""

    name: str
    text: str


def heading(problem: Problem, way: Way) -> str:
    """Title of the page."""
    size = plural(problem.n_classes, "class", "classes")
    risk = "" if way.risk is None else f"expected loss {number(way.risk)}, "
    paid = "" if way.cost is None else f" and a cost of {number(way.cost)}"
    return (
        f"{size}: {risk}{percent(way.error)} wrong labels with "
        f"{amount(way.answers, 'answer')}{paid} per item"
    )


def about(value: Evaluation) -> str:
    """What a plan is, in words."""
    plan, tree = value.plan, value.tree
    low, high = int(plan.votes.min()), int(plan.votes.max())
    many = str(low) if low == high else f"{low} to {high}"
    people = plan.rule.people(many, high == 1, tree.problem.n_answers.max() > 2)
    return (
        f"An item is asked {amount(value.expected_questions, 'question')} on average and at most "
        f"{tree.depth}; each question is put to {people}."
    )


def adaptive_points(
    problem: Problem, way: Way, prices: Sequence[float] | None, tree: Tree | None
) -> list[Point]:
    """Cost, evidence and next steps of an adaptive policy, given the best fixed tree."""
    who = "people who err as often as the table of errors says"
    if problem.has_sources:
        who = "sources that err as often, and as often together, as the problem says"
    sure = f"Simulated, for {who}: {way.sure} wrong."
    then = Point("What to do next", _separate(tree) + _start(problem))
    return [_cost(problem, way, prices), Point("How sure", sure), then]


def _separate(tree: Tree | None) -> str:
    """What to do about classes that no question separates, as a sentence before others."""
    if tree is None:
        return ""
    names = tree.problem.classes
    groups = dict.fromkeys(members for members in tree.leaf_classes if len(members) > 1)
    words = "; ".join(" and ".join(names[c] for c in members) for members in groups)
    return f"Add a question that separates {words}. " if words else ""


def _start(problem: Problem) -> str:
    if (problem.whole or problem).has_sources:
        return ONE_SOURCE
    return START if problem.is_yes_no else NO_CAMPAIGN


def tree_points(value: Evaluation, way: Way, prices: Sequence[float] | None) -> list[Point]:
    """Cost, wrong labels and next steps of a plan."""
    found = [_cost(value.tree.problem, way, prices), Point("How sure", _wrong(value))]
    if value.tree.problem.loss is not None:
        found.append(Point("Costliest mistakes", _costliest(value, value.tree.problem.loss)))
    return [*found, Point("What to do next", _next(value))]


def _cost(problem: Problem, way: Way, prices: Sequence[float] | None) -> Point:
    """What the answers about some items cost; an example where there are no prices."""
    if prices is None or way.cost is None:
        paid, each = f"For example, at {number(PRICE)}", PRICE * way.answers
    else:
        every = checked_price(prices, problem)
        low, high, each = float(every.min()), float(every.max()), way.cost
        paid = f"At a price of {number(low)}" + ("" if low == high else f" to {number(high)}")
    return Point(
        "Cost",
        f"{ITEMS:,} items take about {_rounded(ITEMS * way.answers)} answers. {paid} per answer "
        f"that is {_rounded(ITEMS * each)}. About {number(ITEMS * way.error, 2)} of their labels "
        "will be wrong.",
    )


def _rounded(value: float) -> str:
    """A number with three significant digits also above 1,000.

    >>> _rounded(22_699), _rounded(1.234)
    ('22,700', '1.23')
    """
    return number(float(f"{value:.3g}"))


def _wrong(value: Evaluation) -> str:
    words = "Exact, for people who err as often as the table of errors says."
    if value.plan.handed_over:
        loss = value.tree.problem.loss
        left = "are left undecided" if loss is None or loss.refer is None else "go to an expert"
        words += f" {percent(value.undecided)} of all items {left}, and are not counted as wrong."
    return words


def _costliest(value: Evaluation, loss: Loss) -> str:
    """How many items get a label that costs the most."""
    rows = value.confusions(loss.matrix.size)  # without items that go to an expert
    share = sum(row.overall for row in rows if row.loss > row.overall * loss.largest * (1 - 1e-9))
    return (
        f"{percent(share)} of the items get a label that costs {number(loss.largest)}, the largest "
        f"loss. Mistakes and experts cost {number(value.risk)} per item on average."
    )


def _next(value: Evaluation) -> str:
    """Where a further answer or question helps most."""
    tree, plan = value.tree, value.plan
    if not value.misclassification:
        return _separate(tree) + _start(tree.problem)
    node = int(np.argmax(plan.node_error))
    text = tree.problem.text(int(tree.question[node]))
    return (
        f"{_separate(tree)}Most mistakes are made at question {node + 1} (“{text}”), "
        f"whose vote is wrong for {percent(float(plan.node_error[node]))} of all items: put it to "
        f"more people, or more clearly. {_start(tree.problem)}"
    )
