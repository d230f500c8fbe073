"""The choice of a plan against every tree with every choice of votes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.core.fixed_plan import Plan
from crowdtree.core.tree import Tree
from crowdtree.designs.frontiers import all_plans
from crowdtree.designs.frontiers.exact_votes import ExactVotes, Verdicts
from tests.contracts.oracle import all_trees
from tests.designs.frontiers.test_frontier import random_problem

WASTE = """question,error,glass,metal,paper,food
prior,,0.2,0.15,0.35,0.3
shiny,0.1,1,1,0,0
clear,0.05,1,0,0,0
rots,0.1,0,0,0,1
"""


def every_plan(options):
    """Error and cost of every tree with every vote of every node: exact, wrong turns included."""
    problem = options.problem
    for nested in all_trees(problem):
        tree = Tree.from_dict(problem, nested)
        votes = list(itertools.product(range(len(options.votes)), repeat=tree.n_nodes))
        yield from zip(*ExactVotes(tree, Verdicts(options)).worth(np.array(votes)), strict=True)


@pytest.mark.filterwarnings("ignore:worker_error")
@pytest.mark.parametrize("vote", ["majority", "margin"])
@pytest.mark.parametrize("count", [30, pytest.param(120, marks=pytest.mark.slow)])
def test_no_plan_is_better_than_the_one_that_is_said_to_be_best(vote, count):
    """Many small problems, at errors and budgets between those of the frontier's points."""
    rng = np.random.default_rng(7)
    proven = 0
    for seed in range(count):
        classes = 3 + seed % 2
        dashes = 0.1 * (seed % 3 == 2)
        problem = random_problem(seed, classes, 3, high=0.5 if seed % 5 else 0.55, dashes=dashes)
        price = rng.uniform(0.5, 2.0, 3) if seed % 4 == 1 else np.ones(3)
        most = 9 if vote == "majority" else 5
        front = ct.frontier(problem, vote, max_votes=most, price=price)
        error, cost = np.array(list(every_plan(front.options))).T
        wanted = float(rng.uniform(error.min() * 1.02, min(0.5, error.max())))
        chosen = front.select(error=wanted)
        assert chosen.point.misclassification <= wanted
        assert chosen.lower_bound <= cost[error <= wanted].min() * (1 + 1e-9)
        budget = float(rng.uniform(cost.min() * 1.01, cost.max()))
        best = front.select(cost=budget)
        assert best.point.expected_cost <= budget * (1 + 1e-9)
        assert best.lower_bound <= error[cost <= budget].min() * (1 + 1e-9)
        if chosen.proven:
            assert chosen.point.expected_cost <= cost[error <= wanted].min() * (1 + 1e-8)
        if best.proven:
            assert best.point.misclassification <= error[cost <= budget].min() * (1 + 1e-8)
        proven += chosen.proven + best.proven
    assert proven == 2 * count


def test_the_waste_table_of_the_first_page_gets_its_cheapest_plan():
    problem = ct.load_problem(WASTE.encode(), name="waste.csv")
    chosen = ct.frontier(problem).select(error=0.01)
    assert (chosen.proven, chosen.point.expected_cost) == (True, pytest.approx(12.0))
    assert chosen.proof.startswith("proven: no tree with majority votes")
    best = ct.frontier(problem).select(answers=12.3)
    assert best.point.misclassification == pytest.approx(0.00868, abs=1e-5)


def test_answers_are_answers_also_where_questions_have_prices():
    problem = ct.example("table1")
    price = np.linspace(5.0, 40.0, problem.n_questions)
    chosen = ct.frontier(problem, "margin", price=price).select(answers=4.0)
    assert 3.0 < chosen.point.expected_answers <= 4.0
    assert chosen.point.expected_cost > 20
    assert chosen.proven


def test_a_search_that_is_cut_short_states_a_bound():
    problem = random_problem(5, 8, 10)
    front = ct.frontier(problem, max_votes=21)
    full = front.select(error=0.05)
    options = front.options
    start = all_plans.Limits(0.05, 2 * full.point.expected_cost, "cost")
    cut = all_plans.AllPlans(options).search(start, max_expansions=3)
    assert not cut.complete
    assert 0.5 * full.point.expected_cost < cut.lower_bound <= full.point.expected_cost


def test_plans_of_the_search_are_worth_what_the_evaluation_says():
    problem = random_problem(11, 6, 7, dashes=0.1)
    options = ct.frontier(problem, "margin", max_votes=8).options
    found = all_plans.AllPlans(options).search(all_plans.Limits(0.03, 1e6, "cost"))
    value = ct.evaluate(found.plan)
    assert isinstance(found.plan, Plan)
    assert value.misclassification <= 0.03
    assert value.expected_answers == pytest.approx(found.lower_bound, rel=1e-6)
