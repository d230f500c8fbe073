"""Calibrate stated errors and stopping on items of known class (docs/model.md, section 13)."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.core.calibration import FEW, INDEPENDENT, Calibration, fit_tail
from crowdtree.core.checking import check_call, check_share
from crowdtree.core.errors import CrowdtreeError, CrowdtreeWarning
from crowdtree.core.result_methods import HtmlShown, Saved
from crowdtree.core.text import plural
from crowdtree.policies.base import Answer, FloatArray, Policy
from crowdtree.policies.item_prior import check_priors, start_of
from crowdtree.policies.replay import Replayed, Sample, replay_steps

if TYPE_CHECKING:
    from crowdtree.core.problem import Problem
    from crowdtree.policies.adaptive_items import TargetItems

__all__ = [
    "Calibrated",
    "Guaranteed",
    "ReplayedStates",
    "check_calibration",
    "checked_weights",
    "fitted",
    "table_key",
    "warn_few",
    "with_tail",
]

THRESHOLDS = np.concatenate([np.geomspace(0.01, 1.0, 12), [1.3, 1.6, 2.0]])
"""Stopping thresholds that are tested, in multiples of the target, the most careful first."""
STARTS = (0, 5, 9)
"""Places among them where a sequence of tests starts; each has an equal part of the risk."""
_SAME_TABLE = 1e-4


def table_key(problem: Problem) -> str:
    """Identify the table of a problem: a digest of its names, and a number made of its cells.

    >>> import crowdtree as ct
    >>> problem = ct.example("table1")
    >>> table_key(problem) == table_key(problem.replace(worker_error=0.051))
    False
    """
    names = "\0".join((*problem.classes, "", *problem.questions))
    table = problem.channel[0, 1] if problem.is_yes_no else problem.channel
    sketch = float(np.cos(np.arange(table.size)) @ table.ravel() / np.sqrt(table.size))
    return f"{hashlib.sha256(names.encode()).hexdigest()[:12]}:{sketch:.6f}"


def check_calibration(problem: Problem, calibration: Calibration) -> None:
    """Refuse a calibration that was fitted to the answers of another crowd, by another table."""
    if calibration.table is None:
        return
    theirs, ours = calibration.table.split(":"), table_key(problem).split(":")
    if theirs[0] != ours[0] or abs(float(theirs[1]) - float(ours[1])) > _SAME_TABLE:
        raise CrowdtreeError(
            "calibration: it was fitted to another table, and the errors of one crowd say little "
            "about another; call calibrate(answers, truth) with items of this crowd whose class is "
            "known"
        )


class Calibrated(Policy[Any], Saved, HtmlShown):
    """What every policy can do with items of known class.

    ``calibration`` turns the plain posterior, which takes answers as independent, into the one
    that is stated. Questions are chosen by the plain one.
    """

    calibration: Calibration = INDEPENDENT

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Calibrated) or type(self) is not type(other):
            return NotImplemented
        same: bool = self.to_dict() == other.to_dict()
        return same and self.problem == other.problem

    def __hash__(self) -> int:
        return hash((type(self), self.problem.classes))

    def by_class(self, log_posterior: FloatArray) -> FloatArray:
        """Logarithm of the probability of each class, along the last axis."""
        return log_posterior

    @property
    def log_prior(self) -> FloatArray:
        """Logarithm of the probability of each class before any answer."""
        return np.asarray(np.log(self.problem.prior / self.problem.prior.sum()))

    def own_prior(self, prior: ArrayLike | None) -> FloatArray | None:
        """Check the own prior of an item, or rows of them; None where there is none."""
        return None if prior is None else check_priors(self.problem, prior)

    def log_prior_of(self, prior: FloatArray | None) -> FloatArray:
        """Logarithm of a prior over the classes, or of rows of them; of the problem's for None."""
        if prior is None:
            return self.log_prior
        return np.asarray(np.log(prior / prior.sum(axis=-1, keepdims=True)))

    def first_log_posterior(self, prior: FloatArray | None, items: int) -> FloatArray:
        """Log posterior of each of some items before any answer, up to a constant per item."""
        return np.log(np.tile(self.problem.prior, (items, 1)) if prior is None else prior)

    def stated(
        self, log_posterior: FloatArray, answers: Any, log_prior: FloatArray | None = None
    ) -> FloatArray:
        """Log posterior to state, from the plain one over the classes and the answers so far.

        `log_prior` is that of the items, one for all or one row each; the problem's by default.
        """
        start = self.log_prior if log_prior is None else log_prior
        return self.calibration.discounted(start, log_posterior, answers)

    def stated_of(self, state: Any) -> FloatArray:
        """Log posterior over the classes to state about an item."""
        plain = self.by_class(state.log_posterior)
        return self.stated(plain, state.answers, self.log_prior_of(state.prior))

    def posterior(self, state: Any) -> FloatArray:
        """Stated probability of each class given the answers so far."""
        return np.exp(self.stated_of(state))

    def replay(self, values: NDArray[np.int8], prior: FloatArray | None = None) -> Replayed:
        """States of recorded items (items x questions x repeats, -1: missing) after each answer.

        `prior` has a row per item, where items have their own.
        """
        return replay_steps(self, values, prior)

    def end(self, values: NDArray[np.int8], prior: FloatArray | None = None) -> Replayed:
        """State of each recorded item when it is labelled."""
        return self.replay(values, prior).last()

    @property
    def discounting(self) -> dict[str, Any]:
        """The calibration as a part of ``to_dict()``, where there is one."""
        independent = self.calibration == INDEPENDENT
        return {} if independent else {"calibration": self.calibration.to_dict()}

    def changed(self, **changes: Any) -> Self:
        """Make a copy with some of its options changed."""
        made: Self = type(self).from_dict(self.problem, self.to_dict() | changes)  # type: ignore[attr-defined]
        return made

    def with_loose_calibration(self) -> Self:
        """Make a copy whose calibration another table may use: a later one of the same crowd."""
        if self.calibration.table is None:
            return self
        return self.changed(calibration=replace(self.calibration, table=None).to_dict())

    def calibrate(
        self, answers: Any, truth: Any = None, *, weight: Sequence[float] | None = None
    ) -> Self:
        """Make a policy that states and stops by what these items show.

        The policy is replayed on the items to the end of its budget. How far its plain posterior
        is too sure after 1, 2, 3, ... answers, and (of a policy with a target) how many of the
        items that would stop at one are wrong, gives a :class:`Calibration`, shrunk to its prior
        where the items are few. Below 20 items a warning says so; it is not an error, because the
        prior is a better guess than independence. The calibration belongs to this table: a policy
        of another table refuses it.

        Parameters
        ----------
        answers
            Answers about items whose class is known and that were not used for the table: a
            matrix items x questions (x repeats) of 0, 1, and -1 or NaN where missing, a
            :class:`crowdtree.simulation.Recorded` (with the priors of its items, where they have
            their own), or rows of ``task, question, label``.
        truth
            Class of each item, by name or number; a mapping from task to class for rows.
        weight
            Weight of each item, where they were drawn with unequal chances, as those that an
            audit has checked (:attr:`crowdtree.Audit.weights`); by default all are alike.

        Examples
        --------
        >>> import crowdtree as ct
        >>> problem = ct.Problem(["a", "b"], None, list("pqrst"), [[0, 1]] * 5, 0.1)
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.integers(0, 2, 60)
        >>> wrong = rng.random((60, 5)) < 0.3  # people err more often than assumed
        >>> said = np.where(wrong, 1 - truth[:, None], truth[:, None])
        >>> policy = ct.AdaptivePolicy(problem, 0.1, repeats=1, strict=False)
        >>> bool(policy.calibrate(said, truth).calibration.power(5) < 0.7)
        True
        """
        check_call(Calibrated.calibrate, locals())
        sample = Sample.of(self.problem, answers, truth)
        if not len(sample.truth):
            raise CrowdtreeError("calibrate: expected items of known class, got none")
        warn_few(len(sample.truth), "calibrate")
        much = None if weight is None else checked_weights(weight, len(sample.truth))
        prior = self.own_prior(sample.prior)
        replayed, log_prior = self.replay(sample.values, prior), self.log_prior_of(prior)
        made = fitted(log_prior, [(replayed, sample.truth)], much, self.stops_at_target)
        return self.changed(calibration=replace(made, table=table_key(self.problem)).to_dict())

    def calibrate_on(
        self,
        items: Sequence[Sequence[Answer]],
        truth: NDArray[np.int64],
        weight: Sequence[float] | None = None,
        prior: ArrayLike | None = None,
    ) -> Calibration:
        """Fit a calibration to the answers that items of known class were really given.

        :meth:`calibrate` replays the policy, as if it could ask on; this takes the answers in
        their order, each with the skill of its worker. `prior` has a row per item, where items
        have their own.
        """
        own = self.own_prior(prior)
        much = None if weight is None else checked_weights(weight, len(truth))
        rows = [
            (place, s)
            for place, said in enumerate(items)
            for s in self._states(said, None if own is None else own[place])
        ]
        item = np.array([place for place, _ in rows], dtype=np.int64)
        answers = np.array([count for _, (count, _) in rows], dtype=np.int64)
        log_posterior = np.array([found for _, (_, found) in rows])
        replayed = Replayed(item, answers, log_posterior)
        states = ReplayedStates.of([(replayed, truth)], much)
        made = _three_numbers(self.log_prior_of(own), states)
        return replace(made, table=table_key(self.problem))

    def _states(
        self, said: Sequence[Answer], prior: FloatArray | None
    ) -> Iterator[tuple[int, FloatArray]]:
        """Answers so far and plain log posterior over the classes, at first and after each."""
        policy: Any = self
        state = start_of(policy, prior)
        yield 0, self.by_class(state.log_posterior)
        for count, answer in enumerate(said, start=1):
            state = policy.update(state, answer)
            yield count, self.by_class(state.log_posterior)


