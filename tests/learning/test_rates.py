"""Tables of yes/no questions: unbiased, one posterior behind every number, spammers or not."""

from __future__ import annotations

import numpy as np
import pytest

import crowdtree as ct
from benchmarks.learn_sets import apascal, long
from benchmarks.realdata import ABSENT, folder
from crowdtree import CrowdtreeError, CrowdtreeWarning
from crowdtree.learning import classes as classing
from crowdtree.learning import learn
from crowdtree.learning.pilot import credible_interval
from crowdtree.learning.rates import Counts, cell_rates
from tests import learn_crowds
from tests.learn_crowds import gold_of, many_questions, with_spammer


def one_answer_each(rng, items=400, questions=6, classes=4):
    """Every item answers every question once, by rates that are its class's."""
    truth = rng.integers(0, classes, items)
    rate = rng.beta(0.5, 0.7, (questions, classes))
    label = (rng.random((items, questions)) < rate[:, truth].T).astype(int)
    task, asked = np.indices(label.shape).reshape(2, -1)
    names = np.array([f"q{q}" for q in range(questions)])
    answers = {"task": task, "question": names[asked], "label": label.ravel()}
    counts = [np.stack([f(label[truth == c]) for c in range(classes)], 1)
              for f in (lambda v: v.sum(axis=0), lambda v: np.full(questions, len(v)))]  # fmt: skip
    return (
        answers,
        {str(i): "abcd"[c] for i, c in enumerate(truth)},
        Counts(*map(np.float64, counts)),
    )


@pytest.mark.parametrize("kind", ["none", "random", "constant"])
@pytest.mark.parametrize("known", ["some gold", "table"])
def test_learned_errors_are_those_of_the_crowd(known, kind):
    ratio = []
    for seed in range(6):
        rng = np.random.default_rng([20, seed])
        crowd, actual = with_spammer(rng, many_questions(rng, 300, 14, 4, 25, 14), kind)
        if known == "table":
            learned = learn(crowd.answers, problem=crowd.problem)
        else:
            learned = learn(crowd.answers, gold_of(crowd, 40))
        assert learned.converged
        told = learned.problem.outcome == crowd.problem.outcome
        ratio.append(learned.problem.worker_error[told].mean() / actual[told].mean())
    assert 0.9 < np.median(ratio) < 1.1
    assert 0.8 < min(ratio) < max(ratio) < 1.25


def test_small_errors_beside_a_spammer_are_not_learned_smaller(monkeypatch):
    """The prior mean of the errors once swung with the skill of the spammer: 0.7 to 0.8 here."""
    monkeypatch.setitem(learn_crowds.ERRORS, "low", lambda rng, n: rng.uniform(0.02, 0.1, n))
    monkeypatch.setitem(learn_crowds.SKILLS, "low", lambda rng, n: rng.normal(0, 0.5, n))
    ratio = []
    for seed in range(4):
        rng = np.random.default_rng([20, seed])
        crowd = many_questions(rng, 300, 14, 6, 25, 42, "low")
        crowd, actual = with_spammer(rng, crowd, "random")
        learned = learn(crowd.answers, gold_of(crowd, 40))
        told = learned.problem.outcome == crowd.problem.outcome
        ratio.append(learned.problem.worker_error[told].mean() / actual[told].mean())
    assert 0.9 < np.median(ratio) < 1.1
    assert 0.8 < min(ratio) < max(ratio) < 1.25


def test_small_errors_of_thin_cells_are_not_learned_larger(monkeypatch):
    """A U-shaped prior of the yes-rates took errors of a few per cent for 1.17 times as large."""
    monkeypatch.setitem(learn_crowds.ERRORS, "low", lambda rng, n: rng.uniform(0.02, 0.1, n))
    monkeypatch.setitem(learn_crowds.SKILLS, "low", lambda rng, n: rng.normal(0, 0.6, n))
    ratio = []
    for seed in range(10):
        crowd = many_questions(
            np.random.default_rng([10, seed, 300, 7]), 300, 14, 10, 25, 14, "low"
        )
        learned = learn(crowd.answers, crowd.gold)
        told = learned.problem.outcome == crowd.problem.outcome
        actual = learn_crowds.crowd_error(crowd)
        ratio.append(learned.problem.worker_error[told].mean() / actual[told].mean())
    assert 0.9 < np.median(ratio) < 1.1
    assert 0.8 < min(ratio) < max(ratio) < 1.25


