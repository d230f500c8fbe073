"""A chart of mixes of sources: error over cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from crowdtree.show.plots.curves import curve_chart
from crowdtree.show.plots.vega import Chart


class MixCurve(Protocol):
    """A mix of sources with its costs and errors."""

    @property
    def name(self) -> str:
        """The sources in words."""
        ...

    @property
    def performance(self) -> Any:
        """Cost, error and risk at the goal; None where it is out of reach."""
        ...

    @property
    def curve(self) -> Sequence[tuple[float, float]]:
        """Cost and error (or expected loss) at several stopping rules."""
        ...


def mix_chart(mixes: Sequence[MixCurve], *, by_loss: bool) -> Chart:
    """Error (or expected loss) over cost, a line per mix; the chosen one is marked."""
    rows: list[dict[str, Any]] = []
    for place, mix in enumerate(mixes):
        look = {"kind": "baseline", "dash": "dashed"} if place else {"kind": "ours"}
        rows += [
            {"series": mix.name, "x": cost, "y": risk} | look for cost, risk in mix.curve if cost
        ]
    found = mixes[0].performance
    points = []
    if found is not None:
        risk = float(found.risk if by_loss else found.error)
        points = [{"x": float(found.cost), "y": risk, "label": "chosen"}]
    return curve_chart(
        rows,
        title="What each mix of sources costs: lower left is better",
        x="cost per item",
        y="expected loss per item" if by_loss else "misclassified items",
        subtitle=["Adaptive policies at several stopping rules, simulated."],
        points=points,
        share=not by_loss,
    )
