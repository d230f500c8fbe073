"""The verbs `campaign labels`, `campaign answers`, `campaign workers`, `campaign payments`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from crowdtree.cli import render
from crowdtree.cli.campaign.database import HERE, Database, Number, import_server, opened
from crowdtree.cli.options import AsJson, check_outputs, flag, option, with_options
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import plural
from crowdtree.io import exports
from crowdtree.io.atomic import write_atomically


@dataclass(frozen=True)
class Target:
    """Output options."""

    output: Annotated[Path | None, option("Write to FILE.", "FILE", "-o", "--output")] = None
    format: Annotated[
        Literal["csv", "jsonl", "parquet"] | None,
        option("By default the extension of FILE.", show_default=False),
    ] = None
    as_json: AsJson = False

    @property
    def kind(self) -> str:
        """The format."""
        return self.format or (self.output.suffix.lstrip(".").lower() if self.output else "csv")

    def __post_init__(self) -> None:
        if self.kind not in exports.FORMATS:
            raise CrowdtreeError(f"{self.output}: expected the extension .csv, .jsonl or .parquet")
        check_outputs([self.output])


@with_options
def labels_verb(
    number: Number,
    target: Target,
    columns: Annotated[
        bool, flag("--columns/--no-columns", "Include the columns of the item file.")
    ] = True,
    database: Database = HERE,
) -> None:
    """Write the labels so far.

    One row per item; "Files and their columns" (docs/files.md) explains the columns. Those of the
    item file follow; a name that has another meaning gets item_ in front.

    Example:

      crowdtree campaign labels 1 -o labels.csv
    """
    _export(number, target, database, "labels", columns)


@with_options
def answers_verb(
    number: Number,
    target: Target,
    log: Annotated[bool, flag("--log", "Include skips and excluded answers.")] = False,
    database: Database = HERE,
) -> None:
    """Write the answers so far: task, question, worker, label.

    crowd-kit reads them too.

    Example:

      crowdtree campaign answers 1 -o answers.csv
    """
    _export(number, target, database, "log" if log else "answers")


@with_options
def workers_verb(number: Number, target: Target, database: Database = HERE) -> None:
    """Write the workers, with the answers to pay them for.

    The columns are worker, participant, status, answers, accepted, skips, earned, complete, code
    and times. A worker is complete who came to the end with enough accepted answers.

    Example:

      crowdtree campaign workers 1 -o workers.csv
    """
    _export(number, target, database, "workers")


@with_options
def payments_verb(number: Number, target: Target, database: Database = HERE) -> None:
    """Write what each worker is to be paid: accepted answers, amount, bonus, code.

    The amounts add up to what the campaign has spent.

    Example:

      crowdtree campaign payments 1 -o payments.csv
    """
    _export(number, target, database, "payments")


@with_options
def reports_verb(number: Number, target: Target, database: Database = HERE) -> None:
    """Write what workers reported about items: task, question, worker, reason, words, status, at.

    Example:

      crowdtree campaign reports 1 -o reports.csv
    """
    _export(number, target, database, "reports")


def _export(number: int, target: Target, database: str, what: str, columns: bool = True) -> None:
    service = import_server("crowdtree.server.web.services.exports")
    with opened(database) as store:
        made = service.export(store, number, what, columns)
        names, pieces = made.columns, made.pieces
        if target.output is None and target.as_json:
            rows = [{name: row[name] for name in names} for piece in pieces for row in piece]
            render.emit(True, {what: rows}, ())
        elif target.output is None:
            for chunk in exports.exported(pieces, names, target.kind):
                sys.stdout.buffer.write(chunk)
        else:
            counted = _Counted(pieces)
            chunks = exports.exported(counted, names, target.kind)
            write_atomically(target.output, lambda file: file.writelines(chunks))
            _said(target, what, counted.rows)
        audited = service.certified_labels(store, number) if what == "labels" else None
    if made.note:
        typer.echo(f"crowdtree: note: {made.note}", err=True)
    if audited is not None:
        typer.echo(audited.sentence, err=True)


class _Counted:
    """Pieces of rows, which are counted as they pass."""

    def __init__(self, pieces: Iterable[list[Any]]) -> None:
        self._pieces, self.rows = pieces, 0

    def __iter__(self) -> Iterator[list[Any]]:
        for piece in self._pieces:
            self.rows += len(piece)
            yield piece


def _said(target: Target, what: str, rows: int) -> None:
    """Say what was written, and what to do with it."""
    path = str(target.output)
    then = {
        "labels": render.command("audit", "plan", path, "--bound", 0.02),
        "answers": render.command("learn", path),
    }

    words = f"{plural(rows, 'event' if what == 'log' else what.removesuffix('s'))}."
    next_ = then.get(what, "") if rows else ""
    render.emit(target.as_json, {"written": path, "rows": rows}, words, [target.output], next_)
