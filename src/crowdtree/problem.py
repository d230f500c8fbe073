"""The problem: classes, prior, questions, outcomes and worker errors (docs/model.md, section 1).

A :class:`Problem` is validated once, when it is made. All other code relies on that.
"""

from __future__ import annotations

import dataclasses
import os
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.checking import check_call, check_options, describe_type, got, is_number
from crowdtree.errors import CrowdtreeError, CrowdtreeWarning, listing
from crowdtree.loss import Loss, make_loss
from crowdtree.result_methods import Framed, HtmlShown, Saved

__all__ = [
    "CELLS",
    "DASH",
    "LINE_BREAKS",
    "PRIOR_TOLERANCE",
    "Dash",
    "Problem",
    "check_dependence",
    "check_names",
]

Dash = Literal["inapplicable", "either"]
DASH = -1
LINE_BREAKS = "\\s*[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]\\s*"
"""What becomes one blank in a name."""
PRIOR_TOLERANCE = 1e-6
CELLS = (
    dict.fromkeys(("0", "no", "n", "false"), 0)
    | dict.fromkeys(("1", "yes", "y", "true"), 1)
    | dict.fromkeys(("-", "-1", "–", "—", "−", "n/a", "na", "n.a.", "#n/a"), DASH)
)
"""Outcomes by their spelling, in lower case."""


