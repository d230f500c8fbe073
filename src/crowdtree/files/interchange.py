"""Answers of other tools, in and out: crowd-kit, Label Studio, Zooniverse, plain wide tables.

Every reader gives a frame of ``task, question, worker, label`` (no ``question`` where the one
question has no name); every writer takes one, and replaces the file in one step.
"""

from __future__ import annotations

import csv
import io
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from crowdtree.errors import CrowdtreeError, CrowdtreeWarning, listing
from crowdtree.files.atomic import write_atomically
from crowdtree.learning.frames import read_frame, why_unreadable
from crowdtree.reading import MB, Source, csv_rows, open_source, separator_of
from crowdtree.text import plural

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "READERS",
    "WRITERS",
    "guess_format",
    "load_answers",
    "read_crowdkit",
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
MOST_BYTES = 4_000 * MB
MOST_FIELD = 100 * MB
"""Characters of a field: drawings and transcriptions make long ones."""
ZOONIVERSE = frozenset(("annotations", "subject_ids"))
"""Columns of a Zooniverse export that are read."""
UNNAMED = "label"
"""Written in place of a question without a name."""


def read_crowdkit(path: Any) -> pl.DataFrame:
    """Read ``task, worker, label`` (and ``question``) from CSV or Parquet."""
    return read_frame(path, ("task", "worker", "label"), ("question",), "answers")


def write_crowdkit(answers: Any, path: Any) -> None:
    """Write ``task, worker, label`` as CSV, which crowd-kit reads."""
    frame = read_frame(answers, ("task", "worker", "label"), ("question",), "answers")
    _write(path, frame.write_csv())


def read_label_studio(path: Any) -> pl.DataFrame:
    """Read a Label Studio JSON export: the choices of every annotation that was not cancelled.

    The question is the name of the control (``from_name``); the worker is ``completed_by``. A
    control where several choices were ticked is not a single label: it is left out, with a warning.
    """
    file = open_source(path, "answers.json")
    tasks, name = _json(file), file.name
    if not isinstance(tasks, list):
        raise CrowdtreeError(f"{name}: expected a Label Studio export (a list of tasks)")
    rows: Rows = []
    several = 0
    for place, task in enumerate(tasks, start=1):
        if not isinstance(task, dict):
            raise CrowdtreeError(f"{name}: entry {place} is not a task")
        try:
            for worker, control, choices in _studio_choices(task):
                if len(choices) == 1:
                    rows.append((str(task.get("id", place)), control, worker, str(choices[0])))
                several += len(choices) > 1
        except (AttributeError, TypeError):
            raise CrowdtreeError(
                f"{name}: entry {place} is not in Label Studio's format; export the project as "
                "JSON (not JSON-MIN)"
            ) from None
    _warn_several(several, name)
    return _frame(rows, name, "choices of a single label")


def _studio_choices(task: Mapping[str, Any]) -> Iterator[tuple[str, str, list[Any]]]:
    """Worker, control and what was ticked."""
    for annotation in task.get("annotations") or task.get("completions") or ():
        if annotation.get("was_cancelled"):
            continue
        who = annotation.get("completed_by", "unknown")
        worker = str(who.get("email") or who.get("id")) if isinstance(who, dict) else str(who)
        for result in annotation.get("result") or ():
            if result.get("type") == "choices":
                choices = result.get("value", {}).get("choices") or []
                control = str(result.get("from_name", UNNAMED))
                yield worker, control, choices if isinstance(choices, list) else [choices]


def _warn_several(count: int, name: str) -> None:
    if count:
        warnings.warn(
            f"{name}: {plural(count, 'answer')} with several choices left out; an answer is one "
            "label",
            CrowdtreeWarning,
            stacklevel=3,
        )


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


def read_zooniverse(path: Any) -> pl.DataFrame:
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
    return _frame(rows, name, "single-choice answers")


def _zoo_rows(file: Source) -> Iterator[tuple[int, dict[str, str]]]:
    """Lines of the export by the names of their columns; missing cells are blank."""
    with file.lines(MOST_BYTES, MOST_FIELD) as lines:
        rows = csv_rows(lines, ",", file.name, most=MOST_FIELD)
        header = next(rows, (0, []))[1]
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


