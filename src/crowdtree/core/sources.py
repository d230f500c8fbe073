"""Sources of answers: people, experts and models, each with errors and a price of its own."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.checking import check_call, got, is_number
from crowdtree.core.errors import CrowdtreeError, listing
from crowdtree.core.outcomes import quoted

__all__ = ["PEOPLE", "Source", "SourceError", "check_sources"]

Kind = Literal["people", "expert", "model"]
MAX_SOURCES = 64


class SourceError(CrowdtreeError):
    """An error in one source: its name, and what is wrong with which of its fields."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"source {quoted(name)}: {what}")
        self.name, self.what = name, what


@dataclass(frozen=True, eq=False)
class Source:
    """Who answers: people, an expert, or one version of a model.

    Errors are those of the problem, unless the source has some of its own.

    Parameters
    ----------
    name
        Name of the source, such as ``"people"`` or ``"gpt-x 1.1"``.
    kind
        ``"people"``, ``"expert"`` or ``"model"``.
    price
        Price of one answer; the price of the question, where there is one, multiplies it.
    worker_error
        Probability that an answer is not right, as in :class:`crowdtree.Problem`: one number, one
        per question, or one per cell.
    error_factor
        In its place: the problem's errors times this number.
    confusion, table
        In their place: ``P(answer | right answer)`` or ``P(answer | class)`` of some questions, as
        in :class:`crowdtree.Problem`.
    unsure
        Probability of "can't tell", as in :class:`crowdtree.Problem`.
    dependence
        Correlation of two answers of the source to one question on one item, from 0 to below 1;
        ``None`` for the problem's.
    repeatable
        Whether asking again gives a new answer. ``None``: for people yes, for others no.
    most_per_item
        Most answers of the source per item; ``None`` for no limit.
    refers
        Whether the source does not answer questions but names the class of an item, and is right.
        Items go there when that is cheaper than the expected loss of any label.

    Examples
    --------
    >>> Source("gpt-x 1.1", "model", price=0.02, worker_error=0.2)
    Source('gpt-x 1.1', 'model', price=0.02, worker_error=0.2)
    """

    name: str
    kind: Kind = "people"
    price: float = 1.0
    worker_error: Any = None
    error_factor: float = 1.0
    confusion: Any = None
    table: Any = None
    unsure: Any = None
    dependence: float | None = None
    repeatable: bool | None = None
    most_per_item: int | None = None
    refers: bool = False

    def __post_init__(self) -> None:
        check_call(Source, {name: getattr(self, name) for name in CHECKED})
        if [self.name.strip()] != self.name.splitlines() or "|" in self.name:
            raise CrowdtreeError(
                "sources: expected a name on one line, without | and blanks around it, got "
                f"{quoted(self.name)}"
            )
        fault = next(self._faults(), None)
        if fault is not None:
            raise SourceError(self.name, fault)

    def _faults(self) -> Iterator[str]:
        """What is wrong with the fields, by name."""
        if not (math.isfinite(self.price) and self.price > 0):
            yield (
                f"price: expected a number above 0, got {self.price:g}; give a free source a small "
                "price"
            )
        if not (math.isfinite(self.error_factor) and self.error_factor >= 0):
            yield f"error_factor: expected 0 or more, got {self.error_factor:g}"
        if self.dependence is not None and not 0 <= self.dependence < 1:
            yield f"dependence: expected a number from 0 to below 1, got {self.dependence:g}"
        if self.most_per_item is not None and not 1 <= self.most_per_item <= 32_000:
            yield (
                f"most_per_item: expected a whole number from 1 to 32,000, got {self.most_per_item}"
            )
        if self.error_factor != 1 and self.worker_error is not None:
            yield "worker_error: expected this or error_factor, got both"
        if self.refers and (self.own or self.error_factor != 1):
            yield (
                "refers: names classes and is right; leave out "
                f"{listing(self.own or ['error_factor'])}"
            )

    @property
    def may_repeat(self) -> bool:
        """Whether asking again gives a new answer."""
        return self.kind == "people" if self.repeatable is None else self.repeatable

    @property
    def own(self) -> dict[str, Any]:
        """Arguments of :class:`crowdtree.Problem` that the source replaces."""
        return {name: getattr(self, name) for name in OWN if getattr(self, name) is not None}

    @property
    def has_errors(self) -> bool:
        """Whether the source has errors of its own."""
        return bool(self.own.keys() & {"worker_error", "confusion", "table"})

    def without_own(self) -> Source:
        """Make the source whose errors are those of its problem."""
        if self.error_factor != 1:
            raise SourceError(
                self.name,
                "error_factor: is relative to other sources, and there are none; give the worker "
                "error itself",
            )
        none: dict[str, Any] = dict.fromkeys(OWN)
        return dataclasses.replace(self, **none)

    def to_dict(self) -> dict[str, Any]:
        """Write the source as plain JSON, without what is as usual."""
        return {
            field.name: _plain(getattr(self, field.name))
            for field in dataclasses.fields(self)
            if not _same(getattr(self, field.name), field.default)
        }

    @classmethod
    def from_dict(cls, data: Any) -> Source:
        """Read what :meth:`to_dict` wrote."""
        if not isinstance(data, Mapping):
            raise CrowdtreeError(
                f"sources: expected a mapping with a name for each source, got {quoted(data)}"
            )
        names = [field.name for field in dataclasses.fields(cls)]
        unknown = [str(key) for key in data if key not in names]
        if unknown:
            raise CrowdtreeError(
                f"sources: {listing(map(quoted, unknown))} is not known; expected {listing(names)}"
            )
        if not isinstance(data.get("name"), str):
            raise CrowdtreeError(f"sources: expected a name, got {got(data.get('name'))}")
        return cls(**data)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Source):
            return NotImplemented
        return all(
            _same(getattr(self, field.name), getattr(other, field.name))
            for field in dataclasses.fields(self)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = [repr(self.name), *([repr(self.kind)] if self.kind != "people" else [])]
        for field in dataclasses.fields(self)[2:]:
            value = getattr(self, field.name)
            if not _same(value, field.default):
                text = f"{value!r}" if is_number(value) or isinstance(value, bool) else "..."
                shown.append(f"{field.name}={text}")
        return f"Source({', '.join(shown)})"


OWN = ("worker_error", "confusion", "table", "unsure", "dependence")
CHECKED = (
    "name", "kind", "price", "error_factor", "dependence", "repeatable", "most_per_item", "refers"
)  # fmt: skip
PEOPLE = Source("people")
"""The one source of a problem that names none."""


def check_sources(given: Any, refer: float | None) -> tuple[tuple[Source, ...], Source | None]:
    """Sources that answer questions, and the one that names classes, if there is one.

    Without sources: people. `refer` is the price of the expert of the losses.
    """
    expert = None if refer is None else Source("expert", "expert", price=refer, refers=True)
    if given is None:
        return (PEOPLE,), expert
    if isinstance(given, str | Mapping | Source) or not isinstance(given, Sequence):
        raise CrowdtreeError(f"sources: expected a list of sources, got {quoted(given)}")
    listed = [one if isinstance(one, Source) else Source.from_dict(one) for one in given]
    if not 1 <= len(listed) <= MAX_SOURCES:
        raise CrowdtreeError(f"sources: expected 1 to {MAX_SOURCES} sources, got {len(listed)}")
    names = [source.name.casefold() for source in listed]
    twice = [s.name for s in listed if names.count(s.name.casefold()) > 1]
    if twice:
        raise CrowdtreeError(
            f"sources: {listing(map(quoted, dict.fromkeys(twice)))} occurs more than once; names "
            "must differ"
        )
    asked = tuple(source for source in listed if not source.refers)
    if not asked:
        raise CrowdtreeError("sources: expected one that answers questions, got only experts")
    experts = [source for source in listed if source.refers]
    if len(experts) > 1 or (experts and refer not in (None, experts[0].price)):
        raise CrowdtreeError(
            f"sources: {quoted(experts[0].name)} refers items to an expert, and so does "
            f"{quoted(experts[1].name) if len(experts) > 1 else 'the loss'}; expected one of them"
        )
    return asked, experts[0] if experts else expert


def scaled_error(channel: NDArray[np.float64], right: NDArray[np.bool_], factor: float) -> Any:
    """``P(answer | class)`` with the errors times a factor, ``channel[answer, question, class]``.

    Cells in which no answer, or every answer, is right stay as they are.

    >>> import numpy as np
    >>> scaled_error(np.array([[[0.8]], [[0.2]]]), np.array([[[True]], [[False]]]), 0.5).tolist()
    [[[0.9]], [[0.1]]]
    """
    wrong = np.where(right, 0.0, channel).sum(axis=0)
    usable = (wrong > 0) & (wrong < 1)
    less = np.where(usable, np.minimum(wrong * factor, 1.0), wrong)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(right, (1 - less) / (1 - wrong), less / wrong)
    return np.where(usable, channel * np.where(usable, ratio, 1.0), channel)


def _plain(value: Any) -> Any:
    """Lists and numbers of Python, with None where a number is missing."""
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _same(one: Any, two: Any) -> bool:
    return bool(_plain(one) == _plain(two))
