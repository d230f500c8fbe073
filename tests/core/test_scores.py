"""Scores: the sums telescope, the corrected bounds hold, the printed ones do not."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdtree as ct
from crowdtree import Problem, Tree
from crowdtree.core import scores
from tests.contracts.oracle import Row, entropy, send
from tests.strategies import problems

positive = st.floats(1e-3, 0.4)


def trees(**options: object) -> st.SearchStrategy[Tree]:
    """Trees of random question orders: good and bad ones."""
    return st.builds(
        lambda problem, seed: ct.design(problem, "random", rng=seed),
        problems(separable=True, **options),
        st.integers(0, 1000),
    )


# ------------------------------------------------------------------ entropy


@given(st.lists(st.tuples(positive, st.sampled_from([-1, 0, 1])), min_size=2, max_size=8))
def test_split_gain_is_the_fall_of_the_entropy(cells: list[tuple[float, int]]) -> None:
    share = np.array([s for s, _ in cells])
    answer = np.array([a for _, a in cells])
    problem = Problem(
        [str(i) for i in range(len(cells))],
        share / share.sum(),
        ["q"],
        answer[None, :],
        0.1,
        dash="either",
    )
    rows = [Row(c, float(s), 0) for c, s in enumerate(share)]
    halves = [part for part in send(problem, 0, rows) if part]
    dash = share[answer == -1].sum()
    yes = share[answer == 1].sum() + dash / 2
    found = scores.split_gain(share.sum(), yes, dash)
    assert abs(found - (entropy([rows]) - entropy(halves))) < 1e-12


def test_split_gain_of_empty_branches_is_zero() -> None:
    assert scores.split_gain([0.4, 0.4, 0.0], [0.0, 0.4, 0.0]).tolist() == [0, 0, 0]


@given(st.lists(st.tuples(positive, st.booleans()), min_size=2, max_size=8))
def test_gini_drop_is_the_fall_of_the_impurity(cells: list[tuple[float, bool]]) -> None:
    def impurity(shares: list[float]) -> float:
        total = sum(shares)
        return total * (1 - sum((s / total) ** 2 for s in shares)) if shares else 0.0

    both = [s for s, _ in cells]
    parts = [[s for s, yes in cells if yes is side] for side in (False, True)]
    squares = [sum(s * s for s in part) for part in (both, *parts)]
    found = scores.gini_drop(sum(both), squares[0], list(map(sum, parts)), squares[1:])
    assert abs(found - (impurity(both) - sum(map(impurity, parts)))) < 1e-12


# ------------------------------------------------------------------ the identities


@given(trees())
def test_entropies_telescope(tree: Tree) -> None:
    """Equations 5 and 8: sums and products over the levels give ``H(L_0)`` back."""
    levels = tree.levels
    start = levels[0].entropy
    assert abs(start - entropy([[Row(c, p, 0) for c, p in enumerate(tree.problem.prior)]])) < 1e-9
    added, product = 0.0, 1.0
    for before, after in itertools.pairwise(levels):
        assert after.g is not None
        assert after.b is not None
        assert after.fm is not None
        assert after.fc_printed is not None
        added += after.fm * after.g if after.g > 0 else before.entropy - after.entropy
        product *= after.fc_printed * after.b
    assert math.isclose(added, start, rel_tol=1e-9)
    assert math.isclose(product, start + 1, rel_tol=1e-9)


@given(trees())
def test_corrected_score_is_the_exponent(tree: Tree) -> None:
    """``b ^ F^c = (H(L_d) + 1) / (H(L_{d-1}) + 1)``."""
    for before, after in zip(tree.levels[:-1], tree.levels[1:], strict=True):
        assert after.b is not None
        assert after.fc is not None
        if after.b == 1:
            assert after.fc == after.fm == math.inf
        else:
            shrink = (after.entropy + 1) / (before.entropy + 1)
            assert math.isclose(after.b**after.fc, shrink, rel_tol=1e-9)


@pytest.mark.parametrize("r", [0.1, 1.0, 7.0])
def test_corrected_score_with_another_r(r: float) -> None:
    found = float(scores.multiplicative_score(2.0, 0.5, 0.1, r))
    assert math.isclose(found, math.log((2 + r) / (1.5 + r)) / -math.log(0.9), rel_tol=1e-13)


# ------------------------------------------------------------------ the bounds


@given(trees())
def test_corrected_bounds_hold(tree: Tree) -> None:
    value = ct.evaluate(tree)
    bounds = value.bounds
    slack = 1 + 1e-9
    assert bounds.additive.lower <= value.additive * slack
    assert value.additive <= bounds.additive.upper * slack
    assert value.misclassification <= bounds.misclassification_upper * slack
    assert bounds.product.lower <= value.multiplicative * slack
    assert value.multiplicative <= bounds.product.upper * slack


@pytest.mark.parametrize("r", [0.25, 1.0, 3.0])
@given(tree=trees())
def test_product_bound_holds_for_every_r(r: float, tree: Tree) -> None:
    levels = tree.levels
    fc = [
        float(scores.multiplicative_score(a.entropy, a.entropy - b.entropy, b.g, r))
        for a, b in itertools.pairwise(levels)
    ]
    lower, upper = scores.product_interval(levels[0].entropy, fc, r)
    product = ct.evaluate(tree).multiplicative
    assert lower <= product * (1 + 1e-9)
    assert product <= upper * (1 + 1e-9)


def figure_1b() -> Tree:
    return ct.design(ct.example("table1"))


def test_printed_lower_bound_of_the_misclassification_fails() -> None:
    value = ct.evaluate(figure_1b())
    lower = value.bounds.printed_misclassification.lower
    assert round(lower, 5) == 0.08355
    assert value.misclassification < lower <= value.additive


def test_printed_bounds_of_the_correct_share_fail() -> None:
    """The power D is missing: the lower one can exceed 1, and so leave P_c below it."""
    value = ct.evaluate(figure_1b())
    lower, upper = value.bounds.printed_correct
    right = 1 - value.misclassification
    assert lower > 1 > right
    assert upper > lower
    levels = value.tree.levels
    printed = [level.fc_printed for level in levels if level.fc_printed is not None]
    assert math.isclose(lower, (levels[0].entropy + 1) / max(printed))
    assert math.isclose(upper, (levels[0].entropy + 1) / min(printed))


# ------------------------------------------------------------------ the ends of the scale


def test_levels_without_error() -> None:
    assert scores.additive_score([1.0, 0.0], [0.0, 0.0]).tolist() == [math.inf, math.inf]
    assert float(scores.multiplicative_score(1.0, 0.5, 0.0)) == math.inf
    assert scores.additive_interval(1.5, [math.inf, 3.0]) == (0.0, 0.5)
    assert scores.product_interval(1.0, [math.inf, 1.0]) == (0.5, 1.0)
    tree = ct.design(ct.example("table1").replace(worker_error=0))
    assert ct.evaluate(tree).bounds[:3] == (0.0, (0.0, 0.0), (1.0, 1.0))


@pytest.mark.filterwarnings("ignore:worker_error")
def test_levels_with_an_error_of_one() -> None:
    assert float(scores.multiplicative_score(1.0, 0.5, 1.0)) == 0
    assert float(scores.printed_score(1.0, 0.5, 1.0)) == math.inf
    assert float(scores.printed_score(1.0, 0.5, 1.0 + 1e-7)) == math.inf
    assert scores.additive_interval(1.0, [0.0, 2.0]) == (0.5, math.inf)
    assert scores.product_interval(1.0, [0.0, 1.0]) == (0.0, 0.5)
    value = ct.evaluate(ct.design(Problem(["a", "b"], None, ["q"], [[0, 1]], 1.0)))
    assert (value.misclassification, value.additive, value.multiplicative) == (1, 1, 0)
    assert value.bounds.product == (0, 0)
    assert value.bounds.misclassification_upper == 1


# ------------------------------------------------------------------ shapes and number types


def test_gini_drop_of_many_nodes() -> None:
    node = np.array([[0.5], [0.4]])
    yes = np.array([[0.0, 0.25], [0.1, 0.4]])
    none = [[0.0, 0.03], [0.03, 0.03]], [[0.05, 0.05], [0.05, 0.0]]  # where a branch is empty
    squares = (np.array([[0.1], [0.08]]), np.array(none[1]), np.array(none[0]))
    found = scores.gini_drop(node, squares[0], (node - yes, yes), squares[1:])
    assert found.shape == (2, 2)
    for i, j in itertools.product(range(2), range(2)):
        no, ones = node[i, 0] - yes[i, j], yes[i, j]
        parts = (0.05 / no if no > 1e-9 else 0) + (0.03 / ones if ones > 0 else 0)
        assert math.isclose(found[i, j], parts - squares[0][i, 0] / node[i, 0])
    few = np.array([0.1, 0.2])
    one_square = scores.gini_drop(0.5, 0.1, (0.5 - few, few), (0.05, 0.03))  # numbers go too
    assert one_square.shape == (2,)
    with pytest.raises(ValueError, match="zip"):
        scores.gini_drop(0.5, 0.1, (0.4, 0.1), (0.05, 0.03, 0.02))


@pytest.mark.parametrize(
    ("rule", "arguments"),
    [
        (scores.split_gain, ("1", "1/4", "1/8")),
        (scores.additive_score, ("1/2", "1/8")),
        (scores.multiplicative_score, ("2", "1/2", "1/8")),
        (scores.printed_score, ("2", "1/2", "1/8")),
    ],
)
def test_every_number_type_is_accepted(rule, arguments: tuple[str, ...]) -> None:  # type: ignore[no-untyped-def]
    exact: list[object] = [[Fraction(text)] * 2 for text in arguments]
    numbers: list[object] = [[float(Fraction(text))] * 2 for text in arguments]
    if rule in (scores.multiplicative_score, scores.printed_score):  # the entropy is one float
        exact[0] = numbers[0] = float(Fraction(arguments[0]))
    found = rule(*exact)
    assert found.dtype == np.float64
    assert np.array_equal(found, rule(*numbers))


def test_gini_drop_accepts_every_number_type() -> None:
    node, *squares = ([Fraction(1, n)] * 2 for n in (9, 8, 7))
    parts = [[Fraction(3, 8)] * 2, [Fraction(1, 8)] * 2]
    exact = scores.gini_drop([Fraction(1, 2)] * 2, node, parts, squares)
    assert exact.dtype == np.float64
    np.testing.assert_allclose(exact, scores.gini_drop(0.5, 1 / 9, [0.375, 0.125], [1 / 8, 1 / 7]))


def test_scores_beyond_the_scale() -> None:
    """Rounding may push a drop above the entropy or an error above 1; tiny errors overflow."""
    assert float(scores.multiplicative_score(1.0, 2.5, 0.1)) == math.inf
    assert float(scores.multiplicative_score(1.0, 0.5, 1.5)) == 0
    assert float(scores.additive_score(1.0, 1e-311)) == math.inf
    assert float(scores.multiplicative_score(1.0, 0.5, 1e-311)) == math.inf