@dataclass(frozen=True, eq=False)
class Problem(Framed, Saved, HtmlShown):
    """Classes, and the yes/no questions that distinguish them.

    Parameters
    ----------
    classes
        Names of the classes.
    prior
        How often each class occurs; positive, sums to 1. ``None`` means equally often.
    questions
        Names of the questions.
    outcome
        One row per question, one column per class: the error-free answer 0, 1 or ``-`` (also -1;
        yes and no, true and false, ``n/a``).
    worker_error
        Probability that one worker answers wrongly: one number, one per question, or one per cell.
    texts
        What workers are asked, one per question; the question's name where empty.
    descriptions
        What a class is, one per class; may be empty.
    dash
        What ``-`` means: ``"inapplicable"`` (the question is never asked where the class is still
        possible) or ``"either"`` (both answers are right, each half the time).
    normalise
        Scale a prior that does not sum to 1.
    dependence
        Correlation of two people's answers to one question on one item, given its class, from 0
        (independent) to below 1: how strongly people's errors coincide (:mod:`crowdtree.voting`).
    loss
        What mistakes cost, in any spelling of :func:`crowdtree.loss.make_loss`: a matrix
        ``loss[truth][label]``, or groups, pairs, confusions that must never happen, and the price
        of an expert. ``None``: every mistake costs 1 (0/1 loss).

    Attributes
    ----------
    notes
        How the file that the problem was loaded from was understood, where it was not plain
        (:func:`crowdtree.load_problem`); not part of the problem, so equality ignores it.

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
    dependence: float = 0.0
    loss: Loss | None = None
    notes: tuple[str, ...] = field(default=(), init=False, repr=False)

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
        dependence: float = 0.0,
        loss: Any = None,
    ) -> None:
        check_call(Problem, {"dash": dash, "normalise": normalise})
        put = object.__setattr__
        put(self, "classes", check_names(classes, "classes", at_least=2))
        put(self, "questions", check_names(questions, "questions", at_least=1))
        put(self, "prior", _prior(prior, self.classes, normalise))
        put(self, "outcome", _outcome(outcome, self.questions, self.classes))
        put(self, "worker_error", _worker_error(worker_error, self))
        put(self, "texts", _texts(texts, self.questions, "texts", "question"))
        put(self, "descriptions", _texts(descriptions, self.classes, "descriptions", "class"))
        put(self, "dash", dash)
        put(self, "normalise", False)
        put(self, "dependence", check_dependence(dependence, "dependence"))
        put(self, "loss", make_loss(loss, self.classes))

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
        """Make a problem from the share of people who say yes, one row per question.

        The outcome is the likelier answer (``-`` strictly between the two `unclear` shares) and
        the error is the share that says otherwise, at least `least_error`. A missing share (NaN)
        needs a given `outcome`, and gets `missing_error`.

        >>> made = Problem.from_strength(["cat", "cow"], None, ["big"], [[0.05, 0.98]])
        >>> made.outcome.tolist(), made.worker_error.round(2).tolist()
        ([[0, 1]], [[0.05, 0.02]])
        """
        check_call(Problem.from_strength, {"unclear": unclear})
        names = (check_names(questions, "questions", 1), check_names(classes, "classes", 2))
        share = _floats(strength, "strength")
        if share.shape != (len(names[0]), len(names[1])):
            raise CrowdtreeError(
                f"strength: expected {len(names[0])} questions x {len(names[1])} classes, "
                f"got {_shape(share)}"
            )
        _check_unclear(unclear)
        missing = np.isnan(share)
        bad = np.argwhere((share < 0) | (share > 1) | (missing & (outcome is None)))
        if len(bad):
            q, c = bad[0]
            value = (
                "no share; pass the outcome table as well"
                if missing[q, c]
                else (f"{share[q, c]:g}; a share lies in [0, 1]")
            )
            raise CrowdtreeError(
                f"strength: question {_quoted(names[0][q])}, class {_quoted(names[1][c])} has "
                f"{value}"
            )
        if outcome is None:
            answers = (share >= unclear[1]).astype(np.int8)
            answers[(share > unclear[0]) & (share < unclear[1])] = DASH
        else:
            answers = _outcome(outcome, *names)
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
        if not is_number(question, whole=True) or not 0 <= question < self.n_questions:
            raise CrowdtreeError(
                f"question: expected a number from 0 to {self.n_questions - 1}, got {got(question)}"
            )
        return (self.texts[question] if self.texts else "") or self.questions[question]

    def question_index(self, name: str) -> int:
        """Index of a question by its name."""
        place = self._question_places.get(name)
        if place is None:
            raise CrowdtreeError(
                f"question {_quoted(name)} is not in the problem, which has "
                f"{listing(map(_quoted, self.questions))}"
            )
        return place

    @cached_property
    def _question_places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.questions)}

    def replace(self, **changes: Any) -> Problem:
        """Make a copy with some arguments changed.

        >>> twins = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1)
        >>> twins.replace(worker_error=0.2).worker_error.tolist()
        [[0.2, 0.2]]
        """
        check_options("replace", Problem, changes, types=False)
        values: dict[str, Any] = {
            f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init
        }
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
            and self.dependence == other.dependence
            and self.loss == other.loss
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
        together = f", dependence={self.dependence:g}" if self.dependence else ""
        costs = "" if self.loss is None else f", {self.loss!r}"
        return f"Problem({size}, worker error {error}{dash}{together}{costs})"


def _instead(value: Any, call: str) -> str:
    """Say how to get a problem from what was passed in place of one."""
    if isinstance(value, str | os.PathLike):
        return f"load it first: {call}(load_problem({os.fspath(value)!r:.60}))"
    if isinstance(getattr(value, "problem", None), Problem):
        return f"pass its problem: {call}(x.problem) for a {type(value).__name__} x"
    return "make one with Problem(...) or load_problem(...)"


describe_type(Problem, "a Problem", _instead)


def check_dependence(value: float, name: str) -> float:
    """Correlation of two people's answers: a number from 0 to below 1."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not 0 <= number < 1:
        raise CrowdtreeError(f"{name}: expected a number from 0 to below 1, got {value!r}")
    return number


