"""A campaign that was run: wrong labels, cost, estimated reliability of the workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from crowdtree.core.errors import MissingExtra
from crowdtree.show.plots.html import hint
from crowdtree.show.report.templates import render
from crowdtree.simulation.run import Estimate, share_estimate

PAIRS_SHOWN = 12


@dataclass(frozen=True)
class LiveWorker:
    """A worker of a campaign: learned and true reliability."""

    name: str
    answers: int
    reliability: float
    """Expected share of right answers, as the server learned it."""
    right: float
    """True share of right answers at this skill, on average."""
    status: str
    spammer: bool = False


@dataclass(frozen=True)
class LiveCampaign:
    """A finished campaign, with the true classes.

    >>> truth, labels = ["cat", "dog", "dog"], ["cat", "dog", "cat"]
    >>> run = LiveCampaign(truth, labels, 12, 3, 0.1, [])
    >>> run.answers_per_item, run.wrong
    (4.0, 0.333 (0.0615 to 0.792))
    """

    truth: Sequence[str]
    labels: Sequence[str | None]
    """The label of each item, or ``None`` where it has none."""
    answers: int
    """Answers that counted."""
    checks: int
    """Answers to items of known class, which measure the workers' reliability."""
    estimated_error: float
    """Share of wrong labels, as the campaign itself estimates it."""
    workers: Sequence[LiveWorker]
    seconds: float = 0.0
    price: float | None = None
    """Price per answer."""
    notes: Sequence[tuple[str, str]] = ()
    """What was done with its answers and labels, each with a title."""

    @property
    def answers_per_item(self) -> float:
        """Answers that counted, per item."""
        return self.answers / len(self.truth)

    @property
    def cost(self) -> float | None:
        """Price of all answers, with those to items of known class and those that did not count."""
        if self.price is None:
            return None
        return self.price * sum(worker.answers for worker in self.workers)

    @property
    def wrong(self) -> Estimate:
        """Share of wrong labels; an item without a label is wrong."""
        count = sum(a != b for a, b in zip(self.truth, self.labels, strict=True))
        return share_estimate(count, len(self.truth))

    @property
    def found_out(self) -> tuple[int, int]:
        """How many spammers were paused, and how many others."""
        paused = [worker.spammer for worker in self.workers if worker.status != "active"]
        return sum(paused), len(paused) - sum(paused)

    @property
    def mistakes(self) -> list[tuple[str, str, int]]:
        """Truth, label and count of the most common mistakes."""
        pairs = zip(self.truth, self.labels, strict=True)
        counted = Counter((truth, label or "no label") for truth, label in pairs if truth != label)
        ranked = sorted(counted.items(), key=lambda row: (-row[1], row[0]))
        return [(*pair, count) for pair, count in ranked]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON of the result."""
        return {
            "items": len(self.truth),
            "wrong": float(self.wrong),
            "wrong_interval": list(self.wrong.interval),
            "estimated_error": self.estimated_error,
            "answers_per_item": self.answers_per_item,
            "checks": self.checks,
            "cost": self.cost,
            "workers": len(self.workers),
            "spammers_paused": self.found_out[0],
            "others_paused": self.found_out[1],
        }


def live_section(run: LiveCampaign) -> str:
    """HTML about a campaign."""
    return render("live.html", run=run, shown=PAIRS_SHOWN, chart=_chart(run.workers))


def _chart(workers: Sequence[LiveWorker]) -> str:
    try:
        from crowdtree.show.plots.live import trust_chart
        from crowdtree.show.plots.vega import chart_svg
    except MissingExtra as missing:
        return hint(missing)
    rows = [
        {"name": w.name, "right": w.right, "reliability": w.reliability,
         "kind": "spammer" if w.spammer else "worker"}
        for w in workers
    ]  # fmt: skip
    return chart_svg(trust_chart(rows), page=True)
