"""Where a table has its header, and whether its rows are questions or classes.

Tables come as a :class:`Grid` of text from any source. Lines above the header are a title or
comments. A table whose first column is ``question`` (or ``test``) has one question per row; one
whose first column is ``class`` has one class per row and is transposed. Where the first column is
called otherwise, a column ``error`` or a row ``prior`` indicates questions in rows, a column
``prior`` or a row ``error`` classes in rows; without them the table is refused, not guessed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NoReturn

from crowdtree.core.errors import CrowdtreeError, one_line
from crowdtree.core.problem import CELLS
from crowdtree.core.reading import MAX_TITLE

Rows = Literal["questions", "classes"]
Row = tuple[int, list[str]]
QUESTION = ("question", "questions", "test", "tests")
CLASS = ("class", "classes")
COMMENTS = ("note", "notes", "comment", "comments", "remark", "remarks")
"""Names of columns and rows that hold comments."""


@dataclass
class Grid:
    """Rows of text from any source.

    `rows` yields the number of the row and its cells; `source`, `unit` and `across` (line, row or
    column) are for messages; `padded` says that missing cells at the end of a row are blank
    (workbooks); `places` are the numbers of the columns where they are not 1, 2, ...; `note` says
    how the grid was chosen.
    """

    source: str
    rows: Iterable[Row]
    unit: str = "line"
    decimal_comma: bool = False
    padded: bool = False
    across: str = "column"
    places: list[int] | None = None
    note: str = ""

    def place(self, column: int) -> str:
        """Name a column for a message."""
        return f"{self.across} {self.places[column] if self.places else column + 1}"

    def refuse(self, number: int | None, what: str) -> NoReturn:
        """Raise an error that names the source and the row."""
        where = f"{self.source}, {self.unit} {number}" if number else self.source
        raise CrowdtreeError(f"{where}: {what}")


@dataclass
class Layout:
    """A grid with one question per row: its header, the rows below it, and how it was found."""

    grid: Grid
    number: int
    header: list[str]
    names: int
    rows: Iterator[Row]
    notes: list[str] = field(default_factory=list)
    turned: bool = False


def find_layout(grid: Grid, asked: Rows | None = None) -> Layout:
    """Find the header, and transpose the table where its rows are classes."""
    filled: Iterator[Row] = (row for row in grid.rows if any(map(str.strip, row[1])))
    above, (number, header), rows = header_of(filled)
    if not header:
        grid.refuse(None, "is blank; expected question,error,<class>,<class>,... as the first row")
    header = [name.strip() for name in header]
    notes = [grid.note] if grid.note else []
    if above:
        notes.append(f"header found in {grid.unit} {number}")
    words = [name.casefold() for name in header]
    names = next((i for i, word in enumerate(words) if word in QUESTION + CLASS), None)
    kind: Rows | None = None
    if names is not None:
        kind = "questions" if words[names] in QUESTION else "classes"
    else:
        if len(filled_places(header)) < 2:  # no table: do not read it to its end
            _refuse_corner(grid, number, header[0])
        below = list(rows)
        rows = iter(below)
        names = _names_column(header, below)
    if asked is not None:
        kind = asked
    elif kind != "questions":
        below = list(rows)
        rows = iter(below)
        found = _indicated(words, [_cell(cells, names).casefold() for _, cells in below])
        if kind is None and found == "questions":
            notes.append("one question per row")
        elif kind is not None and found == "questions":
            grid.refuse(
                number,
                f"column {one_line(header[names])} suggests one class per row, but a column error "
                "or a row prior one question per row; rename the column to question, or pass "
                "rows= (--rows questions or classes)",
            )
        kind = kind or found
    if kind is None:
        _refuse_corner(grid, number, header[names])
    if kind == "questions" and names != filled_places(header)[0] and header[names]:
        notes.append(f"names of the questions in {grid.place(names)}")
    header[names] = header[names] or kind
    layout = Layout(grid, number, header, names, rows, notes)
    return _transposed(layout) if kind == "classes" else layout


def header_of(
    rows: Iterator[Row], keywords: tuple[str, ...] = QUESTION + CLASS, least: int = 3
) -> tuple[list[Row], Row, Iterator[Row]]:
    """Split rows into those above the header, the header, and those below it.

    The header is the first row with a keyword and at least so many cells, else the first row with
    three cells or a blank corner. Only a title and comments (at most two cells, or ``#`` in front)
    may stand above it.

    >>> rows = [(1, ["Birds"]), (2, ["question", "a", "b"]), (3, ["q", "0", "1"])]
    >>> above, header, below = header_of(iter(rows))
    >>> header, list(below)
    ((2, ['question', 'a', 'b']), [(3, ['q', '0', '1'])])
    """
    head = list(itertools.islice(rows, MAX_TITLE))
    if not head:
        return [], (0, []), rows
    texts: list[list[str]] = []  # of what may be a title, and of the first row that is none
    words: list[list[str]] = []
    for _, cells in head:
        texts.append([cell.strip().casefold() for cell in cells])
        words.append([text for text in texts[-1] if text])
        if not _is_title(words[-1]):
            break
    candidates = range(len(words))
    titles = len(words) - (not _is_title(words[-1]))
    keyed = (
        i
        for i in candidates
        if any(word in keywords for word in words[i])
        and (len(words[i]) >= least or i == titles)
        and (i == 0 or any(word not in CELLS for word in words[i][1:]))
    )
    corner = (i for i in candidates if len(words[i]) > 1 and not texts[i][0])
    long = 0 if len(words[0]) > 1 and set(words[0]) & set(keywords) else titles % len(head)
    place = next(keyed, next(corner, long))
    return head[:place], head[place], itertools.chain(head[place + 1 :], rows)


def has_header(head: list[Row]) -> bool:
    """Whether one of the first rows names the questions or the classes.

    >>> has_header([(1, ["Read me"])]), has_header([(1, ["Question", "a", "b"])])
    (False, True)
    """
    words = {cell.strip().casefold() for _, cells in head[:MAX_TITLE] for cell in cells}
    return not words.isdisjoint(QUESTION + CLASS)


def _is_title(words: list[str]) -> bool:
    return len(words) <= 2 or words[0].startswith("#")


def filled_places(header: list[str]) -> list[int]:
    """Columns that have a name."""
    return [place for place, name in enumerate(header) if name]


def _cell(cells: list[str], place: int) -> str:
    return cells[place].strip() if place < len(cells) else ""


def _names_column(header: list[str], below: list[Row]) -> int:
    """First column with a name, or before it with cells: the corner of a table may be blank."""
    first = filled_places(header)[0]
    before = (p for p in range(first) if any(_cell(cells, p) for _, cells in below))
    return next(before, first)


def _indicated(header: list[str], names: list[str]) -> Rows | None:
    """What words in the header and in the column of names say about the rows."""
    questions = "error" in header or "prior" in names
    classes = "prior" in header or "error" in names
    if questions == classes:
        return None
    return "questions" if questions else "classes"


def _refuse_corner(grid: Grid, number: int, corner: str) -> NoReturn:
    grid.refuse(
        number,
        f"expected question (or test) as the first column, got {one_line(corner)}; the header is "
        "question,error,<class>,... or class,prior,<question>,...; rename the column, or pass "
        "rows= (--rows questions or classes); answers are for "
        'crowdtree learn, or load(path, "answers")',
    )


class Fit:
    """Pads rows to the length of the header, and refuses cells in columns without a name."""

    def __init__(self, grid: Grid, header: list[str]) -> None:
        self._grid, self._length = grid, len(header)
        self._width = filled_places(header)[-1] + 1
        self._blank = [place for place in range(self._width) if not header[place]]

    def __call__(self, number: int, cells: list[str], *, short: bool = False) -> None:
        """Pad a row, or raise an error; `short` rows may lack cells."""
        grid, width = self._grid, self._width
        if len(cells) < width:
            if not (grid.padded or short):
                grid.refuse(
                    number,
                    f"expected {width} cells as in the header, got {len(cells)}; fill in the "
                    "rest, and put names with separators in quotes",
                )
            cells.extend([""] * (width - len(cells)))
        for place in (*self._blank, *range(width, len(cells))):
            if cells[place].strip():
                what = "has no name in the header"
                if place >= self._length:
                    what = f"is one more than the header's {width}"
                grid.refuse(
                    number,
                    f"{grid.place(place)} has {one_line(cells[place])} but {what}; put names with "
                    "separators in quotes, and comments into a column called notes",
                )


def _transposed(layout: Layout) -> Layout:
    """Turn a table with one class per row into one with one question per row."""
    grid, header, names = layout.grid, layout.header, layout.names
    places = filled_places(header)
    fit = Fit(grid, header)
    kept: list[Row] = []
    for row, cells in layout.rows:
        filled = [cell for cell in cells if cell.strip()]
        if filled[0].lstrip().startswith("#") and 2 * len(filled) <= len(places):
            continue
        fit(row, cells)
        if not cells[names].strip():
            grid.refuse(row, "the class has no name; add one")
        kept.append((row, cells))
    if not kept:
        grid.refuse(None, "contains no class; add one row per class below the header")
    made = Grid(
        grid.source,
        [],
        unit="column",
        decimal_comma=grid.decimal_comma,
        across=grid.unit,
        places=[layout.number, *(row for row, _ in kept)],
    )
    turned = (
        (place + 1, [header[place], *(cells[place] for _, cells in kept)])
        for place in places
        if place != names
    )
    classes = [cells[names].strip() for _, cells in kept]
    return Layout(made, names + 1, ["question", *classes], 0, turned, layout.notes, turned=True)
