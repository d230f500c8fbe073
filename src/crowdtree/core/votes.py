"""The rules by which votes settle a question at a node of a plan (docs/model.md, sections 6, 12).

``VOTES`` maps a rule's name to it. Rows are probabilities of the answers that have a branch; what
lacks to 1 are votes that count for none of them ("can't tell", or an answer that is right for no
class of the node). They are votes nevertheless.

The answer with the most votes leads; of answers that tie the one that was given first, which given
a tie is a fair draw. A tally of many votes is ``tally[answer, vote]``, with the number of the
answer's votes in the high bits and in the low ones how early the first of them came: the largest
number leads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.core import voting
from crowdtree.core.arrays import BoolArray, FloatArray
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.outcomes import DASH
from crowdtree.core.plurality import (
    Race,
    curtailed_race,
    margin_race,
    nobody_votes,
    plurality_wins,
)
from crowdtree.core.problem import Problem
from crowdtree.core.text import plural

Vote = Literal["majority", "margin"]
"""Names of ``VOTES``, which type checkers cannot read off it."""
Early = Literal["curtailed", "margin"]
"""How the votes of a plan may stop early: with the same winners, or by another rule of votes."""
Stopping = Literal["none", Early]
STOPPINGS: tuple[Stopping, ...] = ("none", *get_args(Early))
MAX_MARGIN = 10_000
MAX_OPTION_STATES = 2_500
"""States of a margin vote over several answers; a larger margin is no option of a search."""
Tally = NDArray[np.int64]
_BITS = 20
_ONE = 1 << _BITS
_EARLIEST = _ONE - 1


class Standing(NamedTuple):
    """How one vote stands, or many do: numbers, or arrays of them.

    `leader` is the answer that leads (-1 before any vote that counts), `lead` by how many votes,
    and `first` whether it was given before every answer that ties with the next one, so that it
    would win.
    """

    leader: Any
    lead: Any
    first: Any


def standing(counts: Sequence[int], order: Iterable[int]) -> Standing:
    """Say how one vote stands, by the answers that count in the order in which each first came.

    >>> standing((1, 3, 1), order=(2, 1, 0))
    Standing(leader=1, lead=2, first=False)
    """
    leader, top, second, first = -1, 0, 0, False
    for answer in order:
        count = counts[answer]
        if count > top:
            leader, top, second, first = answer, count, top, not top
        elif count > second:
            second, first = count, True
    return Standing(leader, top - second, first)


def standings(tally: Tally) -> Standing:
    """Say how many votes stand; see :func:`standing`.

    >>> tally = np.zeros((2, 1), dtype=np.int64)
    >>> for turn, answer in enumerate([1, 0, 0]):
    ...     cast(tally, np.array([answer]), turn)
    >>> [int(part[0]) for part in standings(tally)], vote_counts(tally).ravel().tolist()
    ([0, 1, 0], [2, 1])
    """
    top, second = tally[0], np.zeros_like(tally[0])
    for row in tally[1:]:
        second = np.maximum(second, np.minimum(top, row))
        top = np.maximum(top, row)
    first = (top & _EARLIEST) > (second & _EARLIEST)
    return Standing(leaders(tally), (top >> _BITS) - (second >> _BITS), first)


def leaders(tally: Tally) -> NDArray[np.int64]:
    """Answer that leads each vote, -1 before any vote that counts."""
    top = tally[0]
    leader: NDArray[np.int64] = (top > 0) - np.int64(1)
    for answer, row in enumerate(tally[1:], 1):
        leader += (row > top) * (answer - leader)  # numpy.where waits for each branch
        top = np.maximum(top, row)
    return leader


def cast(tally: Tally, answer: Any, turn: Any, vote: NDArray[Any] | None = None) -> None:
    """Add an answer to each vote, or to some of them by number, in place.

    `turn` is how many answers came before it.
    """
    flat = tally.view()
    flat.shape = (tally.size,)  # raises rather than copies
    at = answer * tally.shape[1] + (np.arange(tally.shape[1]) if vote is None else vote)
    flat[at] = np.maximum(flat.take(at) + _ONE, _ONE + _EARLIEST - turn)


def vote_counts(tally: Tally) -> NDArray[np.int64]:
    """Number of votes for each answer."""
    return tally >> _BITS


class VoteRule(ABC):
    """A rule by which votes settle a question, with all that is asked about it.

    `votes` are what a plan has at a node: how many votes, or by how many one answer must lead.
    Rows have the answers along their last axis. What a rule does not define itself is slow or
    cautious or plain, but right.
    """

    name: Vote
    max_votes = max_several = 51
    """Most votes that searches try, and that take the place of others over several answers."""
    always_all = False
    """Whether a vote takes all of its votes, whatever they are."""
    bounded = True
    """Whether answers have a largest number. Then a vote may end without one that counts."""
    is_plurality = False
    """Whether the answer with the most of a given number of votes wins."""
    leaves_out = False
    """Whether an answer that trails the leader by `votes` is out: votes for it do not count."""
    curtailed: VoteRule | None = None
    """A rule with the same winners that stops as soon as one is certain."""

    @abstractmethod
    def wins(self, rows: FloatArray, votes: ArrayLike, dependence: float) -> FloatArray:
        """Probability that each answer wins; where no vote counts, each is as likely."""

    @abstractmethod
    def answers(self, rows: FloatArray, votes: ArrayLike, dependence: float) -> FloatArray:
        """Expected answers of the vote."""

    @abstractmethod
    def is_over(self, votes: Any, given: Any, now: Standing) -> Any:
        """Whether a vote is over, or which ones of many are; `given` are the votes so far."""

    def two_way_error(self, error: FloatArray, votes: ArrayLike, dependence: float) -> FloatArray:
        """Chance that the wrong one of two answers wins, from that of a wrong answer."""
        return np.asarray(self.wins(*_two_way(error, votes), dependence)[..., 1])

    def two_way_answers(self, error: FloatArray, votes: ArrayLike, dependence: float) -> FloatArray:
        """Expected answers of a vote over two answers."""
        return self.answers(*_two_way(error, votes), dependence)

    def votes_for(self, _error: FloatArray, _target: FloatArray, _dependence: float) -> Any:
        """Fewest votes over two answers that err no more than a target; None without formula."""
        return None

    def is_computed(self, _several: bool, _dependence: float) -> bool:
        """Whether the chances are known, of two answers or of several."""
        return True

    def usable(self, votes: NDArray[Any], answers: NDArray[Any]) -> BoolArray:
        """Which votes (rows) are quick to compute over so many answers (columns): the first few."""
        return np.ones((len(votes), len(answers)), dtype=np.bool_)

    def is_convex(self, _dependence: float) -> bool:
        """Whether error plus price is proven to be convex in the votes, below an error of 1/2."""
        return False

    def sure_votes(self, _votes: int, _given: int, _now: Standing) -> int:
        """Votes that an open vote is sure to need still."""
        return 1

    def most(self, votes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Most answers of a vote; of one without limit, the usual number of one that is close."""
        return votes

    def kind(self, _several: bool) -> str:
        """The votes of a plan in words."""
        return f"{self.name} votes"

    def drawn(self, votes: int) -> str:
        """The votes of a node in a drawing."""
        return plural(votes, "vote")

    def listed(self, votes: int, _several: bool) -> str:
        """The votes of a node in a list; nothing for a single one."""
        return plural(votes, "vote") if votes > 1 else ""

    def people(self, votes: str, one: bool, _several: bool) -> str:
        """Whom a question is put to: so many, or at most `one`."""
        return f"{votes} {'person' if one else 'people'}"


