"""The verbs `campaign labels` and `campaign answers`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from crowdtree.cli.campaign.database import HERE, Database, Number, import_server, opened
from crowdtree.cli.options import check_outputs, with_options
from crowdtree.errors import CrowdtreeError
from crowdtree.files import exports
from crowdtree.files.atomic import write_atomically

__all__ = ["answers_verb", "labels_verb"]


@dataclass(frozen=True)
class Target:
    """Output options."""

    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write to FILE.")
    ] = None
    format: Annotated[
        Literal["csv", "jsonl", "parquet"] | None,
        typer.Option("--format", help="By default the extension of FILE.", show_default=False),
    ] = None

    @property
    def kind(self) -> str:
        """The format."""
        return self.format or (self.output.suffix.lstrip(".").lower() if self.output else "csv")

    def __post_init__(self) -> None:
        if self.kind not in exports.FORMATS:
            raise CrowdtreeError(f"{self.output}: expected the extension .csv, .jsonl or .parquet")
        check_outputs([self.output])


@with_options
def labels_verb(number: Number, target: Target, database: Database = HERE) -> None:
    """Write the labels so far: task, label, posterior error, reason, path.

    Example:

      crowdtree campaign labels 1 -o labels.csv
    """
    _export(number, target, database, "labels")


@with_options
def answers_verb(
    number: Number,
    target: Target,
    log: Annotated[bool, typer.Option("--log", help="Include skips and undos.")] = False,
    database: Database = HERE,
) -> None:
    """Write the answers as crowd-kit reads them: task, question, worker, label.

    Example:

      crowdtree campaign answers 1 -o answers.csv
    """
    _export(number, target, database, "log" if log else "answers")


def _export(number: int, target: Target, database: str, what: str) -> None:
    service = import_server("crowdtree.web.services.exports")
    with opened(database) as store:
        rows = service.rows_of(store, number, what)
        _write(exports.exported(rows, exports.COLUMNS[what], target.kind), target.output)
        audited = service.certified_labels(store, number) if what == "labels" else None
    if audited is not None:
        typer.echo(audited.sentence, err=True)


def _write(chunks: Iterator[bytes], output: Path | None) -> None:
    """Write to a file that appears whole or not at all, or to standard output."""
    if output is not None:
        write_atomically(output, lambda file: file.writelines(chunks))
        return
    for chunk in chunks:
        sys.stdout.buffer.write(chunk)
    sys.stdout.flush()
