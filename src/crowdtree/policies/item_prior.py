"""The own prior of an item, in place of the problem's: what a classifier says, for example."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.likelihood import LEAST
from crowdtree.core.problem import PRIOR_TOLERANCE, Problem

__all__ = ["check_priors", "dump_prior", "load_prior", "start_of"]

FloatArray = NDArray[np.float64]


def check_priors(problem: Problem, prior: ArrayLike, what: str = "prior") -> FloatArray:
    """Check priors of items: one number per class, in one row or one row per item.

    A class of probability 0 could not come back whatever people answer, so probabilities are at
    least 1e-9.

    >>> problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1)
    >>> check_priors(problem, [0.75, 0.25]).tolist()
    [0.75, 0.25]
    >>> check_priors(problem, [[1.0, 0.0]]).tolist()
    [[1.0, 1e-09]]
    """
    try:
        rows = np.asarray(prior, dtype=np.float64)
    except (TypeError, ValueError):
        raise CrowdtreeError(f"{what}: expected one probability per class") from None
    if rows.ndim not in (1, 2) or rows.shape[-1] != problem.n_classes:
        raise CrowdtreeError(
            f"{what}: expected {problem.n_classes} probabilities, one per class, got shape "
            f"{rows.shape}"
        )
    table = np.atleast_2d(rows)
    good = np.isfinite(table) & (table >= 0)
    if not good.all():
        row, cls = np.argwhere(~good)[0]
        raise CrowdtreeError(
            f"{what}: row {row}, class {problem.classes[cls]!r}: expected a probability, got "
            f"{table[row, cls]:g}"
        )
    total = table.sum(axis=1)
    off = np.flatnonzero(np.abs(total - 1) > PRIOR_TOLERANCE)
    if len(off):
        raise CrowdtreeError(
            f"{what}: row {off[0]} sums to {total[off[0]]:.6g}, not 1; divide it by its sum"
        )
    return np.maximum(rows, np.minimum(LEAST, problem.prior))


def dump_prior(prior: FloatArray | None) -> dict[str, Any]:
    """Write the own prior of an item as a part of its state: nothing where it has none."""
    return {} if prior is None else {"prior": prior.tolist()}


def load_prior(state: dict[str, Any]) -> FloatArray | None:
    """Read back what :func:`dump_prior` wrote."""
    return np.array(state["prior"]) if "prior" in state else None


def start_of(policy: Any, prior: ArrayLike | None) -> Any:
    """State of an item without answers; a policy that knows no priors of items will do for None."""
    return policy.start() if prior is None else policy.start(prior)
