"""The verb `audit plan`: how many checks a bound takes."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from crowdtree.audit import plan_audit
from crowdtree.cli import inputs, render
from crowdtree.cli.audit.common import BOUND, Confidence, LabelsFile, show_forecast
from crowdtree.cli.options import AsJson, Seed
from crowdtree.files.audits import load_labels

__all__ = ["plan_verb"]


def plan_verb(
    labels: LabelsFile,
    bound: Annotated[float, BOUND],
    confidence: Confidence = 0.95,
    replays: Annotated[int, typer.Option("--replays", help="Simulated audits.")] = 200,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Estimate how many checks an audit takes.

    The estimate assumes that the stated errors are right.

    Example:

      crowdtree audit plan labels.csv --bound 0.02
    """
    found = plan_audit(
        load_labels(inputs.source_of(labels)).errors,
        bound,
        confidence=confidence,
        replays=replays,
        seed=seed,
    )

    def show(console: Any) -> None:
        show_forecast(console, found, bound, ", if the stated errors are right")

    then = ""
    if found.median is not None:
        then = render.command("audit", "start", labels, "-o", "audit.json", "--bound", bound)
    render.emit(as_json, found.to_dict(), show, then=then)
