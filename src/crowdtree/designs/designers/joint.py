"""The joint choice of a level's questions, exactly (docs/model.md, section 5).

Every node picks one question; the level's entropy drop and its error are the sums over the
nodes. The score is a function of the two sums, so all that matters about a node is its set of
(error, gain) points.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import FloatArray

Choice = NDArray[np.intp]
Score = Callable[[FloatArray, FloatArray], FloatArray]

SLACK = 1e-9
MAX_COMBINATIONS = 100_000


def first_best(
    gain: FloatArray, error: FloatArray, price: float, nodes: Choice | None = None
) -> tuple[Choice, FloatArray]:
    """Question of each node that maximises ``gain - price x error``; ties to the first.

    Also the least error of any question that splits the node.
    """
    if nodes is not None:
        gain, error = gain[nodes], error[nodes]
    least = np.where(gain > -np.inf, error, np.inf).min(axis=1)
    return top(gain - price * error, scale=gain + price * error), least


def top(value: FloatArray, scale: FloatArray | None = None) -> Choice:
    """First column of each row within the slack of the row's largest value.

    The slack is a fraction of the candidate's own `scale`. With a fraction of the winner's, a
    candidate of negligible gain and error would count as equal at the best price, where the
    winner's value is 0. So, each sum of candidates has a ratio within twice the slack.
    """
    size = np.where(np.isfinite(value), np.abs(value), 0.0) if scale is None else scale
    return np.asarray(np.argmax(value + SLACK * size >= value.max(axis=1)[:, None], axis=1))


def best_ratio(gain: FloatArray, error: FloatArray) -> Choice:
    """Maximise ``sum gain / sum error`` over the joint choices: Dinkelbach's iteration.

    Where every node can be split without error the score is infinite, and the largest gain
    among such choices wins.
    """
    rows: Choice = np.arange(len(gain))
    price, unsettled = _price_to_start(gain, error), rows
    choice, least = first_best(gain, error, price)
    if not np.any(least > 0):
        return top(np.where(error > 0, -np.inf, gain))
    while True:
        # What wins with the least error of its node wins at every higher price as well.
        unsettled = unsettled[error[unsettled, choice[unsettled]] > least]
        ratio = _ratio(gain[rows, choice], error[rows, choice])
        if not price * (1 + 1e-14) < ratio < math.inf:
            return choice
        price = ratio
        choice[unsettled], least = first_best(gain, error, price, unsettled)


def all_free(gain: FloatArray, error: FloatArray) -> bool:
    """Whether every node can be split by a question without error."""
    _, least = first_best(gain, error, 0.0)
    return not np.any(least > 0)


def _price_to_start(gain: FloatArray, error: FloatArray, sample: int = 64) -> float:
    """Ratio of some choice among the first questions: a lower limit of the best ratio."""
    few, wrong = gain[:, :sample], error[:, :sample]
    rows, choice = np.arange(len(few)), np.argmax(few, axis=1)
    if np.any(few[rows, choice] == -np.inf):
        return 0.0
    ratio = _ratio(few[rows, choice], wrong[rows, choice])
    return ratio if math.isfinite(ratio) else 0.0


def _ratio(gain: FloatArray, error: FloatArray) -> float:
    total = float(error.sum())
    return float(gain.sum()) / total if total > 0 else math.inf


def best_vertex(gain: FloatArray, error: FloatArray, score: Score) -> Choice:
    """Best score over the vertices of the hull of all joint (error, gain) sums.

    The vertices are swept by lowering the price of an error from infinity to zero: at each
    breakpoint one node moves to the next corner of its own hull. O(corners log corners).
    """
    corners = [_hull(gain[k], error[k]) for k in range(len(gain))]
    moves = sorted(
        (
            (-_slope(gain[k], error[k], here, there), k, place)
            for k, path in enumerate(corners)
            for place, (here, there) in enumerate(itertools.pairwise(path), start=1)
        ),
    )
    node = np.array([k for _, k, _ in moves], dtype=np.intp)
    came = np.array([corners[k][place - 1] for _, k, place in moves], dtype=np.intp)
    goes = np.array([corners[k][place] for _, k, place in moves], dtype=np.intp)
    choice = np.array([path[0] for path in corners], dtype=np.intp)
    rows = np.arange(len(gain))
    x = gain[rows, choice].sum() + np.append(0.0, np.cumsum(gain[node, goes] - gain[node, came]))
    y = error[rows, choice].sum() + np.append(0.0, np.cumsum(error[node, goes] - error[node, came]))
    last = int(top(score(x, np.maximum(y, 0.0))[None, :])[0])
    for k, question in zip(node[:last].tolist(), goes[:last].tolist(), strict=True):
        choice[k] = question
    return _first_alike(choice, gain, error)


def _slope(gain: FloatArray, error: FloatArray, here: int, there: int) -> float:
    return float((gain[there] - gain[here]) / (error[there] - error[here]))


def _hull(gain: FloatArray, error: FloatArray) -> list[int]:
    """Corners of the upper left hull, from the least error up; equal points: the first."""
    corners: list[int] = []
    for q in undominated(gain, error):
        while len(corners) > 1 and _slope(gain, error, corners[-1], q) >= _slope(
            gain, error, corners[-2], corners[-1]
        ) * (1 - SLACK):
            corners.pop()
        corners.append(q)
    return corners


def undominated(gain: FloatArray, error: FloatArray) -> list[int]:
    """Questions such that no other gains as much for as little error, least error first."""
    usable = np.flatnonzero(gain > -np.inf)
    order = usable[np.lexsort((usable, -gain[usable], error[usable]))]
    rising = np.append(True, gain[order[1:]] > np.maximum.accumulate(gain[order])[:-1])
    order = order[rising]  # the rest is dominated by a question of less error
    kept: list[int] = []
    for q in order.tolist():
        if kept and gain[q] <= gain[kept[-1]] + SLACK * abs(gain[kept[-1]]):
            continue
        if kept and error[q] <= error[kept[-1]] * (1 + SLACK):  # same error, up to rounding
            kept.pop()
        kept.append(q)
    return kept


def enumerate_choices(
    candidates: list[list[int]], gain: FloatArray, error: FloatArray, score: Score
) -> Choice | None:
    """Best score over all combinations of candidates, ``None`` if they are too many.

    Ties go to the combination that comes first, nodes counted from left to right.
    """
    if math.prod(len(options) for options in candidates) > MAX_COMBINATIONS:
        return None
    rows = np.arange(len(gain))
    best: Choice | None = None
    best_score = -math.inf
    for block in _blocks(candidates):
        values = score(gain[rows, block].sum(axis=1), error[rows, block].sum(axis=1))
        place = int(top(values[None, :])[0])
        slack = SLACK * abs(best_score) if math.isfinite(best_score) else 0.0
        if best is None or values[place] > best_score + slack:
            best, best_score = block[place], float(values[place])
    return None if best is None else _first_alike(best, gain, error)


def _first_alike(choice: Choice, gain: FloatArray, error: FloatArray) -> Choice:
    """Replace each question by the first in the file with the same effect at its node."""
    rows = np.arange(len(choice))
    my_gain, my_error = gain[rows, choice][:, None], error[rows, choice][:, None]
    with np.errstate(invalid="ignore"):
        alike = np.abs(gain - my_gain) <= SLACK * my_gain
        alike &= np.abs(error - my_error) <= SLACK * my_error
    return np.asarray(np.argmax(alike, axis=1))


def _blocks(candidates: list[list[int]], size: int = 8192) -> Iterator[Choice]:
    combinations = itertools.product(*candidates)
    while block := list(itertools.islice(combinations, size)):
        yield np.array(block, dtype=np.intp)
