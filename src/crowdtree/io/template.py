"""A commented table to start from, in the formats that people edit."""

from __future__ import annotations

import csv
import os
from importlib import resources
from pathlib import Path
from typing import Any

from crowdtree.core.errors import CrowdtreeError, needing
from crowdtree.core.reading import shown
from crowdtree.io.atomic import write_atomically

ENDINGS = (".xlsx", ".csv", ".yaml", ".yml")
SOURCES = "#   "
"""Beginning of the lines of the template that are a table of sources."""
WITHOUT_SIGN = "# Remove the # before the names of those who answer."
WIDTHS = {"question": 12, "error": 8, "text": 32}
"""Columns of the workbook, in characters."""


def check_template(path: str | os.PathLike[str]) -> Path:
    """Raise unless a new template can be written under this name."""
    path = Path(path)
    if path.suffix.lower() not in ENDINGS:
        raise CrowdtreeError(
            f"{shown(path)}: expected the extension .xlsx, .csv or .yaml; use {path.stem}.csv"
        )
    if path.exists():
        raise CrowdtreeError(f"{shown(path)}: exists already; remove it, or choose another name")
    return path


def write_template(path: str | os.PathLike[str]) -> None:
    """Write a small problem with comments that explain each part; never over an existing file.

    >>> import tempfile
    >>> from crowdtree import load_problem
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_template(Path(folder) / "birds.xlsx")
    ...     load_problem(Path(folder) / "birds.xlsx")
    Problem(4 classes x 3 questions, worker error 0.05 to 0.15)
    """
    path = check_template(path)
    ending = path.suffix.lower()
    kind = "yaml" if ending in (".yaml", ".yml") else "csv"
    data = (resources.files("crowdtree") / "data" / f"template.{kind}").read_bytes()
    if ending == ".xlsx":
        write_atomically(path, _workbook(data.decode()).save)
    else:
        write_atomically(path, lambda file: file.write(data))


def _workbook(text: str) -> Any:
    """Put the table on the first sheet and its comments on the second, and beside their cells."""
    with needing("workbooks", "excel"):
        from openpyxl import Workbook
        from openpyxl.comments import Comment
        from openpyxl.styles import Font
        from openpyxl.utils import get_column_letter

    lines = text.splitlines()
    of_sources = [line for line in lines if line.startswith(SOURCES)]
    notes = [line[2:] for line in lines if line.startswith("#") and line not in of_sources]
    rows = list(csv.reader(line for line in lines if not line.startswith("#")))
    book = Workbook()
    sheet: Any = book.active
    explained = book.create_sheet("help")
    who = book.create_sheet("sources")
    sheet.title = "problem"
    for row in rows:
        sheet.append([_value(cell) for cell in row])
    header, *entries = csv.reader(line.removeprefix(SOURCES) for line in of_sources)
    for row in (header, *([f"# {name}", *cells] for name, *cells in entries)):
        who.append([_value(cell) for cell in row])
    who.append([WITHOUT_SIGN])
    for note in notes:
        explained.append([note])
        name, colon, words = note.partition(": ")
        for cells in sheet.iter_rows():
            for cell in cells:
                if colon and cell.value == name:
                    cell.comment = Comment(words, "crowdtree", width=260, height=90)
    for column, cell in enumerate(sheet[1], start=1):
        cell.font = Font(bold=True)
        sheet.column_dimensions[get_column_letter(column)].width = WIDTHS.get(cell.value, 8)
    sheet.freeze_panes = "B2"
    explained.column_dimensions["A"].width = 100
    return book


def _value(cell: str) -> Any:
    """Number of a cell that holds one, so that a spreadsheet treats it as such."""
    try:
        return float(cell) if "." in cell else int(cell)
    except ValueError:
        return cell or None
