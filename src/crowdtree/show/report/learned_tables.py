"""Selection of the learned errors, flags and workers to show, on a page or in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.problem import DASH
from crowdtree.core.text import number, percent, plural

if TYPE_CHECKING:
    from crowdtree.learning.flags import Flag
    from crowdtree.learning.model import Learned

NARROW = (0.05, 0.1)
"""Half-width of the accuracy's interval that a recommendation to check items aims for."""


def accuracy_words(learned: Learned) -> list[str]:
    """Describe how many labels are right, the basis of that, and what would make it more precise.

    >>> from crowdtree.learning import learn
    >>> answers = {"task": [1, 1, 2, 2, 3, 3], "worker": ["ann", "ben"] * 3,
    ...            "label": ["cat", "cat", "dog", "dog", "cat", "dog"]}
    >>> print(accuracy_words(learn(answers))[1])
    This rests on agreement, and on how often that was right in other crowds.
    """
    if (learned.gold >= 0).all():
        return ["Every item is of known class."]
    found = learned.accuracy
    ends = f"{percent(found.level)}: {percent(found.low)} to {percent(found.high)}"
    words = [f"{percent(found.value)} of the labels are right (estimate; {ends})."]
    if learned.problem.loss is not None:
        cost = learned.expected_loss
        ends = f"{percent(cost.level)}: {number(cost.low)} to {number(cost.high)}"
        words.append(f"Their expected loss is {number(cost.value)} per item (estimate; {ends}).")
    if found.known:
        words.append(f"This rests on {plural(found.known, 'item')} of known class.")
    elif learned.kind == "labels" and (np.diff(learned.answers.start) < 2).all():
        words.append("Every item has one answer, so nothing shows how often people err.")
        words.append("Ask a second person about some items, or give the class of some.")
    else:
        words.append("This rests on agreement, and on how often that was right in other crowds.")
    open_ = int((learned.gold < 0).sum())
    for half_width in NARROW:
        more = found.needed(half_width)
        if 0 < more < open_:
            items = plural(more, "more item" if found.known else "item")
            words.append(
                f"About {items} of known class would narrow it to ± {percent(half_width)}."
            )
            break
    return words


class LabelWorth(NamedTuple):
    """A label, the items that have it, and its estimated recall and precision."""

    name: str
    items: int
    recall: float
    precision: float


def label_worth(learned: Learned) -> list[LabelWorth]:
    """Estimate what each label is worth from the stated probabilities, the least precise first.

    Items of known class count with their class. Labels that no item has are left out.

    >>> from crowdtree.learning import learn
    >>> answers = {"task": [1, 1, 2, 2], "worker": ["ann", "ben"] * 2, "label": list("aabb")}
    >>> [(row.name, row.items) for row in label_worth(learn(answers, gold={"1": "a"}))]
    [('b', 1), ('a', 1)]
    """
    stated = learned.stated_posterior
    loss = learned.problem.loss
    best = stated.argmax(axis=1) if loss is None else loss.decide(stated).label
    count = np.bincount(best, minlength=stated.shape[1])
    sure = stated[np.arange(len(stated)), best]
    right = np.bincount(best, weights=sure, minlength=stated.shape[1])
    expected = stated.sum(axis=0)
    rows = [
        LabelWorth(
            learned.classes[c],
            int(count[c]),
            float(right[c] / expected[c]),
            float(right[c] / count[c]),
        )
        for c in np.flatnonzero(count).tolist()
    ]
    return sorted(rows, key=lambda row: row.precision)


class ErrorCells(NamedTuple):
    """The cells of the error table that are shown."""

    rows: NDArray[np.intp]
    """Questions of the largest errors, in their order."""
    columns: NDArray[np.intp]
    """The most common classes, in their order."""
    half: NDArray[np.float64]
    """Half the width of the interval of every cell."""
    definite: NDArray[np.bool_]
    """Whether the right answer of a cell is known."""


def worst_cells(learned: Learned, questions: int, classes: int) -> ErrorCells:
    """Choose the questions of the largest errors and the most common classes."""
    problem = learned.problem
    low, high = learned.intervals.worker_error
    definite = problem.outcome != DASH
    worst = np.where(definite, problem.worker_error, 0).max(axis=1)
    return ErrorCells(
        np.sort(np.argsort(-worst, kind="stable")[:questions]),
        np.sort(np.argsort(-problem.prior, kind="stable")[:classes]),
        np.asarray(high - low) / 2,
        definite,
    )


def ranked_flags(learned: Learned) -> tuple[list[Flag], list[Flag]]:
    """Flags other than thin cells, and the thin cells, the worst first."""
    thin = sorted((flag for flag in learned.flags if flag.kind == "thin"), key=lambda f: -f.value)
    return [flag for flag in learned.flags if flag.kind != "thin"], thin


def share(value: float) -> str:
    """Write a probability in a column: always one decimal, so that the points align.

    >>> share(0.0823), share(1.0)
    ('8.2 %', '100.0 %')
    """
    return f"{100 * value:.1f} %"
