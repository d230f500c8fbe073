"""The table form of a problem: a header, a row ``prior``, one row per question.

Rows come from any source (CSV, workbook, data frame) as a :class:`Grid`. The first column named
``error`` and the first named ``text`` are not classes; the first row named ``prior``, the first
named ``description`` and a row named ``dash`` are not questions. So a class may be called
``error`` if the real column ``error`` comes before it, which
:func:`crowdtree.files.table_writer.problem_rows` ensures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from crowdtree.errors import CrowdtreeError, listing, one_line
from crowdtree.problem import DASH

__all__ = ["Grid", "Kind", "Table", "cell_code", "read_table"]

Kind = Literal["outcome", "errors", "strength"]
FloatArray = NDArray[np.float64]
_DASHES = ("-", "-1", "–", "—", "−")
_EXPECTED = {
    "outcome": "0, 1 or -",
    "errors": "a number from 0 to 1",
    "strength": "a share from 0 to 1",
}


@dataclass
class Grid:
    """Rows of text from any source.

    `rows` yields the number of the row and its cells; `source` and `unit` (line or row) are for
    messages; `padded` says that missing cells at the end of a row are blank (workbooks).
    """

    source: str
    rows: Iterable[tuple[int, list[str]]]
    unit: str = "line"
    decimal_comma: bool = False
    padded: bool = False

    def refuse(self, number: int | None, what: str) -> NoReturn:
        """Raise an error that names the source and the row."""
        where = f"{self.source}, {self.unit} {number}" if number else self.source
        raise CrowdtreeError(f"{where}: {what}")


@dataclass
class Table:
    """The content of a grid, in the order of its rows and columns."""

    grid: Grid
    classes: list[str]
    questions: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    body: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    error: FloatArray | None = None  # NaN where blank
    prior: list[float] | None = None
    texts: list[str] | None = None
    descriptions: list[str] | None = None
    dash: str | None = None
    dependence: float = 0.0


class _Codes(dict[Any, int]):
    """Outcomes by their spelling; each new spelling is parsed once."""

    def __missing__(self, cell: Any) -> int:
        code = self[cell] = cell_code(cell)
        return code


def cell_code(cell: Any) -> int:
    """Outcome of a cell: 0, 1 or -1 for ``-``; KeyError for anything else.

    >>> [cell_code(cell) for cell in ("0", " 1 ", "1.0", "-", True)]
    [0, 1, 1, -1, 1]
    """
    text = str(int(cell)) if isinstance(cell, bool) else str(cell).strip()
    if text in _DASHES:
        return DASH
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        raise KeyError(cell) from None
    if value not in (0, 1, -1):
        raise KeyError(cell)
    return int(value)


def read_table(grid: Grid, kind: Kind) -> Table:
    """Read a grid whose cells are outcomes, errors or shares of yes answers."""
    rows = ((number, cells) for number, cells in grid.rows if any(map(str.strip, cells)))
    number, header = next(rows, (0, []))
    if not header:
        grid.refuse(None, "is blank; expected question,error,<class>,<class>,... as the first row")
    columns = _Columns(grid, number, header)
    return _Reader(grid, columns, kind).read(rows)


class _Columns:
    """The roles of the columns."""

    def __init__(self, grid: Grid, number: int, header: list[str]) -> None:
        names = [name.strip() for name in header]
        filled = [place for place, name in enumerate(names) if name]
        self.question = filled[0]
        if names[self.question].casefold() not in ("question", "test"):
            grid.refuse(
                number,
                f"expected question (or test) as the first column, got "
                f"{one_line(names[self.question])}; the header is question,error,<class>,...",
            )
        self.error = _first(names, "error")
        self.text = _first(names, "text")
        special = {self.question, self.error, self.text}
        self.classes = [place for place in filled if place not in special]
        self.names = [names[place] for place in self.classes]
        self.blank = [place for place, name in enumerate(names) if not name]
        self.width = filled[-1] + 1
        self._check(grid, number)
        first, last = self.classes[0], self.classes[-1]
        self._slice: slice | None = None
        if last - first + 1 == len(self.classes):
            self._slice = slice(first, last + 1)

    def _check(self, grid: Grid, number: int) -> None:
        if len(self.classes) < 2:
            grid.refuse(
                number,
                f"expected at least two classes, the header names {len(self.classes)} "
                f"({listing(map(one_line, self.names)) or 'none'}); columns must be separated by "
                "commas, semicolons or tabs",
            )
        seen: dict[str, int] = {}
        for place, name in zip(self.classes, self.names, strict=True):
            if name in seen:
                grid.refuse(
                    number,
                    f"class {one_line(name)} occurs twice, in columns {seen[name] + 1} and "
                    f"{place + 1}; names must differ",
                )
            seen[name] = place

    def of_classes(self, cells: list[str]) -> list[str]:
        """Take the cells of the classes."""
        if self._slice is not None:
            return cells[self._slice]
        return [cells[place] for place in self.classes]


def _first(names: list[str], wanted: str) -> int | None:
    """Place of the first column of a name, after the first column."""
    return next((i for i, name in enumerate(names) if i and name.casefold() == wanted), None)


class _Reader:
    """Reads the rows below the header."""

    def __init__(self, grid: Grid, columns: _Columns, kind: Kind) -> None:
        self.grid, self.columns, self.kind = grid, columns, kind
        self.table = Table(grid, columns.names)
        self.codes = _Codes({"0": 0, "1": 1, "-": DASH})
        self.seen: dict[str, int] = {}
        self.errors: list[float] = []
        self.texts: list[str] = []
        self.body: list[NDArray[Any]] = []

    def read(self, rows: Iterator[tuple[int, list[str]]]) -> Table:
        for number, cells in rows:
            self._fit(number, cells)
            name = cells[self.columns.question].strip()
            if not self._special(number, name, cells):
                self._question(number, name, cells)
        table = self.table
        if not table.questions:
            self.grid.refuse(
                None, "contains no question; add one row per question below the header"
            )
        table.body = np.stack(self.body)
        table.error = np.array(self.errors) if self.columns.error is not None else None
        table.texts = self.texts if self.columns.text is not None else None
        return table

    def _fit(self, number: int, cells: list[str]) -> None:
        """Pad a row to the length of the header, or raise an error."""
        width = self.columns.width
        if len(cells) < width:
            name = cells[self.columns.question :][:1]
            whole = name and name[0].strip().casefold() in ("description", "dash", "dependence")
            if not (self.grid.padded or whole):
                self.grid.refuse(
                    number,
                    f"expected {width} cells as in the header, got {len(cells)}; fill in the rest, "
                    "and put names with separators in quotes",
                )
            cells.extend([""] * (width - len(cells)))
        extra = [place for place in self.columns.blank if place < len(cells)]
        for place in (*extra, *range(width, len(cells))):
            if cells[place].strip():
                what = (
                    "has no name in the header"
                    if place in extra
                    else (f"is one more than the header's {width}")
                )
                self.grid.refuse(
                    number,
                    f"column {place + 1} has {one_line(cells[place])} but {what}; put names with "
                    "separators in quotes",
                )

    # ------------------------------------------------------------ rows that are not questions

    def _special(self, number: int, name: str, cells: list[str]) -> bool:
        word = name.casefold()
        if word not in ("prior", "description", "dash", "dependence"):
            return False
        values = self.columns.of_classes(cells)
        table = self.table
        if word == "prior" and table.prior is None:
            lax = self.kind == "errors"  # only the outcome table's prior counts
            table.prior = self._numbers(number, None, values, blank=lax).tolist()
        elif (
            word == "description"
            and table.descriptions is None
            and not (self._is_question(number, cells))
        ):
            table.descriptions = values
        elif word == "dash" and values[0].strip() in ("inapplicable", "either"):
            table.dash = values[0].strip()
        elif (
            word == "dependence"
            and not any(value.strip() for value in values[1:])
            and 0 <= self._number(values[0]) < 1
        ):
            table.dependence = self._number(values[0])
        else:
            return False
        return True

    def _is_question(self, number: int, cells: list[str]) -> bool:
        """Distinguish a question called description from the descriptions: it has an error."""
        try:
            answers = [cell_code(cell) for cell in self.columns.of_classes(cells)]
        except KeyError:
            return False
        place = self.columns.error
        if place is None and answers:
            self.grid.refuse(
                number,
                "the row description has answers; rename the question, or fill in a column error",
            )
        return place is not None and bool(cells[place].strip())

    # ------------------------------------------------------------ questions

    def _question(self, number: int, name: str, cells: list[str]) -> None:
        if not name:
            self.grid.refuse(number, "the question has no name; add one")
        if name in self.seen:
            self.grid.refuse(
                number,
                f"question {one_line(name)} already occurs in {self.grid.unit} "
                f"{self.seen[name]}; names must differ",
            )
        self.seen[name] = number
        self.table.questions.append(name)
        self.table.lines.append(number)
        columns = self.columns
        if columns.error is not None:
            self.errors.append(self._error(number, name, cells[columns.error]))
        if columns.text is not None:
            self.texts.append(cells[columns.text].strip())
        values = columns.of_classes(cells)
        if self.kind == "outcome":
            self.body.append(self._outcomes(number, name, values))
        else:
            self.body.append(self._numbers(number, name, values, blank=self.kind == "errors"))

    def _outcomes(self, number: int, name: str, values: list[str]) -> NDArray[np.int8]:
        codes = self.codes
        try:
            return np.array([codes[value] for value in values], dtype=np.int8)
        except KeyError as error:
            self._refuse_cell(number, name, values.index(error.args[0]), error.args[0])

    def _error(self, number: int, name: str, value: str) -> float:
        if not value.strip():
            return float("nan")
        found = self._number(value)
        if not 0 <= found <= 1:
            self.grid.refuse(
                number,
                f"question {one_line(name)} has the error {one_line(value)}; write "
                f"{_EXPECTED['errors']}",
            )
        return found

    def _number(self, value: str) -> float:
        """Read a number; NaN if it is none."""
        try:
            return float(value.replace(",", ".") if self.grid.decimal_comma else value)
        except ValueError:
            return float("nan")

    def _numbers(
        self, number: int, name: str | None, values: list[str], *, blank: bool
    ) -> FloatArray:
        """Read a row of numbers, which is the prior if it has no name."""
        try:
            found = np.array([float(value) if value else np.nan for value in values])
        except ValueError:
            found = np.array([self._number(value) for value in values])
        top = np.finfo(float).max if name is None else 1.0
        for place in np.flatnonzero(~((found >= 0) & (found <= top))):
            if not (blank and values[place].strip() in ("", *_DASHES)):
                self._refuse_cell(number, name, int(place), values[place])
            found[place] = np.nan
        return found

    def _refuse_cell(self, number: int, name: str | None, place: int, value: str) -> NoReturn:
        expected = "a positive number" if name is None else _EXPECTED[self.kind]
        what = "the row prior" if name is None else f"question {one_line(name)}"
        found = f"is {one_line(value)}" if value.strip() else "is blank"
        self.grid.refuse(
            number,
            f"column {self.columns.classes[place] + 1} ({what}, class "
            f"{one_line(self.columns.names[place])}) {found}; write {expected}",
        )