@pytest.mark.parametrize("who", ["one worker", "a worker per answer"])
def test_without_skills_the_table_is_empirical_bayes_of_the_counts(who):
    answers, gold, counts = one_answer_each(np.random.default_rng(0))
    answers["worker"] = np.arange(len(answers["task"])) if who != "one worker" else ["w"] * 2400
    learned = learn(answers, gold)
    assert learned.fit.spread == 0
    assert learned.table[1] == pytest.approx(cell_rates(counts).mean, abs=1e-6)


def test_two_of_three_mean_little_where_the_question_is_clear():
    rng = np.random.default_rng(1)
    yes = np.where(rng.random((200, 40)) < 0.2, 3.0, 0.0)
    yes[:, 0] = 2
    rate = cell_rates(Counts(yes, np.full(yes.shape, 3.0))).mean
    assert 0.5 < rate[:, 0].mean() < 0.67
    assert rate[yes == 3].mean() > 0.9


def test_every_number_follows_from_one_posterior():
    crowd = many_questions(np.random.default_rng(2), 200, 8, 4, 20, 10)
    learned = learn(crowd.answers, gold_of(crowd, 60))
    wrong, right = learned.error_posterior
    error = wrong / (wrong + right)
    told = learned.problem.outcome != -1
    assert learned.problem.worker_error[told] == pytest.approx(error[told])
    assert np.minimum(learned.table[1], 1 - learned.table[1]) == pytest.approx(error)
    assert ((learned.table[1] > 0.5) == (learned.problem.outcome == 1))[told].all()
    low, high = learned.intervals.worker_error
    assert ((low < error) & (error < high)).all()
    assert (error[told] < 0.5).all()


def test_a_spammer_moves_neither_the_centre_nor_the_others():
    rng = np.random.default_rng(3)
    crowd = many_questions(rng, 300, 12, 4, 20, 14)
    spammed, _ = with_spammer(rng, crowd, "random")
    plain, other = (learn(c.answers, crowd.gold, problem=crowd.problem) for c in (crowd, spammed))
    honest = [i for i, name in enumerate(plain.answers.workers) if str(name) != "0"]
    assert abs(np.median(plain.fit.skill)) < 0.2
    assert np.abs(plain.fit.skill - other.fit.skill)[honest].max() < 0.25
    assert other.workers["0"].skill == min(w.skill for w in other.workers.values())


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("known", ["table", "gold", "some gold"])
def test_the_trace_never_falls(seed, known):
    """Random crowds: sizes, errors and spammers differ."""
    rng = np.random.default_rng([31, seed])
    items, workers, classes = int(rng.integers(20, 90)), int(rng.integers(2, 12)), 2 + seed % 4
    crowd = many_questions(rng, items, workers, classes, int(rng.integers(4, 14)), 6)
    gold = dict(crowd.gold)
    if known == "some gold":
        first = {name: task for task, name in reversed(gold.items())}
        gold = {task: name for task, name in gold.items()
                if first[name] == task or rng.random() < 0.3}  # fmt: skip
    options = {"problem": crowd.problem} if known == "table" else {"gold": gold}
    learned = learn(crowd.answers, **options)
    trace = np.array(learned.trace)
    assert len(trace) > 1
    assert np.all(np.diff(trace) >= 0)
    assert learned.converged


def test_the_trace_is_the_log_posterior_at_the_end(monkeypatch):
    """The last value of the trace is that of the objective at the parameters that are reported."""
    fits = []
    ascend = classing.Fit.ascend
    monkeypatch.setattr(classing.Fit, "ascend", lambda self: fits.append(self) or ascend(self))
    crowd = many_questions(np.random.default_rng(4), 60, 8, 4, 12, 8)
    learned = learn(crowd.answers, problem=crowd.problem)
    assert fits[0].objective() == pytest.approx(learned.trace[-1])
    there = fits[0].x.copy()
    np.testing.assert_array_equal(np.where(fits[0].sign > 0, there, -there), learned.fit.cell)
    for change in (-0.01, 0.01):  # a peak in every cell and in the common direction
        fits[0].x = there + change
        assert fits[0].objective() < learned.trace[-1]


