"""Result of a simulation: estimates with intervals, calibration, answers per question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.bounds import checked_price
from crowdtree.core.checking import check_call
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.problem import Problem
from crowdtree.core.result_methods import Framed, Plotted, Saved
from crowdtree.core.stats import mean_half_width, wilson_interval
from crowdtree.policies.base import HANDED_OVER
from crowdtree.policies.monitor import Alarm, Finding, Revision
from crowdtree.policies.walk import REASONS, ItemLabels

__all__ = [
    "Adaptation",
    "BlockRun",
    "CalibrationRow",
    "Estimate",
    "Run",
    "mean_estimate",
    "share_estimate",
]

FloatArray = NDArray[np.float64]


class Estimate(float):
    """A number with its 95 % interval, which behaves like the number.

    >>> share_estimate(10, 1000)
    0.01 (0.00544 to 0.0183)
    """

    low: float
    high: float

    def __new__(cls, value: float, low: float, high: float) -> Estimate:
        """Make a number with its interval."""
        made = super().__new__(cls, value)
        made.low, made.high = float(low), float(high)
        return made

    def __getnewargs__(self) -> tuple[float, float, float]:  # type: ignore[override]
        return float(self), self.low, self.high

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval."""
        return self.low, self.high

    def __repr__(self) -> str:
        return f"{float(self):.3g} ({self.low:.3g} to {self.high:.3g})"

    __str__ = __repr__


def share_estimate(count: float, total: int) -> Estimate:
    """Estimate a probability from a count, with Wilson's interval."""
    share = count / total if total else float("nan")
    return Estimate(share, *wilson_interval(count, total))


def mean_estimate(values: NDArray[Any]) -> Estimate:
    """Estimate a mean, with the normal interval.

    >>> mean_estimate(np.array([1.0, 2.0, 3.0]))
    2 (0.868 to 3.13)
    """
    mean, half = float(np.mean(values)), mean_half_width(values)
    return Estimate(mean, mean - half, mean + half)


class BlockRun(NamedTuple):
    """Classes of the items of a block, and their labels."""

    truth: NDArray[np.int64]
    labels: ItemLabels


class CalibrationRow(NamedTuple):
    """Items of similar stated error: what was stated, what was observed, with its interval."""

    items: int
    stated: float
    observed: float
    low: float
    high: float


