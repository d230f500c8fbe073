"""How certain a fitted table, its skills and its class shares are.

One matrix holds the observed information of cells (q, c), skills, class shares and means of the
questions; its inverse is their covariance (Laplace). Unknown classes enter by the identity of Louis
(1982): what the answers tell were the classes known, less the covariance of that score given the
answers. Only the ratio of a cell's variance to that of the cell by itself is used, so that a cell
whose workers and classes are known keeps its exact posterior.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crowdtree.core.arrays import FloatArray
from crowdtree.learning.crowd import LEAST_LEFT
from crowdtree.learning.people import how_people_differ
from crowdtree.learning.skills import SURE, ClassFit
from crowdtree.learning.within import totals

if TYPE_CHECKING:
    from crowdtree.learning.classes import Fit


MAX_UNKNOWNS = 2000
MAX_PAIRS = 3_000_000
"""Above so many unknowns, or pairs of answers to the same item, the joint matrix is not made."""
_LEAST = 0.02  # share of the complete information that is left in any direction at the least
_LIKELY = 1e-6  # classes less likely than this are left out of an item's share
_HELD = 1e12  # answers that a share is worth which no answer changes


class Doubt(NamedTuple):
    """How much wider than by itself each cell is, and variances of skills and log shares."""

    wider: FloatArray
    skill: FloatArray
    share: FloatArray


def finished(fit: Fit, trace: tuple[float, ...], converged: bool) -> ClassFit:
    """Write a settled fit with its doubt."""
    rates, crowd, prior = fit.rates, fit.crowd, fit.prior
    unknowns = fit.x.size + len(crowd.skill) + len(prior) + len(fit.x)
    pairs = float((np.diff(fit.answers.start).astype(np.float64) ** 2).sum())
    joint = unknowns <= MAX_UNKNOWNS and pairs <= MAX_PAIRS  # then the matrix is worth its time
    doubt = _joint(fit) if joint else _own(fit)
    rate = crowd.rate(fit.x, fit.tilt)
    sign = fit.sign if fit.sign is not None else np.where(rate > 0.5, 1, -1)
    right = np.where(sign > 0, fit.cells.rated == 1, (fit.cells.rated == 0) & (sign < 0))
    wrong = np.where(sign > 0, 1 - rate, np.where(sign < 0, rate, 0.5))
    # the rate of the crowd moves with that of the cell; its Beta has the same relative width
    size = np.maximum((rates.size + 1) / doubt.wider - 1, 0.02)
    within_size = np.full(right.shape, _HELD)
    if fit.cells.groups is not None:
        wider = np.maximum((rates.size + 1) / (size + 1), 1.0)
        within_size = totals(fit.passes.counts(fit.posterior), right) + fit.spread_prior.strength
        within_size = np.maximum((within_size + 1) / wider - 1, 0.02)
    return ClassFit(
        cell=fit.x * sign,
        skill=crowd.skill,
        wrong=wrong * size,
        right=(1 - wrong) * size,
        skill_sd=np.sqrt(doubt.skill),
        spread=crowd.spread,
        posterior=fit.posterior,
        prior=prior,
        prior_size=1 / (doubt.share * prior * (1 - prior)),
        trace=trace,
        answers=fit.now.held,
        tilt=fit.tilt * sign,
        right_answer=right,
        within=fit.within,
        within_size=within_size,
        log_none=fit.passes.counts(np.log1p(-np.minimum(fit.posterior, SURE))),
        people=how_people_differ(fit),
        converged=converged,
    )


def _precision(fit: Fit) -> tuple[FloatArray, FloatArray]:
    """Precision of the logit of each cell by itself, and the part of it that the prior tells."""
    mean = fit.rates.mean
    whole = fit.rates.size * mean * (1 - mean)
    bend, lost = fit.now.bend, fit.now.lost
    return whole, np.maximum(whole - np.maximum(bend - lost, LEAST_LEFT * bend), 1e-3 * whole)


def _joint(fit: Fit) -> Doubt:
    crowd, prior = fit.crowd, fit.prior
    (questions, classes), cells, workers = fit.x.shape, fit.x.size, len(crowd.skill)
    first = cells + workers
    size = first + classes + questions
    whole, lost = fit.passes.information(
        fit.x, fit.tilt, crowd.skill, fit.posterior, prior, _LIKELY, size
    )
    diagonal = np.einsum("ii->i", whole)
    own, of_prior = (part.ravel() for part in _precision(fit))
    diagonal[:cells] += of_prior
    diagonal[cells:first] += crowd.curvature if crowd.spread else 1e9
    at = slice(first, first + classes)
    whole[at, at] += classes * (np.diag(prior) - np.outer(prior, prior))
    whole[at, at] += len(fit.posterior) * np.outer(prior, prior)  # shares add up to one anyway
    # cells lean on the mean of their question, which is an estimate itself
    tilt = fit.tilt.ravel()
    place = first + classes + np.repeat(np.arange(questions), classes)
    cell = np.arange(cells)
    whole[cell, place] -= of_prior * tilt
    whole[place, cell] -= of_prior * tilt
    np.add.at(diagonal, place, of_prior * tilt**2 + 1e-3)
    covariance = inverse(whole, lost)
    variance = np.diagonal(covariance)
    weight = crowd.answers / crowd.answers.sum()
    with_crowd = covariance[:cells, cells:first] @ weight
    of_crowd = float(weight @ covariance[cells:first, cells:first] @ weight)
    told = variance[:cells] + 2 * tilt * with_crowd + tilt**2 * of_crowd
    wider = np.maximum(told * own, 1.0).reshape(fit.x.shape)
    bend = (np.eye(classes) - prior[:, None]).T  # d log share / d free parameter
    share = np.einsum("kj,jl,kl->k", bend, covariance[at, at], bend)
    skill = variance[cells:first] + _spread_doubt(fit)
    return Doubt(wider, skill, share / (1 - prior) ** 2)


def _spread_doubt(fit: Fit) -> FloatArray:
    """Variance of the skills from not knowing their spread, to first order (Kass, Steffey 1989)."""
    crowd = fit.crowd
    if not crowd.spread:
        return np.zeros_like(crowd.skill)
    pulled = np.clip(crowd.precision * crowd.variance, 0, 1)
    return np.asarray((2 * pulled * crowd.skill) ** 2 * crowd.spread_doubt)


def _own(fit: Fit) -> Doubt:
    """Doubt of a crowd too large for the joint matrix: every unknown by its own terms."""
    crowd, prior = fit.crowd, fit.prior
    shift = crowd.spread**2 / max(1, len(crowd.skill))
    told_items = (len(fit.posterior) + len(prior)) * prior * (1 - prior)
    hidden = (fit.posterior * (1 - fit.posterior)).sum(axis=0)
    held = np.maximum(told_items - hidden, LEAST_LEFT * told_items)
    return Doubt(np.ones_like(fit.x), crowd.variance + shift + _spread_doubt(fit), 1 / held)


def inverse(whole: FloatArray, lost: FloatArray) -> FloatArray:
    """Inverse of ``whole - lost``; the lost share is held below one in every direction.

    On a ridge of the fit the difference need not be positive. The directions are those of the loss
    relative to the whole, so that nothing depends on the scales of the unknowns.
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
