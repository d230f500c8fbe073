"""Tables of losses: what each label costs, given the true class (docs/losses.md)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from crowdtree.core.errors import CrowdtreeError, named, one_line
from crowdtree.core.loss import make_loss
from crowdtree.core.problem import Problem
from crowdtree.core.reading import Source, has_content, open_source
from crowdtree.io.formats import DOCUMENTS, ending_of
from crowdtree.io.grids import delimited_grid, frame_grid, workbook_grids
from crowdtree.io.layouts import Grid
from crowdtree.io.yaml_json import parse_document

EXPERT = "refer"


def read_loss(source: Any, classes: Sequence[str]) -> Any:
    """Read a loss from a file, a frame or a grid; anything else is returned as it is.

    A table has the header ``truth,<label>,<label>,...`` and one row per true class. A blank cell,
    row or column is 1 (0 for the right label). A row ``refer`` has the price of an expert in its
    first cell. A YAML or JSON file has the fields of :func:`crowdtree.core.loss.make_loss`.

    >>> import polars as pl
    >>> read_loss(pl.DataFrame({"truth": ["a"], "b": [9], "c": [None]}), ["a", "b", "c"])
    {'matrix': [[0.0, 9.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]], 'refer': None}
    """
    if isinstance(source, Grid):
        return _matrix(source, classes)
    if isinstance(source, str | os.PathLike | Source) or has_content(source):
        opened = source if isinstance(source, Source) else open_source(source, "loss")
        return named(opened.name, make_loss, _from_file(opened, classes), classes)
    if hasattr(source, "columns"):
        return _matrix(frame_grid(source, "loss"), classes)
    return source


def loss_classes(source: Any) -> list[str] | None:
    """Names of the classes in a table of losses; None for a file that is no such table.

    >>> loss_classes(b"truth,cat\\ndog,9\\nrefer,3\\n")
    ['cat', 'dog']
    """
    opened = open_source(source, "loss.csv")
    ending = ending_of(opened.name)
    if ending in DOCUMENTS:
        data = parse_document(opened)
        rows = data.get("classes") if isinstance(data, dict) else None
        if rows is not None or not isinstance(data, dict):
            return None
        return _named_classes(data.get("loss", data))
    if ending == ".xlsx":
        sheets = workbook_grids(opened)
        return _table_classes(sheets.loss or sheets.main)
    with delimited_grid(opened) as grid:
        return _table_classes(grid)


def _table_classes(grid: Grid) -> list[str] | None:
    rows = [cells for _, cells in grid.rows if any(map(str.strip, cells))]
    if not rows or rows[0][0].strip().casefold() not in ("truth", ""):
        return None
    names = [*rows[0][1:], *(row[0] for row in rows[1:])]
    return list(dict.fromkeys(n for n in map(str.strip, names) if n and n != EXPERT))


def _named_classes(fields: Any) -> list[str]:
    """Classes that the fields of a loss name."""
    found: dict[str, None] = {}

    def add(part: Any) -> None:
        if isinstance(part, str):
            found[part] = None
        elif isinstance(part, list | tuple):
            for one in part:
                add(one)

    data = fields if isinstance(fields, dict) else {}
    groups = data.get("groups") or []
    names = set(groups) if isinstance(groups, dict) else set()
    add(list(groups.values()) if isinstance(groups, dict) else groups)
    pairs = data.get("pairs") or {}
    for truth, row in pairs.items() if isinstance(pairs, dict) else ():
        add([truth, *(row if isinstance(row, dict) else ())])
    add(data.get("never") or [])
    return [name for name in found if name not in names]


def _from_file(source: Source, classes: Sequence[str]) -> Any:
    ending = ending_of(source.name)
    if ending in DOCUMENTS:
        data = parse_document(source)
        return data["loss"] if isinstance(data, dict) and "loss" in data else data
    if ending == ".xlsx":
        sheets = workbook_grids(source)
        return _matrix(sheets.loss or sheets.main, classes)
    with delimited_grid(source) as grid:
        return _matrix(grid, classes)


def _matrix(grid: Grid, classes: Sequence[str]) -> dict[str, Any]:
    size = len(classes)
    matrix = [[float(row != column) for column in range(size)] for row in range(size)]
    places = {name: place for place, name in enumerate(classes)}
    rows = ((number, cells) for number, cells in grid.rows if any(map(str.strip, cells)))
    number, header = next(rows, (0, []))
    if len(header) < 2:
        grid.refuse(
            None, "expected truth,<label>,<label>,... as the first row of a table of losses"
        )
    labels = [_place(grid, number, name, places) if name.strip() else None for name in header[1:]]
    refer: float | None = None
    seen: set[int] = set()
    for number, (name, *cells) in rows:
        if name.strip() == EXPERT and EXPERT not in places:
            refer = _number(grid, number, next((cell for cell in cells if cell.strip()), ""))
            continue
        truth = _place(grid, number, name, places)
        if truth in seen:
            grid.refuse(number, f"class {one_line(name.strip())} has two rows; remove one")
        seen.add(truth)
        for label, cell in zip_longest(labels, cells, fillvalue=None):
            if cell is None or not cell.strip():
                continue
            if label is None:
                grid.refuse(number, f"{one_line(cell.strip())} has no label in the header; name it")
            else:
                matrix[truth][label] = _number(grid, number, cell)
    return {"matrix": matrix, "refer": refer}


def _place(grid: Grid, number: int, name: str, places: dict[str, int]) -> int:
    place = places.get(name.strip())
    if place is None:
        grid.refuse(number, f"{one_line(name.strip())} is not a class of the problem")
    return place


def _number(grid: Grid, number: int, cell: str) -> float:
    text = cell.strip().replace(",", ".") if grid.decimal_comma else cell.strip()
    try:
        return float(text)
    except ValueError:
        grid.refuse(number, f"expected a loss of 0 or more, got {one_line(cell.strip())}")


def loss_rows(problem: Problem) -> Iterator[list[Any]]:
    """Rows of the table of losses, header first."""
    assert problem.loss is not None
    yield ["truth", *problem.classes]
    for name, row in zip(problem.classes, problem.loss.matrix.tolist(), strict=True):
        yield [name, *row]
    if problem.loss.refer is not None:
        if EXPERT in problem.classes:
            raise CrowdtreeError(
                f"loss: a table cannot have a class {EXPERT!r} and an expert; save it as .yaml"
            )
        yield [EXPERT, problem.loss.refer, *[""] * (problem.n_classes - 1)]
