"""The verb `audit start`: a new audit of labels."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated, Any

from crowdtree.audit import Audit
from crowdtree.cli import inputs, render
from crowdtree.cli.audit.common import (
    Bound,
    Confidence,
    Key,
    LabelsFile,
    LossBound,
    LossTable,
    key_words,
    read_costs,
    read_key,
)
from crowdtree.cli.options import AsJson, check_outputs, option
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import number, percent, plural
from crowdtree.io.audits import load_labels, save_audit
from crowdtree.io.gold import load_gold
from crowdtree.learning.answers import read_gold


def start_verb(
    labels: LabelsFile,
    output: Annotated[Path, option("Write the audit to FILE.json.", "FILE", "-o", "--output")],
    bound: Bound = None,
    confidence: Confidence = 0.95,
    planned: Annotated[
        int | None,
        option("Tune the bound to N checks; 0: to none. Without a bound: 400.", "N", min=0),
    ] = None,
    seed: Annotated[int | None, option("Seed of the draws; random by default.", min=0)] = None,
    known: Annotated[
        str | None,
        option(
            "Items of known truth (item,truth), besides those that LABELS marks as known.", "FILE"
        ),
    ] = None,
    loss: LossTable = None,
    loss_bound: LossBound = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Start an audit of labels.

    Examples:

      crowdtree audit start labels.csv -o audit.json --bound 0.02

      crowdtree audit start labels.csv -o audit.json --planned 200

      crowdtree audit start labels.csv -o audit.json --known gold.csv --key secret.txt

      crowdtree audit start labels.csv -o audit.json --loss costs.csv --loss-bound 0.5
    """
    check_outputs([output])
    if output.exists():
        raise CrowdtreeError(f"{output}: exists already; remove it, or choose another name")
    table = load_labels(inputs.source_of(labels))
    given = {} if known is None else read_gold(load_gold(inputs.source_of(known)))
    audit = Audit(
        *table[:4],
        (table.known or {}) | given,
        bound=bound,
        confidence=confidence,
        planned=planned,
        seed=secrets.randbelow(2**32) if seed is None else seed,
        loss_bound=loss_bound,
        **read_costs(loss, table),
    )
    save_audit(audit, output, key=read_key(key))

    def show(console: Any) -> None:
        goals = [] if bound is None else [f"at most {percent(bound)} wrong"]
        goals += [] if loss_bound is None else [f"a mean loss of at most {number(loss_bound)}"]
        wanted = f", to certify {' and '.join(goals)}" if goals else ""
        if audit.planned:
            wanted += f", planned for {plural(audit.planned, 'check')}"
        console.print(f"Audit of [bold]{plural(len(audit.items), 'label')}[/]{wanted}.")
        if audit.known:
            items = plural(len(audit.known), "known item")
            console.print(f"{items} {'is' if len(audit.known) == 1 else 'are'} not drawn.")

    then = render.command(
        "audit", "next", str(output), "-n", 20, "-o", "sheet.csv", *key_words(key)
    )
    render.emit(as_json, audit.to_dict() | {"seed": audit.seed}, show, [output], then)
