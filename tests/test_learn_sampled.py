"""The posterior that is sampled, against sums over everything and draws from the prior."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import betaln, expit, log_expit, logsumexp
from scipy.stats import binom

from crowdtree.learn import density, information, learn, sampled
from crowdtree.learn.answers import read_answers
from learn_crowds import labelled, one_question

OVERALL = 0.3
TINY = {"task": [0, 0, 1, 1, 2, 2, 2], "worker": [0, 1, 0, 1, 0, 1, 2],
        "label": [0, 0, 1, 0, 1, 1, 2]}  # fmt: skip


def by_definition(a, others, gold, x):
    """Log of likelihood times prior: sums over all classes of all items and all grid points."""
    classes = len(others)
    cell, skill, free = np.split(x, [classes, classes + a.n_workers])
    free = np.concatenate([[0.0], free])
    log_share = free - logsumexp(free)
    paths = []
    for truth in product(range(classes), repeat=a.n_tasks):
        if any(g not in (-1, t) for g, t in zip(gold, truth, strict=True)):
            continue
        log = log_share[list(truth)].sum()
        for task, worker, label in zip(a.task, a.worker, a.label, strict=True):
            k = truth[task]
            logit = cell[k] + skill[worker]
            missed = log_expit(-logit) + np.log(others[label, k] if label != k else 1.0)
            log += log_expit(logit) if label == k else missed
        paths.append(log)
    priors = []
    for strength, mean in product(density.STRENGTHS, expit(density.MEANS)):
        p, q = strength * mean, strength * (1 - mean)
        beta = p * log_expit(-cell) + q * log_expit(cell) - betaln(p, q)
        weight = 2 * (OVERALL * np.log(mean) + (1 - OVERALL) * np.log(1 - mean))
        priors.append(beta.sum() + weight)
    spread = density.SPREADS
    normal = -0.5 * ((skill[:, None] / spread) ** 2).sum(axis=0) - len(skill) * np.log(spread)
    normal -= np.log(spread) + 0.125 / spread**2
    # log_share once more: the step from shares to log shares
    return logsumexp(paths) + logsumexp(priors) + logsumexp(normal) + log_share.sum()


@pytest.mark.parametrize("gold", [(-1, -1, -1), (-1, 2, -1)])
def test_density_is_the_sum_over_everything(gold):
    a = read_answers(TINY)
    rng = np.random.default_rng(0)
    others = rng.dirichlet([2.0, 2.0], 3)
    shares = np.array([[0, *others[1]], [others[0, 0], 0, others[1, 1]], [others[0, 1], 1, 0]])
    shares[:, 1] = [0.3, 0, 0.7]
    shares[:, 0], shares[:, 2] = [0, 0.6, 0.4], [0.2, 0.8, 0]
    log_other = np.log(np.where(np.eye(3, dtype=bool), 1.0, shares))
    grids = density.Grids.of(3, a.n_workers, OVERALL)

    def value(x, slope):
        codes = np.array(gold, np.int32)
        return density.log_density(
            x, a.start, a.worker, a.label, codes, log_other, *grids, slope
        )  # fmt: skip

    points = rng.normal(0, 1.5, (5, 3 + a.n_workers + 2))
    off = [value(x, np.empty(8)) - by_definition(a, shares, gold, x) for x in points]
    assert off == pytest.approx([0.0] * 5, abs=1e-9)
    for x in points:
        slope, unused = np.empty(8), np.empty(8)
        value(x, slope)
        steps = 1e-5 * np.eye(8)
        found = [(value(x + h, unused) - value(x - h, unused)) / 2e-5 for h in steps]
        assert slope == pytest.approx(np.array(found), abs=1e-6)


def from_the_prior(a, count):
    """Draws of errors, skills and share from the prior, each with the likelihood as its weight."""
    rng = np.random.default_rng(1)
    mean = expit(density.MEANS)
    chance = mean ** (2 * OVERALL) * (1 - mean) ** (2 * (1 - OVERALL))
    mean = rng.choice(mean, count, p=chance / chance.sum())
    strength = rng.choice(density.STRENGTHS, count)
    error = rng.beta(strength * mean, strength * (1 - mean), (2, count)).T
    error = np.clip(error, 1e-12, 1 - 1e-12)
    chance = np.exp(-0.125 / density.SPREADS**2) / density.SPREADS
    spread = rng.choice(density.SPREADS, count, p=chance / chance.sum())
    skill = spread[:, None] * rng.normal(size=(count, a.n_workers))
    share = rng.random(count)
    cell = np.log(1 - error) - np.log(error)
    like = np.ones(count)
    for task in range(a.n_tasks):
        item = np.stack([share, 1 - share])
        for j in range(a.start[task], a.start[task + 1]):
            right = expit(cell + skill[:, a.worker[j], None]).T
            item *= np.where(a.label[j] == np.arange(2)[:, None], right, 1 - right)
        like *= item.sum(axis=0)
    like[cell.sum(axis=1) <= 0] = 0.0
    return np.column_stack([error, skill, share]), like / like.sum()


def test_sample_agrees_with_the_prior_weighed_by_the_likelihood():
    a = read_answers(
        {"task": [0, 0, 1, 1, 2, 2], "worker": [0, 1] * 3, "label": [0, 0, 1, 1, 0, 1]}
    )
    drawn, weight = from_the_prior(a, 400_000)
    grids = density.Grids.of(2, 2, OVERALL)
    none, others = np.full(3, -1, np.int32), 1 - np.eye(2)
    wide = np.diag([1.5, 1.5, 0.8, 0.8, 1.0])
    got = sampled.draw(a, none, others, grids, np.array([1.0, 1, 0, 0, 0]), wide, kept=3000)
    sample = np.column_stack([expit(-got.cell), got.skill, got.share[:, 0]])
    mean = weight @ drawn
    sd = np.sqrt(weight @ (drawn - mean) ** 2)
    print(mean, sd, sample.mean(axis=0), sample.std(axis=0), got.accepted)
    assert sample.mean(axis=0) == pytest.approx(mean, abs=0.08 * sd.max())
    assert sample.std(axis=0) == pytest.approx(sd, rel=0.1)
    assert 0.5 < got.accepted < 1
