"""Replay recorded answers of items of known class through a policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.errors import CrowdtreeError, listing
from crowdtree.core.likelihood import UNSURE
from crowdtree.core.outcomes import CANT_TELL, MAX_ANSWERS, answer_spellings, folded_answer
from crowdtree.policies.walk import MISSING, Answers, Round, Walk

if TYPE_CHECKING:
    from crowdtree.core.problem import Problem

__all__ = ["RecordedAnswers", "Replayed", "Sample", "by_option", "checkpoints", "replay_steps"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Sample(NamedTuple):
    """Recorded answers (items x questions x repeats; -1: none) and the class of each item.

    Of a problem with several sources: items x sources x questions x repeats. `prior` has a row per
    item, where items have their own.
    """

    values: NDArray[np.int8]
    truth: IntArray
    prior: FloatArray | None = None

    @classmethod
    def of(cls, problem: Problem, answers: Any, truth: Any = None) -> Sample:
        """Read a matrix, a ``Recorded`` or a long frame of ``task, question, label``.

        >>> from crowdtree.core.problem import Problem
        >>> problem = Problem(["a", "b"], None, ["q", "r"], [[0, 1], [1, 0]], 0.1)
        >>> Sample.of(problem, [[0, np.nan], [1, 0]], ["a", "b"]).values[:, :, 0].tolist()
        [[0, -1], [1, 0]]
        >>> long = {"task": ["x", "x", "y"], "question": ["r", "q", "q"], "label": [1, 0, 1]}
        >>> Sample.of(problem, long, {"x": "a", "y": "b"}).values[:, :, 0].tolist()
        [[0, 1], [1, -1]]
        """
        if truth is None and hasattr(answers, "truth"):
            truth = answers.truth
        if truth is None:
            raise CrowdtreeError("truth: expected the class of each item, got none")
        if hasattr(answers, "truth") and hasattr(answers, "values"):
            table = answers.values
        elif _is_frame(answers):
            table, truth = _from_long(problem, answers, truth)
        else:
            table = as_answers(answers)
        table = by_option(table, problem, "answers")
        classes = class_codes(problem, truth)
        if len(classes) != len(table):
            raise CrowdtreeError(
                f"truth: expected one class per item ({len(table)}), got {len(classes)}"
            )
        return cls(table, classes, getattr(answers, "prior", None))


def as_answers(values: Any) -> NDArray[np.int8]:
    """Answers by number; -1 (or NaN) for missing ones, -2 for "can't tell"."""
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise CrowdtreeError(
            "answers: expected a table of answers by number (0 no, 1 yes) and -1 for missing"
        ) from None
    table = np.where(np.isnan(table), MISSING, table)
    good = (table >= UNSURE) & (table < MAX_ANSWERS) & (table == np.round(table))
    if not good.all():
        raise CrowdtreeError(
            "answers: expected answers by number (0 no, 1 yes), -1 for missing, or -2 for can't "
            f"tell, got {table[~good][0]:g}"
        )
    return table.astype(np.int8)


def by_option(values: NDArray[np.int8], problem: Problem, what: str) -> NDArray[np.int8]:
    """Lay recorded answers out as items x options x repeats, and check their numbers.

    With several sources they are given as items x sources x questions x repeats.
    """
    sources, questions = len(problem.sources), problem.n_questions
    table = values[:, :, None] if values.ndim == 2 else values
    if table.ndim == 4 and table.shape[1:3] == (sources, questions):
        table = table.reshape(len(table), sources * questions, -1)
    elif table.ndim != 3 or sources > 1 or table.shape[1] != questions:
        expected = f"{questions} questions (x repeats)"
        if sources > 1:
            expected = f"{sources} sources x {questions} questions x repeats"
        raise CrowdtreeError(f"{what}: expected items x {expected}, got shape {values.shape}")
    most = table.max(axis=(0, 2), initial=MISSING)
    over = np.flatnonzero(most >= np.tile(problem.n_answers, sources))
    if len(over):
        question = int(over[0]) % questions
        numbers = f"0 to {problem.n_answers[question] - 1}"
        raise CrowdtreeError(
            f"{what}: question {problem.questions[question]!r}: expected a number from {numbers}, "
            f"-1 for missing, or -2 for can't tell, got {most[over[0]]}"
        )
    return table


def _is_frame(answers: Any) -> bool:
    names = answers if isinstance(answers, Mapping) else getattr(answers, "columns", ())
    return all(name in names for name in ("task", "question", "label"))


def _from_long(problem: Problem, frame: Any, truth: Any) -> tuple[NDArray[np.int8], list[Any]]:
    """Matrix of a long frame, and the truths in the order of its rows."""
    tasks = [str(name) for name in frame["task"]]
    names = list(dict.fromkeys(tasks))
    if not isinstance(truth, Mapping):
        raise CrowdtreeError(
            "truth: answers in rows of (task, question, label) expect a mapping from task to class"
        )
    known = {str(task): value for task, value in truth.items()}
    absent = [name for name in names if name not in known]
    if absent:
        raise CrowdtreeError(f"truth: task {absent[0]!r} has no class; give one, or leave it out")
    place = {name: row for row, name in enumerate(names)}
    several = len(problem.sources) > 1
    if several and "source" not in (frame if isinstance(frame, Mapping) else frame.columns):
        raise CrowdtreeError("answers: the problem has several sources; expected a column source")
    sources = frame["source"] if several else [None] * len(tasks)
    cells: dict[tuple[int, int, int], list[Any]] = {}
    spelled = [
        {CANT_TELL: UNSURE, "-2": UNSURE, "-1": MISSING, "nan": MISSING} | answer_spellings(row)
        for row in problem.answers
    ]
    for task, question, label, source in zip(
        tasks, frame["question"], frame["label"], sources, strict=True
    ):
        q = problem.question_index(str(question))
        number = spelled[q].get(folded_answer(label))
        if number is None:
            raise CrowdtreeError(
                f"answers: {label!r} is not an answer to question {str(question)!r}; expected "
                f"{listing(map(repr, problem.answers[q]))}"
            )
        s = problem.source_index(str(source)) if several else 0
        cells.setdefault((place[task], s, q), []).append(number)
    depth = max(map(len, cells.values()), default=1)
    table = np.full((len(names), len(problem.sources), problem.n_questions, depth), np.nan)
    for at, said in cells.items():
        table[at][: len(said)] = said
    return as_answers(table), [known[name] for name in names]


def class_codes(problem: Problem, truth: Any) -> IntArray:
    given = np.asarray(truth)
    if given.dtype.kind in "iu":
        bad = given[(given < 0) | (given >= problem.n_classes)]
        if len(bad):
            raise CrowdtreeError(
                f"truth: class {bad[0]} does not exist; the problem has {problem.n_classes}, "
                "counted from 0"
            )
        return given.astype(np.int64)
    place = {name: code for code, name in enumerate(problem.classes)}
    unknown = [str(name) for name in given.tolist() if str(name) not in place]
    if unknown:
        raise CrowdtreeError(f"truth: {unknown[0]!r} is not a class of the problem")
    return np.array([place[str(name)] for name in given.tolist()], dtype=np.int64)


class Replayed(NamedTuple):
    """States that items passed through: the item, its answers so far, its plain log posterior.

    The last state of every item is among them.
    """

    item: IntArray
    answers: IntArray
    log_posterior: FloatArray

    @property
    def weight(self) -> FloatArray:
        """Weight of each state, so that every item weighs 1."""
        return np.asarray(1 / np.bincount(self.item)[self.item])

    def last(self) -> Replayed:
        """The last state of each item."""
        place = np.zeros(int(self.item.max(initial=-1)) + 1, dtype=np.int64)
        np.maximum.at(place, self.item, np.arange(len(self.item)))
        return Replayed(self.item[place], self.answers[place], self.log_posterior[place])


def checkpoints(most: int) -> list[int]:
    """Numbers of answers at which states are kept, at most 10 % apart.

    >>> checkpoints(40)[17:]
    [18, 19, 20, 22, 24, 26, 28, 30, 33, 36, 39]
    """
    found, count = [], 1
    while count <= most:
        found.append(count)
        count += max(1, count // 10)
    return found


class RecordedAnswers:
    """Recorded answers (items x options x repeats) as a source; more repeats are missing."""

    def __init__(self, values: NDArray[np.int8], prior: FloatArray | None = None) -> None:
        self.values, self.prior = values, prior

    def answer(self, asked: Round) -> Answers:
        """Look the answers up."""
        last = self.values.shape[2] - 1
        there = asked.repeat <= last
        value = self.values[asked.row, asked.option, np.minimum(asked.repeat, last)]
        return Answers(np.where(there, value, np.int8(MISSING)), None)


def replay_steps(
    policy: Any, values: NDArray[np.int8], prior: FloatArray | None = None
) -> Replayed:
    """Run any policy item by item through its own steps, to its own end."""
    states: list[tuple[int, int, FloatArray]] = []
    source = RecordedAnswers(values, prior)
    for row, answers in enumerate(values):
        kept = set(checkpoints(int((answers != MISSING).sum())))
        walk = Walk(policy, source, row)
        while walk.label is None:
            if walk.step() is not None and walk.state.answers in kept:
                states.append((row, walk.state.answers, walk.state.log_posterior))
        if not states or states[-1][:2] != (row, walk.state.answers):
            states.append((row, walk.state.answers, walk.state.log_posterior))
    item, count, log_posterior = zip(*states, strict=True)
    return Replayed(np.array(item), np.array(count), np.array(log_posterior))
