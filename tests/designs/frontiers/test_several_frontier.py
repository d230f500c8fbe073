"""Frontiers of questions with several answers, against all trees and votes."""

import itertools
import json

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.core.errors import CrowdtreeError
from crowdtree.designs.frontiers import all_plans, set_search
from crowdtree.designs.frontiers.all_plans import AllPlans, Limits
from crowdtree.designs.frontiers.compare import compare
from crowdtree.designs.frontiers.exact_votes import ExactVotes, Verdicts
from crowdtree.designs.frontiers.priced_search import Staffed
from crowdtree.designs.frontiers.vote_options import Options
from tests.several_problems import all_trees, random_problem

pytestmark = pytest.mark.filterwarnings("ignore::crowdtree.CrowdtreeWarning")
MAX_PLANS = 20_000


def drawn(seed, vote, **changes):
    """A problem with 2 to 5 answers, its options, and its trees, if all plans can be listed."""
    problem = random_problem(
        seed,
        unsure=seed % 4 == 1,
        dependence=0.2 if seed % 5 == 2 and vote == "majority" else 0.0,
        **changes,
    )
    price = np.random.default_rng(seed).uniform(0.5, 2, problem.n_questions)
    options = Options.of(problem, vote, 4 if vote == "majority" else 3, price)
    trees = list(itertools.islice(all_trees(problem), 101))
    plans = sum(len(options.votes) ** tree.n_nodes for tree in trees)
    return problem, options, trees if len(trees) <= 100 and 0 < plans <= MAX_PLANS else []


def all_votes(tree, options):
    return np.array(list(itertools.product(range(len(options.votes)), repeat=tree.n_nodes)))


def all_worths(trees, options):
    """Exact misclassification and expected cost of every plan."""
    verdicts = Verdicts(options)
    return np.concatenate(
        [np.array(ExactVotes(t, verdicts).worth(all_votes(t, options))) for t in trees], axis=1
    )


@pytest.mark.parametrize("vote", ["majority", "margin"])
def test_votes_are_worth_what_evaluation_says(vote):
    for seed in range(40):
        _, options, trees = drawn(seed, vote)
        for tree in trees[:2]:
            votes = all_votes(tree, options)
            error, cost = ExactVotes(tree, Verdicts(options)).worth(votes)
            staffed = Staffed(tree, options)
            for row in np.random.default_rng(seed).integers(0, len(votes), 2).tolist():
                plan = ct.Plan(tree, options.votes[votes[row]], vote)
                point = ct.designs.frontiers.Point(plan, options.price, np.nan, "")
                assert error[row] == pytest.approx(point.misclassification, abs=1e-12)
                assert cost[row] == pytest.approx(point.expected_cost)
                planned = staffed.with_votes(votes[row], 0.0)
                groups = point.value.group_error
                assert planned.error + groups == pytest.approx(point.additive, abs=1e-12)
                assert planned.cost == pytest.approx(point.planned_cost)


@pytest.mark.parametrize("vote", ["majority", "margin"])
@pytest.mark.parametrize(
    ("loss", "seeds", "least"),
    [
        (False, 16, 8),
        (True, 10, 4),
        pytest.param(False, 60, 30, marks=pytest.mark.slow),
        pytest.param(True, 25, 10, marks=pytest.mark.slow),
    ],
)
def test_supported_curve_is_that_of_all_plans(vote, loss, seeds, least):
    """Proven points: no tree and votes have less additive error plus price of their answers."""
    checked = 0
    for seed in range(seeds):
        problem, options, trees = drawn(seed, vote, loss=loss)
        if not trees:
            continue
        most = int(options.votes[-1])
        front = ct.frontier(problem, vote, price=options.price, max_votes=most, allow_groups=True)
        assert front.status == "optimal" or problem.is_yes_no
        staffed = [Staffed(tree, options) for tree in trees]
        for price in np.geomspace(3, 1e-3, 7):
            best = min(plans.at(price).at(price) for plans in staffed)
            shown = min(
                Staffed(p.plan.tree, options)
                .with_votes(np.searchsorted(options.votes, p.plan.votes), price)
                .at(price)
                for p in front.supported
            )
            assert shown >= best * (1 - 1e-9)
            assert front.gap > 0 or shown == pytest.approx(best, rel=1e-8)
        checked += front.proven
        costs = [point.expected_cost for point in front]
        assert costs == sorted(costs)
        assert all(a.risk > b.risk for a, b in itertools.pairwise(front))
    assert checked >= least


