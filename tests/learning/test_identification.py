"""Cross-fitted calibration of learned tables: what is left out, and how the rest is learned."""

from __future__ import annotations

import numpy as np
import pytest

import crowdtree as ct
from crowdtree import CrowdtreeError, CrowdtreeWarning
from crowdtree.core.fixed_plan import as_plan
from crowdtree.learning import learn
from crowdtree.learning.identification import repeat_dependence
from crowdtree.learning.optimism import optimism
from crowdtree.learning.refits import refits_of, sheet_of
from crowdtree.simulation import simulate

QUESTIONS = np.array([f"q{i}" for i in range(8)])


def answers(rng, items=60, classes=4, error=0.1, worker=None):
    """One answer to each question; `worker` says who answered each item."""
    outcome = (np.arange(classes)[None] >> np.arange(len(QUESTIONS))[:, None] % 2) % 2
    truth = np.arange(items) % classes
    task, q = np.indices((items, len(QUESTIONS))).reshape(2, -1)
    said = outcome[q, truth[task]] ^ (rng.random(task.size) < error)
    who = np.zeros(items, int) if worker is None else worker
    table = {"task": task, "question": QUESTIONS[q], "worker": who[task], "label": said}
    return table, {str(i): "abcd"[c] for i, c in enumerate(truth)}


def test_refits_leave_open_what_the_result_leaves_open():
    """A cell with a yes-rate of 0.7: an outcome at certain=0.6, and none at 0.999."""
    table, gold = answers(np.random.default_rng(0), error=0.3)
    for certain in (0.6, 0.999):
        learned = learn(table, gold, certain=certain)
        parts = refits_of(learned, sheet_of(learned).worker, 5, 0).parts
        opened = np.mean([(part.rest.problem.outcome == -1).mean() for part in parts])
        assert opened == pytest.approx((learned.problem.outcome == -1).mean(), abs=0.15)
    assert opened > 0.3


