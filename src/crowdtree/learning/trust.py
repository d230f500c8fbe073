"""Whom to trust: who is known to answer with care, and who is suspected not to.

Every test is a bet on the answers (an e-value, docs/model.md, section 13), exact for gold items and
an approximation where people are compared with each other (docs/howto/trust.md). Somebody is
*known* whose answers would surprise from a person who does not look at the items, and *suspected*
whose answers would surprise from one who errs twice as often as the table says (wrong), who reads
(fast), or who answers alone (alike). Without gold items and people for whom the owner vouches, the
majority decides; people whom it alone confirms are marked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from crowdtree.core.likelihood import AnswerModel
from crowdtree.core.problem import Problem
from crowdtree.learning.evidence import Answered, EvidenceByPerson
from crowdtree.learning.suspects import Suspicion, find_suspects

__all__ = ["MAJORITY", "Answered", "Suspicion", "Trust", "assess", "speaks_for"]

MAJORITY = "majority"
"""Reason of those who are known to agree with most others, of whom nobody is known otherwise."""
GOLD = "gold"
"""Reason of those who are known by their answers to gold items."""
KNOWN = np.log(20.0)
"""Evidence from which a person is known: one in twenty who answer blindly gets there."""
LOST = 0.0
"""Evidence below which somebody is no longer known."""


@dataclass
class Trust:
    """Who is known, with the reason, and who is suspected."""

    known: dict[int, str] = field(default_factory=dict)
    suspected: dict[int, Suspicion] = field(default_factory=dict)


def assess(
    problem: Problem,
    answers: Iterable[Answered],
    vouched: Iterable[int] = (),
    known: Mapping[int, str] | None = None,
    assumed: Problem | None = None,
) -> Trust:
    """Find who is known and who is suspected.

    `answers` are in their order, without those excluded. Workers who are `known` so far stay so
    until the evidence speaks against them. `assumed` is the table by which people are suspected, if
    the other was estimated from these answers.

    >>> import crowdtree as ct
    >>> problem = ct.Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2)
    >>> said = [Answered(k, 0, w, k % 2, 5.0) for k in range(12) for w in (1, 2)]
    >>> said += [Answered(k, 0, 3, 1 - k % 2, 5.0) for k in range(12)]
    >>> found = assess(problem, said)
    >>> found.known, {who: why.rule for who, why in found.suspected.items()}
    ({1: 'majority', 2: 'majority'}, {3: 'wrong'})
    """
    evidence = EvidenceByPerson(problem, list(answers))
    before, trusted = dict(known or {}), set(vouched)
    error = np.asarray((assumed or problem).worker_error, dtype=np.float64)
    found = Trust()
    while True:  # without the suspects, others may be known, and others suspected
        found.known = _known(evidence, trusted, before, set(found.suspected))
        new = find_suspects(evidence, error, set(found.known), trusted, set(found.suspected))
        if not new:
            return found
        found.suspected |= new


def speaks_for(problem: Problem, answers: Iterable[tuple[int, int]], label: int) -> bool:
    """Whether answers (question, value) make a label likelier than it was before.

    >>> problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2)
    >>> speaks_for(problem, [(0, 1)], 1), speaks_for(problem, [(0, 1)], 0)
    (True, False)
    """
    model, told = AnswerModel.of(problem), np.zeros(problem.n_classes)
    for question, value in answers:
        told += model.log_likelihood(question, value)
    return bool(told[label] - np.log(problem.prior @ np.exp(told)) > 1e-12)


def _known(
    evidence: EvidenceByPerson, vouched: set[int], before: dict[int, str], suspected: set[int]
) -> dict[int, str]:
    """Workers who are known, with the reason."""
    found = dict.fromkeys(vouched - suspected, "vouched")
    gold = evidence.gold_evidence()
    asked = GOLD in before.values() or bool(evidence.is_gold.any())
    anchored = asked or bool(vouched)
    rest = [w for w in evidence.workers if w not in vouched and w not in suspected]
    if not anchored:
        partners = _majority(evidence, rest) or set(before) & set(rest)
        return dict.fromkeys(_passed(evidence, partners, partners, before, gold), MAJORITY)
    confirmed = {worker: why for worker, why in before.items() if why != MAJORITY}
    for kept, why in ((confirmed, ""), (before, MAJORITY)):
        while True:
            left = [worker for worker in rest if worker not in found]
            new = _passed(evidence, left, set(found), kept, gold)
            if not new:
                break
            found |= dict.fromkeys(new, why) if why else new
    return found


def _passed(
    evidence: EvidenceByPerson,
    workers: Iterable[int],
    partners: set[int],
    before: dict[int, str],
    gold: dict[int, float],
) -> dict[int, str]:
    """Those of some workers for whom there is enough evidence, with the reason."""
    agreed = evidence.agreement(partners)
    found = {}
    for worker in workers:
        right = gold.get(worker, 0.0)
        if right + agreed.get(worker, 0.0) >= (LOST if worker in before else KNOWN):
            tested = right >= KNOWN or before.get(worker) == GOLD  # by answers of long ago
            found[worker] = GOLD if tested else "agreement"
    return found


def _majority(evidence: EvidenceByPerson, workers: list[int]) -> set[int]:
    """Leave out those whom the others contradict most, until nobody is contradicted.

    If no more than half are left then, nobody can say yet who is right.
    """
    found = set(workers)
    while found:
        agreed = evidence.agreement(found)
        worst = sorted((agreed.get(w, 0.0), -w) for w in found)[: max(1, len(found) // 10)]
        worst = [entry for entry in worst if entry[0] < 0]
        if not worst:
            break
        found -= {-worker for _, worker in worst}
    return found if 2 * len(found) > len(workers) else set()
