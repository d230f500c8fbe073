"""Probabilities of answers given the class (docs/model.md, section 12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.errors import CrowdtreeError, listing
from crowdtree.core.outcomes import quoted, shape_text

if TYPE_CHECKING:
    from crowdtree.core.problem import Problem

SUM_TOLERANCE = 1e-6
ROUNDING = 1e-12


def check_table(table: Any, problem: Problem) -> FloatArray | None:
    """Read ``P(answer | class)``: an array [answer, question, class] with NaN where not given."""
    if table is None:
        return None
    shape = (int(problem.n_answers.max()), problem.n_questions, problem.n_classes)
    if isinstance(table, np.ndarray):
        if table.shape != shape:
            raise CrowdtreeError(
                f"table: expected {shape[0]} answers x {shape[1]} questions x {shape[2]} classes, "
                f"got {shape_text(table)}"
            )
        given = read_floats(table, "table")
        table = {
            name: given[: problem.n_answers[q], q]
            for q, name in enumerate(problem.questions)
            if not np.isnan(given[:, q]).all()
        }
    found = np.full(shape, np.nan)
    for q, rows in _by_question(table, problem, "table"):
        names = problem.answers[q]
        place = f"table: question {quoted(problem.questions[q])}"
        values = _rows(rows, names, problem.classes, place, "class")
        known = ~np.isnan(values).all(axis=0)
        bad = np.flatnonzero(known & (np.abs(values.sum(axis=0) - 1) > SUM_TOLERANCE))
        if len(bad):
            c = int(bad[0])
            raise CrowdtreeError(
                f"{place}, class {quoted(problem.classes[c])}: probabilities of the answers sum "
                f"to {values[:, c].sum():.6g}, not 1"
            )
        found[:, q] = np.where(known, 0.0, np.nan)
        found[: len(names), q] = _scaled(values, 0)
    return frozen(found)


def spread_confusion(
    confusion: Any, problem: Problem, table: FloatArray | None
) -> FloatArray | None:
    """Add ``P(answer | right answer)`` of some questions to the table, class by class."""
    if confusion is None:
        return table
    shape = (int(problem.n_answers.max()), problem.n_questions, problem.n_classes)
    found = np.full(shape, np.nan) if table is None else table.copy()
    for q, rows in _by_question(confusion, problem, "confusion"):
        names = problem.answers[q]
        place = f"confusion: question {quoted(problem.questions[q])}"
        if not np.isnan(found[0, q]).all():
            raise CrowdtreeError(f"{place}: has a table as well; expected one of the two")
        values = _rows(rows, names, names, place, "right answer")
        bad = np.flatnonzero(np.abs(values.sum(axis=1) - 1) > SUM_TOLERANCE)
        if len(bad):
            row = int(bad[0])
            raise CrowdtreeError(
                f"{place}, right answer {quoted(names[row])}: probabilities of the answers sum to "
                f"{values[row].sum():.6g}, not 1"
            )
        right = problem.right[: len(names), q].astype(np.float64)
        count = right.sum(axis=0)
        mixed = np.where(count > 0, right / np.maximum(count, 1), 1 / len(names))
        found[:, q] = 0.0
        found[: len(names), q] = _scaled(values, 1).T @ mixed
    return frozen(found)


def _scaled(values: FloatArray, axis: int) -> FloatArray:
    """Make probabilities sum to 1; those that do but for rounding stay, so that files are exact."""
    total = values.sum(axis=axis, keepdims=True)
    return np.asarray(np.where(np.abs(total - 1) > ROUNDING, values / total, values))


def _by_question(given: Any, problem: Problem, what: str) -> list[tuple[int, Any]]:
    if not isinstance(given, Mapping):
        raise CrowdtreeError(
            f"{what}: expected a mapping from questions to tables, got {quoted(given)}"
        )
    unknown = [name for name in given if name not in problem.questions]
    if unknown:
        raise CrowdtreeError(
            f"{what}: {listing(map(quoted, unknown))} is not a question; the problem has "
            f"{listing(map(quoted, problem.questions))}"
        )
    return [(problem.question_index(name), rows) for name, rows in given.items()]


def _rows(
    rows: Any, names: tuple[str, ...], columns: tuple[str, ...], place: str, thing: str
) -> FloatArray:
    """One row per answer, one column per class (or answer), from lists or mappings."""
    if isinstance(rows, Mapping):
        absent = [name for name in names if name not in rows]
        unknown = [str(name) for name in rows if name not in names]
        if absent or unknown:
            wrong = (
                f"{listing(map(quoted, unknown))} is not an answer"
                if unknown
                else f"answer {quoted(absent[0])} is missing"
            )
            raise CrowdtreeError(f"{place}: {wrong}; expected {listing(map(quoted, names))}")
        rows = [rows[name] for name in names]
    if isinstance(rows, np.ndarray):
        rows = rows.tolist()
    if isinstance(rows, str) or not hasattr(rows, "__iter__"):
        raise CrowdtreeError(f"{place}: expected one row per answer, got {quoted(rows)}")
    listed = [_row(row, columns, place, thing) for row in list(rows)]
    values = read_floats(np.array(listed, dtype=object), place)
    if values.shape != (len(names), len(columns)):
        lines, cells = ("answers", "classes") if thing == "class" else ("right answers", "answers")
        raise CrowdtreeError(
            f"{place}: expected {len(names)} {lines} x {len(columns)} {cells}, got "
            f"{shape_text(values)}"
        )
    absent_class = np.isnan(values).all(axis=0) & (thing == "class") & ~np.isnan(values).all()
    bad = np.argwhere(~((values >= 0) & (values <= 1)) & ~absent_class)
    if len(bad):
        row, column = bad[0]
        value = values[row, column]
        line, cell = ("answer", "class") if thing == "class" else ("right answer", "answer")
        raise CrowdtreeError(
            f"{place}, {line} {quoted(names[row])}, {cell} {quoted(columns[column])}: expected a "
            f"probability from 0 to 1, got {'nothing' if np.isnan(value) else f'{value:g}'}"
        )
    return values


def _row(row: Any, columns: tuple[str, ...], place: str, thing: str) -> list[Any]:
    if isinstance(row, Mapping):
        unknown = [name for name in row if name not in columns]
        if unknown:
            what = "a class" if thing == "class" else "an answer"
            raise CrowdtreeError(
                f"{place}: {listing(map(quoted, unknown))} is not {what}; expected "
                f"{listing(map(quoted, columns))}"
            )
        return [row.get(name) for name in columns]
    if isinstance(row, str) or not hasattr(row, "__iter__"):
        raise CrowdtreeError(f"{place}: expected one row per answer, got {quoted(row)} as a row")
    return list(row)


def check_unsure(unsure: ArrayLike | None, problem: Problem) -> FloatArray | None:
    """Probability that a worker can't tell, one row per question, one column per class."""
    if unsure is None:
        return None
    values = read_floats(unsure, "unsure")
    shape = problem.outcome.shape
    if values.shape not in ((), (shape[0],), shape):
        raise CrowdtreeError(
            f"unsure: expected one number, one per question ({shape[0]}) or one per cell "
            f"({shape[0]} x {shape[1]}), got {shape_text(values)}"
        )
    wide = values[:, None] if values.ndim == 1 else values
    bad = np.argwhere(~((values >= 0) & (values < 1)))
    if len(bad):
        where = f"question {quoted(problem.questions[bad[0][0]])}" if values.ndim else ""
        where += f", class {quoted(problem.classes[bad[0][1]])}" if values.ndim == 2 else ""
        where += " has " if where else ""
        raise CrowdtreeError(
            f"unsure: {where}{values[tuple(bad[0])]:g}; expected a probability from 0 to below 1"
        )
    found = frozen(np.array(np.broadcast_to(wide, shape)))
    return found if found.any() else None


