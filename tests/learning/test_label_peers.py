"""The label models and the simulated crowds that ``learn`` is compared with."""

import numpy as np
import pytest

from benchmarks import learn_labels
from benchmarks.crowds import SIMULATED, Crowd, choose, load, simulate
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


def test_reads_a_crowd_of_the_data_folder(tmp_path, monkeypatch) -> None:
    place = tmp_path / "crowd_tiny"
    place.mkdir()
    (place / "answers.csv").write_text("task,worker,label\nb,ann,yes\na,ann,no\na,ben,yes\n")
    (place / "gold.csv").write_text("task,label\na,no\n")
    monkeypatch.setenv("CROWDTREE_DATA", str(tmp_path))
    crowd = load("tiny")
    assert list(choose("real")) == ["tiny"]
    assert crowd.gold == {"a": "no"}
    assert sorted(crowd.frame.iter_rows()) == [
        ("a", "ann", "no"), ("a", "ben", "yes"), ("b", "ann", "yes")
    ]  # fmt: skip


def test_no_data_folder_leaves_real_crowds_out(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("CROWDTREE_DATA", str(tmp_path / "absent"))
    assert list(choose()) == list(SIMULATED)
    assert "CROWDTREE_DATA" in capsys.readouterr().out


def test_calibration_error_and_chance() -> None:
    stated = np.array([0.95, 0.95, 0.55, 0.55])
    right = np.array([True, False, True, False])
    found = learn_labels.calibration(stated, right)
    assert found["calibration"] == pytest.approx(100 * (0.9 + 0.1) / 4)
    assert learn_labels.calibration(np.ones(9), np.ones(9, bool))["chance"] == 0


def test_equal_methods_share_ranks() -> None:
    row = {m: {"accuracy": a} for m, a in (("learn", 80.0), ("majority", 80.0), ("mace", 82.0))}
    found = learn_labels.standing({"x": {"methods": row}}, list(row))
    assert [found[m]["rank"] for m in row] == [2.5, 2.5, 1]
    assert found["learn"]["worst"] == pytest.approx(-2)


def test_learn_is_measured_through_the_public_api() -> None:
    crowd = random_crowd(1, 3, 0.7)
    found = learn_labels.measure(crowd, ["learn", "one-coin"], draws=1, fit=False)["methods"]
    ours = found["learn"]
    assert list(ours["known"]) == ["20"]
    assert ours["low"] <= ours["value"] <= ours["high"]
    assert ours["workers_held"] <= ours["workers"] == (np.bincount(crowd.worker) >= 20).sum()
    assert len(list(learn_labels.report({"random": {"simulated": True, "methods": found}},
                                        list(found)))) > 5  # fmt: skip
