"""All questions at once: the usual way, to compare with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.core.calibration import INDEPENDENT, Calibration
from crowdtree.core.checking import check_call
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.likelihood import AnswerModel
from crowdtree.core.outcomes import DASH
from crowdtree.core.problem import Problem
from crowdtree.core.votes import Tally, cast, leaders, vote_counts
from crowdtree.policies.base import (
    Answer,
    Ask,
    FloatArray,
    Label,
    check_answer,
    decide,
    label_error,
    normalised,
    product,
)
from crowdtree.policies.calibrating import Calibrated, check_calibration
from crowdtree.policies.item_prior import dump_prior, load_prior
from crowdtree.policies.walk import (
    MISSING,
    REASONS,
    Answers,
    Items,
    Round,
    Source,
    answer_slots,
    finite_logs,
)

__all__ = ["BatchPolicy", "BatchState", "Decoder", "nearest_codeword"]

Decoder = Literal["nearest", "posterior"]


@dataclass(frozen=True, eq=False)
class BatchState:
    """Votes on each question, as :mod:`crowdtree.core.votes` has them; the last are for "can't
    tell".
    """

    tally: Tally
    log_posterior: FloatArray
    prior: FloatArray | None = None
    """Prior of the item, where it has its own."""

    @property
    def answers(self) -> int:
        """Answers so far."""
        return int(self.counts.sum())

    @property
    def counts(self) -> NDArray[np.int64]:
        """Votes, ``counts[answer, question]``."""
        return vote_counts(self.tally)


@dataclass(frozen=True, eq=False)
class BatchPolicy(Calibrated):
    """Ask every question `votes` times at once and decode the verdicts.

    Parameters
    ----------
    problem
        The problem.
    votes
        Answers to each question.
    decoder
        ``"nearest"``: majority vote per question, then the class whose outcomes differ least from
        the verdicts (``-`` differs by one half), whatever mistakes cost; ``"posterior"``: the
        label of the least expected loss (for 0/1 loss the likeliest class) given every answer.
    calibration
        How far the evidence is discounted before an error is stated (see :meth:`calibrate`).

    Examples
    --------
    >>> import crowdtree as ct
    >>> policy = BatchPolicy(ct.example("table1"), votes=1)
    >>> policy.ask(policy.start())
    Ask(questions=(0, 1, 2, 3, 4))
    """

    problem: Problem
    votes: int = 1
    decoder: Decoder = "nearest"
    calibration: Calibration = INDEPENDENT

    def __post_init__(self) -> None:
        check_call(BatchPolicy, vars(self))
        self.problem.require_one_source("BatchPolicy")
        check_calibration(self.problem, self.calibration)
        if not 1 <= self.votes <= 32_000:
            raise CrowdtreeError(
                f"votes: expected a whole number from 1 to 32,000, got {self.votes}"
            )

    @cached_property
    def model(self) -> AnswerModel:
        """Likelihood of the answers."""
        return AnswerModel.of(self.problem)

    @property
    def votes_per_question(self) -> int:
        """Answers to each question: `votes`, or more where `least_answers` needs them."""
        return max(self.votes, -(-self.least_answers // self.problem.n_questions))

    def many(self, source: Source, items: int) -> BatchItems | None:
        """Many items at once."""
        return BatchItems(self, source, items) if type(self) is BatchPolicy else None

    @property
    def most_answers(self) -> int:
        """Answers that every item takes."""
        return self.votes_per_question * self.problem.n_questions

    def start(self, prior: ArrayLike | None = None) -> BatchState:
        """State of an item without answers; `prior` in place of the problem's prior."""
        none = np.zeros((self.model.slots, self.problem.n_questions), dtype=np.int64)
        own = self.own_prior(prior)
        log_prior = np.log(self.problem.prior if own is None else own)
        return BatchState(none, normalised(log_prior), own)

    def wants(self, state: BatchState, question: int) -> bool:
        """Whether the question still lacks votes."""
        return int(state.counts[:, question].sum()) < self.votes_per_question

    def update(self, state: BatchState, answer: Answer) -> BatchState:
        """Count a vote."""
        check_answer(self.problem, answer)
        question = answer.question
        if not self.wants(state, question):
            return state
        before, tally = state.counts[:, question], state.tally.copy()
        cast(tally, self.model.slot(answer.value), before.sum(), np.array([question]))
        evidence = answer.weight * self.model.log_likelihood(
            question, answer.value, answer.skill, before
        )
        return BatchState(tally, normalised(state.log_posterior + evidence), state.prior)

    def ask(
        self, state: BatchState, outstanding: Sequence[int] = (), exclude: Collection[int] = ()
    ) -> Ask | Label:
        """All votes that are neither in nor out, round by round, or the label when all are in."""
        out = Counter(outstanding)
        lacking = [
            max(0, self.votes_per_question - int(asked) - out[q])
            for q, asked in enumerate(state.counts.sum(axis=0))
        ]
        if not any(lacking) and not outstanding:
            return self.conclude(state, "questions")
        rounds = range(max(lacking, default=0))
        return Ask(
            tuple(
                q for r in rounds for q, lack in enumerate(lacking) if lack > r and q not in exclude
            )
        )

    def conclude(self, state: BatchState, reason: str) -> Label:
        """Decode the votes so far."""
        stated = self.stated_of(state)
        if self.decoder == "posterior":
            return decide(stated[None], self.problem.loss).as_label(reason)
        verdict = leaders(state.tally[:-1])
        label = int(nearest_codeword(self.problem, verdict[None], state.prior)[0])
        return Label(label, label_error(stated, label), reason)

    def dump(self, state: BatchState) -> dict[str, Any]:
        """Write a state as plain JSON."""
        return {
            "tally": state.tally.tolist(),
            "log_posterior": state.log_posterior.tolist(),
            **dump_prior(state.prior),
        }

    def load(self, data: dict[str, Any]) -> BatchState:
        """Read a state back."""
        tally = np.array(data["tally"], dtype=np.int64)
        return BatchState(tally, np.array(data["log_posterior"]), load_prior(data))

    def to_dict(self) -> dict[str, Any]:
        """Write the policy as plain JSON."""
        said = {"policy": "batch", "votes": int(self.votes), "decoder": self.decoder}
        return said | self.discounting

    @classmethod
    def from_dict(cls, problem: Problem, data: dict[str, Any]) -> BatchPolicy:
        """Read what :meth:`to_dict` wrote."""
        calibration = Calibration.from_dict(data.get("calibration"))
        return cls(problem, data["votes"], data["decoder"], calibration)

    def __repr__(self) -> str:
        return f"BatchPolicy({self.votes} votes per question, {self.decoder})"


