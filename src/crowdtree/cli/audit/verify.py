"""The verb `audit verify`: recompute a certificate."""

from __future__ import annotations

from typing import Annotated, Any

from crowdtree.cli import inputs, render
from crowdtree.cli.audit.common import AuditFile, Key, read_key
from crowdtree.cli.options import AsJson, option
from crowdtree.core.text import number, percent, plural
from crowdtree.io.audits import verify_audit


def verify_verb(
    audit: AuditFile,
    labels: Annotated[str | None, option("The labels that should be certified.", "FILE")] = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Recompute every draw and every number of an audit.

    Exits with 2 if one differs.

    Examples:

      crowdtree audit verify audit.json --labels labels.csv

      crowdtree audit verify audit.json --key secret.txt
    """
    secret = read_key(key)
    found = verify_audit(
        inputs.source_of(audit), None if labels is None else inputs.source_of(labels), key=secret
    )
    signed = "checked" if secret else "not checked" if found.signed else "none"

    def show(console: Any) -> None:
        standing, cost = found.standing, found.mean_loss
        loss = "" if cost is None else f"; their mean loss is at most {number(cost.upper)}"
        console.print(
            f"[bold]Verified:[/] {plural(len(found.checks), 'draw')} and every claim recomputed; "
            f"at most {percent(standing.upper)} of {plural(standing.items, 'label')} are wrong "
            f"({percent(found.confidence)} confidence){loss}. Signature: {signed}."
        )

    render.emit(as_json, found.to_dict() | {"verified": True, "signature": signed}, show)