def _two_way(error: FloatArray, votes: ArrayLike) -> tuple[FloatArray, NDArray[Any]]:
    wrong, each = np.broadcast_arrays(error, votes)
    return np.stack([1 - wrong, wrong], axis=-1), each


class _Majority(VoteRule):
    """A given number of votes; the answer with the most of them wins."""

    name = "majority"
    always_all = is_plurality = True

    def wins(self, rows: FloatArray, votes: ArrayLike, dependence: float) -> FloatArray:
        return plurality_wins(rows, votes, dependence)

    def answers(self, rows: FloatArray, votes: ArrayLike, _dependence: float) -> FloatArray:
        return np.broadcast_to(np.asarray(votes), rows.shape[:-1]).astype(np.float64)

    def two_way_error(self, error: FloatArray, votes: ArrayLike, dependence: float) -> FloatArray:
        return voting.majority_error(error, votes, dependence)

    def is_convex(self, _dependence: float) -> bool:
        return self.always_all

    def is_over(self, votes: Any, given: Any, now: Standing) -> Any:
        """A vote that is kept open beyond its number goes on until an answer leads."""
        return (given == votes) | ((given > votes) & (now.lead > 0))

    def sure_votes(self, votes: int, given: int, _now: Standing) -> int:
        return votes - given

    def kind(self, several: bool) -> str:
        return "plurality votes" if several else "majority votes"

    def people(self, votes: str, one: bool, several: bool) -> str:
        who = "most frequent answer" if several else "majority"
        return super().people(votes, one, several) + ("" if one else f", and the {who} decides")


