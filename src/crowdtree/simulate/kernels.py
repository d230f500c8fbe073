"""Compiled walk of many items through a plan: the answers and labels of the plain engine.

Imported only for large blocks, because importing and compiling cost more than a small run.
"""

from __future__ import annotations

from math import exp
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["Walked", "walk_plan"]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
S11, S20, S27, S30, S31 = (np.uint64(n) for n in (11, 20, 27, 30, 31))
FULL, CURTAILED, MARGIN = 0, 1, 2


@njit(cache=True)
def _uniform(value: Any) -> Any:  # pragma: no cover - compiled
    """As ``uniform(mixed(value))`` of the crowd, one number at a time."""
    z = value + GOLDEN
    z = (z ^ (z >> S30)) * FIRST
    z = (z ^ (z >> S27)) * SECOND
    z = z ^ (z >> S31)
    return float(z >> S11) * 2.0**-53


@njit(cache=True)
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


@njit(cache=True)
def _error(evidence: Any, label: int) -> float:  # pragma: no cover - compiled
    """Posterior probability of all classes but one."""
    top = evidence.max()
    rest, total = 0.0, 0.0
    for c in range(len(evidence)):
        part = exp(evidence[c] - top)
        total += part
        if c != label:
            rest += part
    return rest / total


@njit(cache=True)
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
    label: NDArray[Any],
    answers: NDArray[Any],
    error: NDArray[Any],
    asked: NDArray[Any],
) -> None:  # pragma: no cover - compiled
    evidence = np.empty(len(log_prior))
    for row in range(len(item)):
        node = 0
        evidence[:] = log_prior
        while node >= 0:
            q = question[node]
            p = share[q, truth[row]]
            yes, no, first, verdict = 0, 0, 0, -1
            while verdict < 0:
                n = yes + no
                here = p
                if rho > 0.0:
                    here = ((1 - rho) * p + rho * yes) / ((1 - rho) + rho * n)
                turn = (np.uint64(q) << S20) + np.uint64(n)
                said = 1 if _uniform(item[row] + turn * GOLDEN) < here else 0
                if n == 0:
                    first = said
                yes += said
                no += 1 - said
                verdict = _verdict(how, votes[node], yes, no, first)
            answers[row] += yes + no
            asked[q] += yes + no
            for c in range(len(evidence)):
                evidence[c] += yes * logs[1, q, c] + no * logs[0, q, c]
            node = children[node, verdict]
        label[row] = leaf_label[~node]
        error[row] = _error(evidence, label[row])


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
    _walk(item, truth, share, rho, *nodes, how, logs, log_prior, leaf_label, *found)
    return found
