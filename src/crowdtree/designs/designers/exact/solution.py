"""What a solver takes besides its problem, and what it returns."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TypedDict

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Progress = Callable[[float, float, int], None]


@cache
def can_compile() -> bool:
    """Whether numba is installed, which comes with the extra `fast`."""
    try:
        return importlib.util.find_spec("numba") is not None
    except ModuleNotFoundError:  # raised by finders that block it
        return False


class Limits(TypedDict, total=False):
    """What ends a search before its proof.

    `time_limit` is in seconds from `began` (:func:`time.monotonic`, by default the start of the
    search), without compiling; `gap_limit` is that of (value - lower bound) / value; `node_limit`,
    in sets expanded, gives the same result on every machine. Past `memory_limit_bytes` (1 GiB) the
    cheapest solved sets are forgotten. `progress` is called about once a second with value, lower
    bound and nodes.
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

    `question` and `variant` are those of each inner node, breadth first; `children` (node, outcome)
    leads to an inner node, or `~leaf`; `leaves` are the classes of each. `status` is "optimal", or
    what ended the search: "gap limit", "time limit", "node limit" or "interrupted". `nodes` counts
    sets expanded, `forgotten` solved sets that were evicted.
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