class BatchItems(Items):
    """All votes on one question about all items, then those on the next."""

    def __init__(self, policy: BatchPolicy, source: Source, items: int) -> None:
        super().__init__(source, items, policy.problem.n_questions)
        self.policy = policy
        self.prior = policy.own_prior(source.prior)
        self.log_posterior = policy.first_log_posterior(self.prior, items)
        self.verdict = np.zeros((policy.problem.n_questions, items), dtype=np.int64)
        self._alike: FloatArray | None = None
        """Answers of people who are all alike, ``[answer, question, item]``: in any order."""
        self._everybody, self._none = self.item, np.zeros((policy.model.slots, 1), dtype=np.int64)
        self._begin(0)

    @property
    def share_done(self) -> float:
        """How many of the questions have been asked, from 0 to 1."""
        return self.question / len(self.verdict)

    def _begin(self, question: int) -> None:
        """Begin the votes on a question."""
        self.question, self.repeat, self.item = question, 0, self._everybody
        self.tally = np.zeros((self.policy.model.slots, len(self.item)), dtype=np.int64)
        self.at_once = True

    def ask(self) -> Round | None:
        """Ask the same question about every item that has had no missing answer to it."""
        if self.repeat == self.policy.votes_per_question:
            self.verdict[self.question] = leaders(self.tally[:-1])
            if self.at_once:
                if self._alike is None:
                    self._alike = np.zeros((len(self.policy.model.answers), *self.verdict.shape))
                self._alike[:, self.question] = vote_counts(self.tally[: len(self._alike)])
            if self.question + 1 == len(self.verdict):
                self._decide()
                return None
            self._begin(self.question + 1)
        return Round(self.item, np.array([self.question]), np.array([self.repeat]), self._before)

    def _before(self) -> NDArray[np.int64]:
        """Answers to the question about the items that it is asked about."""
        return vote_counts(self.tally if self._full else self.tally[:, self.item])

    @property
    def _full(self) -> bool:
        """Whether the question is asked about every item."""
        return len(self.item) == len(self._everybody)

    def update(self, asked: Round, answers: Answers) -> None:
        """Count the votes; a missing answer ends the vote."""
        value, skill, model = answers.value.astype(np.int64), answers.skill, self.policy.model
        if (value == MISSING).any():
            there = value != MISSING
            self.item, value = self.item[there], value[there]
            skill = None if skill is None else skill[there]
        if skill is not None or model.shared_difficulty:
            before = self._before() if model.depends else self._none
            evidence = model.evidence(asked.option, value, skill, before)
            if self._full:
                self.log_posterior += evidence
            else:
                self.log_posterior[self.item] += evidence
            self.at_once = False
        cast(self.tally, answer_slots(value, len(self.tally)), self.repeat, self.item)
        self.labels.answers[slice(None) if self._full else self.item] += 1
        self.labels.asked[self.question] += len(value)
        self.repeat += 1

    def _decide(self) -> None:
        """Label all items."""
        policy, labels, loss = self.policy, self.labels, self.policy.problem.loss
        if self._alike is not None:
            for votes, logs in zip(self._alike, finite_logs(policy.model), strict=True):
                self.log_posterior += product(votes.T, logs)
        log_prior = policy.log_prior_of(self.prior)
        stated = policy.stated(normalised(self.log_posterior), labels.answers, log_prior)
        labels.reason[:] = REASONS.index("questions")
        if policy.decoder == "nearest":
            labels.label[:] = nearest_codeword(policy.problem, self.verdict.T, self.prior)
        else:
            best = decide(stated, loss)
            labels.label[:] = best.label
            labels.reason[best.referred] = REASONS.index("referred")
        labels.state_errors(np.exp(stated), loss)


