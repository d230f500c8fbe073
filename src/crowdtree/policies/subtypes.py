"""Ask adaptively where classes are made of sub-types (see :mod:`crowdtree.learning.subtypes`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.core.calibration import INDEPENDENT, Calibration
from crowdtree.core.checking import check_call
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.likelihood import AnswerModel, likeliest, read_table
from crowdtree.core.loss import Loss
from crowdtree.core.problem import Problem
from crowdtree.policies.adaptive import AdaptivePolicy
from crowdtree.policies.base import FloatArray
from crowdtree.policies.criteria import Dense, entropy

NEGLIGIBLE = 1e-14
"""Probability of a class below which it is ignored for the next answer."""


class Mixed(Dense):
    """Tables with one column per sub-type, scored by what an answer tells about the class."""

    def __init__(
        self,
        answers: Sequence[FloatArray],
        members: Sequence[NDArray[np.intp]],
        loss: Loss | None,
    ) -> None:
        super().__init__(answers, None, loss)
        self.members = members

    @cached_property
    def _class_of(self) -> FloatArray:
        """One row per sub-type: 1 in the column of its class."""
        found = np.zeros((self.answers[0].shape[1], len(self.members)))
        for cls, members in enumerate(self.members):
            found[members, cls] = 1.0
        return found

    def by_class(self, weight: FloatArray) -> FloatArray:
        """Weight of each class: the sum over its sub-types."""
        return weight @ self._class_of

    def mean_entropy(self, posterior: FloatArray) -> FloatArray:
        """Expected noise in the answer given the class."""
        noise = posterior @ self.entropy.T
        for members, questions, chances, apart in self._differ:
            mine = posterior[:, members].sum(axis=1)
            rows = np.flatnonzero(mine > NEGLIGIBLE)
            if not len(rows):
                continue
            here = posterior[np.ix_(rows, members)]
            share = np.minimum(here @ chances / mine[rows, None], 1.0)
            parts = share.reshape(len(rows), -1, len(questions)).swapaxes(0, 1)
            noise[rows[:, None], questions] += mine[rows, None] * entropy(parts) - here @ apart
        return noise

    @cached_property
    def _differ(self) -> list[tuple[NDArray[Any], NDArray[Any], FloatArray, FloatArray]]:
        """Of each class with sub-types: these, the questions that they answer apart, and tables."""
        found, whole = [], np.stack(self.answers)
        for members in self.members:
            questions = np.flatnonzero(np.ptp(whole[:, :, members], axis=2).any(axis=0))
            if len(questions):
                chances = whole[:, questions][:, :, members].reshape(-1, len(members)).T
                apart = self.entropy[questions][:, members].T
                found.append((members, questions, chances.copy(), apart.copy()))
        return found


class SubtypePolicy(AdaptivePolicy):
    """Keep the posterior over sub-types and ask what is most informative about the class.

    Answers are independent given the sub-type, not given the class. A question that only tells
    sub-types of one class apart is worth nothing by itself. Where mistakes have different costs,
    the loss at stake counts as in :class:`AdaptivePolicy`.

    Parameters
    ----------
    problem
        Its classes are the labels.
    label
        Class of each sub-type, counted from 0.
    share
        How often each sub-type occurs; they add up to 1.
    table
        ``P(answer | sub-type)`` as ``table[answer, question, sub-type]``, 0 beyond the last answer
        of a question. Where all questions have two answers, ``table[1]`` will do.
    target_error, max_answers, price, repeats, width, endgame, calibration, undecided, target_loss
        As in :class:`AdaptivePolicy`. A target that cannot be reached is not refused: items are
        labelled when nothing more can be learnt.

    Examples
    --------
    Birds that fly and birds that swim, and fish: no single question separates bird from fish well.

    >>> problem = Problem(["bird", "fish"], [0.5, 0.5], ["swims", "wings"], [["-", 1], [1, 0]], 0.1)
    >>> policy = SubtypePolicy(problem, label=[0, 0, 1], share=[0.3, 0.2, 0.5],
    ...                        table=[[0.05, 0.95, 0.95], [0.95, 0.7, 0.2]],
    ...                        target_error=0.1)
    >>> policy.ask(policy.start())
    Ask(questions=(1,))
    >>> policy.posterior(policy.start()).round(3).tolist()
    [0.5, 0.5]
    """

    def __init__(
        self,
        problem: Problem,
        *,
        label: ArrayLike,
        share: ArrayLike,
        table: ArrayLike,
        target_error: float = 0.01,
        max_answers: int = 100,
        price: ArrayLike | None = None,
        repeats: int | None = None,
        width: int = 1,
        endgame: int | None = None,
        calibration: Calibration = INDEPENDENT,
        undecided: bool = True,
        target_loss: float | None = None,
    ) -> None:
        check_call(SubtypePolicy, locals())
        problem.require_one_source("SubtypePolicy")
        super().__init__(
            problem, target_error, max_answers, price=price, repeats=repeats, width=width,
            endgame=endgame, shared_difficulty=0.0, strict=False, calibration=calibration,
            undecided=undecided, target_loss=target_loss,
        )  # fmt: skip
        self.label, self.share = _checked_mixture(problem, label, share)
        given = read_table(problem, table, len(self.label))
        self.model = AnswerModel.of_table(problem, given, likeliest(given))

    @property
    def state_prior(self) -> FloatArray:
        """Prior of the sub-types."""
        return self.share

    def prior_of_states(self, prior: FloatArray) -> FloatArray:
        """Prior of the sub-types: that of their class, in their shares of it."""
        return np.asarray(self.share * (prior / self.problem.prior)[..., self.label])

    @cached_property
    def _members(self) -> list[NDArray[np.intp]]:
        return [np.flatnonzero(self.label == c) for c in range(self.problem.n_classes)]

    @cached_property
    def _class_answers(self) -> Sequence[FloatArray]:
        weight = [self.share[m] / self.share[m].sum() for m in self._members]
        return [
            np.stack([t[:, m] @ w for m, w in zip(self._members, weight, strict=True)], axis=1)
            for t in self.model.answers
        ]

    def by_class(self, log_posterior: FloatArray) -> FloatArray:
        """Logarithm of the probability of each class, along the last axis."""
        parts = [
            log_posterior[..., m[0]] if len(m) == 1
            else np.logaddexp.reduce(log_posterior[..., m], axis=-1)
            for m in self._members
        ]  # fmt: skip
        return np.stack(parts, axis=-1)

    @cached_property
    def _tables(self) -> Mixed:
        return Mixed(self.model.answers, self._members, self.problem.loss)

    def to_dict(self) -> dict[str, Any]:
        """Write the policy as plain JSON."""
        own = {"label": self.label.tolist(), "share": self.share.tolist()}
        data = super().to_dict() | own | {"table": self.model.telling.tolist()}
        fixed = ("criterion", "shared_difficulty", "strict")
        return {name: value for name, value in data.items() if name not in fixed} | {
            "policy": "subtypes"
        }

    def __repr__(self) -> str:
        return (
            f"SubtypePolicy({len(self.label)} sub-types, {self.target}, "
            f"max_answers={self.max_answers})"
        )


def _checked_mixture(
    problem: Problem, label: ArrayLike, share: ArrayLike
) -> tuple[NDArray[np.intp], FloatArray]:
    """Classes and shares of the sub-types: every class has one, the shares add up to 1."""
    classes, weight = np.asarray(label), np.asarray(share, dtype=np.float64)
    if classes.ndim != 1 or set(classes.tolist()) != set(range(problem.n_classes)):
        raise CrowdtreeError(
            f"label: expected the class of each sub-type, every class from 0 to "
            f"{problem.n_classes - 1} among them"
        )
    if weight.shape != classes.shape or np.any(weight <= 0) or abs(weight.sum() - 1) > 1e-6:
        raise CrowdtreeError(
            f"share: expected {len(classes)} numbers above 0 that add up to 1, got "
            f"{weight.size} with the sum {weight.sum():.4g}"
        )
    if abs(weight.sum() - 1) > 1e-12:  # else as given: what was written is read back exactly
        weight = weight / weight.sum()
    return classes.astype(np.intp), weight
