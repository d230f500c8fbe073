"""Calibrated policies that ask several sources, from answers that name the classes.

The calibration is cross-fitted: tables that did not use the class of some known items are replayed
on these, and the calibration is fitted to all left-out items together.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.errors import CrowdtreeError
from crowdtree.learning.source_fit import SourceFit
from crowdtree.learning.source_problem import source_problem
from crowdtree.learning.table_discount import ASSUMED
from crowdtree.policy import AdaptivePolicy
from crowdtree.policy.calibrating import fitted, table_key, warn_few

if TYPE_CHECKING:
    from crowdtree.learning.answers import Answers
    from crowdtree.learning.model import Learned

__all__ = ["recorded_answers", "source_policy"]


def recorded_answers(answers: Answers) -> NDArray[np.int8]:
    """Arrange answers as items x sources x 1 question x repeats, -1 where there is none.

    >>> from crowdtree.learning.answers import read_answers
    >>> said = {"task": [1, 1, 1, 2], "worker": ["ann", "ben", "m", "m"], "label": list("xyyx")}
    >>> source = {"ann": "people", "ben": "people", "m": "gpt-x"}
    >>> recorded_answers(read_answers(said, sources=source)).tolist()
    [[[[0, 1]], [[1, -1]]], [[[-1, -1]], [[0, -1]]]]
    """
    sources = answers.sources
    assert sources is not None
    names = len(sources.names)
    cell = answers.task.astype(np.int64) * names + sources.codes(answers.workers)[answers.worker]
    order = np.argsort(cell, kind="stable")
    first = np.searchsorted(cell[order], cell[order])
    repeat = np.empty(len(cell), np.int64)
    repeat[order] = np.arange(len(cell)) - first
    values = np.full((answers.n_tasks * names, int(repeat.max()) + 1), -1, np.int8)
    values[cell, repeat] = answers.label
    return values.reshape(answers.n_tasks, names, 1, -1)


def source_policy(
    learned: Learned, target_error: float, max_answers: int, strict: bool = False, **options: Any
) -> AdaptivePolicy:
    """Make the adaptive policy of the learned sources, calibrated on the known items."""
    fit, problem = learned.labelling, learned.problem
    if not isinstance(fit, SourceFit) or not problem.has_sources:
        raise CrowdtreeError(
            "policy: expected questions about the classes, or several sources of answers, got one "
            "question to one source"
        )
    if "calibration" in options:
        raise CrowdtreeError(
            "calibration: is fitted by this function; use AdaptivePolicy to pass one"
        )
    values = recorded_answers(learned.answers)
    options = {"repeats": values.shape[3], "max_answers": max_answers, **options}
    parts = []
    for part in fit.held_out:
        made = source_problem(learned.answers, part.tables, fit.causes, learned.fit.error)
        policy = AdaptivePolicy(made or problem, 0.0, strict=False, **options)
        states = policy.replay(values[part.items].reshape(len(part.items), -1, values.shape[3]))
        parts.append((states, learned.gold[part.items]))
    warn_few(sum(len(truth) for _, truth in parts), "policy")
    calibration = ASSUMED
    if parts:
        found = fitted(np.log(problem.prior / problem.prior.sum()), parts)
        calibration = replace(found, table=table_key(problem))
    policy = AdaptivePolicy(
        problem, target_error, calibration=calibration, strict=strict, **options
    )
    policy.warn_if_unreachable()
    return policy
