"""What a manager needs from a plan: cost, wrong labels, what a label is worth, what to do next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from crowdtree.evaluation import Evaluation
from crowdtree.loss import Loss
from crowdtree.per_class import ClassRow
from crowdtree.planning import PlanChoices
from crowdtree.report.comparisons import Alternative
from crowdtree.text import amount, number, percent, plural

__all__ = [
    "PRICE",
    "Point",
    "about",
    "choices_heading",
    "cost_point",
    "heading",
    "next_steps",
    "points",
    "weakest",
]

ITEMS = 1000
"""Items of the examples in the text."""


PRICE = 0.05
"""Price per answer of the example, unless one is given."""


class Point(NamedTuple):
    """A point of the summary: what it is about, and a few sentences."""

    name: str
    text: str


def heading(value: Evaluation) -> str:
    """Title of the page."""
    size = plural(value.tree.problem.n_classes, "class", "classes")
    risk = "" if value.tree.problem.loss is None else f"expected loss {number(value.risk)}, "
    return (
        f"{size}: {risk}{percent(value.decided_error)} wrong labels for "
        f"{amount(value.expected_answers, 'answer')} per item"
    )


def choices_heading(choices: PlanChoices) -> str:
    """Title of a page about the choices for a goal."""
    found = choices.recommended.performance
    size = plural(choices.problem.n_classes, "class", "classes")
    risk = "" if choices.problem.loss is None else f"expected loss {number(found.risk)}, "
    return (
        f"{size}: {risk}{percent(found.error)} wrong labels for "
        f"{amount(found.answers, 'answer')} per item"
    )


def about(value: Evaluation) -> str:
    """What the plan is, in words."""
    plan, tree = value.plan, value.tree
    low, high = int(plan.votes.min()), int(plan.votes.max())
    many = str(low) if low == high else f"{low} to {high}"
    people = f"{many} {'person' if high == 1 else 'people'}"
    if plan.vote == "margin":
        votes = f"people until one answer leads by {many}"
    else:
        votes = people if high == 1 else f"{people}, and the majority decides"
    return (
        f"A tree of yes/no questions that sorts items into "
        f"{plural(tree.problem.n_classes, 'class', 'classes')}. An item is asked "
        f"{amount(value.expected_questions, 'question')} on average and at most {tree.depth}; "
        f"each question is put to {votes}."
    )


def cost_point(row: Alternative, prices: Sequence[float] | None) -> Point:
    """What the answers about some items cost; an example where there are no prices."""
    if prices is None or row.cost is None:
        paid, each = f"For example, at {number(PRICE)}", PRICE * row.answers
    else:
        low, high, each = min(prices), max(prices), row.cost
        paid = f"At a price of {number(low)}" + ("" if low == high else f" to {number(high)}")
    return Point(
        "Cost",
        f"{ITEMS:,} items take about {_rounded(ITEMS * row.answers)} answers, "
        f"{number(row.answers)} per item. {paid} per answer that is {_rounded(ITEMS * each)}.",
    )


def points(value: Evaluation, others: Sequence[Alternative]) -> list[Point]:
    """Wrong labels, worth of a label and the adaptive alternative."""
    found = [Point("Wrong labels", _wrong(value))]
    if value.tree.problem.loss is not None:
        found.append(Point("Costliest mistakes", _costliest(value, value.tree.problem.loss)))
    found.append(Point("What a label is worth", _worth(value)))
    adaptive = next((row for row in others if row.simulated), None)
    if adaptive is not None:
        found.append(Point("Adaptive questions", _adaptive(value, adaptive)))
    return found


def _rounded(value: float) -> str:
    """A number with three significant digits also above 1,000.

    >>> _rounded(22_699), _rounded(1.234)
    ('22,700', '1.23')
    """
    return number(float(f"{value:.3g}"))


def _wrong(value: Evaluation) -> str:
    decided = "labelled " if value.plan.handed_over else ""
    words = f"{percent(value.decided_error)} of the {decided}items get a wrong label"
    words += f", about {number(ITEMS * value.decided_error, 2)} of {ITEMS:,}"
    if value.plan.handed_over:
        loss = value.tree.problem.loss
        left = "are left undecided" if loss is None or loss.refer is None else "go to an expert"
        words += f". {percent(value.undecided)} of all items {left}"
    return words + ". This is exact if people err as often as the table of errors says."


def _costliest(value: Evaluation, loss: Loss) -> str:
    """How many items get a label that costs the most."""
    rows = value.confusions(loss.matrix.size)  # without items that go to an expert
    share = sum(row.overall for row in rows if row.loss > row.overall * loss.largest * (1 - 1e-9))
    return (
        f"{percent(share)} of the items get a label that costs {number(loss.largest)}, the largest "
        f"loss. Mistakes and experts cost {number(value.risk)} per item on average."
    )


def _worth(value: Evaluation) -> str:
    right = f"{percent(1 - value.decided_error)} of the labels are right."
    rows = weakest(value)
    if not rows or rows[0].precision > 1 - 1e-12:
        return right
    worst = rows[0]
    words = f"{right} The least reliable label is {worst.name}: of the items that get it, "
    words += f"{percent(worst.precision)} are {worst.name}"
    return f"{words}; the others are mostly {worst.confused_with}."


def _adaptive(value: Evaluation, row: Alternative) -> str:
    saved = 1 - row.answers / value.expected_answers
    if saved > 0.02:
        versus = f"{percent(round(saved, 2))} fewer than this plan"
    elif saved < -0.02:
        versus = f"{percent(round(-saved, 2))} more than this plan"
    else:
        versus = "as many as this plan"
    wrong = f"{percent(row.error)} of the labels are" if row.error else "no label is"
    return (
        f"If each next question is chosen by the answers so far, an item takes about "
        f"{amount(row.answers, 'answer')}, {versus}, and {wrong} wrong ({row.label})."
    )


def weakest(value: Evaluation) -> list[ClassRow]:
    """Classes whose label is given, those of the least precision first."""
    rows = [row for row in value.classes if not math.isnan(row.precision)]
    return sorted(rows, key=lambda row: row.precision)


def next_steps(value: Evaluation) -> list[str]:
    """What to do next, most useful first."""
    steps = []
    tree, plan = value.tree, value.plan
    worst = "commonest" if tree.problem.loss is None else "costliest"
    if value.misclassification > 0:
        node = int(np.argmax(plan.node_error))
        text = tree.problem.text(int(tree.question[node]))
        steps.append(
            f"To get fewer wrong labels, start at question {node + 1} (“{text}”): its vote is "
            f"wrong for {percent(float(plan.node_error[node]))} of all items, more than any other. "
            "More people there, or a clearer question, help most."
        )
    steps += [
        f"The {worst} confusion is {row.truth} with the label {row.label} "
        f"({percent(row.overall)} of all items). Check whether a further question tells "
        "these two apart."
        for row in value.confusions(1)
    ]
    steps.append(
        "Check the assumed errors with a few real answers before the campaign (crowdtree pilot), "
        "and start the campaign with crowdtree serve."
    )
    return steps