class _Curtailed(_Majority):
    """A majority that stops as soon as it is decided: the same winners, fewer answers.

    >>> rows = np.array([[0.8, 0.2], [0.6, 0.4]])
    >>> VOTES["majority"].curtailed.answers(rows, 3, 0.0).round(3).tolist()
    [2.32, 2.48]
    """

    always_all = False

    def answers(self, rows: FloatArray, votes: ArrayLike, dependence: float) -> FloatArray:
        return _raced(rows, votes, dependence, curtailed_race)[1]

    def two_way_answers(self, error: FloatArray, votes: ArrayLike, dependence: float) -> FloatArray:
        return voting.curtailed_votes(error, votes, dependence)

    def is_over(self, votes: Any, given: Any, now: Standing) -> Any:
        left = votes - given
        sure = (left > 0) & (now.lead > left - now.first)
        return super().is_over(votes, given, now) | sure

    def sure_votes(self, votes: int, given: int, now: Standing) -> int:
        left = votes - given - int(now.lead)
        return (left - bool(now.first or now.leader < 0)) // 2 + 1


_Majority.curtailed = _Curtailed()
_Curtailed.curtailed = None


class _Margin(VoteRule):
    """Votes until every other answer trails by a margin."""

    name = "margin"
    max_votes, max_several = 25, 6
    bounded = False
    leaves_out = True

    def wins(self, rows: FloatArray, votes: ArrayLike, dependence: float) -> FloatArray:
        return _raced(rows, votes, dependence, _margin_race)[0]

    def answers(self, rows: FloatArray, votes: ArrayLike, dependence: float) -> FloatArray:
        return _raced(rows, votes, dependence, _margin_race)[1]

    def two_way_error(self, error: FloatArray, votes: ArrayLike, dependence: float) -> FloatArray:
        return voting.margin_error(error, votes, dependence)

    def two_way_answers(self, error: FloatArray, votes: ArrayLike, dependence: float) -> FloatArray:
        return voting.margin_votes(error, votes, dependence)

    def votes_for(self, error: FloatArray, target: FloatArray, dependence: float) -> Any:
        from scipy.special import logit

        if dependence:
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            quotient = logit(target) / logit(error)  # margin_error is expit(margin x logit error)
        quotient = np.where(np.isfinite(quotient), quotient, 1.0)
        margin = np.ceil(quotient - 1e-9)
        # From an error of one half on, every vote helps the wrong side: one answer is best.
        margin = np.where(error >= 0.5, 1.0, margin)
        return np.clip(margin, 1, MAX_MARGIN).astype(np.int64)

    def is_computed(self, several: bool, dependence: float) -> bool:
        return not (several and dependence)

    def usable(self, votes: NDArray[Any], answers: NDArray[Any]) -> BoolArray:
        lead, count = votes[:, None].astype(np.float64), answers.astype(np.float64)
        few = (lead + 1) ** count - lead**count <= MAX_OPTION_STATES
        return np.asarray(few | (count == 2) | (lead == 1))

    def is_convex(self, dependence: float) -> bool:
        return not dependence

    def is_over(self, votes: Any, _given: Any, now: Standing) -> Any:
        return now.lead >= votes

    def sure_votes(self, votes: int, _given: int, now: Standing) -> int:
        return votes - int(now.lead)

    def most(self, votes: NDArray[np.int64]) -> NDArray[np.int64]:
        return votes**2

    def kind(self, _several: bool) -> str:
        return "votes until a lead"

    def drawn(self, votes: int) -> str:
        return f"lead by {votes}"

    def listed(self, votes: int, several: bool) -> str:
        return f"until one {'answer' if several else 'side'} leads by {votes}"

    def people(self, votes: str, _one: bool, _several: bool) -> str:
        return f"people until one answer leads by {votes}"


