"""The table form of a problem: a header, a row ``prior``, one row per question.

:mod:`crowdtree.io.layouts` finds the header and the direction of the table. The first column
named ``error``, the first named ``text`` and a column ``answers`` without a prior are not classes;
the first row named ``prior``, the first named ``description`` and a row named ``dash`` are not
questions. So a class may be called ``error`` if the real column ``error`` comes before it, which
:func:`crowdtree.io.table_writer.problem_rows` ensures. A column called ``notes`` is left out
unless it holds outcomes, and so is a row that is called so or begins with ``#``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.errors import CrowdtreeError, listing, one_line
from crowdtree.core.outcomes import check_answers
from crowdtree.core.problem import CELLS, DASH
from crowdtree.core.text import plural, short
from crowdtree.io.cells import Spellings, cell_code, cell_number
from crowdtree.io.layouts import (
    COMMENTS,
    Fit,
    Grid,
    Layout,
    Row,
    Rows,
    filled_places,
    find_layout,
)
from crowdtree.io.words import BadCellError, WordRow, is_counts, is_name, read_words

Kind = Literal["outcome", "errors", "strength"]
SPECIAL = ("prior", "description", "dash", "dependence")
"""Names of rows that are not questions."""
MAX_NOTES = 5
"""On rows of words."""
CROSSES = ("x", "✓", "✔")
_ERRS = re.compile(r"\b(err|errs|errors?|mistakes?|wrong)\b", re.IGNORECASE)
_LARGEST = np.finfo(np.float64).max
_EXPECTED = {
    "prior": "a positive number, such as 0.2, 20% or 1234",
    "outcome": "0, 1 or - (or yes, no, n/a)",
    "errors": "a number from 0 to 1, or a percentage such as 5%",
    "strength": "a share from 0 to 1, or a percentage such as 85%",
}


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
    words: dict[int, WordRow] = field(default_factory=dict)  # by question
    notes: list[str] = field(default_factory=list)


class _Codes(dict[Any, int]):
    """Outcomes by their spelling; each new spelling is parsed once."""

    def __missing__(self, cell: Any) -> int:
        code = self[cell] = cell_code(cell)
        return code


def read_table(grid: Grid, kind: Kind, rows: Rows | None = None) -> Table:
    """Read a grid whose cells are outcomes, errors or shares of yes answers."""
    layout = find_layout(grid, rows)
    _leave_out_comments(layout, _is_outcome if kind == "outcome" else _is_number)
    table = _Reader(layout, kind, _answers_column(layout)).read(layout.rows)
    if layout.turned:
        table.notes.insert(
            0,
            f"one class per row (classes {listing(table.classes, 3)}; questions "
            f"{listing(table.questions, 3)})",
        )
    return table


def _leave_out_comments(layout: Layout, test: Callable[[str], bool]) -> None:
    """Remove columns that are called notes, or the like, and do not belong to a class.

    A class has a prior where there is a row prior; where there is none, most of its cells pass the
    test of the kind of table.
    """
    named = [p for p, name in enumerate(layout.header) if name.casefold() in COMMENTS]
    if not named:
        return
    rows = list(layout.rows)
    for place in named:
        cells = [_at(cells, place) for _, cells in rows]
        priors = [c for (_, row), c in zip(rows, cells, strict=True) if _is_prior(layout, row)]
        if _is_number(priors[0]) if priors else _mostly(cells, test):
            continue
        layout.notes.append(f"column {one_line(layout.header[place])} left out as comments")
        layout.header[place] = ""
        for _, row in rows:
            if place < len(row):
                row[place] = ""
    layout.rows = (row for row in rows if any(map(str.strip, row[1])))


def _answers_column(layout: Layout) -> int | None:
    """Find the column that declares answers: called so, and not a class.

    A class has a prior where there is a row prior; where there is none, it has no cell with ``|``
    and none that is blank.
    """
    named = [p for p, name in enumerate(layout.header) if name.casefold() == "answers"]
    if not named:
        return None
    rows = list(layout.rows)
    layout.rows = iter(rows)
    priors = [row for _, row in rows if _is_prior(layout, row)]
    for place in named:
        cells = [_at(row, place).strip() for _, row in rows]
        full = all(cells) and "|" not in "".join(cells)
        is_class = _at(priors[0], place).strip() if priors else full
        if not is_class:
            return place
    return None


def _is_prior(layout: Layout, row: list[str]) -> bool:
    return _at(row, layout.names).strip().casefold() == "prior"


def _at(cells: list[str], place: int) -> str:
    return cells[place] if place < len(cells) else ""


def _mostly(cells: list[str], test: Callable[[str], bool]) -> bool:
    return 2 * sum(map(test, cells)) > len(cells)


def _is_outcome(cell: str) -> bool:
    return cell.strip().casefold() in CELLS


def _is_number(cell: str) -> bool:
    return not np.isnan(cell_number(cell))


class _Columns:
    """The roles of the columns."""

    def __init__(self, layout: Layout, answers: int | None) -> None:
        names = layout.header
        self.answers = answers
        self.question = layout.names
        self.error = self._first(names, "error")
        self.text = self._first(names, "text")
        special = {self.question, self.error, self.text, answers}
        self.classes = [place for place in filled_places(names) if place not in special]
        self.names = [names[place] for place in self.classes]
        self._check(layout.grid, layout.number)
        first, last = self.classes[0], self.classes[-1]
        self._slice: slice | None = None
        if last - first + 1 == len(self.classes):
            self._slice = slice(first, last + 1)

    def _first(self, names: list[str], wanted: str) -> int | None:
        """Place of the first column of a name."""
        places = (i for i, name in enumerate(names) if name.casefold() == wanted)
        return next((i for i in places if i != self.question), None)

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
                    f"class {one_line(name)} occurs twice, in {grid.place(seen[name])} and "
                    f"{grid.place(place)}; names must differ",
                )
            seen[name] = place

    def of_classes(self, cells: list[str]) -> list[str]:
        """Take the cells of the classes."""
        if self._slice is not None:
            return cells[self._slice]
        return [cells[place] for place in self.classes]


class _Reader:
    """Reads the rows below the header."""

    def __init__(self, layout: Layout, kind: Kind, answers: int | None) -> None:
        self.grid, self.kind = layout.grid, kind
        self.fit = Fit(layout.grid, layout.header)
        self.columns = _Columns(layout, answers)
        self.table = Table(layout.grid, self.columns.names, notes=layout.notes)
        self.codes = _Codes({"0": 0, "1": 1, "-": DASH})
        self.spellings = Spellings()
        self.seen: dict[str, int] = {}
        self.comments = 0
        self.errors: list[float] = []
        self.texts: list[str] = []
        self.body: list[NDArray[Any]] = []

    def read(self, rows: Iterator[Row]) -> Table:
        for number, cells in rows:
            name = _at(cells, self.columns.question).strip()
            if self._is_comment(name, cells):
                self.comments += 1
                continue
            short = name.casefold() in SPECIAL[1:]
            self.fit(number, cells, short=short)
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
        if self.comments:
            table.notes.append(f"{plural(self.comments, self.grid.unit)} left out as comments")
        self.spellings.add_outcomes(self.codes)
        table.notes += self.spellings.notes() + self._word_notes()
        return table

    def _word_notes(self) -> list[str]:
        """How rows of words were understood."""
        rows = [(one_line(self.table.questions[q]), row) for q, row in self.table.words.items()]
        notes = [f"question {name}: {note}" for name, row in rows for note in row.notes]
        if len(notes) > MAX_NOTES:
            notes[MAX_NOTES:] = [f"{len(notes) - MAX_NOTES} more notes on answers"]
        inferred = [
            f"{name} ({listing(short(answer, 30) for answer in row.names)})"
            for name, row in rows
            if row.inferred
        ]
        return [f"answers as they appear: {listing(inferred, 3)}", *notes] if inferred else notes

    def _is_comment(self, name: str, cells: list[str]) -> bool:
        """Whether a row is called notes, or begins with #, and does not hold a question's cells."""
        first = next(cell for cell in cells if cell.strip()).lstrip()
        if not first.startswith("#") and name.casefold() not in COMMENTS:
            return False
        if self._declared(cells):
            return False
        values = [_at(cells, place) for place in self.columns.classes]
        if self.kind == "errors":
            short = len(cells) <= max(self.columns.classes) and not self.grid.padded
            return short or any(value.strip() and not _is_number(value) for value in values)
        return not _mostly(values, _is_outcome if self.kind == "outcome" else _is_number)

    # ------------------------------------------------------------ rows that are not questions

    def _special(self, number: int, name: str, cells: list[str]) -> bool:
        word = name.casefold()
        if word not in SPECIAL:
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
            and values[0].strip()
            and not any(value.strip() for value in values[1:])
        ):
            table.dependence = cell_number(values[0])
            if not 0 <= table.dependence < 1:
                self.grid.refuse(
                    number,
                    f"dependence: expected a number from 0 to below 1, got {one_line(values[0])}",
                )
        else:
            return False
        return True

    def _declared(self, cells: list[str]) -> str:
        return "" if self.columns.answers is None else _at(cells, self.columns.answers).strip()

    def _is_question(self, number: int, cells: list[str]) -> bool:
        """Distinguish a question called description from the descriptions: it has an error."""
        if self._declared(cells):
            return True
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
            self.body.append(self._outcomes(number, name, values, self._declared(cells)))
        else:
            self.body.append(self._numbers(number, name, values, blank=self.kind == "errors"))

    def _outcomes(
        self, number: int, name: str, values: list[str], declared: str
    ) -> NDArray[np.int8]:
        codes, before = self.codes, len(self.codes)
        try:
            if not declared:
                return np.array(list(map(codes.__getitem__, values)), dtype=np.int8)
        except KeyError as error:
            while len(codes) > before:  # spellings of a row that may hold words
                codes.popitem()
            place = values.index(error.args[0])
        else:
            place = 0
        if not any(map(str.strip, values)):
            self.grid.refuse(
                number,
                f"question {one_line(name)} is blank for every class; write "
                f"{_EXPECTED['outcome']}, or # in front of a heading or comment",
            )
        counts = is_counts(values) and not self._misnamed(values, place, is_prior=False)
        if not (declared or counts or _may_be_words(values)):
            if _may_be_words([value for value in values if value.strip()]):
                place = next(at for at, value in enumerate(values) if not value.strip())
            self._refuse_cell(number, name, values, place)
        names = self._declared_names(number, name, declared) if declared else None
        try:
            row = read_words(values, names)
        except BadCellError as fault:
            if fault.place is None:
                self.grid.refuse(number, f"question {one_line(name)} {fault.remedy}")
            self._refuse_cell(number, name, values, fault.place, fault.remedy)
        self.table.words[len(self.table.questions) - 1] = row
        return np.array(row.codes(), dtype=np.int8)

    def _declared_names(self, number: int, name: str, declared: str) -> tuple[str, ...]:
        try:
            return check_answers([declared.split("|")], (name,))[0]
        except CrowdtreeError as error:
            self.grid.refuse(number, str(error))

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
        comma = self.grid.decimal_comma
        found = cell_number(value, decimal_comma=comma)
        if found == found:
            self.spellings.add_number(value, decimal_comma=comma)
        return found

    def _numbers(
        self, number: int, name: str | None, values: list[str], *, blank: bool
    ) -> FloatArray:
        """Read a row of numbers, which is the prior if it has no name."""
        try:
            row = np.array(list(map(float, values)))
        except ValueError:  # blank, a percentage, or no number
            row = np.array([self._number(value) for value in values])
        top = _LARGEST if name is None else 1.0
        fits = (row >= 0) & (row <= top)
        if fits.all():
            return row
        for place in np.flatnonzero(~fits).tolist():
            cell = values[place].strip().casefold()
            if not (blank and (not cell or CELLS.get(cell) == DASH)):
                self._refuse_cell(number, name, values, place)
            row[place] = np.nan
        return row

    def _misnamed(self, values: list[str], place: int, *, is_prior: bool) -> str:
        """Suggest the name of a row of priors or a column of errors that is called otherwise."""
        along, across = ("row", "column") if self.grid.across == "column" else ("column", "row")
        if _ERRS.search(self.columns.names[place]):
            return f"; if this {across} says how often workers err, call it error"
        shown = [value for value in values if value.strip()]  # a column of errors is blank here
        found = [cell_number(value, decimal_comma=self.grid.decimal_comma) for value in shown]
        sums = len(found) > 1 and any(
            np.isclose(sum(found), total, rtol=0.01) for total in (1, 100)
        )
        if sums and not is_prior and self.kind == "outcome":
            return f"; if this {along} says how often each class occurs, call it prior"
        return ""

    def _refuse_cell(
        self, number: int, name: str | None, values: list[str], place: int, remedy: str = ""
    ) -> NoReturn:
        value = values[place]
        expected = _EXPECTED["prior" if name is None else self.kind]
        what = "the row prior" if name is None else f"question {one_line(name)}"
        found = f"is {one_line(value)}" if value.strip() else "is blank"
        advice = self._misnamed(values, place, is_prior=name is None)
        if not (advice or remedy) and name is not None and self.kind == "outcome":
            advice = self._advice(value)
        remedy = remedy or f"write {expected}"
        self.grid.refuse(
            number,
            f"{self.grid.place(self.columns.classes[place])} ({what}, class "
            f"{one_line(self.columns.names[place])}) {found}; {remedy}{advice}",
        )

    def _advice(self, value: str) -> str:
        """What a cell that is not an outcome may be instead."""
        if not value.strip():
            frame = self.grid.unit == "row" and not self.grid.padded
            hint = " (pandas reads n/a as blank unless keep_default_na=False is passed)"
            return hint if frame else ""
        if 0 < cell_number(value) < 1:
            return ", or pass strengths=True (--strengths) for shares of people who say yes"
        if value.strip().casefold() in CROSSES:
            return "; replace crosses by 1, and blank cells by 0"
        is_text = np.isnan(cell_number(value))
        remedy = "; comments belong in a column called notes, names of answers in the whole row"
        return remedy if is_text else ""


def _may_be_words(values: list[str]) -> bool:
    """Whether a row that is not of 0, 1 and - is meant as names of answers: most cells are words.

    Or as several right answers of yes/no: ``0|1``.
    """
    cells = [value.strip().casefold() for value in values]
    if all(part.strip() in CELLS for cell in cells for part in cell.split("|")):
        return True
    words = any(cell and cell not in CELLS and not _is_number(cell) for cell in cells)
    return words and _mostly(cells, _is_word)


def _is_word(cell: str) -> bool:
    return bool(cell) and cell not in CROSSES and (CELLS.get(cell) == DASH or is_name(cell))
