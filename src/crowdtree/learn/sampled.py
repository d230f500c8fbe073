"""Doubt by sampling, where one curvature does not tell it: one question, few answers, no gold.

The posterior of a crowd whose classes are mostly unknown can have a ridge (fewer items of a class
whose workers err less, or more items of a class whose workers err more) that no normal
distribution fits. For small crowds it is sampled: Hamiltonian Monte Carlo (Neal 2011) on cells,
skills and class shares. Nothing else is left to sample: the classes of the items are summed out,
and so are the mean and the strength of the cells' prior and the spread of the skills, over grids.
The inverse of the observed information is the metric, so that a path of a few steps crosses the
posterior.

Two labels can trade places, with all skills turned round; the chains stay where the typical worker
is better than a coin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.learn import information
from crowdtree.learn.answers import Answers
from crowdtree.learn.density import Grids, log_density
from crowdtree.learn.skills import LOWEST_ERROR, Signs, SkillFit, SkillState

__all__ = ["Draws", "draw", "refined"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

MOST_WORK = 40_000
"""Answers times labels plus squared workers up to which a crowd is sampled: a second or two."""
LEAST_LOST = 0.25
"""Sampled when doubt about the classes takes this share of the information in some direction."""
CHAINS = 4
BURN_IN = 80
KEPT = 200  # of each chain
PATH = (
    1.5  # length of a path in standard deviations; a quarter of a turn around a normal one is 1.57
)
AIM = 0.8  # share of paths to be accepted, towards which the step is tuned while burning in
MOST_STEPS = 30
_LOG_STEPS = (
    float(np.log(PATH / MOST_STEPS)),
    0.4,
)  # refusals at the start must not freeze a chain
SEED = 1
MOST_CELL = float(np.log(1 / LOWEST_ERROR - 1))
_DIGITS = 6
_FAR = 500.0


class Draws(NamedTuple):
    """A sample: cells (draw, class), skills (draw, worker) and class shares (draw, class)."""

    cell: FloatArray
    skill: FloatArray
    share: FloatArray
    accepted: float


def refined(
    fit: SkillFit, answers: Answers, gold: IntArray, others: FloatArray, state: SkillState
) -> SkillFit:
    """Take means and doubt from a sample where it is worth the work and within its bound.

    Errors and shares get the Beta distribution, skills the normal one, that has the mean and the
    variance of the sample. Workers and classes are sampled in the order of what was fitted, so
    that their names do not matter, nor the order of the rows.
    """
    classes, workers = len(others), len(state.skill)
    if answers.n_answers * classes + workers**2 > MOST_WORK or not _inside(state.cell[0]):
        return fit
    signs = Signs.known(np.ones((1, classes)))
    whole, lost = information.joint_information(
        answers, signs, state, fit.posterior, fit.prior, by_label=True
    )
    if information.most_lost(whole, lost) < LEAST_LOST:
        return fit
    of_class, of_worker = (np.argsort(x, kind="stable") for x in (state.cell[0], state.skill))
    rank_class, rank_worker = np.argsort(of_class), np.argsort(of_worker)
    log_share = np.log(fit.prior[of_class])
    middle = [state.cell[0, of_class], state.skill[of_worker], log_share[1:] - log_share[0]]
    way = _directions(of_class, of_worker, len(whole))
    draws = draw(
        *_in_order(answers, gold, rank_class, rank_worker),
        np.round(others[np.ix_(of_class, of_class)], _DIGITS),
        Grids.of(classes, workers, round(float(state.mean[0]), _DIGITS)),
        np.concatenate(middle),
        way @ information.inverse(whole, lost) @ way.T,
    )
    return _with_moments(
        fit, draws.cell[:, rank_class], draws.skill[:, rank_worker], draws.share[:, rank_class]
    )


def _in_order(
    answers: Answers, gold: IntArray, rank_class: NDArray[Any], rank_worker: NDArray[Any]
) -> tuple[Answers, IntArray]:
    """Answers with workers and classes numbered by rank, and both they and the items sorted.

    The last bit of a sum depends on its order, and after some hundred paths so does the sample.
    """
    worker, label = rank_worker[answers.worker], rank_class[answers.label]
    known = np.where(gold >= 0, rank_class[gold], -1).astype(np.int32)
    items = [
        (known[t], sorted(zip(worker[a:b].tolist(), label[a:b].tolist(), strict=True)))
        for t, (a, b) in enumerate(pairwise(answers.start.tolist()))
    ]
    order = sorted(range(len(items)), key=items.__getitem__)
    rows = np.array([row for t in order for row in items[t][1]], np.int32)
    made = replace(
        answers,
        tasks=answers.tasks[order],
        start=np.cumsum([0, *(len(items[t][1]) for t in order)]).astype(answers.start.dtype),
        worker=rows[:, 0].copy(),
        label=rows[:, 1].astype(np.int8),
    )
    return made, known[order]


def _inside(cell: FloatArray) -> bool:
    """Whether the typical worker is better than chance, and no error beyond what a fit may say."""
    better = float(cell.sum()) > -len(cell) * np.log(len(cell) - 1)
    return better and float(np.abs(cell).max()) < MOST_CELL


def _directions(of_class: NDArray[Any], of_worker: NDArray[Any], size: int) -> FloatArray:
    """Rows that make the ordered unknowns of a sample from those of the information matrix."""
    unit = np.eye(size)
    classes, shares = len(of_class), len(of_class) + len(of_worker)
    share = unit[shares + of_class]
    return np.concatenate([unit[of_class], unit[classes + of_worker], share[1:] - share[0]])


def _with_moments(
    fit: SkillFit, cell: FloatArray, skill: FloatArray, share: FloatArray
) -> SkillFit:
    error = 1 / (1 + np.exp(cell))
    mean = np.clip(error.mean(axis=0), LOWEST_ERROR, 1 - LOWEST_ERROR)[None]
    size = _beta_size(mean, error.var(axis=0))
    prior = share.mean(axis=0)
    return replace(
        fit,
        cell=np.log1p(-mean) - np.log(mean),
        skill=skill.mean(axis=0),
        wrong=mean * size,
        right=(1 - mean) * size,
        skill_sd=skill.std(axis=0),
        prior=prior,
        prior_size=_beta_size(prior, share.var(axis=0)),
    )


def _beta_size(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Both counts together of the Beta distribution of this mean and variance."""
    return np.maximum(mean * (1 - mean) / np.maximum(variance, 1e-12) - 1, 1e-2)