def test_what_does_not_converge_is_withheld(monkeypatch):
    """Without skills the simpler model is used; where that fails too, there is no result."""
    crowd = many_questions(np.random.default_rng(4), 100, 8, 4, 12, 8)
    plain, ascend = learn(crowd.answers, problem=crowd.problem), classing.Fit.ascend
    monkeypatch.setattr(
        classing.Fit, "ascend", lambda f: (ascend(f)[0], False) if f.crowd.spread else ascend(f)
    )
    with pytest.warns(CrowdtreeWarning, match="skills of workers did not converge"):
        learned = learn(crowd.answers, problem=crowd.problem)
    assert not learned.converged
    assert all(np.isnan(w.skill) and np.isnan(w.error) for w in learned.workers.values())
    assert learned.to_dict()["workers"][0]["skill"] is None
    assert [f.subject for f in learned.flags if f.kind == "unsettled"] == ["skills"]
    assert np.mean([learned.labels[t] == x for t, x in plain.labels.items()]) > 0.8
    monkeypatch.setattr(classing.Fit, "ascend", lambda f: (ascend(f)[0], False))
    with (
        pytest.warns(CrowdtreeWarning),
        pytest.raises(CrowdtreeError, match="no fit converged in 5000 steps"),
    ):
        learn(crowd.answers, problem=crowd.problem)


@pytest.mark.parametrize("known", ["table", "gold"])
@pytest.mark.parametrize("seed", [1, 7, 9])
def test_small_tables_converge(seed, known):
    """The slowest of 60 sets of about 1,592 answers that were tried."""
    rng = np.random.default_rng(seed)
    items, classes, questions, workers = (int(rng.integers(*ends)) for ends in
                                          ((15, 250), (2, 14), (2, 15), (3, 40)))  # fmt: skip
    shape = ["model", "two groups", "heavy tails"][seed % 3]
    crowd = many_questions(rng, items, questions, classes, workers, 1592 // items, shape)
    gold = dict(list(crowd.gold.items())[: 3 * classes])
    more = {"problem": crowd.problem} if known == "table" else {"gold": gold}
    assert learn(crowd.answers, **more).converged


def test_plans_on_what_was_learned_have_intervals_that_know_people_differ():
    crowd = many_questions(np.random.default_rng(5), 300, 10, 4, 12, 12)
    learned = learn(crowd.answers, crowd.gold)
    tree = ct.design(learned.problem, allow_groups=True)
    width = []
    for people in (1, None, 1000):
        found = credible_interval(tree, learned, people=people)
        width.append(found.high - found.low)
        assert found.low < ct.evaluate(tree).misclassification < found.high
    assert width[0] > width[1] > width[2]
    with pytest.raises(CrowdtreeError, match="people: expected 1 or more, got 0"):
        learned.credible_interval(tree, people=0)


def test_the_interval_of_counted_errors_includes_the_chance_of_the_items():
    crowd = many_questions(np.random.default_rng(5), 300, 10, 4, 12, 12)
    learned = learn(crowd.answers, crowd.gold)
    tree = ct.design(learned.problem, allow_groups=True)
    true = learned.credible_interval(tree)
    few, many = (learned.credible_interval(tree, items=count) for count in (20, 100_000))
    assert few.high - few.low > 1.5 * (true.high - true.low)
    assert (many.low, many.high) == pytest.approx((true.low, true.high), abs=0.01)
    assert (20 * few.low).is_integer()
    with pytest.raises(CrowdtreeError, match="items: expected 1 or more, got 0"):
        learned.credible_interval(tree, items=0)


def test_classes_without_sub_types_keep_the_learned_table():
    answers, gold, _ = one_answer_each(np.random.default_rng(6), items=40)
    learned = learn({**answers, "worker": ["w"] * 240}, gold)
    found = learned.subtypes(most=1)
    assert found.table == pytest.approx(learned.table)
    assert repr(found) == "Subtypes(none found in 4 classes)"


@pytest.mark.slow
@pytest.mark.realdata
def test_a_tree_errs_on_new_objects_as_often_as_it_says():
    data = folder()
    if data is None:
        pytest.skip(ABSENT)
    split = next(apascal(data))
    answers = long(split.train, split.questions, split.workers)
    learned = learn(answers, {str(i): name for i, name in enumerate(split.truth)})
    problem = learned.problem
    tree = ct.design(problem, allow_groups=True)
    order = [split.questions.index(name) for name in problem.questions]
    wrong = []
    for row, truth in zip(split.test[:, order], split.wanted, strict=True):
        node = 0
        while node >= 0:
            node = int(tree.children[node, row[tree.question[node]]])
        wrong.append(problem.classes[tree.leaf_label[~node]] != truth)
    found = learned.credible_interval(tree)
    chance = 3 * np.std(wrong) / np.sqrt(len(wrong))
    assert found.low - chance < np.mean(wrong) < found.high + chance
