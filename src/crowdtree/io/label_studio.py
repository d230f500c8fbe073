"""Exports of Label Studio, JSON and JSON-MIN."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from crowdtree.core.columns import Columns
from crowdtree.core.errors import CrowdtreeError, listing
from crowdtree.core.reading import Source, cell_text, open_source
from crowdtree.core.text import plural
from crowdtree.io.answer_rows import (
    UNNAMED,
    Names,
    Rows,
    check_names,
    columns_of_answers,
    json_objects,
    read_objects,
    warn_several,
)

STUDIO_VALUES = {"choices": "choices", "taxonomy": "taxonomy", "rating": "rating",
                 "pairwise": "selected"}  # fmt: skip
"""Controls of Label Studio that give one label, and where their value is."""
STUDIO_MIN = ("annotator", "annotation_id")
"""Fields by which JSON-MIN of Label Studio is recognised; labels come before the first."""


def read_label_studio(path: Any, columns: Names = None) -> Columns:
    """Read a Label Studio export, JSON or JSON-MIN: every annotation that was not cancelled.

    The question is the name of the control (``from_name``) unless `columns` names the one to read
    as ``label``; the worker is ``completed_by``; the item is the ``id`` of the task, or the field
    of its data that `columns` names as ``task``. Annotations that are marked as ground truth are
    gold, not answers. A control where several choices were ticked is not a single label: it is left
    out, with a warning.
    """
    file = open_source(path, "answers.json")
    tasks, name = json_objects(file), file.name
    header = list(dict.fromkeys(str(field) for task in tasks for field in task))
    if set(header) >= set(STUDIO_MIN):
        return read_studio_min(file, tasks, header, columns)
    check_names(columns, ("task", "label"), name)
    field = (columns or {}).get("task", "id")
    answers: Rows = []
    truths: Rows = []
    several = cancelled = 0
    for place, task in enumerate(tasks, start=1):
        try:
            item = _studio_item(task, field, place, name)
            annotations = task.get("annotations") or task.get("completions") or ()
            cancelled += sum(bool(one.get("was_cancelled")) for one in annotations)
            for worker, control, choices, known in _studio_choices(annotations):
                if len(choices) == 1:
                    row = (item, control, worker, cell_text(choices[0]))
                    (truths if known else answers).append(row)
                several += len(choices) > 1
        except (AttributeError, TypeError):
            raise CrowdtreeError(
                f"{name}: entry {place} is not in Label Studio's format; export the project as "
                "JSON or JSON-MIN"
            ) from None
    warn_several(several, name)
    table = columns_of_answers(answers, name, "choices of a single label", columns)
    if cancelled:
        note = f"{plural(cancelled, 'cancelled annotation')} left out"
        table = replace(table, notes=(*table.notes, note))
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


def _studio_choices(
    annotations: Iterable[Mapping[str, Any]],
) -> Iterator[tuple[str, str, list[Any], bool]]:
    """Worker, control, what was ticked, and whether it is marked as ground truth."""
    for annotation in annotations:
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


def read_studio_min(
    file: Source, tasks: list[dict[str, Any]], header: list[str], columns: Names
) -> Columns:
    """Read JSON-MIN: one object per annotation, whose labels come between id and annotator.

    Several labels are answers to several questions; `columns` names one as ``label``, or some as
    ``question`` (``a,b``).
    """
    names = {"task": "id", "worker": STUDIO_MIN[0], **(columns or {})}
    asked = names.pop("question", None)
    if asked is None:
        controls = list(dict.fromkeys(name for task in tasks for name in _min_controls(task)))
    else:
        controls = [name.strip() for name in asked.split(",")]
        absent = [name for name in controls if name not in header]
        if absent:
            raise CrowdtreeError(
                f"{file.name}: has no field {absent[0]!r}; it has {listing(header)}"
            )
    if "label" in names or len(controls) == 1:
        label = names.setdefault("label", "".join(controls))
        return read_objects(file, [task for task in tasks if label in task], header, names)
    parts = []
    for control in controls:
        answered = [task for task in tasks if control in task]
        table = read_objects(file, answered, header, {**names, "label": control})
        parts += [(item, control, worker, label) for item, worker, label in table.rows()]
    what = "labels between the fields id and annotator"
    return replace(columns_of_answers(parts, file.name, what, None), task_column=names["task"])


def _min_controls(task: Mapping[str, Any]) -> list[str]:
    """Fields of an object that are labels."""
    fields = list(task)
    if STUDIO_MIN[0] not in fields:
        return []
    first = fields.index("id") if "id" in fields else -1
    return fields[first + 1 : fields.index(STUDIO_MIN[0])]
