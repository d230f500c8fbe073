"""Robust design and credible errors with what was really learned; pilots kept to their word."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta, binom

import crowdtree as ct
from crowdtree import CrowdtreeError, Problem
from crowdtree.core.tree import Tree
from crowdtree.learning import learn
from crowdtree.learning.pilot import plan_pilot, sensitivity

OUTCOME = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], [1, 0, 0, 0]])


def answered(rng, error, items, each):
    """Answers of typical workers to every question: `each` a question and item, of known class."""
    questions, classes = error.shape
    truth = np.arange(items) % classes
    task, q, _ = np.indices((items, questions, each)).reshape(3, -1)
    label = OUTCOME[q, truth[task]] ^ (rng.random(task.size) < error[q, truth[task]])
    worker = rng.integers(0, 40, task.size)
    answers = {"task": task, "question": np.array(list("wxyz"))[q], "worker": worker,
               "label": label}  # fmt: skip
    return answers, {str(i): "abcd"[c] for i, c in enumerate(truth)}


def errors_of_questions(rng):
    """Cells of a question are alike, as the model has it."""
    mean = rng.uniform(0.08, 0.3, (4, 1))
    return np.clip(rng.beta(12 * mean, 12 * (1 - mean), (4, 4)), 0.01, 0.45)


def table(error):
    return Problem(list("abcd"), None, list("wxyz"), OUTCOME, error)


def learned_from(rng, error, items=60, each=1):
    answers, gold = answered(rng, error, items, each)
    return learn(answers, gold, problem=table(0.2), duplicates="all")


# ---------------------------------------------------------------- robust design


def test_design_for_the_upper_error_avoids_what_is_hardly_known():
    """Two questions that split alike: the better one by a hair was asked far less often."""
    outcome = [[0, 1], [0, 1]]
    problem = Problem(["a", "b"], None, ["known", "new"], outcome, 0.2)
    rows = [  # of 300 answers a fifth is wrong, of 20 three
        (t, question, t % 7, (t % 2) ^ (t % 20 in wrong))
        for question, items, wrong in (("known", 300, (0, 1, 8, 9)), ("new", 20, (0, 1, 9)))
        for t in range(items)
    ]
    task, question, worker, label = zip(*rows, strict=True)
    answers = {"task": task, "question": question, "worker": worker, "label": label}
    learned = learn(answers, {str(t): "ab"[t % 2] for t in range(300)}, problem=problem)
    error, (_, high) = learned.problem.worker_error, learned.intervals.worker_error
    assert error[1].sum() < error[0].sum()  # as luck has it
    assert high[1].sum() > high[0].sum()  # but it may well be worse
    plain = ct.design(learned.problem)
    careful = ct.design(learned.problem, uncertainty=learned)
    assert learned.problem.questions[plain.question[0]] == "new"
    assert learned.problem.questions[careful.question[0]] == "known"


def test_careful_trees_are_no_worse_at_the_upper_error():
    gained = []
    rng = np.random.default_rng(7)
    for _ in range(8):
        learned = learned_from(rng, errors_of_questions(rng), items=40)
        plain = ct.design(learned.problem, method="optimal", objective="additive")
        careful = ct.design(
            learned.problem, method="optimal", objective="additive", uncertainty=learned
        )
        assert careful.problem.worker_error == pytest.approx(learned.problem.worker_error)
        worst = [_at(tree, learned.upper_problem()) for tree in (plain, careful)]
        assert worst[1] <= worst[0] + 1e-9
        gained.append(worst[0] - worst[1])
    assert max(gained) > 0.001


def _at(tree, problem):
    return ct.evaluate(Tree(problem, tree.question, tree.children)).additive


def test_upper_errors_are_the_quantiles_of_the_posterior():
    learned = learned_from(np.random.default_rng(1), np.full((4, 4), 0.15))
    wrong, right = learned.error_posterior
    upper = learned.upper_problem(0.9).worker_error
    expected = np.minimum(beta.ppf(0.9, wrong, right), 0.499)
    assert upper == pytest.approx(np.maximum(expected, learned.problem.worker_error))


def test_a_plan_of_the_same_questions_in_another_order_is_told_apart():
    learned = learned_from(np.random.default_rng(4), np.full((4, 4), 0.1))
    turned = Problem(list("abcd"), None, list("xwyz"), OUTCOME[[1, 0, 2, 3]], 0.1)
    with pytest.raises(CrowdtreeError, match="plan: has the learned questions in another order"):
        learned.credible_interval(ct.design(turned))
    with pytest.raises(CrowdtreeError, match="plan: is for 1 questions and 2 classes"):
        learned.credible_interval(ct.design(Problem(["a", "b"], None, ["w"], [[0, 1]], 0.1)))


def test_evaluate_refuses_what_was_not_learned():
    tree = ct.design(table(0.1))
    with pytest.raises(CrowdtreeError, match=r"expected what learn\(...\) returned, got the text"):
        ct.evaluate(tree, "junk")


def test_uncertainty_of_another_problem_is_refused():
    learned = learned_from(np.random.default_rng(2), np.full((4, 4), 0.15))
    with pytest.raises(CrowdtreeError, match="learned for other classes or questions"):
        ct.design(ct.example("table1"), uncertainty=learned)
    with pytest.raises(CrowdtreeError, match="not those learned"):
        _ = ct.evaluate(ct.design(ct.example("table1")), uncertainty=learned).credible
    renamed = table(0.1).replace(classes=list("abce"))
    with pytest.raises(CrowdtreeError, match="not those learned"):
        _ = ct.evaluate(ct.design(renamed), uncertainty=learned).credible


@pytest.mark.slow
def test_credible_interval_holds_the_truth_about_as_often_as_it_says():
    """80 % intervals over simulated crowds; the count has to lie in the middle 99 % of chance.

    The table is known and nobody is better than another. The doubt that cells have in common
    counts: drawn cell by cell, the intervals held the truth in two crowds of three only.
    """
    rng = np.random.default_rng(3)
    inside, ways = 0, 150
    tree = ct.design(table(0.2))
    for _ in range(ways):
        error = errors_of_questions(rng)
        answers, gold = answered(rng, error, 120, 1)
        learned = learn(answers, gold, problem=table(0.2), level=0.8)
        truth, guess = (Tree(p, tree.question, tree.children)
                        for p in (table(error), learned.problem))  # fmt: skip
        credible = ct.evaluate(guess, uncertainty=learned).credible
        assert credible.level == 0.8
        inside += credible.low <= ct.evaluate(truth).misclassification <= credible.high
    low, high = binom.ppf([0.005, 0.995], ways, 0.8)
    assert low <= inside <= high


# ---------------------------------------------------------------- pilot


@pytest.mark.parametrize("error", [0.1, 0.25])
def test_a_pilot_of_the_advised_size_knows_the_errors_as_promised(error):
    """Cells lie within ± half width of the truth about as often as the level says."""
    problem = table(error)
    pilot = plan_pilot(problem, half_width=0.06, answers_per_item=4)
    assert (pilot.answers_per_cell == pilot.answers_per_cell[0, 0]).all()
    rng = np.random.default_rng(4)
    near, cells = 0, 0
    for _ in range(40):  # the plain share of wrong answers: what the formula is about
        wrong = rng.binomial(pilot.answers_per_cell, error)
        near += int((np.abs(wrong / pilot.answers_per_cell - error) <= 0.06).sum())
        cells += wrong.size
    low, high = binom.ppf([0.0005, 0.9995], cells, 0.95)
    assert low - 0.015 * cells <= near <= high + 0.015 * cells  # the normal approximation's slack


def test_what_is_learned_from_a_pilot_lies_within_the_promised_width():
    """learn itself, on gold items as many as advised; borrowing between cells can only help."""
    error = np.full((4, 4), 0.2)
    pilot = plan_pilot(table(error), half_width=0.08, answers_per_item=3)
    rng = np.random.default_rng(5)
    near, half = [], []
    for _ in range(6):
        learned = learned_from(rng, error, items=pilot.gold_items, each=3)
        near.append(np.abs(learned.problem.worker_error - error) <= 0.08)
        low, high = learned.intervals.worker_error
        half.append((high - low) / 2)
    assert np.mean(near) >= 0.93
    assert np.mean(half) <= 0.08 * 1.1
    small = [learned_from(rng, error, items=pilot.gold_items // 6, each=3) for _ in range(3)]
    widths = [np.subtract(*x.intervals.worker_error[::-1]) / 2 for x in small]
    assert np.mean(widths) > np.mean(half)


def test_gold_items_that_come_as_they_come_hold_enough_of_every_class():
    problem = Problem(list("ab"), [0.9, 0.1], ["q"], [[0, 1]], 0.2)
    pilot = plan_pilot(problem)
    expected = pilot.gold_items_random * problem.prior
    assert (expected >= pilot.gold_per_class).all()
    assert (expected < pilot.gold_per_class + 1 / problem.prior.min() * problem.prior + 1).any()


def test_sensitivity_of_a_staffed_frontier_plan_is_the_slope_of_evaluate():
    rng = np.random.default_rng(6)
    problem = table(rng.uniform(0.05, 0.3, (4, 4)))
    for vote in ("majority", "margin"):
        plan = ct.frontier(problem, vote=vote, max_votes=7).plan_for(error=0.05)
        slope = sensitivity(plan)
        assert slope.max() > 0.05
        for q, c in np.ndindex(4, 4):
            rate = (_moved(plan, q, c, 1e-6) - _moved(plan, q, c, -1e-6)) / 2e-6
            assert slope[q, c] == pytest.approx(rate, abs=1e-6)


def _moved(plan, q, c, step):
    error = plan.tree.problem.worker_error.copy()
    error[q, c] += step
    problem = plan.tree.problem.replace(worker_error=error)
    tree = Tree(problem, plan.tree.question, plan.tree.children)
    return ct.evaluate(ct.Plan(tree, plan.votes, vote=plan.vote)).misclassification
