"""Downloads of labels, answers and workers: CSV without formulas, JSON lines, Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["COLUMNS", "FORMATS", "csv_lines", "exported", "json_lines", "parquet", "safe_cell"]

COLUMNS = {
    "activity": ["time", "person", "action", "campaign", "detail", "address"],
    "labels": [
        *("task", "label", "posterior_error", "status", "reason", "answers", "path", "at"),
        *("checked", "truth", "certified", "computed", "computed_error"),
        *("corrected", "corrected_by", "corrected_at", "corrected_why"),
    ],
    "answers": ["task", "question", "worker", "label"],  # as crowd-kit reads them
    "log": ["task", "worker", "label", "question", "kind", "fate", "late", "at", "report"],
    "workers": [
        *("worker", "participant", "status", "answers", "accepted", "skips", "earned"),
        *("complete", "code", "joined_at", "seen_at", "consented_at"),
    ],
    "reports": ["task", "question", "worker", "reason", "words", "status", "at"],
}
"""The columns of each download."""
FORMATS = ("csv", "jsonl", "parquet")

DANGEROUS = ("=", "+", "-", "@", "\t", "\r", "\n")


def exported(
    pieces: Iterable[list[dict[str, Any]]], columns: list[str], format: str
) -> Iterator[bytes]:
    """Write rows in one of `FORMATS`, piece by piece."""
    if format == "parquet":
        return iter([parquet(pieces, columns)])
    return (csv_lines if format == "csv" else json_lines)(pieces, columns)


def safe_cell(value: Any) -> Any:
    """Prefix text that a spreadsheet would run as a formula with an apostrophe.

    >>> safe_cell("=1+1"), safe_cell("-5"), safe_cell("plain"), safe_cell(-5)
    ("'=1+1", '-5', 'plain', -5)
    """
    value = _flat(value)
    if not isinstance(value, str) or not value.startswith(DANGEROUS):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def csv_lines(pieces: Iterable[list[dict[str, Any]]], columns: list[str]) -> Iterator[bytes]:
    """Write rows as CSV."""
    yield (",".join(columns) + "\n").encode()
    for rows in pieces:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([safe_cell(row[name]) for name in columns] for row in rows)
        yield text.getvalue().encode("utf-8", "replace")


def json_lines(pieces: Iterable[list[dict[str, Any]]], columns: list[str]) -> Iterator[bytes]:
    """Write rows as JSON lines."""
    for rows in pieces:
        made = (json.dumps({name: row[name] for name in columns}) for row in rows)
        yield "".join(f"{line}\n" for line in made).encode()


def parquet(pieces: Iterable[list[dict[str, Any]]], columns: list[str]) -> bytes:
    """Write rows as a Parquet file."""
    import polars as pl

    types: dict[str, Any] = {
        "task": pl.String,
        "label": pl.String,
        "status": pl.String,
        "posterior_error": pl.Float64,
        "reason": pl.String,
        "answers": pl.Int64,
        "path": pl.String,
        "at": pl.Float64,
        "question": pl.String,
        "worker": pl.String,
        "kind": pl.String,
        "fate": pl.String,
        "late": pl.Boolean,
        "checked": pl.Boolean,
        "truth": pl.String,
        "certified": pl.Float64,
        "computed": pl.String,
        "computed_error": pl.Float64,
        "corrected": pl.Boolean,
        "corrected_by": pl.String,
        "corrected_at": pl.Float64,
        "corrected_why": pl.String,
        "participant": pl.String,
        "accepted": pl.Int64,
        "skips": pl.Int64,
        "earned": pl.Float64,
        "complete": pl.Boolean,
        "code": pl.String,
        "joined_at": pl.Float64,
        "seen_at": pl.Float64,
        "consented_at": pl.Float64,
        "report": pl.String,
        "words": pl.String,
    }
    if "question" in columns:  # an answer, not a class
        types["label"] = pl.Int64
    schema = {name: types[name] for name in columns}
    frames = [
        pl.DataFrame({name: [_flat(row[name]) for row in rows] for name in columns}, schema=schema)
        for rows in pieces
    ]
    out = io.BytesIO()
    pl.concat([pl.DataFrame(schema=schema), *frames]).write_parquet(out)
    return out.getvalue()


def _flat(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
