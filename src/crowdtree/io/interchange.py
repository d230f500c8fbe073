"""Answers of other tools: crowd-kit, Label Studio, Zooniverse, JSON, wide tables.

Every reader gives :class:`Columns` of ``task, question, worker, label`` (no ``question`` where the
one question has no name).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from crowdtree.core.columns import Column, Columns, is_parquet, join, read_columns, read_rows
from crowdtree.core.errors import CrowdtreeError, listing
from crowdtree.core.reading import Source, open_source
from crowdtree.io.answer_rows import (
    NEEDED,
    OPTIONAL,
    Names,
    csv_text,
    is_workbook,
    json_objects,
    open_table,
    read_objects,
    roles_there,
    write_text,
)
from crowdtree.io.label_studio import STUDIO_MIN, read_label_studio, read_studio_min
from crowdtree.io.wide import read_wide
from crowdtree.io.zooniverse import ZOONIVERSE, read_zooniverse


def load_answers(
    source: Any,
    form: str | None = None,
    *,
    columns: Names = None,
    workers: Sequence[str] = (),
    extra: tuple[str, ...] = (),
) -> Columns:
    """Read answers in any format as columns of task, question, worker and label.

    `source` is a file, or a list of files that are read as one. `form` is ``"crowdkit"`` (plain
    columns), ``"label-studio"``, ``"zooniverse"``, ``"json"`` or ``"wide"``, or recognised.
    `columns` says what columns are called, such as ``{"task": "ticket"}``; of an export of Label
    Studio or Zooniverse, ``task`` may be a field of the data, and ``label`` the one question to
    read. `workers` are the columns of a wide table that hold the answers of one worker each; ``*``
    stands for any letters. `extra` are more columns of a plain table, such as ``("source",
    "version")``.

    >>> load_answers(b"task,worker,label\\n1,ann,cat\\n").rows()
    [('1', 'ann', 'cat')]
    >>> wide = b"photo,ann,ben\\n" + b"a,cat,cat\\nb,dog,cat\\nc,dog,dog\\n" * 2
    >>> load_answers(wide).notes
    ("reading task from 'photo'; workers are the columns ann, ben",)
    """
    if isinstance(workers, str):
        raise CrowdtreeError(f"workers: expected a list of columns, got {workers!r}")
    several = isinstance(source, list | tuple)
    files = [open_source(one, "answers.csv") for one in (source if several else [source])]
    parts = []
    for file in files:
        chosen = form or guess_format(file) or ("wide" if workers else "crowdkit")
        if chosen not in READERS:
            raise CrowdtreeError(f"form: expected one of {listing(READERS)}, got {form!r}")
        if workers and chosen != "wide":
            raise CrowdtreeError(f"{file.name}: workers are for wide tables; this is {chosen}")
        if chosen == "wide":
            parts.append(read_wide(file, columns, workers))
        elif chosen == "crowdkit":
            parts.append(_read_plain(file, columns, form is None, len(files), extra))
        else:
            parts.append(READERS[chosen](file, columns))
    names = [file.name for file in files]
    return replace(join(parts, names), name=listing(names, 3))


def guess_format(path: Any) -> str | None:
    """Recognise an export of Label Studio or Zooniverse, and JSON; None for a table.

    >>> guess_format(b'[{"id": 1, "annotations": []}]'), guess_format(b'{"task": 1}')
    ('label-studio', 'json')
    """
    file = open_source(path, "answers")
    if is_parquet(file) or is_workbook(file):
        return None
    file.check(sys.maxsize)
    text = file.head().decode("utf-8-sig", errors="replace").lstrip()
    if text.startswith(("[", "{")):
        marks = ("annotations", "completions", STUDIO_MIN[1])
        return "label-studio" if any(f'"{mark}"' in text for mark in marks) else "json"
    names = {name.strip(' "\r') for name in text.split("\n", 1)[0].split(",")}
    return "zooniverse" if names >= ZOONIVERSE else None


def read_crowdkit(path: Any, columns: Names = None) -> Columns:
    """Read ``task, worker, label`` (and ``question``) from CSV, Parquet or a workbook."""
    return _read_plain(open_source(path, "answers.csv"), columns)


def _read_plain(
    file: Source,
    columns: Names,
    guess: bool = False,
    one_of: int = 1,
    extra: tuple[str, ...] = (),
) -> Columns:
    """Read a table with one answer per row.

    Where it has no such columns and `guess`, it may be wide; one of several files without a column
    of workers holds the answers of one worker.
    """
    optional = tuple(dict.fromkeys((*OPTIONAL, *extra)))
    if is_parquet(file):
        return read_columns(file, NEEDED, optional, "answers", columns)
    with open_table(file) as (header, rows):
        header = [name.strip() for name in header]
        if guess or one_of > 1:
            there = roles_there(header, columns, file.name)
            if guess and "label" not in there and len(header) > len(there) + 1:
                return read_wide(file, columns, guess=True)
            if one_of > 1 and {"task", "label"} <= set(there) and "worker" not in there:
                return _of_one_worker(file, header, rows, columns)
        if is_workbook(file):
            return read_rows(header, rows, NEEDED, optional, columns, file.name)
    return read_columns(file, NEEDED, optional, "answers", columns)


def _of_one_worker(
    file: Source, header: list[str], rows: Iterable[tuple[int, list[str]]], columns: Names
) -> Columns:
    table = read_rows(header, rows, ("task", "label"), OPTIONAL, columns, file.name)
    name = Path(file.name).name.split(".")[0]
    who = Column(np.zeros(table.n_rows, np.int32), [name])
    notes = (*table.notes, f"all answers are by {name!r}, as the file is called")
    return replace(table, column={**table.column, "worker": who}, notes=notes)


def read_json(path: Any, columns: Names = None) -> Columns:
    """Read a JSON list of objects, or JSON lines: one answer each, with the columns of a table.

    A value that is a list of one is that one; answers that are longer lists are left out, with a
    warning.
    """
    file = open_source(path, "answers.json")
    objects = json_objects(file)
    header = list(dict.fromkeys(str(name) for row in objects for name in row))
    if set(header) >= set(STUDIO_MIN):
        return read_studio_min(file, objects, header, columns)
    return read_objects(file, objects, header, columns)


def write_crowdkit(answers: Any, path: Any) -> None:
    """Write ``task, worker, label`` as CSV, which crowd-kit reads."""
    table = read_columns(answers, NEEDED, OPTIONAL)
    write_text(path, csv_text([list(table), *map(list, table.rows())]))


READERS: Mapping[str, Callable[..., Columns]] = MappingProxyType(
    {
        "crowdkit": read_crowdkit,
        "label-studio": read_label_studio,
        "zooniverse": read_zooniverse,
        "json": read_json,
        "wide": read_wide,
    }
)
