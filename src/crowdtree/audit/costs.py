"""What wrong labels cost in an audit: losses as shares of the largest that a label can have.

A label bounds what it can cost: at most the largest loss in its column. Items whose labels can cost
about the same share strata, so that cheap labels, which cannot cost much whatever is true, are
seldom drawn for a bound on the mean loss. See section 13.4 of docs/model.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from crowdtree.audit.strata import MAX_STRATA, stratify
from crowdtree.core.arrays import FloatArray, IntArray
from crowdtree.core.errors import CrowdtreeError, listing, one_line
from crowdtree.core.loss import Loss, make_loss

LEVELS = 4
"""Groups of labels by what they can cost: each a tenth of the one before."""
LEAST = 1e-6
"""Smallest share of the largest loss that a label is taken to be able to cost."""
RATIO = 1.02
"""Sums of losses are tested in steps of this ratio, down to the part `LEAST` of the largest."""


class Costs:
    """Losses of audited labels.

    `classes`: names of the classes; by default the labels and the known truths, sorted. `errors`,
    `risks`: stated error and stated expected loss of each item. Without `risks`: the error times
    the mean loss of the label's mistakes.
    """

    def __init__(
        self,
        loss: Any,
        classes: Sequence[str] | None,
        labels: Sequence[str],
        errors: Sequence[float],
        risks: Sequence[float] | None,
        truths: Iterable[str] = (),
    ) -> None:
        named = sorted({*labels, *truths}) if classes is None else list(map(str, classes))
        made = make_loss(loss, named)
        self.classes: tuple[str, ...] = tuple(named)
        self.loss = made or Loss(1.0 - np.eye(len(named)))
        self.place = {name: place for place, name in enumerate(self.classes)}
        missing = sorted(set(labels) - set(self.place))
        if missing:
            raise CrowdtreeError(
                f"loss: label {one_line(missing[0])} is not a class of the loss; the classes are "
                f"{listing(self.classes)}"
            )
        self.columns = np.array([self.place[label] for label in labels])
        most = self.loss.matrix.max(axis=0)
        self.largest = float(most[self.columns].max())
        """Largest loss that any of the labels can have."""
        if not self.largest:
            raise CrowdtreeError("loss: no mistake of these labels costs anything; check the loss")
        level = np.floor(-np.log10(np.maximum(most / self.largest, 10.0**-LEVELS)) + 1e-9)
        level = np.clip(level, 0, LEVELS - 1).astype(np.int64)
        used = np.isin(np.arange(len(most)), self.columns)
        top = [most[used & (level == k)].max(initial=0.0) / self.largest for k in range(LEVELS)]
        self._size = np.minimum(np.maximum(np.array(top), LEAST), 1.0)[level]
        self.strata = self._strata(level[self.columns], np.array(errors))
        self.size = np.zeros(int(self.strata.max()) + 1)
        self.size[self.strata] = self._size[self.columns]
        self.stated = self._stated(np.array(errors), risks)

    def _strata(self, level: IntArray, errors: FloatArray) -> IntArray:
        """Strata of labels that can cost about the same, and of similar stated error."""
        found = np.zeros(len(errors), dtype=np.int64)
        used = np.unique(level)
        first = 0
        for k in used:
            mine = level == k
            found[mine] = first + stratify(errors[mine], max(3, MAX_STRATA // len(used)))
            first = int(found[mine].max()) + 1
        return found

    def _stated(self, errors: FloatArray, risks: Sequence[float] | None) -> FloatArray:
        """Stated expected loss of each item as a share of the largest of its stratum."""
        if risks is None:
            others = max(len(self.classes) - 1, 1)
            expected = errors * (self.loss.matrix.sum(axis=0) / others)[self.columns]
        else:
            expected = np.array(risks, dtype=np.float64)
        return np.asarray(np.clip(expected / (self.largest * self.size[self.strata]), 0.0, 1.0))

    def share(self, place: int, right: bool, truth: str | None) -> float:
        """Loss of an item as a share of the largest of its stratum.

        A wrong label whose truth was not given, or is none of the classes, counts as the worst.
        """
        if right:
            return 0.0
        column = self.columns[place]
        row = None if truth is None else self.place.get(truth)
        found = self.loss.matrix[:, column].max() if row is None else self.loss.matrix[row, column]
        return float(found / (self.largest * self._size[column]))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return {"classes": list(self.classes), "matrix": self.loss.matrix.tolist()}


def totals_of_loss(whole: float, wanted: float | None) -> FloatArray:
    """Sums of losses that are tested, 0 to the largest possible; the one wanted is among them.

    >>> totals_of_loss(8.0, 0.5)[[0, -1]].tolist(), bool((totals_of_loss(8.0, 0.5) == 0.5).any())
    ([0.0, 8.0], True)
    """
    steps = int(np.log(1 / LEAST) / np.log(RATIO))
    made = {0.0, whole, *(whole * RATIO ** -np.arange(1, steps)).tolist()}
    if wanted is not None:
        made.add(min(wanted, whole))
    return np.array(sorted(made))


def checked_risks(risks: Sequence[Any] | None, count: int) -> list[float] | None:
    """Accept one expected loss of 0 or more per item, or raise."""
    if risks is None:
        return None
    found = [float(risk) if isinstance(risk, int | float | np.number) else -1.0 for risk in risks]
    if len(found) != count or not all(0 <= risk < np.inf for risk in found):
        raise CrowdtreeError(f"risks: expected {count} expected losses of 0 or more, one per item")
    return found
