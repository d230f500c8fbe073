"""Opinions in item files: a column per class, or a JSON cell per model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from crowdtree.core.arrays import FloatArray
from crowdtree.core.checking import check_call
from crowdtree.core.errors import CrowdtreeError, listing
from crowdtree.core.reading import open_source
from crowdtree.io.cells import cell_number
from crowdtree.io.items import item_format, numbered_items
from crowdtree.learning.opinions.rows import read_sources

__all__ = ["OpinionTable", "load_opinions"]

Kind = Literal["csv", "xlsx", "jsonl"]
CELL = "opinion"
"""Column of the JSON cells; those of further models are called ``opinion_NAME``."""


class OpinionTable(NamedTuple):
    """Opinions about the items of a file, and notes on how it was read where it was not plain.

    `tasks` are the names of the items; `probabilities` by source have a row per item and a column
    per class, NaN where there is no opinion.
    """

    tasks: tuple[str, ...]
    probabilities: Mapping[str, FloatArray]
    notes: tuple[str, ...]

    def of(self, tasks: Sequence[str]) -> dict[str, FloatArray]:
        """Opinions about some items, in their order; NaN about those that the file lacks."""
        place = {task: row for row, task in enumerate(self.tasks)}
        rows = np.array([place.get(str(task), -1) for task in tasks], dtype=np.int64)
        return {
            name: np.where((rows >= 0)[:, None], table[rows], np.nan)
            for name, table in self.probabilities.items()
        }


def load_opinions(source: Any, classes: Sequence[str], kind: Kind | None = None) -> OpinionTable:
    r"""Read opinions from an item file: its path, its bytes, or an open file.

    The file has a column per class with its probability, or a column ``opinion`` with a JSON
    object from class to probability in each cell. Further models have columns ``opinion_NAME``. A
    class that a JSON object does not name shares what is left to 1 with the others it does not
    name. Blank cells are no opinion. Rows that do not sum to 1 are scaled, and a note says so.

    Parameters
    ----------
    source
        The file.
    classes
        Classes of the problem, in the order of the columns that are returned.
    kind
        ``"csv"``, ``"xlsx"`` or ``"jsonl"``; by default from the name of the file.

    Examples
    --------
    >>> table = load_opinions(b"task,cat,dog\n1,0.9,0.1\n2,,\n", ["cat", "dog"], "csv")
    >>> table.probabilities["opinion"].tolist()
    [[0.9, 0.1], [nan, nan]]
    """
    check_call(load_opinions, {"classes": classes, "kind": kind})
    name = open_source(source, "items").name
    tasks, rows = [], []
    for line, item in numbered_items(source, kind or item_format(name), classes):
        tasks.append(item["task"])
        rows.append((f"items: row {line}", json.loads(item["payload"])))
    if not rows:
        raise CrowdtreeError("items: expected items with opinions, got none")
    twice = next((task for task, n in _counts(tasks).items() if n > 1), None)
    if twice is not None:
        raise CrowdtreeError(f"items: {twice!r} occurs twice; keep one row of it")
    columns = {column for _, cells in rows for column in cells}
    found = _cells(rows, classes, columns) if _json_columns(columns) else _table(rows, classes)
    for name, table in found.items():
        empty = np.flatnonzero(np.nansum(table, axis=1) + np.isnan(table).all(axis=1) == 0)
        if len(empty):
            where = rows[empty[0]][0]
            raise CrowdtreeError(
                f"{where}: {name}: every class has 0; leave it blank where there is no opinion"
            )
    stated = read_sources(found, classes)
    notes = tuple(note for source_ in stated.values() for note in source_.notes)
    return OpinionTable(tuple(tasks), {name: s.rows for name, s in stated.items()}, notes)


def _counts(tasks: Sequence[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for task in tasks:
        counts[task] = counts.get(task, 0) + 1
    return counts


def _json_columns(columns: set[str]) -> list[str]:
    return sorted(c for c in columns if c == CELL or c.startswith(f"{CELL}_"))


def _table(
    rows: Sequence[tuple[str, Mapping[str, Any]]], classes: Sequence[str]
) -> dict[str, FloatArray]:
    """Columns named like classes."""
    there = {name for _, cells in rows for name in cells}
    absent = [name for name in classes if name not in there]
    if len(absent) == len(classes):
        raise CrowdtreeError(
            f"items: expected a column per class ({listing(classes)}), or a column {CELL!r} with a "
            "JSON object from class to probability"
        )
    if absent:
        raise CrowdtreeError(
            f"items: expected a column per class, but {listing(map(repr, absent))} has none; write "
            "0 where a class is ruled out"
        )
    table = np.full((len(rows), len(classes)), np.nan)
    for place, (where, cells) in enumerate(rows):
        given = [name for name in classes if name in cells]
        if given and len(given) < len(classes):
            blank = next(name for name in classes if name not in cells)
            raise CrowdtreeError(
                f"{where}: {blank!r} is blank beside other probabilities; fill it in, or leave the "
                "whole row blank"
            )
        if given:
            table[place] = [_number(cells[name], f"{where}: {name!r}") for name in classes]
    return {CELL: table}


def _cells(
    rows: Sequence[tuple[str, Mapping[str, Any]]], classes: Sequence[str], columns: set[str]
) -> dict[str, FloatArray]:
    """Columns with a JSON object in each cell."""
    found = {}
    for column in _json_columns(columns):
        table = np.full((len(rows), len(classes)), np.nan)
        for place, (where, cells) in enumerate(rows):
            if column in cells:
                table[place] = _from_cell(cells[column], classes, f"{where}: {column}")
        found[column.removeprefix(f"{CELL}_")] = table
    return found


def _from_cell(cell: Any, classes: Sequence[str], where: str) -> list[float]:
    if isinstance(cell, str):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            raise CrowdtreeError(
                f'{where}: expected a JSON object such as {{"{classes[0]}": 0.9}}'
            ) from None
    if not isinstance(cell, Mapping) or not cell:
        raise CrowdtreeError(f'{where}: expected a JSON object such as {{"{classes[0]}": 0.9}}')
    unknown = [str(name) for name in cell if name not in classes]
    if unknown:
        raise CrowdtreeError(
            f"{where}: {unknown[0]!r} is not a class; expected some of {listing(classes)}"
        )
    given = {name: _number(value, f"{where}: {name!r}") for name, value in cell.items()}
    others = len(classes) - len(given)
    rest = max(0.0, 1.0 - sum(given.values())) / others if others else 0.0
    return [given.get(name, rest) for name in classes]


def _number(value: Any, where: str) -> float:
    """Probability of a cell: a number of 0 or more."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    number = float(value) if plain else cell_number(str(value))
    if not 0 <= number < np.inf:
        raise CrowdtreeError(f"{where}: expected a probability, got {str(value)[:40]!r}")
    return number
