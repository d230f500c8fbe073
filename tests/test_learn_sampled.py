"""The posterior that is sampled, against sums over everything and draws from the prior."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import betaln, expit, log_expit, logsumexp
from scipy.stats import binom

from crowdtree.learn import density, learn, sampled
from crowdtree.learn.answers import read_answers
from learn_crowds import one_question

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
    shares = np.array([[0, 0.3, 0.2], [0.6, 0, 0.8], [0.4, 0.7, 0]])
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


def from_the_prior(rng, count, workers):
    """Draws of cells, skills and the share of the first class; one row a draw."""
    mean = expit(density.MEANS)
    chance = mean ** (2 * OVERALL) * (1 - mean) ** (2 * (1 - OVERALL))
    mean = rng.choice(mean, count, p=chance / chance.sum())
    strength = rng.choice(density.STRENGTHS, count)
    error = rng.beta(strength * mean, strength * (1 - mean), (2, count)).T
    error = np.clip(error, 1e-12, 1 - 1e-12)
    chance = np.exp(-0.125 / density.SPREADS**2) / density.SPREADS
    spread = rng.choice(density.SPREADS, count, p=chance / chance.sum())
    skill = spread[:, None] * rng.normal(size=(count, workers))
    return np.log(1 - error) - np.log(error), skill, rng.random(count)


def sample_of(a, kept, width):
    """A sample with a start and a metric that know nothing of the answers."""
    middle = np.concatenate([[1.0, 1.0], np.zeros(a.n_workers + 1)])
    metric = width * np.diag(np.concatenate([[1.0, 1.0], np.full(a.n_workers, 0.6), [1.0]]))
    none, grids = np.full(a.n_tasks, -1, np.int32), density.Grids.of(2, a.n_workers, OVERALL)
    return sampled.draw(a, none, 1 - np.eye(2), grids, middle, metric, kept=kept)


def test_sample_agrees_with_the_prior_weighed_by_the_likelihood():
    rows = {"task": [0, 0, 1, 1, 2, 2], "worker": [0, 1] * 3, "label": [0, 0, 1, 1, 0, 1]}
    a = read_answers(rows)
    cell, skill, share = from_the_prior(np.random.default_rng(1), 200_000, 2)
    weight = np.where([sampled._inside(pair) for pair in cell], 1.0, 0.0)
    for task in range(a.n_tasks):
        item = np.stack([share, 1 - share])
        for j in range(a.start[task], a.start[task + 1]):
            right = expit(cell + skill[:, a.worker[j], None]).T
            item *= np.where(a.label[j] == np.arange(2)[:, None], right, 1 - right)
        weight *= item.sum(axis=0)
    weight /= weight.sum()
    drawn = np.column_stack([expit(-cell), skill, share])
    got = sample_of(a, 3000, 1.5)
    sample = np.column_stack([expit(-got.cell), got.skill, got.share[:, 0]])
    mean = weight @ drawn
    sd = np.sqrt(weight @ (drawn - mean) ** 2)
    assert (sample.mean(axis=0) - mean) / sd == pytest.approx(np.zeros(5), abs=0.08)
    assert sample.std(axis=0) == pytest.approx(sd, rel=0.1)
    assert 0.5 < got.accepted < 1


def test_intervals_of_the_sample_cover_truths_from_the_prior():
    """Truths drawn from the prior lie in 95 % intervals 95 times in a hundred, by definition.

    One cell and one skill a crowd: those of one crowd err together, so more are not binomial.
    """
    hits = {"cell": [], "skill": [], "share": []}
    for seed in range(30):
        rng = np.random.default_rng([3, seed])
        cells, skills, shares = from_the_prior(rng, 50, 8)
        pick = [sampled._inside(pair) for pair in cells].index(True)
        cell, skill, share = cells[pick], skills[pick], shares[pick]
        truth, task = (rng.random(40) > share).astype(int), np.repeat(np.arange(40), 4)
        worker = np.argsort(rng.random((40, 8)), axis=1)[:, :4].ravel()
        right = rng.random(160) < expit(cell[truth[task]] + skill[worker])
        said = np.where(right, truth[task], 1 - truth[task])
        a = read_answers({"task": task, "worker": worker, "label": said})
        got = sample_of(a, 100, 0.5)
        for name, drawn, true in (
            ("cell", got.cell[:, 0], cell[0]),
            ("skill", got.skill[:, 0], skill[0]),
            ("share", got.share[:, 0], share),
        ):
            low, high = np.quantile(drawn, [0.025, 0.975])
            hits[name].append(low <= true <= high)
    for name, hit in hits.items():
        assert sum(hit) >= binom.ppf(0.001, len(hit), 0.95), name


# ---------------------------------------------------------------- in learn


def holds(learned, crowd):
    """How many of the two cells and the share (0.6) lie in their intervals."""
    (low, high), shares = learned.intervals.worker_error, learned.intervals.prior
    inside = int(((low <= crowd.error) & (crowd.error <= high)).sum())
    return inside + int(shares.low[0] <= 0.6 <= shares.high[0])


def test_hard_crowds_are_covered_by_sampling_and_not_by_one_curvature(monkeypatch):
    crowds = [
        one_question(np.random.default_rng([77, i]), 200, 20, 4, (0.4, 0.3)) for i in range(12)
    ]
    least = binom.ppf(0.001, 36, 0.95)
    assert sum(holds(learn(crowd.answers), crowd) for crowd in crowds) >= least
    monkeypatch.setattr(sampled, "MOST_WORK", 0)
    assert sum(holds(learn(crowd.answers), crowd) for crowd in crowds) < least


def test_only_doubtful_and_small_crowds_are_sampled(monkeypatch):
    asked, real = [], sampled.draw
    monkeypatch.setattr(
        sampled, "draw", lambda *args: asked.append(args[0].n_answers) or real(*args)
    )
    clear = one_question(np.random.default_rng(0), 100, 10, 10, (0.05, 0.05))
    learn(clear.answers)
    large = one_question(np.random.default_rng(1), 3000, 210, 4)
    learn(large.answers)
    assert asked == []
    small = one_question(np.random.default_rng(2), 100, 12, 4)
    learn(small.answers)
    assert asked == [400]


def test_sample_depends_on_no_order_and_no_name():
    crowd = one_question(np.random.default_rng(4), 120, 12, 4, (0.3, 0.35))
    rng = np.random.default_rng(5)
    first = learn(crowd.answers)
    rows, task, worker = rng.permutation(480), rng.permutation(120), rng.permutation(12)
    again = learn(
        {
            "task": task[crowd.answers["task"]][rows],
            "worker": worker[crowd.answers["worker"]][rows],
            "label": 1 - crowd.answers["label"][rows],
        }
    )
    assert again.fit.wrong[:, ::-1] == pytest.approx(first.fit.wrong, rel=1e-9)
    assert again.fit.prior_size == pytest.approx(first.fit.prior_size[::-1], rel=1e-9)
    for name, one in first.workers.items():
        other = again.workers[str(worker[int(name)])]
        assert (other.skill, other.low) == pytest.approx((one.skill, one.low), abs=1e-9)
