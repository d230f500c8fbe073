"""Slow, simple solvers for comparison."""

from collections.abc import Iterator
from functools import cache

import numpy as np


def splitting(outcome, members):
    for question in range(outcome.shape[0]):
        part = outcome[question, list(members)]
        if (part >= 0).all() and 0 < part.sum() < len(members):
            yield (
                question,
                frozenset(m for m in members if outcome[question, m] == 0),
                frozenset(m for m in members if outcome[question, m] == 1),
            )


def additive_value(outcome, cost, weight):
    """Least additive cost by plain recursion over class sets."""
    if cost.ndim == 2:
        cost = cost[None]

    @cache
    def value(members):
        best = None
        for question, zero, one in splitting(outcome, members):
            spent = min(
                sum(weight[m] * cost[v, question, m] for m in members) for v in range(cost.shape[0])
            )
            total = spent + value(zero) + value(one)
            best = total if best is None else min(best, total)
        return 0.0 if best is None else best

    return value(frozenset(range(outcome.shape[1])))


def additive_of(outcome, cost, weight, solution):
    """Cost of a returned tree, walked class by class; also checks its shape."""
    if cost.ndim == 2:
        cost = cost[None]
    total = 0.0
    reached = [set() for _ in solution.leaves]
    for member in range(outcome.shape[1]):
        node = 0 if len(solution.question) else ~0
        while node >= 0:
            question = solution.question[node]
            answer = outcome[question, member]
            assert answer >= 0
            total += weight[member] * cost[solution.variant[node], question, member]
            node = solution.children[node, answer]
        reached[~node].add(member)
    for leaf, members in zip(solution.leaves, reached, strict=True):
        assert set(leaf.tolist()) == members
        assert not list(splitting(outcome, frozenset(members)))
    return total


def all_survivals(outcome, error, members) -> Iterator[dict[int, float]]:
    """For every tree of a set: the probability of each class to reach its leaf."""
    found = False
    for question, zero, one in splitting(outcome, members):
        found = True
        for left in all_survivals(outcome, error, zero):
            for right in all_survivals(outcome, error, one):
                yield {m: p * (1 - error[question, m]) for m, p in {**left, **right}.items()}
    if not found:
        yield dict.fromkeys(members, 1.0)


def exact_value(outcome, error, weight):
    """Least misclassification over all trees, groups left out."""
    members = frozenset(range(outcome.shape[1]))
    return min(
        sum(weight[m] * (1 - p) for m, p in tree.items())
        for tree in all_survivals(outcome, error, members)
    )


def random_problem(
    rng, classes, questions, dash=0.0, zero=0.0, common=False, variants=0, ties=False
):
    outcome = rng.integers(0, 2, (questions, classes)).astype(np.int8)
    outcome[rng.random(outcome.shape) < dash] = -1
    shape = (variants, questions, classes) if variants else (questions, classes)
    cost = rng.uniform(0.01, 0.4, shape)
    if common:
        cost = np.broadcast_to(cost[..., :1], shape).copy()
    if ties:
        cost = np.round(cost, 1)
    cost[rng.random(shape) < zero] = 0.0
    weight = rng.dirichlet(np.ones(classes))
    if ties:
        weight = np.full(classes, 1 / classes)
    return outcome, cost, weight
