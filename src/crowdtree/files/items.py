"""Item files: CSV or JSON lines, checked row by row, in bounded memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any
from urllib.parse import urlsplit

from crowdtree.errors import CrowdtreeError
from crowdtree.files.layouts import MOST_TITLE, header_of
from crowdtree.reading import csv_rows, open_source, separator_of

__all__ = ["ITEM_FORMATS", "MEDIA", "is_address", "json_rows", "read_items", "visible"]

ITEM_FORMATS = {".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
"""Formats of item files by the ending of their name."""
MEDIA = ("image", "audio", "video")
SHOWN = ("text", "markdown", "alt", *MEDIA)
"""Columns that workers and auditors see; all others stay on the server."""
KEYS = ("task", "id")
COLUMNS = (*KEYS, "text", "markdown", *MEDIA, "gold", "explanation")
MOST_TASK = 500
MOST_ROW = 1_000_000
MOST_COLUMNS = 200


def read_items(source: Any, kind: str, classes: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Read items from a file: its path, its bytes, or a binary stream.

    Columns: ``task`` (or ``id``) names the item; ``text``, ``markdown``, ``image``, ``audio`` and
    ``video`` are shown; ``gold`` is the known class of a gold item, ``explanation`` what workers
    read about it after they practised with it; others are kept. A CSV file
    may be separated by commas, semicolons or tabs, and have a title above its header.

    >>> list(read_items(b"task;text\\n1;hello\\n", "csv", ["a"]))
    [{'task': '1', 'payload': '{"text": "hello"}', 'gold': None}]
    """
    places = {name: place for place, name in enumerate(classes)}
    with open_source(source, "items").lines(most_line=MOST_ROW) as lines:
        rows = _table_rows(lines) if kind == "csv" else json_rows(lines)
        for line, row in rows:
            yield _item(row, line, places)


def visible(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Select the columns that workers and auditors see, always in the same order.

    >>> visible({"truth": "cat", "image": "1.png", "text": "hello", "alt": ""})
    {'text': 'hello', 'image': '1.png'}
    """
    return {name: columns[name] for name in SHOWN if columns.get(name) not in (None, "")}


def is_address(value: str) -> bool:
    """Whether a picture, a sound or a video is somewhere else, not an uploaded file.

    >>> is_address("https://example.org/a.png"), is_address("a.png")
    (True, False)
    """
    return value.startswith("https://")


def _table_rows(lines: Iterator[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    head = list(islice(lines, MOST_TITLE))
    rows = csv_rows(chain(head, lines), separator_of(*head), "items", most=MOST_ROW)
    filled = ((number, row) for number, row in rows if any(map(str.strip, row)))
    _, (_, names), below = header_of(filled, KEYS, least=1)
    header = [_column(name.strip()) for name in names]
    width = max((place + 1 for place, name in enumerate(header) if name), default=0)
    _check_header(header[:width])
    for number, row in below:
        if len(row) > width and not any(map(str.strip, row[width:])):
            row = row[:width]  # blank columns of a spreadsheet
        if len(row) != width:
            raise CrowdtreeError(f"items: line {number}: expected {width} cells, got {len(row)}")
        yield number, dict(zip(header, row, strict=False))


def _column(name: str) -> str:
    """Name of a column; those that have a meaning are recognised in upper case too."""
    return name.casefold() if name.casefold() in COLUMNS else name


def _check_header(header: list[str]) -> None:
    if not set(KEYS) & set(header):
        raise CrowdtreeError("items: expected column names on the first line, one of them `task`")
    if len(header) > MOST_COLUMNS or len(set(header)) < len(header):
        raise CrowdtreeError(
            f"items: expected at most {MOST_COLUMNS} columns, with different names"
        )


def json_rows(lines: Iterator[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of JSON lines with the numbers of their lines."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise CrowdtreeError(f"items: line {number} is not JSON") from None
        if not isinstance(row, dict) or len(row) > MOST_COLUMNS:
            raise CrowdtreeError(f"items: line {number}: expected a JSON object, one item per line")
        yield number, row


def _item(row: dict[str, Any], line: int, places: dict[str, int]) -> dict[str, Any]:
    row = dict(row)
    key = "task" if "task" in row else "id"
    task = row.pop(key, None)
    task = str(task).strip() if isinstance(task, str | int) else ""
    if not 0 < len(task) <= MOST_TASK or "\x00" in task or not _whole(task):
        raise CrowdtreeError(f"items: line {line}: `task` must have 1 to {MOST_TASK} characters")
    gold = row.pop("gold", None)
    if gold in (None, ""):
        cls = None
    elif not isinstance(gold, str) or gold not in places:
        raise CrowdtreeError(f"items: line {line}: gold {str(gold)[:50]!r} is not a class")
    else:
        cls = places[gold]
    for name in MEDIA:
        if row.get(name):
            row[name] = _address(row[name], name, line)
    kept = {name: value for name, value in row.items() if value not in (None, "")}
    try:
        payload = json.dumps(kept, ensure_ascii=False, allow_nan=False).replace("\\u0000", "")
    except (ValueError, RecursionError):
        raise CrowdtreeError(
            f"items: line {line}: a number is not finite, or the nesting is too deep"
        ) from None
    if not _whole(payload):
        payload = json.dumps(kept).replace("\\u0000", "")
    return {"task": task, "payload": payload, "gold": cls}


def _whole(text: str) -> bool:
    """Whether a text has no lone surrogates, which databases reject."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _address(value: Any, name: str, line: int) -> str:
    """Accept an https address or the name of an uploaded file."""
    where = f"items: line {line}: {name}"
    if not isinstance(value, str) or len(value) > 2000:
        raise CrowdtreeError(f"{where} must be an https:// address or an uploaded file's name")
    try:
        parts = urlsplit(value)
        https = parts.scheme == "https" and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        https = False
    plain = all(c.isalnum() or c in "-_. " for c in value) and not value.startswith(".")
    if not (https or plain) or any(ord(c) < 33 and c != " " for c in value):
        raise CrowdtreeError(f"{where} must be an https:// address or an uploaded file's name")
    return value
