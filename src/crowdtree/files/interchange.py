"""Answers of other tools, in and out: crowd-kit, Label Studio, Zooniverse, JSON, wide tables.

Every reader gives :class:`Columns` of ``task, question, worker, label`` (no ``question`` where the
one question has no name); every writer takes them, and replaces the file in one step.
"""

from __future__ import annotations

import csv
import io
import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from crowdtree.errors import CrowdtreeError, CrowdtreeWarning, listing, one_line
from crowdtree.files.atomic import write_atomically
from crowdtree.files.grids import read_sheets
from crowdtree.learning.answers import MIN_ROWS_TO_JUDGE, SKIPS, YES_NO, squeezed
from crowdtree.learning.frames import (
    Column,
    Columns,
    columns_of_rows,
    find_roles,
    is_parquet,
    join,
    read_columns,
    read_rows,
)
from crowdtree.reading import MB, Source, cell_text, open_source
from crowdtree.text import plural

__all__ = [
    "READERS",
    "WRITERS",
    "guess_format",
    "load_answers",
    "read_crowdkit",
    "read_json",
    "read_label_studio",
    "read_wide",
    "read_zooniverse",
    "write_crowdkit",
    "write_label_studio",
    "write_wide",
    "write_zooniverse",
]

Row = tuple[str, str, str, str]  # task, question, worker, label
Rows = list[Row]
Names = Mapping[str, str] | None
"""What columns are called, by task, worker, label and question."""
NEEDED, OPTIONAL = ("task", "worker", "label"), ("question",)
MOST_BYTES = 4_000 * MB
MOST_FIELD = 100 * MB
"""Characters of a field: drawings and transcriptions make long ones."""
ZOONIVERSE = frozenset(("annotations", "subject_ids"))
"""Columns of a Zooniverse export that are read."""
STUDIO_VALUES = {"choices": "choices", "taxonomy": "taxonomy", "rating": "rating",
                 "pairwise": "selected"}  # fmt: skip
"""Controls of Label Studio that give one label, and where their value is."""
STUDIO_MIN = ("annotator", "annotation_id")
"""Fields by which JSON-MIN of Label Studio is recognised; labels come before the first."""
TRUTHS = frozenset(("gold", "truth", "label", "groundtruth", "correct", "expert"))
"""Columns of wide tables that are no workers."""
UNNAMED = "label"
"""Written in place of a question without a name."""
MIN_SHARED = 0.5
"""Least share of a guessed worker's answers that some other worker gives, too."""
MIN_ROWS_TO_GUESS = 5


# ---------------------------------------------------------------- any file


