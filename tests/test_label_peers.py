"""The label models and the simulated crowds that ``learn`` is compared with."""

import numpy as np
import pytest

from benchmarks.crowds import SIMULATED, Crowd, simulate
from benchmarks.peers import PEERS, accuracy


def random_crowd(seed: int, k: int, right: float, each: int = 5) -> Crowd:
    rng = np.random.default_rng(seed)
    items, workers = 60, 12
    truth = rng.integers(0, k, items)
    task = np.repeat(np.arange(items), each)
    worker = np.argsort(rng.random((items, workers)), axis=1)[:, :each].ravel()
    label = np.where(rng.random(len(task)) < right, truth[task], rng.integers(0, k, len(task)))
    names = [list(map(str, range(n))) for n in (items, workers, k)]
    return Crowd("random", task, worker, label, truth, *names)


@pytest.mark.parametrize("name", [name for name in PEERS if name != "majority"])
@pytest.mark.parametrize(("k", "right"), [(2, 0.7), (4, 0.5), (7, 0.1)])
def test_objective_never_falls(name: str, k: int, right: float) -> None:
    for seed in range(3):
        trace = np.array(PEERS[name](random_crowd(seed, k, right)).trace)
        assert (np.diff(trace) >= -1e-7 * np.abs(trace[1:])).all()


@pytest.mark.parametrize("name", PEERS)
def test_recovers_an_easy_crowd(name: str) -> None:
    crowd = random_crowd(0, 3, 0.95)
    posterior = PEERS[name](crowd).posterior
    assert posterior.sum(axis=1) == pytest.approx(1)
    assert accuracy(posterior, crowd.truth) == 100


@pytest.mark.parametrize("name", SIMULATED)
def test_simulated_crowds_are_whole(name: str) -> None:
    crowd, same, another = simulate(name), simulate(name), simulate(name, again=1)
    k, items = len(crowd.labels), len(crowd.tasks)
    assert (crowd.label == same.label).all()
    assert len(crowd.label) != len(another.label) or (crowd.label != another.label).any()
    assert np.bincount(crowd.task, minlength=items).min() >= 1
    assert crowd.label.min() >= 0
    assert crowd.label.max() < k
    assert set(crowd.truth) <= set(range(k))
    pairs = crowd.task * len(crowd.workers) + crowd.worker
    assert len(np.unique(pairs)) == len(pairs)
    assert crowd.frame.shape == (len(crowd.task), 3)
    assert len(crowd.gold) == items
