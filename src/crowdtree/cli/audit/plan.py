"""The verb `audit plan`: how many checks a bound takes."""

from __future__ import annotations

from typing import Annotated, Any

from crowdtree.audit import Audit, plan_audit
from crowdtree.cli import inputs, render
from crowdtree.cli.audit.common import (
    Bound,
    Confidence,
    LabelsFile,
    LossBound,
    LossTable,
    read_costs,
    show_forecast,
)
from crowdtree.cli.options import AsJson, Seed, option
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import number, plural
from crowdtree.io.audits import load_labels


def plan_verb(
    labels: LabelsFile,
    bound: Bound = None,
    loss: LossTable = None,
    loss_bound: LossBound = None,
    confidence: Confidence = 0.95,
    replays: Annotated[int, option("Simulated audits.")] = 200,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Estimate how many checks an audit takes.

    The estimate assumes that the stated errors are about right.

    Examples:

      crowdtree audit plan labels.csv --bound 0.02

      crowdtree audit plan labels.csv --loss costs.csv --loss-bound 0.5
    """
    if bound is None and loss_bound is None:
        raise CrowdtreeError(
            "audit plan: expected --bound, --loss-bound or both; for example --bound 0.05"
        )
    table = load_labels(inputs.source_of(labels))
    found, cost = None, None
    if bound is not None:
        known = [item in (table.known or ()) for item in table.items]
        found = plan_audit(
            table.errors, bound, confidence=confidence, replays=replays, seed=seed, known=known
        )
    if loss_bound is not None:
        costs = read_costs(loss, table)
        audit = Audit(*table, loss_bound=loss_bound, confidence=confidence, **costs)
        cost = audit.forecast_loss(replays, seed=seed)

    def show(console: Any) -> None:
        if found is not None and bound is not None:
            show_forecast(console, found, bound, ", if the stated errors are right")
        if cost is not None and cost.median is not None:
            console.print(
                f"About [bold]{plural(cost.median, 'check')}[/] ({cost.low:,} to {cost.high:,}) "
                f"certify a mean loss of at most {number(cost.bound)} per label."
            )
        elif cost is not None:
            console.print(f"No audit is expected to certify a mean loss of {number(cost.bound)}.")

    made = {} if found is None else found.to_dict()
    made |= {} if cost is None else {"loss": cost.to_dict()}
    then = ""
    if all(one is None or one.median is not None for one in (found, cost)):
        wanted = [] if bound is None else ["--bound", bound]
        wanted += [] if loss_bound is None else ["--loss", loss, "--loss-bound", loss_bound]
        wanted += [] if confidence == 0.95 else ["--confidence", confidence]
        then = render.command("audit", "start", labels, "-o", "audit.json", *wanted)
    render.emit(as_json, made, show, then=then)
