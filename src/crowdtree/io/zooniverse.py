"""Classification exports of Zooniverse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from crowdtree.core.columns import Columns
from crowdtree.core.errors import CrowdtreeError, listing
from crowdtree.core.reading import Source, open_source
from crowdtree.io.answer_rows import (
    UNNAMED,
    Names,
    Rows,
    check_names,
    columns_of_answers,
    open_table,
    warn_several,
)

ZOONIVERSE = frozenset(("annotations", "subject_ids"))
"""Columns of a Zooniverse export that are read."""


def read_zooniverse(path: Any, columns: Names = None) -> Columns:
    """Read a Zooniverse classification export: one CSV row per classification, answers as JSON.

    Single-choice tasks become one answer each, those inside combo tasks too; the question is the
    task's label, the item the subject, the worker the user name (or the hashed address of who was
    not logged in). Tasks where several choices were ticked are left out, with a warning; drawings,
    texts and other tasks silently.
    """
    rows: Rows = []
    several = 0
    file = open_source(path, "answers.csv")
    name = file.name
    check_names(columns, ("label",), name)
    for number, row in _zoo_rows(file):
        worker = row.get("user_name") or row.get("user_ip") or "unknown"
        for question, value in _zoo_answers(row["annotations"], f"{name}, line {number}"):
            if isinstance(value, str | int | float | bool):
                rows.append((row["subject_ids"], question, worker, str(value)))
            elif isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
                rows.append((row["subject_ids"], question, worker, value[0]))
            elif isinstance(value, list) and value:
                several += all(isinstance(choice, str) for choice in value)
    warn_several(several, name)
    table = columns_of_answers(rows, name, "single-choice answers", columns)
    return replace(table, task_column="subject_ids")


def _zoo_rows(file: Source) -> Iterator[tuple[int, dict[str, str]]]:
    """Lines of the export by the names of their columns; missing cells are blank."""
    with open_table(file) as (header, rows):
        if not set(header) >= ZOONIVERSE:
            raise CrowdtreeError(
                f"{file.name}: has no column {listing(sorted(ZOONIVERSE))}; is it a Zooniverse "
                "classification export?"
            )
        for number, cells in rows:
            if cells:
                blank = [""] * (len(header) - len(cells))
                yield number, dict(zip(header, [*cells, *blank], strict=False))


def _zoo_answers(text: str | None, where: str) -> Iterator[tuple[str, Any]]:
    """Question and value of every task of a classification."""
    try:
        notes = json.loads(text or "[]")
    except json.JSONDecodeError as problem:
        raise CrowdtreeError(f"{where}: annotations are not JSON ({problem.msg})") from None
    waiting = list(notes) if isinstance(notes, list) else [notes]
    for note in waiting:
        if not isinstance(note, dict):
            raise CrowdtreeError(
                f"{where}: expected a list of tasks as annotations; is it a Zooniverse "
                "classification export?"
            )
        value = note.get("value")
        if (
            isinstance(value, list)
            and value
            and all(isinstance(part, dict) and "task" in part for part in value)
        ):
            waiting += value  # a combo task holds tasks
            continue
        yield str(note.get("task_label") or note.get("task") or UNNAMED), value
