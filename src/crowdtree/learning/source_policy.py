"""Calibrated policies that ask several sources.

Answers are taken as independent, from tables flattened by how much each group of sources counts.
The calibration discounts all of them together; it is fitted to known items that the tables did not
use (docs/model.md, section 9.5).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.errors import CrowdtreeError
from crowdtree.learning.source_fit import SourceFit
from crowdtree.learning.source_problem import CommonCauses, source_problem
from crowdtree.learning.source_tables import Tables
from crowdtree.learning.table_discount import ASSUMED
from crowdtree.policies import AdaptivePolicy
from crowdtree.policies.calibrating import fitted, table_key, warn_few

if TYPE_CHECKING:
    from crowdtree.core.problem import Problem
    from crowdtree.learning.answers import Answers
    from crowdtree.learning.model import Learned


def recorded_answers(answers: Answers) -> NDArray[np.int8]:
    """Arrange answers as items x sources x questions x repeats, -1 where there is none.

    >>> from crowdtree.learning.answers import read_answers
    >>> said = {"task": [1, 1, 1, 2], "worker": ["ann", "ben", "m", "m"], "label": list("xyyx")}
    >>> source = {"ann": "people", "ben": "people", "m": "gpt-x"}
    >>> recorded_answers(read_answers(said, sources=source)).tolist()
    [[[[0, 1]], [[1, -1]]], [[[-1, -1]], [[0, -1]]]]
    """
    sources = answers.sources
    assert sources is not None
    shape = answers.n_tasks, len(sources.names), len(answers.questions)
    source = sources.codes(answers.workers)[answers.worker]
    cell = np.ravel_multi_index((answers.task, source, answers.question_column()), shape)
    order = np.argsort(cell, kind="stable")
    first = np.searchsorted(cell[order], cell[order])
    repeat = np.empty(len(cell), np.int64)
    repeat[order] = np.arange(len(cell)) - first
    values = np.full((np.prod(shape), int(repeat.max()) + 1), -1, np.int8)
    values[cell, repeat] = answers.label
    return values.reshape(*shape, -1)


def source_policy(
    learned: Learned, target_error: float, max_answers: int, strict: bool = False, **options: Any
) -> AdaptivePolicy:
    """Make the adaptive policy of the learned sources, calibrated on the known items.

    The tables of ``policy.problem`` say how much answers count; those of ``learned.problem``, how
    often they are right.
    """
    fit = learned.labelling
    if not isinstance(fit, SourceFit) or not learned.problem.has_sources:
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
    parts, log_prior = [], list[FloatArray]()
    for part in fit.held_out:
        items = part.left_out.items
        policy = AdaptivePolicy(_asked_by(learned, fit, part.tables), 0.0, strict=False, **options)
        states = policy.replay(values[items].reshape(len(items), -1, values.shape[3]))
        parts.append((states, learned.gold[items]))
        log_prior += [np.log(policy.problem.prior)] * len(items)
    warn_few(sum(len(truth) for _, truth in parts), "policy")
    problem, calibration = _asked_by(learned, fit, fit.tables), ASSUMED
    if parts:
        calibration = fitted(np.array(log_prior), parts)
        calibration = replace(calibration, table=table_key(problem))
    policy = AdaptivePolicy(
        problem, target_error, calibration=calibration, strict=strict, **options
    )
    policy.warn_if_unreachable()
    return policy


def _asked_by(learned: Learned, fit: SourceFit, tables: Tables) -> Problem:
    """Make the problem of independent sources whose answers tell as much as they count."""
    answers = learned.answers
    assert answers.sources is not None
    every = tables.evidence(answers, fit.row, np.arange(answers.n_tasks))
    source = answers.sources.codes(answers.workers)[answers.worker]
    shape = tables.sources, len(answers.questions)
    cell = np.ravel_multi_index((source, answers.question_column()), shape)
    count, total = (
        np.bincount(cell, w, np.prod(shape)) for w in (None, every.weights(fit.dependence))
    )
    weight = (total / np.maximum(count, 1)).reshape(shape)
    exists = tables.of_sources > 0
    chance = tables.of_sources ** (weight / weight.max())[:, None, :, None] * exists
    flat = np.concatenate(
        [tables.chance[: -len(chance)], chance / chance.sum(axis=1, keepdims=True)]
    )
    independent = CommonCauses(0.0, 0.0)
    flattened = replace(tables, chance=flat)
    problem = source_problem(answers, fit.base, flattened, independent, learned.fit.error)
    assert problem is not None  # the learned problem has sources, too
    return problem
