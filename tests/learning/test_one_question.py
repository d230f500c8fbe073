"""One question: items that mislead everybody, honest probabilities, and crowds that once misled."""

from __future__ import annotations

import numpy as np
import pytest

from crowdtree import CrowdtreeError
from crowdtree.learning import labels, learn
from tests.learn_crowds import labelled, one_question


def misleading(seed: int, items: int = 400, workers: int = 25, each: int = 8, tilt: float = 1.6):
    """Two labels; every item tilts the answers of everybody who looks at it."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, items)
    logit = np.where(truth == 1, 1.2, -1.2) + tilt * rng.standard_normal(items)
    worker = np.argsort(rng.random((items, workers)), axis=1)[:, :each]
    yes = rng.random((items, each)) < 1 / (1 + np.exp(-logit))[:, None]
    answers = {
        "task": np.repeat(np.arange(items), each),
        "worker": worker.ravel(),
        "label": yes.ravel().astype(int),
    }
    return answers, truth


def right(learned, truth):
    return float(np.mean([learned.labels[str(i)] == str(t) for i, t in enumerate(truth)]))


# ---------------------------------------------------------------- the model


def test_people_who_err_together_are_found_and_told():
    answers, _ = misleading(0)
    learned = learn(answers)
    assert "together" in {flag.kind for flag in learned.flags}
    crowd = one_question(np.random.default_rng(2), 400, 25, 8)
    assert "together" not in {flag.kind for flag in learn(crowd.answers).flags}


@pytest.mark.parametrize("labels", [2, 4])
def test_one_answer_per_item_is_the_label(labels):
    rng = np.random.default_rng(3)
    said = rng.integers(0, labels, 300)
    learned = learn({"task": np.arange(300), "worker": rng.integers(0, 20, 300), "label": said})
    assert [learned.labels[str(i)] for i in range(300)] == [str(x) for x in said]


def test_constant_workers_beside_as_many_honest_ones_are_seen_through():
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, 200)
    task, worker = np.repeat(np.arange(200), 6), np.tile(np.arange(6), 200)
    honest = truth[task] ^ (rng.random(1200) < 0.1)
    learned = learn({"task": task, "worker": worker, "label": np.where(worker < 3, 1, honest)})
    assert right(learned, truth) > 0.95
    flagged = {flag.subject for flag in learned.flags if flag.kind == "constant"}
    assert flagged == {"0", "1", "2"}


@pytest.mark.slow
def test_passers_by_are_one_worker_to_the_model():
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 2, 4000)
    task = np.repeat(np.arange(4000), 5)
    said = truth[task] ^ (rng.random(20_000) < 0.2)
    learned = learn({"task": task, "worker": np.arange(20_000), "label": said})
    assert all(len(model.table) == 1 for model in learned.labelling.models)
    # without known items the crowd may err alike, which is charged to its people
    assert 0.18 < learned.typical_error < 0.3
    assert right(learned, truth) > 0.92


def test_one_known_item_does_not_change_the_reading_of_several_labels():
    crowd = labelled(np.random.default_rng(6), 300, 25, 5, labels=4)
    alone = learn(crowd.answers)
    helped = learn(crowd.answers, {"0": crowd.gold["0"]}, classes=alone.classes)
    same = [alone.labels[t] == helped.labels[t] for t in alone.labels if t != "0"]
    assert np.mean(same) > 0.98


def test_a_class_that_is_named_but_never_the_label_is_flagged():
    rng = np.random.default_rng(7)
    truth = rng.integers(0, 2, 300)
    task = np.repeat(np.arange(300), 9)
    said = np.where(rng.random(2700) < 0.12, 2, truth[task] ^ (rng.random(2700) < 0.05))
    learned = learn({"task": task, "worker": np.tile(np.arange(9), 300), "label": said})
    flags = [flag for flag in learned.flags if flag.kind == "collapsed"]
    assert [flag.subject for flag in flags] == ["2"]


def test_the_error_of_a_worker_follows_the_workers_own_disagreement():
    crowd = one_question(np.random.default_rng(8), 400, 20, 6)
    learned = learn(crowd.answers)
    workers = list(learned.workers.values())
    disagree = np.array([1 - w.agreement for w in workers])
    error = np.array([w.error for w in workers])
    assert np.abs(error - disagree).max() < 0.05  # shrunk a little, never ignored


@pytest.mark.parametrize(
    ("labels", "gold"),
    [
        (2, 0.15),
        (4, 0.0),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in [(2, 0.0), (2, 1.0), (4, 0.15)]),
        pytest.param(4, 1.0, marks=pytest.mark.slow),
    ],
)
def test_learned_errors_are_the_actual_ones(gold, labels):
    """Independent answers, a constant and a random worker among them: unbiased on average.

    Without known items errors are larger, as they allow for those that the whole crowd shares.
    """
    ratios = []
    for seed in range(5):
        crowd = labelled(np.random.default_rng([9, seed]), 300, 23, 6, labels=labels)
        rng = np.random.default_rng([10, seed])
        worker, label = crowd.answers["worker"], crowd.answers["label"].copy()
        label[worker == 0] = 0
        label[worker == 1] = rng.integers(0, labels, int((worker == 1).sum()))
        answers = {**crowd.answers, "label": label}
        some = dict(list(crowd.gold.items())[: int(300 * gold)]) or None
        learned = learn(answers, some, classes=[str(k) for k in range(labels)])
        truth = np.array([int(crowd.gold[str(t)]) for t in crowd.answers["task"]])
        ratios.append(learned.typical_error / np.mean(label != truth))
    assert np.median(ratios) == pytest.approx(1, abs=0.1 if gold else 0.4)
    assert min(ratios) > 0.8
    assert max(ratios) < (1.25 if gold else 2.0)


# ---------------------------------------------------------------- what is stated


def test_stated_accuracy_holds_where_people_err_together():
    """Items mislead everybody: what is stated without gold is nearer than what is believed."""
    for seed in range(3):
        answers, truth = misleading(20 + seed)
        learned = learn(answers)
        actual = right(learned, truth)
        believed = learned.labelling.posterior.max(axis=1).mean()
        assert learned.accuracy.low <= actual <= learned.accuracy.high
        assert abs(learned.accuracy.value - actual) < abs(believed - actual) + 0.02


def test_calibration_by_known_items_narrows_the_interval_and_keeps_the_labels():
    answers, truth = misleading(30)
    learned = learn(answers)
    known = {str(i): str(truth[i]) for i in range(100)}
    better = learned.calibrate(known)
    assert better.labels == learned.labels
    assert better.accuracy.known == 100
    before, after = learned.accuracy, better.accuracy
    assert after.high - after.low < before.high - before.low
    assert after.low <= right(learned, truth) <= after.high
    assert learned.accuracy.known == 0  # what it was made from is as it was


def test_gold_that_was_learned_from_counts_once():
    answers, truth = misleading(31)
    known = {str(i): str(truth[i]) for i in range(40)}
    learned = learn(answers, known)
    assert learned.accuracy.known == 40
    assert learned.calibrate(known).accuracy == learned.accuracy


def test_methods_of_others_are_not_discounted():
    crowd = one_question(np.random.default_rng(12), 60, 10, 5)
    learned = learn(crowd.answers, method="dawid-skene")
    assert learned.fitted_discount is None
    assert np.array_equal(learned.posterior, learned.labelling.posterior)


def test_a_maximum_likelihood_that_does_not_converge_is_refused(monkeypatch):
    crowd = one_question(np.random.default_rng(12), 60, 10, 5)
    monkeypatch.setattr(labels, "MAX_STEPS", 2)
    with pytest.raises(CrowdtreeError, match="dawid-skene did not converge in 2 steps"):
        learn(crowd.answers, method="dawid-skene")
    assert learn(crowd.answers).converged


def test_updates_state_what_a_refit_states():
    crowd = one_question(np.random.default_rng(14), 300, 20, 6)
    task = crowd.answers["task"]
    old = {key: value[task < 250] for key, value in crowd.answers.items()}
    new = {key: value[task >= 250] for key, value in crowd.answers.items()}
    updated, whole = learn(old).update(new), learn(crowd.answers)
    gap = [np.abs(updated.item(i) - whole.item(i)).max() for i in range(250, 300)]
    assert np.mean(gap) < 0.05


def test_known_items_are_believed_where_most_items_mislead_everybody():
    rng = np.random.default_rng(40)
    truth = rng.integers(0, 3, 400)
    seen = np.where(rng.random(400) < 0.45, (truth + 1) % 3, truth)
    task = np.repeat(np.arange(400), 5)
    said = np.where(rng.random(2000) < 0.2, rng.integers(0, 3, 2000), seen[task])
    worker = np.argsort(rng.random((400, 12)), axis=1)[:, :5].ravel()
    learned = learn({"task": task, "worker": worker, "label": said})
    found = learned.calibrate({str(i): str(truth[i]) for i in range(100)}).accuracy
    assert found.low <= right(learned, truth) <= found.high < 0.8


def test_calibrating_again_on_the_same_items_changes_nothing():
    answers, truth = misleading(32)
    known = {str(i): str(truth[i]) for i in range(30)}
    once = learn(answers).calibrate(known)
    twice = once.calibrate(known)
    assert twice.accuracy == once.accuracy
    more = once.calibrate({str(i): str(truth[i]) for i in range(40)})
    assert more.accuracy.known == 40


def test_what_was_calibrated_does_not_share_its_numbers():
    answers, truth = misleading(33, items=60)
    first = learn(answers)
    second = first.calibrate({str(i): str(truth[i]) for i in range(20)})
    before = first.counts.sum()
    second.update({"task": [0], "worker": ["new"], "label": [1]})
    assert first.counts.sum() == before
    with pytest.raises(CrowdtreeError, match="calibrate first"):
        second.calibrate({"1": str(truth[1])})


def test_the_same_answers_are_classified_as_they_were_learned():
    crowd = one_question(np.random.default_rng(1), 60, 8, 5)
    learned = learn(crowd.answers)
    names, posterior = learned.classify(crowd.answers)
    order = [list(map(str, learned.answers.tasks.tolist())).index(name) for name in names]
    np.testing.assert_allclose(posterior, learned.posterior[order], atol=0.02)


def test_a_refused_update_leaves_no_trace():
    crowd = one_question(np.random.default_rng(2), 30, 6, 4)
    learned = learn(crowd.answers)
    with pytest.raises(CrowdtreeError, match="is unknown"):
        learned.update({"task": [99], "worker": ["zed"], "label": ["bird"]})
    assert "zed" not in learned.workers
    with pytest.raises(CrowdtreeError, match="unknown"):
        learned.item(99)
