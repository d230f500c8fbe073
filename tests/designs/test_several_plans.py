"""Votes, staffing and evaluation of questions with several answers, against enumeration."""

import itertools

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.plurality import plurality_wins
from crowdtree.designs.staffing import _Teams, random_means, single_mean
from tests.several_problems import all_trees, enumerated, pattern_chances, random_problem

pytestmark = pytest.mark.filterwarnings("ignore::crowdtree.CrowdtreeWarning")


@pytest.mark.parametrize("dependence", [0.0, 0.3])
@pytest.mark.parametrize("answers", [2, 3, 4, 5])
def test_plurality_error_is_that_of_all_patterns_of_votes(answers, dependence):
    rng = np.random.default_rng(answers)
    for votes in range(1, 6):
        for counted in (1.0, 0.7):
            row = rng.dirichlet(np.ones(answers)) * counted
            right = rng.choice(answers, int(rng.integers(1, answers)), replace=False).tolist()
            wrong = 0.0
            for counts, chance in pattern_chances(row, votes, dependence):
                leaders = [a for a, count in enumerate(counts) if count == max(counts)]
                wrong += chance * sum(a not in right for a in leaders) / len(leaders)
            assert ct.plurality_error(row, right, votes, dependence) == pytest.approx(wrong)


def test_numbers_of_votes_are_the_same_one_by_one_and_together():
    rows = np.random.default_rng(1).dirichlet(np.ones(3), 2) * 0.9
    votes = np.array([1, 2, 7, 50, 256, 257])
    together = plurality_wins(np.broadcast_to(rows, (len(votes), *rows.shape)), votes[:, None])
    for wins, n in zip(together, votes.tolist(), strict=True):
        assert wins == pytest.approx(plurality_wins(rows, n), abs=1e-12)


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_evaluation_is_that_of_all_patterns_of_votes(start):
    """Confusion, misclassification and expected answers, with skips and dependent answers."""
    for seed in range(start, start + 50):
        problem = random_problem(seed, unsure=seed % 3 == 0, dependence=0.25 * (seed % 4 == 0))
        rng = np.random.default_rng(seed)
        trees = list(itertools.islice(all_trees(problem), 20))
        if not trees:
            continue
        tree = trees[int(rng.integers(len(trees)))]
        plan = ct.Plan(tree, rng.integers(1, 4, tree.n_nodes))
        value = ct.evaluate(plan)
        confusion, answers = enumerated(plan)
        assert value.confusion == pytest.approx(confusion, abs=1e-12)
        wrong = problem.prior @ (confusion * (1 - np.eye(len(confusion)))).sum(axis=1)
        assert value.misclassification == pytest.approx(wrong, abs=1e-12)
        assert value.expected_answers == pytest.approx(answers)


def test_bounds_hold_where_right_answers_are_equally_common():
    """The misclassification is at most the additive error, which the level scores bound."""
    checked = 0
    for seed in range(120):
        problem = random_problem(seed).replace(table=None)
        for tree in itertools.islice(all_trees(problem), 5):
            votes = np.random.default_rng(seed).integers(1, 6, tree.n_nodes)
            value = ct.evaluate(ct.Plan(tree, votes))
            slack = 1 + 1e-9
            assert value.additive_is_bound
            assert value.misclassification <= value.additive * slack + 1e-12
            assert value.additive <= value.bounds.misclassification_upper * slack + 1e-12
            low, high = value.bounds.additive
            assert low <= (value.additive - value.group_error) * slack + 1e-12
            assert value.additive - value.group_error <= high * slack + 1e-12
            low, high = value.bounds.product
            assert low / slack <= value.multiplicative <= high * slack
            checked += 1
    assert checked > 200


