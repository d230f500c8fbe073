"""Compiled walk of many items through a plan: the answers and labels of the plain engine.

Imported only for large blocks, because importing and compiling cost more than a small run.
"""

from __future__ import annotations

from math import exp
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.jit import compiled

__all__ = ["Walked", "walk_plan"]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
S11, S20, S27, S30, S31 = (np.uint64(n) for n in (11, 20, 27, 30, 31))
FULL, CURTAILED, MARGIN = 0, 1, 2
SAFE = 1e-200
"""Products of likelihoods below this are computed again from logarithms."""
MOST_CELLS = 4_000_000
"""Largest table of likelihoods; above, every item is computed from logarithms."""


@compiled()
def _uniform(value: Any) -> Any:  # pragma: no cover - compiled
    """As ``uniform(mixed(value))`` of the crowd, one number at a time."""
    z = value + GOLDEN
    z = (z ^ (z >> S30)) * FIRST
    z = (z ^ (z >> S27)) * SECOND
    z = z ^ (z >> S31)
    return float(z >> S11) * 2.0**-53


@compiled()
def _verdict(how: int, votes: int, yes: int, no: int, first: int) -> int:  # pragma: no cover
    """Verdict, or -1 while the vote is open: the rule of ``PlanPolicy.verdict``."""
    if how == MARGIN:
        if yes - no >= votes:
            return 1
        return 0 if no - yes >= votes else -1
    need = votes // 2 + 1
    tie = 1 if votes % 2 == 0 else 0
    win_yes = yes >= need - (tie if first == 1 else 0)
    if how == FULL:
        if yes + no < votes:
            return -1
        return 1 if win_yes else 0
    if no >= need - (tie if first == 0 else 0):
        return 0
    return 1 if win_yes else -1


@compiled()
def _error(evidence: Any, label: int) -> float:  # pragma: no cover - compiled
    """Posterior probability of all classes but one, from logarithms."""
    top = evidence.max()
    rest, total = 0.0, 0.0
    for c in range(len(evidence)):
        part = exp(evidence[c] - top)
        total += part
        if c != label:
            rest += part
    return rest / total


