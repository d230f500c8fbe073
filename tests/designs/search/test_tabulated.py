"""Small problems are tabulated with NumPy: the values of the compiled search and of brute force."""

import subprocess
import sys

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.designs.designers import exact
from crowdtree.designs.designers.exact import search, tabulated
from tests.designs.search import test_additive
from tests.designs.search.oracle import additive_value, random_problem


@pytest.mark.parametrize("case", test_additive.CASES, ids=str)
def test_additive_equals_brute_force(case):
    rng = np.random.default_rng(1)
    for _ in range(30):
        problem = random_problem(rng, int(rng.integers(1, 8)), int(rng.integers(1, 9)), **case)
        test_additive.check(problem, exact.solve_additive(*problem))


def test_same_values_as_the_compiled_search():
    rng = np.random.default_rng(3)
    for classes, questions, dash in ((10, 9, 0.1), (12, 8, 0.3), (9, 12, 0.0)):
        problem = random_problem(rng, classes, questions, dash=dash)
        small, large = (solve(*problem) for solve in (exact.solve_additive, search.solve_additive))
        assert small.value == pytest.approx(large.value, rel=1e-12)


def test_problems_with_many_sets_are_left_to_the_search(monkeypatch):
    problem = random_problem(np.random.default_rng(4), 12, 12)
    assert tabulated.list_splits(problem[0]) is not None
    monkeypatch.setattr(tabulated, "MAX_CELLS", 100)
    assert tabulated.list_splits(problem[0]) is None
    assert exact.solve_additive(*problem).value == pytest.approx(additive_value(*problem))


def test_ties_go_to_the_first_question():
    outcome = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 1]], np.int8)
    solution = exact.solve_additive(outcome, np.full((3, 4), 0.1), np.full(4, 0.25))
    assert solution.question.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    "work",
    [
        "ct.design(problem, 'optimal')",
        "ct.design(problem, 'optimal', objective='exact', time_limit=5)",
        "ct.frontier(problem, max_votes=5)",
    ],
)
def test_small_problems_never_load_the_compiler(work):
    code = (
        f"import sys, crowdtree as ct; problem = ct.example('animals'); {work}; "
        "print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_tree_is_certified_as_before():
    tree = ct.design(ct.example("animals"), "optimal")
    assert ct.verify(tree).status == "optimal"
    assert tree.certificate.value == pytest.approx(0.32285)