def test_people_are_said_to_be_left_out_only_where_they_are():
    """Each class is one person's: leaving out that person would lose the class."""
    rng = np.random.default_rng(1)
    own = learn(*answers(rng, worker=np.arange(60) % 4))
    assert not refits_of(own, sheet_of(own).worker, 5, 0).by_person
    assert own.policy(0.2, 8).calibration.spread == 0
    assert optimism(own, as_plan(ct.design(own.problem, allow_groups=True))).between is None
    mixed = learn(*answers(rng, worker=np.arange(60) // 12))
    assert refits_of(mixed, sheet_of(mixed).worker, 5, 0).by_person
    assert mixed.policy(0.2, 8).calibration.spread > 0


def test_a_tree_for_upper_errors_is_not_made_again_as_a_plain_one():
    learned = learn(*answers(np.random.default_rng(2)))
    plain = ct.design(learned.problem, allow_groups=True)
    careful = ct.design(learned.problem, allow_groups=True, uncertainty=learned)
    assert careful.method.endswith("for upper errors")
    assert optimism(learned, as_plan(plain)) is not None
    assert optimism(learned, as_plan(careful)) is None


def test_too_few_folds_are_refused():
    learned = learn(*answers(np.random.default_rng(3)))
    with pytest.raises(CrowdtreeError, match="folds: expected a whole number from 2 on, got 1"):
        learned.policy(folds=1)


def test_a_target_below_what_can_be_reached_is_told_once():
    learned = learn(*answers(np.random.default_rng(4), error=0.4))
    with pytest.warns(CrowdtreeWarning, match="0.01 is out of reach on average.* an error of 0"):
        policy = learned.policy(0.01, 8)
    simulate(policy.problem, policy, 50)  # no second warning: it would fail here
    again = policy.changed(target_error=0.02)
    with pytest.warns(CrowdtreeWarning, match="0.02 is out of reach"):
        simulate(again.problem, again, 50)
    learned.policy(0.9, 8)
    learned.policy(0.0, 8)


def hard_items(seed, items=160, repeats=3):
    """Four classes, eight questions; some items mislead everybody on every question."""
    rng = np.random.default_rng(seed)
    outcome = rng.permuted(np.tile([[0, 1, 0, 1]], (8, 1)), axis=1)
    truth = rng.integers(0, 4, items)
    error = np.where(rng.random(items) < 0.25, 0.45, 0.15)
    task, q, turn = np.indices((items, 8, repeats)).reshape(3, -1)
    said = outcome[q, truth[task]] ^ (rng.random(task.size) < error[task])
    table = {"task": task, "question": QUESTIONS[q], "worker": turn + task % 5, "label": said}
    return table, np.array(list("abcd"))[truth]


def test_accuracy_of_a_table_holds_by_known_items_that_were_left_out():
    held = 0
    for seed in range(6):
        table, truth = hard_items(seed)
        learned = learn(table, {str(i): truth[i] for i in range(50)})
        labels = learned.labels
        actual = np.mean([labels[str(i)] == truth[i] for i in range(50, 160)])
        found = learned.accuracy
        assert found.known == 50
        assert found.high - found.low < 0.25
        held += found.low <= actual <= found.high
        frame = learned.to_frame("labels")
        stated = frame.filter(frame["task"].cast(int) >= 50)["probability"].mean()
        assert found.low < stated < found.high
        assert stated < learned.posterior[learned.gold < 0].max(axis=1).mean()
    assert held >= 5


@pytest.mark.slow
def test_accuracy_of_a_table_without_known_items_is_wide():
    table, truth = hard_items(0)
    problem = learn(table, {str(i): name for i, name in enumerate(truth)}).problem
    found = learn(table, problem=problem).accuracy
    assert found.known == 0
    assert found.high - found.low > 0.2
    assert found.low <= np.mean([learn(table, problem=problem).labels[str(i)] == name
                                 for i, name in enumerate(truth)]) <= found.high  # fmt: skip


def test_calibrating_a_table_adds_to_what_its_gold_shows():
    table, truth = hard_items(1)
    learned = learn(table, {str(i): truth[i] for i in range(30)})
    more = learned.calibrate({str(i): truth[i] for i in range(130)})
    assert (learned.accuracy.known, more.accuracy.known) == (30, 130)
    width = [found.high - found.low for found in (learned.accuracy, more.accuracy)]
    assert width[1] < width[0]
    assert more.item(140) == pytest.approx(more.posterior[140])


def repeated(seed, how):
    """Three answers to each question about 60 items: `how` says what the second and third are."""
    rng = np.random.default_rng(seed)
    table, gold = answers(rng, error=0.25)
    again, _ = answers(rng, error=0.25)
    third, _ = answers(rng, error=0.25)
    parts = [table, table, table] if how == "the same" else [table, again, third]
    parts = parts[:1] if how == "absent" else parts
    return {
        name: np.concatenate([
            part[name] + (k if name == "worker" else 0) if name != "question" else part[name]
            for k, part in enumerate(parts)
        ])
        for name in table
    }, gold  # fmt: skip


@pytest.mark.parametrize(
    ("how", "low", "high"),
    [("the same", 0.9, 1.0), ("independent", 0.0, 0.15), ("absent", 0.49, 0.51)],
)
def test_answers_to_one_question_hang_together_as_the_items_show(how, low, high):
    learned = learn(*repeated(5, how))
    sheet = sheet_of(learned)
    found = repeat_dependence(learned, sheet, refits_of(learned, sheet.worker, 5, 0))
    assert low <= found <= high
    policy = learned.policy(0.5, 8, repeats=3)
    assert policy.model.shared_difficulty == found
    assert learned.policy(0.5, 8, repeats=3, shared_difficulty=0.2).model.shared_difficulty == 0.2
    assert learned.policy(0.5, 8, repeats=1).model.shared_difficulty == 0


def test_the_calibration_of_a_learned_policy_belongs_to_its_table():
    one, other = (learn(*answers(np.random.default_rng(seed))) for seed in (6, 7))
    made = one.policy(0.2, 8).calibration
    with pytest.raises(CrowdtreeError, match="fitted to another table"):
        ct.AdaptivePolicy(other.problem, 0.2, 8, strict=False, calibration=made)
