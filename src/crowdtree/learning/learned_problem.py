"""Learned numbers as a problem: confusions, shares and errors in the form that designers read."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.errors import CrowdtreeWarning
from crowdtree.learning.answers import Answers
from crowdtree.learning.labels import LabelFit, dependence_of, label_skills
from crowdtree.learning.passes import with_gold
from crowdtree.learning.skills import SkillFit
from crowdtree.learning.source_fit import SourceFit, tables_by
from crowdtree.learning.source_problem import source_problem
from crowdtree.problem import DASH, Dash, Problem

if TYPE_CHECKING:
    from crowdtree.learning.several import AnswersFit
    from crowdtree.learning.table_discount import Discount

__all__ = [
    "LabelNumbers",
    "crowd_confusion",
    "label_numbers",
    "label_problem",
    "make_answer_problem",
    "make_problem",
    "one_against_rest",
    "quietly_replaced",
    "stated",
]

FloatArray = NDArray[np.float64]


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
    counts = answers.votes.counts(posterior)
    problem = label_problem(
        answers.labels,
        fit,
        crowd_confusion(counts),
        fit.prior,
        answers.questions[0],
        dependence_of(answers, labelling),
    )
    if isinstance(labelling, SourceFit):
        known = labelling.held_out  # without them what is stated is more careful than the fit
        tables = labelling.tables if known else tables_by(answers, labelling, posterior)
        problem = source_problem(answers, tables, labelling.causes, fit.error) or problem
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


def make_answer_problem(
    classes: tuple[str, ...],
    questions: tuple[str, ...],
    answers: Answers,
    fit: AnswersFit,
    like: Problem | None = None,
) -> Problem:
    """Make a problem of a learned table of answers.

    How often people can't tell is the share of such answers to each question, where any were given;
    otherwise what the assumed problem says.
    """
    unsure = None if like is None else like.unsure
    if answers.skips is not None and answers.skips.any():
        given = np.bincount(answers.question_column(), minlength=len(questions))
        unsure = answers.skips / np.maximum(answers.skips + given, 1)
    with warnings.catch_warnings(action="ignore", category=CrowdtreeWarning):
        if like is not None:
            return like.replace(prior=fit.prior, normalise=True, table=fit.table, unsure=unsure)
        return Problem(
            classes,
            fit.prior,
            questions,
            fit.right_answer,
            fit.error,
            answers=answers.choices,
            table=fit.table,
            unsure=unsure,
            dash="inapplicable" if fit.right_answer.any(axis=0).all() else "either",
            normalise=True,
        )


def make_problem(
    classes: tuple[str, ...],
    prior: FloatArray,
    questions: tuple[str, ...],
    outcome: NDArray[Any],
    error: FloatArray,
    like: Problem | None = None,
    dependence: float = 0.0,
) -> Problem:
    """Make a problem of learned numbers without warnings: errors above one half have flags."""
    dash: Dash = "either" if bool((outcome == DASH).any()) else "inapplicable"
    with warnings.catch_warnings(action="ignore", category=CrowdtreeWarning):
        return Problem(
            classes,
            prior,
            questions,
            outcome,
            np.where(outcome == DASH, 0.5, error),
            texts=like.texts if like and like.texts else None,
            descriptions=like.descriptions if like and like.descriptions else None,
            dash=like.dash if like is not None else dash,
            answers=like.answers if like is not None else None,
            normalise=True,
            dependence=like.dependence if like is not None else dependence,
            loss=like.loss if like is not None else None,
        )
