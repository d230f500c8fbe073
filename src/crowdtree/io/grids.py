"""Delimited text, workbooks and data frames as rows of text, and back."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import re
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from crowdtree.core.errors import CrowdtreeError, needing, one_line, squeeze
from crowdtree.core.reading import MAX_BLANK, Source, cell_text, frame_columns, shown
from crowdtree.io.atomic import write_atomically
from crowdtree.io.formats import MOST_BYTES, ending_of
from crowdtree.io.layouts import Grid, Row, has_header

MOST_UNPACKED = 500_000_000
"""Bytes that a workbook may unpack to."""
MOST_CELL_TEXT = 32_767
"""Characters that a cell of a workbook holds."""
BESIDE = ("errors", "loss", "sources")
"""Names of sheets that belong to the table on the first one."""
MOST_COLUMNS, MOST_ROWS = 16_384, 1_048_576
"""Size of a sheet of a workbook."""


# ---------------------------------------------------------------- delimited text


@contextmanager
def delimited_grid(source: Source) -> Iterator[Grid]:
    """Open a CSV or TSV file, whatever separates its columns; comments above it begin with #."""
    with source.rows(MOST_BYTES[ending_of(source.name)]) as (separator, rows):
        yield Grid(source.name, _few_blank(rows, source.name), decimal_comma=separator != ",")


def _few_blank(rows: Iterable[tuple[int, list[str]]], name: str) -> Iterator[tuple[int, list[str]]]:
    """Refuse a file of blank lines."""
    blank = 0
    for number, row in rows:
        blank = 0 if row else blank + 1
        if blank > MAX_BLANK:
            raise CrowdtreeError(f"{name}: has {MAX_BLANK:,} blank lines in a row; remove them")
        yield number, row


def write_delimited(path: Path, rows: Iterable[list[Any]]) -> None:
    """Write rows as CSV, TSV or compressed CSV; numbers keep all digits."""
    ending = ending_of(path)

    def write(file: BinaryIO) -> None:
        is_packed = ending.endswith(".gz")
        # without name and time, so that the same problem gives the same file
        packed = gzip.GzipFile("", "wb", 4, fileobj=file, mtime=0) if is_packed else file
        text = io.TextIOWrapper(packed, encoding="utf-8", newline="")
        separator = "\t" if ending == ".tsv" else ","
        csv.writer(text, delimiter=separator, lineterminator="\n").writerows(rows)
        text.flush()
        text.detach()  # otherwise the file would be closed before it is synced to disk
        if is_packed:
            packed.close()

    write_atomically(path, write, MOST_BYTES[ending] if ending != ".csv.gz" else None)


# ---------------------------------------------------------------- workbooks


class Sheets(NamedTuple):
    """The first sheet of a workbook, and the sheets of `BESIDE` if there are any."""

    main: Grid
    errors: Grid | None
    loss: Grid | None
    sources: Grid | None


def workbook_grids(source: Source) -> Sheets:
    """Read a workbook: its table, and what is beside it."""
    name, sheets = source.name, read_sheets(source)
    beside = {title.strip().casefold(): title for title in sheets if _is_beside(title)}
    tables = [title for title in sheets if title not in beside.values()]
    if not tables:
        raise CrowdtreeError(f"{name}: expected a sheet with a table, got none")
    main = next((title for title in tables if has_header(sheets[title])), tables[0])
    grid = _sheet_grid(name, main, sheets)
    if main != tables[0]:
        grid.note = f"sheet {one_line(main)} read"
    extra = (_sheet_grid(name, beside[t], sheets) if t in beside else None for t in BESIDE)
    return Sheets(grid, *extra)


