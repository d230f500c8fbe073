"""The frontier: against enumeration of every tree with every choice of votes."""

from __future__ import annotations

import itertools
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crowdtree as ct
from crowdtree.core.fixed_plan import Plan
from crowdtree.core.tree import Tree
from crowdtree.designs.frontiers.compare import compare
from crowdtree.designs.frontiers.exact_votes import ExactVotes, Verdicts
from crowdtree.designs.frontiers.vote_options import Options, question_prices
from tests.contracts.oracle import all_trees


def random_problem(seed: int, classes: int, questions: int, low=0.02, high=0.4, dashes=0.0):
    """A separable problem with errors of its own in every cell."""
    rng = np.random.default_rng(seed)
    while True:
        outcome = rng.integers(0, 2, (questions, classes)).astype(np.int8)
        outcome[rng.random(outcome.shape) < dashes] = -1
        problem = ct.Problem(
            [f"c{i}" for i in range(classes)],
            rng.dirichlet(np.full(classes, 2.0)),
            [f"q{i}" for i in range(questions)],
            outcome,
            rng.uniform(low, high, (questions, classes)),
        )
        try:
            ct.design(problem)
        except ct.CrowdtreeError:
            continue
        return problem


def every_plan(problem, options, price):
    """(cost, additive error) of every tree with every vote of every node."""
    for nested in all_trees(problem):
        tree = Tree.from_dict(problem, nested)
        for votes in itertools.product(options.votes, repeat=tree.n_nodes):
            plan = Plan(tree, np.array(votes), options.vote)
            cost = 0.0
            for step in tree.steps:
                paid = price[tree.question[step.node]]
                cost += float((step.share * paid) @ plan.answers_at(step.node, step.cls))
            yield cost, float(plan.node_error.sum())


def hull_value(points, slope):
    return min(error + slope * cost for cost, error in points)


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    vote=st.sampled_from(["majority", "margin"]),
    priced=st.booleans(),
    dashes=st.sampled_from([0.0, 0.15]),
)
def test_supported_points_are_those_of_enumeration(seed, vote, priced, dashes):
    problem = random_problem(seed, classes=4, questions=4, dashes=dashes)
    price = np.linspace(1.0, 2.0, 4) if priced else np.ones(4)
    most = 5 if vote == "majority" else 3
    front = ct.frontier(problem, vote, price=price, max_votes=most)
    options = Options.of(problem, vote, most, price)
    everything = np.array(list(every_plan(problem, options, price)))
    mine = np.array([(p.planned_cost, p.plan.node_error.sum()) for p in front.supported])
    assert front.proven
    assert front.gap == 0
    for slope in np.geomspace(2e-6, 5e3, 60):
        assert hull_value(mine, slope) == pytest.approx(hull_value(everything, slope), rel=1e-9)
    # every point is a corner of the hull of everything: none is superfluous
    for left, middle, right in zip(mine, mine[1:], mine[2:], strict=False):
        chord = left[1] + (right[1] - left[1]) * (middle[0] - left[0]) / (right[0] - left[0])
        assert middle[1] < chord


@pytest.mark.parametrize("vote", ["majority", "margin"])
def test_no_point_is_dominated_and_errors_are_convex(vote):
    front = ct.frontier(random_problem(3, 8, 12), vote, max_votes=15)
    for points, at in (
        (front.supported, lambda p: (p.planned_answers, p.additive)),
        (front.points, lambda p: (p.expected_answers, p.misclassification)),
    ):
        cost, error = np.array([at(point) for point in points]).T
        assert (np.diff(cost) > 0).all()
        assert (np.diff(error) < 0).all()
        assert (np.diff(np.diff(error) / np.diff(cost)) > 0).all()


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000), classes=st.integers(3, 8))
def test_no_design_with_staff_dominates_a_point_or_is_cheaper_than_the_cheapest(seed, classes):
    problem = random_problem(seed, classes, 9)
    front = ct.frontier(problem, max_votes=9)
    for method in ("fm", "fc", "gain", "gini", "optimal"):
        tree = ct.design(problem, method)
        for staffing in ("marginal", "paper-fm"):
            for workers in range(0, 8 * tree.n_nodes, 4):
                plan = ct.staff(tree, workers, staffing)
                if plan.votes.max() > 9:
                    break
                value = ct.evaluate(plan)
                assert value.expected_answers >= front[0].expected_answers * (1 - 1e-9)
                for point in front:
                    cheaper = value.expected_answers < point.expected_answers * (1 - 1e-9)
                    better = value.misclassification < point.misclassification * (1 - 1e-9)
                    assert not (cheaper and better)


