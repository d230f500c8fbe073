"""What one more answer is expected to be worth: five criteria, one signature.

Each criterion takes posteriors (rows) and tables of ``P(answer | class)`` and returns a score,
larger is better. The tables come in two shapes with the same two operations: :class:`Dense` scores
every row with every question (matrix products), :class:`Pairs` row ``i`` with its own table ``i``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, reduce
from types import MappingProxyType
from typing import Any

import numpy as np

from crowdtree.core.loss import Loss
from crowdtree.policies.base import FloatArray, product

__all__ = ["CRITERIA", "Dense", "Pairs", "entropy", "first_best"]

TIE = 1e-9
_TINY = 1e-300
LOSS_WEIGHT = 0.25
"""Weight of a halving of the loss at stake, in bits of information."""
Value = Callable[[FloatArray, Loss | None], FloatArray]


class _Tables:
    """Functions of P(answer | class) that the criteria need, each computed when first used.

    `answers` has a table per answer; `sides` says which answers each class should give, as shares.
    """

    mean: Callable[[FloatArray, FloatArray], FloatArray]

    def __init__(
        self,
        answers: Sequence[FloatArray],
        sides: Sequence[FloatArray] | None = None,
        loss: Loss | None = None,
    ) -> None:
        self.answers, self.loss = answers, loss
        self.sides = answers if sides is None else sides

    def by_class(self, weight: FloatArray) -> FloatArray:
        """Weight of each class, given those of the columns of the tables."""
        return weight

    def chances(
        self, weight: FloatArray, tables: Sequence[FloatArray] | None = None
    ) -> Sequence[FloatArray]:
        """P(answer), an array per answer; of two answers the second says everything."""
        tables = self.answers if tables is None else tables
        if len(tables) == 2:
            second = self.mean(weight, tables[1])
            return [1 - second, second]
        return [self.mean(weight, table) for table in tables]

    @cached_property
    def entropy(self) -> FloatArray:
        return entropy(self.answers, self.log2)

    @cached_property
    def log2(self) -> Callable[[FloatArray], FloatArray]:
        """Logarithm of a mean of a table; without clipping where no table has a 0.

        Only answers that a question does not have are 0, so that two answers never are.
        """
        two = len(self.answers) == 2
        return np.log2 if two or all((table > 0).all() for table in self.answers) else _log2

    @cached_property
    def squared(self) -> list[FloatArray]:
        return [table**2 for table in self.answers]


def _log2(chance: FloatArray) -> FloatArray:
    return np.log2(np.maximum(chance, _TINY))


def entropy(
    chances: Sequence[FloatArray], log2: Callable[[FloatArray], FloatArray] = _log2
) -> FloatArray:
    """Entropy in bits of answers with these probabilities, a table per answer."""
    total = chances[0] * log2(chances[0])
    for chance in chances[1:]:
        total += chance * log2(chance)
    return -total


class Dense(_Tables):
    """Every row of weights with every question."""

    def mean(self, weight: FloatArray, table: FloatArray) -> FloatArray:
        """Sum over the classes of weight x table: one row per row, one column per question."""
        return product(weight, table.T)

    def mean_entropy(self, posterior: FloatArray) -> FloatArray:
        """Expected noise in the answer; needs no product where it is the same for all classes."""
        if self._flat:
            return np.broadcast_to(self.entropy[:, 0], (len(posterior), len(self.entropy)))
        return product(posterior, self.entropy.T)

    @cached_property
    def _flat(self) -> bool:
        return bool(np.ptp(self.entropy, axis=1).max(initial=0.0) < 1e-12)

    def each(self, value: Value, posterior: FloatArray, table: FloatArray) -> FloatArray:
        """A function of the classes' weights, posterior x table."""
        found = np.empty((len(posterior), len(table)))
        if len(posterior) < len(table):  # along the shorter side: no three-dimensional array
            for item, row in enumerate(posterior):
                found[item] = value(self.by_class(row * table), self.loss)
        else:
            for question, row in enumerate(table):
                found[:, question] = value(self.by_class(posterior * row), self.loss)
        return found


class Pairs(_Tables):
    """Row i of weights with row i of the table."""

    def mean(self, weight: FloatArray, table: FloatArray) -> FloatArray:
        """Sum over the classes of weight x table, row by row."""
        return np.asarray((weight * table).sum(axis=1))

    def mean_entropy(self, posterior: FloatArray) -> FloatArray:
        """Expected noise in the answer."""
        return self.mean(posterior, self.entropy)

    def each(self, value: Value, posterior: FloatArray, table: FloatArray) -> FloatArray:
        """A function of the classes' weights, posterior x table, row by row."""
        return value(posterior * table, self.loss)


def best_value(weight: FloatArray, loss: Loss | None) -> FloatArray:
    """Value of the best decision: the weight of the likeliest class, or the loss avoided."""
    return np.asarray(weight.max(axis=1) if loss is None else -loss.decide(weight).risk)


