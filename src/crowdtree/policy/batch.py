"""All questions at once: the usual way, to compare with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from crowdtree.calibration import INDEPENDENT, Calibration
from crowdtree.checking import check_call
from crowdtree.errors import CrowdtreeError
from crowdtree.likelihood import AnswerModel
from crowdtree.outcomes import DASH
from crowdtree.policy.adaptive import AdaptivePolicy
from crowdtree.policy.base import (
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
from crowdtree.policy.calibrating import Calibrated, check_calibration
from crowdtree.problem import Problem

__all__ = ["BatchPolicy", "BatchState", "Decoder", "nearest_codeword"]

Decoder = Literal["nearest", "posterior"]
NEVER = 32_767
"""Turn of an answer that never came."""


@dataclass(frozen=True, eq=False)
class BatchState:
    """Votes, ``counts[answer, question]``, and the turn at which each answer first came.

    The last answer is "can't tell".
    """

    counts: NDArray[np.int16]
    since: NDArray[np.int16]
    log_posterior: FloatArray

    @property
    def answers(self) -> int:
        """Answers so far."""
        return int(self.counts.sum())


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

    @property
    def bulk(self) -> Literal["batch"] | None:
        """Many items at once, for yes/no questions."""
        return "batch" if type(self) is BatchPolicy and self.problem.is_yes_no else None

    @property
    def most_answers(self) -> int:
        """Answers that every item takes."""
        return self.votes_per_question * self.problem.n_questions

    def start(self) -> BatchState:
        """State of an item about which nothing is known."""
        none = np.zeros((self.model.slots, self.problem.n_questions), dtype=np.int16)
        since = np.full(none.shape, NEVER, dtype=np.int16)
        return BatchState(none, since, normalised(np.log(self.problem.prior)))

    def wants(self, state: BatchState, question: int) -> bool:
        """Whether the question still lacks votes."""
        return int(state.counts[:, question].sum()) < self.votes_per_question

    def update(self, state: BatchState, answer: Answer) -> BatchState:
        """Count a vote."""
        check_answer(self.problem, answer)
        question = answer.question
        if not self.wants(state, question):
            return state
        counts, since = state.counts.copy(), state.since.copy()
        slot, turn = self.model.slot(answer.value), int(counts[:, question].sum())
        counts[slot, question] += 1
        since[slot, question] = min(turn, since[slot, question])
        evidence = answer.weight * self.model.log_likelihood(
            question, answer.value, answer.skill, state.counts[:, question]
        )
        return BatchState(counts, since, normalised(state.log_posterior + evidence))

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
        stated = self.stated(state.log_posterior, state.answers)
        if self.decoder == "posterior":
            return decide(stated[None], self.problem.loss).as_label(reason)
        verdict = plurality_verdicts(state.counts[:-1, None], state.since[:-1, None])
        label = int(nearest_codeword(self.problem, verdict)[0])
        return Label(label, label_error(stated, label), reason)

    def posterior(self, state: BatchState) -> FloatArray:
        """Stated probability of each class given the answers so far."""
        return np.exp(self.stated(state.log_posterior, state.answers))

    def asking_until(self, target_error: float) -> AdaptivePolicy:
        """Return an adaptive policy of the same problem."""
        return AdaptivePolicy(self.problem, target_error, strict=False)

    def dump(self, state: BatchState) -> dict[str, Any]:
        """Write a state as plain JSON."""
        return {
            "counts": state.counts.tolist(),
            "since": state.since.tolist(),
            "log_posterior": state.log_posterior.tolist(),
        }

    def load(self, data: dict[str, Any]) -> BatchState:
        """Read a state back."""
        return BatchState(
            np.array(data["counts"], dtype=np.int16),
            np.array(data["since"], dtype=np.int16),
            np.array(data["log_posterior"]),
        )

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


def plurality_verdicts(counts: NDArray[Any], since: NDArray[Any]) -> NDArray[np.int64]:
    """Verdict of each question of each item, -1 without any vote that counts.

    The answer with the most votes; of leaders that tie the one that came first, a fair draw.

    Parameters
    ----------
    counts, since
        Votes for each answer and the turn at which it first came, [answer, item, question].
    """
    leads = counts == counts.max(axis=0)
    first = np.where(leads, since, NEVER)
    found = first.argmin(axis=0)
    return np.where(counts.any(axis=0), found, -1)


def nearest_codeword(problem: Problem, verdicts: NDArray[np.int64]) -> NDArray[np.intp]:
    """Class whose outcomes differ least from the verdicts, one row per item.

    A ``-`` or no verdict differs by one half. Equals: the likelier class, then the first.

    >>> problem = Problem(["a", "b"], None, ["q", "r"], [[0, 1], [0, 1]], 0.1)
    >>> nearest_codeword(problem, np.array([[1, 1], [0, 1]])).tolist()
    [1, 0]
    """
    dash = (problem.outcome == DASH)[None]
    wrong = np.where(dash, 0.5, ~problem.right)
    distance = np.where(verdicts < 0, 0.5, 0.0).sum(axis=1)[:, None]
    for answer, off in enumerate(wrong):
        distance = distance + product((verdicts == answer).astype(np.float64), off)
    order = np.argsort(-problem.prior, kind="stable")
    return np.asarray(order[np.argmin(distance[:, order].round(6), axis=1)])
