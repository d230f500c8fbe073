"""Item files: CSV, workbooks or JSON lines, checked row by row; CSV and JSON in bounded memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from crowdtree.core.errors import CrowdtreeError, one_line
from crowdtree.core.reading import MAX_TITLE, csv_rows, open_source, separator_of
from crowdtree.io.grids import read_sheets
from crowdtree.io.layouts import Row, header_of

ITEM_FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".xlsx": "xlsx",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
"""Formats of item files by the ending of their name."""
MEDIA = ("image", "audio", "video")
SHOWN = ("text", "markdown", "alt", *MEDIA)
"""Columns that workers and auditors see; all others stay on the server."""
KEYS = ("task", "id", "item")
"""Columns that may name an item, the first one counts."""
COLUMNS = (*KEYS, *SHOWN, "gold", "explanation")
HALF = re.compile("[\ud800-\udfff]")
"""Half of a character, as programs leave that cut texts; it can be neither stored nor sent."""
MOST_TASK = 500
MOST_ROW = 1_000_000
MOST_COLUMNS = 200


def read_items(source: Any, kind: str, classes: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Read items from a file: its path, its bytes, or a binary stream.

    Columns, in any order: ``task`` (or ``id``, ``item``) names the item; ``text``, ``markdown``,
    ``image``, ``audio`` and ``video`` are shown; ``gold`` is the known class of a gold item,
    ``explanation`` what workers read about it after they practised with it; others are kept. A
    table may be separated by commas, semicolons or tabs, or be a sheet of a workbook, and have a
    title above its header.

    >>> list(read_items(b"task;text\\n1;hello\\n", "csv", ["a"]))
    [{'task': '1', 'payload': '{"text": "hello"}', 'gold': None}]
    """
    for _, item in numbered_items(source, kind, classes):
        yield item


def numbered_items(
    source: Any, kind: str, classes: Iterable[str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read items from a file with the numbers of their lines, or of their rows in a workbook."""
    places = {name: place for place, name in enumerate(classes)}
    content = open_source(source, "items")
    if kind == "xlsx":
        sheets = read_sheets(content, _has_key)
        rows = next((rows for rows in sheets.values() if _has_key(rows)), [])
        for row, cells in _table_rows(iter(rows), "row", padded=True):
            yield row, make_item(cells, f"items: row {row}", places)
        return
    with content.lines(most_line=MOST_ROW) as lines:
        found = _table_rows(_csv(lines), "line") if kind == "csv" else json_rows(lines)
        for line, cells in found:
            yield line, make_item(cells, f"items: line {line}", places)


def item_format(name: str) -> str:
    """Tell the format of an item file by the ending of its name.

    >>> item_format("Birds.TSV"), item_format("birds.xlsx")
    ('csv', 'xlsx')
    """
    kind = ITEM_FORMATS.get(PurePath(name).suffix.lower())
    if kind is None:
        raise CrowdtreeError(
            f"{name[:80]}: save the items as .csv, .tsv, .xlsx or .jsonl (one item per row)"
        )
    return kind


def media_names(columns: Mapping[str, Any]) -> list[str]:
    """Names of the uploaded files that an item shows.

    >>> media_names({"image": "1.png", "audio": "https://example.org/1.mp3"})
    ['1.png']
    """
    named = (columns.get(name) for name in MEDIA)
    return [value for value in named if value and not is_address(value)]


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


def _csv(lines: Iterator[str]) -> Iterator[Row]:
    head = list(islice(lines, MAX_TITLE))
    return csv_rows(chain(head, lines), separator_of(*head), "items", most=MOST_ROW)


def _has_key(rows: list[Row]) -> bool:
    """Whether one of the first rows has a column that names items."""
    cells = (cell for _, row in rows[:MAX_TITLE] for cell in row)
    return any(cell.strip().casefold() in KEYS for cell in cells)


def _table_rows(
    rows: Iterator[Row], unit: str, padded: bool = False
) -> Iterator[tuple[int, dict[str, Any]]]:
    filled = ((number, row) for number, row in rows if any(map(str.strip, row)))
    _, (_, names), below = header_of(filled, KEYS, least=1)
    header = [_column(name.strip()) for name in names]
    width = max((place + 1 for place, name in enumerate(header) if name), default=0)
    _check_header(header[:width])
    for number, row in below:
        if len(row) > width and not any(map(str.strip, row[width:])):
            row = row[:width]  # blank columns of a spreadsheet
        if padded:
            row = row + [""] * (width - len(row))
        if len(row) != width:
            raise CrowdtreeError(f"items: {unit} {number}: expected {width} cells, got {len(row)}")
        yield number, dict(zip(header, row, strict=False))


def _column(name: str) -> str:
    """Name of a column; those that have a meaning are recognised in upper case too."""
    return name.casefold() if name.casefold() in COLUMNS else name


def _check_header(header: list[str]) -> None:
    if not set(KEYS) & set(header):
        got = f", got {one_line(', '.join(filter(None, header)))}" if any(header) else ""
        raise CrowdtreeError(
            f"items: expected column names above the items, one of them `task` (or `id`){got}"
        )
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


def make_item(row: Mapping[str, Any], where: str, places: Mapping[str, int]) -> dict[str, Any]:
    """Check the columns of an item; `where` begins errors, `places` are the classes."""
    row = dict(row)
    key = next((name for name in KEYS if name in row), KEYS[0])
    task = row.pop(key, None)
    task = str(task).strip() if isinstance(task, str | int) else ""
    if not 0 < len(task) <= MOST_TASK or "\x00" in task or HALF.search(task):
        raise CrowdtreeError(f"{where}: `task` must have 1 to {MOST_TASK} characters")
    gold = row.pop("gold", None)
    if gold in (None, ""):
        cls = None
    elif not isinstance(gold, str) or gold not in places:
        raise CrowdtreeError(f"{where}: gold {str(gold)[:50]!r} is not a class")
    else:
        cls = places[gold]
    for name in MEDIA:
        if row.get(name):
            row[name] = _address(row[name], f"{where}: {name}")
    kept = {name: value for name, value in row.items() if value not in (None, "")}
    try:
        payload = json.dumps(kept, ensure_ascii=False, allow_nan=False).replace("\\u0000", "")
    except (ValueError, RecursionError):
        raise CrowdtreeError(
            f"{where}: a number is not finite, or the nesting is too deep"
        ) from None
    return {"task": task, "payload": HALF.sub("\ufffd", payload), "gold": cls}


def _address(value: Any, where: str) -> str:
    """Accept an https address or the name of an uploaded file."""
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
