"""Votes of a node of a plan: who wins, and how many answers it takes, by the rule of the vote.

``VOTES`` maps a rule's name to it. Rows are probabilities of the answers that have a branch; what
lacks to 1 are votes that count for none of them (docs/model.md, sections 6 and 12).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.core import voting
from crowdtree.core.arrays import FloatArray
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


@dataclass(frozen=True)
class VoteRule:
    """A rule by which votes settle a question.

    From rows of probabilities (answers along the last axis), votes, and the dependence of answers,
    `wins` is the probability that each answer wins, and `answers` how many answers are expected.
    `two_way_error` and `two_way_answers` are closed forms for two answers.
    """

    name: str
    wins: Callable[[FloatArray, ArrayLike, float], FloatArray]
    answers: Callable[[FloatArray, ArrayLike, float], FloatArray]
    two_way_error: Callable[[FloatArray, ArrayLike, float], FloatArray]
    two_way_answers: Callable[[FloatArray, ArrayLike, float], FloatArray]


def _all_answers(rows: FloatArray, votes: ArrayLike, _dependence: float) -> FloatArray:
    return np.broadcast_to(np.asarray(votes), rows.shape[:-1]).astype(np.float64)


def _all_votes(error: FloatArray, votes: ArrayLike, _dependence: float) -> FloatArray:
    return np.broadcast_to(np.asarray(votes), error.shape).astype(np.float64)


def _margin_wins(rows: FloatArray, votes: ArrayLike, dependence: float) -> FloatArray:
    return _raced(rows, votes, dependence, _margin_race)[0]


def _margin_answers(rows: FloatArray, votes: ArrayLike, dependence: float) -> FloatArray:
    return _raced(rows, votes, dependence, _margin_race)[1]


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


def curtailed_answers(rows: FloatArray, votes: ArrayLike, dependence: float = 0.0) -> FloatArray:
    """Expected answers of a plurality that stops as soon as it is decided. Exact.

    >>> curtailed_answers(np.array([[0.8, 0.2], [0.6, 0.4]]), 3).round(3).tolist()
    [2.32, 2.48]
    """
    return _raced(rows, votes, dependence, curtailed_race)[1]


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
    {
        "majority": VoteRule(
            "majority", plurality_wins, _all_answers, voting.majority_error, _all_votes
        ),
        "margin": VoteRule(
            "margin", _margin_wins, _margin_answers, voting.margin_error, voting.margin_votes
        ),
    }
)


CURTAILED = VoteRule(
    "majority", plurality_wins, curtailed_answers, voting.majority_error, voting.curtailed_votes
)
"""A majority that stops as soon as it is decided: the same winners, fewer answers."""


def closed_answers(
    problem: Problem, rule: VoteRule, question: Any, cls: Any, votes: NDArray[np.int64]
) -> FloatArray | None:
    """Expected answers of votes in some cells in closed form, for questions with two answers."""
    if not problem.is_yes_no:
        return None
    dash = problem.outcome[question, cls] == DASH
    error = np.where(dash, 0.5, problem.worker_error[question, cls])
    return rule.two_way_answers(error, votes, problem.dependence)


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
    if rule.name == "majority":
        rest = np.maximum(1 - rows.sum(axis=1), 0.0)
        nobody = np.array([nobody_votes(rest, n, problem.dependence) for n in votes.tolist()])
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
