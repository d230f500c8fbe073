"""Rules by which people are suspected: wrong too often, too fast, or like another beyond chance.

Each is a bet against a person who answers with care; see :mod:`crowdtree.learning.trust`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.learning.voices import MOST_ERROR, FloatArray, Voices

__all__ = ["Suspicion", "find_suspects"]

SUSPECTED = np.log(200.0)
"""Evidence from which a person is suspected, by each of the rules: one honest person in 200."""
LAX = 2.0
"""How many times as often as the table says a person may err without being suspected."""
TIMES = (1.0, 1.5, 2.0, 3.0, 4.0)
BETTER = 0.25
"""Where the better quarter of the known people errs so many times as often as the table says,
everybody may err twice as often as they do. Attackers change that only if they are most of them."""
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
    voices: Voices, error: FloatArray, known: set[int], vouched: set[int], suspected: set[int]
) -> dict[int, Suspicion]:
    """Suspect workers, beside those who are suspected already.

    `error` is that of a table which was not estimated from the same answers: one in which attackers
    have a part tolerates them.

    Nobody is compared with others while somebody is wrong: without the wrong ones the others may
    look better.
    """
    rest = [w for w in voices.workers if w not in suspected]
    found = _wrong(voices, error, rest, known)
    if found:
        return found
    strangers = [w for w in rest if w not in vouched]
    return _alike(voices, strangers, set(rest)) | _fast(voices, strangers)


def _wrong(
    voices: Voices, error: FloatArray, workers: list[int], known: set[int]
) -> dict[int, Suspicion]:
    """Suspect people who are wrong too often, compared with gold items and known people."""
    believed, there = voices.beliefs(known)
    there |= voices.is_gold
    mine = {worker: np.array(voices.by_worker[worker]) for worker in workers}
    mine = {worker: found[there[found]] for worker, found in mine.items()}

    def told(errors: FloatArray) -> FloatArray:
        chance = np.exp(voices.told(voices.yes(errors)))
        return np.asarray(np.log((believed * chance).sum(axis=1)))

    def errs(times: float) -> FloatArray:
        return told(np.maximum(error, np.minimum(times * error, MOST_ERROR)))

    hostile = told(np.full_like(error, HOSTILE))

    def beyond(times: float) -> list[int]:
        honest = errs(times)
        bets = {w: (voices.blind[k] - honest[k], hostile[k] - honest[k]) for w, k in mine.items()}
        return [
            worker
            for worker, pair in bets.items()
            if _best([_started_anywhere(map(float, bet)) for bet in pair]) >= SUSPECTED
        ]

    found = beyond(LAX)
    if found:
        theirs = [mine[worker] for worker in known & set(workers)]
        usual = _usual_errors([errs(times) for times in TIMES], theirs)
        found = beyond(LAX * usual) if usual > 1 else found
    text = (
        "answers about {} items are wrong too often, compared with gold items and with people who "
        "are known"
    )
    return {worker: Suspicion("wrong", text.format(len(mine[worker]))) for worker in found}


def _usual_errors(told: list[FloatArray], people: list[NDArray[np.int64]]) -> float:
    """How many times as often as the table says the better quarter of some people errs."""
    people = [mine for mine in people if len(mine) >= FEW_TIMES]
    if len(people) < FEW_PEOPLE:
        return 1.0
    best = [TIMES[int(np.argmax([one[mine].sum() for one in told]))] for mine in people]
    return float(np.quantile(best, BETTER, method="lower"))


def _alike(voices: Voices, workers: list[int], partners: set[int]) -> dict[int, Suspicion]:
    """Suspect pairs of people who give the same answers beyond chance.

    Good people agree as well: so chance is that of the errors which explain the answers best,
    and only items count that others answered too. Two who are always right are not suspected,
    two who are wrong together are.
    """
    one, two, belief = _compared(voices, workers, partners)
    if not len(one):
        return {}
    people = np.stack([voices.worker[one], voices.worker[two]], axis=1)
    pairs, of = np.unique(people, axis=0, return_inverse=True)
    agree = voices.value[one] == voices.value[two]
    told = np.zeros((2, len(CARE), len(pairs)))
    for row, care in enumerate(CARE):
        yes = voices.yes(np.minimum(care * voices.problem.worker_error, MOST_ERROR))
        yes = yes[voices.question[one]]
        mine, other = (np.where(voices.value[k, None] == 1, yes, 1 - yes) for k in (one, two))
        first = (mine * belief).sum(axis=1)
        alone = (1 - SHARED) * (mine * other * belief).sum(axis=1) + SHARED * agree * first
        copied = first * np.where(agree, COPIED, 1 - COPIED)
        for sums, chance in zip(told, (copied, alone), strict=True):
            sums[row] = np.bincount(of.ravel(), np.log(chance), minlength=len(pairs))
    copied, alone = told
    evidence = np.logaddexp.reduce(copied) - np.log(len(CARE)) - alone.max(axis=0)
    possible = max(1, len(voices.workers) * (len(voices.workers) - 1) // 2)
    count = np.bincount(of.ravel())
    found: dict[int, Suspicion] = {}
    for place in np.flatnonzero(evidence >= SUSPECTED + np.log(possible)).tolist():
        pair = pairs[place].tolist()
        for worker, accomplice in (pair, pair[::-1]):
            text = f"{count[place]} answers are those of worker {accomplice} beyond chance"
            found.setdefault(worker, Suspicion("alike", text))
    return found


def _compared(
    voices: Voices, workers: list[int], partners: set[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]:
    """Pairs of answers of two of some workers to one question about one item.

    With the chance of each class by what the partners said, without the two; only items about
    which others than the two said something. In each pair the smaller worker comes first.
    """
    item = voices.where[voices.voice]
    some = np.flatnonzero(np.isin(voices.worker, workers) & ~voices.is_gold[voices.voice])
    order = np.lexsort((voices.worker[some], voices.question[some], item[some]))
    some = some[order]
    asked = item[some] * voices.problem.n_questions + voices.question[some]
    one, two = [some[:0]], [some[:0]]
    for apart in range(1, len(some)):
        same = asked[apart:] == asked[:-apart]
        if not same.any():
            break
        one.append(some[:-apart][same])
        two.append(some[apart:][same])
    a, b = np.concatenate(one), np.concatenate(two)
    counts, total, spoken = voices.spoken(partners)
    mine = voices.voice[a], voices.voice[b]
    others = spoken[item[a]] - counts[mine[0]] - counts[mine[1]] > 0
    a, b = a[others], b[others]
    said = total[item[a]]
    for voice in (voices.voice[a], voices.voice[b]):
        said = said - np.where(counts[voice, None], voices.plain[voice], 0.0)
    return a, b, voices.doubted(said)


def _fast(voices: Voices, workers: list[int]) -> dict[int, Suspicion]:
    """Suspect people who repeatedly answer in a fraction of the time that others take."""
    usual = _usual_times(voices)
    found: dict[int, Suspicion] = {}
    if usual is None:
        return found
    for worker in workers:
        mine = voices.worker == worker
        fast = voices.seconds[mine] < usual[voices.question[mine]] / HASTE
        reads, hurries = HASTY
        bets = np.where(fast, np.log(hurries / reads), np.log((1 - hurries) / (1 - reads)))
        if _best([_started_anywhere(map(float, bets))]) >= SUSPECTED:
            text = (
                f"{int(fast.sum())} of {len(fast)} answers took less than 1/{HASTE:.0f} of "
                "the usual time: faster than a person can read"
            )
            found[worker] = Suspicion("fast", text)
    return found


def _usual_times(voices: Voices) -> FloatArray | None:
    """Usual seconds for each question: the median over people of their own medians."""
    everywhere = _usual_time(voices, np.ones(len(voices.answers), dtype=bool))
    if everywhere is None:
        return None
    times = (_usual_time(voices, voices.question == q) for q in range(voices.problem.n_questions))
    return np.array([everywhere if time is None else time for time in times])


def _usual_time(voices: Voices, some: NDArray[np.bool_]) -> float | None:
    people, count = np.unique(voices.worker[some], return_counts=True)
    people = people[count >= FEW_TIMES]
    if len(people) < FEW_PEOPLE:
        return None
    own = [np.median(voices.seconds[some & (voices.worker == person)]) for person in people]
    return float(np.median(own))


def _started_anywhere(bets: Iterable[float]) -> FloatArray:
    """Log of a bet that may start at any answer, after each answer.

    Capital ``1 / (t (t + 1))`` waits for answer t, so that somebody who changes is found as well.
    """
    told = np.fromiter(bets, dtype=np.float64)
    total = np.cumsum(told)
    t = np.arange(1.0, len(told) + 1)
    started = told - total - np.log(t * (t + 1))  # what a start at t has not gained before
    return np.asarray(total + np.logaddexp.accumulate(started))


def _best(bets: list[FloatArray]) -> float:
    """Greatest value over time of the average of bets; -inf without any."""
    if not bets:
        return -np.inf
    values = np.array(bets)
    return float((np.logaddexp.reduce(values, axis=0) - np.log(len(values))).max(initial=-np.inf))