def check_names(names: Sequence[str], what: str, at_least: int) -> tuple[str, ...]:
    r"""Names on one line, without blanks around them; raise where one is empty or occurs twice.

    >>> check_names(["a ", "broken\nline"], "classes", at_least=2)
    ('a', 'broken line')
    """
    thing, count = ("class", "two classes") if what == "classes" else ("question", "one question")
    given = _listed(names, what, f"{thing} names")
    if len(given) < at_least:
        raise CrowdtreeError(f"{what}: expected at least {count}, got {len(given)}")
    found = tuple("" if name is None or name != name else _on_one_line(name) for name in given)
    for place, name in enumerate(found, start=1):
        if not name:
            raise CrowdtreeError(f"{what}: {thing} {place} has no name; give it one")
    if len(set(found)) < len(found):
        twice = [name for name, times in Counter(found).items() if times > 1]
        raise CrowdtreeError(
            f"{what}: {listing(_quoted(name) for name in twice)} occurs more than once; "
            "names must differ"
        )
    return found


def _on_one_line(name: object) -> str:
    return re.sub(LINE_BREAKS, " ", str(name).strip())


def _listed(values: Any, what: str, things: str) -> list[Any]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise CrowdtreeError(f"{what}: expected a list of {things}, got {_quoted(values)}")
    return list(values)


def _quoted(value: object, most: int = 40) -> str:
    """Quote a value for a message: on one line, and not too long."""
    text = str(value)
    return repr(text) if len(text) <= most else f"{text[:most]!r}..."


def _check_unclear(unclear: tuple[float, float]) -> None:
    low, high = unclear
    if not 0 <= low <= high <= 1:
        raise CrowdtreeError(
            f"unclear: expected two shares in [0, 1], the smaller first, got {low:g} and {high:g}"
        )


def _prior(
    prior: ArrayLike | None, classes: tuple[str, ...], normalise: bool
) -> NDArray[np.float64]:
    if prior is None:
        return _frozen(np.full(len(classes), 1 / len(classes)))
    values = _floats(prior, "prior")
    if values.shape != (len(classes),):
        raise CrowdtreeError(
            f"prior: expected one number per class ({len(classes)}), got {_shape(values)}"
        )
    bad = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
    if len(bad):
        raise CrowdtreeError(
            f"prior: class {_quoted(classes[bad[0]])} has {values[bad[0]]:g}; every class needs a "
            "positive, finite share (leave out a class that never occurs)"
        )
    with np.errstate(over="ignore"):
        total = float(values.sum())
    if normalise:
        values = values / values.max()  # so that the sum of large numbers stays finite
        values = values / values.sum()
        if not values.all():
            raise CrowdtreeError(
                f"prior: class {_quoted(classes[int(np.argmin(values))])} vanishes next to the "
                "others; leave it out"
            )
    elif abs(total - 1) > PRIOR_TOLERANCE:
        raise CrowdtreeError(
            f"prior: sums to {total:.6g}, not 1; correct it, or pass normalise=True "
            "(--normalise) to scale it"
        )
    return _frozen(values)