class Guaranteed(Calibrated):
    """What a policy with a target can do beyond stating its errors."""

    stops_at_target = True
    target_error: float
    target_loss: float | None

    def guarantee(
        self, answers: Any, truth: Any = None, target_error: float | None = None,
        confidence: float = 0.9,
    ) -> Self:  # fmt: skip
        """Make a policy that keeps the target with confidence, however good its stated errors.

        Finds a threshold for the stated error such that, with probability `confidence` over the
        drawing of these items, the error among new items that stop at it is at most
        `target_error`. Nothing is assumed but that new items come from where these came from.

        Thresholds are tested from the most careful one on by an exact binomial test, each only
        if the one before it passed (fixed-sequence testing), from several starting points that
        share the risk. The loosest one that passed becomes the policy's `target_error`.

        Parameters
        ----------
        answers, truth
            As in :meth:`calibrate`: items that were used neither for the table nor for the
            calibration.
        target_error
            Error to keep; the policy's own target by default.
        confidence
            Probability with which it is kept.

        References
        ----------
        Angelopoulos, Bates, Candès, Jordan and Lei (2021), Learn then Test.

        Examples
        --------
        >>> import crowdtree as ct
        >>> problem = ct.Problem(["a", "b"], None, list("pqrst"), [[0, 1]] * 5, 0.1)
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.integers(0, 2, 200)
        >>> wrong = rng.random((200, 5)) < 0.1
        >>> said = np.where(wrong, 1 - truth[:, None], truth[:, None])
        >>> policy = ct.AdaptivePolicy(problem, 0.1, repeats=1)
        >>> policy.guarantee(said, truth).target_error <= 0.2
        True
        """
        check_call(Guaranteed.guarantee, locals())
        if self.target_loss is not None:
            raise CrowdtreeError(
                "guarantee: is for a target_error, but this policy stops at a target_loss; make it "
                "without target_loss"
            )
        target = self.target_error if target_error is None else target_error
        check_share("target_error", target)
        if not 0.5 <= confidence < 1:
            raise CrowdtreeError(
                f"confidence: expected a probability from 0.5 to below 1, got {confidence}"
            )
        sample = Sample.of(self.problem, answers, truth)
        thresholds = np.minimum(target * THRESHOLDS, 0.999).tolist()
        prior = self.own_prior(sample.prior)
        stops = self._at_target(target).labelled(sample.values, thresholds, prior)
        wrong = stops.reached & (stops.label != sample.truth[:, None])
        tried = list(
            zip(stops.reached.sum(axis=0).tolist(), wrong.sum(axis=0).tolist(), strict=True)
        )
        best = _loosest(tried, target, (1 - confidence) / len(STARTS))
        if best < 0:
            raise CrowdtreeError(_refusal(tried, target, confidence, len(sample.truth)))
        return self._at_target(thresholds[best])

    def _at_target(self, target_error: float) -> Self:
        """The same policy with another target, which need not be within reach."""
        options = {"strict": False} if "strict" in self.to_dict() else {}
        return self.changed(target_error=target_error, **options)

    def labelled(
        self, values: NDArray[np.int8], targets: Sequence[float], prior: FloatArray | None = None
    ) -> TargetItems:
        """Label of each recorded item at each target, and whether it was reached."""
        raise NotImplementedError


