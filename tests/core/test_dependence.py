"""Correlated answers to one question on one item: votes, staffing, plans and files."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

import crowdtree as ct
from crowdtree.core import voting
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.problem import Problem
from crowdtree.io import load_problem, save_problem
from crowdtree.policies import PlanPolicy, expected_answers, with_votes_by
from crowdtree.simulation import simulate

PROBLEM = ct.example("table1").replace(worker_error=0.2)
TOGETHER = PROBLEM.replace(dependence=0.3)
rhos = st.sampled_from([0.01, 0.1, 0.3, 0.7, 0.95])
some_errors = st.floats(0.0, 0.5)


def patterns(error: Fraction, rho: Fraction, votes: int):
    """Every sequence of answers (1: wrong) with its exact probability, by Polya's urn."""
    for answers in itertools.product((0, 1), repeat=votes):
        chance, wrong = Fraction(1), 0
        for turn, said in enumerate(answers):
            share = ((1 - rho) * error + rho * wrong) / ((1 - rho) + rho * turn)
            chance *= share if said else 1 - share
            wrong += said
        yield answers, chance


@pytest.mark.parametrize("votes", range(1, 9))
@pytest.mark.parametrize("rho", [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)])
@pytest.mark.parametrize("error", [Fraction(0), Fraction(1, 20), Fraction(3, 10), Fraction(3, 5)])
def test_majority_and_curtailed_votes_by_enumeration(error, rho, votes):
    wrong = answers = Fraction(0)
    for pattern, chance in patterns(error, rho, votes):
        lost = sum(pattern)
        tie = Fraction(1, 2) if 2 * lost == votes else 0
        wrong += chance * (1 if 2 * lost > votes else tie)
        answers += chance * _decided_after(pattern)
    found = voting.majority_error(float(error), votes, float(rho))
    assert float(found) == pytest.approx(float(wrong), rel=1e-10)
    assert float(voting.curtailed_votes(float(error), votes, float(rho))) == pytest.approx(
        float(answers), rel=1e-10
    )


def _decided_after(pattern):
    """Answers after which a majority is decided; the first answer settles a tie."""
    votes = len(pattern)
    for count in range(1, votes + 1):
        for side in (0, 1):
            have = pattern[:count].count(side)
            tie = votes % 2 == 0 and pattern[0] == side
            if have >= votes // 2 + 1 - tie:
                return count
    raise AssertionError


@pytest.mark.parametrize("margin", [1, 2, 3, 5])
@pytest.mark.parametrize(("error", "rho"), [(0.2, 0.3), (0.1, 0.1), (0.45, 0.6)])
def test_margin_votes_are_the_mean_over_the_items_own_share(error, rho, margin):
    a, b = error * (1 - rho) / rho, (1 - error) * (1 - rho) / rho
    edge = np.linspace(0, 1, 20_001)
    share = beta.ppf((edge[1:] + edge[:-1]) / 2, a, b)
    found = voting.margin_error(error, margin, rho), voting.margin_votes(error, margin, rho)
    assert float(found[0]) == pytest.approx(voting.margin_error(share, margin).mean(), abs=2e-4)
    assert float(found[1]) == pytest.approx(voting.margin_votes(share, margin).mean(), rel=2e-3)


@given(some_errors, st.integers(1, 30))
def test_zero_dependence_is_independence(error, votes):
    for rule in (voting.majority_error, voting.margin_error, voting.margin_votes):
        assert float(rule(error, votes, 0.0)) == float(rule(error, votes))
    assert float(voting.curtailed_votes(error, votes, 0.0)) == float(
        voting.curtailed_votes(error, votes)
    )


@settings(deadline=None)
@given(st.floats(0.01, 0.45), rhos)
def test_votes_never_beat_the_floor_and_approach_it(error, rho):
    floor = beta.sf(0.5, error * (1 - rho) / rho, (1 - error) * (1 - rho) / rho)
    found = voting.majority_error(error, np.array([1, 3, 9, 33, 129, 1001]), rho)
    assert np.all(np.diff(found) <= 1e-12)
    assert np.all(found >= floor * (1 - 1e-9) - 1e-12)
    assert found[-1] - floor <= 0.05 * error + 1e-4
    assert float(voting.margin_error(error, 4, rho)) >= floor - 1e-9


@settings(deadline=None)
@given(st.floats(0.0, 0.5), rhos)
def test_gains_shrink_and_add_up(error, rho):
    source = voting.majority_gains(np.array([error]), rho)
    gains = np.array([float(next(source)[0]) for _ in range(12)])
    fused = voting.majority_error(error, 2 * np.arange(13) + 1, rho)
    np.testing.assert_allclose(-np.diff(fused), gains, atol=1e-12)
    assert np.all(np.diff(gains) <= 1e-15)


