"""Answers in the formats of other tools, written for tests of their readers."""

from __future__ import annotations

import json
from typing import Any

from crowdtree.core.columns import read_columns
from crowdtree.io.answer_rows import NEEDED, OPTIONAL, UNNAMED, Rows, csv_text, write_text
from crowdtree.io.interchange import write_crowdkit


def answer_rows(answers: Any) -> Rows:
    """Task, question, worker and label of each answer."""
    table = read_columns(answers, NEEDED, OPTIONAL)
    asked = table["question"] if "question" in table else [UNNAMED] * table.n_rows
    return list(zip(table["task"], asked, table["worker"], table["label"], strict=True))


def write_label_studio(answers: Any, path: Any) -> None:
    """Write answers as a Label Studio JSON export with choices."""
    tasks: dict[str, list[dict[str, Any]]] = {}
    for task, question, worker, label in answer_rows(answers):
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
    write_text(path, json.dumps(made, ensure_ascii=False, indent=1))


def write_zooniverse(answers: Any, path: Any) -> None:
    """Write answers in the columns of a Zooniverse classification export."""
    notes: dict[tuple[str, str], list[dict[str, str]]] = {}
    for task, question, worker, label in answer_rows(answers):
        note = {"task": question, "task_label": question, "value": label}
        notes.setdefault((task, worker), []).append(note)
    lines = [["classification_id", "user_name", "annotations", "subject_ids"]]
    for number, ((task, worker), made) in enumerate(notes.items(), start=1):
        lines.append([str(number), worker, json.dumps(made, ensure_ascii=False), task])
    write_text(path, csv_text(lines))


def write_wide(answers: Any, path: Any) -> None:
    """Write a wide table: ``task, worker, <question>...``, or ``task, <worker>...``."""
    rows = answer_rows(answers)
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
    write_text(path, csv_text(lines))


WRITERS = {
    "crowdkit": write_crowdkit,
    "label-studio": write_label_studio,
    "zooniverse": write_zooniverse,
    "wide": write_wide,
}