def _loosest(tried: list[tuple[int, int]], target: float, risk: float) -> int:
    """Place of the last threshold that a sequence of passed tests reaches, -1 for none."""
    from scipy.stats import binom

    best = -1
    for start in STARTS:
        for place in range(start, len(tried)):
            count, wrong = tried[place]
            if not count or binom.cdf(wrong, count, target) > risk:
                break
            best = max(best, place)
    return best


def _refusal(tried: list[tuple[int, int]], target: float, confidence: float, items: int) -> str:
    """Why the guarantee is refused, and how many items would do, in one line."""
    from scipy.stats import binom

    risk = (1 - confidence) / len(STARTS)
    needed = []
    for count, wrong in tried:
        rate = (wrong + target / 2) / (count + 1)  # as if one more item were half as wrong
        for size in np.unique(np.geomspace(1, 1e6, 400).astype(np.int64)).tolist():
            if count and rate < target and binom.cdf(np.ceil(rate * size), size, target) <= risk:
                needed.append(max(items + 1, round(size * items / count)))
                break
    what = (
        f"guarantee: {items} items do not show an error of at most {target:g} with confidence "
        f"{confidence:g}"
    )
    if needed:
        return f"{what}; give about {min(needed):,} items, or raise target_error"
    count, wrong = max(tried, key=lambda t: (t[0] > 0, -t[1] / max(1, t[0])))
    seen = f"{wrong} of {count} items that stop are wrong" if count else "no item stops"
    return f"{what}: even at the most careful threshold {seen}; raise target_error or add questions"