def _margin_race(row: tuple[float, ...], margin: int, dependence: float) -> Race:
    if len(row) == 2 and sum(row) > 1 - 1e-12:
        error = np.array([row[1]])
        wrong = float(voting.margin_error(error, margin, dependence)[0])
        return Race((1 - wrong, wrong), float(voting.margin_votes(error, margin, dependence)[0]))
    if dependence:
        raise CrowdtreeError(
            "vote: a margin over several answers is computed for independent answers only; use "
            'vote="majority", or dependence=0'
        )
    order = sorted(range(len(row)), key=lambda answer: -row[answer])  # by symmetry, solved once
    race = margin_race(tuple(row[answer] for answer in order), margin)
    wins = dict(zip(order, race.wins, strict=True))
    return race._replace(wins=tuple(wins[answer] for answer in range(len(row))))


def _raced(
    rows: FloatArray,
    votes: ArrayLike,
    dependence: float,
    race: Callable[[tuple[float, ...], int, float], Race],
) -> tuple[FloatArray, FloatArray]:
    """Follow the race of each row; equal rows once."""
    flat = rows.reshape(-1, rows.shape[-1])
    count = np.broadcast_to(np.asarray(votes), rows.shape[:-1]).reshape(-1)
    made: list[Any] = [
        race(tuple(row), n, dependence)
        for row, n in zip(flat.tolist(), count.tolist(), strict=True)
    ]
    wins = np.array([found.wins for found in made]).reshape(rows.shape)
    return wins, np.array([found.answers for found in made]).reshape(rows.shape[:-1])


VOTES: Mapping[str, VoteRule] = MappingProxyType(
    {rule.name: rule for rule in (_Majority(), _Margin())}
)


def answer_rows(problem: Problem, question: Any, cls: Any, answers: Sequence[int]) -> FloatArray:
    """Probability of some answers of one worker in some cells, along the last axis."""
    rows = problem.channel[0][list(answers)][:, question, cls]
    if problem.unsure is not None:
        rows = rows * (1 - problem.unsure[question, cls])
    return np.moveaxis(rows, 0, -1)


def two_verdicts(problem: Problem, question: Any, cls: Any, wrong: FloatArray) -> list[FloatArray]:
    """Chance of either verdict on a plain question with two answers, given that of a wrong one.

    >>> problem = Problem(["a", "b", "c"], None, ["q"], [[0, 1, "-"]], 0.1)
    >>> np.round(two_verdicts(problem, 0, np.arange(3), np.full(3, 0.2)), 3).tolist()
    [[0.8, 0.2, 0.5], [0.2, 0.8, 0.5]]
    """
    outcome = problem.outcome[question, cls]
    yes = np.where(outcome == 1, 1 - wrong, np.where(outcome == DASH, 0.5, wrong))
    return [1 - yes, yes]