@compiled()
def _slots(how: int, votes: int) -> int:  # pragma: no cover - compiled
    """Number of outcomes of a vote: the count of yes, or the winner and the loser's count."""
    return votes + 1 if how == FULL else 2 * (votes // 2 + 1)


@compiled()
def _slot(how: int, votes: int, verdict: int, yes: int, no: int) -> int:  # pragma: no cover
    if how == FULL:
        return yes
    return no if verdict == 1 else votes // 2 + 1 + yes


@compiled()
def _factors(
    how: int, start: NDArray[Any], question: NDArray[Any], votes: NDArray[Any], logs: NDArray[Any]
) -> NDArray[Any]:  # pragma: no cover - compiled
    """Likelihood of every outcome of the vote at every node, scaled to a maximum of 1."""
    found = np.empty((start[-1], logs.shape[2]))
    for node in range(len(question)):
        q, n = question[node], votes[node]
        for slot in range(_slots(how, n)):
            if how == FULL:
                yes, no = slot, n - slot
            elif slot <= n // 2:  # curtailed: the winner has just its majority
                yes, no = n // 2 + 1, slot
            else:
                yes, no = slot - n // 2 - 1, n // 2 + 1
            row = found[start[node] + slot]
            for c in range(len(row)):
                row[c] = yes * logs[1, q, c] + no * logs[0, q, c]
            top = row.max()
            for c in range(len(row)):
                row[c] = exp(row[c] - top)
    return found


@compiled()
def _vote(
    item: Any, p: float, rho: float, q: int, how: int, votes: int
) -> tuple[int, int, int]:  # pragma: no cover - compiled
    """Draw the answers to a question about an item: the verdict, and the counts of answers."""
    yes, no, first, verdict = 0, 0, 0, -1
    turn = np.uint64(q) << S20
    if how == FULL and rho == 0.0:
        for n in range(votes):
            said = 1 if _uniform(item + (turn + np.uint64(n)) * GOLDEN) < p else 0
            first = said if n == 0 else first
            yes += said
        return _verdict(how, votes, yes, votes - yes, first), yes, votes - yes
    while verdict < 0:
        n = yes + no
        here = p
        if rho > 0.0:
            here = ((1 - rho) * p + rho * yes) / ((1 - rho) + rho * n)
        said = 1 if _uniform(item + (turn + np.uint64(n)) * GOLDEN) < here else 0
        if n == 0:
            first = said
        yes += said
        no += 1 - said
        verdict = _verdict(how, votes, yes, no, first)
    return verdict, yes, no


@compiled()
def _walk(
    item: NDArray[Any],
    truth: NDArray[Any],
    share: NDArray[Any],
    rho: float,
    question: NDArray[Any],
    children: NDArray[Any],
    votes: NDArray[Any],
    how: int,
    logs: NDArray[Any],
    log_prior: NDArray[Any],
    leaf_label: NDArray[Any],
    start: NDArray[Any],
    label: NDArray[Any],
    answers: NDArray[Any],
    error: NDArray[Any],
    asked: NDArray[Any],
) -> None:  # pragma: no cover - compiled
    tabled = len(start) > 0
    factors = _factors(how, start, question, votes, logs) if tabled else np.empty((0, 0))
    prior = np.exp(log_prior)
    chance, evidence = np.empty(len(prior)), np.empty(len(prior))
    way = np.empty((len(question), 3), dtype=np.int64)
    for row in range(len(item)):
        node, depth = 0, 0
        chance[:] = prior
        while node >= 0:
            q = question[node]
            n = votes[node]
            verdict, yes, no = _vote(item[row], share[q, truth[row]], rho, q, how, n)
            answers[row] += yes + no
            asked[q] += yes + no
            way[depth, 0], way[depth, 1], way[depth, 2] = q, yes, no
            depth += 1
            if tabled:
                factor = factors[start[node] + _slot(how, n, verdict, yes, no)]
                for c in range(len(chance)):
                    chance[c] *= factor[c]
            node = children[node, verdict]
        mine = leaf_label[~node]
        label[row] = mine
        if tabled:
            total = chance.sum()
            if total > SAFE:
                rest = 0.0
                for c in range(len(chance)):
                    if c != mine:
                        rest += chance[c]
                error[row] = rest / total
                continue
        evidence[:] = log_prior
        for d in range(depth):
            q, yes, no = way[d, 0], way[d, 1], way[d, 2]
            for c in range(len(evidence)):
                evidence[c] += yes * logs[1, q, c] + no * logs[0, q, c]
        error[row] = _error(evidence, mine)


class Walked(NamedTuple):
    """Label, answers and stated error of each item, and the answers to each question."""

    label: NDArray[np.int64]
    answers: NDArray[np.int32]
    error: NDArray[np.float64]
    asked: NDArray[np.int64]


def walk_plan(
    item: NDArray[np.uint64],
    truth: NDArray[np.int64],
    share: NDArray[np.float64],
    rho: float,
    nodes: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    how: int,
    logs: NDArray[np.float64],
    log_prior: NDArray[np.float64],
    leaf_label: NDArray[np.int64],
) -> Walked:
    """Walk all items through a plan.

    `item` are the scrambled numbers from which the answers of each item are drawn, `share` the
    crowd's ``P(yes | class)`` and `rho` its shared difficulty; `nodes` are questions, children
    and votes, `how` is the stopping rule; `logs` and `log_prior` are what the policy assumes.
    """
    found = Walked(
        np.empty(len(item), dtype=np.int64),
        np.zeros(len(item), dtype=np.int32),
        np.empty(len(item)),
        np.zeros(len(share), dtype=np.int64),
    )
    start = _starts(nodes[2], how, len(log_prior))
    _walk(item, truth, share, rho, *nodes, how, logs, log_prior, leaf_label, start, *found)
    return found


def _starts(votes: NDArray[np.int64], how: int, classes: int) -> NDArray[np.int64]:
    """First row of each node in the table of likelihoods, and its length; empty for no table."""
    slots = votes + 1 if how == FULL else 2 * (votes // 2 + 1)
    start = np.concatenate([[0], np.cumsum(slots)])
    # a margin vote has unboundedly many outcomes, and a curtailed tie may end with either count
    tie = how == CURTAILED and bool(np.any(votes % 2 == 0))
    if how == MARGIN or tie or start[-1] * classes > MOST_CELLS:
        return np.empty(0, dtype=np.int64)
    return start.astype(np.int64)
