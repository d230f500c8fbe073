"""The verb `campaign revise`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from crowdtree.cli import inputs, render
from crowdtree.cli.campaign.database import HERE, Database, Number, import_server, opened
from crowdtree.cli.options import AsJson, File
from crowdtree.policy.spec import revised_policy

__all__ = ["revise_verb"]


def revise_verb(
    number: Number,
    file: File,
    reason: Annotated[str, typer.Option("--reason", help="Why, for the record.")] = "",
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Give a running campaign another table, or another plan, over the same questions.

    A problem keeps the campaign's policy and its options, with new errors, priors and dependence. A
    plan replaces its plan. The server replays the items asked about so far: labels are kept,
    corrected, replaced or withdrawn.

    Example:

      crowdtree campaign revise 1 learned.json --reason "learned from 2,000 answers"
    """
    rows = import_server("crowdtree.store.db.campaign_row")
    revisions = import_server("crowdtree.store.owner.revisions")
    source = inputs.read_plan(file) or inputs.read_problem(file)
    with opened(database) as store:
        present = store.read(lambda c: rows.get_campaign(c, number))
        policy = revised_policy(present.make_policy(), source)
        why = {"text": reason.strip() or file}
        made = store.write(lambda c: revisions.revise(c, number, policy, why, store.clock()))

    def show(console: Any) -> None:
        if made == present.revision:
            console.print(f"Campaign {number} has this table already.")
            return
        console.print(f"[bold]Campaign {number} is at revision {made}.[/]")
        console.print(f"[dim]Next: crowdtree campaign status {number}[/]")

    render.emit(as_json, {"campaign": number, "revision": made}, show)
