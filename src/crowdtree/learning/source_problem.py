"""What was learned about several sources of answers, as a problem that policies ask by.

One question has the classes as answers, and every source a table. Errors hang together by the model
of :mod:`crowdtree.core.common_causes`, whose two numbers tell left-out known items best.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, logsumexp

from crowdtree.core.arrays import BoolArray, FloatArray
from crowdtree.core.common_causes import Causes
from crowdtree.core.errors import CrowdtreeWarning
from crowdtree.core.outcomes import MAX_ANSWERS
from crowdtree.core.problem import Problem
from crowdtree.core.sources import Source, scaled_error

if TYPE_CHECKING:
    from crowdtree.learning.answers import Answers
    from crowdtree.learning.model import Learned
    from crowdtree.learning.source_fit import Tables

_USUAL = 0.3, 0.6
"""Correlation within a source, and share of common causes, before any item is known."""
_SPREAD = 1.0  # standard deviation of either, in logits


def with_upper_errors(learned: Learned, level: float) -> Problem:
    """Make the problem with the error of every source at the upper end of its interval."""
    from scipy.stats import beta

    problem, rates = learned.problem, learned.fit.source_rates
    assert rates is not None
    factor = beta.ppf(level, *rates) / rates.mean
    sources = []
    for source, channel, times in zip(problem.sources, problem.channel, factor, strict=True):
        table = scaled_error(channel, problem.right, max(float(times), 1.0))[:, 0]
        sources.append(replace(source, table={problem.questions[0]: table}))
    with warnings.catch_warnings(action="ignore", category=CrowdtreeWarning):
        return problem.replace(sources=sources)


class CommonCauses(NamedTuple):
    """How far answers hang together: within sources of several workers, and between sources."""

    within: float = _USUAL[0]
    shared: float = _USUAL[1]


class KnownAnswers(NamedTuple):
    """Answers about known items, with tables that did not use their class.

    `counts` is (source, answer, item), `table` (source, answer, class), `several` whether a source
    has several workers.
    """

    counts: NDArray[np.int64]
    table: FloatArray
    log_share: FloatArray
    several: BoolArray
    truth: NDArray[Any]

    def loss(self, causes: CommonCauses) -> float:
        """Log loss of the classes."""
        wrong = ~np.eye(self.table.shape[-1], dtype=bool)
        model = Causes.of(self.table, wrong, causes.shared)
        joint = model.joint(self.counts, np.where(self.several, causes.within, 0.0))
        score = self.log_share + logsumexp(joint, axis=0)
        score -= logsumexp(score, axis=1, keepdims=True)
        return -float(score[np.arange(len(self.truth)), self.truth].sum())


def fit_causes(parts: list[KnownAnswers]) -> CommonCauses:
    """Find how far answers hang together by the log loss of known items."""
    from scipy.optimize import minimize

    usual = logit(np.array(_USUAL))

    def loss(point: FloatArray) -> float:
        causes = CommonCauses(*expit(point).tolist())
        held = ((point - usual) ** 2).sum() / (2 * _SPREAD**2)
        return float(held + sum(part.loss(causes) for part in parts))

    corners = np.vstack([usual, usual - np.eye(2)])
    options: Any = {"initial_simplex": corners, "xatol": 0.05, "fatol": 0.05, "maxiter": 60}
    best = minimize(loss, usual, method="Nelder-Mead", options=options).x
    return CommonCauses(*expit(best).tolist())


def count_answers(answers: Answers, source: NDArray[np.int32], sources: int) -> NDArray[np.int64]:
    """Answers of each source about each item, (source, answer, item)."""
    labels, items = len(answers.labels), answers.n_tasks
    cell = (source[answers.worker].astype(np.int64) * labels + answers.label) * items
    count = np.bincount(cell + answers.task, minlength=sources * labels * items)
    return count.reshape(sources, labels, items)


def source_problem(
    answers: Answers, tables: Tables, causes: CommonCauses, error: FloatArray
) -> Problem | None:
    """Write tables and dependence as a problem; None where a question cannot have the classes.

    `error` is that of all answers to items of each class.
    """
    sources, classes = answers.sources, answers.labels
    assert sources is not None
    names = tuple(name.replace("|", "/") for name in classes)
    if len(names) > MAX_ANSWERS or len({name.casefold() for name in names}) < len(names):
        return None
    question = answers.questions[0]
    source = sources.codes(answers.workers)
    workers = np.bincount(source, minlength=len(sources.names)).tolist()
    learned = [
        Source(
            name.replace("|", "/"),
            kind,
            price=price,
            table={question: table},
            dependence=causes.within if several > 1 else 0.0,
            repeatable=several > 1,
        )
        for name, kind, price, table, several in zip(
            sources.names, sources.kinds, sources.prices, tables.of_sources, workers, strict=True
        )
    ]
    with warnings.catch_warnings(action="ignore", category=CrowdtreeWarning):
        return Problem(
            classes,
            tables.share,
            [question],
            [list(names)],
            error,
            answers=[list(names)],
            normalise=True,
            sources=learned,
            source_dependence=causes.shared,
        )
