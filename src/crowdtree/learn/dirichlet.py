"""Dirichlet distributions: their expected logarithms, divergence, and the one that fits a crowd."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["divergence", "fit_dirichlet", "log_density", "mean_log"]

FloatArray = NDArray[np.float64]


def mean_log(alpha: FloatArray, axis: int) -> FloatArray:
    """Expected logarithms of the shares.

    >>> mean_log(np.array([1.0, 1.0]), 0).round(3).tolist()  # of a uniform share
    [-1.0, -1.0]
    """
    from scipy.special import digamma

    return np.asarray(digamma(alpha) - digamma(alpha.sum(axis=axis, keepdims=True)))


def divergence(alpha: FloatArray, beta: FloatArray, axis: int) -> float:
    """Kullback-Leibler divergence of Dirichlet(alpha) from Dirichlet(beta), summed."""
    from scipy.special import gammaln

    parts = gammaln(alpha.sum(axis=axis)) - gammaln(alpha).sum(axis=axis)
    beta = np.broadcast_to(beta, alpha.shape)
    parts = parts - gammaln(beta.sum(axis=axis)) + gammaln(beta).sum(axis=axis)
    return float((parts + ((alpha - beta) * mean_log(alpha, axis)).sum(axis=axis)).sum())


def log_density(means: FloatArray, alpha: FloatArray) -> FloatArray:
    """Expected log density of the crowd's Dirichlet, one a column."""
    from scipy.special import gammaln

    whole = gammaln(alpha.sum(axis=0)) - gammaln(alpha).sum(axis=0)
    return np.asarray(whole + ((alpha - 1) * means).sum(axis=0))


def fit_dirichlet(sum_log: FloatArray, alpha: FloatArray, workers: float) -> FloatArray:
    """Fit the crowd's Dirichlet to its members by Newton's method (Minka 2000).

    A step that would not raise the objective of its column is shortened, then dropped.
    """
    from scipy.special import digamma, polygamma

    means = sum_log / workers
    for _ in range(3):
        slope = digamma(alpha.sum(axis=0)) - digamma(alpha) + means
        bend = -polygamma(1, alpha)
        shared = 1 / polygamma(1, alpha.sum(axis=0)) + (1 / bend).sum(axis=0)
        move = -(slope - (slope / bend).sum(axis=0) / shared) / bend
        before = log_density(means, alpha)
        size = np.ones(alpha.shape[1])
        for _ in range(6):
            trial = np.clip(alpha + size * move, np.maximum(alpha / 3, 1e-2), 1e3)
            worse = log_density(means, trial) < before
            if not worse.any():
                break
            size[worse] /= 4
        alpha = np.where(worse, alpha, trial)
    return alpha