def read_sheets(
    source: Source, is_table: Callable[[list[Row]], bool] = has_header
) -> dict[str, list[Row]]:
    """Read the sheets of a workbook up to the first with a table, and those beside it."""
    name = source.name
    source.check(MOST_BYTES[".xlsx"])
    _check_zip(source, name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and validations, which do not matter
            return _sheets(source, is_table)
    except CrowdtreeError:
        raise
    except Exception as error:  # the library raises many kinds of errors for a damaged file
        raise CrowdtreeError(
            f"{name}: is not a readable XLSX workbook ({type(error).__name__}: "
            f"{squeeze(error)[:80]}); save it again as .xlsx"
        ) from None


def _is_beside(title: str) -> bool:
    return title.strip().casefold() in BESIDE


def _sheet_grid(name: str, title: str, sheets: dict[str, list[Row]]) -> Grid:
    return Grid(f"{name}, sheet {one_line(title)}", sheets[title], unit="row", padded=True)


def _check_zip(source: Source, name: str) -> None:
    try:
        with source.open() as stored, zipfile.ZipFile(stored) as packed:
            size = sum(member.file_size for member in packed.infolist())
            if size > MOST_UNPACKED:
                raise CrowdtreeError(
                    f"{name}: unpacks to {size:,} bytes, more than the {MOST_UNPACKED:,} that are "
                    "read; save the sheet as .csv"
                )
            for member in packed.namelist():
                with packed.open(member) as file:
                    if b"<!DOCTYPE" in file.read(4096):  # entity expansion attacks
                        raise CrowdtreeError(
                            f"{name}: {one_line(member)} declares a document type, which no "
                            "valid workbook does; save it again as .xlsx"
                        )
    except CrowdtreeError:
        raise
    except Exception:  # zlib, struct, RuntimeError of encrypted members, ...
        raise CrowdtreeError(
            f"{name}: is not an XLSX workbook; save it as .xlsx, or correct its extension"
        ) from None


def _sheets(source: Source, is_table: Callable[[list[Row]], bool]) -> dict[str, list[Row]]:
    """Rows of the sheets up to the first with a table, and of those beside it; no blank rows."""
    with needing(f"{source.name}: workbooks", "excel"):
        import openpyxl

    found: dict[str, list[Row]] = {}
    with source.open() as file:  # the library does not close it on errors
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        for sheet in book.worksheets:
            known = any(is_table(rows) for title, rows in found.items() if not _is_beside(title))
            if _is_beside(sheet.title) or not known:
                sheet.reset_dimensions()  # some programs write wrong dimensions
                found[sheet.title] = [
                    (number, [cell_text(value) for value in row])
                    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1)
                    if any(value is not None for value in row)
                ]
    return found


def write_workbook(path: Path, sheets: Mapping[str, Iterable[list[Any]]]) -> None:
    """Write sheets of rows as an XLSX workbook."""
    name = shown(path)
    with needing(f"{name}: workbooks", "excel"):
        import openpyxl

    book = openpyxl.Workbook(write_only=True)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for number, row in enumerate(rows, start=1):
            if len(row) > MOST_COLUMNS or number > MOST_ROWS:
                raise CrowdtreeError(
                    f"{name}: a sheet has {MOST_ROWS:,} rows and {MOST_COLUMNS:,} columns, which "
                    "is too few for this problem; save it as .csv"
                )
            sheet.append([_cell(sheet, value, name) for value in row])
    write_atomically(path, book.save, MOST_BYTES[".xlsx"])


def _cell(sheet: Any, value: Any, name: str) -> Any:
    """Make a cell that is read exactly as it was written."""
    from openpyxl.cell import WriteOnlyCell

    if value == "":
        return None
    if isinstance(value, str):
        _check_cell_text(value, name)
        cell = WriteOnlyCell(sheet, value)
        cell.data_type = "s"  # a name that begins with = is not a formula
        return cell
    if isinstance(value, float) and float(f"{value:.16g}") != value:
        cell = WriteOnlyCell(sheet, repr(value))
        cell.data_type = "n"  # a number in all its digits; the library would write 16
        return cell
    return value


def _check_cell_text(value: str, name: str) -> None:
    """Refuse text that a workbook would change."""
    if len(value) > MOST_CELL_TEXT:
        raise CrowdtreeError(
            f"{name}: {one_line(value)} is longer than the {MOST_CELL_TEXT:,} characters that a "
            "cell holds; save it as .yaml or .json"
        )
    if re.search(r"[\x00-\x08\x0b-\x1f\ufffe\uffff\ud800-\udfff]|_x[0-9A-Fa-f]{4}_", value):
        raise CrowdtreeError(
            f"{name}: {one_line(value)} has a character that a workbook cannot store; save it as "
            ".yaml or .json"
        )


# ---------------------------------------------------------------- data frames


def frame_grid(frame: Any, source: str = "frame") -> Grid:
    """Take a data frame (polars, pandas, pyarrow) as a table."""
    try:
        columns = frame_columns(_with_index(frame), source)
    except TypeError:
        raise CrowdtreeError(
            f"{source}: expected a file or a data frame, got {type(frame).__name__}"
        ) from None
    except CrowdtreeError:
        raise
    except Exception as error:  # errors of the frame's own library, such as for duplicate columns
        raise CrowdtreeError(f"{source}: cannot be read ({squeeze(error)[:120]})") from None
    # pandas names columns without a name so
    header = [re.sub(r"Unnamed: \d+", "", name) for name in columns]
    rows = (
        (number, [cell_text(value) for value in row])
        for number, row in enumerate(zip(*columns.values(), strict=True), start=1)
    )
    return Grid(source, itertools.chain([(0, header)], rows), unit="row")


def _with_index(frame: Any) -> Any:
    """Make the index of a pandas frame a column where it holds the names of the rows."""
    if not hasattr(frame, "reset_index"):
        return frame
    name = "" if frame.index.name is None else frame.index.name
    named = has_header([(0, [str(name)])])
    text = frame.index.inferred_type == "string" and not has_header([(0, [*map(str, frame)])])
    return frame.reset_index(names=name) if named or text else frame
