"""How stated probabilities differ between crowds: the prior that ``learn`` ships.

``python -m benchmarks.crowd_prior`` fits ``P(label right) = sigmoid(a + b x)`` to every real crowd
of ``crowds.py``, x being the log odds of the labels of ``ct.learn``, and a t distribution to the
pairs (a, log b). It prints the numbers of ``crowdtree.learning.stating.PRIOR``. ``prior_without``
replaces them by those of the other crowds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

import crowdtree as ct
from benchmarks.crowds import load, real_names
from crowdtree.learning import stating

FREEDOM = 10.0
STEPS = 200
MIN_INFORMATION = 1.5
MIN_ANSWERS = 20
_ONE = 0.05  # a pseudo-crowd of this spread keeps the scale from 0


class Line(NamedTuple):
    """The map of one crowd: (a, log b), the covariance of this estimate, and what it leaves.

    `classes` are the shifts of a of the labels of each class, with their variances; `worker_sd` is
    the standard deviation of the shift between the items of different workers, `answer` the share
    of right answers.
    """

    point: np.ndarray
    covariance: np.ndarray
    classes: np.ndarray
    worker_sd: float
    answer: float


def fit_line(x: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logistic regression with a weak prior: (a, log b) and its covariance."""

    def loss(point: np.ndarray) -> float:
        odds = point[0] + np.exp(point[1]) * x
        prior = 0.5 * (point[0] ** 2 / 9 + (point[1] + 0.5) ** 2)
        return float(np.logaddexp(0, np.where(right, -odds, odds)).sum() + prior)

    best = minimize(loss, np.array([0.0, -0.5]))
    return best.x, best.hess_inv


@cache
def crowd_line(name: str) -> Line:
    """The map of a crowd, by labels that know nothing of its truth."""
    crowd = load(name)
    learned = ct.learn(crowd.frame)
    answers, classes = learned.answers, list(learned.classes)
    gold = [crowd.gold.get(str(task)) for task in answers.tasks]
    truth = np.array([classes.index(g) if g in classes else -1 for g in gold])
    split = stating.split_labels(learned.fit.posterior)
    known, right = np.array([g is not None for g in gold]), split.label == truth
    point, covariance = fit_line(split.x[known], right[known])
    chance = 1 / (1 + np.exp(-(point[0] + np.exp(point[1]) * split.x)))
    bend = chance * (1 - chance)

    shifts = []
    for code in range(len(classes)):
        mine = known & (split.label == code)
        if bend[mine].sum() >= MIN_INFORMATION:
            gap = (right[mine] - chance[mine]).sum() / bend[mine].sum()
            shifts.append((gap, 1 / bend[mine].sum()))

    task = answers.task
    use = known[task]
    task, label, worker = task[use], answers.label[use], answers.worker[use]
    own, rest = split.label[task] == label, split.rest[task, label]
    said = np.where(own, chance[task], (1 - chance[task]) * rest)
    gap = np.bincount(worker, (truth[task] == label) - said)
    noise = np.bincount(worker, said * (1 - said))
    slope = np.bincount(worker, np.where(own, 1.0, rest) * bend[task])
    many = np.bincount(worker) >= MIN_ANSWERS
    excess = (gap**2 - noise)[many].sum() / (slope[many] ** 2).sum()
    answer = float((truth[task] == label).mean())
    return Line(point, covariance, np.array(shifts), float(np.sqrt(max(excess, 0.0))), answer)


def class_sd(lines: list[Line]) -> float:
    """Standard deviation of the shifts between classes, by moments."""
    gap, variance = np.concatenate([line.classes for line in lines]).T
    weight = 1 / (variance + 0.3) ** 2
    return float(np.sqrt(max(weight @ (gap**2 - variance) / weight.sum(), 0.0)))


def fit_prior(lines: list[Line], freedom: float = FREEDOM) -> stating.CrowdPrior:
    """Fit a t distribution to points that are known up to a covariance, by EM."""
    points = np.array([line.point for line in lines])
    mean, scale = np.median(points, axis=0), np.cov(points.T) + 0.01 * np.eye(2)
    for _ in range(STEPS):
        total, sums, squares = 0.0, np.zeros(2), []
        for line in lines:
            away = line.point - mean
            square = float(away @ np.linalg.solve(scale + line.covariance, away))
            weight = (freedom + 2) / (freedom + square)
            precision = weight * np.linalg.inv(scale)
            own = np.linalg.inv(line.covariance)
            spread = np.linalg.inv(precision + own)
            centre = spread @ (precision @ mean + own @ line.point)
            total, sums = total + weight, sums + weight * centre
            squares.append((weight, centre, spread))
        mean = sums / total
        scale = sum(w * (s + np.outer(c - mean, c - mean)) for w, c, s in squares)
        scale = (scale + _ONE * np.eye(2)) / (len(lines) - 1)
    rounded = scale.round(2)
    rows = tuple(map(float, rounded[0])), tuple(map(float, rounded[1]))
    return stating.CrowdPrior(
        (round(float(mean[0]), 2), round(float(mean[1]), 2)),
        ((rows[0][0], rows[0][1]), (rows[1][0], rows[1][1])),
        freedom,
        round(class_sd(lines), 2),
        # few crowds: nearly the largest of them
        round(float(np.quantile([line.worker_sd for line in lines], 0.95)), 2),
        round(float(np.mean([line.answer for line in lines])), 2),
    )


@contextmanager
def prior_without(name: str) -> Iterator[None]:
    """Leave a crowd out of what ``learn`` knows from other crowds; a simulated one is not in it."""
    shipped, names = stating.PRIOR, real_names()
    if name in names:
        stating.PRIOR = fit_prior([crowd_line(other) for other in names if other != name])
    try:
        yield
    finally:
        stating.PRIOR = shipped


def main() -> None:
    names = real_names()
    for name in names:
        line = crowd_line(name)
        a, log_b = line.point
        print(f"{name:24} a {a:+.2f}, b {np.exp(log_b):.2f}, workers {line.worker_sd:.2f}")
    print(fit_prior([crowd_line(name) for name in names]))


if __name__ == "__main__":
    main()
