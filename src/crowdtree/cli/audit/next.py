"""The verb `audit next`: a sheet of items to check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from crowdtree.cli import render
from crowdtree.cli.audit.common import AuditFile, Key, key_words, open_audit, read_key
from crowdtree.cli.options import AsJson, check_outputs, flag, option
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import plural
from crowdtree.io.atomic import write_atomically
from crowdtree.io.audits import save_audit
from crowdtree.io.exports import csv_lines


def next_verb(
    audit: AuditFile,
    count: Annotated[int, option("Items on the sheet.", None, "-n", "--count", min=1)] = 20,
    output: Annotated[
        Path | None, option("Write the sheet (.csv).", "FILE", "-o", "--output")
    ] = None,
    blind: Annotated[
        bool, flag("--blind", "Leave the labels out, so that they influence nobody.")
    ] = False,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Draw items to check. Items that still wait for a result come first.

    Fill in the column `truth` with the true label, and hand the sheet to `audit record`.

    Examples:

      crowdtree audit next audit.json -n 20 -o sheet.csv

      crowdtree audit next audit.json --blind --json
    """
    if output is not None and output.suffix.lower() != ".csv":
        raise CrowdtreeError(f"{output}: a sheet is written as .csv; use {output.stem}.csv")
    check_outputs([output])
    secret = read_key(key)
    found = open_audit(audit, secret)
    if len(found.pending) < count:
        found.next(count - len(found.pending))
        save_audit(found, audit, key=secret)
    label = dict(zip(found.items, found.labels, strict=True))
    columns = ["item", *([] if blind else ["label"]), "truth"]
    rows = [{"item": item, "label": label[item], "truth": ""} for item in found.pending[:count]]
    rows = [{name: row[name] for name in columns} for row in rows]
    if output is not None:
        write_atomically(output, lambda file: file.writelines(csv_lines([rows], columns)))

    lines, then = ["Everything has been checked."], ""
    if rows and output is None:
        lines = [" · ".join(value for value in row.values() if value) for row in rows]
    elif rows:
        lines = [f"{plural(len(rows), 'item')} to check; fill in the column truth."]
        then = render.command("audit", "record", str(audit), str(output), *key_words(key))
    render.emit(as_json, {"items": rows}, lines, [output], then)
