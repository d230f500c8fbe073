"""Problems as the data of YAML and JSON documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from crowdtree.errors import CrowdtreeError, one_line
from crowdtree.files.cells import Spellings, cell_code, cell_number
from crowdtree.problem import DASH, PRIOR_TOLERANCE, Dash, Problem, check_names
from crowdtree.text import squeezed

__all__ = [
    "as_shares",
    "chosen_prior",
    "named",
    "problem_from_dict",
    "problem_to_dict",
    "with_notes",
]

Made = TypeVar("Made")
KINDS = {
    "problem": "a problem; load_problem and crowdtree design read it",
    "plan": "a plan; load_plan and crowdtree evaluate read it",
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
) -> Problem:
    """Make a problem from the data of a document; given arguments take precedence.

    `loss` makes the loss from the names of the classes, which only the document has.
    """
    from crowdtree.files.schema import ProblemFile, check

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
    outcome = np.empty((len(found.questions), len(classes)), dtype=np.int8)
    for q, entry in enumerate(found.questions):
        where = f"{source}: questions[{q}] ({one_line(entry.name)}).outcome"
        cells = _by_class(entry.outcome, places, where, None)
        outcome[q] = _outcomes(cells, classes, where, spellings)
    if worker_error is None:
        worker_error = _errors(found, places, outcome, source)
    shares, notes = as_shares(_prior(own, classes, source), normalise)
    made = named(
        source,
        Problem,
        classes,
        named(source, chosen_prior, classes, shares, prior),
        [entry.name for entry in found.questions],
        outcome,
        worker_error,
        texts=[entry.text for entry in found.questions],
        descriptions=descriptions,
        dash=dash or found.dash,
        normalise=normalise,
        dependence=found.dependence if dependence is None else dependence,
        loss=found.loss if loss is None else loss(classes),
    )
    return with_notes(made, [*([] if prior is not None else notes), *spellings.notes()])


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
    object.__setattr__(problem, "notes", (*notes, *twins))
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


def named(source: str, make: Callable[..., Made], *args: Any, **options: Any) -> Made:
    """Call a maker; prefix its errors with the source."""
    try:
        return make(*args, **options)
    except CrowdtreeError as error:
        raise CrowdtreeError(f"{source}: {error}") from None


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


def _by_class(cells: Any, places: dict[str, int], where: str, default: Any) -> list[Any]:
    """Put cells in the order of the classes."""
    if isinstance(cells, list):
        if len(cells) != len(places):
            raise CrowdtreeError(
                f"{where}: expected {len(places)} cells, one per class, got {len(cells)}"
            )
        return cells
    row = [default] * len(places)
    for name, cell in cells.items():
        place = places.get(name) if isinstance(name, str) else None
        if place is None:
            raise CrowdtreeError(
                f"{where}: {one_line(name)} is not a class of this problem"
                + ("" if isinstance(name, str) else "; put names in quotes")
            )
        row[place] = cell
    return row


_CODES: dict[Any, int] = {0: 0, 1: 1, -1: DASH, "0": 0, "1": 1, "-": DASH}


def _outcomes(
    cells: list[Any], classes: Sequence[str], where: str, spellings: Spellings
) -> list[int]:
    try:
        return [_CODES[cell] for cell in cells]
    except (KeyError, TypeError):
        spellings.add_outcomes(cells)
    row = []
    for name, cell in zip(classes, cells, strict=True):
        try:
            row.append(cell_code(cell))
        except KeyError:
            found = "is missing" if cell is None else f"is {one_line(cell)}"
            raise CrowdtreeError(
                f'{where}: class {one_line(name)} {found}; write 0, 1 or "-"'
            ) from None
    return row


def _errors(
    found: Any, places: dict[str, int], outcome: NDArray[np.int8], source: str
) -> NDArray[np.float64]:
    """Errors one per question if all are so, else one per cell."""
    per_cell = any(isinstance(entry.error, list | dict) for entry in found.questions)
    shape = outcome.shape if per_cell else outcome.shape[:1]
    errors = np.full(shape, np.nan)
    for q, entry in enumerate(found.questions):
        where = f"{source}: questions[{q}] ({one_line(entry.name)})"
        whole = found.worker_error if entry.error is None else entry.error
        if whole is None:
            raise CrowdtreeError(
                f"{where}: has no error; add error: to it, or worker_error: for all questions"
            )
        if isinstance(whole, float):
            errors[q] = whole
            continue
        cells = _by_class(whole, places, f"{where}.error", found.worker_error)
        for name, cell, place in zip(places, cells, range(len(cells)), strict=True):
            if cell is None and outcome[q, place] == DASH:
                continue
            if isinstance(cell, str) and 0 <= cell_number(cell) <= 1:
                cell = cell_number(cell)
            if isinstance(cell, bool) or not isinstance(cell, int | float):
                got = "is missing" if cell is None else f"is {one_line(cell)}"
                raise CrowdtreeError(
                    f"{where}.error: class {one_line(name)} {got}; write a number from 0 to 1"
                )
            errors[q, place] = cell
    return errors


def problem_to_dict(problem: Problem) -> dict[str, Any]:
    """Data of a problem as the documents hold it.

    >>> problem = Problem(["a", "b"], None, ["q"], [[0, "-"]], 0.1)
    >>> problem_to_dict(problem)["questions"]
    [{'name': 'q', 'error': 0.1, 'outcome': [0, '-']}]
    """
    shown_as: dict[int, Any] = {0: 0, 1: 1, DASH: "-"}
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
        entry["error"] = row[0] if problem.error_per_question else row
        entry["outcome"] = [shown_as[cell] for cell in problem.outcome[q].tolist()]
        questions.append(entry)
    return {
        "crowdtree": 1,
        "kind": "problem",
        "dash": problem.dash,
        **({"dependence": problem.dependence} if problem.dependence else {}),
        **({} if problem.loss is None else {"loss": problem.loss.to_dict()}),
        "classes": classes,
        "questions": questions,
    }
