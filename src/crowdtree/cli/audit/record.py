"""The verb `audit record`: what the checks found."""

from __future__ import annotations

import warnings
from typing import Annotated

from crowdtree.cli import inputs, render, streams
from crowdtree.cli.audit.common import (
    AuditFile,
    Key,
    forecast_of,
    key_words,
    open_audit,
    read_key,
    show_standing,
)
from crowdtree.cli.options import AsJson, argument, flag, option
from crowdtree.core.errors import CrowdtreeError, CrowdtreeWarning, one_line
from crowdtree.io.audits import read_checks, save_audit


def record_verb(
    audit: AuditFile,
    sheet: Annotated[
        str,
        argument(
            "SHEET", "Columns item, truth (or right: yes, no), maybe by; blank: not checked yet."
        ),
    ],
    by: Annotated[str | None, option("Who checked.", "NAME")] = None,
    replace: Annotated[
        bool, flag("--replace", "Replace earlier results that differ; both are kept.")
    ] = False,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Record what the checks found, and say what is certified now.

    Several people may check the same items; where they disagree, nothing is recorded. A result
    that was recorded by mistake is corrected with --replace.

    Examples:

      crowdtree audit record audit.json sheet.csv --by ann

      crowdtree audit record audit.json corrected.csv --replace
    """
    secret = read_key(key)
    found = open_audit(audit, secret)
    known = set(found.labels)
    recorded = 0
    for item, result in read_checks(inputs.source_of(sheet)):
        found.record(item, replace=replace, **({"by": by} if by else {}) | result)
        recorded += 1
        truth = result.get("truth")
        if truth is not None and found.spelled(truth) not in known:
            warnings.warn(
                f"item {one_line(item)}: no item is labelled {one_line(truth)}; counted as wrong",
                CrowdtreeWarning,
                stacklevel=2,
            )
    if not recorded:
        raise CrowdtreeError(f"{sheet}: holds no result; fill in the column truth")
    save_audit(found, audit, key=secret)
    forecast = forecast_of(found)

    then = ""
    if found.state == "open":
        name = "sheet.csv" if sheet == streams.STANDARD_INPUT else sheet
        then = render.command("audit", "next", str(audit), "-n", 20, "-o", name, *key_words(key))
    made = found.to_dict() | {"forecast": None if forecast is None else forecast.to_dict()}
    render.emit(as_json, made, lambda page: show_standing(page, found, forecast), [audit], then)
