import numpy as np
import pytest

from crowdtree.designs.designers.exact.exact_objective import label_weights, solve_exact, tree_loss
from tests.designs.search.oracle import exact_value, random_problem, splitting

CASES = [
    {},
    {"dash": 0.15},
    {"dash": 0.4},
    {"zero": 0.3},
    {"common": True},
    {"common": True, "dash": 0.2},
    {"ties": True},
]


def expected_value(outcome, error, weight):
    labelled, wrong = label_weights(outcome, weight)
    return exact_value(outcome, error, labelled) + wrong


def check(problem, *solutions):
    outcome, error, weight = problem
    labelled, wrong = label_weights(outcome, weight)
    expected = expected_value(*problem)
    for solution in solutions:
        check_solution(outcome, error, labelled, wrong, expected, solution)


def check_solution(outcome, error, labelled, wrong, expected, solution):
    assert solution.status == "optimal"
    assert solution.gap == 0
    assert solution.value == pytest.approx(expected, rel=1e-9, abs=1e-12)
    tree = (solution.question, solution.variant, solution.children, solution.leaves)
    assert tree_loss(tree, outcome, error, labelled) + wrong == pytest.approx(expected)
    for leaf in solution.leaves:
        assert not list(splitting(outcome, frozenset(leaf.tolist())))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_enumeration_of_all_trees(case):
    rng = np.random.default_rng(1)
    for _ in range(30):
        problem = random_problem(rng, int(rng.integers(1, 7)), int(rng.integers(1, 7)), **case)
        check(problem, *(solve_exact(*problem, memory_limit_bytes=m) for m in (1 << 24, 1200)))


def test_seven_classes():
    rng = np.random.default_rng(2)
    for _ in range(10):
        problem = random_problem(rng, 7, 6)
        check(problem, solve_exact(*problem))


def test_error_of_one_is_legal():
    outcome = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]], dtype=np.int8)
    error = np.array([[1.0] * 4, [0.2] * 4, [0.5] * 4])
    check((outcome, error, np.full(4, 0.25)), solve_exact(outcome, error, np.full(4, 0.25)))
    error[1, 2] = 1.0
    check((outcome, error, np.full(4, 0.25)), solve_exact(outcome, error, np.full(4, 0.25)))


def test_interrupted_runs_have_valid_bounds():
    problem = random_problem(np.random.default_rng(3), 11, 10)
    optimum = solve_exact(*problem).value
    for limit in (0, 5, 50, 500, 2000):
        first = solve_exact(*problem, node_limit=limit)
        second = solve_exact(*problem, node_limit=limit)
        assert first.lower_bound <= optimum + 1e-12 <= first.value + 2e-12
        assert (first.value, first.lower_bound) == (second.value, second.lower_bound)
        assert first.question.tolist() == second.question.tolist()


def test_time_limit():
    problem = random_problem(np.random.default_rng(4), 40, 40)
    solution = solve_exact(*problem, time_limit=1.0)
    assert solution.status == "time limit"
    assert 0 < solution.lower_bound < solution.value
