"""Answers of questions, and which of them are right for each class (docs/model.md, section 12).

A cell of the outcome table is the index of the one right answer, ``DASH``, or ``SEVERAL`` where
several answers are right; then the table of right answers, ``right[answer, question, class]``,
says which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.errors import CrowdtreeError, did_you_mean, listing

DASH = -1
SEVERAL = -2
YES_NO = ("no", "yes")
MAX_ANSWERS = 32
DASHES = ("-", "-1", "–", "—", "−", "n/a", "na", "n.a.", "#n/a")
CELLS = (
    dict.fromkeys(("0", "no", "n", "false"), 0)
    | dict.fromkeys(("1", "yes", "y", "true"), 1)
    | dict.fromkeys(DASHES, DASH)
)
"""Outcomes of a yes/no question by their spelling, in lower case."""
CANT_TELL = "can't tell"
"""What a worker may answer to any question."""
Names = tuple[str, ...]


class Outcomes(NamedTuple):
    """The outcome table, and the table of right answers where a cell has several."""

    outcome: NDArray[np.int8]
    right: NDArray[np.bool_] | None


def check_answers(answers: Any, questions: Names) -> tuple[Names, ...]:
    """Names of the answers of each question; ``None`` means no and yes.

    >>> check_answers([None, ["red", "brown", "white"]], ("flies", "cap"))
    (('no', 'yes'), ('red', 'brown', 'white'))
    """
    if answers is None:
        return (YES_NO,) * len(questions)
    if isinstance(answers, Mapping):
        unknown = [name for name in answers if name not in questions]
        if unknown:
            raise CrowdtreeError(
                f"answers: {listing(map(quoted, unknown))} is not a question; the problem has "
                f"{listing(map(quoted, questions))}"
            )
        answers = [answers.get(name) for name in questions]
    if isinstance(answers, str) or not hasattr(answers, "__iter__"):
        raise CrowdtreeError(
            f"answers: expected a list of names for each question, got {quoted(answers)}"
        )
    rows = list(answers)
    if len(rows) != len(questions):
        raise CrowdtreeError(
            f"answers: expected one per question ({len(questions)}), got {len(rows)}"
        )
    return tuple(_names(row, name) for row, name in zip(rows, questions, strict=True))


def _names(row: Any, question: str) -> Names:
    if row is None:
        return YES_NO
    place = f"answers: question {quoted(question)}"
    if isinstance(row, str) or not hasattr(row, "__iter__"):
        raise CrowdtreeError(f"{place}: expected a list of names, got {quoted(row)}")
    if isinstance(row, set | frozenset):
        raise CrowdtreeError(f"{place}: expected a list of names, got a set, which has no order")
    names = tuple(_name(name, place) for name in row)
    if not 2 <= len(names) <= MAX_ANSWERS:
        raise CrowdtreeError(f"{place}: expected 2 to {MAX_ANSWERS} answers, got {len(names)}")
    folded = [name.casefold() for name in names]
    twice = [name for name, key in zip(names, folded, strict=True) if folded.count(key) > 1]
    if twice:
        raise CrowdtreeError(f"{place}: {listing(map(quoted, twice))} occurs more than once")
    return YES_NO if tuple(folded) == YES_NO else names


def _name(value: Any, place: str) -> str:
    """Name of an answer, as it is written in cells."""
    if isinstance(value, bytes) or (hasattr(value, "__iter__") and not isinstance(value, str)):
        raise CrowdtreeError(f"{place}: expected a name for each answer, got {quoted(value)}")
    name = "" if value is None or value != value else " ".join(str(value).split())
    if not name:
        raise CrowdtreeError(f"{place}: an answer has no name; give it one")
    if "|" in name:
        raise CrowdtreeError(f"{place}: {quoted(name)} contains |, which separates answers")
    if name.casefold() in DASHES:
        raise CrowdtreeError(f"{place}: {quoted(name)} means that no answer applies; rename it")
    if folded_answer(name) == CANT_TELL:
        raise CrowdtreeError(
            f"{place}: {quoted(name)} may be said to any question; leave it out, or set unsure"
        )
    return name


def folded_answer(word: object) -> str:
    """Spelling of an answer in which case, blanks and the kind of apostrophe do not matter.

    >>> folded_answer("Can’t  tell"), folded_answer(2.0)
    ("can't tell", '2')
    """
    text = str(word) if isinstance(word, bool | np.bool_) else _cell_text(word)
    return text.replace("’", "'").casefold()


def answer_spellings(names: Names) -> dict[str, int]:
    """Number of each answer by its name, and by that number unless names are numbers themselves.

    >>> answer_spellings(("red", "brown")), answer_spellings(("2", "4"))
    ({'0': 0, '1': 1, 'red': 0, 'brown': 1}, {'2': 0, '4': 1})
    """
    if names == YES_NO:
        return {word: code for word, code in CELLS.items() if code != DASH}
    numbers = {str(place): place for place in range(len(names))}
    if any(_is_number(name) for name in names):
        numbers = {}
    return numbers | {folded_answer(name): place for place, name in enumerate(names)}


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def read_outcome(
    outcome: Any, answers: tuple[Names, ...], questions: Names, classes: Names
) -> Outcomes:
    """Read a table of outcomes in any of its forms.

    The forms: cells as in :class:`crowdtree.Problem`; an array of answer indices (-1 for ``-``); an
    array ``right[answer, question, class]``, in which a cell without a right answer is ``-``.
    """
    shape = (len(questions), len(classes))
    if hasattr(outcome, "to_numpy"):
        outcome = outcome.to_numpy()  # a data frame, whose iterator would yield column names
    if isinstance(outcome, np.ndarray) and outcome.ndim == 3:
        return _from_right(outcome, answers, questions, classes)
    cells = outcome if isinstance(outcome, np.ndarray) else _rectangle(outcome, questions, shape)
    if cells.shape != shape:
        raise CrowdtreeError(
            f"outcome: expected a table of {shape[0]} questions x {shape[1]} classes, "
            f"got {shape_text(cells)}"
        )
    if cells.dtype == np.int8 and not cells.flags.writeable:
        return _checked(cells, cells, answers, questions, classes)
    if cells.dtype.kind in "biuf":
        with np.errstate(invalid="ignore"):
            table = cells.astype(np.int8)
        bad = np.argwhere(table != cells)
        if len(bad):
            _bad_cell(cells, bad[0], answers, questions, classes)
        return _checked(table, cells, answers, questions, classes)
    return _from_words(cells, answers, questions, classes)


def _checked(
    table: NDArray[np.int8],
    cells: NDArray[Any],
    answers: tuple[Names, ...],
    questions: Names,
    classes: Names,
) -> Outcomes:
    most = np.array([len(names) for names in answers])[:, None]
    outside = np.argwhere((table < DASH) | (table >= most))
    if len(outside):
        _bad_cell(cells, outside[0], answers, questions, classes)
    return Outcomes(table, None)


def _from_words(
    cells: NDArray[Any], answers: tuple[Names, ...], questions: Names, classes: Names
) -> Outcomes:
    table = np.empty(cells.shape, dtype=np.int8)
    several: dict[tuple[int, int], list[int]] = {}
    for q, names in enumerate(answers):
        known = CELLS if names == YES_NO else _spellings(names)
        for c in range(cells.shape[1]):
            values = [known.get(text) for text in _cell_texts(cells[q, c])]
            if None in values or (len(values) > 1 and DASH in values):
                _bad_cell(cells, (q, c), answers, questions, classes)
            chosen = sorted({value for value in values if value is not None})
            if len(chosen) < len(values):
                _bad_cell(cells, (q, c), answers, questions, classes, "name every answer once")
            table[q, c] = chosen[0] if len(chosen) == 1 else SEVERAL
            if len(chosen) > 1:
                several[q, c] = chosen
    if not several:
        return Outcomes(table, None)
    right = single_answers(table, max(map(len, answers)))
    for (q, c), chosen in several.items():
        right[chosen, q, c] = True
    return Outcomes(table, right)


def single_answers(outcome: NDArray[np.int8], most: int) -> NDArray[np.bool_]:
    """Table of right answers, ``right[answer, question, class]``, of cells with one each."""
    return np.asarray(outcome[None] == np.arange(most, dtype=np.int8)[:, None, None])


def _from_right(
    right: NDArray[Any], answers: tuple[Names, ...], questions: Names, classes: Names
) -> Outcomes:
    most = max(map(len, answers))
    shape = (most, len(questions), len(classes))
    if right.shape != shape or right.dtype != np.bool_:
        raise CrowdtreeError(
            f"outcome: expected a table of {shape[0]} answers x {shape[1]} questions x {shape[2]} "
            f"classes of true and false, got {shape_text(right)} of {right.dtype}"
        )
    for q, names in enumerate(answers):
        if right[len(names) :, q].any():
            raise CrowdtreeError(
                f"outcome: question {quoted(questions[q])} has {len(names)} answers, got a right "
                "answer beyond these"
            )
    count = right.sum(axis=0)
    table = np.where(count == 1, right.argmax(axis=0), np.where(count == 0, DASH, SEVERAL))
    return Outcomes(table.astype(np.int8), right.copy() if (count > 1).any() else None)


def _spellings(names: Names) -> dict[str, int]:
    return {name.casefold(): place for place, name in enumerate(names)} | dict.fromkeys(
        DASHES, DASH
    )


def _cell_texts(value: Any) -> list[str]:
    """Spellings of the right answers of a cell: one, or several with | between them."""
    if isinstance(value, list | tuple | set | frozenset):
        return [_cell_text(part).casefold() for part in value] or [""]
    return [part.strip().casefold() for part in _cell_text(value).split("|")]


def _cell_text(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return " ".join(str(value).split())


def _bad_cell(
    cells: NDArray[Any],
    place: Sequence[int],
    answers: tuple[Names, ...],
    questions: Names,
    classes: Names,
    hint: str = "",
) -> NoReturn:
    value = cells[tuple(place)]
    raise CrowdtreeError(
        f"outcome: question {quoted(questions[place[0]])}, class {quoted(classes[place[1]])} "
        f"is {quoted(value)}; {hint or _hint(answers[place[0]], value)}"
    )


def _hint(names: Names, value: Any) -> str:
    if names == YES_NO:
        if any(text.isalpha() for text in _cell_texts(value)) and isinstance(value, str):
            return "write 0, 1 or -, or list the names of the answers in answers"
        return "write 0, 1 or -"
    unknown = (text for text in _cell_texts(value) if text not in _spellings(names))
    meant = next(filter(None, (did_you_mean(text, names) for text in unknown)), "")
    return f"expected {listing(map(quoted, names), 8)}, several of them with | between, or -{meant}"


def _rectangle(rows: Any, questions: Names, shape: tuple[int, int]) -> NDArray[Any]:
    if not hasattr(rows, "__len__") or isinstance(rows, str):
        rows = list(rows) if hasattr(rows, "__iter__") else [[rows]]
    table = [list(row) if hasattr(row, "__iter__") else [row] for row in rows]
    for number, row in enumerate(table):
        if len(row) != shape[1]:
            name = quoted(questions[number]) if number < len(questions) else f"{number + 1}"
            raise CrowdtreeError(
                f"outcome: question {name}: expected one per class ({shape[1]}), got {len(row)}"
            )
    cells = np.empty((len(table), shape[1]), dtype=object)
    for number, row in enumerate(table):
        for column, value in enumerate(row):  # a cell may be a list of answers
            cells[number, column] = value
    return cells


def quoted(value: object, most: int = 40) -> str:
    """Quote a value for a message: on one line, and not too long."""
    text = str(value)
    return repr(text) if len(text) <= most else f"{text[:most]!r}..."


def shape_text(values: NDArray[Any]) -> str:
    """Describe the size of an array: ``3 x 2``, ``5`` or ``one number``."""
    return " x ".join(map(str, values.shape)) or "one number"
