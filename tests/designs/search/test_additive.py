import _thread
import signal
import threading
import time

import numpy as np
import pytest

from crowdtree.designs.designers.exact import tables
from crowdtree.designs.designers.exact.search import solve_additive
from tests.designs.search.oracle import additive_of, additive_value, random_problem

CASES = [
    {},
    {"dash": 0.15},
    {"dash": 0.4},
    {"zero": 0.3},
    {"common": True},
    {"ties": True},
    {"variants": 3},
    {"variants": 2, "dash": 0.1, "zero": 0.2},
]


def check(problem, *solutions):
    expected = additive_value(*problem)
    for solution in solutions:
        assert solution.status == "optimal"
        assert solution.gap == 0
        assert solution.value == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert additive_of(*problem, solution) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_brute_force(case):
    rng = np.random.default_rng(1)
    for _ in range(50):
        problem = random_problem(rng, int(rng.integers(1, 8)), int(rng.integers(1, 9)), **case)
        check(problem, solve_additive(*problem))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_larger_problems(case):
    """More classes than the local solver takes, so that the search itself is exercised."""
    rng = np.random.default_rng(2)
    for _ in range(8):
        problem = random_problem(rng, int(rng.integers(9, 13)), int(rng.integers(4, 9)), **case)
        check(problem, *(solve_additive(*problem, memory_limit_bytes=m) for m in (1 << 24, 600)))


def test_wide_sets():
    """More than 64 classes: two words per set."""
    rng = np.random.default_rng(3)
    outcome = np.array([[(c >> b) & 1 for c in range(70)] for b in range(7)], dtype=np.int8)
    cost = np.full((7, 70), 0.1)
    weight = np.full(70, 1 / 70)
    solution = solve_additive(outcome, cost, weight, time_limit=20)
    assert solution.status == "optimal"
    assert solution.value == pytest.approx(additive_of(outcome, cost, weight, solution))
    problem = random_problem(rng, 70, 12)
    solution = solve_additive(*problem, time_limit=5)
    assert solution.lower_bound <= solution.value
    assert additive_of(*problem, solution) == pytest.approx(solution.value)


def test_evictions_are_counted():
    problem = random_problem(np.random.default_rng(4), 16, 16)
    free = solve_additive(*problem)
    tight = solve_additive(*problem, memory_limit_bytes=600)
    assert tight.forgotten > 0
    assert tight.value == pytest.approx(free.value)


def test_node_limit_is_deterministic_and_bound_is_valid():
    problem = random_problem(np.random.default_rng(5), 22, 22)
    optimum = solve_additive(*problem).value
    for limit in (0, 1, 10, 50, 100, 200, 400, 800):
        first = solve_additive(*problem, node_limit=limit)
        second = solve_additive(*problem, node_limit=limit)
        assert first.value == second.value
        assert first.lower_bound == second.lower_bound
        assert first.question.tolist() == second.question.tolist()
        assert first.lower_bound <= optimum + 1e-12 <= first.value + 2e-12
        assert additive_of(*problem, first) == pytest.approx(first.value)


def test_gap_limit():
    problem = random_problem(np.random.default_rng(6), 22, 22)
    solution = solve_additive(*problem, gap_limit=0.2)
    assert solution.status in ("gap limit", "optimal")
    assert solution.gap <= 0.2


def test_time_before_the_search_counts():
    problem = random_problem(np.random.default_rng(7), 90, 100)
    solution = solve_additive(*problem, time_limit=1000.0, began=time.monotonic() - 2000.0)
    assert solution.status == "time limit"
    assert additive_of(*problem, solution) == pytest.approx(solution.value)


def test_time_limit():
    problem = random_problem(np.random.default_rng(7), 90, 100)
    solution = solve_additive(*problem, time_limit=1.0)
    assert solution.status == "time limit"
    assert 0 < solution.lower_bound < solution.value
    assert additive_of(*problem, solution) == pytest.approx(solution.value)


def test_interrupt_returns_the_best_tree():
    problem = random_problem(np.random.default_rng(8), 90, 100)
    solve_additive(*random_problem(np.random.default_rng(8), 9, 9))  # compiles
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # may be ignored by a runner
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    try:
        solution = solve_additive(*problem, time_limit=20.0)
    finally:
        signal.signal(signal.SIGINT, before)
    assert solution.status == "interrupted"
    assert solution.value > solution.lower_bound
    assert additive_of(*problem, solution) == pytest.approx(solution.value)


def test_one_class_and_inseparable():
    one = solve_additive(np.zeros((3, 1), np.int8), np.ones((3, 1)), np.ones(1))
    assert one.value == 0
    assert one.status == "optimal"
    assert [leaf.tolist() for leaf in one.leaves] == [[0]]
    same = solve_additive(np.zeros((3, 20), np.int8), np.ones((3, 20)), np.full(20, 0.05))
    assert same.value == 0
    assert len(same.leaves) == 1


def test_final_groups_do_not_depend_on_order():
    rng = np.random.default_rng(10)
    for _ in range(50):
        outcome, _, _ = random_problem(rng, 7, 6, dash=0.3)
        groups = {frozenset(g.tolist()) for g in tables.final_groups(outcome)}
        shuffled = {frozenset(g.tolist()) for g in tables.final_groups(outcome[::-1])}
        assert groups == shuffled
