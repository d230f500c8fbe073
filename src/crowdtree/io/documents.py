"""Problems as the data of YAML and JSON documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.errors import CrowdtreeError, named, one_line
from crowdtree.core.outcomes import YES_NO, check_answers
from crowdtree.core.problem import DASH, PRIOR_TOLERANCE, Dash, Problem, check_names
from crowdtree.core.text import squeezed
from crowdtree.io.cells import Spellings, by_class, cell_code, numbers_by_class
from crowdtree.io.sources import SourceList, make_problem, read_entries
from crowdtree.io.words import (
    BadCellError,
    WordRow,
    cell_words,
    is_counts,
    join_rows,
    read_words,
    unused_answers,
)

KINDS = {
    "problem": "a problem; load_problem and crowdtree design read it",
    "plan": "a plan; load and crowdtree evaluate read it",
    "audit": "the certificate of an audit; load_audit and crowdtree audit show read it",
}
"""What a document may be, and what reads it."""


def problem_from_dict(
    data: Any,
    source: str,
    prior: Any = None,
    worker_error: Any = None,
    dash: Dash | None = None,
    normalise: bool = False,
    dependence: float | None = None,
    loss: Callable[[Sequence[str]], Any] | None = None,
    sources: Callable[[Sequence[str], Sequence[str]], SourceList] | None = None,
) -> Problem:
    """Make a problem from the data of a document; given arguments take precedence.

    `loss` makes the loss from the names of the classes, which only the document has; `sources`
    makes the sources from those of the classes and questions.
    """
    from crowdtree.io.schema import ProblemFile, check

    kind = data.get("kind") if isinstance(data, dict) else None
    if kind in ("plan", "audit"):
        raise CrowdtreeError(f"{source}: expected a problem, got {KINDS[kind]}")
    found = check(ProblemFile, data, source)
    entries = [
        (e, None, "") if isinstance(e, str) else (e.name, e.prior, e.description)
        for e in found.classes
    ]
    names, own, descriptions = zip(*entries, strict=True) if entries else ((), (), ())
    classes = named(source, check_names, names, "classes", at_least=2)
    places = {name: place for place, name in enumerate(classes)}
    spellings = Spellings()
    words: dict[int, WordRow] = {}
    outcome = np.empty((len(found.questions), len(classes)), dtype=np.int8)
    for q, entry in enumerate(found.questions):
        where = f"{source}: questions[{q}] ({one_line(entry.name)})"
        cells = by_class(entry.outcome, places, f"{where}.outcome", None)
        declared = None if entry.answers is None else named(where, _declared, entry)
        row = _outcomes(cells, classes, f"{where}.outcome", spellings, declared)
        if isinstance(row, WordRow):
            words[q] = row
        outcome[q] = row.codes() if isinstance(row, WordRow) else row
    if worker_error is None:
        worker_error = _errors(found, places, outcome, source)
    cells_right, answers = join_rows(outcome, words, len(outcome))
    fields = {
        what: {
            entry.name: rows
            for entry in found.questions
            if (rows := getattr(entry, what)) is not None
        }
        for what in ("confusion", "table")
    }
    shares, notes = as_shares(_prior(own, classes, source), normalise)
    questions = [entry.name for entry in found.questions]
    who = read_entries(found, classes, questions, source)
    if sources is not None:
        other = sources(classes, questions)
        who = other if other.dependence is not None else other._replace(dependence=who.dependence)
    made = named(
        source,
        make_problem if sources is None else Problem,
        classes,
        named(source, chosen_prior, classes, shares, prior),
        questions,
        cells_right,
        worker_error,
        answers=answers,
        **{what: rows or None for what, rows in fields.items()},
        unsure=_unsure(found, places, source),
        texts=[entry.text for entry in found.questions],
        descriptions=descriptions,
        dash=dash or found.dash,
        normalise=normalise,
        dependence=found.dependence if dependence is None else dependence,
        loss=found.loss if loss is None else loss(classes),
        sources=who.sources,
        source_dependence=who.dependence or 0.0,
    )
    said = [
        f"question {one_line(found.questions[q].name)}: {note}"
        for q, row in words.items()
        for note in row.notes
    ]
    prior_notes = [] if prior is not None else notes
    return with_notes(made, [*prior_notes, *spellings.notes(), *said, *who.notes])


def _declared(entry: Any) -> tuple[str, ...]:
    return check_answers([entry.answers], (entry.name,))[0]


def chosen_prior(classes: Sequence[str], own: Any, given: Any) -> Any:
    """Prior of the file, or the one given in its place.

    >>> chosen_prior(["a", "b"], [0.5, 0.5], {"b": 0.1, "a": 0.9})
    [0.9, 0.1]
    """
    if given is None:
        return own
    if isinstance(given, str):
        if given == "uniform":
            return None
        raise CrowdtreeError(f'prior: expected numbers, a mapping or "uniform", got {given!r}')
    if not isinstance(given, Mapping):
        return given
    for names, others, what in ((classes, given, "lacks"), (given, classes, "has the unknown")):
        for name in names:
            if name not in others:
                raise CrowdtreeError(f"prior: {what} class {one_line(name)}")
    return [given[name] for name in classes]


def as_shares(prior: list[float] | None, normalise: bool) -> tuple[list[float] | None, list[str]]:
    """Prior of a file as shares, and what there is to say about it.

    Numbers that sum to 100 are percentages, or counts, which give the same shares.

    >>> as_shares([20.0, 80.0], normalise=False)
    ([0.2, 0.8], ['the prior sums to 100 and is read as percentages'])
    """
    if prior is None:
        return None, ["no prior given, so equal shares of the classes are assumed"]
    if normalise or abs(sum(prior) - 100) > 100 * PRIOR_TOLERANCE:
        return prior, []
    return [share / 100 for share in prior], ["the prior sums to 100 and is read as percentages"]


def with_notes(problem: Problem, notes: Iterable[str]) -> Problem:
    """Attach how the file was understood to the problem that was made of it."""
    twins = [*_twins(problem.classes, "classes"), *_twins(problem.questions, "questions")]
    object.__setattr__(problem, "notes", (*notes, *unused_answers(problem), *twins))
    return problem


def _twins(names: Sequence[str], what: str) -> list[str]:
    """Names that differ in case or blanks alone, which may be one."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(squeezed(name), []).append(repr(name))
    return [
        f"{what} {' and '.join(same)} differ in spelling alone; are they one?"
        for same in groups.values()
        if len(same) > 1
    ]