def load_answers(
    source: Any,
    form: str | None = None,
    *,
    columns: Names = None,
    workers: Sequence[str] = (),
) -> Columns:
    """Read answers in any format as columns of task, question, worker and label.

    Parameters
    ----------
    source
        A file: its path, its bytes or a binary stream; or a list of files, read as one.
    form
        ``"crowdkit"`` (plain columns), ``"label-studio"``, ``"zooniverse"``, ``"json"`` or
        ``"wide"``; recognised where it is not given.
    columns
        What columns are called, such as ``{"task": "ticket", "worker": "who"}``. Of an export of
        Label Studio or Zooniverse, ``task`` may be a field of the data, and ``label`` the one
        question to read.
    workers
        Columns of a wide table that hold the answers of one worker each; ``*`` stands for any
        letters.

    Returns
    -------
    Columns
        A mapping from names to lists of text, for :func:`learn` or a data frame of your choice.
        ``.notes`` says how the files were read, ``.gold`` holds classes that they mark as known.

    Examples
    --------
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
            parts.append(_read_plain(file, columns, guess=form is None, one_of=len(files)))
        else:
            parts.append(READERS[chosen](file, columns))
    return join(parts, [file.name for file in files])


def guess_format(path: Any) -> str | None:
    """Recognise an export of Label Studio or Zooniverse, and JSON; None for a table.

    >>> guess_format(b'[{"id": 1, "annotations": []}]'), guess_format(b'{"task": 1}')
    ('label-studio', 'json')
    """
    file = open_source(path, "answers")
    if is_parquet(file) or _is_workbook(file):
        return None
    file.check(sys.maxsize)
    text = file.head().decode("utf-8-sig", errors="replace").lstrip()
    if text.startswith(("[", "{")):
        marks = ("annotations", "completions", STUDIO_MIN[1])
        return "label-studio" if any(f'"{mark}"' in text for mark in marks) else "json"
    names = {name.strip(' "\r') for name in text.split("\n", 1)[0].split(",")}
    return "zooniverse" if names >= ZOONIVERSE else None


def _is_workbook(file: Source) -> bool:
    return file.name.lower().endswith(".xlsx")


@contextmanager
def _table(file: Source) -> Iterator[tuple[list[str], Iterable[tuple[int, list[str]]]]]:
    """Header and numbered rows of a workbook or of delimited text."""
    if _is_workbook(file):
        sheets = read_sheets(file, lambda rows: bool(rows))
        rows = next((iter(rows) for rows in sheets.values() if rows), iter(()))
        yield next(rows, (0, []))[1], rows
        return
    with file.rows(MOST_BYTES, MOST_FIELD, MOST_FIELD) as (_, lines):
        yield next((cells for _, cells in lines if cells), []), lines


# ---------------------------------------------------------------- plain tables


def read_crowdkit(path: Any, columns: Names = None) -> Columns:
    """Read ``task, worker, label`` (and ``question``) from CSV, Parquet or a workbook."""
    return _read_plain(open_source(path, "answers.csv"), columns)


def _read_plain(file: Source, columns: Names, guess: bool = False, one_of: int = 1) -> Columns:
    """Read a table with one answer per row.

    Where it has no such columns and `guess`, it may be wide; one of several files without a column
    of workers holds the answers of one worker.
    """
    if is_parquet(file):
        return read_columns(file, NEEDED, OPTIONAL, "answers", columns)
    with _table(file) as (header, rows):
        header = [name.strip() for name in header]
        if guess or one_of > 1:
            there = _roles_there(header, columns, file.name)
            if guess and "label" not in there and len(header) > len(there) + 1:
                return read_wide(file, columns)
            if one_of > 1 and {"task", "label"} <= set(there) and "worker" not in there:
                return _of_one_worker(file, header, rows, columns)
        if _is_workbook(file):
            return read_rows(header, rows, NEEDED, OPTIONAL, columns, file.name)
    return read_columns(file, NEEDED, OPTIONAL, "answers", columns)


def _roles_there(header: list[str], columns: Names, where: str) -> dict[str, int]:
    """Columns that a header has, of those that answers may have."""
    own = {role: name for role, name in (columns or {}).items() if "," not in name}
    return find_roles(header, (), (*NEEDED, *OPTIONAL), own, where)[0]


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
    objects = _json_objects(file)
    header = list(dict.fromkeys(str(name) for row in objects for name in row))
    if set(header) >= set(STUDIO_MIN):
        return _studio_min(file, objects, header, columns)
    return _object_rows(file, objects, header, columns)


def _object_rows(
    file: Source, objects: list[dict[str, Any]], header: list[str], columns: Names
) -> Columns:
    places = find_roles(header, NEEDED, OPTIONAL, columns, file.name)[0]
    label, several, rows = header[places["label"]], 0, []
    for number, found in enumerate(objects, start=1):
        choice = found.get(label)
        if isinstance(choice, dict) and len(choice) == 1:  # {"choices": ["cat", "dog"]}
            choice = next(iter(choice.values()))
        several += isinstance(choice, list) and len(choice) > 1
        row = {**found, label: choice}
        rows.append((number, [_single(row.get(name)) for name in header]))
    _warn_several(several, file.name)
    return read_rows(header, rows, NEEDED, OPTIONAL, columns, file.name)


def _single(value: Any) -> str:
    """Text of a value; of a list, its one entry."""
    if isinstance(value, list):
        return _single(value[0]) if len(value) == 1 else ""
    return "" if isinstance(value, dict) else cell_text(value)


def _json_objects(file: Source) -> list[dict[str, Any]]:
    text = file.read_text(MOST_BYTES)
    try:
        found = json.loads(text)
    except json.JSONDecodeError as problem:
        found = _json_lines(text, file.name)
        if found is None:
            raise CrowdtreeError(f"{file.name}: is not JSON ({problem})") from None
    found = found if isinstance(found, list) else [found]
    bad = next((n for n, row in enumerate(found, start=1) if not isinstance(row, dict)), None)
    if bad is not None:
        raise CrowdtreeError(
            f"{file.name}: entry {bad} is not an object; expected one per answer or task"
        )
    return found


def _json_lines(text: str, name: str) -> list[Any] | None:
    """Objects of JSON lines; None where the first line is no JSON."""
    found: list[Any] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError as problem:
            if not found:
                return None
            raise CrowdtreeError(f"{name}, line {number}: is not JSON ({problem.msg})") from None
    return found


# ---------------------------------------------------------------- Label Studio


def read_label_studio(path: Any, columns: Names = None) -> Columns:
    """Read a Label Studio export, JSON or JSON-MIN: every annotation that was not cancelled.

    The question is the name of the control (``from_name``) unless `columns` names the one to read
    as ``label``; the worker is ``completed_by``; the item is the ``id`` of the task, or the field
    of its data that `columns` names as ``task``. Annotations that are marked as ground truth are
    gold, not answers. A control where several choices were ticked is not a single label: it is left
    out, with a warning.
    """
    file = open_source(path, "answers.json")
    tasks, name = _json_objects(file), file.name
    header = list(dict.fromkeys(str(field) for task in tasks for field in task))
    if set(header) >= set(STUDIO_MIN):
        return _studio_min(file, tasks, header, columns)
    field = (columns or {}).get("task", "id")
    answers: Rows = []
    truths: Rows = []
    several = 0
    for place, task in enumerate(tasks, start=1):
        try:
            item = _studio_item(task, field, place, name)
            for worker, control, choices, known in _studio_choices(task):
                if len(choices) == 1:
                    row = (item, control, worker, cell_text(choices[0]))
                    (truths if known else answers).append(row)
                several += len(choices) > 1
        except (AttributeError, TypeError):
            raise CrowdtreeError(
                f"{name}: entry {place} is not in Label Studio's format; export the project as "
                "JSON or JSON-MIN"
            ) from None
    _warn_several(several, name)
    table = _of_rows(answers, name, "choices of a single label", columns)
    return _with_truths(replace(table, task_column=field), truths, columns)


def _studio_item(task: Mapping[str, Any], field: str, place: int, name: str) -> str:
    data = task.get("data") or {}
    value = data.get(field, task.get(field, place if field == "id" else None))
    if value is None or isinstance(value, list | dict):
        known = listing([*data, "id"])
        raise CrowdtreeError(
            f"{name}: entry {place} has no field {field!r} to name the item; use one of {known}"
        )
    return cell_text(value)


def _studio_choices(task: Mapping[str, Any]) -> Iterator[tuple[str, str, list[Any], bool]]:
    """Worker, control, what was ticked, and whether it is marked as ground truth."""
    for annotation in task.get("annotations") or task.get("completions") or ():
        if annotation.get("was_cancelled"):
            continue
        who = annotation.get("completed_by", "unknown")
        worker = str(who.get("email") or who.get("id")) if isinstance(who, dict) else str(who)
        for result in annotation.get("result") or ():
            field = STUDIO_VALUES.get(result.get("type"))
            if field is None:
                continue
            value = result.get("value", {}).get(field)
            choices = value if isinstance(value, list) else [] if value is None else [value]
            # a choice of a taxonomy is the path to it
            choices = [" / ".join(map(str, c)) if isinstance(c, list) else c for c in choices]
            known = bool(annotation.get("ground_truth"))
            yield worker, str(result.get("from_name", UNNAMED)), choices, known


def _with_truths(table: Columns, truths: Rows, columns: Names) -> Columns:
    """Use marks of ground truth as gold, where answers are about one question."""
    if not truths:
        return table
    if len(table.column["question"].names if "question" in table else [""]) > 1:
        note = f"{plural(len(truths), 'ground-truth mark')} not used, as questions are several"
        return replace(table, notes=(*table.notes, f"{note}; read one with --label"))
    asked = (columns or {}).get("label")
    answered = set(table.column["task"].names)
    gold = {t: x for t, q, _, x in truths if t in answered and asked in (None, q)}
    note = f"{plural(len(gold), 'ground-truth annotation')} used as gold"
    return replace(table, gold=gold or None, notes=(*table.notes, note))


def _studio_min(
    file: Source, tasks: list[dict[str, Any]], header: list[str], columns: Names
) -> Columns:
    """Read JSON-MIN: one object per annotation, whose labels come between id and annotator."""
    names = {"task": "id", "worker": STUDIO_MIN[0], **(columns or {})}
    if "label" not in names:
        first = header.index("id") if "id" in header else -1
        controls = header[first + 1 : header.index(STUDIO_MIN[0])]
        if len(controls) != 1:
            what = f"several questions ({listing(controls)})" if controls else "no labels"
            raise CrowdtreeError(f"{file.name}: has {what}; name the one to read with --label")
        names["label"] = controls[0]
    return _object_rows(file, tasks, header, names)


def _warn_several(count: int, name: str) -> None:
    if count:
        warnings.warn(
            f"{name}: {plural(count, 'answer')} with several choices left out; an answer is one "
            "label",
            CrowdtreeWarning,
            stacklevel=4,
        )


def write_crowdkit(answers: Any, path: Any) -> None:
    """Write ``task, worker, label`` as CSV, which crowd-kit reads."""
    table = read_columns(answers, NEEDED, OPTIONAL)
    _write(path, _csv_text([list(table), *map(list, table.rows())]))


def write_label_studio(answers: Any, path: Any) -> None:
    """Write answers as a Label Studio JSON export with choices."""
    tasks: dict[str, list[dict[str, Any]]] = {}
    for task, question, worker, label in _rows(answers):
        result = {
            "from_name": question,
            "to_name": "item",
            "type": "choices",
            "value": {"choices": [label]},
        }
        annotations = tasks.setdefault(task, [])
        mine = next((a for a in annotations if a["completed_by"] == worker), None)
        if mine is None:
            mine = {"completed_by": worker, "was_cancelled": False, "result": []}
            annotations.append(mine)
        mine["result"].append(result)
    made = [{"id": task, "data": {}, "annotations": notes} for task, notes in tasks.items()]
    _write(path, json.dumps(made, ensure_ascii=False, indent=1))


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
    for number, row in _zoo_rows(file):
        worker = row.get("user_name") or row.get("user_ip") or "unknown"
        for question, value in _zoo_answers(row["annotations"], f"{name}, line {number}"):
            if isinstance(value, str | int | float | bool):
                rows.append((row["subject_ids"], question, worker, str(value)))
            elif isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
                rows.append((row["subject_ids"], question, worker, value[0]))
            elif isinstance(value, list) and value:
                several += all(isinstance(choice, str) for choice in value)
    _warn_several(several, name)
    table = _of_rows(rows, name, "single-choice answers", columns)
    return replace(table, task_column="subject_ids")


def _zoo_rows(file: Source) -> Iterator[tuple[int, dict[str, str]]]:
    """Lines of the export by the names of their columns; missing cells are blank."""
    with _table(file) as (header, rows):
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


def write_zooniverse(answers: Any, path: Any) -> None:
    """Write answers in the columns of a Zooniverse classification export."""
    notes: dict[tuple[str, str], list[dict[str, str]]] = {}
    for task, question, worker, label in _rows(answers):
        note = {"task": question, "task_label": question, "value": label}
        notes.setdefault((task, worker), []).append(note)
    lines = [["classification_id", "user_name", "annotations", "subject_ids"]]
    for number, ((task, worker), made) in enumerate(notes.items(), start=1):
        lines.append([str(number), worker, json.dumps(made, ensure_ascii=False), task])
    _write(path, _csv_text(lines))


# ---------------------------------------------------------------- wide tables


def read_wide(path: Any, columns: Names = None, workers: Sequence[str] = ()) -> Columns:
    """Read a wide table: one row per item, and one column per worker.

    Workers are the columns that `workers` names, or all others if they share one set of values.
    Where the table has a column of workers, each of the others is a question; where it has columns
    of questions and workers, an item. Blank cells are not answers.
    """
    file = open_source(path, "answers.csv")
    with _table(file) as (names, rows):
        header = [name.strip() for name in names]
        twice = sorted({name for name in header if name and header.count(name) > 1})
        if twice:
            raise CrowdtreeError(
                f"{file.name}: has two columns {listing(map(repr, twice))}; rename one"
            )
        if "label" in header and "label" not in workers:
            raise CrowdtreeError(
                f"{file.name}: has a column label, so it is not wide; use the format plain, or "
                "rename the column if it is a question or a worker"
            )
        keys, spread, chosen = _wide_layout(header, columns, workers, file.name)
        cells = columns_of_rows(rows, {i: i for i in (*keys.values(), *chosen)}, len(header),
                                file.name)  # fmt: skip
    asked = {header[i]: cells[i] for i in chosen}
    _check_spread(asked, spread, bool(workers), file.name)
    long = _unpivoted({role: cells[i] for role, i in keys.items()}, asked, spread)
    if not long.n_rows:
        raise CrowdtreeError(f"{file.name}: every cell is blank")
    said = [f"{r} from {header[i]!r}" for r, i in keys.items() if header[i].casefold() != r]
    note = f"{spread}s are the columns {listing(asked)}"
    note = f"reading {', '.join(said)}; {note}" if said else note
    called = header[keys["task"]] if "task" in keys else "task"
    return replace(long, notes=(note,), task_column=called)


def _wide_layout(
    header: list[str], columns: Names, workers: Sequence[str], where: str
) -> tuple[dict[str, int], str, list[int]]:
    """Columns that say what a row is about, what the others are, and which these are."""
    several = (columns or {}).get("question", "")
    there = {r: i for r, i in _roles_there(header, columns, where).items() if r != "label"}
    if workers:
        if "task" not in there:
            raise CrowdtreeError(f"{where}: which column names the item? say it with --task")
        return {"task": there["task"]}, "worker", _matching(header, workers, where)
    if "," in several:
        if not {"task", "worker"} <= set(there):
            raise CrowdtreeError(f"{where}: expected columns task and worker beside the questions")
        keys = {role: there[role] for role in ("task", "worker")}
        return keys, "question", _matching(header, several.split(","), where)
    for names, spread in (
        (("task", "worker"), "question"),
        (("question", "worker"), "task"),
        (("task",), "worker"),
    ):
        if set(names) <= set(there) and spread not in there:
            keys = {name: there[name] for name in names}
            left = [i for i, name in enumerate(header) if name and i not in keys.values()]
            if spread == "worker":
                left = [i for i in left if header[i].casefold() not in TRUTHS]
            return keys, spread, left
    raise CrowdtreeError(
        f"{where}: has columns {listing(header)}; a wide table starts with task and "
        "worker, question and worker, or task (say what they are called with --task ...)"
    )


def _matching(header: list[str], wanted: Sequence[str], where: str) -> list[int]:
    """Columns that are named, or match a pattern."""
    found: dict[int, None] = {}
    for name in map(str.strip, wanted):
        places = [i for i, other in enumerate(header) if other == name] or [
            i for i, other in enumerate(header) if fnmatchcase(other.casefold(), name.casefold())
        ]
        if not places:
            raise CrowdtreeError(f"{where}: no column {name!r} (found: {listing(header)})")
        found |= dict.fromkeys(places)
    return list(found)


def _check_spread(asked: dict[str, Column], spread: str, named: bool, where: str) -> None:
    """Refuse columns that cannot be answers: free text, or values that no other column has.

    Columns that the user named are refused only if nearly every value is different.
    """
    values = {name: _values(column) for name, column in asked.items()}
    odd: dict[str, str] = {}
    for name, own in values.items():
        rows = sum(own.values())
        others = set().union(*(other for also, other in values.items() if also != name))
        shared = sum(count for value, count in own.items() if value in others)
        if spread == "question":
            alone = not set(own) <= set(YES_NO) and not named
        else:
            alone = rows >= MIN_ROWS_TO_GUESS and shared < MIN_SHARED * rows
        unique = rows >= MIN_ROWS_TO_JUDGE and 2 * len(own) > rows
        if spread != "task" and alone and (unique or not named):
            odd[name] = f"{plural(len(own), 'value')} in {plural(rows, 'row')}"
    if not odd:
        return
    name, how = next(iter(odd.items()))
    fit = [other for other in asked if other not in odd]
    option = "--workers" if spread == "worker" else "--question"
    example = ",".join(fit[:3]) or "anna,ben"
    such = next((v for v in values[name]), "")
    why = "values that no other column has"
    if spread == "question":
        why = "other answers than yes and no"
    raise CrowdtreeError(
        f"{where}: column {name!r} has {why} ({how}, such as {one_line(such)}), so it is no "
        f"{spread}; name the {spread}s, such as {option} {example}"
    )


def _values(column: Column) -> dict[str, int]:
    """How often each value occurs; skips and blanks left out."""
    found: dict[str, int] = {}
    for name, count in zip(column.names, column.counts().tolist(), strict=True):
        if squeezed(name) not in SKIPS:
            found[squeezed(name)] = found.get(squeezed(name), 0) + count
    return found


def _unpivoted(keys: dict[str, Column], asked: dict[str, Column], spread: str) -> Columns:
    """One row per cell that is not blank."""
    parts = []
    for name, column in asked.items():
        filled = np.array([bool(text.strip()) for text in column.names] + [False])[column.code]
        one = {role: Column(key.code[filled], key.names) for role, key in keys.items()}
        one[spread] = Column(np.zeros(int(filled.sum()), np.int32), [name])
        one["label"] = Column(column.code[filled], column.names)
        order = ("task", "question", "worker", "label")
        parts.append(Columns({role: one[role] for role in order if role in one}))
    return join(parts, list(asked))


def write_wide(answers: Any, path: Any) -> None:
    """Write a wide table: ``task, worker, <question>...``, or ``task, <worker>...``."""
    rows = _rows(answers)
    questions = list(dict.fromkeys(row[1] for row in rows))
    if len(questions) > 1:
        columns, keys = questions, list(dict.fromkeys((t, w) for t, _, w, _ in rows))
        cells = {((t, w), q): label for t, q, w, label in rows}
        lines = [["task", "worker", *columns]]
        lines += [[*key, *(cells.get((key, c), "") for c in columns)] for key in keys]
    else:
        columns = list(dict.fromkeys(row[2] for row in rows))
        cells = {((t, ""), w): label for t, _, w, label in rows}
        lines = [["task", *columns]]
        for task in dict.fromkeys(row[0] for row in rows):
            lines.append([task, *(cells.get(((task, ""), c), "") for c in columns)])
    _write(path, _csv_text(lines))


READERS: Mapping[str, Callable[..., Columns]] = MappingProxyType(
    {
        "crowdkit": read_crowdkit,
        "label-studio": read_label_studio,
        "zooniverse": read_zooniverse,
        "json": read_json,
        "wide": read_wide,
    }
)
WRITERS: Mapping[str, Callable[[Any, str | Path], None]] = MappingProxyType(
    {
        "crowdkit": write_crowdkit,
        "label-studio": write_label_studio,
        "zooniverse": write_zooniverse,
        "wide": write_wide,
    }
)


def _rows(answers: Any) -> Rows:
    table = read_columns(answers, NEEDED, OPTIONAL)
    asked = table["question"] if "question" in table else [UNNAMED] * table.n_rows
    return list(zip(table["task"], asked, table["worker"], table["label"], strict=True))


def _of_rows(rows: Rows, name: str, what: str, columns: Names) -> Columns:
    """Columns of answers; those to one question where `columns` names it as label."""
    asked = (columns or {}).get("label")
    questions = list(dict.fromkeys(row[1] for row in rows))
    if asked is not None:
        rows = [row for row in rows if squeezed(row[1]) == squeezed(asked)]
        if not rows and questions:
            raise CrowdtreeError(
                f"{name}: no question {asked!r}; expected one of {listing(map(repr, questions))}"
            )
    if not rows:
        raise CrowdtreeError(f"{name}: contains no {what}")
    roles = ("task", "question", "worker", "label")
    made = columns_of_rows(((0, list(row)) for row in rows), {r: i for i, r in enumerate(roles)}, 4,
                           name)  # fmt: skip
    if asked is not None or questions == [UNNAMED]:
        del made["question"]
    elif len(questions) > 1:
        note = f"{len(questions)} questions ({listing(questions)}); --label reads one of them"
        return Columns(made, notes=(note,))
    return Columns(made)


def _csv_text(lines: list[list[str]]) -> str:
    made = io.StringIO()
    csv.writer(made, lineterminator="\n").writerows(lines)
    return made.getvalue()


def _write(path: Any, text: str) -> None:
    write_atomically(path, lambda file: file.write(text.encode()))
