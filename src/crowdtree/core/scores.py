"""Level entropy, F^m, F^c and the bounds they give (docs/model.md, section 4): pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

_TINY = np.finfo(np.float64).tiny


class Interval(NamedTuple):
    """A lower and an upper bound."""

    lower: float
    upper: float


def split_gain(total: ArrayLike, yes: ArrayLike, dash: ArrayLike = 0.0) -> NDArray[np.float64]:
    """Fall of the level entropy when a node is split, in bits.

    ``P h(P_yes / P) - P_dash``, where ``P`` is the share of items in the node, ``P_yes`` the share
    whose outcome is 1 plus half of ``P_dash``, the share whose outcome is ``-`` (which follows
    both branches and so carries no information). The entropies inside the two halves cancel.

    >>> split_gain(1.0, [0.5, 0.25, 1.0]).round(4).tolist()
    [1.0, 0.8113, 0.0]
    """
    whole = np.asarray(total, dtype=np.float64)
    ones = np.asarray(yes, dtype=np.float64)
    zeros = np.maximum(whole - ones, 0.0)
    return np.asarray(
        _xlog2(whole) - _xlog2(ones) - _xlog2(zeros) - np.asarray(dash, dtype=np.float64)
    )


def parts_gain(total: ArrayLike, part: NDArray[np.float64], lost: ArrayLike) -> NDArray[np.float64]:
    """Fall of the level entropy when a node is split into parts (first axis), in bits.

    ``P log P - sum_a P_a log P_a`` less `lost`: a class of share p that follows k branches, p / k
    each, loses ``p log2 k``.

    >>> parts_gain(1.0, np.array([0.5, 0.25, 0.25]), 0.0).round(4).tolist()
    1.5
    """
    whole = np.asarray(total, dtype=np.float64)
    return np.asarray(_xlog2(whole) - _xlog2(part).sum(axis=0) - np.asarray(lost))


def gini_drop(
    total: ArrayLike,
    squares: ArrayLike,
    parts: Sequence[ArrayLike],
    squares_of_parts: Sequence[ArrayLike],
) -> NDArray[np.float64]:
    """Fall of the Gini impurity, weighted by the share of items, when a node is split.

    With ``Q`` the sum of squared class shares (of the node, and of each part), the impurity of a
    part is ``P - Q / P``.

    >>> float(gini_drop(1.0, 0.5, [0.5, 0.5], [0.25, 0.25]))
    0.5
    """
    node, *below = (  # an empty part has neither share nor squares: 0
        np.asarray(square, dtype=np.float64)
        / np.maximum(np.asarray(share, dtype=np.float64), _TINY)
        for share, square in ((total, squares), *zip(parts, squares_of_parts, strict=True))
    )
    return np.asarray(sum(below) - node)


def additive_score(entropy_drop: ArrayLike, error: ArrayLike) -> NDArray[np.float64]:
    """``F^m = (H(L_{d-1}) - H(L_d)) / g(d)`` (eq. 5), to be maximised; +inf without error.

    >>> additive_score([1.0, 1.0], [0.05, 0.0]).tolist()
    [20.0, inf]
    """
    drop, g = np.broadcast_arrays(
        np.asarray(entropy_drop, dtype=np.float64), np.asarray(error, dtype=np.float64)
    )
    return _quotient(drop, g)


def multiplicative_score(
    entropy: float | NDArray[np.float64], entropy_drop: ArrayLike, error: ArrayLike, r: float = 1.0
) -> NDArray[np.float64]:
    """Corrected ``F^c = ln((H(L_{d-1}) + r) / (H(L_d) + r)) / -ln b(d)``, to be maximised.

    >>> round(float(multiplicative_score(1.0, 1.0, 0.05)), 4)
    13.5134
    """
    drop = np.asarray(entropy_drop, dtype=np.float64)
    with np.errstate(divide="ignore"):
        shrink = -np.log1p(-np.minimum(drop / (entropy + r), 1.0))
        loss = -np.log1p(-np.minimum(np.asarray(error, dtype=np.float64), 1.0))
    return _quotient(*np.broadcast_arrays(shrink, loss))


def printed_score(entropy: float, entropy_drop: ArrayLike, error: ArrayLike) -> NDArray[np.float64]:
    """``F^c`` as the paper prints it (eq. 8), to be minimised; see docs/errata.md.

    >>> round(float(printed_score(1.0, 1.0, 0.05)), 4)
    2.1053
    """
    ratio = (entropy + 1) / (entropy - np.asarray(entropy_drop, dtype=np.float64) + 1)
    with np.errstate(divide="ignore"):
        return np.asarray(ratio / np.maximum(1 - np.asarray(error, dtype=np.float64), 0.0))


def additive_interval(entropy: float, scores: Sequence[float]) -> Interval:
    """Bounds ``H(L_0) / F^m_max <= additive <= H(L_0) / F^m_min``.

    The upper one bounds the misclassification too; the lower one does not (docs/errata.md).

    >>> additive_interval(1.5, [10.0, 15.0])
    Interval(lower=0.1, upper=0.15)
    """
    least, most = min(scores), max(scores)
    return Interval(entropy / most, entropy / least if least > 0 else math.inf)


def product_interval(entropy: float, scores: Sequence[float], r: float = 1.0) -> Interval:
    """Bounds of ``prod b``: ``(H(L_0) / r + 1)`` to the powers ``-1 / F^c_min``, ``-1 / F^c_max``.

    With the paper's r = 1 the base is ``H(L_0) + 1``.

    >>> low, high = product_interval(1.0, [10.0, 20.0])
    >>> round(low, 4), round(high, 4)
    (0.933, 0.9659)
    """
    base = (entropy + r) / r
    least, most = min(scores), max(scores)  # 0: a level with error 1
    return Interval(*(base ** (-1 / score) if score > 0 else 0.0 for score in (least, most)))


def printed_correct_interval(entropy: float, scores: Sequence[float]) -> Interval:
    """Bounds ``(H(L_0) + 1) / F^c`` of P_c as printed in the paper, which do not hold.

    >>> printed_correct_interval(1.0, [1.0, 2.0])
    Interval(lower=1.0, upper=2.0)
    """
    return Interval((entropy + 1) / max(scores), (entropy + 1) / min(scores))


def _quotient(top: NDArray[np.float64], bottom: NDArray[np.float64]) -> NDArray[np.float64]:
    """``top / bottom``; +inf where the bottom is 0 or too small for a float."""
    with np.errstate(over="ignore"):
        return np.asarray(np.divide(top, bottom, out=np.full(top.shape, np.inf), where=bottom > 0))


def _xlog2(share: NDArray[np.float64]) -> NDArray[np.float64]:
    return share * np.log2(np.maximum(share, _TINY))
