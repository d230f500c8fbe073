"""Designs: the joint choice of a level against the enumeration of all joint choices."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import crowdtree as ct
from crowdtree import CrowdtreeError, Problem, Tree
from crowdtree.core import scores
from crowdtree.designs.designers import grow, joint
from crowdtree.designs.designers.grow import OpenNodes, read_level_plain, read_level_several
from tests.contracts import check_tree
from tests.contracts.oracle import Choice, count_choices, level_choices
from tests.strategies import problems

MOST = 3_000


def fm_score(choice: Choice) -> float:
    return choice.drop / choice.error if choice.error > 0 else math.inf


def fc_score(r: float) -> Callable[[Choice], float]:
    def score(choice: Choice) -> float:
        if choice.error == 0:
            return math.inf
        shrink = math.log((choice.before + r) / (choice.before - choice.drop + r))
        return shrink / -math.log(1 - choice.error)

    return score


def minus_printed_score(choice: Choice) -> float:
    ratio = (choice.before + 1) / (choice.before - choice.drop + 1)
    return -ratio / (1 - choice.error)


def check_levels(tree: Tree, score: Callable[[Choice], float], most: int = MOST) -> None:
    """Every level of the tree has the best score of all its joint choices."""
    problem = tree.problem
    assume(max(count_choices(problem, tree, d) for d in range(tree.depth)) <= most)
    for depth in range(tree.depth):
        choices = list(level_choices(problem, tree, depth))
        taken = tuple(tree.question[tree.level == depth].tolist())
        mine = next(choice for choice in choices if choice.questions == taken)
        best = max(map(score, choices))
        if best == math.inf:
            assert score(mine) == math.inf
            free = max(choice.drop for choice in choices if score(choice) == math.inf)
            assert mine.drop >= free * (1 - 1e-8)
        else:
            assert score(mine) >= best - 1e-8 * abs(best), (mine, best)


few = {"classes": (2, 6), "questions": (2, 6), "separable": True}
strict_or_whole = st.one_of(
    problems(**few), problems(classes=(3, 7), questions=(2, 6), dash="inapplicable")
)


def designed(problem: Problem, method: str, **options: object) -> Tree:
    try:
        return ct.design(problem, method, allow_groups=True, **options)
    except CrowdtreeError:
        assume(False)
        raise


@given(strict_or_whole)
@settings(max_examples=200)
def test_fm_is_the_best_joint_choice_of_every_level(problem: Problem) -> None:
    check_levels(designed(problem, "fm"), fm_score)


@pytest.mark.parametrize("r", [1.0, 0.2, 5.0])
@given(problem=strict_or_whole)
@settings(max_examples=120)
def test_fc_is_the_best_joint_choice_of_every_level(r: float, problem: Problem) -> None:
    check_levels(designed(problem, "fc", r=r), fc_score(r))


@given(strict_or_whole)
@settings(max_examples=120)
def test_fc_printed_is_the_best_joint_choice_of_every_level(problem: Problem) -> None:
    check_levels(designed(problem, "fc-printed"), minus_printed_score)


@st.composite
def noisy(draw: st.DrawFn) -> Problem:
    """Errors so high that levels lose more items than entropy: scores below 1."""
    problem = draw(problems(**few, errors=("cell",), dash="inapplicable"))
    high = 0.3 + problem.worker_error / 3
    return problem.replace(worker_error=high)


@given(noisy())
@settings(max_examples=120)
def test_fc_below_one_is_enumerated(problem: Problem) -> None:
    tree = designed(problem, "fc")
    assume(any(level.fc is not None and level.fc < 1 for level in tree.levels))
    check_levels(tree, fc_score(1.0))


def test_fc_below_one_is_not_a_corner() -> None:
    """A level whose best choice lies inside the hull: the corners alone would miss it.

    Three points of (error, gain) on one node, the middle one below the line of the others.
    """
    gain = np.array([[0.30, 0.5, 0.9]])
    error = np.array([[0.30, 0.4, 0.70]])

    def score(drop: np.ndarray, wrong: np.ndarray) -> np.ndarray:
        return np.log(2 / (2 - drop)) / -np.log(1 - wrong)

    values = score(gain[0], error[0])
    assert values.max() < 1
    corner = int(joint.best_vertex(gain, error, score)[0])
    every = joint.enumerate_choices([joint.undominated(gain[0], error[0])], gain, error, score)
    assert every is not None
    assert values[every[0]] == values.max()
    assert values[corner] <= values.max()


# ------------------------------------------------------------------ the joint choice alone

points = st.integers(1, 4).flatmap(
    lambda nodes: st.lists(
        st.lists(
            st.tuples(
                st.sampled_from([0.0, 1e-12, 0.05, 0.1, 0.2]) | st.floats(1e-6, 0.2),
                st.sampled_from([0.0, 0.1, 0.2]) | st.floats(0.001, 0.25),
                st.booleans(),
            ),
            min_size=5,
            max_size=5,
        ),
        min_size=nodes,
        max_size=nodes,
    )
)


def tables(drawn: list[list[tuple[float, float, bool]]]) -> tuple[np.ndarray, np.ndarray]:
    gain = np.array([[g if ok else -np.inf for _, g, ok in node] for node in drawn])
    error = np.array([[e for e, _, _ in node] for node in drawn]) / len(drawn)
    assume(np.all(gain.max(axis=1) > 0))
    return gain, error


def combinations(gain: np.ndarray, error: np.ndarray) -> list[tuple[float, float]]:
    rows = range(len(gain))
    options = [np.flatnonzero(gain[k] > -np.inf) for k in rows]
    return [
        (sum(gain[k, q] for k, q in zip(rows, c, strict=True)),
         sum(error[k, q] for k, q in zip(rows, c, strict=True)))
        for c in itertools.product(*options)
    ]  # fmt: skip


@given(points)
@settings(max_examples=300)
def test_best_ratio(drawn: list[list[tuple[float, float, bool]]]) -> None:
    gain, error = tables(drawn)
    choice = joint.best_ratio(gain, error)
    rows = np.arange(len(gain))
    drop, wrong = gain[rows, choice].sum(), error[rows, choice].sum()
    every = combinations(gain, error)
    free = [g for g, e in every if e == 0]
    if free:
        assert wrong == 0
        assert drop >= max(free) * (1 - 1e-8)
    else:
        assert drop / wrong >= max(g / e for g, e in every) * (1 - 1e-8)


@given(points)
@settings(max_examples=300)
def test_best_vertex_where_scores_exceed_one(drawn: list[list[tuple[float, float, bool]]]) -> None:
    gain, error = tables(drawn)
    before = 1.05 * gain.max(axis=1).sum()

    def score(drop: np.ndarray, wrong: np.ndarray) -> np.ndarray:
        return scores.multiplicative_score(before, drop, wrong, 0.05)

    every = combinations(gain, error)
    assume(all(e > 0 for _, e in every))
    values = score(np.array([g for g, _ in every]), np.array([e for _, e in every]))
    choice = joint.best_vertex(gain, error, score)
    rows = np.arange(len(gain))
    mine = float(score(gain[rows, choice].sum(), error[rows, choice].sum()))
    if values.max() >= 1:
        assert mine >= values.max() * (1 - 1e-8)
    candidates = [joint.undominated(g, e) for g, e in zip(gain, error, strict=True)]
    found = joint.enumerate_choices(candidates, gain, error, score)
    assert found is not None
    best = float(score(gain[rows, found].sum(), error[rows, found].sum()))
    assert best >= values.max() * (1 - 1e-8)


def test_ties_within_the_slack_go_to_the_first() -> None:
    gain = np.array([[0.5, 0.5 * (1 + 1e-12), 0.5]])
    error = np.array([[0.1, 0.1, 0.1 * (1 - 1e-12)]])

    def score(drop: np.ndarray, wrong: np.ndarray) -> np.ndarray:
        return drop / wrong

    assert joint.best_ratio(gain, error).tolist() == [0]
    assert joint.best_vertex(gain, error, score).tolist() == [0]
    assert joint.enumerate_choices([[0, 1, 2]], gain, error, score).tolist() == [0]
    assert joint.top(gain).tolist() == [0]
    assert joint.best_ratio(gain, np.zeros((1, 3))).tolist() == [0]
    nothing = np.array([[1e-12, 0.5]]), np.array([[1e-11, 0.1]])  # 0.1 per unit of error, and 5
    assert joint.best_ratio(*nothing).tolist() == [1]
    clear = np.array([[0.5, 0.5 * (1 + 1e-6), 0.5]])
    assert joint.best_ratio(clear, error).tolist() == [1]


def test_too_many_combinations(monkeypatch: pytest.MonkeyPatch) -> None:
    ones = np.ones((20, 3))
    assert joint.enumerate_choices([[0, 1, 2]] * 20, ones, ones, lambda x, _: x) is None
    rng = np.random.default_rng(1)
    big = Problem(
        [f"c{i}" for i in range(64)],
        rng.dirichlet(np.ones(64)),
        [f"q{i}" for i in range(60)],
        rng.integers(0, 2, (60, 64)),
        rng.uniform(0.01, 0.2, (60, 64)),
    )
    monkeypatch.setattr(joint, "MAX_COMBINATIONS", 3)
    with pytest.raises(CrowdtreeError, match=r"^fc-printed: a level of .* 3 comb.*method=\"fc\""):
        ct.design(big, "fc-printed")
    check_tree(big, ct.design(big, "fc"))  # takes the best corner


# ------------------------------------------------------------------ reading a level


def random_frontier(rng: np.random.Generator, problem: Problem) -> OpenNodes:
    n = problem.n_classes
    cuts = np.sort(rng.choice(np.arange(1, n), size=rng.integers(1, n // 2), replace=False))
    start = np.concatenate([[0], cuts, [n]]).astype(np.int32)
    cls = rng.permutation(n).astype(np.int32)
    for first, last in itertools.pairwise(start):
        cls[first:last].sort()
    share = problem.prior[cls] * rng.choice([1.0, 0.5, 0.25], n)
    return OpenNodes(cls, share, start)


@pytest.mark.parametrize("seed", range(12))
def test_readers_of_two_and_of_several_answers_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(4, 60)), int(rng.integers(1, 40))
    errors = rng.uniform(0, 0.4, (m, n) if seed % 2 else m)
    dashes = [0.5, 0.5, 0.0] if seed % 3 == 0 else [0.45, 0.5, 0.05]
    problem = Problem(
        [f"c{i}" for i in range(n)],
        rng.dirichlet(np.ones(n)),
        [f"q{i}" for i in range(m)],
        rng.choice([0, 1, -1], size=(m, n), p=dashes),
        errors,
        dash="either" if seed % 4 < 2 else "inapplicable",
    )
    frontier = random_frontier(rng, problem)
    gain, error = read_level_plain(problem, frontier)
    as_parts, as_errors = read_level_several(problem, frontier)
    np.testing.assert_allclose(as_parts, gain, rtol=1e-9, atol=1e-14)
    usable = gain > -np.inf
    np.testing.assert_allclose(as_errors[usable], error[usable], rtol=1e-12)


@pytest.mark.parametrize("dash", ["inapplicable", "either"])
def test_a_level_read_in_blocks_is_the_same(monkeypatch: pytest.MonkeyPatch, dash: str) -> None:
    rng = np.random.default_rng(5)
    problem = Problem(
        [f"c{i}" for i in range(40)],
        rng.dirichlet(np.ones(40)),
        [f"q{i}" for i in range(30)],
        rng.choice([0, 1, -1], size=(30, 40), p=[0.49, 0.49, 0.02]),
        rng.uniform(0.01, 0.3, (30, 40)),
        dash=dash,
    )
    whole = ct.design(problem, allow_groups=True)
    monkeypatch.setattr(grow, "CACHED_CELLS", 100)
    parts = ct.design(problem, allow_groups=True)
    assert np.array_equal(whole.question, parts.question)
    assert np.array_equal(whole.children, parts.children)


def test_no_compilation_on_the_small_path() -> None:
    code = (
        "import sys, crowdtree as ct; from crowdtree.designs.designers import DESIGNERS; "
        "names = [m for m in DESIGNERS if m != 'optimal']; "
        "[ct.design(ct.example('table1'), m) for m in names]; "
        "print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# ------------------------------------------------------------------ the paper's figures


@pytest.mark.parametrize(
    ("error", "proposed", "random"),
    [(0.05, 0.08231, 0.10934), (0.2, 0.29984, 0.38957), (0.3, 0.42369, 0.53985)],
)
def test_figure_3(error: float, proposed: float, random: float) -> None:
    problem = ct.example("table1").replace(worker_error=error)
    orders = list(itertools.permutations(range(problem.n_questions)))
    assert len(orders) == 120
    values = [
        ct.evaluate(ct.design(problem, "random", order=order)).misclassification for order in orders
    ]
    for method in ("fm", "fc"):
        found = ct.evaluate(ct.design(problem, method)).misclassification
        assert round(found, 5) == proposed
        assert found <= min(values)
    assert round(float(np.mean(values)), 5) == random


def test_fc_printed_asks_the_least_informative() -> None:
    tree = ct.design(ct.example("table1"), "fc-printed")
    asked = [tree.problem.questions[q] for q in tree.question]
    assert asked == ["T3", "T2", "T2", "T1"]


# ------------------------------------------------------------------ baselines


def test_baselines_ignore_errors() -> None:
    rng = np.random.default_rng(3)
    problem = ct.example("table1")
    other = problem.replace(worker_error=rng.uniform(0, 0.4, (5, 5)))
    for method in ("gain", "gini", "random"):
        assert np.array_equal(
            ct.design(problem, method).question, ct.design(other, method).question
        )


@given(problems(separable=True, dash="inapplicable"))
@settings(max_examples=60)
def test_gain_and_gini_take_the_best_question_of_every_node(problem: Problem) -> None:
    def gini_after(rows: list[int], question: int) -> float:
        total = 0.0
        for side in (0, 1):
            share = problem.prior[[c for c in rows if problem.outcome[question, c] == side]]
            total += share.sum() - (share**2).sum() / share.sum()
        return float(total)

    for method in ("gain", "gini"):
        tree = ct.design(problem, method)
        for node in tree.nodes:
            rows = [problem.classes.index(name) for name in node.classes]
            options = [
                q for q in range(problem.n_questions) if set(problem.outcome[q, rows]) == {0, 1}
            ]
            if method == "gini":
                left = {q: gini_after(rows, q) for q in options}
            else:
                yes = {q: problem.prior[rows] @ problem.outcome[q, rows] for q in options}
                left = {q: -float(scores.split_gain(node.share, yes[q])) for q in options}
            asked = int(tree.question[node.index])
            assert left[asked] <= min(left.values()) + 1e-9


def test_random_orders() -> None:
    problem = ct.example("table1")
    assert ct.design(problem, "random").to_dict() == ct.design(problem, "random", rng=0).to_dict()
    generator = np.random.default_rng(0)
    assert ct.design(problem, "random", rng=generator).to_dict() == (
        ct.design(problem, "random", rng=0).to_dict()
    )
    given_order = ct.design(problem, "random", order=[4, 3, 2, 1, 0])
    assert given_order.nodes[0].question == "T4"  # T5 does not apply at the root


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("best", {}, "method: 'best' is unknown; choose from fm, fc, fc-printed"),
        ("fm", {"r": 2.0}, "design: method 'fm' has no option 'r'"),
        ("fc", {"r": 0.0}, "r: must be positive and finite, got 0.0"),
        ("fc", {"r": float("nan")}, "r: must be positive and finite, got nan"),
        ("fc", {"r": float("inf")}, "r: must be positive and finite, got inf"),
        ("random", {"order": [0, 1]}, "order: expected every question index from 0 to 4 once"),
        ("random", {"order": [0.0, 1.0, 2.0, 3.0, 4.0]}, "order: expected every question index"),
        (
            "random",
            {"order": [0, 1, 2, 3, 3]},
            "order: expected every question index from 0 to 4 once",
        ),
    ],
)
def test_refusals(method: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(CrowdtreeError) as caught:
        ct.design(ct.example("table1"), method, **options)
    assert str(caught.value).startswith(message)


def test_an_unsplittable_root_says_what_to_do() -> None:
    dashes = Problem(["a", "b", "c"], None, ["q", "r"], [[0, 1, "-"], ["-", 0, 1]], 0.1)
    with pytest.raises(CrowdtreeError, match=r"no question splits the 3 classes; .*dash=.either"):
        ct.design(dashes, allow_groups=True)
    twins = Problem(["a", "b"], None, ["q"], [[1, 1]], 0.1)
    with pytest.raises(CrowdtreeError, match="add a question on which the classes differ"):
        ct.design(twins, allow_groups=True)


def test_dash_can_be_chosen_at_design_time() -> None:
    problem = Problem(
        ["a", "b", "c"], None, ["q", "r", "s"], [[0, 1, "-"], ["-", 0, 1], [0, "-", 1]], 0.1
    )
    tree = ct.design(problem, dash="either")
    assert tree.problem.dash == "either"
    assert problem.dash == "inapplicable"


def test_error_free_questions_come_first() -> None:
    """A level without any error scores infinity; among such the larger entropy drop wins."""
    problem = Problem(
        ["a", "b", "c", "d"],
        None,
        ["noisy halves", "sure third", "sure half", "rest"],
        [[0, 0, 1, 1], [0, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]],
        [0.01, 0.0, 0.0, 0.2],
    )
    for method in ("fm", "fc"):
        tree = ct.design(problem, method)
        assert tree.nodes[0].question == "sure half"
        assert tree.levels[1].fm == math.inf
        assert ct.evaluate(tree).misclassification < 0.2
