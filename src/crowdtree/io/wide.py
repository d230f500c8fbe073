"""Wide tables of answers: one row per item, and one column per worker or question."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from crowdtree.core.columns import Column, Columns, columns_of_rows, join
from crowdtree.core.errors import CrowdtreeError, listing, one_line
from crowdtree.core.outcomes import MAX_ANSWERS
from crowdtree.core.reading import open_source
from crowdtree.core.text import plural, squeezed
from crowdtree.io.answer_rows import Names, open_table, roles_there
from crowdtree.learning.answers import MIN_ROWS_TO_JUDGE, SKIPS, YES_NO

TRUTHS = frozenset(("gold", "truth", "label", "groundtruth", "correct", "expert"))
"""Columns of wide tables that are no workers."""
MIN_SHARED = 0.5
"""Least share of a guessed worker's answers that some other worker gives, too."""
MIN_ROWS_TO_GUESS = 5
MAX_SUGGESTED = 20
"""Columns that a hint names, so that it can be pasted."""


def read_wide(
    path: Any, columns: Names = None, workers: Sequence[str] = (), *, guess: bool = False
) -> Columns:
    """Read a wide table: one row per item, and one column per worker.

    Workers are the columns that `workers` names, or all others if they share one set of values.
    Where the table has a column of workers, each of the others is a question; where it has columns
    of questions and workers, an item. Blank cells are not answers. `guess` says that nobody called
    the table wide, so that few rows prove nothing.
    """
    file = open_source(path, "answers.csv")
    with open_table(file) as (names, rows):
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
        others = [i for i, name in enumerate(header) if workers and _may_be_worker(name)]
        wanted = dict.fromkeys((*keys.values(), *chosen, *others))
        cells = columns_of_rows(rows, {i: i for i in wanted}, len(header), file.name)
        if "task" in keys and "task" not in roles_there(header, columns, file.name):
            _check_items(header[keys["task"]], cells[keys["task"]], file.name)
    asked = {header[i]: cells[i] for i in chosen}
    least = 1 if guess else MIN_ROWS_TO_GUESS
    named = bool(workers) or "," in (columns or {}).get("question", "")
    _check_spread(asked, spread, named, least, file.name)
    long = _unpivoted({role: cells[i] for role, i in keys.items()}, asked, spread)
    if not long.n_rows:
        empty = not any(len(column.code) for column in cells.values())
        raise CrowdtreeError(
            f"{file.name}: {'no rows below the header' if empty else 'every cell is blank'}"
        )
    said = [f"{r} from {header[i]!r}" for r, i in keys.items() if header[i].casefold() != r]
    note = f"{spread}s are the columns {listing(asked)}"
    note = f"reading {', '.join(said)}; {note}" if said else note
    rest = {header[i]: cells[i] for i in others if i not in {*keys.values(), *chosen}}
    notes = [note, *_left_out(rest, asked)]
    called = header[keys["task"]] if "task" in keys else "task"
    return replace(long, notes=tuple(notes), task_column=called)


def _may_be_worker(name: str) -> bool:
    return bool(name) and name.casefold() not in TRUTHS


def _left_out(rest: dict[str, Column], asked: dict[str, Column]) -> Iterator[str]:
    """Say which columns hold the answers of the named workers and are not among them."""
    answers = set().union(*map(_values, asked.values()))
    similar = []
    for name, column in rest.items():
        own = _values(column)
        shared = sum(count for value, count in own.items() if value in answers)
        if shared > MIN_SHARED * sum(own.values()):
            similar.append(name)
    if similar:
        yield (
            f"{listing(similar)} left out, with the same values as the workers; add to --workers "
            "if they are workers"
        )


def _wide_layout(
    header: list[str], columns: Names, workers: Sequence[str], where: str
) -> tuple[dict[str, int], str, list[int]]:
    """Columns that say what a row is about, what the others are, and which these are."""
    several = (columns or {}).get("question", "")
    there = {r: i for r, i in roles_there(header, columns, where).items() if r != "label"}
    if workers:
        own = _matching(header, workers, where)
        there.setdefault("task", next((i for i in range(len(header)) if i not in own), 0))
        return {"task": there["task"]}, "worker", own
    if "," in several:
        if not {"task", "worker"} <= set(there):
            raise CrowdtreeError(f"{where}: expected columns task and worker beside the questions")
        keys = {role: there[role] for role in ("task", "worker")}
        return keys, "question", _matching(header, several.split(","), where)
    if not there and len(header) > 2:
        there["task"] = 0  # if its values are all different
    for names, spread in (
        (("task", "worker"), "question"),
        (("question", "worker"), "task"),
        (("task",), "worker"),
    ):
        if set(names) <= set(there) and spread not in there:
            keys = {name: there[name] for name in names}
            left = [i for i, name in enumerate(header) if name and i not in keys.values()]
            if spread == "worker":
                left = [i for i in left if _may_be_worker(header[i])]
            return keys, spread, left
    raise CrowdtreeError(
        f"{where}: has columns {listing(header)}; a wide table starts with task and "
        "worker, question and worker, or task; name them with columns={...} (--task, --worker)"
    )


def _check_items(name: str, column: Column, where: str) -> None:
    """Refuse a first column that was taken for the items, and does not tell them apart."""
    if len(column.names) < len(column.code):
        raise CrowdtreeError(
            f"{where}: column {name!r} has a value twice, so it does not name one item per row; "
            "name the columns with columns={...} (--task, --worker, --label) or workers=[...] "
            "(--workers)"
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


def _check_spread(
    asked: dict[str, Column], spread: str, named: bool, least: int, where: str
) -> None:
    """Refuse columns that cannot be answers: free text, or values that no other column has.

    Columns that the user named are refused only if nearly every value is different.
    """
    values = {name: _values(column) for name, column in asked.items()}
    odd: dict[str, str] = {}
    few = set()
    for name, own in values.items():
        rows = sum(own.values())
        others = set().union(*(other for also, other in values.items() if also != name))
        shared = sum(count for value, count in own.items() if value in others)
        if spread == "question":
            alone = not set(own) <= set(YES_NO)
        else:
            alone = rows >= least and shared < MIN_SHARED * rows
        unique = rows >= MIN_ROWS_TO_JUDGE and 2 * len(own) > rows
        if len(own) <= MAX_ANSWERS and 2 * len(own) <= rows:
            few.add(name)  # as answers to a question are
        if spread != "task" and alone and (unique or not named):
            odd[name] = f"{plural(len(own), 'value')} in {plural(rows, 'row')}"
    if not odd:
        return
    name, how = next(iter(odd.items()))
    fit = [other for other in asked if other not in odd or (spread == "question" and other in few)]
    example = ",".join(fit[:MAX_SUGGESTED]) or ("anna,ben" if spread == "worker" else "q1,q2")
    more = f" and {plural(len(fit) - MAX_SUGGESTED, 'more column')}" if fit[MAX_SUGGESTED:] else ""
    quoted = shlex.quote(example)
    how_to = f"workers={example.split(',')} (--workers {quoted}){more}"
    if spread == "question":
        how_to = f'columns={{"question": "{example}"}} (--question {quoted}){more}'
    such = next((v for v in values[name]), "")
    why = "values that no other column has"
    if spread == "question":
        why = "nearly as many values as rows" if named else "other answers than yes and no"
    raise CrowdtreeError(
        f"{where}: column {name!r} has {why} ({how}, such as {one_line(such)}), so it is no "
        f"{spread}; name the {spread}s, such as {how_to}"
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