def draw(
    answers: Answers,
    gold: IntArray,
    others: FloatArray,
    grids: Grids,
    middle: FloatArray,
    covariance: FloatArray,
    *,
    kept: int = KEPT,
) -> Draws:
    """Sample from around `middle` (laid out as :func:`log_density` has it), always the same."""
    classes = len(others)
    log_other = np.ascontiguousarray(np.log(np.where(np.eye(classes, dtype=bool), 1.0, others)))
    # any start and metric will do: rounded ones do not depend on the order of sums
    middle, root = np.round(middle, _DIGITS), np.round(np.linalg.cholesky(covariance), _DIGITS)

    def density(z: FloatArray) -> tuple[float, FloatArray]:
        x, slope = middle + root @ z, np.empty(len(middle))
        if not np.abs(x).max() < _FAR:  # a path that ran away
            return -np.inf, np.zeros(len(z))
        value = log_density(
            x, answers.start, answers.worker, answers.label, gold, log_other, *grids, slope
        )
        # outside the region the slope goes on: a path may leave it and come back
        return (value if _inside(x[:classes]) else -np.inf), root.T @ slope

    chains = [_chain(rng, len(middle), density, kept)
              for rng in np.random.default_rng(SEED).spawn(CHAINS)]  # fmt: skip
    made = middle + np.concatenate([z for z, _ in chains]) @ root.T
    free = np.concatenate([np.zeros((len(made), 1)), made[:, 1 - classes :]], axis=1)
    share = np.exp(free - free.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    accepted = float(np.mean([part for _, part in chains]))
    return Draws(made[:, :classes], made[:, classes : 1 - classes], share, accepted)


def _chain(
    rng: np.random.Generator,
    size: int,
    density: Callable[[FloatArray], tuple[float, FloatArray]],
    kept: int,
) -> tuple[FloatArray, float]:
    """One chain from a random start: its draws and the share of paths that were accepted."""
    at = 1.5 * rng.standard_normal(size)
    here, slope = density(at)
    while here == -np.inf:
        at = at / 2
        here, slope = density(at)
    draws, taken = np.empty((kept, size)), 0
    first = float(np.log(0.3))
    log_step, settled, drift = first, 0.0, 0.0
    for i in range(-BURN_IN, kept):
        step = np.exp(settled if i >= 0 else log_step) * rng.uniform(0.8, 1.2)
        steps = int(np.clip(np.rint(PATH * rng.uniform(0.6, 1.4) / step), 1, MOST_STEPS))
        speed = rng.standard_normal(size)
        before = here - 0.5 * float(speed @ speed)
        trial, force, there = at, slope, here
        for _ in range(steps):
            speed = speed + 0.5 * step * force
            trial = trial + step * speed
            there, force = density(trial)
            speed += 0.5 * step * force
        chance = np.exp(min(there - 0.5 * float(speed @ speed) - before, 0.0))
        if rng.random() < chance:
            at, slope, here = trial, force, there
            taken += i >= 0
        if i >= 0:
            draws[i] = at
            continue
        # dual averaging of the step (Hoffman and Gelman 2014)
        n = i + BURN_IN + 1
        drift += (AIM - chance - drift) / (n + 10)
        log_step = float(np.clip(first - 20 * np.sqrt(n) * drift, *_LOG_STEPS))
        settled += n**-0.75 * (log_step - settled)
    return draws, taken / kept
