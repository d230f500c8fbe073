"""The verb `campaign audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from crowdtree.cli import render
from crowdtree.cli.audit.common import Confidence
from crowdtree.cli.campaign.database import HERE, Database, Number, import_server, next_step, opened
from crowdtree.cli.options import AsJson, check_outputs, flag, option, share_option
from crowdtree.core.errors import CrowdtreeError


def audit_verb(
    number: Number,
    bound: Annotated[
        float | None,
        share_option("--bound", help="Start (again): share of wrong labels to certify, 0 to 1."),
    ] = None,
    confidence: Confidence = 0.95,
    link: Annotated[
        str | None, option("Make a link for a person who checks labels.", "NAME")
    ] = None,
    calibrate: Annotated[
        bool, flag("--calibrate", "Calibrate the stated errors with the checks.")
    ] = False,
    certificate: Annotated[Path | None, option("Write the certificate (.json).", "FILE")] = None,
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Show, start or export the audit of a campaign's labels.

    Examples:

      crowdtree campaign audit 1 --bound 0.02 --link Ann

      crowdtree campaign audit 1 --calibrate

      crowdtree campaign audit 1 --certificate audit.json
    """
    if certificate is not None and certificate.suffix.lower() != ".json":
        raise CrowdtreeError(f"{certificate}: audits are kept as .json; use that extension")
    check_outputs([certificate])
    checking = import_server("crowdtree.server.store.audits.checking")
    reports = import_server("crowdtree.server.store.audits.report")
    with opened(database) as store:
        if bound is not None:
            store.write(lambda c: checking.start(c, number, bound, store.clock(), confidence))
        if calibrate:
            feeding = import_server("crowdtree.server.store.audits.checking")
            store.write(lambda c: feeding.calibrate(c, store.audits, number, store.clock()))
        token = ""
        if link is not None:
            token = store.write(lambda c: checking.invite_auditor(c, number, link, store.clock()))[
                0
            ]
        found: dict[str, Any] = store.read(lambda c: reports.audit_report(c, store.audits, number))
        if token:
            found["link"] = f"/a/{token}"
        if certificate is not None:
            _write(certificate, store.read(lambda c: reports.certificate(c, store.audits, number)))

    lines = [found["sentence"], found["next"]] if found["started"] else ["No audit yet."]
    if calibrate:
        lines.append("The stated errors are calibrated; the server replays the items.")
    if found["changed"]:
        lines.append(f"Out of date: {found['changed']} checked labels have changed.")
    if token:
        lines.append(f"Link, shown only once: <server>/a/{token}")
    words = ("campaign", "audit", number, "--bound", 0.02, "--link", "NAME")
    then = "" if found["started"] else next_step(database, *words)
    render.emit(as_json, found, lines, [certificate], then)


def _write(path: Path, data: Any) -> None:
    from crowdtree.io.yaml_json import write_document

    write_document(path, data)
