"""The frontier and its alternatives: rows for the chart and the table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from crowdtree.core.arrays import FloatArray
from crowdtree.core.bounds import burnashev_guide, fano_floor
from crowdtree.core.evaluation import evaluate
from crowdtree.core.problem import Problem
from crowdtree.core.stats import mean_half_width
from crowdtree.designs.designers import design
from crowdtree.designs.frontiers import Frontier
from crowdtree.designs.staffing import staff

RANDOM_DRAWS = 20
LEAST_ERROR = 1e-6


class Row(NamedTuple):
    """A point of a curve: expected cost per item, misclassification (with its range if sampled).

    `cost` is answers per item, or their price where questions have prices.
    """

    series: str
    cost: float
    misclassification: float
    low: float
    high: float


def compare(front: Frontier, allow_groups: bool = False) -> list[Row]:
    """Tabulate the frontier and the alternatives over the same range of cost.

    Where the frontier consists of majority votes, the paper's plans have its limit of votes per
    node as well: otherwise they would continue below a frontier that has reached the limit.

    Series: ``ours``; ``paper`` (the level-greedy tree and Algorithm 1); ``random`` (random order
    and random staffing: mean of 20 draws with its standard error); ``everyone`` (all workers
    answer every question of the paper's tree); ``floor`` (Fano, no policy can go below) and
    ``guide`` (Burnashev, asymptotic, not a floor).
    """
    problem, price = front.options.problem, front.options.price
    reach = front[-1].expected_cost
    rows = [
        Row("ours", p.expected_cost, p.misclassification, p.misclassification, p.misclassification)
        for p in front
    ]
    rows += _paper(problem, price, reach, vote_limit(front), allow_groups)
    rows += _random(problem, price, reach, allow_groups)
    rows += _everyone(problem, price, reach, allow_groups)
    rows += _limits(front)
    return rows


def vote_limit(front: Frontier) -> int | None:
    """Most votes per node of the frontier and the paper's plans; None where votes have no limit.

    >>> import crowdtree as ct
    >>> vote_limit(ct.frontier(ct.example("table1"), max_votes=3))
    3
    """
    return int(front.options.votes[-1]) if front.options.rule.bounded else None


def _paper(
    problem: Problem, price: FloatArray, reach: float, most: int | None, allow_groups: bool
) -> Iterator[Row]:
    tree = design(problem, "fm", allow_groups=allow_groups)
    for workers in _steps(tree.n_nodes, 1.06):
        plan = staff(tree, workers, "paper-fm")
        if most is not None and plan.votes.max() > most:
            return
        value = evaluate(plan)
        cost = float(value.answers_by_node @ price[tree.question])
        yield _exact("paper", cost, value.misclassification)
        if cost > reach:
            return


def _random(problem: Problem, price: FloatArray, reach: float, allow_groups: bool) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    trees = [
        design(problem, "random", rng=rng, allow_groups=allow_groups) for _ in range(RANDOM_DRAWS)
    ]
    for workers in _steps(trees[0].n_nodes, 1.25):  # a mean over draws is smooth
        values = [evaluate(staff(tree, workers, "random", rng=rng)) for tree in trees]
        cost = float(np.mean([v.answers_by_node @ price[v.tree.question] for v in values]))
        wrong = np.array([value.misclassification for value in values])
        error = mean_half_width(wrong)
        mean = float(wrong.mean())
        yield Row("random", cost, mean, max(mean - error, 0.0), mean + error)
        if cost > reach:
            return


def _everyone(
    problem: Problem, price: FloatArray, reach: float, allow_groups: bool
) -> Iterator[Row]:
    tree = design(problem, "fm", allow_groups=allow_groups)
    each = float(price[tree.question].sum())
    for votes in range(1, 2 * int(reach / each / 2) + 2, 2):
        value = evaluate(staff(tree, votes - 1, "everyone"))
        yield _exact("everyone", each * votes, value.misclassification)


def _limits(front: Frontier) -> Iterator[Row]:
    problem, price = front.options.problem, front.options.price
    worst, best = (max(front[place].misclassification, LEAST_ERROR) for place in (0, -1))
    for error in np.geomspace(worst, best, 40).tolist():
        for series, limit in (("floor", fano_floor), ("guide", burnashev_guide)):
            cost = limit(problem, error, price=price)
            if np.isfinite(cost):  # infinite where no question carries information
                yield _exact(series, cost, error)


def _exact(series: str, cost: float, error: float) -> Row:
    return Row(series, cost, error, error, error)


def _steps(nodes: int, ratio: float) -> Iterator[int]:
    """Yield even numbers of extra workers, `ratio` apart once they are many."""
    workers = 0
    while workers < 1000 * nodes:
        yield workers
        workers = max(workers + 2, int(workers * ratio) // 2 * 2)
