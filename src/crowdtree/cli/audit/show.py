"""The verb `audit show`: what is certified, estimated and missing."""

from __future__ import annotations

from typing import Any

from crowdtree.cli import inputs, render
from crowdtree.cli.audit.common import (
    AuditFile,
    Key,
    forecast_of,
    read_key,
    show_labels,
    show_standing,
)
from crowdtree.cli.options import AsJson, Draw, check_draw, check_outputs
from crowdtree.io.audits import load_audit


def show_verb(
    audit: AuditFile, draw: Draw = None, key: Key = None, as_json: AsJson = False
) -> None:
    """Show what is certified and how many checks are still needed.

    Examples:

      crowdtree audit show audit.json

      crowdtree audit show audit.json --draw audit.svg
    """
    check_draw(draw)
    check_outputs([draw])
    found = load_audit(inputs.source_of(audit), key=read_key(key))
    forecast = forecast_of(found)
    if draw is not None:
        from crowdtree.show.plots.audits import draw_audit

        draw_audit(found, draw)

    def show(console: Any) -> None:
        show_standing(console, found, forecast)
        if len(found.by_label) > 1 and found.standing.checks:
            console.print()
            show_labels(console, found)

    made = found.to_dict() | {"forecast": None if forecast is None else forecast.to_dict()}
    render.emit(as_json, made, show, [draw])
