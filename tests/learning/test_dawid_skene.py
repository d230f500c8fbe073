"""Expectation maximisation of Dawid and Skene, against its formulas."""

import numpy as np
import pytest

from crowdtree.learning.dawid_skene import fit_dawid_skene
from crowdtree.learning.passes import Votes


def answers(seed: int = 0, tasks: int = 600, bad: int = 3):
    """Five answers per item; the last `bad` of twelve workers answer the opposite, mostly."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, tasks)
    task, worker = np.repeat(np.arange(tasks), 5), rng.integers(0, 12, 5 * tasks)
    error = np.where(worker >= 12 - bad, 0.85, 0.15)
    value = truth[task] ^ (rng.random(5 * tasks) < error)
    return truth, task, worker.astype(np.int32), value.astype(np.int8)


def fit(tasks, worker, value, **options):
    votes = Votes(np.arange(0, len(worker) + 1, 5), worker, value, 12, **options)
    return fit_dawid_skene(votes, np.full(tasks, -1, np.int32), smoothing=0.1, tolerance=1e-7)


def test_it_finds_who_is_reliable_and_beats_the_majority():
    truth, task, worker, value = answers()
    found = fit(600, worker, value, labels=2)
    right = (found.posterior[:, 1] > 0.5) == truth
    majority = np.bincount(task, weights=value) > 2.5
    assert right.mean() > (majority == truth).mean() + 0.05
    says = np.exp(found.log_answer)[:, 1, 1]
    assert np.all(says[:9] > 0.7)
    assert np.all(says[9:] < 0.3)
    assert np.exp(found.log_prior[1]) == pytest.approx(truth.mean(), abs=0.05)


def test_it_is_a_fixed_point_of_em():
    """One more round by the formulas, written out answer by answer, moves nothing."""
    _, task, worker, value = answers(1, tasks=60)
    posterior = fit(60, worker, value, labels=2).posterior[:, 1]
    said = [[0.1, 0.1] for _ in range(12)]
    total = [[0.2, 0.2] for _ in range(12)]
    for t, w, v in zip(task, worker, value, strict=True):
        for truth, weight in enumerate((1 - posterior[t], posterior[t])):
            said[w][truth] += weight * v
            total[w][truth] += weight
    rate = np.array(said) / np.array(total)
    share = posterior.mean()
    for t in range(60):
        odds = share / (1 - share)
        for w, v in zip(worker[task == t], value[task == t], strict=True):
            odds *= rate[w, 1] / rate[w, 0] if v else (1 - rate[w, 1]) / (1 - rate[w, 0])
        assert odds / (1 + odds) == pytest.approx(posterior[t], abs=2e-3)


def test_an_item_may_stand_for_several():
    _, _, worker, value = answers(2, tasks=40)
    times = np.arange(40) % 3 + 1
    rows = (np.repeat(np.arange(40), times)[:, None] * 5 + np.arange(5)).ravel()
    every = fit(int(times.sum()), worker[rows], value[rows], labels=2)
    once = fit(40, worker, value, labels=2, times=times.astype(np.float64))
    assert np.allclose(every.posterior, np.repeat(once.posterior, times, axis=0), atol=1e-9)
    assert np.allclose(every.log_answer, once.log_answer, atol=1e-9)


def test_labels_that_are_no_classes_are_evidence_all_the_same():
    """People who can't tell mostly where the second class is right."""
    truth, task, worker, value = answers(3, bad=0)
    unsure = np.random.default_rng(4).random(len(value)) < np.where(truth[task] == 1, 0.6, 0.05)
    found = fit(600, worker, np.where(unsure, 2, value).astype(np.int8), labels=3, classes=2)
    assert found.posterior.shape == (600, 2)
    silent = np.bincount(task, unsure) == 5
    assert np.all(found.posterior[silent, 1] > 0.9)
