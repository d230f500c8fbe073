"""Sources of answers in files: fields of documents, and a table beside that of the outcomes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, NoReturn

import numpy as np

from crowdtree.core.errors import CrowdtreeError, listing, named, one_line
from crowdtree.core.loss import Loss, referring
from crowdtree.core.problem import Problem
from crowdtree.core.reading import Source as File
from crowdtree.core.reading import has_content, open_source
from crowdtree.core.sources import Source, SourceError, check_sources
from crowdtree.io.cells import cell_code, cell_number, numbers_by_class
from crowdtree.io.formats import DOCUMENTS, ending_of
from crowdtree.io.grids import delimited_grid, frame_grid, workbook_grids
from crowdtree.io.layouts import COMMENTS, Grid
from crowdtree.io.yaml_json import parse_document

HEADER = ("source", "sources")
COLUMNS = (
    "kind", "price", "error", "error_factor", "dependence", "repeatable", "most_per_item", "refers"
)  # fmt: skip
TOGETHER = "source_dependence"
"""Row of a table, and field of a document, with the share of errors that sources have in common."""
FIELDS = ("sources", TOGETHER)


class SourceList(NamedTuple):
    """Sources of a file, and the share of errors that they have in common; None where not given."""

    sources: Sequence[Source | Mapping[str, Any]] | None = None
    dependence: float | None = None
    notes: tuple[str, ...] = ()


def read_sources(given: Any, classes: Sequence[str], questions: Sequence[str]) -> SourceList:
    """Read sources from a file, a frame or a grid; a list of sources stays as it is.

    A table has the header ``source,kind,price,error,...`` and one row per source; further columns
    are called like questions and hold the source's error for them. A row ``source_dependence`` has
    that number in its first filled cell. A YAML or JSON file has the fields ``sources`` and
    ``source_dependence``.

    >>> rows = b"source,kind,price,error\\npeople,,1,\\ngpt-x,model,0.02,20%\\n"
    >>> read_sources(rows, ["a", "b"], ["q"]).sources
    [Source('people'), Source('gpt-x', 'model', price=0.02, worker_error=0.2)]
    """
    if isinstance(given, Grid):
        return _table(given, questions)
    if isinstance(given, str | os.PathLike | File) or has_content(given):
        file = given if isinstance(given, File) else open_source(given, "sources.csv")
        found = _from_file(file, classes, questions)
        if found.sources:
            named(file.name, check_sources, found.sources, None)
        return found
    if hasattr(given, "columns"):
        return _table(frame_grid(given, "sources"), questions)
    return SourceList(given)


def _from_file(file: File, classes: Sequence[str], questions: Sequence[str]) -> SourceList:
    ending = ending_of(file.name)
    if ending in DOCUMENTS:
        from crowdtree.io.schema import SourcesFile, check

        data = parse_document(file)
        if isinstance(data, dict) and "classes" in data:  # those of another problem
            data = {name: data[name] for name in FIELDS if name in data}
        return read_entries(check(SourcesFile, data, file.name), classes, questions, file.name)
    if ending == ".xlsx":
        sheets = workbook_grids(file)
        return _table(sheets.sources or sheets.main, questions)
    with delimited_grid(file) as grid:
        return _table(grid, questions)


# ---------------------------------------------------------------- documents


def read_entries(
    found: Any, classes: Sequence[str], questions: Sequence[str], file: str
) -> SourceList:
    """Sources of a document that has passed its schema."""
    if found.sources is None:
        return SourceList(dependence=found.source_dependence)
    entries: list[dict[str, Any]] = [
        {"name": entry} if isinstance(entry, str) else entry.model_dump(exclude_unset=True)
        for entry in found.sources
    ]
    made = []
    for place, fields in enumerate(entries):
        where = f"{file}: {_place(place, fields['name'])}"
        fields.pop("notes", None)
        for name in ("worker_error", "unsure"):
            if isinstance(fields.get(name), list | dict):
                there = f"{where}.{name}"
                fields[name] = _by_question(fields[name], questions, classes, there)
        if isinstance(fields.get("table"), list):  # [answer][question][class], null where unknown
            fields["table"] = named(f"{where}.table", _cube, fields["table"])
        try:
            made.append(Source(**fields))
        except SourceError as error:
            raise CrowdtreeError(f"{where}.{error.what}") from None
        except CrowdtreeError as error:
            raise CrowdtreeError(f"{where}: {error}") from None
    notes = (*_unpriced(entries), *_alone(made, found.source_dependence))
    return SourceList(made, found.source_dependence, notes)


def _cube(table: list[Any]) -> Any:
    try:
        return np.array(table, dtype=np.float64)
    except (TypeError, ValueError):
        raise CrowdtreeError(
            "expected P(answer | class) by the names of questions, or numbers as "
            "[answer][question][class]"
        ) from None


def _place(place: int, name: str) -> str:
    return f"sources[{place}] ({one_line(name)})"


def make_problem(*parts: Any, sources: Sequence[Source] | None, **options: Any) -> Problem:
    """Make the problem of a document; an error in a source has its place in the list."""
    try:
        return Problem(*parts, sources=sources, **options)
    except SourceError as error:
        place = [source.name for source in sources or ()].index(error.name)
        raise CrowdtreeError(f"{_place(place, error.name)}.{error.what}") from None


def _unpriced(entries: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Say which sources have no price though others have one."""
    without = [entry["name"] for entry in entries if "price" not in entry]
    if not without or len(without) == len(entries):
        return ()
    verb = "has no price and costs" if len(without) == 1 else "have no price and cost"
    what = "source" if len(without) == 1 else "sources"
    return (f"{what} {listing(map(one_line, without))} {verb} 1, beside others with prices",)


