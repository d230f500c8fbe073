"""How far answers agree beyond chance: Cohen's and Fleiss' kappa, Krippendorff's alpha."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from crowdtree.core.arrays import FloatArray
from crowdtree.learning.judges.intervals import Interval, bootstrap
from crowdtree.learning.judges.question import IntArray, QuestionAnswers
from crowdtree.learning.judges.result import Agreement

MAX_WORKERS = 20
"""Workers among whom pairs are compared: models, and the people with the most answers."""


def krippendorff_alpha(counts: IntArray, rng: np.random.Generator) -> Interval | None:
    """Krippendorff's alpha of nominal answers, with its bootstrap interval by item.

    ``alpha = 1 - D_o / D_e``: how often two answers about an item differ, over how often two of all
    these answers differ (Krippendorff 2011). `counts` holds the answers of each item (row) by label
    (column); items with fewer than two do not count.

    >>> alpha = krippendorff_alpha(np.array([[2, 0], [2, 0], [1, 1], [0, 2]]),
    ...                            np.random.default_rng(0))
    >>> round(alpha.value, 3)
    0.533
    """
    counts = counts[counts.sum(axis=1) > 1]
    if not (counts.sum(axis=0) > 0).sum() > 1:
        return None
    size = counts.sum(axis=1)
    differ = (size**2 - (counts**2).sum(axis=1)) / (size - 1)
    doubt = np.zeros(1 + counts.shape[1])
    doubt[[0, *(1 + label for label in _common(counts.sum(axis=0)))]] = [2, 1, 1]
    return bootstrap(np.column_stack([differ, counts]), _alpha, rng, doubt)


def _alpha(sums: FloatArray) -> FloatArray:
    observed, labels = sums[:, 0], sums[:, 1:]
    total = labels.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(1 - (total - 1) * observed / (total**2 - (labels**2).sum(axis=1)))


def fleiss_kappa(counts: IntArray, alpha: Interval | None) -> Interval | None:
    """Fleiss' kappa; none unless every item has the same number of answers, two or more.

    It is alpha without its correction for few answers.

    >>> counts = np.array([[2, 0], [2, 0], [1, 1], [0, 2]])
    >>> alpha = krippendorff_alpha(counts, np.random.default_rng(0))
    >>> round(fleiss_kappa(counts, alpha).value, 3)
    0.467
    """
    size = counts.sum(axis=1)
    if alpha is None or len(np.unique(size[size > 0])) > 1:
        return None
    larger = size.sum() / (size.sum() - 1)
    return Interval(*(float(1 - larger * (1 - x)) for x in (alpha.value, alpha.low, alpha.high)))


def cohen_kappa(answers: IntArray, rng: np.random.Generator) -> Interval | None:
    """Cohen's kappa of two workers (rows) about the same items, with its bootstrap interval.

    >>> cohen_kappa(np.array([[0, 0, 1, 1], [0, 1, 1, 1]]), np.random.default_rng(0)).value
    0.5
    """
    names, code = np.unique(answers, return_inverse=True)
    if len(names) < 2:
        return None
    labels = np.eye(len(names))
    one, two = code.reshape(2, -1)

    def rows(a: IntArray, b: IntArray) -> FloatArray:
        return np.column_stack([np.ones(len(a)), a == b, labels[a], labels[b]])

    cells, count = np.unique(one * len(names) + two, return_counts=True)
    doubt = rows(*(np.array([label]) for label in _common(np.bincount(code.ravel()))))[0]
    return bootstrap(rows(*divmod(cells, len(names))), _kappa, rng, doubt, count)


def _kappa(sums: FloatArray) -> FloatArray:
    total, same = sums[:, 0], sums[:, 1]
    first, second = np.split(sums[:, 2:], 2, axis=1)
    chance = (first * second).sum(axis=1) / total**2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((same / total - chance) / (1 - chance))


def _common(counts: IntArray) -> list[int]:
    """The two most common labels; one more item on which they stand against each other is doubt."""
    common: list[int] = np.argsort(-counts, kind="stable")[:2].tolist()
    return common


def agreements(data: QuestionAnswers, rng: np.random.Generator) -> Iterator[Agreement]:
    """Agreement of people, of models, of people with each model, and of each two workers."""
    groups = {"people": data.people, "models": data.models}
    for name, labels in zip(data.model_names, data.models, strict=True):
        groups[f"people and {name}"] = np.vstack([data.people, labels])
    busiest = np.argsort(-(data.people >= 0).sum(axis=1), kind="stable")
    kept = np.sort(busiest[: max(0, MAX_WORKERS - len(data.models))]).tolist()
    workers = [*zip(data.model_names, data.models, strict=True),
               *((data.people_names[k], data.people[k]) for k in kept)]  # fmt: skip
    for (first, a), (second, b) in combinations(workers, 2):
        groups[f"{first} and {second}"] = np.stack([a, b])
    for name, answers in groups.items():
        answers = answers[(answers >= 0).any(axis=1)]
        counts = data.counts(answers)
        items = int((counts.sum(axis=1) > 1).sum())
        if items:
            alpha, kappa = krippendorff_alpha(counts, rng), None
            if len(answers) == 2:
                kappa = cohen_kappa(answers[:, (answers >= 0).all(axis=0)], rng)
            else:
                kappa = fleiss_kappa(counts, alpha)
            yield Agreement(data.question, name, len(answers), items, alpha, kappa)
