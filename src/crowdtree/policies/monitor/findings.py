"""What the answers say about questions, classes and dependence, beside what the table says."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.problem import Problem
from crowdtree.core.stats import Z95, wilson_interval
from crowdtree.policies.base import FloatArray
from crowdtree.policies.monitor.bets import Key
from crowdtree.policies.monitor.records import Finding
from crowdtree.policies.revising import Estimated, Table

__all__ = ["find"]


def find(
    problem: Problem,
    assumed: Table,
    found: Estimated,
    class_of: NDArray[np.int64],
    evidence: Mapping[Key, float],
) -> list[Finding]:
    """List what an estimate says, what differs from the table first, then the likeliest.

    `class_of` is the class of each hypothesis, `evidence` the weighted likelihood ratio of each way
    to be wrong.
    """

    def weight(subject: str, name: str = "") -> float:
        return evidence.get((subject, name), 0.0)

    made = []
    definite = found.answers * assumed.definite
    for q, name in enumerate(problem.questions):
        only = np.arange(len(definite))[:, None] == q
        facts = _errors(assumed, found, definite * only, float(found.sd[q]))
        if facts is not None:
            made.append(Finding("question", name, *facts, weight("question", str(q))))
    whole = weight("table")  # where it explains more than one class does, classes are not listed
    for c, name in enumerate(problem.classes):
        mine = class_of == c
        sd = float(found.class_sd[mine].min(initial=np.inf))
        facts = _errors(assumed, found, definite * mine, sd)
        if facts is not None and weight("class", str(c)) > whole:
            made.append(Finding("class", name, *facts, weight("class", str(c))))
    if len(problem.classes) == len(assumed.prior):
        for c, name in enumerate(problem.classes):
            share = float(found.table.prior[c])
            low, high = wilson_interval(share * found.items, found.items)
            facts = (float(assumed.prior[c]), share, low, high)
            made.append(Finding("prior", name, *facts, weight("prior")))
    rho = (assumed.model.shared_difficulty, found.table.model.shared_difficulty)
    if rho[0] != rho[1]:
        made.append(Finding("dependence", "", *rho, rho[1], rho[1], weight("dependence")))
    return sorted(made, key=lambda finding: (not finding.differs, -finding.evidence))


def _errors(
    assumed: Table, found: Estimated, weight: FloatArray, sd: float
) -> tuple[float, float, float, float] | None:
    """Mean error over some cells: assumed, estimated, and the ends of its interval."""
    total = float(weight.sum())
    if not total:
        return None
    value = float((weight * found.table.error).sum()) / total
    odds = math.log(value / (1 - value))
    ends = [1 / (1 + math.exp(-odds - z * sd)) for z in (-Z95, Z95)]
    return float((weight * assumed.error).sum()) / total, value, ends[0], ends[1]