@pytest.mark.parametrize("vote", ["majority", "margin"])
def test_votes_are_worth_what_the_evaluation_says_and_only_improve(vote):
    problem = random_problem(6, 7, 9)
    options = Options.of(problem, vote, 9, np.ones(9))
    tree = ct.design(problem)
    votes = ExactVotes(tree, Verdicts(options))
    option = np.random.default_rng(0).integers(0, len(options.votes), (5, tree.n_nodes))
    price = np.geomspace(1e-3, 0.1, 5)
    error, cost = votes.worth(option)
    for row, wrong, paid in zip(option, error, cost, strict=True):
        value = ct.evaluate(Plan(tree, options.votes[row], vote))
        assert wrong == pytest.approx(value.misclassification, rel=1e-9)
        assert paid == pytest.approx(value.expected_answers, rel=1e-9)
    better_error, better_cost = votes.worth(votes.improve(option, price))
    assert (better_error + price * better_cost <= (error + price * cost) * (1 + 1e-12)).all()


def test_the_time_limit_is_for_the_whole_call_and_leaves_a_usable_curve():
    front = ct.frontier(random_problem(2, 30, 30), time_limit=0)
    assert front.status == "time limit"
    assert not front.proven
    assert front.gap > 0
    assert len(front) > 10


def test_after_the_limit_few_points_spread_over_the_curve_are_made(monkeypatch):
    monkeypatch.setattr("crowdtree.designs.frontiers.exact_votes.FEWEST", 4)
    problem = random_problem(2, 30, 30)
    front, hurried = (ct.frontier(problem, method="greedy", time_limit=t) for t in (None, 0))
    assert 2 <= len(hurried) <= 4
    assert hurried[0].expected_cost == pytest.approx(front[0].expected_cost, rel=0.1)
    assert hurried[-1].expected_cost == pytest.approx(front[-1].expected_cost, rel=0.1)


def test_beats_the_papers_method_at_every_budget():
    problem = random_problem(1, 10, 20, low=0.1, high=0.3)
    front = ct.frontier(problem)
    tree = ct.design(problem)
    for workers in (0, 6, 24, 60, 114):
        paper = ct.evaluate(ct.staff(tree, workers, "paper-fm"))
        ours = ct.evaluate(front.plan_for(answers=paper.expected_answers))
        assert ours.expected_answers <= paper.expected_answers * (1 + 1e-9)
        assert ours.misclassification <= paper.misclassification * (1 + 1e-9)


def test_plan_for_error_is_the_cheapest_candidate():
    front = ct.frontier(ct.example("table1").replace(worker_error=0.2))
    for error in (0.2, 0.05, 0.01, 0.001):
        value = ct.evaluate(front.plan_for(error=error))
        assert value.misclassification <= error
        cheaper = [p for p in front if p.misclassification <= error]
        assert not cheaper or value.expected_answers <= cheaper[0].expected_answers


@pytest.mark.parametrize("seed", range(6))
def test_leaves_are_left_undecided_as_few_items_as_possible(seed):
    """Against every choice of leaves: none leaves fewer undecided, but for part of one leaf."""
    problem = random_problem(seed, 6, 8, dashes=0.0).replace(dependence=0.2)
    point = ct.frontier(problem, max_votes=5)[-1]
    value = point.value
    assert value.leaf_share.sum() == pytest.approx(1)
    assert value.leaf_wrong.sum() == pytest.approx(value.misclassification)
    for error in np.quantile(value.leaf_wrong / value.leaf_share, [0.2, 0.5, 0.8]):
        least = 1.0
        for count in range(1, 7):
            for kept in map(list, itertools.combinations(range(6), count)):
                share = value.leaf_share[kept].sum()
                if value.leaf_wrong[kept].sum() <= error * share:
                    least = min(least, 1 - share)
        made = point.deciding(error)
        assert made.value.decided_error <= error * (1 + 1e-12)
        assert least - 1e-12 <= made.undecided <= least + value.leaf_share.max()


def test_undecided_items_make_an_error_cheaper_and_others_possible():
    problem = random_problem(3, 8, 10).replace(dependence=0.15)
    front = ct.frontier(problem, max_votes=9)
    least = front[-1].misclassification
    costs = [
        ct.evaluate(front.plan_for(error=1.5 * least, undecided=share)).expected_answers
        for share in (0, 0.1, 0.3, 0.6)
    ]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > costs[-1]
    with pytest.raises(ct.CrowdtreeError, match=r"leave .* of the items undecided") as refused:
        front.plan_for(error=least / 2)
    assert "\n" not in str(refused.value)
    plan = front.plan_for(error=least / 2, undecided=0.9)
    assert ct.evaluate(plan).decided_error <= least / 2


