"""What the readers and writers of answers share: rows of tables and of JSON, and text."""

from __future__ import annotations

import csv
import io
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from crowdtree.core.columns import Columns, columns_of_rows, find_roles, read_rows
from crowdtree.core.errors import CrowdtreeError, CrowdtreeWarning, listing
from crowdtree.core.reading import MB, Source, cell_text
from crowdtree.core.text import plural, squeezed
from crowdtree.io.atomic import write_atomically
from crowdtree.io.grids import read_sheets

Row = tuple[str, str, str, str]  # task, question, worker, label
Rows = list[Row]
Names = Mapping[str, str] | None
"""What columns are called, by task, worker, label and question."""
NEEDED, OPTIONAL = ("task", "worker", "label"), ("question", "source")
MOST_BYTES = 4_000 * MB
MOST_FIELD = 100 * MB
"""Characters of a field: drawings and transcriptions make long ones."""
UNNAMED = "label"
"""Written in place of a question without a name."""


def is_workbook(file: Source) -> bool:
    """Whether the name of a file is that of a workbook."""
    return file.name.lower().endswith(".xlsx")


@contextmanager
def open_table(file: Source) -> Iterator[tuple[list[str], Iterable[tuple[int, list[str]]]]]:
    """Header and numbered rows of a workbook or of delimited text."""
    if is_workbook(file):
        sheets = read_sheets(file, lambda rows: bool(rows))
        rows = next((iter(rows) for rows in sheets.values() if rows), iter(()))
        yield next(rows, (0, []))[1], rows
        return
    with file.rows(MOST_BYTES, MOST_FIELD, MOST_FIELD) as (_, lines):
        yield next((cells for _, cells in lines if cells), []), lines


def roles_there(header: list[str], columns: Names, where: str) -> dict[str, int]:
    """Columns that a header has, of those that answers may have; `a,b` names several questions."""
    own = {r: name for r, name in (columns or {}).items() if r != "question" or "," not in name}
    return find_roles(header, (), (*NEEDED, "question"), own, where)[0]


def read_objects(
    file: Source, objects: list[dict[str, Any]], header: list[str], columns: Names
) -> Columns:
    """Read objects with one answer each; those with several choices are left out."""
    places = find_roles(header, NEEDED, OPTIONAL, columns, file.name)[0]
    label, several, rows = header[places["label"]], 0, []
    for number, found in enumerate(objects, start=1):
        choice = found.get(label)
        if isinstance(choice, dict) and len(choice) == 1:  # {"choices": ["cat", "dog"]}
            choice = next(iter(choice.values()))
        if isinstance(choice, list) and len(choice) > 1:
            several += 1
            continue
        row = {**found, label: choice}
        rows.append((number, [single(row.get(name)) for name in header]))
    warn_several(several, file.name)
    return read_rows(header, rows, NEEDED, OPTIONAL, columns, file.name)


def single(value: Any) -> str:
    """Text of a value; of a list, its one entry."""
    if isinstance(value, list):
        return single(value[0]) if len(value) == 1 else ""
    return "" if isinstance(value, dict) else cell_text(value)


def json_objects(file: Source) -> list[dict[str, Any]]:
    """Read the objects of a JSON list, or of JSON lines."""
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


def columns_of_answers(rows: Rows, name: str, what: str, columns: Names) -> Columns:
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


def check_names(columns: Names, allowed: tuple[str, ...], name: str) -> None:
    """Refuse names of columns that an export fixes itself."""
    extra = [role for role in columns or () if role not in allowed]
    if extra:
        raise CrowdtreeError(
            f"{name}: this export says itself what its {extra[0]} is; name only {listing(allowed)}"
        )


def warn_several(count: int, name: str) -> None:
    """Warn of answers that were left out because they are several labels."""
    if count:
        warnings.warn(
            f"{name}: {plural(count, 'answer')} with several choices left out; an answer is one "
            "label",
            CrowdtreeWarning,
            stacklevel=4,
        )


def csv_text(lines: list[list[str]]) -> str:
    """Write rows as CSV."""
    made = io.StringIO()
    csv.writer(made, lineterminator="\n").writerows(lines)
    return made.getvalue()


def write_text(path: Any, text: str) -> None:
    """Replace a file in one step."""
    write_atomically(path, lambda file: file.write(text.encode()))
