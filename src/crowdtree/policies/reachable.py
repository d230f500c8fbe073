"""Targets that an adaptive policy cannot reach: found before any answer is paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.bounds import fano_floor
from crowdtree.core.errors import CrowdtreeError, listing
from crowdtree.core.likelihood import UNSURE
from crowdtree.core.loss import Loss
from crowdtree.core.stats import mean_half_width
from crowdtree.policies.base import FloatArray, decide, normalised

if TYPE_CHECKING:
    from crowdtree.policies.adaptive import AdaptivePolicy

__all__ = ["after_all_repeats", "refuse_unreachable", "short_of_target"]


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
    by_loss = policy.target_loss is not None
    if by_loss and policy.problem.loss is not None and policy.problem.loss.refer is not None:
        return  # what does not reach the target is referred
    if policy.calibration.reached is not None and not by_loss:
        problem = short_of_target(policy)
        if problem is not None:
            raise CrowdtreeError(
                f"{problem}; raise target_error, or pass strict=False to label the items that "
                "get there"
            )
        return
    name, left = ("target_loss", "expected loss") if by_loss else ("target_error", "error")
    target = policy.target_error if policy.target_loss is None else policy.target_loss
    loss = policy.problem.loss if by_loss else None
    worst, overall, groups = _inseparable(policy, loss)
    if worst > target * (1 + 1e-9):
        most = "up to " if "}, {" in groups else ""
        raise CrowdtreeError(
            f"{name}: {target:g} is out of reach: no question tells {groups} apart, "
            f"which leaves them an {left} of {most}{worst:.4g} (over all items {overall:.4g} at "
            f"best); add a question, raise {name} to {worst:.4g}, or pass strict=False"
        )
    if not by_loss:
        _refuse_too_few_answers(policy)
    if policy.most_repeats is None:
        return
    reached, doubt = after_all_repeats(policy, loss)
    if reached - doubt > target:
        raise CrowdtreeError(
            f"{name}: {target:g} is out of reach with {policy.most_repeats} answers per question: "
            f"all of them together leave an {left} of about {reached:.3g} (± {doubt:.1g}); raise "
            f"repeats or {name}, or pass strict=False"
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


def after_all_repeats(
    policy: AdaptivePolicy, loss: Loss | None = None, items: int = 1000
) -> tuple[float, float]:
    """Risk after every question was asked as often as it may, ± half of its interval."""
    risk = decide(_after_all_answers(policy, items), loss).risk
    return float(risk.mean()), mean_half_width(risk)


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


def _inseparable(policy: AdaptivePolicy, loss: Loss | None) -> tuple[float, float, str]:
    """Groups of classes that answer alike: error (or loss) of the worst, over all, and names."""
    group = _alike(policy)
    if group.max() + 1 == len(group):
        return 0.0, 0.0, ""
    weight = np.where(group == np.unique(group)[:, None], policy.problem.prior, 0.0)
    risk = decide(np.log(np.maximum(weight, 1e-300)), loss).risk
    each = np.where((weight > 0).sum(axis=1) > 1, risk / weight.sum(axis=1), 0.0)
    groups = [
        "{" + listing(policy.problem.classes[c] for c in np.flatnonzero(group == place)) + "}"
        for place in np.argsort(-each, kind="stable").tolist()
        if each[place] > 0
    ]
    return float(each.max()), float(risk.sum()), listing(groups, most=4)


def _alike(policy: AdaptivePolicy) -> NDArray[np.intp]:
    """Number of each class's group of classes that answer alike."""
    tables = np.concatenate(policy.model.answers[1:])
    _, group = np.unique(tables.T.round(12), axis=0, return_inverse=True)
    return np.ravel(group)
