"""How much the answers tell about everything at once: the observed information and its inverse.

The unknowns of the skill model are held together: cells and skills can shift against each other,
doubt about an item's class makes the errors of all who answered it uncertain together, and what a
thin cell borrows from its question it borrows with the question's own doubt. So one matrix holds
all of them,

    cells (q, c) | skills | class shares | the questions' mean errors,

and its inverse is their covariance (Laplace). Doubt about classes enters by the identity of Louis
(1982): what the answers tell is what they would tell were the classes known, less the covariance
of that score given the answers. The two scales, strength of the cells' prior and spread of the
skills, are estimated by empirical Bayes and their doubt is added to first order (Kass and Steffey
1989).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.learn.answers import Answers

if TYPE_CHECKING:
    from crowdtree.learn.skills import Signs, SkillState

__all__ = [
    "Doubt",
    "fits_one_matrix",
    "inverse",
    "joint_doubt",
    "joint_information",
    "most_lost",
    "own_doubt",
]

FloatArray = NDArray[np.float64]

MOST_UNKNOWNS = 2000
MOST_PAIRS = 3_000_000
"""Above so many unknowns, or pairs of answers to the same item, the matrix is not made: every
unknown then keeps its own term only, which with so many answers is nearly all there is."""
_SURE = 1e-6  # classes less likely than this are left out of an item's share
_LEAST = 0.02  # share of the complete information that is left at the least


class Doubt(NamedTuple):
    """Variances in logits: of the cells, of the skills, and of the class shares.

    `cell_move` is how far the cells' peak moves when the skills are integrated out.
    """

    cell: FloatArray
    skill: FloatArray
    prior: FloatArray
    cell_move: FloatArray


def fits_one_matrix(answers: Answers, unknowns: int) -> bool:
    """Whether the joint matrix of so many unknowns is worth its time."""
    pairs = float((np.diff(answers.start).astype(np.float64) ** 2).sum())
    return unknowns <= MOST_UNKNOWNS and pairs <= MOST_PAIRS


def joint_doubt(
    answers: Answers,
    signs: Signs,
    state: SkillState,
    posterior: FloatArray,
    prior: FloatArray,
    *,
    by_label: bool,
) -> Doubt:
    """Variances of all unknowns from the inverse of the observed information.

    Parameters
    ----------
    answers, signs, state, posterior, prior
        The answers, the signs of the cells, the fitted cells and skills, the items' posteriors
        and the class shares.
    by_label
        Whether an answer is right when it names the class (one question), rather than when it
        agrees with the sign of its cell.
    """
    whole, lost = joint_information(answers, signs, state, posterior, prior, by_label=by_label)
    shape = state.cell.shape
    cells, workers, classes = state.cell.size, len(state.skill), len(prior)
    free = slice(cells + workers, cells + workers + classes)
    covariance = inverse(whole, lost)
    variance = np.diagonal(covariance)
    bend = (np.eye(classes) - prior[:, None]).T  # d log share / d free parameter
    share = np.einsum("kj,jl,kl->k", bend, covariance[free, free], bend)
    cell = variance[:cells].reshape(shape)
    skill = variance[cells : cells + workers]
    more = _scale_doubt(state, np.diagonal(whole - lost), shape)
    move = covariance @ _skewness(answers, signs, state, posterior, np.diagonal(whole - lost)) / 2
    return Doubt(
        cell + more[0], skill + more[1], share / (1 - prior) ** 2, move[:cells].reshape(shape)
    )


def joint_information(
    answers: Answers,
    signs: Signs,
    state: SkillState,
    posterior: FloatArray,
    prior: FloatArray,
    *,
    by_label: bool,
) -> tuple[FloatArray, FloatArray]:
    """What the answers would tell were the classes known, and what of it is lost.

    Parameters are those of :func:`joint_doubt`.
    """
    from crowdtree.learn import kernels

    cells, workers, classes = state.cell.size, len(state.skill), len(prior)
    size = cells + workers + classes + len(state.cell)
    whole, lost = np.zeros((size, size)), np.zeros((size, size))
    kernels.information_pass(
        answers.start, answers.question_column(), answers.worker, answers.label,
        *signs, by_label, np.ascontiguousarray(state.cell), state.skill, posterior, prior, _SURE,
        whole, lost,
    )  # fmt: skip
    _add_priors(whole, state, prior)
    free = slice(cells + workers, cells + workers + classes)
    whole[free, free] += len(posterior) * np.outer(prior, prior)  # shares add up to one anyway
    return whole, lost


def most_lost(whole: FloatArray, lost: FloatArray) -> float:
    """Share of the information that is lost in the direction where most is."""
    from scipy.linalg import eigh

    last = len(whole) - 1
    return float(eigh(lost, whole, eigvals_only=True, subset_by_index=[last, last])[0])


def _skewness(
    answers: Answers, signs: Signs, state: SkillState, posterior: FloatArray, held: FloatArray
) -> FloatArray:
    """Slope of the log determinant that integrating the skills out adds (Laplace), doubled.

    At the joint peak every skill counts as if it were known. Skills so found vary less than the
    true ones, and a typical worker must then err more for the same answers: small errors come out
    too large. The slope is the third derivative of each answer's log likelihood times the
    variance of the worker's skill.
    """
    from crowdtree.learn import kernels

    pull, cells = np.zeros(len(held)), state.cell.size
    variance = 1 / np.maximum(held[cells : cells + len(state.skill)], state.spread**-2)
    kernels.skewness_pass(
        answers.start, answers.question_column(), answers.worker, *signs,
        np.ascontiguousarray(state.cell), state.skill, posterior, variance, pull,
    )  # fmt: skip
    return pull


def _add_priors(whole: FloatArray, state: SkillState, prior: FloatArray) -> None:
    """Information of the priors, and what ties the cells to the mean of their question."""
    from scipy.special import polygamma

    questions, classes = state.cell.shape
    cells, workers = questions * classes, len(state.skill)
    mean, strength = state.mean, state.strength
    error = 1 / (1 + np.exp(state.cell))
    diagonal = np.einsum("ii->i", whole)
    diagonal[:cells] += (strength * error * (1 - error)).ravel()
    diagonal[cells : cells + workers] += state.spread**-2
    at = slice(cells + workers, cells + workers + len(prior))
    whole[at, at] += len(prior) * (np.diag(prior) - np.outer(prior, prior))
    unit = mean * (1 - mean)
    tied = np.repeat(strength * unit, classes)
    place = np.repeat(np.arange(questions), classes) + at.stop
    whole[np.arange(cells), place] += tied
    whole[place, np.arange(cells)] += tied
    bend = polygamma(1, strength * mean) + polygamma(1, strength * (1 - mean))
    diagonal[at.stop :] += classes * (strength * unit) ** 2 * bend + 2 * unit


def inverse(whole: FloatArray, lost: FloatArray) -> FloatArray:
    """Inverse of ``whole - lost``; the share of what is lost is held below one in every direction.

    Where a fit stands on a ridge the difference need not be positive. The directions are those of
    the loss relative to the whole, so that nothing depends on the scales of the unknowns.
    """
    from scipy.linalg import cho_factor, cho_solve, eigh, solve_triangular

    try:
        return np.asarray(cho_solve(cho_factor(whole - lost), np.eye(len(whole))))
    except np.linalg.LinAlgError:
        root = np.linalg.cholesky(whole)
        half = solve_triangular(root, lost, lower=True)
        share, side = eigh(solve_triangular(root, half.T, lower=True))
        side = solve_triangular(root.T, side)
        return np.asarray((side / np.maximum(1 - share, _LEAST)) @ side.T)


def _scale_doubt(
    state: SkillState, held: FloatArray, shape: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    """Variance from not knowing the strength and the spread, one for cells and one for skills."""
    cells, workers = state.cell.size, len(state.skill)
    of_spread = state.spread**-2
    pulled = np.clip(of_spread / np.maximum(held[cells : cells + workers], of_spread), 0, 1)
    skill = (2 * pulled * state.skill) ** 2 * state.spread_doubt
    error = 1 / (1 + np.exp(state.cell))
    of_prior = state.strength * error * (1 - error)
    pull = np.clip(of_prior / np.maximum(held[:cells].reshape(shape), of_prior), 0, 1)
    away = state.cell + np.log(state.mean / (1 - state.mean))[:, None]
    return (pull * away) ** 2 * state.strength_doubt, skill


def own_doubt(
    state: SkillState,
    cells: FloatArray,
    workers: FloatArray,
    prior: FloatArray,
    posterior: FloatArray,
) -> Doubt:
    """Variances of a crowd too large for the joint matrix: every unknown by its own terms.

    Cells and skills can shift against each other (all workers better, all questions harder), held
    by the prior of the skills alone (the mean of the cells is estimated); the variance of that
    direction is added to every skill, and to every cell.
    """
    error = 1 / (1 + np.exp(state.cell))
    unit = np.maximum(error * (1 - error), 1e-9)
    own = np.maximum(cells[..., 2] - cells[..., 3], _LEAST * cells[..., 2])
    of_prior = state.strength * unit
    worker_own = np.maximum(workers[:, 2] - workers[:, 3], _LEAST * workers[:, 2])
    shift = state.spread**2 / len(workers)
    # the prior's mean is an estimate too: what a cell takes from it, it takes with its doubt
    told = np.sum(own * of_prior / (own + of_prior) / unit, axis=1, keepdims=True)
    borrowed = (of_prior / (own + of_prior)) ** 2 / (told + 1) / unit
    of_cell = 1 / (own + of_prior) + np.where(cells[..., 2] > 0, shift, 0.0) + borrowed
    of_skill = 1 / (worker_own + state.spread**-2) + shift
    told_items = (len(posterior) + len(prior)) * prior * (1 - prior)
    hidden = (posterior * (1 - posterior)).sum(axis=0)
    held = np.maximum(told_items - hidden, _LEAST * told_items)
    return Doubt(of_cell, of_skill, 1 / held, np.zeros_like(of_cell))
