"""What a solver takes besides its problem, and what it returns."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import numpy.typing as npt

Progress = Callable[[float, float, int], None]


class Limits(TypedDict, total=False):
    """What ends a search before its proof.

    Attributes
    ----------
    time_limit : float, optional
        Seconds; compiling does not count.
    began : float, optional
        Moment (:func:`time.monotonic`) from which they count; the start of the search unless given.
    gap_limit : float
        Stop when (value - lower bound) / value is at most this; 0 unless given.
    node_limit : int, optional
        Sets expanded; the result is the same on every machine.
    memory_limit_bytes : int
        Size of the memory of solved sets, 1 GiB unless given; past it the cheapest ones are
        forgotten.
    progress : callable, optional
        Called about once a second with value, lower bound and nodes.
    """

    time_limit: float | None
    began: float
    gap_limit: float
    node_limit: int | None
    memory_limit_bytes: int
    progress: Progress | None


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
    forgotten : int
        Solved sets that were evicted because of the memory limit.
    """

    question: npt.NDArray[np.int64]
    variant: npt.NDArray[np.int64]
    children: npt.NDArray[np.int64]
    leaves: list[npt.NDArray[np.int64]]
    value: float
    lower_bound: float
    status: str
    nodes: int
    forgotten: int

    @property
    def gap(self) -> float:
        """(value - lower bound) / value; 0 when the value is 0."""
        return (self.value - self.lower_bound) / self.value if self.value > 0 else 0.0