@pytest.mark.parametrize("vote", ["majority", "margin"])
@pytest.mark.parametrize("start", [0, pytest.param(50, marks=pytest.mark.slow)])
def test_selection_is_the_best_of_all_plans(vote, start):
    proven = 0
    for seed in range(start, start + 30):
        problem, options, trees = drawn(seed, vote)
        if not trees:
            continue
        error, cost = all_worths(trees, options)
        most = int(options.votes[-1])
        front = ct.frontier(problem, vote, price=options.price, max_votes=most, allow_groups=True)
        for share in (0.1, 0.4):
            target = float(np.quantile(error, share)) * (1 + 1e-9) + 1e-12
            chosen = front.select(target)
            best = cost[error <= target].min()
            assert chosen.point.misclassification <= target
            assert chosen.point.expected_cost >= best * (1 - 1e-9)
            if chosen.lower_bound is not None:
                assert chosen.lower_bound <= best * (1 + 1e-8)
                assert not chosen.proven or chosen.point.expected_cost <= best * (1 + 1e-8)
            proven += chosen.proven
        budget = float(np.quantile(cost, 0.3)) * (1 + 1e-9)
        chosen = front.select(cost=budget)
        best = error[cost <= budget].min()
        assert chosen.point.expected_cost <= budget * (1 + 1e-9)
        assert not chosen.proven or chosen.point.misclassification <= best * (1 + 1e-8) + 1e-12
        answers = front.select(answers=budget * 2)
        assert answers.point.expected_answers <= budget * 2 * (1 + 1e-9)
    assert proven > 25


def test_bound_of_the_search_is_below_every_plan():
    for seed in range(40):
        _, options, trees = drawn(seed, "majority")
        if not trees or options.problem.is_yes_no:
            continue
        error, cost = all_worths(trees, options)
        plans = AllPlans(options)
        for price in (1.0, 0.1, 0.01):
            assert plans.least(price)[0] <= (error + price * cost).min() * (1 + 1e-9)
        best = plans.search(Limits(1.0, float(cost.max()) * (1 + 1e-9), "error"))
        assert best.complete
        assert ct.evaluate(best.plan).misclassification == pytest.approx(error.min(), abs=1e-12)


def test_goal_that_is_out_of_reach_near_the_frontier_is_searched_for():
    """More votes may be worse, so a plan of few votes can reach what others do not."""
    problem, options, trees = drawn(17, "majority")
    error, cost = all_worths(trees, options)
    front = ct.frontier(problem, price=options.price, max_votes=4, allow_groups=True)
    best = float(error.min()) * (1 + 1e-9)
    chosen = front.select(best)
    assert chosen.proven
    assert chosen.point.expected_cost == pytest.approx(cost[error <= best].min())
    with pytest.raises(CrowdtreeError, match="the best tree found gets to"):
        front.select(best * 0.99)


def test_undecided_leaves_keep_the_error_of_the_others():
    problem = random_problem(3, classes=6, questions=5, definite=True)
    front = ct.frontier(problem, max_votes=5, allow_groups=True)
    least = front[-1].misclassification
    chosen = front.select(least * 0.8, undecided=0.9)
    assert chosen.point.decided_error <= least * 0.8
    assert 0 < chosen.point.undecided <= 0.9


def test_large_problems_get_greedy_points_that_claim_nothing(monkeypatch):
    monkeypatch.setattr(set_search, "MAX_CELLS", 1000)
    monkeypatch.setattr(all_plans, "MAX_SEVERAL_CELLS", 1000)
    problem = random_problem(5, classes=12, questions=8, definite=True)
    front = ct.frontier(problem, max_votes=5, max_points=20, allow_groups=True)
    assert front.status == "greedy"
    assert not front.proven
    assert len(front) > 3
    assert "nothing is proven" in front.select(answers=front[-1].expected_answers).proof
    with pytest.raises(CrowdtreeError, match="several answers is for small problems"):
        ct.frontier(problem, method="optimal", allow_groups=True)


def test_alternatives_are_compared_for_several_answers():
    """The chart's series, and all policies at one error; what is yes/no only is left out."""
    problem = random_problem(3, classes=4, questions=4, definite=True)
    series = {row.series for row in compare(ct.frontier(problem, max_votes=5), True)}
    assert series == {"ours", "paper", "random", "everyone", "floor", "guide"}
    found = ct.compare_policies(problem, 0.1, items=200, allow_groups=True)
    names = {row.policy for row in found.rows}
    expected = {"adaptive", "frontier, margin", "frontier, majority", "paper", "batch, Dawid-Skene"}
    assert expected <= names


