"""What was learned about several sources of answers, as a problem that policies ask by.

Every source has a table. Errors hang together by the model of
:mod:`crowdtree.core.common_causes`, whose two numbers tell left-out known items best.
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
    from crowdtree.learning.source_tables import Tables

_USUAL = 0.3, 0.6
"""Correlation within a source, and share of common causes, before any item is known."""
_SPREAD = 1.0  # standard deviation of either, in logits


def with_upper_errors(learned: Learned, level: float) -> Problem:
    """Make the problem with the error of every source at the upper end of its interval."""
    from scipy.stats import beta

    problem, rates = learned.problem, learned.fit.source_rates
    assert rates is not None
    factor = np.maximum(beta.ppf(level, *rates) / rates.mean, 1.0).tolist()
    table = [
        scaled_error(channel, problem.right, times)
        for channel, times in zip(problem.channel, factor, strict=False)
    ]
    return _with_tables(problem, problem.sources[: len(table)], np.array(table))


def _with_tables(problem: Problem, sources: Any, tables: FloatArray, **changes: Any) -> Problem:
    """Give sources their tables (source, answer, question, class); others of the problem stay."""
    learned = [
        replace(
            source,
            worker_error=None,
            error_factor=1.0,
            confusion=None,
            table={
                name: table[: len(answers), q]
                for q, (name, answers) in enumerate(
                    zip(problem.questions, problem.answers, strict=True)
                )
            },
        )
        for source, table in zip(sources, tables, strict=True)
    ]
    names = {source.name for source in learned}
    others = [source for source in problem.all_sources if source.name not in names]
    if not problem.has_sources:  # what stood for everybody is what was learned about
        others = [source for source in others if source.refers]
    with warnings.catch_warnings(action="ignore", category=CrowdtreeWarning):
        return problem.replace(sources=[*learned, *others], **changes)


class CommonCauses(NamedTuple):
    """How far answers hang together: within sources of several workers, and between sources."""

    within: float = _USUAL[0]
    shared: float = _USUAL[1]


class KnownAnswers(NamedTuple):
    """Answers about known items, with tables that did not use their class.

    `counts` is (question, source, answer, item), `table` (source, answer, question, class), `wrong`
    (answer, question, class) whether an answer may have a cause, `several` whether a source has
    several workers.
    """

    counts: NDArray[np.int64]
    table: FloatArray
    wrong: BoolArray
    log_share: FloatArray
    several: BoolArray
    truth: NDArray[Any]

    def loss(self, causes: CommonCauses) -> float:
        """Log loss of the classes."""
        dependence = np.where(self.several, causes.within, 0.0)
        score = np.tile(self.log_share, (len(self.truth), 1))
        for q, counts in enumerate(self.counts):
            model = Causes.of(self.table[:, :, q], self.wrong[:, q], causes.shared)
            score += logsumexp(model.joint(counts, dependence), axis=0)
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
    """Answers of each source about each item, (question, source, answer, item)."""
    shape = len(answers.questions), sources, len(answers.labels), answers.n_tasks
    where = answers.question_column(), source[answers.worker], answers.label, answers.task
    counts = np.zeros(shape, np.int64)
    np.add.at(counts, where, 1)
    return counts


def source_problem(
    answers: Answers,
    base: Problem | None,
    tables: Tables,
    causes: CommonCauses,
    error: FloatArray,
) -> Problem | None:
    """Write tables and dependence as a problem; None where a question cannot have the classes.

    `error` (question, class) is that of all answers, `base` the problem of questions about the
    classes; None of one question whose answers name the classes.
    """
    sources = answers.sources
    assert sources is not None
    if base is None:
        classes = answers.labels
        names = [name.replace("|", "/") for name in classes]
        if len(names) > MAX_ANSWERS or len({name.casefold() for name in names}) < len(names):
            return None
        base = Problem(classes, None, answers.questions[:1], [names], 0.0, answers=[names])
    source = sources.codes(answers.workers)
    workers = np.bincount(source, minlength=len(sources.names)).tolist()
    given = {source.name: source for source in base.sources if base.has_sources}
    learned = []
    for name, kind, price, several in zip(
        sources.names, sources.kinds, sources.prices, workers, strict=True
    ):
        plain = name.replace("|", "/")
        known = given.get(plain) or Source(plain, kind, price=price, repeatable=several > 1)
        learned.append(replace(known, dependence=causes.within if several > 1 else 0.0))
    return _with_tables(
        base,
        learned,
        tables.of_sources,
        prior=tables.share / tables.share.sum(),
        worker_error=error,
        table=None,
        source_dependence=causes.shared,
    )