def test_marginal_staffing_stays_optimal():
    """All ways to distribute 8 more workers over the tree, in pairs."""
    tree = ct.design(TOGETHER)
    best = ct.evaluate(ct.staff(tree, 8)).additive
    ways = itertools.product(range(5), repeat=tree.n_nodes)
    every = [
        ct.evaluate(ct.Plan(tree, 1 + 2 * np.array(way))).additive for way in ways if sum(way) == 4
    ]
    assert best == pytest.approx(min(every), rel=1e-12)


def test_plans_cost_and_err_as_simulated():
    plan = ct.staff(ct.design(TOGETHER), workers=16)
    exact = ct.evaluate(plan).misclassification
    assert exact > 2 * ct.evaluate(ct.staff(ct.design(PROBLEM), workers=16)).misclassification
    for stopping in ("none", "curtailed", "margin"):
        policy = PlanPolicy(plan, stopping)
        run = simulate(TOGETHER, policy, 20_000)
        assert run.answers_per_item.low < expected_answers(plan, stopping) + 0.02
        assert run.answers_per_item.high > expected_answers(plan, stopping) - 0.02
        # the posterior knows it too: what is stated is what happens
        assert abs(float(run.stated_error) - float(run.misclassification)) < 0.01
    margins = with_votes_by(plan, "margin")
    for step in plan.tree.steps:
        definite = step.answer != -1
        node, cls = step.node[definite], step.cls[definite]
        below = margins.error_at(node, cls) <= plan.error_at(node, cls) * (1 + 1e-6)
        assert np.all(below | (margins.votes[node] == 25))


@pytest.mark.parametrize("vote", ["majority", "margin"])
def test_the_frontier_knows_that_votes_have_a_floor(vote):
    alone = ct.frontier(PROBLEM, vote=vote, max_votes=7)
    together = ct.frontier(TOGETHER, vote=vote, max_votes=7)
    assert together[-1].misclassification > 3 * alone[-1].misclassification
    point = together[-1]
    assert point.misclassification == pytest.approx(ct.evaluate(point.plan).misclassification)


def test_vectorised_and_step_by_step_agree_with_dependence():
    plan = ct.staff(ct.design(TOGETHER), workers=8)
    for policy in (PlanPolicy(plan), PlanPolicy(plan, "margin"), ct.BatchPolicy(TOGETHER, 3)):
        fast = simulate(TOGETHER, policy, 200)
        slow = simulate(TOGETHER, policy, 200, stepwise=True)
        np.testing.assert_array_equal(fast.label, slow.label)
        np.testing.assert_allclose(fast.posterior_error, slow.posterior_error, atol=1e-10)


@pytest.mark.parametrize("name", ["p.yaml", "p.json", "p.csv", "p.xlsx", "p.tsv"])
def test_files_keep_the_dependence(tmp_path: Path, name: str):
    save_problem(TOGETHER, tmp_path / name)
    assert load_problem(tmp_path / name) == TOGETHER
    save_problem(PROBLEM, tmp_path / name)
    assert "dependence" not in (tmp_path / name).read_bytes().decode("latin1")
    assert load_problem(tmp_path / name).dependence == 0.0


def test_a_question_may_be_called_dependence(tmp_path: Path):
    problem = Problem(["a", "b"], None, ["dependence"], [[0, 1]], 0.1, dependence=0.2)
    save_problem(problem, tmp_path / "p.csv")
    assert load_problem(tmp_path / "p.csv") == problem


def test_the_dependence_makes_another_problem():
    assert TOGETHER != PROBLEM
    assert "dependence=0.3" in repr(TOGETHER)


@pytest.mark.parametrize("wrong", [1, -0.1, float("nan"), "much", None])
def test_an_invalid_dependence_is_refused(wrong):
    with pytest.raises(CrowdtreeError, match="dependence: expected a number from 0 to below 1"):
        PROBLEM.replace(dependence=wrong)


def test_the_command_line_takes_a_dependence(capsys):
    from crowdtree.cli.app import main

    found = []
    for words in ([], ["--dependence", "0.3"]):
        with pytest.raises(SystemExit) as ended:
            main(["staff", "example:table1", "--workers", "20", "--json", *words])
        assert ended.value.code == 0
        found.append(json.loads(capsys.readouterr().out)["misclassification"])
    assert found[1] > 2 * found[0]