def probabilities(problem: Problem) -> FloatArray:
    """``P(answer | question, class)`` as an array [answer, question, class]."""
    right = problem.right
    count = problem.n_answers[:, None]
    exists = np.arange(len(right))[:, None, None] < count
    rights = right.sum(axis=0)
    vague = (rights == 0) | (rights == count)  # nothing is wrong: every answer equally often
    error = problem.worker_error
    correct = np.where(vague, 1 / count, (1 - error) / np.maximum(rights, 1))
    wrong = np.where(vague, 1 / count, error / np.maximum(count - rights, 1))
    found = np.where(exists, np.where(right, correct, wrong), 0.0)
    if problem.table is not None:
        found = np.where(np.isnan(problem.table), found, problem.table)
    return found


def read_floats(values: ArrayLike, what: str) -> NDArray[np.float64]:
    """Read numbers of any shape; raise an error that names the first that is none."""
    try:
        found = np.asarray(values)
        if found.dtype.kind in "cmM":
            raise TypeError
        return np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise CrowdtreeError(f"{what}: {_not_numbers(values)}") from None


def _not_numbers(values: Any) -> str:
    """Explain why values are not an array of numbers: the first bad one, or their shape."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        return f"expected numbers, got {quoted(values)}"
    rows = list(values)
    lengths = {len(row) for row in rows if hasattr(row, "__len__") and not isinstance(row, str)}
    if len(lengths) > 1:
        return f"expected rows of equal length, got rows of {min(lengths)} and of {max(lengths)}"
    for place, row in enumerate(rows, start=1):
        for value in row if hasattr(row, "__iter__") and not isinstance(row, str) else [row]:
            try:
                float(value)
            except (TypeError, ValueError, OverflowError):
                return f"expected numbers, got {quoted(value)} at position {place}"
    return "expected one number, a list or a table of numbers"


def frozen(values: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only copy; an array that is read-only already is taken as it is."""
    if values.flags.writeable:
        values = values.copy()
        values.flags.writeable = False
    return np.ascontiguousarray(values) if values.ndim > 1 else values
