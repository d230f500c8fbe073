"""State and stop by what items of known class show (MODEL section 13)."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from crowdtree.calibration import FEW, INDEPENDENT, Calibration
from crowdtree.errors import CrowdtreeError, CrowdtreeWarning
from crowdtree.policy.base import FloatArray
from crowdtree.policy.replay import Replayed, Sample, replay_steps

if TYPE_CHECKING:
    from crowdtree.problem import Problem

__all__ = ["Calibrated", "fitted", "warn_few"]

THRESHOLDS = np.concatenate([np.geomspace(0.01, 1.0, 12), [1.3, 1.6, 2.0]])
"""Stopping thresholds that are tested, in multiples of the target, the most careful first."""
STARTS = (0, 5, 9)
"""Places among them where a sequence of tests starts; each has an equal part of the risk."""


class Calibrated:
    """What every policy can do with items of known class.

    ``calibration`` turns the plain posterior, which takes answers as independent, into the one
    that is stated. Questions are chosen by the plain one.
    """

    problem: Problem
    calibration: Calibration

    @property
    def log_prior(self) -> FloatArray:
        """Logarithm of the probability of each class before any answer."""
        return np.log(self.problem.prior / self.problem.prior.sum())

    def stated(self, log_posterior: FloatArray, answers: Any) -> FloatArray:
        """Log posterior to state, from the plain one over the classes and the answers so far."""
        return self.calibration.discounted(self.log_prior, log_posterior, answers)

    def replay(self, values: NDArray[np.int8]) -> Replayed:
        """States of recorded items (items x questions x repeats, -1: missing) on their way."""
        return replay_steps(self, values)

    @property
    def discounting(self) -> dict[str, Any]:
        """The calibration as a part of ``to_dict()``, where there is one."""
        independent = self.calibration == INDEPENDENT
        return {} if independent else {"calibration": self.calibration.to_dict()}

    def changed(self, **changes: Any) -> Self:
        """Make a copy with some of its options changed."""
        made: Self = type(self).from_dict(self.problem, self.to_dict() | changes)  # type: ignore[attr-defined]
        return made

    def calibrate(self, answers: Any, truth: Any = None) -> Self:
        """Make a policy that states and stops by what these items show.

        The policy is replayed on the items to the end of its budget. How far its plain posterior
        is too sure after 1, 2, 3, ... answers gives two numbers (:class:`Calibration`), shrunk to
        their prior where the items are few. Below 20 items a warning says so; it is not an
        error, because the prior is a better guess than independence.

        Parameters
        ----------
        answers
            Answers about items whose class is known and that were not used for the table: a
            matrix items x questions (x repeats) of 0, 1, and -1 or NaN where missing, a
            :class:`crowdtree.simulate.Recorded`, or rows of ``task, question, label``.
        truth
            Class of each item, by name or number; a mapping from task to class for rows.

        Examples
        --------
        >>> import crowdtree as ct
        >>> problem = ct.example("table1").replace(worker_error=0.1)
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.integers(0, 5, 60)
        >>> wrong = rng.random((60, 5)) < 0.3  # people err more often than assumed
        >>> said = np.where(wrong, 1 - problem.outcome[:, truth].T, problem.outcome[:, truth].T)
        >>> policy = ct.AdaptivePolicy(problem, 0.1, repeats=1, strict=False)
        >>> policy.calibrate(said, truth).calibration.power(5) < 0.7
        np.True_
        """
        sample = Sample.of(self.problem, answers, truth)
        warn_few(len(sample.truth), "calibrate")
        return self.changed(
            calibration=fitted(self.log_prior, [(self.replay(sample.values), sample.truth)]).to_dict()
        )


def warn_few(items: int, what: str) -> None:
    """Warn where a calibration is mostly its prior."""
    if items < FEW:
        warnings.warn(
            f"{what}: {items} items of known class; below {FEW} the stated errors rest mostly on "
            "what is usual elsewhere",
            CrowdtreeWarning,
            stacklevel=3,
        )


def fitted(log_prior: FloatArray, parts: list[tuple[Replayed, NDArray[Any]]]) -> Calibration:
    """Fit a calibration to replays, each with the classes of its items, every item weighing 1."""
    if not sum(len(truth) for _, truth in parts):
        raise CrowdtreeError("calibrate: expected items of known class, got none")
    column = [np.concatenate(c) for c in zip(*(replayed for replayed, _ in parts), strict=True)]
    truth = np.concatenate([truth[replayed.item] for replayed, truth in parts])
    weight = np.concatenate([replayed.weight for replayed, _ in parts])
    made = Calibration.fit(log_prior, column[2], column[1], truth, weight)
    last = [replayed.last() for replayed, _ in parts]
    return made.with_reached(
        log_prior,
        np.concatenate([part.log_posterior for part in last]),
        np.concatenate([part.answers for part in last]),
    )