@pytest.mark.parametrize("stopping", ["none", "curtailed", "margin"])
def test_undecided_items_of_a_plan_are_reported_as_such(stopping, tmp_path):
    problem = random_problem(4, 7, 9).replace(dependence=0.15)
    plan = ct.frontier(problem, max_votes=7).plan_for(error=0.25, undecided=0.6)
    value = ct.evaluate(plan)
    assert 0 < value.undecided < 1
    ct.save(plan, tmp_path / "plan.json")
    again = ct.load(tmp_path / "plan.json")
    assert again.undecided == plan.undecided
    policy = ct.PlanPolicy(again, stopping)
    run = ct.simulate(problem, policy, 20_000, 1)
    assert run.undecided.low < value.undecided < run.undecided.high or stopping == "margin"
    assert run.decided_error.low < value.decided_error < run.decided_error.high or (
        stopping == "margin" and run.decided_error.low < 0.25
    )
    steps = ct.simulate(problem, ct.PlanPolicy.from_dict(problem, policy.to_dict()), 300, 1,
                        stepwise=True)  # fmt: skip
    block = ct.simulate(problem, policy, 300, 1)
    assert steps.reason.tolist() == block.reason.tolist()
    assert steps.label.tolist() == block.label.tolist()


def test_greedy_is_labelled_and_never_better_than_proven():
    problem = random_problem(5, 7, 10)
    proven, greedy = ct.frontier(problem), ct.frontier(problem, method="greedy")
    assert not greedy.proven
    assert {p.status for p in greedy} == {"greedy"}
    mine = np.array([(p.planned_cost, p.additive) for p in proven])
    theirs = np.array([(p.planned_cost, p.additive) for p in greedy])
    for slope in np.geomspace(1e-5, 10, 20):
        assert hull_value(mine, slope) <= hull_value(theirs, slope) * (1 + 1e-9)


def test_either_dashes_are_greedy_by_default():
    problem = random_problem(8, 5, 8).replace(dash="either")
    outcome = problem.outcome.copy()
    outcome[0, 0] = -1
    front = ct.frontier(problem.replace(outcome=outcome), max_votes=9)
    assert {p.status for p in front} == {"greedy"}
    with pytest.raises(ct.CrowdtreeError, match="greedy"):
        ct.frontier(problem.replace(outcome=outcome), method="optimal")


def test_a_node_limit_gives_a_valid_bound():
    problem = random_problem(2, 14, 14)
    front = ct.frontier(problem, max_votes=5, node_limit=20, max_points=6)
    again = ct.frontier(problem, max_votes=5, node_limit=20, max_points=6)
    assert front.to_dicts() == again.to_dicts()
    for point in front:
        assert point.gap >= 0
        assert (point.status == "optimal") == (point.gap == 0)


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda f: f.plan_for(), "exactly one of"),
        (lambda f: f.plan_for(error=0.01, answers=3), "exactly one of"),
        (lambda f: f.plan_for(error=1e-9), "out of reach"),
        (lambda f: f.plan_for(error=0.1, undecided=1), "between 0 and 1"),
        (lambda f: f.plan_for(answers=9, undecided=0.1), "give an error"),
        (lambda f: f.plan_for(error=0), "out of reach"),
        (lambda f: f.plan_for(error=float("nan")), "between 0 and 1"),
        (lambda f: f.plan_for(answers=0.5), "the cheapest plan found takes"),
        (lambda f: f.plan_for(answers=-3), "above 0"),
        (lambda f: ct.frontier(f.options.problem, price=-1), "must be positive"),
        (lambda f: ct.frontier(f.options.problem, price=1e308), "expected a number from"),
        (lambda f: ct.frontier(f.options.problem, price={"nope": 1}), "not in the problem"),
        (lambda f: ct.frontier(f.options.problem, time_limit=-1), "time_limit"),
        (lambda f: ct.frontier(f.options.problem, time_limit=float("nan")), "time_limit"),
        (lambda f: ct.frontier(f.options.problem, node_limit=0), "node_limit"),
        (lambda f: ct.frontier(f.options.problem, price=[1, 2]), "one per question"),
        (lambda f: ct.frontier(f.options.problem, "loudest"), "majority"),
        (lambda f: ct.frontier(f.options.problem, max_votes=0), "max_votes"),
        (lambda f: ct.frontier(f.options.problem, max_points=1), "max_points"),
    ],
)
def test_bad_input_gets_one_line_with_the_best_that_is_possible(ask, says):
    front = ct.frontier(ct.example("table1"), max_votes=5)
    with pytest.raises(ct.CrowdtreeError, match=says) as error:
        ask(front)
    assert "\n" not in str(error.value)


