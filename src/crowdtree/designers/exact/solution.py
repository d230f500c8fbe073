"""The result of a solver."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Solution:
    """A tree, its value and a proven lower bound.

    Attributes
    ----------
    question, variant : array of int64, shape (nodes,)
        Question and variant of each inner node, breadth first from the root.
    children : array of int64, shape (nodes, 2)
        Where outcome 0 and outcome 1 lead: an inner node, or `~leaf` (negative).
    leaves : list of arrays of int64
        The classes of every leaf.
    value : float
        Cost of the tree.
    lower_bound : float
        No tree costs less.
    status : str
        "optimal", "gap limit", "time limit", "node limit" or "interrupted".
    nodes : int
        Sets expanded.
    statistics : dict
        Cache size, entries evicted, seconds.
    """

    question: npt.NDArray[np.int64]
    variant: npt.NDArray[np.int64]
    children: npt.NDArray[np.int64]
    leaves: list[npt.NDArray[np.int64]]
    value: float
    lower_bound: float
    status: str
    nodes: int
    statistics: dict[str, float] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        """(value - lower bound) / value; 0 when the value is 0."""
        return (self.value - self.lower_bound) / self.value if self.value > 0 else 0.0