def read_wide(path: Any) -> pl.DataFrame:
    """Read a wide table, whose layout follows from the names of its first columns.

    ``task, worker, <question>...``; ``question, worker, <task>...``; or ``task, <worker>...`` for
    one question. Blank cells are not answers.
    """
    import polars as pl

    file = open_source(path, "answers.csv")
    frame = _wide_frame(file.read_text(MOST_BYTES), file.name)
    names = set(frame.columns)
    if "label" in names:
        raise CrowdtreeError(
            f"{file.name}: has a column label, so it is not wide; use the format plain, or rename "
            "the column if it is a question or a worker"
        )
    for keys, spread in (
        (("task", "worker"), "question"),
        (("question", "worker"), "task"),
        (("task",), "worker"),
    ):
        if set(keys) <= names and spread not in names:
            long = frame.unpivot(index=list(keys), variable_name=spread, value_name="label")
            order = [c for c in ("task", "question", "worker", "label") if c in long.columns]
            long = long.select(order).filter(
                pl.col("label").is_not_null() & (pl.col("label").str.strip_chars() != "")
            )
            if len(long):
                return long
            raise CrowdtreeError(f"{file.name}: every cell is blank")
    raise CrowdtreeError(
        f"{file.name}: has columns {listing(frame.columns)}; a wide table starts with task and "
        "worker, question and worker, or task"
    )


def _wide_frame(text: str, name: str) -> pl.DataFrame:
    import polars as pl

    separator = separator_of(text.split("\n", 1)[0])
    lines = io.StringIO(text, newline="")
    header = next(csv_rows(lines, separator, name, most=MOST_FIELD), (0, []))[1]
    twice = sorted({column for column in header if header.count(column) > 1})
    if twice:
        raise CrowdtreeError(f"{name}: has two columns {listing(map(repr, twice))}; rename one")
    try:
        return pl.read_csv(text.encode(), infer_schema=False, separator=separator)
    except pl.exceptions.PolarsError as problem:
        why = why_unreadable(str(problem))
        raise CrowdtreeError(f"{name}: cannot be read ({why})") from None


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


READERS: Mapping[str, Callable[[Any], pl.DataFrame]] = MappingProxyType(
    {
        "crowdkit": read_crowdkit,
        "label-studio": read_label_studio,
        "zooniverse": read_zooniverse,
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


def guess_format(path: Any) -> str | None:
    """Recognise an export of Label Studio (JSON) or Zooniverse (by its columns); else ``None``.

    >>> guess_format(b'[{"id": 1, "annotations": []}]')
    'label-studio'
    """
    file = open_source(path, "answers")
    if file.name.lower().endswith((".parquet", ".pq")):
        return None
    file.check(sys.maxsize)
    text = file.head().decode("utf-8-sig", errors="replace").lstrip()
    if text.startswith(("[", "{")):
        return "label-studio"
    names = {name.strip(' "\r') for name in text.split("\n", 1)[0].split(",")}
    return "zooniverse" if names >= ZOONIVERSE else None


def load_answers(path: Any, form: str | None = None) -> pl.DataFrame:
    """Read a file of answers in any format: a frame of task, question, worker and label.

    Parameters
    ----------
    path
        The file: its path, its bytes or a binary stream.
    form
        ``"crowdkit"`` (plain columns), ``"label-studio"``, ``"zooniverse"`` or ``"wide"``;
        recognised where it is not given, except ``"wide"``.

    Examples
    --------
    >>> load_answers(b"task,worker,label\\n1,ann,cat\\n").rows()
    [(1, 'ann', 'cat')]
    """
    form = form or guess_format(path) or "crowdkit"
    if form not in READERS:
        raise CrowdtreeError(f"form: expected one of {listing(READERS)}, got {form!r}")
    return READERS[form](path)


def _rows(answers: Any) -> Rows:
    frame = read_frame(answers, ("task", "worker", "label"), ("question",), "answers")
    asked = frame["question"].to_list() if "question" in frame.columns else [UNNAMED] * len(frame)
    columns = (frame["task"].to_list(), asked, frame["worker"].to_list(), frame["label"].to_list())
    return [(str(t), str(q), str(w), str(x)) for t, q, w, x in zip(*columns, strict=True)]


def _frame(rows: Any, name: str, what: str) -> pl.DataFrame:
    import polars as pl

    if not rows:
        raise CrowdtreeError(f"{name}: contains no {what}")
    names = ["task", "question", "worker", "label"]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    unnamed = frame["question"].unique().to_list() == [UNNAMED]
    return frame.drop("question") if unnamed else frame


def _json(file: Source) -> Any:
    try:
        return json.loads(file.read_text(MOST_BYTES))
    except json.JSONDecodeError as problem:
        raise CrowdtreeError(f"{file.name}: is not JSON ({problem})") from None


def _csv_text(lines: list[list[str]]) -> str:
    made = io.StringIO()
    csv.writer(made, lineterminator="\n").writerows(lines)
    return made.getvalue()


def _write(path: Any, text: str) -> None:
    write_atomically(path, lambda file: file.write(text.encode()))