def warn_few(items: int, what: str) -> None:
    """Warn where a calibration is mostly its prior."""
    if items < FEW:
        warnings.warn(
            f"{what}: {plural(items, 'item')} of known class; below {FEW} the stated errors rest "
            "mostly on the prior, which comes from other crowds",
            CrowdtreeWarning,
            stacklevel=3,
        )


class ReplayedStates(NamedTuple):
    """Stacked states of replays, one row per state, each with a value of its item.

    `item` numbers the items of all replays in their order.
    """

    log_posterior: FloatArray
    answers: NDArray[np.int64]
    weight: FloatArray
    of_item: NDArray[Any]
    item: NDArray[np.int64]

    @classmethod
    def of(
        cls, parts: Sequence[tuple[Replayed, NDArray[Any]]], item_weight: FloatArray | None = None
    ) -> ReplayedStates:
        """Stack replays, each with one value per item; `item_weight` is that of all their items."""
        first = np.cumsum([0, *(len(value) for _, value in parts)])
        rows = [
            (r.log_posterior, r.answers, r.weight, value[r.item], r.item + start)
            for (r, value), start in zip(parts, first, strict=False)
        ]
        made = cls(*(np.concatenate(column) for column in zip(*rows, strict=True)))
        if item_weight is None:
            return made
        return made._replace(weight=made.weight * item_weight[made.item])

    @classmethod
    def last(
        cls, parts: Sequence[tuple[Replayed, NDArray[Any]]], item_weight: FloatArray | None = None
    ) -> ReplayedStates:
        """Stack the last state of every item."""
        return cls.of([(replayed.last(), value) for replayed, value in parts], item_weight)