def _alone(sources: Sequence[Source], together: float | None) -> tuple[str, ...]:
    """Say that errors in common count for nothing where one source answers."""
    if not together or sum(not source.refers for source in sources) != 1:
        return ()
    return (
        f"{TOGETHER} does not count, because only one source answers questions; dependence says "
        "how far its own answers err together",
    )


def _by_question(
    cells: list[Any] | dict[Any, Any], questions: Sequence[str], classes: Sequence[str], where: str
) -> list[Any]:
    """Numbers in the order of the questions: one each, or one per cell."""
    if isinstance(cells, dict):
        unknown = [name for name in cells if name not in questions]
        absent = [name for name in questions if name not in cells]
        if unknown or absent:
            what = "is not a question of this problem" if unknown else "is missing; add it"
            raise CrowdtreeError(f"{where}: {one_line((unknown or absent)[0])} {what}")
        cells = [cells[name] for name in questions]
    if len(cells) != len(questions):
        raise CrowdtreeError(
            f"{where}: expected {len(questions)} entries, one per question, got {len(cells)}"
        )
    places = {name: place for place, name in enumerate(classes)}
    rows: list[Any] = []
    for name, cell in zip(questions, cells, strict=True):
        there = f"{where}: question {one_line(name)}"
        if isinstance(cell, list | dict):
            rows.append(numbers_by_class(cell, places, there, None, [True] * len(places)))
        else:
            rows.append(_share(cell, there))
    if any(isinstance(row, list) for row in rows):
        return [row if isinstance(row, list) else [row] * len(places) for row in rows]
    return rows


def _share(cell: Any, where: str) -> float:
    number = cell_number(cell) if isinstance(cell, str) else cell
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 1:
        got = "nothing" if cell is None else one_line(cell)
        raise CrowdtreeError(f"{where}: expected a number from 0 to 1, got {got}")
    return number


def source_fields(problem: Problem) -> dict[str, Any]:
    """Fields of a document; none where people alone answer.

    >>> source_fields(Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1))
    {}
    """
    found: dict[str, Any] = {}
    if has_sources(problem):
        found["sources"] = [
            {"name": source.name, "kind": source.kind, "price": source.price} | source.to_dict()
            for source in problem.all_sources
        ]
    if problem.source_dependence:
        found[TOGETHER] = problem.source_dependence
    return found


