"""Small problems are tabulated with NumPy: the values of the compiled search and of brute force."""

import subprocess
import sys

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.designs.designers import exact
from crowdtree.designs.designers.exact import exact_objective, search, tabulated
from tests.designs.search import test_additive, test_exact
from tests.designs.search.oracle import additive_value, random_problem
from tests.several import random_problem as random_several


@pytest.mark.parametrize("case", test_additive.CASES, ids=str)
def test_additive_equals_brute_force(case):
    rng = np.random.default_rng(1)
    for _ in range(30):
        problem = random_problem(rng, int(rng.integers(1, 8)), int(rng.integers(1, 9)), **case)
        test_additive.check(problem, exact.solve_additive(*problem))


@pytest.mark.parametrize("case", test_exact.CASES, ids=str)
def test_exact_equals_enumeration_of_all_trees(case):
    rng = np.random.default_rng(2)
    for _ in range(20):
        problem = random_problem(rng, int(rng.integers(1, 7)), int(rng.integers(1, 7)), **case)
        test_exact.check(problem, exact.solve_exact(*problem))


def test_same_values_as_the_compiled_search():
    rng = np.random.default_rng(3)
    for classes, questions, dash in ((10, 9, 0.1), (12, 8, 0.3), (9, 12, 0.0)):
        problem = random_problem(rng, classes, questions, dash=dash)
        for small, large in (
            (exact.solve_additive, search.solve_additive),
            (exact.solve_exact, exact_objective.solve_exact),
        ):
            assert small(*problem).value == pytest.approx(large(*problem).value, rel=1e-12)


CASES = [{}, {"dash": 0.2}, {"zero": 0.3}, {"common": True, "dash": 0.1}, {"ties": True}]


def yes_no(case, seed):
    rng = np.random.default_rng(seed)
    cells, error, prior = random_problem(rng, int(rng.integers(2, 9)), 7, **case)
    names = [f"c{i}" for i in range(len(prior))], prior, [f"q{i}" for i in range(len(cells))]
    return ct.Problem(*names, cells, error, dash="inapplicable")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_tabulated_compiled_and_general_search_find_the_same_least_misclassification(
    case, monkeypatch
):
    tried = 0
    for seed in range(12):
        problem = yes_no(case, seed)
        if exact.list_splits(problem.outcome).parent.size == 0:
            continue
        tried += 1
        options = {"objective": "exact", "allow_groups": True}
        proofs = [
            ct.verify(ct.design(problem, "optimal", **options, **limits))
            for limits in ({}, {"node_limit": 10**9})
        ]
        with monkeypatch.context() as without:
            without.setattr(exact, "list_splits", lambda *_, **__: None)
            without.setattr(exact, "can_compile", lambda: False)
            proofs.append(ct.verify(ct.design(problem, "optimal", **options)))
        assert [proof.status for proof in proofs] == ["optimal"] * 3
        for proof in proofs[1:]:
            assert proof.value == pytest.approx(proofs[0].value, rel=1e-9, abs=1e-12)
    assert tried >= 5


def test_which_search_serves_which_problem(monkeypatch):
    """Yes/no: the compiled search where numba is there, else the general one, as for the others."""
    used = []

    def note(module, name):
        search = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, **k: used.append(name) or search(*a, **k))

    note(exact_objective, "solve_exact")
    note(sys.modules["crowdtree.designs.designers.optimal"], "_least_wrong")
    monkeypatch.setattr(tabulated, "MAX_CELLS", 100)
    monkeypatch.setattr(tabulated, "MAX_CELLS_PLAIN", 100)
    several = random_several(np.random.default_rng(0), 5, 6, 3)
    ct.design(yes_no({}, 1), "optimal", objective="exact", allow_groups=True)
    ct.design(several, "optimal", objective="exact", allow_groups=True)
    monkeypatch.setattr(exact, "can_compile", lambda: False)
    ct.design(yes_no({}, 1), "optimal", objective="exact", allow_groups=True)
    assert used == ["solve_exact", "_least_wrong", "_least_wrong"]


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
