"""How certain a fitted table, its skills and its class shares are, each by its own terms.

Unknown classes enter by the identity of Louis (1982): what the answers tell were the classes known,
less the variance of that score given the answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crowdtree.core.arrays import FloatArray
from crowdtree.learning.crowd import LEAST_LEFT
from crowdtree.learning.people import how_people_differ
from crowdtree.learning.skills import SURE, ClassFit
from crowdtree.learning.within import totals

if TYPE_CHECKING:
    from crowdtree.learning.classes import Fit

_LEAST_SIZE = 0.02  # answers that tell a rate
_CERTAIN = 1e12  # answers that a share is worth which no answer changes


def finished(fit: Fit, trace: tuple[float, ...], converged: bool) -> ClassFit:
    """Write a settled fit with its doubt."""
    rates, crowd, prior = fit.rates, fit.crowd, fit.prior
    rate = crowd.rate(fit.x, fit.tilt)
    sign = fit.sign if fit.sign is not None else np.where(rate > 0.5, 1, -1)
    right = np.where(sign > 0, fit.cells.rated == 1, (fit.cells.rated == 0) & (sign < 0))
    wrong = np.where(sign > 0, 1 - rate, np.where(sign < 0, rate, 0.5))
    # the rate of the crowd moves with that of the cell; its Beta has the same relative width
    size = np.maximum(rates.size, _LEAST_SIZE)
    within_size = np.full(right.shape, _CERTAIN)
    if fit.cells.groups is not None:
        within_size = totals(fit.passes.counts(fit.posterior), right) + fit.spread_prior.strength
        within_size = np.maximum(within_size, _LEAST_SIZE)
    shift = crowd.spread**2 / max(1, len(crowd.skill))  # of the centre of the skills
    return ClassFit(
        cell=fit.x * sign,
        skill=crowd.skill,
        wrong=wrong * size,
        right=(1 - wrong) * size,
        skill_sd=np.sqrt(crowd.variance + shift + _spread_doubt(fit)),
        spread=crowd.spread,
        posterior=fit.posterior,
        prior=prior,
        prior_size=_share_size(fit),
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


def _spread_doubt(fit: Fit) -> FloatArray:
    """Variance of the skills from not knowing their spread, to first order (Kass, Steffey 1989)."""
    crowd = fit.crowd
    if not crowd.spread:
        return np.zeros_like(crowd.skill)
    pulled = np.clip(crowd.precision * crowd.variance, 0, 1)
    return np.asarray((2 * pulled * crowd.skill) ** 2 * crowd.spread_doubt)


def _share_size(fit: Fit) -> FloatArray:
    """Items of known class that would estimate the class shares as well."""
    prior = fit.prior
    told = (len(fit.posterior) + len(prior)) * prior * (1 - prior)
    hidden = (fit.posterior * (1 - fit.posterior)).sum(axis=0)
    return np.asarray(np.maximum(told - hidden, LEAST_LEFT * told) / (prior * (1 - prior)))