def loss_of_file(problem: Problem) -> Loss | None:
    """Loss that a file holds: none where it follows from the price of an expert."""
    if problem.loss is None or problem.expert is None or not has_sources(problem):
        return problem.loss
    implied = referring(None, problem.expert.price, problem.n_classes)
    return None if problem.loss == implied else problem.loss


def has_sources(problem: Problem) -> bool:
    """Whether a problem names its sources: more than people, and the expert of the losses."""
    refer = None if problem.loss is None else problem.loss.refer
    return (problem.sources, problem.expert) != check_sources(None, refer)


# ---------------------------------------------------------------- tables


def _table(grid: Grid, questions: Sequence[str]) -> SourceList:
    rows = ((number, [c.strip() for c in cells]) for number, cells in grid.rows)
    filled = ((number, cells) for number, cells in rows if any(cells))
    number, header = next(((n, c) for n, c in filled if not c[0].startswith("#")), (0, [""]))
    if header[0].casefold() not in HEADER:
        grid.refuse(
            number or None,
            "expected source,kind,price,error,... as the first row of a table of sources, got "
            f"{one_line(header[0]) if any(header) else 'nothing'}",
        )
    columns = _columns(grid, number, header, questions)
    entries, numbers, together = [], [], None
    for number, cells in filled:
        if cells[0].startswith("#"):
            continue
        if cells[0].casefold() == TOGETHER:
            if together is not None:
                grid.refuse(number, f"{TOGETHER} occurs twice; keep one row of it")
            together = _together(grid, number, next(filter(None, cells[1:]), ""))
            continue
        entries.append(_row(grid, number, cells, columns))
        numbers.append(number)
    made = [_source(grid, n, entry) for n, entry in zip(numbers, entries, strict=True)]
    notes = (*_unpriced(entries), *_alone(made, together))
    return SourceList(made or None, together, notes)


def _columns(
    grid: Grid, number: int, header: Sequence[str], questions: Sequence[str]
) -> list[str | int | None]:
    """What each column holds: a field, the error for a question by its place, or comments."""
    places = {name: place for place, name in enumerate(questions)}
    found: list[str | int | None] = ["name"]
    for place, name in enumerate(header[1:], start=1):
        word = name.casefold()
        if word in COLUMNS and word not in found:
            found.append(word)
        elif name in places and places[name] not in found:
            found.append(places[name])
        elif not name or word in COMMENTS:
            found.append(None)
        else:
            what = "occurs twice" if word in COLUMNS or name in places else "is not a question"
            grid.refuse(
                number,
                f"{grid.place(place)}: {one_line(name)} {what}; expected "
                f"{listing(COLUMNS, len(COLUMNS))} or the name of a question",
            )
    return [*found, len(questions)]


def _row(
    grid: Grid, number: int, cells: Sequence[str], columns: Sequence[str | int | None]
) -> dict[str, Any]:
    """Arguments of one source."""
    *roles, n_questions = columns
    name = cells[0]
    if not name:
        grid.refuse(number, "the source has no name; add one")
    found: dict[str, Any] = {"name": name}
    errors: dict[int, float] = {}
    for place, (role, cell) in enumerate(zip_longest(roles[1:], cells[1:]), start=1):
        if not cell:
            continue
        if place >= len(roles):
            grid.refuse(number, f"{one_line(cell)} has no name in the header; name its column")
        if isinstance(role, int):
            errors[role] = _number(grid, number, f"error of {one_line(name)}", cell, top=1.0)
        elif role is not None:
            found[role] = _READERS[role](grid, number, f"{role} of {one_line(name)}", cell)
    error = found.pop("error", None)
    if not errors:
        return found | ({} if error is None else {"worker_error": error})
    assert isinstance(n_questions, int)
    row = [errors.get(q, error) for q in range(n_questions)]
    if None in row:
        grid.refuse(
            number,
            f"{one_line(name)} has errors for some questions only; fill in the others, or the "
            "column error for them",
        )
    return found | {"worker_error": row}


def _source(grid: Grid, number: int, fields: dict[str, Any]) -> Source:
    try:
        return Source(**fields)
    except CrowdtreeError as error:
        grid.refuse(number, str(error))


