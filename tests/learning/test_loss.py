"""Labels of least expected loss from answers, and what is stated about them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.learning import learn

CLASSES = ("champignon", "death cap", "fly agaric")
COSTS = np.array([[0.0, 1.0, 1.0], [60.0, 0.0, 5.0], [10.0, 0.5, 0.0]])


def crowd(items: int = 300, seed: int = 1, error: float = 0.3):
    """One question whose answers are classes: items, their truth, and five answers each."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, items, p=[0.6, 0.25, 0.15])
    said = np.where(rng.random((items, 5)) < error, rng.integers(0, 3, (items, 5)), truth[:, None])
    names = np.array(CLASSES)
    answers = {
        "task": np.repeat([f"i{k}" for k in range(items)], 5),
        "worker": np.tile(list("abcde"), items),
        "label": names[said.ravel()],
    }
    return answers, {f"i{k}": CLASSES[c] for k, c in enumerate(truth)}, truth


@pytest.fixture(scope="module")
def plain():
    answers, gold, _ = crowd()
    return learn(answers, {task: gold[task] for task in list(gold)[:40]})


@pytest.mark.parametrize("refer", [None, 0.3])
def test_labels_are_the_best_of_all_by_enumeration(plain, refer):
    careful = plain.with_loss({"matrix": COSTS, "refer": refer})
    frame = careful.to_frame("labels")
    assert list(careful.labels) == list(plain.labels)
    for task, label, sure, risk in frame.select(
        "task", "label", "probability", "expected_loss"
    ).iter_rows():
        post = plain.item(task)
        each = [sum(post[c] * COSTS[c, k] for c in range(3)) for k in range(3)]
        chosen = CLASSES.index(label)
        assert careful.labels[task] == label
        assert each[chosen] == pytest.approx(min(each), abs=1e-12)
        assert sure == pytest.approx(post[chosen])
        assert risk == pytest.approx(min([*each, *([] if refer is None else [refer])]), abs=1e-12)
    assert ("referred" in frame.columns) is (refer is not None)
    if refer is not None:
        least = [abs(loss - refer) < 1e-12 for loss in frame["expected_loss"]]
        assert frame["referred"].to_list() == least


def test_the_stated_loss_is_that_of_new_items_with_the_same_crowd():
    """Labels by the loss cost less than the likeliest classes, and about what is stated."""
    answers, _, truth = crowd(2000, seed=4, error=0.5)
    learned = learn(answers)
    careful = learned.with_loss(COSTS)
    labels, likeliest = (
        np.array([CLASSES.index(found[f"i{k}"]) for k in range(len(truth))])
        for found in (careful.labels, learned.labels)
    )
    observed = COSTS[truth, labels].mean()
    assert observed < 0.9 * COSTS[truth, likeliest].mean()
    stated = careful.expected_loss
    assert stated.low <= stated.value <= stated.high
    assert stated.low <= observed <= stated.high
    right, stated = (labels == truth).mean(), careful.accuracy
    assert stated.low <= right <= stated.high


def test_the_loss_of_zero_and_one_changes_nothing(plain):
    same = plain.with_loss(1 - np.eye(3))
    assert same.problem.loss is None
    assert same == plain
    assert same.to_dict() == plain.to_dict()
    assert float(plain.expected_loss) == pytest.approx(1 - float(plain.accuracy))


def test_zero_one_through_the_general_code_states_the_same(plain):
    """A loss of 1 for every mistake and a hopelessly dear expert."""
    general = plain.with_loss({"refer": 1e6})
    assert dict(general.labels) == dict(plain.labels)
    assert general.accuracy == pytest.approx(plain.accuracy)
    assert float(general.expected_loss) == pytest.approx(1 - float(plain.accuracy))


def test_a_table_keeps_what_its_problem_says_and_knows_its_expected_loss(tmp_path):
    problem = ct.example("mushrooms")
    rng = np.random.default_rng(5)
    truth = rng.choice(problem.n_classes, 120, p=problem.prior)
    wrong = rng.random((120, problem.n_questions)) < problem.worker_error[:, truth].T
    said = np.where(problem.outcome[:, truth].T == 1, ~wrong, wrong)
    item, question = np.indices(said.shape).reshape(2, -1)
    answers = {
        "task": item,
        "question": np.array(problem.questions)[question],
        "worker": [f"w{k % 7}" for k in range(said.size)],
        "label": said.ravel().astype(int),
    }
    gold = {str(k): problem.classes[truth[k]] for k in range(60)}
    learned = learn(answers, gold, problem=problem)
    assert learned.problem.loss == problem.loss
    assert 50 < learned.expected_loss.known <= 60  # some classes have a single known item
    for task in list(learned.labels)[60:]:
        risk = learned.item(task) @ problem.loss.matrix
        assert risk[problem.classes.index(learned.labels[task])] == pytest.approx(risk.min())
    told = json.loads(json.dumps(learned.to_dict()))
    assert told["expected_loss"]["value"] == pytest.approx(float(learned.expected_loss))
    assert set(told["label_losses"]) == set(told["labels"])
    learned.save(tmp_path / "learned.json")
    assert ct.load(tmp_path / "learned.json") == learned


def test_updates_are_labelled_by_the_loss_as_well(plain):
    careful = plain.with_loss(COSTS)
    careful.update({"task": ["new"] * 2, "worker": ["a", "b"], "label": ["champignon"] * 2})
    risk = careful.item("new") @ COSTS
    assert careful.labels["new"] == CLASSES[int(risk.argmin())]
    assert "new" not in plain.labels


def test_losses_of_other_classes_are_refused(plain):
    with pytest.raises(ct.CrowdtreeError, match="3 x 3"):
        plain.with_loss(np.eye(2))


def test_the_expected_loss_follows_an_update():
    answers, _, _ = crowd(60)
    learned = learn(answers, loss=COSTS)
    before = learned.expected_loss
    task = [f"new{k}" for k in range(200)]
    for worker in "abcde":
        learned.update({"task": task, "worker": [worker] * 200, "label": ["champignon"] * 200})
    after = learned.expected_loss
    del learned.__dict__["expected_loss"]
    assert after == learned.expected_loss != before
