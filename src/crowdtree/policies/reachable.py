"""Targets that an adaptive policy cannot reach: found before any answer is paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.bounds import fano_floor
from crowdtree.core.errors import CrowdtreeError, listing
from crowdtree.core.likelihood import UNSURE
from crowdtree.core.stats import mean_half_width
from crowdtree.policies.base import FloatArray, decide, normalised

if TYPE_CHECKING:
    from crowdtree.policies.adaptive import AdaptivePolicy

__all__ = ["reachable_error", "refuse_unreachable", "refuse_unreachable_loss", "short_of_target"]


def short_of_target(policy: AdaptivePolicy) -> str | None:
    """Say what the items of the calibration reach, if that is not the target."""
    if policy.target_loss is not None:
        return None
    reached, doubt = policy.calibration.reached or (0.0, 0.0)
    if reached - doubt <= policy.target_error:
        return None
    return (
        f"target_error: {policy.target_error:g} is out of reach on average: the "
        f"{policy.calibration.items} items of the calibration are left with an error of "
        f"{reached:.3g} (± {doubt:.1g}) after all their answers"
    )


def refuse_unreachable(policy: AdaptivePolicy) -> None:
    """Raise if the target is out of reach, and say what can be reached."""
    if policy.calibration.reached is not None:
        problem = short_of_target(policy)
        if problem is not None:
            raise CrowdtreeError(
                f"{problem}; raise target_error, or pass strict=False to label the items that "
                "get there"
            )
        return
    worst, overall, names = _inseparable(policy)
    if worst > policy.target_error * (1 + 1e-9):
        raise CrowdtreeError(
            f"target_error: {policy.target_error:g} is out of reach: no question tells "
            f"{{{listing(names)}}} apart, where the label stays wrong with {worst:.4g} "
            f"(over all items {overall:.4g} at best); add a question, raise target_error "
            "to that, or pass strict=False"
        )
    _refuse_too_few_answers(policy)
    if policy.most_repeats is None:
        return
    reached, doubt = reachable_error(policy)
    if reached - doubt > policy.target_error:
        raise CrowdtreeError(
            f"target_error: {policy.target_error:g} is out of reach with {policy.most_repeats} "
            f"answers per question: all of them together leave an error of about {reached:.3g} "
            f"(± {doubt:.1g}); raise repeats or target_error, or pass strict=False"
        )


def refuse_unreachable_loss(policy: AdaptivePolicy) -> None:
    """Raise if classes that no question tells apart, or too few answers, leave more loss."""
    loss, target = policy.problem.loss, policy.target_loss
    if target is None or (loss is not None and loss.refer is not None):
        return  # what does not reach the target is referred
    ways = "raise target_loss, or pass strict=False"
    group = _alike(policy)
    weight = np.where(group == np.unique(group)[:, None], policy.problem.prior, 0.0)
    risk = decide(np.log(np.maximum(weight, 1e-300)), loss).risk / weight.sum(axis=1)
    worst = int(np.argmax(risk))
    if risk[worst] > target * (1 + 1e-9) and np.sum(group == worst) > 1:
        names = [policy.problem.classes[c] for c in np.flatnonzero(group == worst)]
        raise CrowdtreeError(
            f"target_loss: {target:g} is out of reach: no question tells {{{listing(names)}}} "
            f"apart, which leaves an expected loss of {risk[worst]:.4g}; add a question, {ways}"
        )
    if policy.most_repeats is None:
        return
    found = decide(_after_all_answers(policy, 1000), loss).risk
    reached, doubt = float(found.mean()), mean_half_width(found)
    if reached - doubt > target:
        raise CrowdtreeError(
            f"target_loss: {target:g} is out of reach with {policy.most_repeats} answers per "
            f"question: all of them together leave an expected loss of about {reached:.3g} "
            f"(± {doubt:.1g}); raise repeats, {ways}"
        )


def _refuse_too_few_answers(policy: AdaptivePolicy) -> None:
    """Raise if information alone forbids the target within `max_answers` (Fano)."""
    if policy.model.depends:  # the floor is for independent answers
        return

    def needed(error: float) -> float:
        return fano_floor(policy.problem, error, answers=policy.model.answers)

    if needed(policy.target_error) <= policy.max_answers:
        return
    low, high = policy.target_error, 1 - 1 / policy.problem.n_classes
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if needed(middle) <= policy.max_answers else (middle, high)
    raise CrowdtreeError(
        f"target_error: {policy.target_error:g} needs at least {needed(policy.target_error):.3g} "
        f"answers per item, but max_answers is {policy.max_answers}, which leaves an error of "
        f"{low:.2g} or more; raise max_answers or target_error, or pass strict=False"
    )


def reachable_error(policy: AdaptivePolicy, items: int = 1000) -> tuple[float, float]:
    """Estimate the error after every question was answered as often as it may be.

    With a calibration: the error of its items after all their answers, counted (the middle of
    its 95 % interval, and half the width). Otherwise no
    policy with this limit of repeats has a smaller error if answers are independent given the
    class; an estimate from simulated items (the same ones each time).
    """
    if policy.calibration.reached is not None:
        return policy.calibration.reached
    if policy.most_repeats is None:
        raise CrowdtreeError("reachable_error: expected a policy with a limit of repeats")
    error = 1 - np.exp(_after_all_answers(policy, items)).max(axis=1)
    return float(error.mean()), mean_half_width(error)


def _after_all_answers(policy: AdaptivePolicy, items: int) -> FloatArray:
    """Log posterior of simulated items after every question was answered `repeats` times."""
    assert policy.limits is not None
    rng = np.random.default_rng(0)
    cls = rng.choice(len(policy.state_prior), size=items, p=policy.state_prior)
    log_joint = np.tile(np.log(policy.state_prior), (items, 1))
    model, rows = policy.model, np.arange(items)
    counts = np.zeros((model.slots, items, policy.problem.n_options), dtype=np.int16)
    for option in np.repeat(np.arange(len(policy.limits)), policy.limits):
        asked = np.full(items, option)
        before = model.before(counts, rows, asked)
        value = model.sample(asked, cls, before, rng.random(items))
        log_joint += model.evidence(asked, value, None, before)
        counts[np.where(value == UNSURE, -1, value), rows, option] += 1
    return policy.by_class(normalised(log_joint))


def _inseparable(policy: AdaptivePolicy) -> tuple[float, float, list[str]]:
    """Worst group of classes that answer alike: its error, the error over all, its names."""
    prior, group = policy.problem.prior, _alike(policy)
    total = np.bincount(group, weights=prior)
    top = np.zeros_like(total)
    np.maximum.at(top, group, prior)
    error = 1 - top / total
    worst = int(np.argmax(error))
    names = [policy.problem.classes[c] for c in np.flatnonzero(group == worst)]
    alone = np.bincount(group)[worst] == 1
    return (0.0 if alone else float(error[worst])), float((total - top).sum()), names


def _alike(policy: AdaptivePolicy) -> NDArray[np.intp]:
    """Number of each class's group of classes that answer alike."""
    tables = np.concatenate(policy.model.answers[1:])
    _, group = np.unique(tables.T.round(12), axis=0, return_inverse=True)
    return np.ravel(group)