def _number(grid: Grid, number: int, what: str, cell: str, top: float = np.inf) -> float:
    value = cell_number(cell, decimal_comma=grid.decimal_comma)
    if not value <= top or (top == 1 and value < 0):
        expected = "a number from 0 to 1" if top == 1 else "a number"
        _refuse(grid, number, what, expected, cell)
    return value


def _together(grid: Grid, number: int, cell: str) -> float:
    value = _number(grid, number, TOGETHER, cell)
    if not 0 <= value < 1:
        _refuse(grid, number, TOGETHER, "a number from 0 to below 1", cell)
    return value


def _error(grid: Grid, number: int, what: str, cell: str) -> float:
    return _number(grid, number, what, cell, top=1.0)


def _whole(grid: Grid, number: int, what: str, cell: str) -> int:
    value = cell_number(cell)
    if not value.is_integer():
        _refuse(grid, number, what, "a whole number", cell)
    return int(value)


def _flag(grid: Grid, number: int, what: str, cell: str) -> bool:
    try:
        code = cell_code(cell)
    except KeyError:
        code = -1
    if code < 0:
        _refuse(grid, number, what, "true or false", cell)
    return bool(code)


def _word(grid: Grid, number: int, what: str, cell: str) -> str:
    word = cell.casefold()
    if word not in ("people", "expert", "model"):
        _refuse(grid, number, what, "people, expert or model", cell)
    return word


def _refuse(grid: Grid, number: int, what: str, expected: str, cell: str) -> NoReturn:
    grid.refuse(number, f"{what}: expected {expected}, got {one_line(cell) if cell else 'nothing'}")


_READERS: dict[str, Callable[[Grid, int, str, str], Any]] = {
    "kind": _word,
    "price": _number,
    "error": _error,
    "error_factor": _number,
    "dependence": _number,
    "repeatable": _flag,
    "most_per_item": _whole,
    "refers": _flag,
}


def source_rows(problem: Problem) -> Iterator[list[Any]]:
    """Rows of the table of sources, header first: only the columns that are needed.

    >>> sources = [Source("people"), Source("gpt-x", "model", price=0.02, worker_error=0.2)]
    >>> problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1, sources=sources)
    >>> list(source_rows(problem))[2]
    ['gpt-x', 'model', 0.02, 0.2]
    """
    entries = [_entry(source.to_dict()) for source in problem.all_sources]
    by_question = any(isinstance(entry.get("error"), list) for entry in entries)
    questions = problem.questions if by_question else ()
    taken = any(name.casefold() in COLUMNS for name in questions)
    cells = [{k: v for k, v in entry.items() if not isinstance(v, list)} for entry in entries]
    used = [name for name in COLUMNS if taken or any(name in row for row in cells)]
    columns = ["kind", "price", *(name for name in used if name not in ("kind", "price"))]
    yield ["source", *columns, *questions]
    for entry, row in zip(entries, cells, strict=True):
        split = entry["error"] if entry.keys() - row else [""] * len(questions)
        yield [row["name"], *(_cell(row.get(name, "")) for name in columns), *split]
    if problem.source_dependence:
        blank = [""] * (len(columns) + len(questions) - 1)
        yield [TOGETHER, problem.source_dependence, *blank]


def _entry(fields: dict[str, Any]) -> dict[str, Any]:
    """Cells of a source by column; raise where a table cannot hold it."""
    name = fields["name"]
    fields = {"kind": "people", "price": 1.0} | fields
    fields["error"] = fields.pop("worker_error", "")
    cells = isinstance(fields["error"], list) and any(isinstance(e, list) for e in fields["error"])
    beyond = [*(["errors per cell"] if cells else []), *(fields.keys() - {"name", *COLUMNS})]
    if beyond or name.startswith("#") or name.casefold() == TOGETHER:
        raise CrowdtreeError(
            f"sources: a table cannot hold {listing(beyond) or 'the name'} of {one_line(name)}; "
            "save the problem as .yaml or .json"
        )
    return {key: value for key, value in fields.items() if value != ""}


def _cell(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