def checked_weights(weight: Sequence[float], items: int) -> FloatArray:
    """Weights of items that add up to the number of equally likely items that say as much.

    >>> checked_weights([1, 1, 1, 1], 4).tolist(), float(checked_weights([3, 1], 2).sum().round(6))
    ([1.0, 1.0, 1.0, 1.0], 1.6)
    """
    given = np.asarray(weight, dtype=np.float64)
    if given.shape != (items,) or not (np.isfinite(given) & (given >= 0)).all() or not given.any():
        raise CrowdtreeError(f"weight: expected {items} numbers of 0 or more, one per item")
    return np.asarray(given * given.sum() / (given @ given))


def fitted(
    log_prior: FloatArray,
    parts: list[tuple[Replayed, NDArray[Any]]],
    item_weight: FloatArray | None = None,
    tail: bool = True,
) -> Calibration:
    """Fit a calibration to replays with the classes of their items, each weighing 1 by default.

    `log_prior` is one for all items, or has a row for each item of all replays. The `tail` is for
    policies that stop at a target.
    """
    every, last = ReplayedStates.of(parts, item_weight), ReplayedStates.last(parts, item_weight)
    made = _three_numbers(log_prior, every)
    if tail:
        made = with_tail(made, log_prior, parts, item_weight)
    start = _of_items(log_prior, last.item)
    return made.with_reached(start, last.log_posterior, last.answers, last.of_item, last.weight)


def _of_items(log_prior: FloatArray, item: NDArray[np.int64]) -> FloatArray:
    """Log prior of each state: the one for all items, or that of its item."""
    return log_prior if log_prior.ndim == 1 else log_prior[item]


def _three_numbers(log_prior: FloatArray, states: ReplayedStates) -> Calibration:
    return Calibration.fit(
        _of_items(log_prior, states.item),
        states.log_posterior,
        states.answers,
        states.of_item,
        states.weight,
    )


def with_tail(
    calibration: Calibration,
    log_prior: FloatArray,
    parts: Sequence[tuple[Replayed, NDArray[Any]]],
    item_weight: FloatArray | None = None,
    never_below: bool = False,
) -> Calibration:
    """Fit the tail to the states in which the replayed items would stop."""
    first = np.cumsum([0, *(len(truth) for _, truth in parts)])
    error, wrong, item = [], [], []
    for (replayed, truth), start in zip(parts, first.tolist(), strict=False):
        order = np.lexsort((replayed.answers, replayed.item))
        at = replayed.item[order]
        stated = replace(calibration, tail=()).discounted(
            _of_items(log_prior, at + start),
            replayed.log_posterior[order],
            replayed.answers[order],
        )
        error.append(-np.expm1(stated.max(axis=1)))
        wrong.append(stated.argmax(axis=1) != truth[at])
        item.append(at + start)
    rows = np.concatenate(error), np.concatenate(wrong), np.concatenate(item)
    return replace(calibration, tail=fit_tail(*rows, item_weight, never_below))
