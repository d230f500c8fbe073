"""Intervals agree with those of scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as reference

from crowdtree.core.stats import Z95, mean_half_width, normal_quantile, wilson_interval


@pytest.mark.parametrize(("count", "total"), [(0, 10), (1, 10), (10, 1000), (500, 1000), (7, 7)])
def test_wilson_is_that_of_scipy(count: int, total: int) -> None:
    expected = reference.binomtest(count, total).proportion_ci(0.95, method="wilson")
    assert wilson_interval(count, total) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_an_empty_count_gives_the_whole_interval() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_quantiles_are_those_of_the_normal_distribution(level: float) -> None:
    assert normal_quantile(level) == pytest.approx(-reference.norm.ppf((1 - level) / 2))
    assert normal_quantile(0.95) == Z95


def test_the_interval_of_a_mean() -> None:
    values = np.random.default_rng(0).normal(size=50)
    assert mean_half_width(values) == pytest.approx(Z95 * reference.sem(values))
    assert mean_half_width(values[:1]) == 0.0
