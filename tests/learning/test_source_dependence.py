"""How much answers count that share errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from crowdtree.learning.source_dependence import (
    Dependence,
    Evidence,
    LeftOut,
    discounts,
    fit_dependence,
)


def best_weights(strength: np.ndarray, rho: float) -> np.ndarray:
    """Weights of the best sum without negative ones, by non-negative least squares."""
    correlation = np.full((len(strength), len(strength)), rho) + (1 - rho) * np.eye(len(strength))
    root = np.linalg.cholesky(correlation)
    weight, _ = nnls(root.T, np.linalg.solve(root, strength))
    return weight / strength


@pytest.mark.parametrize("rho", [0.0, 0.1, 0.5, 0.95])
def test_discounts_are_the_best_weights_of_correlated_signals(rho):
    rng = np.random.default_rng(int(100 * rho))
    parts = [-np.sort(-rng.gamma(2.0, 1.0, size)) for size in (1, 2, 5, 30)]
    run = np.repeat(np.arange(4), [len(part) for part in parts])
    expected = np.concatenate([best_weights(part, rho) for part in parts])
    np.testing.assert_allclose(discounts(np.concatenate(parts), run, rho), expected, atol=1e-7)


def test_equal_answers_count_less_the_more_there_are():
    evidence = Evidence(
        2,
        np.array([0, 0, 0, 1]),
        np.zeros(4, int),
        np.zeros(4, int),
        np.ones((4, 2)),
        np.full(4, 0.3),
    )
    weight = evidence.weights(Dependence(np.array([0.5]), 0.3))
    np.testing.assert_allclose(weight, [0.5, 0.5, 0.5, 1.0])


def test_groups_of_equal_strength_share_the_discount_between_them():
    none = np.zeros(2, int)
    evidence = Evidence(1, none, none, np.array([0, 1]), np.ones((2, 2)), np.ones(2))
    weight = evidence.weights(Dependence(np.array([0.2, 0.6]), 0.25))
    np.testing.assert_allclose(weight, [0.8, 0.8])


def test_questions_about_an_item_share_the_discount_across_them():
    question = np.array([0, 0, 1, 2])
    nothing = np.zeros(4, int)
    evidence = Evidence(1, nothing, question, nothing, np.ones((4, 2)), np.ones(4))
    weight = evidence.weights(Dependence(np.array([0.5]), 0.3, 0.2))
    two, one = 2 / 1.5, 1.0  # information of two answers to a question, and of one
    across = best_weights(np.sqrt([two, one, one]), 0.2)
    expected = np.array([across[0], across[0], 1.5 * across[1], 1.5 * across[2]]) / 1.5
    np.testing.assert_allclose(weight, expected)
    apart = evidence.weights(Dependence(np.array([0.5]), 0.3))
    np.testing.assert_allclose(apart, [2 / 3, 2 / 3, 1, 1])


def test_no_answers_leave_the_prior():
    nothing = np.zeros(0, int)
    evidence = Evidence(2, nothing, nothing, nothing, np.zeros((0, 3)), np.zeros(0))
    log_share = np.log([0.5, 0.3, 0.2])
    posterior = evidence.posterior(log_share, Dependence(np.array([0.5]), 0.3))
    np.testing.assert_allclose(posterior, [log_share] * 2)


@pytest.mark.parametrize(("copied", "low", "high"), [(0.0, 0.0, 0.25), (1.0, 0.75, 1.0)])
def test_known_items_show_whether_models_copy(copied, low, high):
    rng = np.random.default_rng(3)
    items, models, error = 300, 5, 0.25
    truth = rng.integers(0, 2, items)
    wrong = rng.random((items, models)) < error
    wrong = np.where(rng.random((items, 1)) < copied, wrong[:, :1], wrong)
    said = np.where(wrong, 1 - truth[:, None], truth[:, None]).ravel()
    logs = np.log(np.array([[1 - error, error], [error, 1 - error]])[said])
    item = np.repeat(np.arange(items), models)
    nothing = np.zeros(len(item), int)
    evidence = Evidence(items, item, nothing, nothing, logs, np.ones(len(item)))
    left_out = LeftOut(
        np.arange(items), evidence, np.log(np.full((items, 2), 0.5)), np.eye(2)[truth]
    )
    dependence = fit_dependence(left_out, Dependence(np.array([0.5]), 0.3))
    assert low <= dependence.within[0] <= high
