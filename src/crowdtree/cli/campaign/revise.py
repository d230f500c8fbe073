"""The verb `campaign revise`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from crowdtree.cli import inputs, render
from crowdtree.cli.campaign.database import HERE, Database, Number, import_server, next_step, opened
from crowdtree.cli.options import AsJson, File, option
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.reading import Source
from crowdtree.policies.spec import revised_policy

if TYPE_CHECKING:
    from crowdtree.server.store.types import AnyPolicy


def revise_verb(
    number: Number,
    file: File,
    reason: Annotated[str, option("Why, for the record.")] = "",
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Give a running campaign another table or another plan.

    The questions stay the same. A problem keeps the campaign's policy and its options, with new
    errors, priors and dependence. A plan replaces its plan, and a .json file as
    GET /api/campaigns/N/definition writes it replaces everything about the policy. The server
    replays the items asked about so far: labels are kept, corrected, replaced or withdrawn.

    Example:

      crowdtree campaign revise 1 learned.json --reason "learned from 2,000 answers"
    """
    rows = import_server("crowdtree.server.store.db.campaign_row")
    revisions = import_server("crowdtree.server.store.owner.revisions")
    with opened(database) as store:
        present = store.read(lambda c: rows.get_campaign(c, number))
        policy = _policy(file, present.make_policy())
        why = {"text": reason.strip() or file}
        made = store.write(lambda c: revisions.revise(c, number, policy, why, store.clock()))

    def show(console: Any) -> None:
        if made == present.revision:
            console.print(f"Campaign {number} has this table already.")
            return
        console.print(f"[bold]Campaign {number} is at revision {made}.[/]")

    then = next_step(database, "campaign", "status", number)
    render.emit(as_json, {"campaign": number, "revision": made}, show, then=then)


def _policy(file: str, present: AnyPolicy) -> AnyPolicy:
    """Read a definition, a plan or a problem."""
    source = inputs.source_of(file)
    defined = _defined(source) if source.name.endswith(".json") else None
    if defined is not None:
        return defined
    return revised_policy(present, inputs.read_plan(file) or inputs.read_problem(file))


def _defined(source: Source) -> AnyPolicy | None:
    """Read the policy of a definition, or nothing if the file holds something else."""
    from pydantic import ValidationError

    jobs = import_server("crowdtree.server.web.plans")
    try:
        data = json.loads(source.read_text())
    except (ValueError, RecursionError):  # what is wrong is said when it is read as a problem
        return None
    if not isinstance(data, dict) or not isinstance(data.get("policy"), dict):
        return None
    try:
        request = jobs.PolicyRequest(**data["policy"])
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise CrowdtreeError(f"{source.name}: policy.{place}: {first['msg'].lower()}") from None
    policy: AnyPolicy = jobs.policy_of(request)
    return policy
