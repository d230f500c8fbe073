"""The verbs `campaign labels` and `campaign answers`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from crowdtree.cli.campaign.database import HERE, Database, Number, import_server, opened
from crowdtree.cli.options import check_outputs, with_options
from crowdtree.errors import CrowdtreeError
from crowdtree.files import exports
from crowdtree.files.atomic import write_atomically

__all__ = ["answers_verb", "labels_verb"]

WRITERS = {"csv": exports.csv_lines, "jsonl": exports.json_lines}


@dataclass(frozen=True)
class Target:
    """Where to write, and in which format."""

    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write to FILE.")
    ] = None
    format: Annotated[
        Literal["csv", "jsonl", "parquet"] | None,
        typer.Option("--format", help="By the ending of FILE where not given.", show_default=False),
    ] = None

    @property
    def kind(self) -> str:
        """The format."""
        return self.format or (self.output.suffix.lstrip(".").lower() if self.output else "csv")

    def __post_init__(self) -> None:
        if self.kind not in (*WRITERS, "parquet"):
            raise CrowdtreeError(f"{self.output}: end the name with .csv, .jsonl or .parquet")
        check_outputs([self.output])


@with_options
def labels_verb(number: Number, target: Target, database: Database = HERE) -> None:
    """Write the labels so far: task, label, posterior error, reason, path.

    Example:

      crowdtree campaign labels 1 -o labels.csv
    """
    rows = import_server("crowdtree.store.queries.export").label_rows
    _export(number, target, database, rows, "classes", exports.LABELS)


@with_options
def answers_verb(
    number: Number,
    target: Target,
    log: Annotated[bool, typer.Option("--log", help="Everything: skips and undos too.")] = False,
    database: Database = HERE,
) -> None:
    """Write the answers as crowd-kit reads them: task, question, worker, label.

    Example:

      crowdtree campaign answers 1 -o answers.csv
    """
    rows = import_server("crowdtree.store.queries.export").answer_rows
    columns = exports.ANSWERS if log else exports.CROWD_KIT
    read = partial(rows, standing=not log)
    _export(number, target, database, read, "questions", columns)


def _export(
    number: int, target: Target, database: str, read: Any, names: str, columns: list[str]
) -> None:
    campaign_row = import_server("crowdtree.store.db.campaign_row")
    pieces = import_server("crowdtree.store.queries.export").pieces
    with opened(database) as store:
        known = getattr(store.read(lambda c: campaign_row.get_campaign(c, number)), names)
        rows = pieces(lambda after: store.read(lambda c: read(c, number, known, after)))
        if target.kind == "parquet":
            chunks: Iterator[bytes] = iter([exports.parquet(rows, columns)])
        else:
            chunks = WRITERS[target.kind](rows, columns)
        _write(chunks, target.output)


def _write(chunks: Iterator[bytes], output: Path | None) -> None:
    """Write to a file that appears whole or not at all, or to standard output."""
    if output is not None:
        write_atomically(output, lambda file: file.writelines(chunks))
        return
    for chunk in chunks:
        sys.stdout.buffer.write(chunk)
    sys.stdout.flush()
