"""Maps from what a source states to what it says about the class, and the choice of one.

A source that says nothing about the class is ignored. Where it is wrong in a way that a power
cannot mend, a richer map helps: a bias per class (vector scaling, Guo, Pleiss, Sun and Weinberger
2017), or the confusion channel of the class that it finds likeliest. Each is used only where it
predicts the known items better out of sample than the one before: where the 95 % interval of its
mean gain is above 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.stats import mean_half_width
from crowdtree.learning.opinions.exponents import blend, fit_exponents, fit_scaled

__all__ = ["Map", "Views", "choose_map", "fit_map", "splits"]

IntArray = NDArray[np.int64]
Kind = Literal["ignored", "as stated", "scaled", "confusion"]
KINDS: tuple[Kind, ...] = get_args(Kind)
FOLDS = 10
PSEUDO = 2.0
"""Pseudo-counts of a row of the confusion, spread as by a source that errs evenly."""
LEAST = 1e-9
"""Least stated probability: nothing is certain."""


class Views(NamedTuple):
    """What a source says about items: log ratios of stated probability and prior; best class.

    `ratio` is 0 and `best` is -1 where there is no opinion.
    """

    ratio: FloatArray
    best: IntArray

    @classmethod
    def of(cls, rows: FloatArray, prior: FloatArray) -> Views:
        """From stated probabilities; a class that a source does not know keeps its prior.

        >>> Views.of(np.array([[0.5, 0.5, np.nan]]), np.array([0.25, 0.25, 0.5])).best.tolist()
        [0]
        """
        unknown = np.isnan(rows)
        absent = unknown.all(axis=1, keepdims=True)
        known = np.where(unknown, 0.0, prior).sum(axis=1, keepdims=True)
        stated = np.where(
            unknown, prior, rows * np.where(unknown.any(axis=1, keepdims=True), known, 1.0)
        )
        ratio = np.where(absent, 0.0, np.log(np.maximum(stated, LEAST)) - np.log(prior))
        best = np.where(unknown, -1.0, rows).argmax(axis=1)
        return cls(ratio, np.where(absent, -1, best[:, None])[:, 0])

    def take(self, rows: IntArray) -> Views:
        """Some of the items."""
        return Views(self.ratio[rows], self.best[rows])


class Map(NamedTuple):
    """A fitted map: its kind, and its slope and biases, or its log channel [class, answer]."""

    kind: Kind
    numbers: FloatArray

    def __call__(self, views: Views) -> FloatArray:
        """Log likelihood ratio of each class, one row per item; 0 without an opinion."""
        there = (views.best >= 0)[:, None]
        if self.kind == "scaled":
            return np.where(there, self.numbers[0] * views.ratio + self.numbers[1:], 0.0)
        if self.kind == "confusion":
            return np.where(there, self.numbers.T[views.best], 0.0)
        return views.ratio.copy() if self.kind == "as stated" else np.zeros_like(views.ratio)


def fit_map(kind: Kind, log_prior: FloatArray, views: Views, truth: IntArray) -> Map:
    """Fit a map of a kind to items of known class."""
    there = views.best >= 0
    if kind == "scaled":
        numbers = fit_scaled(log_prior, views.ratio[there], truth[there])
    elif kind == "confusion":
        numbers = _log_channel(len(log_prior), views.best[there], truth[there])
    else:
        numbers = np.zeros(0)
    return Map(kind, numbers)


def _log_channel(classes: int, best: IntArray, truth: IntArray) -> FloatArray:
    """Log of P(best class | class), shrunk to a source that errs alike about all classes."""
    counts = np.bincount(truth * classes + best, minlength=classes**2).reshape(classes, classes)
    right = (np.trace(counts) + 1) / (counts.sum() + classes)
    coin = np.full((classes, classes), (1 - right) / (classes - 1))
    np.fill_diagonal(coin, right)
    total = counts.sum(axis=1, keepdims=True)
    return np.asarray(np.log((counts + PSEUDO * coin) / (total + PSEUDO)))


def splits(items: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Items that are left out, a tenth at a time, and the rest; the same ones every time.

    >>> [(len(held), len(rest)) for held, rest in splits(25)][-1], list(splits(1))
    ((2, 23), [])
    """
    order = np.random.default_rng(0).permutation(items)
    fold = np.empty(items, dtype=np.int64)
    fold[order] = np.arange(items) % FOLDS
    for out in range(min(FOLDS, items) if items > 1 else 0):
        yield np.flatnonzero(fold == out), np.flatnonzero(fold != out)


def choose_map(log_prior: FloatArray, views: Views, truth: IntArray) -> Kind:
    """Kind of map that predicts left-out classes: the simplest that no richer one clearly beats.

    A fold at a time is left out. The 95 % interval of a richer map's mean gain must be above 0.
    """
    best = KINDS[0]
    losses = _left_out_losses(best, log_prior, views, truth)
    for kind in KINDS[1:]:
        found = _left_out_losses(kind, log_prior, views, truth)
        gain = losses - found
        if gain.mean() > mean_half_width(gain):
            best, losses = kind, found
    return best


def _left_out_losses(
    kind: Kind, log_prior: FloatArray, views: Views, truth: IntArray
) -> FloatArray:
    """Log loss of each item, by this source alone, fitted without its fold."""
    found = -log_prior[truth]
    for held, rest in splits(len(truth)) if kind != "ignored" else ():
        made = fit_map(kind, log_prior, views.take(rest), truth[rest])
        power = np.ones(1)
        if kind == "as stated":
            power = fit_exponents(log_prior, [made(views.take(rest))], truth[rest])[0]
        log_posterior = blend(log_prior, [made(views.take(held))], power)
        found[held] = -log_posterior[np.arange(len(held)), truth[held]]
    return found