def test_margin_of_dependent_answers_is_refused():
    problem = random_problem(2, dependence=0.2)
    with pytest.raises(CrowdtreeError, match="independent answers only"):
        ct.frontier(problem, "margin", allow_groups=True)


@pytest.mark.parametrize("vote", ["majority", "margin"])
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(k, marks=pytest.mark.slow) for k in range(2, 6))]
)
def test_two_named_answers_are_yes_and_no(seed, vote):
    """Through staff, evaluate, frontier, select and plan, to the bit."""
    rng = np.random.default_rng(seed)
    outcome = rng.integers(0, 2, (5, 5))
    outcome[0, :2] = 0, 1
    error = rng.uniform(0.02, 0.3, (5, 5))
    classes, questions = list("abcde"), [f"q{k}" for k in range(5)]
    plain = ct.Problem(classes, None, questions, outcome, error)
    words = np.array(["off", "on"])[outcome].tolist()
    named = ct.Problem(classes, None, questions, words, error, answers=[["off", "on"]] * 5)
    results = []
    for problem in (plain, named):
        tree = ct.design(problem, allow_groups=True)
        plan = ct.staff(tree, workers=8)
        front = ct.frontier(problem, vote, max_votes=5, allow_groups=True)
        best = front.select(answers=6.0)
        offered = ct.plan(problem, error=0.2, allow_groups=True, rng=0)
        results.append(
            [
                plan.votes.tolist(),
                ct.evaluate(plan).confusion.tolist(),
                ct.evaluate(plan).bounds._asdict(),
                [(p.misclassification, p.expected_cost, p.plan.votes.tolist()) for p in front],
                (front.status, front.gap),
                (best.plan.votes.tolist(), best.proven, best.lower_bound),
                [(c.kind, c.performance) for c in offered.choices],
            ]
        )
    assert json.dumps(results[0], default=str) == json.dumps(results[1], default=str)


def test_a_proof_names_the_questions_that_were_given_fewer_votes():
    """A lead over nine answers is a chain of too many states, so that only 1 was tried there."""
    names = [f"x{n}" for n in range(9)]
    outcome = [names, [0, 1] * 4 + [0]]
    problem = ct.Problem(
        list("abcdefghi"), None, ["cap", "ring"], outcome, 0.02, answers=[names, None]
    )
    proof = ct.frontier(problem, vote="margin", max_votes=5).select(error=0.1).proof
    assert "votes until a lead (at most 5 per question; 1 at cap)" in proof


@pytest.mark.parametrize("vote", ["majority", "margin"])
@pytest.mark.parametrize("count", [1, 2])
def test_no_tree_asks_again_where_that_gives_no_new_answer(vote, count):
    """Also where the error is out of reach, and no known plan limits the cost."""
    names = ["red", "brown", "white"]
    models = [ct.Source(f"m{n}", "model", price=0.01, worker_error=0.3) for n in range(count)]
    problem = ct.Problem(
        list("abc"), None, ["cap", "ring"], [names, ["yes", "no", "yes"]], 0.1,
        answers=[names, ["no", "yes"]], sources=models,
    )  # fmt: skip
    front = ct.frontier(problem, vote=vote, max_votes=9)
    with pytest.raises(ct.CrowdtreeError, match="out of reach"):
        front.plan_for(error=0.01)
    chosen = front.select(error=0.4)
    assert chosen.plan.votes.tolist() == [1] * chosen.plan.tree.n_nodes
    assert "(at most 9 per question; 1 where asking again gives no new answer)" in chosen.proof
    people = problem.replace(sources=[ct.Source("m0", "model", worker_error=0.3, repeatable=True)])
    assert ct.frontier(people, vote=vote, max_votes=9).plan_for(error=0.05).votes.max() > 1


def test_a_plan_of_models_alone_does_not_claim_what_they_cannot_reach():
    names = ["red", "brown", "white"]
    model = ct.Source("m", "model", price=0.01, worker_error=0.3)
    problem = ct.Problem(list("abc"), None, ["cap"], [names], 0.1, answers=[names], sources=[model])
    with pytest.raises(ct.CrowdtreeError, match="out of reach"):
        ct.plan(problem, error=0.01)
