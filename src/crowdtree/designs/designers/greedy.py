"""The paper's designs: a whole level is chosen jointly (docs/model.md, section 5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crowdtree.core import scores
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.outcomes import SEVERAL
from crowdtree.core.problem import Problem
from crowdtree.core.tree import Tree
from crowdtree.designs.designers import joint
from crowdtree.designs.designers.baselines import in_order
from crowdtree.designs.designers.grow import LevelTable, grow

Choice = NDArray[np.intp]


def fm(problem: Problem) -> Tree:
    """Maximise ``F^m(d)``, the entropy removed per error added, level by level.

    References
    ----------
    Geng, Li and Varshney (2018), section III-A; Dinkelbach (1967) for the joint choice.
    """
    return grow(problem, lambda level: joint.best_ratio(level.gain, level.error), "fm")


def fc(problem: Problem, r: float = 1.0) -> Tree:
    """Maximise the corrected ``F^c(d)`` level by level.

    The optimum is a corner of the hull of all joint choices whenever its score is at least 1.
    Below (a level that loses a larger share of items than of entropy) the undominated
    combinations are enumerated; if there are more than 100,000, the best corner is used.

    References
    ----------
    Geng, Li and Varshney (2018), section III-B, corrected as docs/errata.md says.
    """
    if not 0 < r < np.inf:
        raise CrowdtreeError(f"r: must be positive and finite, got {r!r}")

    def choose(level: LevelTable) -> Choice:
        def score(drop: NDArray[np.float64], error: NDArray[np.float64]) -> NDArray[np.float64]:
            return scores.multiplicative_score(level.entropy, drop, error, r)

        if joint.all_free(level.gain, level.error):
            return joint.best_ratio(level.gain, level.error)  # a level without any error
        corner = joint.best_vertex(level.gain, level.error, score)
        rows = np.arange(len(corner))
        reached = score(level.gain[rows, corner].sum(), level.error[rows, corner].sum())
        if reached >= 1:
            return corner
        candidates = [
            joint.undominated(gain, error)
            for gain, error in zip(level.gain, level.error, strict=True)
        ]
        found = joint.enumerate_choices(candidates, level.gain, level.error, score)
        return corner if found is None else found

    return grow(problem, choose, "fc", _unresolved(problem))


def fc_printed(problem: Problem) -> Tree:
    """Minimise ``F^c(d)`` as the paper prints it: prefers the least informative questions."""

    def choose(level: LevelTable) -> Choice:
        candidates = [
            joint.undominated(np.where(gain > -np.inf, -gain, -np.inf), error)
            for gain, error in zip(level.gain, level.error, strict=True)
        ]
        found = joint.enumerate_choices(
            candidates,
            level.gain,
            level.error,
            lambda drop, error: -scores.printed_score(level.entropy, drop, error),
        )
        if found is None:
            raise CrowdtreeError(
                f"fc-printed: a level of {len(candidates)} nodes has more than "
                f'{joint.MAX_COMBINATIONS:,} combinations of questions; use method="fc"'
            )
        return found

    return grow(problem, choose, "fc-printed", _unresolved(problem))


def _unresolved(problem: Problem) -> float:
    """Entropy inside the final groups; 0 where these depend on the tree (several right answers)."""
    if problem.dash == "either" or (problem.outcome == SEVERAL).any():
        return 0.0
    tree = in_order(problem, np.arange(problem.n_questions), "file order")
    lost = 0.0
    for members in tree.leaf_classes:
        share = problem.prior[list(members)]
        lost += float(share.sum() * np.log2(share.sum()) - share @ np.log2(share))
    return lost