def _prior(
    shares: Sequence[float | None], classes: Sequence[str], source: str
) -> list[float] | None:
    missing = [name for name, share in zip(classes, shares, strict=True) if share is None]
    if len(missing) == len(classes):
        return None
    if missing:
        raise CrowdtreeError(
            f"{source}: class {one_line(missing[0])} has no prior, but others do; add it for all "
            "classes, or for none if they are equal"
        )
    return [share for share in shares if share is not None]


_CODES: dict[Any, int] = {0: 0, 1: 1, -1: DASH, "0": 0, "1": 1, "-": DASH}


def _outcomes(
    cells: list[Any],
    classes: Sequence[str],
    where: str,
    spellings: Spellings,
    declared: tuple[str, ...] | None,
) -> list[int] | WordRow:
    place: int | None = None
    remedy = 'write 0, 1 or "-"'
    if declared is None:
        try:
            return [_CODES[cell] for cell in cells]
        except (KeyError, TypeError):
            codes = [_code(cell) for cell in cells]
        found = [code for code in codes if code is not None]
        if len(found) == len(cells):
            spellings.add_outcomes(cells)
            return found
        place = codes.index(None)
    if declared is not None or isinstance(cells[place or 0], str | list) or is_counts(cells):
        try:
            return read_words(cells, declared)
        except BadCellError as fault:
            place, remedy = fault.place, fault.remedy
    if place is None:
        raise CrowdtreeError(f"{where}: {remedy}")
    got = "is missing" if cells[place] is None else f"is {one_line(cells[place])}"
    raise CrowdtreeError(f"{where}: class {one_line(classes[place])} {got}; {remedy}")


def _code(cell: Any) -> int | None:
    try:
        return cell_code(cell)
    except KeyError:
        return None


