"""Rules by which people are suspected: wrong too often, too fast, or like another beyond chance.

Each is a bet against a person who answers with care; see :mod:`crowdtree.learning.trust`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import BoolArray, FloatArray
from crowdtree.learning.evidence import MAX_ERROR, EvidenceByPerson

SUSPECTED = np.log(200.0)
"""Evidence from which a person is suspected, by each of the rules: one honest person in 200."""
LAX = 2.0
"""How many times as often as the table says a person may err without being suspected."""
TIMES = (1.0, 1.5, 2.0, 3.0, 4.0)
BETTER = 0.25
"""If even the best quarter of the known people errs k times as often as the table says, the limit
is 2k. Attackers change that only if they are most of them."""
HOSTILE = 0.9
"""Error of somebody who answers wrongly on purpose."""
SHARED = 0.2
"""Chance that two honest people answer alike because of the item."""
CARE = (0.0, 0.25, 0.5, 1.0, 2.0)
"""How many times as often as the table says two people may err who are compared."""
COPIED = 0.98
"""Chance that the answers of accomplices are the same."""
HASTE = 8.0
"""An answer is fast if it takes less than this part of the usual time."""
HASTY = (0.05, 0.5)
"""Chance of a fast answer for a person who reads, and for one who does not."""
FEW_PEOPLE, FEW_TIMES = 3, 5
"""People, and answers of each, from which the usual time is learned."""


class Suspicion(NamedTuple):
    """Why a worker is suspected: ``"wrong"``, ``"fast"`` or ``"alike"``, and in words."""

    rule: str
    text: str


def find_suspects(
    evidence: EvidenceByPerson,
    error: FloatArray,
    known: set[int],
    vouched: set[int],
    suspected: set[int],
) -> dict[int, Suspicion]:
    """Suspect workers, beside those who are suspected already.

    `error` is that of a table which was not estimated from the same answers: one in which attackers
    have a part tolerates them. Nobody is compared with others while somebody is wrong: without the
    wrong ones the others may look better.
    """
    rest = [w for w in evidence.workers if w not in suspected]
    wrong = _wrong(evidence, error, rest, known)
    strangers = [w for w in rest if w not in vouched]
    return wrong or _fast(evidence, strangers) | _alike(evidence, strangers, set(rest))


def _wrong(
    evidence: EvidenceByPerson, error: FloatArray, workers: list[int], known: set[int]
) -> dict[int, Suspicion]:
    """Suspect people who are wrong too often, compared with gold items and known people."""
    belief, compared = evidence.beliefs(known)
    compared |= evidence.is_gold
    rows = {worker: evidence.of_worker(worker) for worker in workers}
    rows = {worker: mine[compared[mine]] for worker, mine in rows.items()}

    def log_chance(errors: FloatArray) -> FloatArray:
        chance = np.exp(evidence.by_statement(evidence.at_error(errors)))
        return np.asarray(np.log((belief * chance).sum(axis=1)))

    def if_errs(times: float) -> FloatArray:
        return log_chance(np.maximum(error, np.minimum(times * error, MAX_ERROR)))

    def beyond(times: float) -> list[int]:
        coin, wrong = (other - if_errs(times) for other in (evidence.by_coin, hostile))
        return [w for w, mine in rows.items() if _gain(coin[mine], wrong[mine]) >= SUSPECTED]

    hostile = log_chance(np.full_like(error, HOSTILE))
    suspects = beyond(LAX)
    people = [rows[w] for w in known & set(workers) if len(rows[w]) >= FEW_TIMES]
    if suspects and len(people) >= FEW_PEOPLE:
        chances = [if_errs(times) for times in TIMES]
        best = [TIMES[int(np.argmax([c[mine].sum() for c in chances]))] for mine in people]
        usual = float(np.quantile(best, BETTER, method="lower"))
        suspects = beyond(LAX * usual) if usual > 1 else suspects
    text = (
        "answers about {} items are wrong too often, compared with gold items and with people who "
        "are known"
    )
    return {worker: Suspicion("wrong", text.format(len(rows[worker]))) for worker in suspects}


def _alike(
    evidence: EvidenceByPerson, workers: list[int], partners: set[int]
) -> dict[int, Suspicion]:
    """Suspect pairs of people who give the same answers beyond chance.

    Good people agree as well: so chance is that of the errors which explain the answers best,
    and only items count that others answered too. Two who are always right are not suspected,
    two who are wrong together are.
    """
    one, two, belief = _compared(evidence, workers, partners)
    if not len(one):
        return {}
    people = np.stack([evidence.worker[one], evidence.worker[two]], axis=1)
    pairs, of = np.unique(people, axis=0, return_inverse=True)
    agree = evidence.value[one] == evidence.value[two]
    told = np.zeros((2, len(CARE), len(pairs)))
    for row, care in enumerate(CARE):
        errors = np.minimum(care * evidence.problem.worker_error, MAX_ERROR)
        chances = np.exp(evidence.at_error(errors))
        mine, other = chances[one], chances[two]
        first = (mine * belief).sum(axis=1)
        alone = (1 - SHARED) * (mine * other * belief).sum(axis=1) + SHARED * agree * first
        copied = first * np.where(agree, COPIED, 1 - COPIED)
        for sums, chance in zip(told, (copied, alone), strict=True):
            sums[row] = np.bincount(of.ravel(), np.log(chance), minlength=len(pairs))
    copied, alone = told
    gain = np.logaddexp.reduce(copied) - np.log(len(CARE)) - alone.max(axis=0)
    possible = max(1, len(evidence.workers) * (len(evidence.workers) - 1) // 2)
    count = np.bincount(of.ravel())
    found: dict[int, Suspicion] = {}
    for place in np.flatnonzero(gain >= SUSPECTED + np.log(possible)).tolist():
        pair = pairs[place].tolist()
        for worker, accomplice in (pair, pair[::-1]):
            text = f"{count[place]} answers are those of worker {accomplice} beyond chance"
            found.setdefault(worker, Suspicion("alike", text))
    return found


def _compared(
    evidence: EvidenceByPerson, workers: list[int], partners: set[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]:
    """Pairs of answers of two of some workers to one question about one item.

    With the chance of each class by what the partners said, without the two; only items about
    which others than the two said something. In each pair the smaller worker comes first.
    """
    item = evidence.item[evidence.statement]
    some = np.flatnonzero(np.isin(evidence.worker, workers) & ~evidence.is_gold[evidence.statement])
    order = np.lexsort((evidence.worker[some], evidence.question[some], item[some]))
    some = some[order]
    asked = item[some] * evidence.problem.n_questions + evidence.question[some]
    one, two = [some[:0]], [some[:0]]
    for apart in range(1, len(some)):
        same = asked[apart:] == asked[:-apart]
        if not same.any():
            break
        one.append(some[:-apart][same])
        two.append(some[apart:][same])
    a, b = np.concatenate(one), np.concatenate(two)
    counts, total, spoken = evidence.sums(partners)
    mine = evidence.statement[a], evidence.statement[b]
    others = spoken[item[a]] - counts[mine[0]] - counts[mine[1]] > 0
    a, b = a[others], b[others]
    said = total[item[a]]
    for own in (evidence.statement[a], evidence.statement[b]):
        said = said - np.where(counts[own, None], evidence.by_table[own], 0.0)
    return a, b, evidence.posterior(said)


def _fast(evidence: EvidenceByPerson, workers: list[int]) -> dict[int, Suspicion]:
    """Suspect people who repeatedly answer in a fraction of the time that others take."""
    everywhere = _usual_time(evidence, np.ones(len(evidence.value), dtype=bool))
    suspects: dict[int, Suspicion] = {}
    if everywhere is None:
        return suspects
    questions = range(evidence.problem.n_questions)
    times = [_usual_time(evidence, evidence.question == q) for q in questions]
    usual = np.array([everywhere if time is None else time for time in times])
    reads, hurries = HASTY
    for worker in workers:
        mine = evidence.worker == worker
        fast = evidence.seconds[mine] < usual[evidence.question[mine]] / HASTE
        if _gain(np.log(np.where(fast, hurries / reads, (1 - hurries) / (1 - reads)))) >= SUSPECTED:
            text = (
                f"{int(fast.sum())} of {len(fast)} answers took less than 1/{HASTE:.0f} of "
                "the usual time: faster than a person can read"
            )
            suspects[worker] = Suspicion("fast", text)
    return suspects


def _usual_time(evidence: EvidenceByPerson, some: BoolArray) -> float | None:
    """Usual seconds of some answers: the median over people of their own medians."""
    people, count = np.unique(evidence.worker[some], return_counts=True)
    people = people[count >= FEW_TIMES]
    if len(people) < FEW_PEOPLE:
        return None
    return float(
        np.median([np.median(evidence.seconds[some & (evidence.worker == p)]) for p in people])
    )


def _gain(*bets: FloatArray) -> float:
    """Greatest log gain over time of the average of bets, each of which may start at any answer.

    Capital ``1 / (t (t + 1))`` waits for answer t, so that somebody who changes is found as well.
    """
    t = np.arange(1.0, len(bets[0]) + 1)
    gains = []
    for bet in bets:
        total = np.cumsum(bet)
        started = bet - total - np.log(t * (t + 1))  # what a start at t has not gained before
        gains.append(total + np.logaddexp.accumulate(started))
    return float((np.logaddexp.reduce(gains, axis=0) - np.log(len(bets))).max(initial=-np.inf))