def nearest_codeword(
    problem: Problem, verdicts: NDArray[np.int64], prior: FloatArray | None = None
) -> NDArray[np.intp]:
    """Class whose outcomes differ least from the verdicts, one row per item.

    A ``-`` or no verdict differs by one half. Equals: the likelier class by the prior (the
    problem's, or rows of the items), then the first.

    >>> problem = Problem(["a", "b"], None, ["q", "r"], [[0, 1], [0, 1]], 0.1)
    >>> nearest_codeword(problem, np.array([[1, 1], [0, 1]])).tolist()
    [1, 0]
    """
    dash = (problem.outcome == DASH)[None]
    wrong = np.where(dash, 0.5, ~problem.right)
    distance = np.where(verdicts < 0, 0.5, 0.0).sum(axis=1)[:, None]
    for answer, off in enumerate(wrong):
        distance = distance + product((verdicts == answer).astype(np.float64), off)
    chance = problem.prior if prior is None else prior
    if chance.ndim == 1:  # one order for all items
        order = np.argsort(-chance, kind="stable")
        return np.asarray(order[np.argmin(distance[:, order].round(6), axis=1)])
    orders = np.argsort(-chance, axis=1, kind="stable")
    best = np.argmin(np.take_along_axis(distance, orders, axis=1).round(6), axis=1)
    return np.asarray(orders[np.arange(len(orders)), best])
