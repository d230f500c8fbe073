"""Rows of outcomes that are names of answers: ``red``, ``brown|white`` or ``-``."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.errors import did_you_mean, listing, one_line
from crowdtree.core.outcomes import (
    CELLS,
    DASH,
    DASHES,
    MAX_ANSWERS,
    SEVERAL,
    YES_NO,
    single_answers,
)
from crowdtree.core.problem import Problem
from crowdtree.io.cells import cell_number

Names = tuple[str, ...]
_COUNT = re.compile(r"0|[1-9]\d?")
MIN_LETTERS = 4
"""Of a word that may be a typo for another."""


class BadCellError(Exception):
    """A cell that names no answer: its place in the row (`None`: the whole row), and the remedy."""

    def __init__(self, place: int | None, remedy: str) -> None:
        super().__init__(place, remedy)
        self.place, self.remedy = place, remedy


class WordRow(NamedTuple):
    """Names of the answers of a question, and the right ones for each class (none for ``-``)."""

    names: Names
    right: list[list[int]]
    notes: list[str]
    inferred: bool = False  # whether the names come from the cells

    def codes(self) -> list[int]:
        """Cells as in the table of outcomes."""
        return [DASH if not r else r[0] if len(r) == 1 else SEVERAL for r in self.right]


def read_words(cells: Sequence[Any], declared: Names | None = None) -> WordRow:
    """Read a row of words; without declared answers they come in order of first appearance.

    >>> read_words(["red", "brown|Red", "-"])[:2]
    (('red', 'brown'), [[0], [0, 1], []])
    >>> read_words(["0", "1|0"])[:2]
    (('no', 'yes'), [[0], [0, 1]])
    """
    keys = [cell if isinstance(cell, str) else place for place, cell in enumerate(cells)]
    times = Counter(keys)  # equal cells are read once
    first = {key: place for place, key in reversed(list(enumerate(keys)))}
    rows = {key: _words(cells[first[key]], first[key], declared) for key in times}
    known: dict[str, int] = {}
    if declared is not None:
        known = {_composed(name).casefold(): place for place, name in enumerate(declared)}
    if declared == YES_NO or (
        declared is None
        and all(CELLS.get(w.casefold(), -1) >= 0 for row in rows.values() for w in row)
    ):
        known, declared = {word: code for word, code in CELLS.items() if code >= 0}, YES_NO
    names = list(declared or ())
    counts = declared is None and is_counts(cells)
    spellings: dict[str, Counter[str]] = {}
    right = {}
    for cell, row in rows.items():
        place = first[cell]
        for word in row:
            key = word.casefold()
            if declared is not None and key not in known:
                raise BadCellError(place, _remedy(declared, word))
            if declared is None and not (counts or is_name(word)):
                raise BadCellError(place, _mixed(word))
            if key not in known:
                known[key] = len(names)
                names.append(word)
            spellings.setdefault(key, Counter())[word] += times[cell]
        right[cell] = sorted({known[word.casefold()] for word in row})
        if len(right[cell]) < len(row):
            raise BadCellError(place, "name every answer once")
    if len(names) > MAX_ANSWERS:
        raise BadCellError(None, f"has {len(names)} answers; expected at most {MAX_ANSWERS}")
    notes = [] if declared else _doubts(spellings)
    if len(names) == 1:
        names.append("other" if names[0].casefold() != "other" else "another")
        notes.append(f"the only answer is {one_line(names[0])}, so {names[1]} is added")
    return WordRow(tuple(names), [right[key] for key in keys], notes, not declared)


def is_counts(cells: Iterable[Any]) -> bool:
    """Whether a row is meant as whole numbers of something, and not as 0, 1 and - with a typo.

    >>> is_counts(["1", "2|3", "-"]), is_counts(["0", "1", "2", "1"]), is_counts([2, 1, 2])
    (True, False, True)
    """
    words = [part.strip() for cell in cells for part in str(cell).split("|")]
    numbers = [word for word in words if word.casefold() not in DASHES]
    if not all(_COUNT.fullmatch(word) for word in numbers):
        return False
    large = [word for word in numbers if word not in ("0", "1")]
    return len(set(large)) > 1 or (len(large) > 1 and "0" not in numbers)


def is_name(word: str) -> bool:
    """Whether a word among others names an answer: 2 may, but 0, 1 and 0.5 are suspicious."""
    return np.isnan(cell_number(word)) or bool(_COUNT.fullmatch(word) and word not in ("0", "1"))


def cell_words(problem: Problem, question: int) -> list[Any]:
    """Cells of a question as files hold them: 0, 1 and - of yes/no, else names of answers."""
    names: Sequence[Any] = problem.answers[question]
    row: list[int] = problem.outcome[question].tolist()
    if names == YES_NO:
        names = (0, 1)
    shown = {DASH: "-"} | dict(enumerate(names))
    if SEVERAL not in row:
        return [shown[cell] for cell in row]
    right = problem.right[:, question]
    return [
        "|".join(str(names[a]) for a in np.flatnonzero(right[:, c]).tolist()) if cell == SEVERAL
        else shown[cell]
        for c, cell in enumerate(row)
    ]  # fmt: skip


def join_rows(
    outcome: NDArray[np.int8], words: dict[int, WordRow], count: int
) -> tuple[NDArray[Any], list[Names | None] | None]:
    """Outcomes and answers of `count` questions, some of which are rows of words."""
    if not words:
        return outcome, None
    answers = [words[q].names if q in words else None for q in range(count)]
    if not (outcome == SEVERAL).any():
        return outcome, answers
    right = single_answers(outcome, max(2, *(len(row.names) for row in words.values())))
    for q, row in words.items():
        for c, chosen in enumerate(row.right):
            right[chosen, q, c] = True
    return right, answers


def _words(cell: Any, place: int, declared: Names | None) -> list[str]:
    """Words of a cell; none where it is a dash."""
    if isinstance(cell, bool):
        return [YES_NO[cell]]  # YAML reads a bare no as false
    parts = cell if isinstance(cell, list) else str("" if cell is None else cell).split("|")
    words = [" ".join(_composed(str(part)).split()) for part in parts]
    if len(words) == 1 and words[0].casefold() in DASHES:
        return []
    symbols = {name.casefold() for name in declared or ()}  # such as + or ?
    for word in words or [""]:
        unknown = word.casefold() not in DASHES and word.casefold() not in symbols
        if unknown and not any(letter.isalnum() for letter in word):
            if len(words) > 1:
                raise BadCellError(place, "write a name on both sides of |")
            raise BadCellError(place, _remedy(declared, word))
        if word.casefold() in DASHES:
            raise BadCellError(place, "write names of answers with | between them, or - alone")
    return words


def _composed(text: str) -> str:
    """Text in which a letter and its accent are one sign."""
    return unicodedata.normalize("NFC", text)


def _remedy(names: Names | None, word: str) -> str:
    if names is None:
        return "write 0, 1 or -, or the name of an answer"
    hint = did_you_mean(word, names)
    return f"write {listing(map(one_line, names), 8)}, several with | between them, or -{hint}"


def _mixed(word: str) -> str:
    if word in ("0", "1"):
        return "write 0, 1 or - in the whole row, or names of answers in the whole row"
    return "write names of answers or -; where numbers are names, list them in answers: 0.5|1.5"


def _doubts(spellings: dict[str, Counter[str]]) -> list[str]:
    """What may be a mistake: spellings read as one answer, and probable typos."""
    notes = [
        f"{listing(map(one_line, words))} read as one answer"
        for words in spellings.values()
        if len(words) > 1
    ]
    notes += [
        f"{word!a} has letters of two alphabets, or signs that do not show"
        for words in spellings.values()
        for word in words
        if not word.isprintable() or len(_alphabets(word)) > 1
    ]
    for key, words in spellings.items():
        if words.total() > 1 or len(key) < MIN_LETTERS or any(c.isdigit() for c in key):
            continue
        for other, more in spellings.items():
            if more.total() > 1 and _one_edit(key, other):
                notes.append(
                    f"{one_line(next(iter(words)))} occurs once; a typo for "
                    f"{one_line(next(iter(more)))}?"
                )
    return notes


def _alphabets(word: str) -> set[str]:
    """Alphabets of a word, among those with letters that look alike."""
    names = {unicodedata.name(letter, "").partition(" ")[0] for letter in word if letter.isalpha()}
    return names & {"LATIN", "CYRILLIC", "GREEK"}


def _one_edit(one: str, two: str) -> bool:
    """Whether two words differ by one letter, or by two neighbours that are exchanged."""
    while one and two and one[0] == two[0]:
        one, two = one[1:], two[1:]
    while one and two and one[-1] == two[-1]:
        one, two = one[:-1], two[:-1]
    return max(len(one), len(two)) == 1 or (len(one) == 2 and one == two[::-1])


def unused_answers(problem: Problem) -> Iterable[str]:
    """Note answers that are right for no class."""
    if problem.n_answers.max() == 2 and set(problem.answers) == {YES_NO}:
        return
    right = problem.right
    if problem.dash == "inapplicable":
        right = right & np.asarray(problem.outcome != DASH)
    used = np.asarray(right.any(axis=2))
    found = [
        f"{one_line(name)} ({listing(map(one_line, unused), 3)})"
        for q, name in enumerate(problem.questions)
        if problem.answers[q] != YES_NO
        and (unused := [a for k, a in enumerate(problem.answers[q]) if not used[k, q]])
    ]
    if found:
        yield f"answers that are right for no class: {listing(found, 3)}"
