"""A problem as the rows of a table, the inverse of :mod:`crowdtree.io.table_reader`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from crowdtree.core.outcomes import YES_NO
from crowdtree.core.problem import DASH, Problem
from crowdtree.io.words import cell_words


def problem_rows(problem: Problem) -> Iterator[list[Any]]:
    """Rows of the table of a problem, header first: text and numbers, ready for any writer.

    >>> problem = Problem(["a", "b"], None, ["q"], [[0, "-"]], 0.1)
    >>> list(problem_rows(problem))
    [['question', 'error', 'a', 'b'], ['prior', '', 0.5, 0.5], ['q', 0.1, 0, '-']]
    """
    error = problem.worker_error[:, 0].tolist() if problem.error_per_question else None
    named = set(problem.answers) != {YES_NO}
    yield from _head_rows(problem, named)
    for q, name in enumerate(problem.questions):
        names = problem.answers[q]
        declared = ["" if names == YES_NO else "|".join(names)] if named else []
        yield [
            name, error[q] if error else "", *declared, *_text_cell(problem, q),
            *cell_words(problem, q),
        ]  # fmt: skip


def error_rows(problem: Problem) -> Iterator[list[Any]]:
    """Rows of the per-cell errors; blank where ``-`` makes them meaningless (and they are 0.5)."""
    yield from _head_rows(problem)
    for q, name in enumerate(problem.questions):
        cells = problem.worker_error[q].astype(object)
        cells[(problem.outcome[q] == DASH) & (problem.worker_error[q] == 0.5)] = ""
        yield [name, "", *_text_cell(problem, q), *cells.tolist()]


def _head_rows(problem: Problem, named: bool = False) -> Iterator[list[Any]]:
    """Rows above the questions, so that a question of the same name is not read as one."""
    texts = _has_text(problem)
    blank = [""] * (texts + named)
    columns = [*(["answers"] if named else []), *(["text"] if texts else [])]
    yield ["question", "error", *columns, *problem.classes]
    yield ["prior", "", *blank, *problem.prior.tolist()]
    if problem.descriptions or _occurs("description", problem.questions):
        yield ["description", "", *blank, *(problem.descriptions or [""] * problem.n_classes)]
    if problem.dash != "inapplicable":
        yield ["dash", "", *blank, problem.dash, *[""] * (problem.n_classes - 1)]
    if problem.dependence:
        yield ["dependence", "", *blank, problem.dependence, *[""] * (problem.n_classes - 1)]


def _has_text(problem: Problem) -> bool:
    return bool(problem.texts) or _occurs("text", problem.classes)


def _text_cell(problem: Problem, question: int) -> list[str]:
    if not _has_text(problem):
        return []
    return [problem.texts[question] if problem.texts else ""]


def _occurs(word: str, names: Sequence[str]) -> bool:
    return any(name.casefold() == word for name in names)