def _errors(
    found: Any, places: dict[str, int], outcome: NDArray[np.int8], source: str
) -> NDArray[np.float64]:
    """Errors one per question if all are so, else one per cell."""
    per_cell = any(isinstance(entry.error, list | dict) for entry in found.questions)
    shape = outcome.shape if per_cell else outcome.shape[:1]
    errors = np.full(shape, np.nan)
    dash = (outcome == DASH).tolist()
    for q, entry in enumerate(found.questions):
        where = f"{source}: questions[{q}] ({one_line(entry.name)})"
        whole = found.worker_error if entry.error is None else entry.error
        if whole is None and (entry.table or entry.confusion):
            continue
        if whole is None:
            raise CrowdtreeError(
                f"{where}: has no error; add error: to it, or worker_error: for all questions"
            )
        if isinstance(whole, float):
            errors[q] = whole
            continue
        needless = dash[q] if entry.table is None else [True] * len(places)
        errors[q] = numbers_by_class(whole, places, f"{where}.error", found.worker_error, needless)
    return errors


def _unsure(found: Any, places: dict[str, int], source: str) -> NDArray[np.float64] | None:
    """Chance of "can't tell" per cell: the question's own, else the class's, else the file's."""
    of_classes = [getattr(entry, "unsure", None) for entry in found.classes]
    of_questions = [entry.unsure for entry in found.questions]
    if {found.unsure is None, *(share is None for share in of_classes + of_questions)} == {True}:
        return None
    whole = found.unsure or 0.0
    by_class = [whole if share is None else share for share in of_classes]
    rows = []
    for q, entry in enumerate(found.questions):
        row = by_class if entry.unsure is None else entry.unsure
        if isinstance(row, float):
            row = [row] * len(places)
        elif entry.unsure is not None:
            where = f"{source}: questions[{q}] ({one_line(entry.name)}).unsure"
            row = numbers_by_class(row, places, where, whole, [False] * len(places))
        rows.append(row)
    table = np.array(rows, dtype=np.float64)
    return table if table.any() else None


def problem_to_dict(problem: Problem) -> dict[str, Any]:
    """Data of a problem as the documents hold it.

    >>> problem = Problem(["a", "b"], None, ["q"], [[0, "-"]], 0.1)
    >>> problem_to_dict(problem)["questions"]
    [{'name': 'q', 'error': 0.1, 'outcome': [0, '-']}]
    """
    from crowdtree.io.sources import loss_of_file, source_fields

    loss = loss_of_file(problem)
    classes = [
        {"name": name, "prior": prior}
        | ({"description": problem.descriptions[c]} if problem.descriptions else {})
        for c, (name, prior) in enumerate(zip(problem.classes, problem.prior.tolist(), strict=True))
    ]
    questions = []
    for q, name in enumerate(problem.questions):
        row = problem.worker_error[q].tolist()
        entry: dict[str, Any] = {"name": name}
        if problem.texts:
            entry["text"] = problem.texts[q]
        if problem.answers[q] != YES_NO:
            entry["answers"] = list(problem.answers[q])
        table = None if problem.table is None else problem.table[:, q]
        if table is None or np.isnan(table[0]).any():
            entry["error"] = row[0] if problem.error_per_question else row
        if table is not None and not np.isnan(table[0]).all():
            entry["table"] = _table_rows(table[: problem.n_answers[q]])
        if problem.unsure is not None and problem.unsure[q].any():
            unsure = problem.unsure[q].tolist()
            entry["unsure"] = unsure[0] if len(set(unsure)) == 1 else unsure
        entry["outcome"] = cell_words(problem, q)
        questions.append(entry)
    return {
        "crowdtree": 1,
        "kind": "problem",
        "dash": problem.dash,
        **({"dependence": problem.dependence} if problem.dependence else {}),
        **({} if loss is None else {"loss": loss.to_dict()}),
        **source_fields(problem),
        "classes": classes,
        "questions": questions,
    }


def _table_rows(table: NDArray[np.float64]) -> list[list[float | None]]:
    return [[None if np.isnan(value) else value for value in row] for row in table.tolist()]
