"""What audits are made of: labels, checks, and what is known after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, Protocol

from crowdtree.core.result_methods import HtmlShown


class Labels(NamedTuple):
    """Labels with stated errors and maybe stated expected losses, one entry per item."""

    items: list[str]
    labels: list[str]
    errors: list[float]
    risks: list[float] | None = None
    known: dict[str, str] | None = None
    """True labels of the items that were known before, such as the gold of a crowd."""


@dataclass(frozen=True)
class Standing:
    """What an audit says about a set of labels; shares of its items.

    `upper` is exceeded with a probability of at most one minus the confidence, at any time; so is
    the interval from `low` to `high` missed. `estimate` lies in the interval.
    """

    items: int
    checks: int
    wrong: int
    upper: float
    low: float
    high: float
    estimate: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class MeanLoss:
    """What an audit says about the mean loss per label, as :class:`Standing` does about errors.

    `corrected` bounds what is left once the wrong labels found are corrected, `stated` is the mean
    of the stated expected losses, `state` how the wanted bound stands.
    """

    upper: float
    low: float
    high: float
    estimate: float | None
    corrected: float
    stated: float
    wanted: float | None
    state: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Replaced:
    """A result that was replaced after so many draws."""

    draws: int
    right: bool
    truth: str | None
    by: tuple[str, ...] = ()


@dataclass
class Check:
    """An item that was drawn, and what was found; `after` results were in when it was drawn."""

    place: int
    after: int
    right: bool | None = None
    truth: str | None = None
    by: list[str] = field(default_factory=list)
    replaced: list[Replaced] = field(default_factory=list)
    """Earlier results, the oldest first."""


class Draw(Protocol):
    """A draw as it was written down; see :class:`Check`."""

    @property
    def item(self) -> str:
        """Name of the item."""

    @property
    def after(self) -> int:
        """Results that counted when it was drawn."""

    @property
    def right(self) -> bool | None:
        """Whether the label is right; none before the result."""

    @property
    def truth(self) -> str | None:
        """The true label, where it was given."""

    @property
    def by(self) -> Sequence[str]:
        """Who checked it."""


@dataclass(frozen=True)
class Forecast(HtmlShown):
    """How many more checks a bound takes: quantiles over simulated audits.

    `reached` is the share of the simulations in which the bound holds, so that it can be reached.
    Numbers of checks are over those; none where there are none.
    """

    bound: float
    mean: float | None
    low: int | None
    median: int | None
    high: int | None
    reached: float
    replays: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return asdict(self)
