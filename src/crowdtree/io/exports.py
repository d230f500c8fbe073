"""Downloads of labels, answers and workers: CSV without formulas, JSON lines, Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import iso_time

COLUMNS = {
    "activity": ["time", "person", "action", "campaign", "detail", "address"],
    "labels": [
        *("task", "label", "posterior_error", "status", "reason", "answers", "path", "at"),
        *("checked", "truth", "certified", "computed", "computed_error"),
        *("corrected", "corrected_by", "corrected_at", "corrected_why"),
        *("time", "corrected_time"),
    ],
    "answers": ["task", "question", "worker", "label"],  # as crowd-kit reads them
    "log": ["task", "worker", "label", "question", "kind", "fate", "late", "at", "report", "time"],
    "workers": [
        *("worker", "participant", "status", "answers", "accepted", "skips", "earned"),
        *("complete", "code", "joined_at", "seen_at", "consented_at", "joined"),
        *("seen", "consented"),
    ],
    "payments": [
        *("worker", "participant", "submission", "accepted", "amount", "currency", "bonus"),
        *("complete", "code"),
    ],
    "reports": ["task", "question", "worker", "reason", "words", "status", "at", "time"],
}
"""The columns of each download; labels have those of the items after them."""
TIMES = {
    "at": "time",
    "corrected_at": "corrected_time",
    "joined_at": "joined",
    "seen_at": "seen",
    "consented_at": "consented",
}
"""Columns in seconds since 1970, and those of the same times by ISO 8601."""
TYPES: dict[str, type] = {
    **dict.fromkeys(("answers", "accepted", "skips"), int),
    **dict.fromkeys(("late", "checked", "corrected", "complete"), bool),
    **dict.fromkeys(("posterior_error", "certified", "computed_error", "earned"), float),
    **dict.fromkeys(TIMES, float),
}
"""Columns that are not text."""
FORMATS = ("csv", "jsonl", "parquet")

DANGEROUS = ("=", "+", "-", "@", "\t", "\r", "\n")


def exported(
    pieces: Iterable[list[dict[str, Any]]], columns: list[str], format: str
) -> Iterator[bytes]:
    """Write rows in one of `FORMATS`, piece by piece."""
    if format == "parquet":
        return iter([parquet(pieces, columns)])
    return (csv_lines if format == "csv" else json_lines)(pieces, columns)


def with_times(row: dict[str, Any]) -> dict[str, Any]:
    """Add the times of a row by ISO 8601.

    >>> with_times({"task": "a", "at": 0.5})
    {'task': 'a', 'at': 0.5, 'time': '1970-01-01T00:00:00.500Z'}
    """
    there = {iso: row[old] for old, iso in TIMES.items() if old in row}
    return row | {iso: None if at is None else iso_time(at) for iso, at in there.items()}


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
    yield _csv([columns])
    for rows in pieces:
        yield _csv([row[name] for name in columns] for row in rows)


def _csv(rows: Iterable[list[Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([safe_cell(value) for value in row] for row in rows)
    return text.getvalue().encode("utf-8", "replace")


def json_lines(pieces: Iterable[list[dict[str, Any]]], columns: list[str]) -> Iterator[bytes]:
    """Write rows as JSON lines."""
    for rows in pieces:
        made = (json.dumps({name: row[name] for name in columns}) for row in rows)
        yield "".join(f"{line}\n" for line in made).encode()


def parquet(pieces: Iterable[list[dict[str, Any]]], columns: list[str]) -> bytes:
    """Write rows as a Parquet file."""
    try:
        import polars as pl
    except ModuleNotFoundError:
        raise CrowdtreeError(
            "parquet: needs polars; pip install 'crowdtree[frames]', or choose csv or jsonl"
        ) from None
    schema: dict[str, type] = {name: TYPES.get(name, str) for name in columns}
    if {"question", "label"} <= set(columns):  # an answer, not a class
        schema["label"] = int
    frames = [
        pl.DataFrame(
            {name: [_typed(row[name], schema[name] is str) for row in rows] for name in columns},
            schema=schema,
        )
        for rows in pieces
    ]
    out = io.BytesIO()
    pl.concat([pl.DataFrame(schema=schema), *frames]).write_parquet(out)
    return out.getvalue()


def _typed(value: Any, text: bool) -> Any:
    """Make a cell of a column; those of text may hold any value of JSON."""
    if text and value is not None and not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return value


def _flat(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
