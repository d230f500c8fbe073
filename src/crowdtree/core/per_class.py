"""What each label is worth: recall, precision and confusions by class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from crowdtree.core.arrays import FloatArray
from crowdtree.core.problem import Problem

UNDECIDED = "(undecided)"
"""Column of the items without a label."""


class ClassRow(NamedTuple):
    """A class and its label. Shares are of all items unless the description says otherwise.

    Attributes
    ----------
    name
        The class.
    share
        Items that are of the class.
    labelled
        Items that get its label.
    recall
        Of the items of the class, those that get its label.
    precision
        Of the items with the label, those that are of the class; NaN where no item gets the label.
    undecided
        Of the items of the class, those that get no label.
    confused_with
        The commonest true class among the items that get the label wrongly, or ``None``.
    """

    name: str
    share: float
    labelled: float
    recall: float
    precision: float
    undecided: float
    confused_with: str | None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON: a precision that is not defined is ``None``."""
        row = self._asdict()
        if np.isnan(self.precision):
            row["precision"] = None
        return {"class": row.pop("name"), **row}


class Confusion(NamedTuple):
    """Items of one class that get the label of another."""

    truth: str
    label: str
    given: float
    """Share of the items of the class."""
    overall: float
    """Share of all items."""
    loss: float
    """Expected loss per item; for 0/1 loss the share of all items."""


def class_rows(problem: Problem, labelled: FloatArray, undecided: FloatArray) -> list[ClassRow]:
    """Make the row of each class.

    `labelled` is the probability of each label (column) given the class (row), `undecided` that of
    no label.
    """
    wrong = problem.prior[:, None] * labelled
    right = wrong.diagonal().copy()
    np.fill_diagonal(wrong, 0.0)
    lost = wrong.sum(axis=0)
    worst = wrong.argmax(axis=0)
    values = zip(
        problem.classes,
        problem.prior.tolist(),
        (right + lost).tolist(),
        labelled.diagonal().tolist(),
        precision(right, lost).tolist(),
        undecided.tolist(),
        (problem.classes[i] if lost[c] > 0 else None for c, i in enumerate(worst.tolist())),
        strict=True,
    )
    return [ClassRow(*row) for row in values]


def confusions(problem: Problem, labelled: FloatArray, most: int) -> list[Confusion]:
    """List the worst confusions: by share of all items, or by expected loss where there is one."""
    joint = problem.prior[:, None] * labelled
    np.fill_diagonal(joint, 0.0)
    cost = joint if problem.loss is None else joint * problem.loss.matrix
    order = np.argsort(-cost, axis=None, kind="stable")[:most]
    return [
        Confusion(
            problem.classes[truth],
            problem.classes[label],
            float(labelled[truth, label]),
            float(joint[truth, label]),
            float(cost[truth, label]),
        )
        for truth, label in zip(*np.unravel_index(order, joint.shape), strict=True)
        if joint[truth, label] > 0
    ]


def precision(right: FloatArray, wrong: FloatArray) -> FloatArray:
    """Share of right labels, from the shares of items with a right and a wrong one.

    >>> precision(np.array([0.3, 0.0]), np.array([0.1, 0.0]))
    array([0.75,  nan])
    """
    given = right + wrong
    found = np.full(given.shape, np.nan)
    np.divide(right, given, out=found, where=given > 0)
    return found


def class_columns(rows: Sequence[ClassRow]) -> dict[str, list[Any]]:
    """Columns of the table of classes."""
    made = [row.to_dict() for row in rows]
    return {name: [row[name] for row in made] for name in made[0]}


def confusion_columns(
    problem: Problem, labelled: FloatArray, undecided: Sequence[float] | None = None
) -> dict[str, list[Any]]:
    """Columns of the confusion matrix: a row per class, a column per label.

    Where items are left undecided, the last column has their share.
    """
    names = problem.classes

    def free(name: str) -> str:
        """Name of a column that is not the name of a class."""
        while name in names:
            name = f"{name}_"
        return name

    columns = {free("class"): list(names)}
    columns |= dict(zip(names, labelled.T.tolist(), strict=True))
    return columns if undecided is None else columns | {free(UNDECIDED): list(undecided)}
