"""The problem: classes, prior, questions, outcomes and worker errors (MODEL section 1).

A :class:`Problem` validates itself once, when it is made. Everything behind it trusts it.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.errors import CrowdtreeError, CrowdtreeWarning, listing

__all__ = ["DASH", "Dash", "Problem"]

Dash = Literal["inapplicable", "either"]
DASH = -1
PRIOR_TOLERANCE = 1e-6
_CELLS = {"0": 0, "1": 1, "-": DASH, "-1": DASH, "–": DASH, "—": DASH, "−": DASH}


@dataclass(frozen=True, eq=False)
class Problem:
    """Classes to tell apart and yes/no questions to tell them apart with.

    Parameters
    ----------
    classes
        Names of the classes.
    prior
        How often each class occurs; positive, sums to 1. ``None`` means equally often.
    questions
        Names of the questions.
    outcome
        One row a question, one column a class: the error-free answer 0, 1 or ``-`` (also -1).
    worker_error
        Probability that one worker answers wrongly: one number, one a question, or one a cell.
    texts
        What workers are asked, one a question; the question's name where empty.
    descriptions
        What a class is, one a class; may be empty.
    dash
        What ``-`` means: ``"inapplicable"`` (the question is never asked where the class is still
        possible) or ``"either"`` (both answers are right, each half the time).
    normalise
        Scale a prior that does not sum to 1.

    Examples
    --------
    >>> problem = Problem(
    ...     classes=["robin", "eagle", "trout"],
    ...     prior=[0.5, 0.2, 0.3],
    ...     questions=["flies", "hunts"],
    ...     outcome=[[1, 1, 0], [0, 1, "-"]],
    ...     worker_error=0.1,
    ... )
    >>> problem
    Problem(3 classes x 2 questions, worker error 0.1)
    """

    classes: tuple[str, ...]
    prior: NDArray[np.float64]
    questions: tuple[str, ...]
    outcome: NDArray[np.int8]
    worker_error: NDArray[np.float64]
    texts: tuple[str, ...] = ()
    descriptions: tuple[str, ...] = ()
    dash: Dash = "inapplicable"
    normalise: bool = field(default=False, repr=False)

    def __init__(
        self,
        classes: Sequence[str],
        prior: ArrayLike | None,
        questions: Sequence[str],
        outcome: ArrayLike | Sequence[Sequence[Any]],
        worker_error: ArrayLike,
        *,
        texts: Sequence[str] | None = None,
        descriptions: Sequence[str] | None = None,
        dash: Dash = "inapplicable",
        normalise: bool = False,
    ) -> None:
        put = object.__setattr__
        put(self, "classes", _names(classes, "classes", at_least=2))
        put(self, "questions", _names(questions, "questions", at_least=1))
        put(self, "prior", _prior(prior, self.classes, normalise))
        put(self, "outcome", _outcome(outcome, self.questions, self.classes))
        put(self, "worker_error", _worker_error(worker_error, self))
        put(self, "texts", _texts(texts, self.questions, "texts", "question"))
        put(self, "descriptions", _texts(descriptions, self.classes, "descriptions", "class"))
        if dash not in get_args(Dash):
            raise CrowdtreeError(f'dash: must be "inapplicable" or "either", got {dash!r}')
        put(self, "dash", dash)
        put(self, "normalise", False)

    @classmethod
    def from_strength(
        cls,
        classes: Sequence[str],
        prior: ArrayLike | None,
        questions: Sequence[str],
        strength: ArrayLike,
        *,
        unclear: tuple[float, float] = (0.5, 0.5),
        least_error: float = 0.01,
        missing_error: float = 0.25,
        outcome: ArrayLike | None = None,
        **options: Any,
    ) -> Problem:
        """Make a problem from the share of people who say yes, one row a question.

        The outcome is the likelier answer (``-`` strictly between the two `unclear` shares) and
        the error is the share that says otherwise, at least `least_error`. A missing share (NaN)
        needs a given `outcome`, and gets `missing_error`.

        >>> made = Problem.from_strength(["cat", "cow"], None, ["big"], [[0.05, 0.98]])
        >>> made.outcome.tolist(), made.worker_error.round(2).tolist()
        ([[0, 1]], [[0.05, 0.02]])
        """
        share = np.asarray(strength, dtype=np.float64)
        if np.any((share < 0) | (share > 1)):
            raise CrowdtreeError("strength: every share must lie in [0, 1]")
        missing = np.isnan(share)
        if outcome is None:
            if missing.any():
                raise CrowdtreeError("strength: a share is missing; pass the outcome table as well")
            answers = (share >= unclear[1]).astype(np.int8)
            answers[(share > unclear[0]) & (share < unclear[1])] = DASH
        else:
            answers = _outcome(outcome, tuple(questions), tuple(classes))
        error = np.where(missing, missing_error, np.abs(answers - share))
        error = np.clip(np.where(answers == DASH, 0.5, error), least_error, 0.5)
        error = np.where((answers != DASH) & (error >= 0.5), 0.499, error)
        return cls(classes, prior, questions, answers, error, **options)

    @property
    def n_classes(self) -> int:
        """Number of classes, N."""
        return len(self.classes)

    @property
    def n_questions(self) -> int:
        """Number of questions, M."""
        return len(self.questions)

    @property
    def error_per_question(self) -> bool:
        """Whether the worker error is the same for all classes of a question."""
        return self.worker_error.strides[1] == 0

    def text(self, question: int) -> str:
        """What workers are asked: the question's text, or its name where it has none."""
        return (self.texts[question] if self.texts else "") or self.questions[question]

    def question_index(self, name: str) -> int:
        """Index of a question by its name."""
        if name not in self.questions:
            raise CrowdtreeError(
                f"question {name!r} is not in the problem, which has {listing(self.questions)}"
            )
        return self.questions.index(name)

    def replace(self, **changes: Any) -> Problem:
        """Make a copy with some arguments changed.

        >>> twins = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1)
        >>> twins.replace(worker_error=0.2).worker_error.tolist()
        [[0.2, 0.2]]
        """
        values: dict[str, Any] = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        if self.error_per_question:
            values["worker_error"] = self.worker_error[:, 0]
        return Problem(**(values | changes))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Problem):
            return NotImplemented
        return (
            self.classes == other.classes
            and self.questions == other.questions
            and self.dash == other.dash
            and self.texts == other.texts
            and self.descriptions == other.descriptions
            and np.array_equal(self.prior, other.prior)
            and np.array_equal(self.outcome, other.outcome)
            and np.array_equal(self.worker_error, other.worker_error)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        low, high = float(self.worker_error.min()), float(self.worker_error.max())
        error = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
        dash = ', dash="either"' if self.dash == "either" else ""
        size = f"{self.n_classes} classes x {self.n_questions} questions"
        return f"Problem({size}, worker error {error}{dash})"


def _names(names: Sequence[str], what: str, at_least: int) -> tuple[str, ...]:
    found = tuple(str(name).strip() for name in names)
    thing = "class" if what == "classes" else "question"
    if len(found) < at_least:
        count = "two classes" if at_least == 2 else "one question"
        raise CrowdtreeError(f"{what}: at least {count} needed, got {len(found)}")
    for place, name in enumerate(found, start=1):
        if not name:
            raise CrowdtreeError(f"{what}: {thing} {place} has no name; give it one")
    if len(set(found)) < len(found):
        seen: set[str] = set()
        twice = [name for name in found if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
        raise CrowdtreeError(
            f"{what}: {listing(repr(name) for name in dict.fromkeys(twice))} "
            "occurs more than once; names must differ"
        )
    return found


def _prior(
    prior: ArrayLike | None, classes: tuple[str, ...], normalise: bool
) -> NDArray[np.float64]:
    if prior is None:
        return _frozen(np.full(len(classes), 1 / len(classes)))
    values = _floats(prior, "prior")
    if values.shape != (len(classes),):
        raise CrowdtreeError(
            f"prior: one number a class needed ({len(classes)}), got shape {values.shape}"
        )
    for name, value in zip(classes, values.tolist(), strict=True):
        if not np.isfinite(value) or value <= 0:
            raise CrowdtreeError(
                f"prior: class {name!r} has {value:g}; every class needs a positive, finite share "
                "(leave out a class that never occurs)"
            )
    total = float(values.sum())
    if normalise:
        values = values / total
    elif abs(total - 1) > PRIOR_TOLERANCE:
        raise CrowdtreeError(
            f"prior: sums to {total:.6g}, not 1; correct it, or pass normalise=True "
            "(--normalise on the command line) to scale it"
        )
    return _frozen(values)


def _outcome(
    outcome: ArrayLike | Sequence[Sequence[Any]],
    questions: tuple[str, ...],
    classes: tuple[str, ...],
) -> NDArray[np.int8]:
    shape = (len(questions), len(classes))
    cells = outcome if isinstance(outcome, np.ndarray) else _rectangle(outcome, questions, shape)
    if cells.shape != shape:
        raise CrowdtreeError(
            f"outcome: {shape[0]} questions x {shape[1]} classes need a table of that shape, "
            f"got {cells.shape}"
        )
    if cells.dtype == np.int8 and not cells.flags.writeable:
        table = cells
    elif cells.dtype.kind in "biuf":
        with np.errstate(invalid="ignore"):
            table = cells.astype(np.int8)
        bad = np.argwhere(table != cells)
        if len(bad):
            _bad_cell(cells, bad[0], questions, classes)
    else:
        table = np.empty(shape, dtype=np.int8)
        for place in np.ndindex(*shape):
            value = _CELLS.get(_cell_text(cells[place]))
            if value is None:
                _bad_cell(cells, place, questions, classes)
            table[place] = value
    outside = np.argwhere((table < DASH) | (table > 1))
    if len(outside):
        _bad_cell(cells, outside[0], questions, classes)
    return _frozen(table)


def _cell_text(value: Any) -> str:
    if isinstance(value, float | np.floating) and value == int(value if value == value else 0):
        return str(int(value))
    return str(int(value)) if isinstance(value, bool | np.bool_) else str(value).strip()


def _bad_cell(
    cells: NDArray[Any], place: Sequence[int], questions: tuple[str, ...], classes: tuple[str, ...]
) -> None:
    value = cells[tuple(place)]
    raise CrowdtreeError(
        f"outcome: question {questions[place[0]]!r}, class {classes[place[1]]!r} "
        f"is {str(value)!r}; write 0, 1 or -"
    )


def _rectangle(
    rows: Any, questions: tuple[str, ...], shape: tuple[int, int]
) -> NDArray[Any]:
    if not hasattr(rows, "__len__") or isinstance(rows, str):
        rows = list(rows) if hasattr(rows, "__iter__") else [[rows]]
    table = [list(row) if hasattr(row, "__iter__") else [row] for row in rows]
    for number, row in enumerate(table):
        if len(row) != shape[1]:
            name = repr(questions[number]) if number < len(questions) else f"{number + 1}"
            raise CrowdtreeError(
                f"outcome: question {name} has {len(row)} cells for {shape[1]} classes"
            )
    cells = np.empty((len(table), shape[1]), dtype=object)
    for number, row in enumerate(table):
        cells[number, :] = row
    return cells


def _worker_error(worker_error: ArrayLike, problem: Problem) -> NDArray[np.float64]:
    shape = problem.outcome.shape
    given = _floats(worker_error, "worker_error")
    if given.ndim == 2 and given.shape == shape and given.strides[1] == 0:
        given = given[:, 0]  # the broadcast rows of another problem
    if given.ndim == 0:
        given = np.full(shape[0], float(given))
    if given.shape not in ((shape[0],), shape):
        raise CrowdtreeError(
            f"worker_error: give one number, one a question ({shape[0]}) or one a cell "
            f"{shape}, got shape {given.shape}"
        )
    if given.ndim == 2:
        unneeded = np.isnan(given) & (problem.outcome == DASH)
        if unneeded.any():
            given = np.where(unneeded, 0.5, given)
    bad = np.argwhere(~((given >= 0) & (given <= 1)))
    if len(bad):
        where = _place(tuple(bad[0]), problem)
        raise CrowdtreeError(
            f"worker_error: {where} has {given[tuple(bad[0])]:g}; an error is a probability, "
            "from 0 to 1"
        )
    _warn_useless(given, problem)
    if given.ndim == 1:
        return np.broadcast_to(_frozen(given)[:, None], shape)
    return _frozen(given)


def _warn_useless(given: NDArray[np.float64], problem: Problem) -> None:
    useless = given >= 0.5
    if given.ndim == 2:
        useless = useless & (problem.outcome != DASH)
    bad = np.argwhere(useless)
    if len(bad):
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        warnings.warn(
            f"worker_error: {_place(tuple(bad[0]), problem)} has {given[tuple(bad[0])]:g}{more}; "
            "from 0.5 on, more votes do not help",
            CrowdtreeWarning,
            stacklevel=5,
        )


def _place(index: tuple[int, ...], problem: Problem) -> str:
    where = f"question {problem.questions[index[0]]!r}"
    return where if len(index) == 1 else f"{where}, class {problem.classes[index[1]]!r}"


def _texts(
    texts: Sequence[str] | None, names: tuple[str, ...], what: str, thing: str
) -> tuple[str, ...]:
    found = tuple(str(text).strip() for text in texts or ())
    if found and len(found) != len(names):
        raise CrowdtreeError(f"{what}: one a {thing} needed ({len(names)}), got {len(found)}")
    return found if any(found) else ()


def _floats(values: ArrayLike, what: str) -> NDArray[np.float64]:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise CrowdtreeError(f"{what}: numbers needed, got {values!r:.80}") from None


def _frozen(values: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only copy; an array that is read-only already is taken as it is."""
    if values.flags.writeable:
        values = values.copy()
        values.flags.writeable = False
    return np.ascontiguousarray(values) if values.ndim > 1 else values