def test_priced_options_leave_out_only_what_cannot_be_best():
    problem = random_problem(4, 6, 6)
    options = Options.of(problem, "majority", 31, np.ones(6))
    for price in (1e-5, 1e-3, 0.05):
        total, first = options.priced(price)
        full = options.error + price * options.cost
        for members in itertools.combinations(range(6), 3):
            best = full[:, :, members].sum(axis=2)
            kept = total[:, :, members].sum(axis=2)
            assert kept.min(axis=0) == pytest.approx(best.min(axis=0), rel=1e-12)
            assert (first + kept.argmin(axis=0) == best.argmin(axis=0)).all()


def test_comparison_has_every_series_and_the_frontier_beats_the_paper():
    problem = random_problem(1, 8, 12, low=0.1, high=0.3)
    front = ct.frontier(problem)
    rows = compare(front)
    assert {row.series for row in rows} == {"ours", "paper", "random", "everyone", "floor", "guide"}
    for row in rows:
        assert row.low <= row.misclassification <= row.high
        if row.series == "floor":
            better = [p for p in front if p.misclassification <= row.misclassification]
            assert all(p.expected_answers >= row.cost - 1e-9 for p in better)


def test_the_paper_does_not_continue_below_a_frontier_that_ran_out_of_votes():
    front = ct.frontier(ct.example("table1"), method="greedy", max_votes=3)
    best = {
        series: min(row.misclassification for row in compare(front) if row.series == series)
        for series in ("ours", "paper")
    }
    assert best["ours"] <= best["paper"]


def test_prices_by_name():
    problem = ct.example("table1")
    prices = dict.fromkeys(problem.questions, 1.0)
    assert question_prices(problem, {**prices, "T2": 3.0}).tolist() == [1, 3, 1, 1, 1]
    with pytest.raises(ct.CrowdtreeError, match="missing; give"):
        ct.frontier(problem, price={"T2": 3.0})
    front = ct.frontier(problem, price={**prices, "T1": 100.0}, max_votes=3)
    assert "T1" not in {node.question for node in front[0].plan.tree.nodes}


@pytest.mark.filterwarnings("ignore:worker_error")
@pytest.mark.parametrize("worker_error", [0.0, 0.5])
def test_votes_that_never_help_end_the_search_and_can_be_drawn(worker_error):
    front = ct.frontier(ct.example("table1").replace(worker_error=worker_error), max_votes=5)
    assert front.plan_for(answers=10).votes.tolist() == [1, 1, 1, 1]
    rows = compare(front)
    assert np.isfinite([row.cost for row in rows]).all()
    assert {"ours", "paper"} <= {row.series for row in rows}


def test_a_root_that_no_question_splits_is_refused_with_groups_too():
    twins = ct.Problem(["a", "b"], None, ["q"], [[0, 0]], 0.1)
    with pytest.raises(ct.CrowdtreeError, match="no question splits the 2 classes"):
        ct.frontier(twins, allow_groups=True)


@pytest.mark.parametrize("calls", [1, 2, 4])
def test_an_interrupt_keeps_the_curve(calls, monkeypatch):
    import dataclasses

    from crowdtree.designs.frontiers import build

    real, asked = build.exact_solver, []

    def interrupted_solver(*arguments, **options):
        solve = real(*arguments, **options)

        def once(*limits):
            asked.append(limits)
            found = solve(*limits)
            late = len(asked) == calls
            return dataclasses.replace(found, status="interrupted") if late else found

        return once

    monkeypatch.setattr(build, "exact_solver", interrupted_solver)
    front = ct.frontier(random_problem(2, 8, 10), max_votes=9)
    assert len(asked) == calls
    assert front.status == "interrupted"
    assert not front.proven
    assert len(front) > 5


@pytest.mark.parametrize("most", [2, 5, 40])
def test_a_limit_of_points_is_kept_where_the_search_finds_known_trees_again(most):
    front = ct.frontier(ct.example("animals"), max_points=most)
    assert 2 <= len(front) <= most
    assert all(a.misclassification > b.misclassification for a, b in pairwise(front))
