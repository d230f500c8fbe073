"""What labels are worth as a whole: the share that is right, or what their mistakes cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.loss import Decision, Loss

__all__ = ["Judge", "MeanLoss"]

FloatArray = NDArray[np.float64]


class MeanLoss(NamedTuple):
    """Expected loss per item of the labels: an estimate with its interval.

    `known` is the number of items of known class behind it.
    """

    value: float
    low: float
    high: float
    known: int
    level: float = 0.95

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True)
class Judge:
    """Judges labels by the share that is right or, with `costs`, by their mean loss.

    `loss` is what labels minimise; without it a label is the likeliest class.
    """

    loss: Loss | None = None
    costs: bool = False

    @property
    def most(self) -> float:
        """Largest value that an item can have."""
        if not self.costs or self.loss is None:
            return 1.0
        return max(self.loss.largest, self.loss.refer or 0.0)

    def decide(self, plain: FloatArray, stated: FloatArray) -> Decision:
        """Labels of items with these posteriors, before and after they are discounted."""
        if self.loss is not None:
            return self.loss.decide(stated)
        count = len(plain)
        return Decision(plain.argmax(axis=1), np.zeros(count), np.zeros(count, dtype=bool))

    def expected(self, posterior: FloatArray, made: Decision) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the value of each item, given the probabilities of its classes.

        >>> Judge().expected(np.array([[0.7, 0.3]]), Decision(np.array([1]), None, None))
        (array([0.3]), array([0.21]))
        """
        if self.loss is None or not self.costs:
            right = posterior[np.arange(len(posterior)), made.label]
            return right, right * (1 - right)
        refer = self.loss.refer
        squared = Loss(self.loss.matrix**2, None if refer is None else refer**2)
        mean, square = (
            loss.risk_of(posterior, made.label, made.referred) for loss in (self.loss, squared)
        )
        return mean, np.maximum(square - mean**2, 0.0)

    def found(self, truth: NDArray[Any], made: Decision) -> FloatArray:
        """Value of each item whose class is known."""
        if self.loss is None or not self.costs:
            return np.asarray(made.label == truth, dtype=np.float64)
        classes = np.eye(len(self.loss.matrix))
        return self.loss.risk_of(classes[truth], made.label, made.referred)