def _outcome(
    outcome: ArrayLike | Sequence[Sequence[Any]],
    questions: tuple[str, ...],
    classes: tuple[str, ...],
) -> NDArray[np.int8]:
    shape = (len(questions), len(classes))
    if hasattr(outcome, "to_numpy"):
        outcome = outcome.to_numpy()  # a data frame, whose iterator would yield column names
    cells = outcome if isinstance(outcome, np.ndarray) else _rectangle(outcome, questions, shape)
    if cells.shape != shape:
        raise CrowdtreeError(
            f"outcome: expected a table of {shape[0]} questions x {shape[1]} classes, "
            f"got {_shape(cells)}"
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
            value = CELLS.get(_cell_text(cells[place]).casefold())
            if value is None:
                _bad_cell(cells, place, questions, classes)
            table[place] = value
    outside = np.argwhere((table < DASH) | (table > 1))
    if len(outside):
        _bad_cell(cells, outside[0], questions, classes)
    return _frozen(table)


def _cell_text(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def _bad_cell(
    cells: NDArray[Any], place: Sequence[int], questions: tuple[str, ...], classes: tuple[str, ...]
) -> NoReturn:
    raise CrowdtreeError(
        f"outcome: question {_quoted(questions[place[0]])}, class {_quoted(classes[place[1]])} "
        f"is {_quoted(cells[tuple(place)])}; write 0, 1 or -"
    )


def _rectangle(rows: Any, questions: tuple[str, ...], shape: tuple[int, int]) -> NDArray[Any]:
    if not hasattr(rows, "__len__") or isinstance(rows, str):
        rows = list(rows) if hasattr(rows, "__iter__") else [[rows]]
    table = [list(row) if hasattr(row, "__iter__") else [row] for row in rows]
    for number, row in enumerate(table):
        if len(row) != shape[1]:
            name = _quoted(questions[number]) if number < len(questions) else f"{number + 1}"
            raise CrowdtreeError(
                f"outcome: question {name}: expected one per class ({shape[1]}), got {len(row)}"
            )
    cells = np.empty((len(table), shape[1]), dtype=object)
    for number, row in enumerate(table):
        cells[number, :] = row
    return cells


def _worker_error(worker_error: ArrayLike, problem: Problem) -> NDArray[np.float64]:
    shape = problem.outcome.shape
    given = _floats(worker_error, "worker_error")
    if given.ndim == 0 and not 0 <= given <= 1:
        raise CrowdtreeError(f"worker_error: expected a probability from 0 to 1, got {given:g}")
    if given.ndim == 2 and given.shape == shape and given.strides[1] == 0:
        given = given[:, 0]  # the broadcast rows of another problem
    if given.ndim == 0:
        given = np.full(shape[0], float(given))
    if given.shape not in ((shape[0],), shape):
        raise CrowdtreeError(
            f"worker_error: expected one number, one per question ({shape[0]}) or one per cell "
            f"({shape[0]} x {shape[1]}), got {_shape(given)}"
        )
    if given.ndim == 2:
        unneeded = np.isnan(given) & (problem.outcome == DASH)
        if unneeded.any():
            given = np.where(unneeded, 0.5, given)
    bad = np.argwhere(~((given >= 0) & (given <= 1)))
    if len(bad):
        value = given[tuple(bad[0])]
        needed = "is missing; expected" if np.isnan(value) else f"has {value:g}; expected"
        raise CrowdtreeError(
            f"worker_error: {_place(tuple(bad[0]), problem)} {needed} a probability from 0 to 1"
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
            "at an error of 0.5 or more, additional votes do not help",
            CrowdtreeWarning,
            stacklevel=5,
        )


def _place(index: tuple[int, ...], problem: Problem) -> str:
    where = f"question {_quoted(problem.questions[index[0]])}"
    return where if len(index) == 1 else f"{where}, class {_quoted(problem.classes[index[1]])}"


def _texts(
    texts: Sequence[str] | None, names: tuple[str, ...], what: str, thing: str
) -> tuple[str, ...]:
    given = [] if texts is None else _listed(texts, what, what)
    if given and len(given) != len(names):
        raise CrowdtreeError(f"{what}: expected one per {thing} ({len(names)}), got {len(given)}")
    found = tuple("" if text is None else str(text).strip() for text in given)
    return found if any(found) else ()


def _floats(values: ArrayLike, what: str) -> NDArray[np.float64]:
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
        return f"expected numbers, got {_quoted(values)}"
    rows = list(values)
    lengths = {len(row) for row in rows if hasattr(row, "__len__") and not isinstance(row, str)}
    if len(lengths) > 1:
        return f"expected rows of equal length, got rows of {min(lengths)} and of {max(lengths)}"
    for place, row in enumerate(rows, start=1):
        for value in row if hasattr(row, "__iter__") and not isinstance(row, str) else [row]:
            try:
                float(value)
            except (TypeError, ValueError, OverflowError):
                return f"expected numbers, got {_quoted(value)} at position {place}"
    return "expected one number, a list or a table of numbers"


def _shape(values: NDArray[Any]) -> str:
    """Describe the size of an array: ``3 x 2``, ``5`` or ``one number``."""
    return " x ".join(map(str, values.shape)) or "one number"


def _frozen(values: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only copy; an array that is read-only already is taken as it is."""
    if values.flags.writeable:
        values = values.copy()
        values.flags.writeable = False
    return np.ascontiguousarray(values) if values.ndim > 1 else values