class Adaptation(NamedTuple):
    """How a campaign watched its table (:class:`crowdtree.policies.monitor.Monitor`).

    `alarms` say when the answers contradicted the table, and in what; `revisions` are the tables
    that replaced it; `reopened` counts labelled items that were opened again; `evidence` is the
    likelihood ratio against the table at the end; `findings` are what the answers say after an
    alarm.
    """

    alarms: tuple[Alarm, ...]
    revisions: tuple[Revision, ...]
    reopened: int
    evidence: float
    findings: tuple[Finding, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Summarise in plain JSON."""
        return {
            "alarms": [alarm._asdict() for alarm in self.alarms],
            "revisions": [revision.to_dict() for revision in self.revisions],
            "reopened": self.reopened,
            "evidence": self.evidence,
            "findings": [{**row._asdict(), "words": str(row)} for row in self.findings],
        }


@dataclass(frozen=True, eq=False)
class Run(Framed, Saved, Plotted):
    """The outcome of a simulation, item by item and in sum.

    Attributes
    ----------
    truth_index, label_index
        Class and label of each item, as places in ``problem.classes``; `truth` and `label` are
        their names.
    answers
        Number of answers of each item.
    posterior_error
        Stated probability that each label is wrong.
    reason
        Why each item was labelled, an index into ``REASONS``.
    asked
        Answers to each question, over all items; with several sources those to each source and
        question, ``source * questions + question``.
    stated_loss
        Stated expected loss of each decision, the price of an expert included; None for 0/1 loss.
    adaptation
        Alarms and revised tables, where the campaign was simulated with ``adapt=True``.

    Examples
    --------
    >>> import crowdtree as ct
    >>> problem = ct.example("table1")
    >>> run = ct.simulate(problem, ct.AdaptivePolicy(problem, target_error=0.05), 500, rng=0)
    >>> run.items, run.misclassification.high < 0.1
    (500, True)
    >>> run.label[:3].tolist(), run.label_index[:3].tolist()
    (['c4', 'c4', 'c3'], [3, 3, 2])
    """

    problem: Problem
    truth_index: NDArray[np.int64]
    label_index: NDArray[np.int64]
    answers: NDArray[np.int32]
    posterior_error: FloatArray
    reason: NDArray[np.int8]
    asked: NDArray[np.int64]
    adaptation: Adaptation | None = None
    stated_loss: FloatArray | None = None

    @classmethod
    def join(cls, problem: Problem, parts: Sequence[BlockRun]) -> Run:
        """Put blocks together, in their order."""

        def column(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(part.labels, name) for part in parts])

        return cls(
            problem,
            truth_index=np.concatenate([part.truth for part in parts]),
            label_index=column("label"),
            answers=column("answers"),
            posterior_error=column("posterior_error"),
            reason=column("reason"),
            asked=np.sum([part.labels.asked for part in parts], axis=0),
            stated_loss=None if problem.loss is None else column("stated_loss"),
        )

    @property
    def truth(self) -> NDArray[np.str_]:
        """Name of the class of each item."""
        return np.array(self.problem.classes)[self.truth_index]

    @property
    def label(self) -> NDArray[np.str_]:
        """Name of the label of each item."""
        return np.array(self.problem.classes)[self.label_index]

    @property
    def items(self) -> int:
        """Number of items."""
        return len(self.label_index)

    @property
    def misclassification(self) -> Estimate:
        """Share of items with a wrong label: an estimate, with its 95 % interval."""
        return share_estimate(int((self.label_index != self.truth_index).sum()), self.items)

    @property
    def risk(self) -> Estimate:
        """Mean loss per item, experts included; for 0/1 loss the misclassification."""
        loss = self.problem.loss
        if loss is None:
            return self.misclassification
        cost = loss.matrix[self.truth_index, self.label_index]
        if loss.refer is not None:
            cost = np.where(self.reason == REASONS.index("referred"), loss.refer, cost)
        return mean_estimate(cost)

    @property
    def answers_per_item(self) -> Estimate:
        """Mean answers per item: an estimate, with its 95 % interval."""
        return mean_estimate(self.answers)

    @property
    def stated_error(self) -> Estimate:
        """Mean of the stated posterior errors; equals the misclassification if calibrated."""
        return mean_estimate(self.posterior_error)

    @property
    def stated_risk(self) -> Estimate:
        """Mean of the stated expected losses; the stated error for 0/1 loss.

        Where people err as assumed, its mean is that of the loss, and rare large losses make it
        vary less.
        """
        return self.stated_error if self.stated_loss is None else mean_estimate(self.stated_loss)

    @property
    def reasons(self) -> dict[str, int]:
        """How many items were labelled for which reason."""
        counts = np.bincount(self.reason, minlength=len(REASONS))
        return {name: int(n) for name, n in zip(REASONS, counts, strict=True) if n}

    @property
    def undecided(self) -> Estimate:
        """Share of items that were left undecided or referred, with its 95 % interval."""
        return share_estimate(int(self._handed_over.sum()), self.items)

    @property
    def _handed_over(self) -> NDArray[np.bool_]:
        return np.isin(self.reason, [REASONS.index(reason) for reason in HANDED_OVER])

    @property
    def decided_error(self) -> Estimate:
        """Share of wrong labels among the items that were decided, with its interval."""
        decided = ~self._handed_over
        wrong = (self.label_index != self.truth_index) & decided
        return share_estimate(int(wrong.sum()), int(decided.sum()))

    @property
    def answers_per_question(self) -> dict[str, float]:
        """Mean answers per item to each question that was asked, most asked first."""
        asked = self._by_source.sum(axis=0)
        order = np.argsort(-asked, kind="stable")
        names = self.problem.questions
        return {names[q]: float(asked[q] / self.items) for q in order if asked[q]}

    @property
    def answers_per_source(self) -> dict[str, float]:
        """Mean answers per item of each source."""
        given = self._by_source.sum(axis=1) / self.items
        return {s.name: float(n) for s, n in zip(self.problem.sources, given, strict=True)}

    def cost_per_source(self, price: Any = None) -> dict[str, float]:
        """Mean cost per item of each source, items referred to an expert included.

        `price`: price of a question, one number, one per question, or by name; that of the source
        multiplies it.
        """
        spent = (self.asked * checked_price(price, self.problem)).reshape(self._by_source.shape)
        names = [source.name for source in self.problem.sources]
        each = dict(zip(names, (spent.sum(axis=1) / self.items).tolist(), strict=True))
        expert = self.problem.expert
        if expert is not None:
            each[expert.name] = expert.price * self.reasons.get("referred", 0) / self.items
        return each

    @property
    def _by_source(self) -> NDArray[np.int64]:
        return self.asked.reshape(len(self.problem.sources), -1)

    @property
    def confusion(self) -> FloatArray:
        """Share of items by class (row) and label (column)."""
        n = self.problem.n_classes
        counts = np.bincount(self.truth_index * n + self.label_index, minlength=n * n)
        return counts.reshape(n, n) / self.items

    def calibration(self, bins: int = 10) -> list[CalibrationRow]:
        """Compare stated and observed errors, in groups of about equally many items.

        Items of the same stated error stay together, so there may be fewer groups.
        """
        check_call(Run.calibration, {"bins": bins})
        if bins < 1:
            raise CrowdtreeError(f"bins: expected at least 1, got {bins}")
        order = np.argsort(self.posterior_error, kind="stable")
        stated = self.posterior_error[order].round(12)
        first = np.searchsorted(stated, stated)  # rank of the first item with the same stated error
        group = first * bins // max(1, self.items)
        starts = [0]
        for start in (np.flatnonzero(np.diff(group)) + 1).tolist():
            few = self.items / (2 * bins)  # too few items: merge them with the group before
            if start - starts[-1] >= few and self.items - start >= few:
                starts.append(start)
        return list(self._groups(np.split(order, starts[1:])))

    def _groups(self, groups: Sequence[NDArray[np.intp]]) -> Iterator[CalibrationRow]:
        wrong = self.label_index != self.truth_index
        for group in groups:
            if len(group):
                seen = share_estimate(int(wrong[group].sum()), len(group))
                stated = float(self.posterior_error[group].mean())
                yield CalibrationRow(len(group), stated, float(seen), seen.low, seen.high)

    def to_dict(self) -> dict[str, Any]:
        """Summarise in plain JSON."""
        wrong, answers = self.misclassification, self.answers_per_item
        return {
            "items": self.items,
            "misclassification": float(wrong),
            "misclassification_interval": list(wrong.interval),
            "risk": float(self.risk),
            "risk_interval": list(self.risk.interval),
            "answers_per_item": float(answers),
            "answers_per_item_interval": list(answers.interval),
            "stated_error": float(self.stated_error),
            **({} if self.stated_loss is None else {"stated_risk": float(self.stated_risk)}),
            "reasons": self.reasons,
            "undecided": float(self.undecided),
            "decided_error": float(self.decided_error),
            "answers_per_question": self.answers_per_question,
            **(
                {
                    "answers_per_source": self.answers_per_source,
                    "cost_per_source": self.cost_per_source(),
                }
                if len(self.problem.sources) > 1
                else {}
            ),
            "calibration": [row._asdict() for row in self.calibration()],
            **({} if self.adaptation is None else {"adaptation": self.adaptation.to_dict()}),
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Run):
            return NotImplemented
        arrays = ("truth_index", "label_index", "answers", "posterior_error", "reason", "asked")
        return self.to_dict() == other.to_dict() and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in arrays
        )

    def __hash__(self) -> int:
        return hash(self.label_index.tobytes())

    def __repr__(self) -> str:
        return (
            f"Run({self.items:,} items, misclassification {self.misclassification}, "
            f"answers per item {self.answers_per_item})"
        )