def log_confused(weight: FloatArray, loss: Loss | None) -> FloatArray:
    """Log2 of the loss of confusing two classes, over all pairs, weighed by their weights."""
    assert loss is not None
    found = ((weight @ loss.matrix) * weight).sum(axis=1)
    return np.asarray(np.log2(np.maximum(found, 1e-300)))


def information(posterior: FloatArray, tables: Dense | Pairs) -> FloatArray:
    """Mutual information between the class and the next answer, in bits.

    >>> coin = [np.array([[0.89, 0.11]]), np.array([[0.11, 0.89]])]
    >>> information(np.array([[0.5, 0.5]]), Dense(coin)).round(3).tolist()
    [[0.5]]
    """
    heard = entropy(tables.chances(posterior), tables.log2)
    return np.asarray(heard - tables.mean_entropy(posterior))


def accuracy(posterior: FloatArray, tables: Dense | Pairs) -> FloatArray:
    """Expected rise of the likeliest class's probability after the next answer.

    Where mistakes have different costs: expected fall of the expected loss of the best decision.

    >>> coin = [np.array([[0.89, 0.11]]), np.array([[0.11, 0.89]])]
    >>> accuracy(np.array([[0.5, 0.5]]), Dense(coin)).round(3).tolist()
    [[0.39]]
    """
    now = _column(best_value(tables.by_class(posterior), tables.loss), tables)
    after = (tables.each(best_value, posterior, table) for table in reversed(tables.answers))
    return np.asarray(sum(after) - now)


def ec2(posterior: FloatArray, tables: Dense | Pairs) -> FloatArray:
    """Expected fall of the weight of edges between different classes (EC2).

    An edge joins two classes and weighs the product of their probabilities, so all edges weigh
    ``1 - sum p^2``; the expectation is over the noisy answer, by Bayes' rule.

    References
    ----------
    Golovin, Krause and Ray (2010), with the posterior form of their noisy setting.

    Examples
    --------
    >>> coin = [np.array([[0.89, 0.11]]), np.array([[0.11, 0.89]])]
    >>> ec2(np.array([[0.5, 0.5]]), Dense(coin)).round(3).tolist()
    [[0.304]]
    """
    square = posterior**2
    after = sum(
        tables.mean(square, squares) / np.maximum(chance, _TINY)
        for chance, squares in zip(tables.chances(posterior), tables.squared, strict=True)
    )
    return np.asarray(after - _column(square.sum(axis=1), tables))


def loss(posterior: FloatArray, tables: Dense | Pairs) -> FloatArray:
    """Information in bits, and the expected fall of the logarithm of the loss that is at stake.

    At stake is the expected loss of a label that is drawn from the posterior, and that must fall
    by a factor before an item is labelled: hence the logarithm. Alone it is myopic, as any
    reduction of loss is; the weight of a quarter is not critical (docs/measured/losses.md).

    >>> costs = Loss(np.array([[0.0, 9.0], [1.0, 0.0]]))
    >>> coin = [np.array([[0.89, 0.11]]), np.array([[0.11, 0.89]])]
    >>> loss(np.array([[0.5, 0.5]]), Dense(coin, None, costs)).round(3).tolist()
    [[0.838]]
    """
    after: FloatArray | float = 0.0
    for chance, table in zip(tables.chances(posterior), tables.answers, strict=True):
        left = tables.each(log_confused, posterior, table) - 2 * _log2(chance)
        after = after + np.where(chance > 0, chance * left, 0.0)
    fall = _column(log_confused(tables.by_class(posterior), tables.loss), tables) - after
    return np.asarray(information(posterior, tables) + LOSS_WEIGHT * fall)


def gbs(posterior: FloatArray, tables: Dense | Pairs) -> FloatArray:
    """Generalised binary search: the most even split by the error-free answers, noise ignored.

    The score is the share of all answers but the likeliest.

    >>> sides = [np.array([[1.0, 1.0, 0.0]]), np.array([[0.0, 0.0, 1.0]])]
    >>> gbs(np.array([[0.5, 0.3, 0.2]]), Dense(sides)).round(3).tolist()
    [[0.2]]
    """
    return 1 - reduce(np.maximum, tables.chances(posterior, tables.sides))


def _column(values: FloatArray, tables: Dense | Pairs) -> FloatArray:
    return values[:, None] if isinstance(tables, Dense) else values


CRITERIA: Mapping[str, Callable[[FloatArray, Any], FloatArray]] = MappingProxyType(
    {"information": information, "accuracy": accuracy, "ec2": ec2, "gbs": gbs, "loss": loss}
)


def first_best(scores: FloatArray, then: FloatArray | None = None) -> np.ndarray[Any, Any]:
    """Column of the largest score in each row; ties by the second score, then the first column.

    Scores closer than rounding are ties, so that one item alone and a thousand in a matrix
    product choose alike.

    >>> first_best(np.array([[0.1, 0.3, 0.3 + 1e-15]])).tolist()
    [1]
    """
    best = scores.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):  # a row of -inf, where nothing may be asked
        good = scores >= best - (TIE * np.abs(best) + 1e-13)
    if then is None:
        return np.asarray(np.argmax(good, axis=1))
    return first_best(np.where(good, then, -np.inf))