def branch_chances(
    problem: Problem,
    rule: VoteRule,
    question: int,
    answers: Sequence[int],
    usual: int,
    votes: NDArray[np.int64],
    classes: NDArray[Any],
) -> FloatArray:
    """Probability that a vote takes each branch, as ``[votes, branch, class]``.

    `answers` are those that have a branch. Votes for others count for nobody; where no vote
    counts, the branch of the `usual` answer is taken.
    """
    rows = answer_rows(problem, question, classes, answers)
    every = np.broadcast_to(rows, (len(votes), *rows.shape))
    wins = np.moveaxis(rule.wins(every, votes[:, None], problem.dependence), 2, 1)
    if rule.bounded:
        rest, most = np.maximum(1 - rows.sum(axis=1), 0.0), rule.most(votes)
        nobody = np.array([nobody_votes(rest, n, problem.dependence) for n in most.tolist()])
        wins = wins - nobody[:, None] / len(answers)
        wins[:, list(answers).index(usual)] += nobody
    return wins


class CellVotes:
    """Errors and expected answers of votes over all answers of the question, in some cells.

    Cells of equal probabilities are computed once; plain questions with two answers in closed form,
    with an error of one half where they have ``-``.
    """

    def __init__(self, problem: Problem, question: Any, cls: Any) -> None:
        self.dependence = problem.dependence
        self._error: FloatArray | None = None
        if problem.is_yes_no:
            dash = problem.outcome[question, cls] == DASH
            error = np.where(dash, 0.5, problem.worker_error[question, cls])
            self._error, place = np.unique(error, return_inverse=True)
            self._place = place.reshape(error.shape)
            return
        rows = answer_rows(problem, question, cls, range(len(problem.right)))
        right = np.moveaxis(problem.right[:, question, cls], 0, -1)
        count = problem.n_answers[question][..., None]
        key = np.concatenate([rows, right, np.broadcast_to(count, (*rows.shape[:-1], 1))], axis=-1)
        width = rows.shape[-1]
        unique, place = np.unique(key.reshape(-1, 2 * width + 1), axis=0, return_inverse=True)
        self._place = place.reshape(rows.shape[:-1])
        self._rows, self._right = unique[:, :width], unique[:, width:-1] > 0
        self._count = unique[:, -1].astype(np.int64)

    def errors(self, rule: VoteRule, votes: NDArray[np.int64]) -> FloatArray:
        """Chance that the vote does not settle on a right answer, as ``[votes, cell ...]``."""
        if self._error is not None:
            found = rule.two_way_error(self._error[None], votes[:, None], self.dependence)
            return np.asarray(found[:, self._place])

        def wrong(rows: FloatArray, right: NDArray[np.bool_]) -> FloatArray:
            wins = rule.wins(rows, votes[:, None], self.dependence)
            return np.asarray(np.minimum(np.where(right, 0.0, wins).sum(axis=2), 1.0))

        return self._by_count(wrong, votes)

    def answers(self, rule: VoteRule, votes: NDArray[np.int64]) -> FloatArray:
        """Expected answers where every answer has a branch, as ``[votes, cell ...]``."""
        if self._error is not None:
            found = rule.two_way_answers(self._error[None], votes[:, None], self.dependence)
            return np.asarray(found[:, self._place])
        return self._by_count(
            lambda rows, _: rule.answers(rows, votes[:, None], self.dependence), votes
        )

    def _by_count(
        self,
        compute: Callable[[FloatArray, NDArray[np.bool_]], FloatArray],
        votes: NDArray[np.int64],
    ) -> FloatArray:
        """Compute something of the rows of questions with as many answers, for each vote."""
        found = np.empty((len(votes), len(self._rows)))
        for count in np.unique(self._count).tolist():
            here = self._count == count
            rows, right = self._rows[here][:, :count], self._right[here][:, :count]
            found[:, here] = compute(np.broadcast_to(rows, (len(votes), *rows.shape)), right)
        return found[:, self._place]
