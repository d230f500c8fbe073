"""The bound of an audit, falling as checks come in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crowdtree.audit import Standing
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import percent, plural
from crowdtree.show.plots.curves import curve_chart
from crowdtree.show.plots.vega import Chart, draw_chart

MOST_POINTS = 400


def audit_chart(
    history: Sequence[Standing], confidence: float, wanted: float | None = None
) -> Chart:
    """Certified bound, estimate with its interval, and the wanted bound, over the checks."""
    step = max(1, len(history) // MOST_POINTS)
    shown = [*history[:-1:step], history[-1]]
    rows: list[dict[str, Any]] = []
    if wanted is not None:
        look = {"series": "wanted", "kind": "baseline", "dash": "dashed", "y": wanted}
        rows += [look | {"x": shown[0].checks}, look | {"x": shown[-1].checks}]
    for found in shown:
        band = {"low": found.low, "high": found.high}
        estimate = {"series": "estimate", "kind": "paper", "x": found.checks, "y": found.estimate}
        bound = {"series": "certified", "kind": "ours", "x": found.checks, "y": found.upper}
        rows += [estimate | band, bound]
    last = history[-1]
    return curve_chart(
        rows,
        title=f"At most {percent(last.upper)} of the labels are wrong",
        subtitle=[f"{percent(confidence)} confidence, after {plural(last.checks, 'check')}"],
        x="checks",
        y="wrong labels",
        log=False,
    )


def draw_audit(audit: Any, path: str | os.PathLike[str]) -> Path:
    """Write the chart of an audit as ``.svg``, ``.png``, ``.html`` or ``.json``."""
    if not audit.history:
        raise CrowdtreeError(f"{os.fspath(path)}: nothing to draw before the first check")
    return draw_chart(audit_chart(audit.history, audit.confidence, audit.bound), path)
