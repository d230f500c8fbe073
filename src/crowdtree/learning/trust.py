"""Whom to trust: who is known to answer with care, and who is suspected not to.

Every test is a bet on the answers (an e-value, docs/model.md, section 13): its expected gain is at
most 1 where its null hypothesis holds. That is exact for gold items. Compared with other people it
is an approximation, because their later answers change earlier bets, and people err together; how
often honest people are suspected is checked by simulation.

- somebody is *known* whose answers would be surprising from a person who does not look at the
  items: they agree with gold items, or with what other people said about the same items;
- somebody is *suspected* whose answers would be surprising from a person who errs twice as often
  as the table says (wrong), who reads (fast), or who answers alone, however carefully (alike).

Where there are gold items or people for whom the owner vouches, other people count once they are
known themselves. Without either, the majority decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.likelihood import AnswerModel
from crowdtree.problem import Problem

__all__ = ["Answered", "Suspicion", "Trust", "assess", "speaks_for"]

FloatArray = NDArray[np.float64]
KNOWN = np.log(20.0)
"""Evidence from which a person is known: one in twenty who answer blindly gets there."""
LOST = 0.0
"""Evidence below which somebody is no longer known."""
SUSPECTED = np.log(200.0)
"""Evidence from which a person is suspected, by each of the rules: one honest person in 200."""
LAX = 2.0
"""How many times as often as the table says a person may err without being suspected."""
LEAST_ERROR, MOST_ERROR = 1e-3, 0.45
HOSTILE = 0.9
"""Error of somebody who answers wrongly on purpose."""
DOUBT = 0.1
"""Chance that the other people are wrong about an item together."""
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


class Answered(NamedTuple):
    """An answer in the log: who said what, in how many seconds, and the class of a gold item."""

    item: int
    question: int
    worker: int
    value: int
    seconds: float
    gold: int | None = None


class Suspicion(NamedTuple):
    """Why a worker is suspected: ``"wrong"``, ``"fast"`` or ``"alike"``, and in words."""

    rule: str
    text: str


@dataclass
class Trust:
    """Who is known, with the reason, and who is suspected."""

    known: dict[int, str] = field(default_factory=dict)
    suspected: dict[int, Suspicion] = field(default_factory=dict)


def assess(
    problem: Problem,
    answers: Iterable[Answered],
    vouched: Iterable[int] = (),
    known: Iterable[int] = (),
) -> Trust:
    """Find who is known and who is suspected.

    Parameters
    ----------
    problem
        The table.
    answers
        The answers in their order, without those that were taken back or excluded.
    vouched
        Workers for whom the owner vouches.
    known
        Workers who were known so far: they stay known until the evidence speaks against them.

    Examples
    --------
    >>> import crowdtree as ct
    >>> problem = ct.Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2)
    >>> said = [Answered(k, 0, w, k % 2, 5.0) for k in range(12) for w in (1, 2)]
    >>> said += [Answered(k, 0, 3, 1 - k % 2, 5.0) for k in range(12)]
    >>> found = assess(problem, said)
    >>> found.known, {who: why.rule for who, why in found.suspected.items()}
    ({1: 'agreement', 2: 'agreement'}, {3: 'wrong'})
    """
    crowd = _Crowd(problem, list(answers))
    before, trusted = set(known), set(vouched)
    found = Trust()
    while True:  # without the suspects, others may be known, and others suspected
        found.known = crowd.known(trusted, before, set(found.suspected))
        new = crowd.suspects(trusted, found)
        if not new:
            return found
        found.suspected |= new


def speaks_for(problem: Problem, answers: Iterable[tuple[int, int]], label: int) -> bool:
    """Whether answers (question, value) make a label likelier than it was before.

    >>> problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2)
    >>> speaks_for(problem, [(0, 1)], 1), speaks_for(problem, [(0, 1)], 0)
    (True, False)
    """
    yes = AnswerModel.of(problem).yes
    told = np.zeros(problem.n_classes)
    for question, value in answers:
        told += np.log(yes[question] if value else 1 - yes[question])
    return bool(told[label] - np.log(problem.prior @ np.exp(told)) > 1e-12)


class _Crowd:
    """The answers of a campaign: what each person said about each item, as likelihoods.

    A *voice* is all that one person said about one item; each answer to a gold item is one, too.
    """

    def __init__(self, problem: Problem, answers: list[Answered]) -> None:
        self.problem, self.answers = problem, answers
        self.prior = problem.prior / problem.prior.sum()
        self.workers = sorted({a.worker for a in answers})
        self.question, self.value, self.worker, self.seconds = (
            np.array([getattr(a, name) for a in answers])
            for name in ("question", "value", "worker", "seconds")
        )
        self.voice = np.zeros(len(answers), dtype=np.int64)
        self.voices: list[tuple[int, int, int | None]] = []
        """Item (a number of its own for a gold answer), worker and known class of each voice."""
        place: dict[tuple[int, int], int] = {}
        for k, a in enumerate(answers):
            key = (a.item if a.gold is None else -k - 1, a.worker)
            if key not in place:
                place[key] = len(self.voices)
                self.voices.append((*key, a.gold))
            self.voice[k] = place[key]
        self.by_item: dict[int, list[int]] = {}
        for number, (item, _, gold) in enumerate(self.voices):
            if gold is None:
                self.by_item.setdefault(item, []).append(number)
        found = {item: place for place, item in enumerate({item for item, _, _ in self.voices})}
        self.n_items = len(found)
        self.where = np.array([found[item] for item, _, _ in self.voices], dtype=np.int64)
        place_of = {worker: place for place, worker in enumerate(self.workers)}
        self.who = np.array([place_of[w] for _, w, _ in self.voices], dtype=np.int64)
        self.is_gold = np.array([gold is not None for _, _, gold in self.voices], dtype=bool)
        self.by_worker: dict[int, list[int]] = {}
        for number, (_, worker, _) in enumerate(self.voices):
            self.by_worker.setdefault(worker, []).append(number)

    def _told(self, yes: FloatArray) -> FloatArray:
        """Log likelihood of each voice, per class, under a table of P(yes | class)."""
        found = np.zeros((len(self.voices), self.problem.n_classes))
        if len(self.answers):
            said = yes[self.question]
            np.add.at(found, self.voice, np.log(np.where(self.value[:, None] == 1, said, 1 - said)))
        return found

    def _yes(self, error: FloatArray) -> FloatArray:
        """P(yes | class) of a person with other errors."""
        sign = AnswerModel.of(self.problem).sign
        found = np.where(sign > 0, 1 - error, np.where(sign < 0, error, 0.5))
        return np.clip(found, LEAST_ERROR, 1 - LEAST_ERROR)

    @cached_property
    def plain(self) -> FloatArray:
        return self._told(AnswerModel.of(self.problem).yes)

    @cached_property
    def lax(self) -> FloatArray:
        error = self.problem.worker_error
        return self._told(self._yes(np.maximum(error, np.minimum(LAX * error, MOST_ERROR))))

    @cached_property
    def hostile(self) -> FloatArray:
        return self._told(self._yes(np.full_like(self.problem.worker_error, HOSTILE)))

    @cached_property
    def blind(self) -> FloatArray:
        """Log likelihood of each voice where the answers are coins."""
        count = np.bincount(self.voice, minlength=len(self.voices))
        return np.asarray(count * np.log(0.5), dtype=np.float64)

    # ---------------------------------------------------------------- known

    def known(self, vouched: set[int], before: set[int], suspected: set[int]) -> dict[int, str]:
        """Workers who are known, with the reason."""
        found = dict.fromkeys(vouched - suspected, "vouched")
        gold = self._gold()
        anchored = bool(vouched) or any(known is not None for _, _, known in self.voices)
        rest = [w for w in self.workers if w not in vouched and w not in suspected]
        if not anchored:
            partners = self._majority(rest) or before & set(rest)
            return self._passed(partners, partners, before, gold)
        while True:
            left = [worker for worker in rest if worker not in found]
            new = self._passed(left, set(found), before, gold)
            if not new:
                return found
            found |= new

    def _passed(
        self,
        workers: Iterable[int],
        partners: set[int],
        before: set[int],
        gold: dict[int, float],
    ) -> dict[int, str]:
        """Those of some workers for whom there is enough evidence, with the reason."""
        agreed = self._agreement(partners)
        found = {}
        for worker in workers:
            right = gold.get(worker, 0.0)
            if right + agreed.get(worker, 0.0) >= (LOST if worker in before else KNOWN):
                found[worker] = "gold" if right >= KNOWN else "agreement"
        return found

    def _majority(self, workers: list[int]) -> set[int]:
        """Leave out those whom the others contradict most, until nobody is contradicted.

        If no more than half are left then, nobody can say yet who is right.
        """
        found = set(workers)
        while found:
            agreed = self._agreement(found)
            worst = sorted((agreed.get(w, 0.0), -w) for w in found)[: max(1, len(found) // 10)]
            worst = [entry for entry in worst if entry[0] < 0]
            if not worst:
                break
            found -= {-worker for _, worker in worst}
        return found if 2 * len(found) > len(workers) else set()

    def _agreement(self, partners: set[int]) -> dict[int, float]:
        """Evidence of each worker's answers, compared with those of other people."""
        believed, there = self._beliefs(partners)
        chance = np.exp(self.plain)
        told = np.log((believed * chance).sum(axis=1)) - np.log(chance @ self.prior)
        total = np.bincount(self.who, np.where(there, told, 0.0), minlength=len(self.workers))
        return dict(zip(self.workers, total.tolist(), strict=True))

    def _beliefs(self, partners: set[int]) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Chance of each class by what the partners said, without the own voice; whether any did.

        For gold items the truth. Others are wrong together with some chance.
        """
        counts, total, voices = self._spoken(partners)
        others = total[self.where] - np.where(counts[:, None], self.plain, 0.0)
        believed = self._doubted(others)
        for number in np.flatnonzero(self.is_gold):
            believed[number] = np.eye(self.problem.n_classes)[self.voices[number][2]]
        return believed, voices[self.where] - counts > 0

    def _gold(self) -> dict[int, float]:
        """Evidence of each worker's answers to gold items."""
        found: dict[int, float] = {}
        for number, (_, worker, known) in enumerate(self.voices):
            if known is not None:
                told = self.plain[number]
                told = float(told[known] - np.log(self.prior @ np.exp(told)))
                found[worker] = found.get(worker, 0.0) + told
        return found

    # ---------------------------------------------------------------- suspected

    def suspects(self, vouched: set[int], trust: Trust) -> dict[int, Suspicion]:
        """Workers who are suspected, beside those who are already."""
        rest = [w for w in self.workers if w not in trust.suspected]
        partners = set(trust.known)
        believed, there = self._beliefs(partners)
        there |= self.is_gold
        honest = np.log((believed * np.exp(self.lax)).sum(axis=1))
        hostile = np.log((believed * np.exp(self.hostile)).sum(axis=1))
        wrong = {}
        for worker in rest:
            mine = np.array(self.by_worker[worker])
            mine = mine[there[mine]]
            blind = self.blind[mine] - honest[mine], hostile[mine] - honest[mine]
            if _best([_started_anywhere(map(float, bets)) for bets in blind]) >= SUSPECTED:
                text = (
                    f"answers about {len(mine)} items are wrong too often, compared with gold "
                    "items and with people who are known"
                )
                wrong[worker] = Suspicion("wrong", text)
        if wrong:
            return wrong
        strangers = [w for w in rest if w not in vouched]
        return self._alike(strangers, set(rest)) | self._fast(strangers)

    def _alike(self, workers: list[int], partners: set[int]) -> dict[int, Suspicion]:
        """Suspect pairs of people who give the same answers beyond chance.

        Good people agree as well: so chance is that of the errors which explain the answers best,
        and only items count that others answered too. Two who are always right are not suspected,
        two who are wrong together are.
        """
        one, two, belief = self._compared(workers, partners)
        if not len(one):
            return {}
        people = np.stack([self.worker[one], self.worker[two]], axis=1)
        pairs, of = np.unique(people, axis=0, return_inverse=True)
        agree = self.value[one] == self.value[two]
        told = np.zeros((2, len(CARE), len(pairs)))
        for row, care in enumerate(CARE):
            yes = self._yes(np.minimum(care * self.problem.worker_error, MOST_ERROR))
            yes = yes[self.question[one]]
            mine, other = (np.where(self.value[k, None] == 1, yes, 1 - yes) for k in (one, two))
            first = (mine * belief).sum(axis=1)
            alone = (1 - SHARED) * (mine * other * belief).sum(axis=1) + SHARED * agree * first
            copied = first * np.where(agree, COPIED, 1 - COPIED)
            for sums, chance in zip(told, (copied, alone), strict=True):
                sums[row] = np.bincount(of.ravel(), np.log(chance), minlength=len(pairs))
        copied, alone = told
        evidence = np.logaddexp.reduce(copied) - np.log(len(CARE)) - alone.max(axis=0)
        possible = max(1, len(self.workers) * (len(self.workers) - 1) // 2)
        count = np.bincount(of.ravel())
        found: dict[int, Suspicion] = {}
        for place in np.flatnonzero(evidence >= SUSPECTED + np.log(possible)).tolist():
            pair = pairs[place].tolist()
            for worker, accomplice in (pair, pair[::-1]):
                text = f"{count[place]} answers are those of worker {accomplice} beyond chance"
                found.setdefault(worker, Suspicion("alike", text))
        return found

    def _compared(
        self, workers: list[int], partners: set[int]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]:
        """Pairs of answers of two of some workers to one question about one item.

        With the chance of each class by what the partners said, without the two; only items about
        which others than the two said something. In each pair the smaller worker comes first.
        """
        item = self.where[self.voice]
        some = np.flatnonzero(np.isin(self.worker, workers) & ~self.is_gold[self.voice])
        order = np.lexsort((self.worker[some], self.question[some], item[some]))
        some = some[order]
        asked = item[some] * self.problem.n_questions + self.question[some]
        one, two = [some[:0]], [some[:0]]
        for apart in range(1, len(some)):
            same = asked[apart:] == asked[:-apart]
            if not same.any():
                break
            one.append(some[:-apart][same])
            two.append(some[apart:][same])
        a, b = np.concatenate(one), np.concatenate(two)
        counts, total, voices = self._spoken(partners)
        mine = self.voice[a], self.voice[b]
        others = voices[item[a]] - counts[mine[0]] - counts[mine[1]] > 0
        a, b = a[others], b[others]
        said = total[item[a]]
        for voice in (self.voice[a], self.voice[b]):
            said = said - np.where(counts[voice, None], self.plain[voice], 0.0)
        return a, b, self._doubted(said)

    def _spoken(self, partners: set[int]) -> tuple[NDArray[np.bool_], FloatArray, FloatArray]:
        """Which voices are those of partners; their sum and their number, per item."""
        counts = np.isin(np.array(self.workers)[self.who], list(partners)) & ~self.is_gold
        total = np.zeros((self.n_items, self.problem.n_classes))
        voices = np.zeros(self.n_items)
        np.add.at(total, self.where[counts], self.plain[counts])
        np.add.at(voices, self.where[counts], 1.0)
        return counts, total, voices

    def _doubted(self, told: FloatArray) -> FloatArray:
        """Chance of each class by what people said, who are wrong together with some chance."""
        posterior = self.prior * np.exp(told - told.max(axis=1, keepdims=True, initial=-np.inf))
        posterior /= posterior.sum(axis=1, keepdims=True)
        return np.asarray((1 - DOUBT) * posterior + DOUBT * self.prior)

    def _fast(self, workers: list[int]) -> dict[int, Suspicion]:
        """Suspect people who repeatedly answer in a fraction of the time that others take."""
        usual = self._usual_times()
        found: dict[int, Suspicion] = {}
        if usual is None:
            return found
        for worker in workers:
            mine = self.worker == worker
            fast = self.seconds[mine] < usual[self.question[mine]] / HASTE
            reads, hurries = HASTY
            bets = np.where(fast, np.log(hurries / reads), np.log((1 - hurries) / (1 - reads)))
            if _best([_started_anywhere(map(float, bets))]) >= SUSPECTED:
                text = (
                    f"{int(fast.sum())} of {len(fast)} answers took less than one {HASTE:.0f}th of "
                    "the usual time: faster than a person can read"
                )
                found[worker] = Suspicion("fast", text)
        return found

    def _usual_times(self) -> FloatArray | None:
        """Usual seconds for each question: the median over people of their own medians."""
        everywhere = self._usual_time(np.ones(len(self.answers), dtype=bool))
        if everywhere is None:
            return None
        times = (self._usual_time(self.question == q) for q in range(self.problem.n_questions))
        return np.array([everywhere if time is None else time for time in times])

    def _usual_time(self, some: NDArray[np.bool_]) -> float | None:
        people, count = np.unique(self.worker[some], return_counts=True)
        people = people[count >= FEW_TIMES]
        if len(people) < FEW_PEOPLE:
            return None
        own = [np.median(self.seconds[some & (self.worker == person)]) for person in people]
        return float(np.median(own))


def _started_anywhere(bets: Iterable[float]) -> Iterator[float]:
    """Log of a bet that may start at any answer, after each answer.

    Capital ``1 / (t (t + 1))`` waits for answer t, so that somebody who changes is found as well.
    """
    log_capital = -np.inf
    for t, told in enumerate(bets, start=1):
        log_capital = float(np.logaddexp(log_capital, -np.log(t * (t + 1.0))) + told)
        yield log_capital


def _best(bets: list[Iterator[float]]) -> float:
    """Greatest value over time of the average of bets; -inf without any."""
    if not bets:
        return -np.inf
    values = np.array([list(bet) for bet in bets])
    return float((np.logaddexp.reduce(values, axis=0) - np.log(len(values))).max(initial=-np.inf))
