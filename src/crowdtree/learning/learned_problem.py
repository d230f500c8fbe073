"""Learned numbers as a problem: confusions, shares and errors in the form that designers read."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.errors import CrowdtreeWarning
from crowdtree.core.problem import DASH, Problem
from crowdtree.learning.answers import Answers
from crowdtree.learning.label_models import LabelFit
from crowdtree.learning.labels import dependence_of, label_skills
from crowdtree.learning.passes import with_gold
from crowdtree.learning.skills import SkillFit
from crowdtree.learning.source_fit import SourceFit, tables_by
from crowdtree.learning.source_problem import source_problem

if TYPE_CHECKING:
    from crowdtree.learning.skills import ClassFit
    from crowdtree.learning.table_discount import Discount


class LabelNumbers(NamedTuple):
    """What a fit of one question says, by the probabilities that are stated."""

    problem: Problem
    posterior: FloatArray
    fit: SkillFit
    counts: FloatArray


def label_numbers(answers: Answers, labelling: LabelFit, gold: NDArray[Any]) -> LabelNumbers:
    """Write a fit of one question as a problem, with stated posteriors, skills and counts."""
    posterior = stated(labelling.posterior, gold, np.diff(answers.start), labelling.crowd_map)
    fit = label_skills(answers, labelling, gold, posterior)
    base, counts, problem = None, np.zeros((0, 0, 0)), None
    if isinstance(labelling, SourceFit):
        base, known = labelling.base, labelling.held_out
        # without known items what is stated is more careful than the fit
        tables = labelling.tables if known else tables_by(answers, labelling, posterior)
        problem = source_problem(answers, base, tables, labelling.causes, fit.error)
    if base is None:
        counts = answers.votes.counts(posterior)
    if problem is None:
        confusion, question = crowd_confusion(counts), answers.questions[0]
        dependence = dependence_of(answers, labelling)
        problem = label_problem(answers.labels, fit, confusion, fit.prior, question, dependence)
    return LabelNumbers(problem, posterior, fit, counts)


def label_problem(
    labels: tuple[str, ...],
    fit: SkillFit,
    confusion: FloatArray,
    prior: FloatArray,
    question: str,
    dependence: float = 0.0,
) -> Problem:
    """Write a one-question set as a problem: one question, or one against the rest.

    Two labels make one question. More make one question per label ("is it l?"), whose errors are
    read off the crowd's confusion of labels.
    """
    names: tuple[str, ...] = (question,)
    outcome, error = np.array([[0, 1]]), fit.error
    if len(labels) > 2:
        wrong, right = one_against_rest(fit, confusion)
        error = wrong / (wrong + right)
        names = tuple(f"{question} is {label}" for label in labels)
        outcome = np.eye(len(labels), dtype=np.int8)
    prior = prior / prior.sum()
    return make_problem(labels, prior, names, outcome, error, dependence=dependence)


def quietly_replaced(problem: Problem, **changes: Any) -> Problem:
    """Copy a learned problem without warnings: errors above one half have flags."""
    with warnings.catch_warnings(action="ignore", category=CrowdtreeWarning):
        return problem.replace(**changes)


def crowd_confusion(counts: FloatArray) -> FloatArray:
    """P(label | class) of an answer, whoever gave it (label, class); uniform without answers."""
    whole = counts.sum(axis=0) + 0.5 / len(counts[0])
    return np.asarray(whole / whole.sum(axis=0))


def stated(
    posterior: FloatArray, gold: NDArray[Any], answers: NDArray[Any], discount: Discount | None
) -> FloatArray:
    """Probabilities to state: discounted, and certain where the class is known."""
    discounted = posterior if discount is None else discount.stated(posterior, answers)
    return with_gold(discounted.copy(), gold)


def one_against_rest(fit: SkillFit, confusion: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Beta posteriors of "is it l?": a miss on the own class, a false alarm on the others."""
    size = (fit.wrong + fit.right)[0]
    own = np.eye(len(confusion), dtype=bool)
    error = np.where(own, 1 - confusion, confusion)
    return np.maximum(error * size, 1e-3), np.maximum((1 - error) * size, 1e-3)


def with_table(
    problem: Problem, fit: ClassFit, error: FloatArray | None = None, **changes: Any
) -> Problem:
    """Put a learned table, or that of other errors, into a problem."""
    error = fit.error if error is None else error
    if problem.is_yes_no:
        changes["worker_error"] = np.where(problem.outcome == DASH, 0.5, error)
    else:
        changes["table"] = fit.at_error(error)
    return quietly_replaced(problem, **changes)


def share_of_skips(answers: Answers) -> FloatArray | None:
    """How often people can't tell, per question; None where nobody said so."""
    if answers.skips is None or not answers.skips.any():
        return None
    given = np.bincount(answers.question_column(), minlength=len(answers.questions))
    return np.asarray(answers.skips / np.maximum(answers.skips + given, 1))


def open_problem(
    classes: tuple[str, ...], answers: Answers, fit: ClassFit, certain: float
) -> Problem:
    """Make a problem of a learned table whose right answers were not given.

    Of two answers the outcome is ``-`` where it is left open which of them is given more often.
    """
    from scipy.special import betaincc

    right = fit.right_answer
    names, questions = answers.choices or None, answers.questions
    if len(right) > 2:
        options = {"table": fit.table, "unsure": share_of_skips(answers)}
    else:
        right = right & (1 - betaincc(fit.wrong, fit.right, 0.5) >= certain)
        options = {}
    known = right.any(axis=0)
    return make_problem(
        classes, fit.prior, questions, right, np.where(known, fit.error, 0.5), answers=names,
        dash="inapplicable" if known.all() else "either", **options,
    )  # fmt: skip


def problem_of_gold(
    classes: tuple[str, ...], answers: Answers, gold: NDArray[Any], certain: float
) -> Problem:
    """Make a problem whose right answers are those that known items show; some are left open."""
    from crowdtree.learning.classes import likeliest_answers

    posterior = with_gold(np.zeros((answers.n_tasks, len(classes))), gold)
    right, channel = likeliest_answers(answers, posterior, certain)
    known = right.any(axis=0)
    error = np.where(known, 0.25, 1 - 1 / (channel > 0).sum(axis=0))
    outcome = right if answers.choices else np.where(known, right[1], DASH)
    return make_problem(
        classes, np.full(len(classes), 1 / len(classes)), answers.questions, outcome, error,
        answers=answers.choices or None, dash="inapplicable" if known.all() else "either",
        unsure=share_of_skips(answers) if answers.choices else None,
    )  # fmt: skip


def make_problem(
    classes: tuple[str, ...],
    prior: FloatArray,
    questions: tuple[str, ...],
    outcome: NDArray[Any],
    error: FloatArray,
    **options: Any,
) -> Problem:
    """Make a problem of learned numbers without warnings: errors above one half have flags."""
    with warnings.catch_warnings(action="ignore", category=CrowdtreeWarning):
        return Problem(classes, prior, questions, outcome, error, normalise=True, **options)