@pytest.mark.parametrize(
    ("seeds", "least"),
    [(20, 20), pytest.param(70, 81, marks=pytest.mark.slow)],
    ids=["some", "all"],
)
@pytest.mark.parametrize("pool", ["node", "question"])
def test_marginal_staffing_is_optimal_where_its_steps_end(pool, seeds, least):
    """For the additive error, among all choices of votes with as many workers."""
    checked = 0
    for seed in range(seeds):
        problem = random_problem(seed, dependence=0.2 * (seed % 5 == 0))
        tree = next((t for t in all_trees(problem) if t.n_nodes > 1), None)
        if tree is None:
            continue
        teams = _Teams(tree, pool)
        most = 6
        alike = [ct.Plan(tree, np.full(tree.n_nodes, n)).node_error for n in range(1, most + 2)]
        error = np.array([np.bincount(teams.of_node, weights=row) for row in alike])
        steps = []
        for team in range(teams.count):
            for step, gain in itertools.islice(teams.gains(team), 3):
                steps.append((-gain / step, team, step))
        used = 0
        for _, _, step in sorted(steps, key=lambda entry: entry[0]):
            used += step
            if used > most:
                break
            plan = ct.staff(tree, workers=used, pool=pool)
            choices = itertools.product(range(used + 1), repeat=teams.count)
            best = min(
                error[list(extra), np.arange(teams.count)].sum()
                for extra in choices
                if sum(extra) <= used
            )
            assert plan.workers == teams.count + used
            assert plan.node_error.sum() == pytest.approx(best, rel=1e-9, abs=1e-12)
            checked += 1
    assert checked >= least


def test_steps_of_several_votes_pass_by_a_second_vote_that_changes_nothing():
    problem = ct.Problem(
        ["a", "b", "c"], None, ["q"], [["x", "y", "z"]], 0.3, answers=[["x", "y", "z"]]
    )
    tree = ct.design(problem)
    errors = [ct.plurality_error([0.7, 0.15, 0.15], 0, n) for n in range(1, 5)]
    assert errors[0] == pytest.approx(errors[1])
    assert errors[3] < errors[2]
    assert [ct.staff(tree, workers=w).votes.tolist() for w in (1, 2)] == [[1], [3]]


def test_all_methods_staff_questions_with_several_answers():
    problem = random_problem(7, classes=6, questions=5)
    tree = ct.design(problem, allow_groups=True)
    for method in ("marginal", "paper-fm", "paper-fc", "single", "random", "everyone"):
        plan = ct.staff(tree, workers=12, method=method, rng=0)
        assert plan.votes.sum() > tree.n_nodes
        assert 0 < ct.evaluate(plan).misclassification < 1
    with pytest.raises(CrowdtreeError, match="expected yes/no questions only"):
        random_means(tree, 4)
    plans = [ct.Plan(tree, 1 + 4 * here) for here in np.eye(tree.n_nodes, dtype=int)]
    mean = np.mean([ct.evaluate(plan).misclassification for plan in plans])
    assert single_mean(tree, 4) == pytest.approx(mean)


def test_additive_risk_bounds_the_risk_of_several_right_answers():
    """A class with several right answers can take a wrong branch, too."""
    for seed in range(60):
        problem = random_problem(seed, loss=True).replace(table=None)
        for tree in itertools.islice(all_trees(problem), 3):
            value = ct.evaluate(ct.Plan(tree, np.full(tree.n_nodes, 3)))
            assert value.risk <= value.additive_risk * (1 + 1e-9) + 1e-12


def test_additive_error_of_uneven_right_answers_is_an_approximation():
    problem = ct.Problem(
        ["a", "b"],
        [0.5, 0.5],
        ["cap", "ring"],
        [["red|brown", "white"], ["no", "yes"]],
        0.1,
        answers=[["red", "brown", "white"], ["no", "yes"]],
        table={"cap": [[0.8, 0.05], [0.1, 0.05], [0.1, 0.9]]},
    )
    value = ct.evaluate(ct.design(problem))
    assert not value.additive_is_bound
    assert ct.evaluate(ct.design(problem.replace(table=None))).additive_is_bound
    skipped = problem.replace(table=None, unsure=0.1)
    assert not ct.evaluate(ct.design(skipped)).additive_is_bound
