"""What a mistake costs: a loss per (truth, label), and the price of an expert (docs/losses.md).

Everything that chooses a label minimises expected loss through :meth:`Loss.decide`. Without a
:class:`Loss` every mistake costs 1 (0/1 loss): the expected loss is the probability of a mistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.errors import CrowdtreeError, listing, one_line

NEVER = 1000.0
"""Loss of a confusion that must never happen, unless another is given."""
WITHIN = 0.1
"""Loss of a mistake inside a group, unless another is given."""
MOST = 1e9
"""Largest loss: beyond, a sum of expected losses has no digits left for small ones."""
FIELDS = ("matrix", "groups", "within", "between", "pairs", "never", "never_loss", "refer")
TIE = 1e-9
CELLS = 2_000_000
"""Cells of a temporary table; above, questions are taken one by one."""


class Decision(NamedTuple):
    """The best decision for each row: the label, its expected loss, and whether to refer.

    `risk` is that of the decision: the price of the expert where the item is referred. `label` is
    then the best guess.
    """

    label: NDArray[np.intp]
    risk: FloatArray
    referred: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Loss:
    """Loss of each label (column) given the true class (row), and the price of an expert.

    Made by :func:`make_loss`, which checks its input.

    Parameters
    ----------
    matrix
        ``loss[truth, label]``: 0 on the diagonal, at least 0 elsewhere.
    refer
        Price of referring an item to an expert, who is always right; ``None``: no expert.

    Examples
    --------
    >>> loss = Loss(np.array([[0.0, 100.0], [1.0, 0.0]]), refer=5.0)
    >>> loss.decide(np.array([[0.001, 0.999], [0.02, 0.98], [0.5, 0.5]]))
    Decision(label=array([1, 0, 0]), risk=array([0.1 , 0.98, 0.5 ]), referred=array([False, ...]))
    """

    matrix: FloatArray
    refer: float | None = None

    @cached_property
    def largest(self) -> float:
        """Largest loss of a mistake."""
        return float(self.matrix.max())

    @cached_property
    def least(self) -> float:
        """Smallest loss of a mistake."""
        return float(self.matrix[~np.eye(len(self.matrix), dtype=bool)].min())

    @property
    def is_plain(self) -> bool:
        """Whether this is 0/1 loss without an expert."""
        return self.refer is None and self.least == self.largest == 1.0

    def decide(self, weight: FloatArray) -> Decision:
        """Best decision for each row of probabilities of the classes, which need not sum to 1.

        Labels of equal expected loss: the likelier one, then the first.
        """
        risk = weight @ self.matrix
        low = risk.min(axis=-1, keepdims=True)
        tied = np.where(risk <= low * (1 + TIE), weight, -1.0)
        label = np.argmax(tied >= tied.max(axis=-1, keepdims=True) * (1 - TIE), axis=-1)
        found = low[..., 0]
        if self.refer is None:
            return Decision(label, found, np.zeros(found.shape, dtype=bool))
        price = self.refer * weight.sum(axis=-1)
        referred = price < found * (1 - TIE)
        return Decision(label, np.where(referred, price, found), referred)

    def risk_of(self, posterior: FloatArray, label: Any, referred: Any) -> FloatArray:
        """Expected loss of decisions already made, one per row of the posterior.

        >>> Loss(np.array([[0.0, 9.0], [1.0, 0.0]]), refer=0.5).risk_of(
        ...     np.array([[0.1, 0.9], [0.5, 0.5]]), np.array([1, 0]), np.array([False, True]))
        array([0.9, 0.5])
        """
        found = np.einsum("...c,...c->...", posterior, self.matrix.T[label])
        return np.asarray(found if self.refer is None else np.where(referred, self.refer, found))

    def stakes(self, right_sets: NDArray[np.uint32], members: NDArray[Any]) -> FloatArray:
        """Largest loss that a wrong branch can cause, one row per question, one column per member.

        After a wrong answer an item is among the classes for which that answer is right, so its
        label is one of these (docs/model.md, section 15). `right_sets` are the right answers of the
        `members` of the node as bits, one row per question.
        """
        matrix = self.matrix[np.ix_(members, members)]
        if right_sets.size * len(members) > CELLS and len(right_sets) > 1:
            return np.concatenate([self.stakes(row[None], members) for row in right_sets])
        apart = (~right_sets[:, :, None] & right_sets[:, None]) != 0  # right for the other only
        return np.asarray(np.where(apart, matrix, 0.0).max(axis=2))

    def to_dict(self) -> dict[str, Any]:
        """Write the loss as plain JSON."""
        data: dict[str, Any] = {"matrix": self.matrix.tolist()}
        return data if self.refer is None else data | {"refer": self.refer}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Loss):
            return NotImplemented
        return self.refer == other.refer and np.array_equal(self.matrix, other.matrix)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        expert = "" if self.refer is None else f", refer={self.refer:g}"
        return f"Loss({self.least:g} to {self.largest:g}{expert})"


def referring(loss: Loss | None, price: float, classes: int) -> Loss:
    """Add an expert to a loss (0/1 loss where there is none): the price of referring an item."""
    return Loss(1.0 - np.eye(classes) if loss is None else loss.matrix, price)


def make_loss(given: Any, classes: Sequence[str]) -> Loss | None:
    """Make a loss from any of its spellings; ``None`` for 0/1 loss.

    `given` is a matrix ``loss[truth][label]``, a :class:`Loss`, or a mapping with any of these
    fields, each taking precedence over those before it: ``matrix``; ``groups`` (lists of classes,
    or a mapping from the name of a group to its classes), in which a mistake costs ``within`` (0.1
    by default), while other mistakes cost ``between`` (1); ``pairs`` (truth, then label, to loss);
    ``never`` (pairs of truth and label, each a class, a group or a list of these) at ``never_loss``
    (1000); and ``refer``, the price of an expert.

    Examples
    --------
    >>> make_loss({"groups": {"bad": ["a", "b"]}, "never": [["bad", "c"]]}, ["a", "b", "c"]).matrix
    array([[0.e+00, 1.e-01, 1.e+03],
           [1.e-01, 0.e+00, 1.e+03],
           [1.e+00, 1.e+00, 0.e+00]])
    >>> make_loss([[0, 1], [-1, 0]], ["a", "b"])
    Traceback (most recent call last):
    crowdtree.CrowdtreeError: loss: truth 'b', label 'a' has -1; expected a number from 0...
    """
    if given is None:
        return None
    if isinstance(given, Loss):
        given = {"matrix": given.matrix, "refer": given.refer}
    elif not isinstance(given, Mapping):
        given = {"matrix": given}
    made = Loss(_matrix(given, tuple(classes)), _refer(given.get("refer")))
    return None if made.is_plain else made


def _matrix(given: Mapping[Any, Any], classes: tuple[str, ...]) -> FloatArray:
    for name in given:
        if name not in FIELDS:
            raise CrowdtreeError(f"loss: no field {one_line(name)}; use any of {', '.join(FIELDS)}")
    for name, needed in (("within", "groups"), ("never_loss", "never")):
        if given.get(name) is not None and given.get(needed) is None:
            raise CrowdtreeError(f"loss: {name} is given without {needed}; add {needed}")
    matrix = _base(given, len(classes))
    names = _Names(given.get("groups"), classes)
    within = _number(given.get("within"), "within", WITHIN)
    for group in names.groups:
        matrix[np.ix_(group, group)] = within
        matrix[group, group] = 0.0
    pairs = given.get("pairs") or {}
    if not isinstance(pairs, Mapping) or not all(isinstance(p, Mapping) for p in pairs.values()):
        raise CrowdtreeError("loss: pairs: expected {truth: {label: loss}}")
    for truth, row in pairs.items():
        for label, value in row.items():
            where = f"truth {one_line(truth)}, label {one_line(label)}"
            _put(matrix, names, (truth, label), _number(value, f"pairs: {where}"), "pairs")
    large = _number(given.get("never_loss"), "never_loss", NEVER)
    for pair in _listed(given.get("never"), "never", "pairs of truth and label"):
        ends = list(pair) if isinstance(pair, Sequence) and not isinstance(pair, str) else []
        if len(ends) != 2:
            raise CrowdtreeError(
                f"loss: never: expected pairs of truth and label, got {one_line(pair)}"
            )
        _put(matrix, names, (ends[0], ends[1]), large, "never")
    _check(matrix, classes)
    matrix.flags.writeable = False
    return matrix


def _base(given: Mapping[Any, Any], size: int) -> FloatArray:
    """Matrix as given, or one loss for every mistake."""
    if given.get("matrix") is None:
        return _number(given.get("between"), "between", 1.0) * (1 - np.eye(size))
    for name in ("groups", "within", "between"):
        if given.get(name) is not None:
            raise CrowdtreeError(f"loss: give a matrix or {name}, not both")
    try:
        matrix = np.array(given["matrix"], dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise CrowdtreeError(
            f"loss: expected a table of {size} x {size} numbers, one row per true class"
        ) from None
    if matrix.shape != (size, size):
        shape = " x ".join(map(str, matrix.shape)) or "one number"
        raise CrowdtreeError(
            f"loss: expected a table of {size} x {size} numbers, one row per true class and one "
            f"column per label, got {shape}"
        )
    return matrix


class _Names:
    """Classes and groups by their names."""

    def __init__(self, groups: Any, classes: tuple[str, ...]) -> None:
        self.places = {name: [place] for place, name in enumerate(classes)}
        self.groups: list[list[int]] = []
        named = groups.items() if isinstance(groups, Mapping) else None
        rows = named or ((None, row) for row in _listed(groups, "groups", "lists of classes"))
        for name, members in rows:
            found = [self.of(member, "groups") for member in _listed(members, "groups", "classes")]
            places = [place for part in found for place in part]
            taken = set(places) & {place for group in self.groups for place in group}
            if taken or len(set(places)) < len(places):
                twice = classes[min(taken or {p for p in places if places.count(p) > 1})]
                raise CrowdtreeError(f"loss: groups: class {one_line(twice)} is in two groups")
            self.groups.append(places)
            if name is not None and str(name) in classes:
                raise CrowdtreeError(
                    f"loss: groups: {one_line(name)} is the name of a class; rename the group"
                )
        if named:
            self.places |= {str(n): g for n, g in zip(dict(named), self.groups, strict=True)}

    def of(self, name: Any, field: str) -> list[int]:
        """Places of a class, of a group, or of a list of these."""
        if isinstance(name, list | tuple):
            return [place for part in name for place in self.of(part, field)]
        found = self.places.get(str(name))
        if found is None:
            raise CrowdtreeError(
                f"loss: {field}: {one_line(name)} is not a class"
                f"{'' if field == 'groups' else ' or a group'}; the classes are "
                f"{listing(self.places)}"
            )
        return found


def _put(
    matrix: FloatArray, names: _Names, pair: tuple[Any, Any], value: float, field: str
) -> None:
    truth, label = names.of(pair[0], field), names.of(pair[1], field)
    if set(truth) & set(label) and value:
        raise CrowdtreeError(
            f"loss: {field}: truth {one_line(pair[0])} and label {one_line(pair[1])} share a "
            "class; a right label costs nothing"
        )
    matrix[np.ix_(truth, label)] = value


def _check(matrix: FloatArray, classes: tuple[str, ...]) -> None:
    bad = np.argwhere(~((matrix >= 0) & (matrix <= MOST)))
    if len(bad):
        truth, label = bad[0]
        raise CrowdtreeError(
            f"loss: truth {one_line(classes[truth])}, label {one_line(classes[label])} has "
            f"{matrix[truth, label]:g}; expected a number from 0 to {MOST:g}"
        )
    right = np.flatnonzero(np.diagonal(matrix))
    if len(right):
        place = right[0]
        raise CrowdtreeError(
            f"loss: class {one_line(classes[place])} costs {matrix[place, place]:g} where it is "
            "labelled rightly; write 0 on the diagonal"
        )
    if not matrix.any():
        raise CrowdtreeError("loss: every mistake costs 0; give at least one a loss above 0")


def _refer(price: Any) -> float | None:
    return None if price is None else _number(price, "refer")


def _number(value: Any, field: str, default: float = 0.0) -> float:
    if value is None:
        return default
    try:
        number = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not 0 <= number <= MOST:
        raise CrowdtreeError(
            f"loss: {field}: expected a number from 0 to {MOST:g}, got {one_line(value)}"
        )
    return number


def _listed(values: Any, field: str, things: str) -> Iterable[Any]:
    if values is None:
        return []
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise CrowdtreeError(f"loss: {field}: expected a list of {things}, got {one_line(values)}")
    return list(values)
