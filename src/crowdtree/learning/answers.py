"""Answers as compact arrays: who said what about which item (docs/model.md, section 9).

A data frame, a CSV or a Parquet file becomes four integer columns sorted by item, 9 to 13 bytes per
answer. All other modules of learning work on these numbers.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import BoolArray, FloatArray
from crowdtree.core.columns import Column, Columns, read_columns
from crowdtree.core.errors import CrowdtreeError, CrowdtreeWarning, did_you_mean, listing, one_line
from crowdtree.core.outcomes import CELLS, DASH, MAX_ANSWERS
from crowdtree.core.outcomes import YES_NO as PLAIN
from crowdtree.core.problem import LINE_BREAKS
from crowdtree.core.text import plural, squeezed
from crowdtree.learning.passes import Votes, counting_sort, find_repeats
from crowdtree.learning.worker_sources import WorkerSources, column_of_sources, sources_of

Duplicates = Literal["last", "first", "all", "error"]
Choices = tuple[tuple[str, ...], ...]
IntArray = NDArray[np.int32]
MAX_LABELS = 127  # labels are kept in one byte
_TIMES_AS_COMMON = 5  # how much more common a class is than one that may be a typing error of it
_DIGITS = re.compile(r"\d+")
_WHOLE = re.compile(r"(-?\d+)\.0+")
MIN_ROWS_TO_JUDGE = 20
"""Answers from which a label column of nearly as many values is refused."""
SKIPS = frozenset(
    (
        *("", "?", "??", "???", "-", "–", "—", "n/a", "na", "n.a.", "#n/a", "nan", "null"),
        *("i don't know", "i dont know", "i do not know", "don't know", "dont know", "do not know"),
        *("idk", "dk", "dunno", "no idea", "unsure", "not sure", "i'm not sure", "im not sure"),
        *("can't tell", "cant tell", "cannot tell", "can't say", "cant say", "cannot say"),
        *("skip", "skipped", "no answer", "not answered"),
    )
)
"""Answers that say nothing: skips, not classes, in upper or lower case."""
YES_NO = {word: place for word, place in CELLS.items() if place != DASH}


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers sorted by item, with the names that the numbers stand for.

    `start` holds where the answers of each item begin (one more entry than items); `worker`,
    `question` (absent when there is one question) and `label` have one entry per answer. `label` is
    the number of a label or, of questions about the classes, of the answer in its question
    (`choices`, where some are not plain). `skips` counts the answers to each question that say
    nothing, `notes` say how the source was understood, and `task_column` what it calls the items.
    """

    tasks: NDArray[Any]
    workers: NDArray[Any]
    questions: tuple[str, ...]
    labels: tuple[str, ...]
    start: NDArray[np.int64]
    worker: IntArray
    label: NDArray[np.int8]
    question: IntArray | None = None
    notes: tuple[str, ...] = ()
    task_column: str = "task"
    choices: tuple[tuple[str, ...], ...] = ()
    skips: NDArray[np.int64] | None = None
    sources: WorkerSources | None = None

    @property
    def n_answers(self) -> int:
        """Number of answers."""
        return len(self.worker)

    @property
    def n_tasks(self) -> int:
        """Number of items."""
        return len(self.tasks)

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        return len(self.workers)

    @property
    def task(self) -> IntArray:
        """Item of each answer."""
        return np.repeat(np.arange(self.n_tasks, dtype=np.int32), np.diff(self.start))

    @property
    def votes(self) -> Votes:
        """The labels as a matrix; for answers to one question."""
        return Votes(self.start, self.worker, self.label, self.n_workers, len(self.labels))

    def items(self, chosen: NDArray[np.intp]) -> Answers:
        """Some of the items, in the order given; all workers keep their numbers."""
        if np.array_equal(chosen, np.arange(self.n_tasks)):
            return self
        length = np.diff(self.start)[chosen]
        start = np.concatenate([[0], np.cumsum(length)])
        rows = np.repeat(self.start[chosen] - start[:-1], length) + np.arange(start[-1])
        return self.taken(rows, start, tasks=self.tasks[chosen])

    def rows(self, kept: BoolArray) -> Answers:
        """Some of the answers, about all items."""
        return self.taken(kept, np.concatenate([[0], np.cumsum(kept)])[self.start])

    def taken(self, rows: NDArray[Any], start: NDArray[np.int64], **changes: Any) -> Answers:
        """Answers in these rows; `start` says where those of each item begin."""
        question = None if self.question is None else self.question[rows]
        label = self.label[rows]
        return replace(
            self, start=start, worker=self.worker[rows], label=label, question=question, **changes
        )

    def part(self, items: NDArray[np.intp], all_questions: bool) -> Answers:
        """Answers about some items, with the workers and the questions that these have alone."""
        some = self.items(items)
        met, worker = np.unique(some.worker, return_inverse=True)
        some = replace(some, workers=self.workers[met], worker=worker.astype(np.int32), skips=None)
        asked, question = np.unique(some.question_column(), return_inverse=True)
        if all_questions or len(asked) == len(self.questions):
            return some
        choices = tuple(self.choices[q] for q in asked) if self.choices else ()
        return replace(
            some,
            questions=tuple(self.questions[q] for q in asked),
            labels=self.labels[: max(map(len, choices), default=len(self.labels))],
            question=question.astype(np.int32) if len(asked) > 1 else None,
            choices=choices if set(choices) != {PLAIN} else (),
        )

    def by_worker(self, code: IntArray, workers: NDArray[Any]) -> Answers:
        """The same answers with workers numbered anew."""
        return replace(self, workers=workers, worker=code[self.worker])

    def one_each(self) -> Answers:
        """One answer per worker and item to one question: the most frequent, the latest of equals.

        >>> twice = {"task": [1] * 4, "worker": list("aaab"), "label": ["x", "y", "x", "y"]}
        >>> read_answers(twice, duplicates="all").one_each().label.tolist()
        [0, 1]
        """
        labels, workers = len(self.labels), self.n_workers
        cell = (self.task.astype(np.int64) * workers + self.worker) * labels + self.label
        key, index, count = np.unique(cell, return_inverse=True, return_counts=True)
        if len(key) == len(cell) and len(np.unique(key // labels)) == len(key):
            return self
        latest = np.zeros(len(key), np.int64)
        np.maximum.at(latest, index, np.arange(len(cell)))
        order = np.lexsort((latest, count, key // labels))
        given = key[order] // labels
        best = key[order][np.append(given[1:] != given[:-1], True)]
        task = best // labels // workers
        return replace(
            self,
            start=np.searchsorted(task, np.arange(self.n_tasks + 1)),
            worker=(best // labels % workers).astype(np.int32),
            label=(best % labels).astype(np.int8),
        )

    def question_column(self) -> IntArray:
        """Question of each answer, zeros where there is one question."""
        return np.zeros(self.n_answers, np.int32) if self.question is None else self.question

    def label_column(self) -> Column:
        """Name of each answer."""
        code, names = self.label.astype(np.int32), list(self.labels)
        if self.choices:
            first = np.cumsum([0, *map(len, self.choices)])[:-1].astype(np.int32)
            code, names = code + first[self.question_column()], [*chain(*self.choices)]
        return Column(code, names)

    def to_columns(self) -> Columns:
        """Columns ``task, worker, label`` (and ``question`` where there are several).

        >>> answers = read_answers({"task": [1, 1], "worker": ["a", "b"], "label": [0, 1]})
        >>> answers.to_columns().rows()
        [('1', 'a', '0'), ('1', 'b', '1')]
        """
        columns = {"task": Column(self.task, list(map(str, self.tasks.tolist())))}
        if len(self.questions) > 1:
            columns["question"] = Column(self.question_column(), list(self.questions))
        columns["worker"] = Column(self.worker, list(map(str, self.workers.tolist())))
        columns["label"] = self.label_column()
        if self.sources is not None:
            code = self.sources.codes(self.workers)[self.worker]
            columns["source"] = Column(code, list(self.sources.names))
        return Columns(columns, task_column=self.task_column)


def read_answers(
    source: Any,
    *,
    questions: tuple[str, ...] | None = None,
    labels: tuple[str, ...] | None = None,
    choices: Mapping[str, tuple[str, ...]] | None = None,
    duplicates: Duplicates = "last",
    columns: Mapping[str, str] | None = None,
    skip: Collection[str] = (),
    classes: Collection[str] = (),
    truths: Collection[str] = (),
    sources: Any = None,
) -> Answers:
    """Read answers from a frame, a mapping of columns, or a CSV or Parquet file.

    Source and options are as in :func:`crowdtree.learn`. `questions` and `labels` are the names
    that may occur, in their order, and `choices` the answers of each question, where some are not
    plain; by default those that occur, sorted. `classes` are spelled as here. `truths` are labels
    of the gold: no skips, whatever they look like.

    >>> answers = read_answers({"task": [2, 1, 1], "worker": ["b", "a", "b"], "label": [1, 0, 1]})
    >>> answers.tasks.tolist(), answers.start.tolist(), answers.label.tolist()
    (['1', '2'], [0, 2, 3], [0, 1, 1])
    >>> unsure = {"task": [1, 1, 1], "worker": ["a", "b", "c"], "label": ["cat", "?", "Cat"]}
    >>> read_answers(unsure).notes
    ("1 answer is a skip, not a label ('?' 1)", "spellings of a label read as one: 'Cat' as 'cat'")
    """
    if duplicates not in ("last", "first", "all", "error"):
        raise CrowdtreeError(
            f'duplicates: expected "last", "first", "all" or "error", got {duplicates!r}'
        )
    if isinstance(skip, str):
        raise CrowdtreeError(f"skip: expected a list of words, got {skip!r}; write [{skip!r}]")
    known = {*classes, *(labels or ()), *chain(*(choices or {}).values())}
    table = read_names(source, columns, skip, known, questions or (), truths)
    column, many = table.column, "question" in table
    where = table.name
    if questions is not None and len(questions) > 1 and not many:
        raise CrowdtreeError(
            f"{where}: column question is missing, and there are {len(questions)} questions "
            f"({listing(questions)}); add it, so that each answer says what was asked"
        )
    task, tasks = _codes(column["task"], None, "task", where)
    worker, workers = _codes(column["worker"], None, "worker", where)
    if many:
        asked, names = _codes(column["question"], questions, "question", where)
    else:
        asked, names = np.zeros(len(task), np.int32), np.array((questions or ("label",))[:1])
    asks = tuple(names.tolist())
    answers: Choices = ()
    if choices:
        answers = tuple(choices[name] for name in asks)
    elif labels is None and many and (questions is not None or len(names) > 1):
        plain = questions is not None
        answers = (PLAIN,) * len(asks) if plain else _met(column["label"], asked, asks, where)
    if answers:
        label = choice_codes(column["label"], asked, asks, answers, where)
        label_names = tuple(map(str, range(max(map(len, answers)))))
    else:
        label, label_names = _label_codes(column["label"], labels, where)
    return sort_answers(
        Answers(
            tasks,
            workers,
            asks,
            label_names,
            np.zeros(0, np.int64),
            worker,
            label,
            asked if many and len(names) > 1 else None,
            table.notes,
            table.task_column,
            answers if set(answers) != {PLAIN} else (),
            np.array([table.skips.get(name if many else "", 0) for name in asks]),
            sources_of(workers, table.sources if sources is None else sources),
        ),
        task,
        duplicates,
    )


def read_names(
    source: Any,
    columns: Mapping[str, str] | None = None,
    skip: Collection[str] = (),
    known: Collection[str] = (),
    questions: Collection[str] = (),
    truths: Collection[str] = (),
) -> Columns:
    """Read answers as names: one spelling each, without rows that hold no answer."""
    needed, optional = ("task", "worker", "label"), ("question", "source")
    table = read_columns(source, needed, optional, "answers", columns)
    column = {role: clean_names(table.column[role], role) for role in table}
    sources, note = dict(table.sources), ""
    if "source" in column:
        named = "source" in (columns or {})
        sources, note = column_of_sources(column["worker"], column.pop("source"), table.name, named)
    before = column["label"]
    column["label"], skipped = _without_skips(before, skip, {*known, *truths})
    skips = _skips_by_question(column, (before.code >= 0) & (column["label"].code < 0), questions)
    column, skip_note = _whole_rows(column, skipped, table.name)
    notes = [*table.notes, *filter(None, (note, skip_note))]
    column["label"] = _one_spelling(column["label"], known, "label", notes)
    if "question" in column:
        column["question"] = _one_spelling(column["question"], questions, "question", notes)
    if not len(column["task"].code):
        raise CrowdtreeError(f"{table.name}: no rows with an answer; expected at least one")
    return replace(table, column=column, notes=tuple(notes), skips=skips, sources=sources)


def _skips_by_question(
    column: dict[str, Column], skipped: BoolArray, questions: Collection[str]
) -> dict[str, int]:
    """How many answers to each question are words that say nothing; "" where there is one."""
    if "question" not in column:
        return {"": int(skipped.sum())}
    asked = _one_spelling(column["question"], questions, "question", [])
    count = np.bincount(asked.code[skipped & (asked.code >= 0)], minlength=len(asked.names))
    return dict(zip(asked.names, count.tolist(), strict=True))


def clean_names(column: Column, role: str) -> Column:
    """Names as they are compared: without blanks around them, labels and questions on one line.

    Identifiers stay as they are written. A label of 1.0, as programs write 1 beside blanks, is 1.
    """
    names = [name.strip() for name in column.names]
    if role in ("label", "question"):
        names = [re.sub(LINE_BREAKS, " ", name) for name in names]
    if role == "label":
        names = [_WHOLE.sub(r"\1", name) if _WHOLE.fullmatch(name) else name for name in names]
    return column.renamed(name or None for name in names)


def _without_skips(
    column: Column, skip: Collection[str], known: Collection[str]
) -> tuple[Column, dict[str, int]]:
    """Labels without words that say nothing, and how often each of these occurs."""
    words = SKIPS | {squeezed(word) for word in skip}
    count = column.counts().tolist()
    names: list[str | None] = list(column.names)
    skipped = {}
    for i, name in enumerate(column.names):
        if squeezed(name) in words and name not in known:
            names[i], skipped[name] = None, count[i]
    return column.renamed(names), skipped


def _whole_rows(
    column: dict[str, Column], skipped: dict[str, int], where: str
) -> tuple[dict[str, Column], str]:
    """Rows without blanks, and what to say of those that have no label.

    Of rows that lack anything else a warning says where the first is: each of them was given.
    """
    blank = {role: made.code < 0 for role, made in column.items()}
    empty = np.logical_and.reduce(list(blank.values()))
    others = [role for role in column if role != "label"]
    missing = np.logical_or.reduce([blank[role] for role in others])
    lost = np.flatnonzero(missing & ~empty)
    if len(lost):
        first = next(role for role in others if blank[role][lost[0]])
        warnings.warn(
            f"{where}: {plural(len(lost), 'answer')} left out because something is missing "
            f"(first: row {int(lost[0]) + 1} has no {first})",
            CrowdtreeWarning,
            stacklevel=4,
        )
    skips = blank["label"] & ~missing
    note = ""
    keep = ~missing & ~blank["label"]
    if skips.any():
        unlabelled = int((skips & ~empty).sum()) - sum(skipped.values())
        words = [f"blank {unlabelled}"] if unlabelled > 0 else []
        words += [f"{word!r} {count}" for word, count in skipped.items()]
        count = int(skips.sum())
        is_skip = "is a skip, not a label" if count == 1 else "are skips, not labels"
        note = f"{plural(count, 'answer')} {is_skip} ({listing(words)})"
        task = column["task"].code
        alone = len(np.setdiff1d(task[skips], task[keep]))
        if alone:
            note += f"; {plural(alone, 'item')} without any other answer left out"
    if not keep.all():
        column = {role: Column(made.code[keep], made.names) for role, made in column.items()}
    return column, note


def _one_spelling(column: Column, known: Collection[str], what: str, notes: list[str]) -> Column:
    """Give names that differ in case or blanks one spelling: a known one, or the commonest."""
    groups: dict[str, list[int]] = {}
    for i, name in enumerate(column.names):
        groups.setdefault(squeezed(name), []).append(i)
    spelled = {squeezed(name): name for name in known}
    if len(groups) == len(column.names) and not spelled:
        return column
    names, count, merged = list(column.names), column.counts(), []
    for key, places in groups.items():
        chosen = column.names[max(places, key=lambda i: int(count[i]))]
        chosen = spelled.get(key, chosen)
        others = [i for i in places if names[i] != chosen and names[i] not in known]
        if others:
            listed = sorted({repr(names[i]) for i in others if count[i]})
            merged += [f"{' and '.join(listed)} as {chosen!r}"] if listed else []
        for i in others:
            names[i] = chosen
    if merged:
        notes.append(f"spellings of a {what} read as one: {listing(merged)}")
    return column.renamed(names)


def _codes(
    column: Column, known: Sequence[str] | None, what: str, where: str
) -> tuple[IntArray, NDArray[Any]]:
    """Number the values of a column by their order (`known`, or sorted; numbers by their size)."""
    used = column.counts() > 0
    met = [name for name, is_used in zip(column.names, used, strict=True) if is_used]
    if known is None:
        names = _in_order(met)
    else:
        names = list(known)
        extra = sorted(set(met) - set(names))
        if extra:
            raise CrowdtreeError(
                f"{where}: {what} {listing(map(repr, extra))} is unknown; expected {listing(names)}"
            )
    code = {name: i for i, name in enumerate(names)}
    to = np.array([code.get(name, -1) for name in column.names], np.int32)
    return to[column.code], np.array(names, dtype=object)


def _in_order(names: list[str]) -> list[str]:
    """Names sorted; whole numbers by their size.

    >>> _in_order(["10", "9"]), _in_order(["10", "9", "09"])
    (['9', '10'], ['09', '10', '9'])
    """
    try:
        numbers = {int(name): name for name in names}
    except ValueError:
        return sorted(names)
    if all(str(number) == name for number, name in numbers.items()) and len(numbers) == len(names):
        return [numbers[number] for number in sorted(numbers)]
    return sorted(names)


def _label_codes(
    column: Column, known: Sequence[str] | None, where: str
) -> tuple[NDArray[np.int8], tuple[str, ...]]:
    count = column.counts()
    values, rows = int((count > 0).sum()), len(column.code)
    nearly_unique = rows >= MIN_ROWS_TO_JUDGE and 2 * values > rows
    if known is None and (nearly_unique or values > MAX_LABELS):
        why = "is nearly unique" if nearly_unique else f"has more than {MAX_LABELS} values"
        raise CrowdtreeError(
            f"{where}: the column of labels {why} ({values} values in {rows} rows, such as "
            f"{one_line(column.names[0])}), so it holds no labels; name the right one with "
            'columns={"label": ...} (--label)'
        )
    codes, names = _codes(column, known, "label", where)
    return codes.astype(np.int8), tuple(names.tolist())


def _met(column: Column, asked: IntArray, questions: Sequence[str], where: str) -> Choices:
    """Answers that occur to each question."""
    is_plain = np.array([name.lower() in YES_NO for name in column.names])
    if is_plain[column.counts() > 0].all():
        return (PLAIN,) * len(questions)
    answers: list[tuple[str, ...]] = []
    for q, question in enumerate(questions):
        code = column.code[asked == q]
        met = np.unique(code)
        if is_plain[met].all():
            answers.append(PLAIN)
            continue
        at = f"{where}: question {one_line(question)}"
        if 2 * is_plain[code].sum() >= len(code):
            other = met[~is_plain[met]]
            raise CrowdtreeError(
                f"{at}: label {one_line(column.names[other[0]])} of "
                f"{np.isin(code, other).sum()} answers is neither yes nor no as most others are; "
                "correct it"
            )
        names = _in_order([column.names[i] for i in met.tolist()])
        if not 2 <= len(names) <= MAX_ANSWERS:
            raise CrowdtreeError(
                f"{at}: expected 2 to {MAX_ANSWERS} different answers, got {len(names)} "
                f"(such as {one_line(names[0])}); leave the question out"
            )
        answers.append(tuple(names))
    return tuple(answers)


def choice_codes(
    column: Column, asked: IntArray, questions: Sequence[str], choices: Choices, where: str
) -> NDArray[np.int8]:
    """Number of each answer among those of its question."""
    spelled: dict[str, list[int]] = {}
    for i, name in enumerate(column.names):
        spelled.setdefault(squeezed(name), []).append(i)
    table = np.full((len(questions), max(1, len(column.names))), -1, np.int8)
    for q, names in enumerate(choices):
        words = YES_NO if names == PLAIN else {squeezed(name): i for i, name in enumerate(names)}
        for word, i in words.items():
            table[q, spelled.get(word, [])] = i
    code = table[asked, column.code]
    if (bad := np.flatnonzero(code < 0)).size:
        q, label = asked[bad[0]], column.code[bad[0]]
        count = int(((asked == q) & (column.code == label)).sum())
        raise unknown_names(
            f"{where}: question {one_line(questions[q])}: label of {plural(count, 'answer')}",
            [column.names[label]],
            choices[q],
            "correct it, or add it to the answers of the question",
        )
    return np.asarray(code)


def sort_answers(answers: Answers, task: IntArray, duplicates: Duplicates) -> Answers:
    """Sort columns by the item of each answer, and resolve answers that were given twice."""
    start, order = counting_sort(task, answers.n_tasks)
    question = answers.question_column()[order]
    ordered = answers.taken(order, start)
    if duplicates == "all":
        return ordered
    keep, twice, first = find_repeats(start, ordered.worker, question, duplicates == "last")
    if not twice:
        return ordered
    item = int(np.searchsorted(start, first, side="right")) - 1
    where = f"worker {ordered.workers[ordered.worker[first]]!s} on task {ordered.tasks[item]!s}"
    count = f"{twice} answer{'s' if twice > 1 else ''} given twice (first: {where})"
    if duplicates == "error":
        raise CrowdtreeError(
            f'answers: {count}; remove the repeats, or pass duplicates="last", "first" or "all"'
        )
    warnings.warn(f"answers: {count}; the {duplicates} one counts", CrowdtreeWarning, stacklevel=5)
    return ordered.rows(keep)


def read_gold(source: Any, columns: Mapping[str, str] | None = None) -> dict[str, str]:
    """Read known truths: columns ``task, label``, a mapping from task to label, or an audit.

    `columns` says what the answers call them; gold may use the usual names instead.

    >>> read_gold({"task": [1, 2], "label": ["cat", "dog"]})
    {'1': 'cat', '2': 'dog'}
    >>> read_gold({"t1": "cat"})
    {'t1': 'cat'}
    """
    source = _gold_columns(getattr(source, "truths", source))
    if isinstance(source, dict) and not source:
        return {}
    roles = ("task", "label")
    given = {role: name for role, name in (columns or {}).items() if role == "task"}
    try:
        table = read_columns(source, roles, (), "gold", given)
    except CrowdtreeError as problem:
        if not given or "no column" not in str(problem):
            raise
        table = read_columns(source, roles, (), "gold")
    column = {role: clean_names(table.column[role], role) for role in roles}
    labels = _one_spelling(column["label"], (), "label", []).texts()
    tasks = column["task"].texts()
    truths: dict[str, str] = {}
    for task, label in zip(tasks, labels, strict=True):
        if task and label and label.casefold() != "nan" and truths.setdefault(task, label) != label:
            raise CrowdtreeError(
                f"gold: task {task!r} is both {truths[task]!r} and {label!r}; keep one of them"
            )
    if not truths:
        raise CrowdtreeError("gold: no rows; expected at least one")
    return truths


def _gold_columns(source: Any) -> Any:
    """Write a series, or a mapping from task to label, as columns; leave the rest as it is."""
    if hasattr(source, "columns"):
        return source
    if hasattr(source, "index") and hasattr(source, "to_dict"):
        source = source.to_dict()
    elif not hasattr(source, "keys") or {"task", "label"} == set(source.keys()) - {"question"}:
        return source
    return {"task": list(source.keys()), "label": list(source.values())} if len(source) else {}


def as_yes_no(read: Answers) -> Answers:
    """Read the labels of one question as no and yes, unless it has answers of its own."""
    if read.choices or read.labels == ("0", "1"):
        return read
    code = [YES_NO.get(label.lower(), -1) for label in read.labels]
    if -1 in code:
        bad = read.labels[code.index(-1)]
        raise CrowdtreeError(
            f"answers: label {bad!r} is neither yes nor no nor a class of the gold; write 0/1, "
            "no/yes or false/true, or name the classes in the gold as in the answers"
        )
    return replace(read, labels=("0", "1"), label=np.array(code, np.int8)[read.label])


def gold_weights(answers: Answers, source: Any) -> FloatArray | None:
    """Weight of each item of an audit, 0 for the others; none where known items are all alike.

    An audit draws unsure items more often, so that they stand for fewer others.
    """
    if not hasattr(source, "truths"):
        return None
    known: dict[str, float] = source.weights
    weight = np.array([known.get(str(task), 0.0) for task in answers.tasks.tolist()])
    return np.asarray(weight * weight.sum() / max(weight @ weight, 1e-300))


def gold_codes(answers: Answers, truths: dict[str, str] | None, names: tuple[str, ...]) -> IntArray:
    """Known class of each item, -1 where unknown."""
    codes = np.full(answers.n_tasks, -1, np.int32)
    if truths is None:
        return codes
    spelled = {squeezed(name): name for name in names}
    truths = {
        task: label if label in names else spelled.get(squeezed(label), label)
        for task, label in truths.items()
    }
    extra = sorted(set(truths.values()) - set(names))
    if extra:
        task = next(task for task, label in truths.items() if label == extra[0])
        raise unknown_names(
            "gold: class",
            extra,
            names,
            f"correct it (first: task {task}) or name all classes with classes=[...] (--class)",
        )
    code = {name: i for i, name in enumerate(names)}
    for i, task in enumerate(map(str, answers.tasks.tolist())):
        if task in truths:
            codes[i] = code[truths[task]]
    if truths and not (codes >= 0).any():
        raise CrowdtreeError(
            f"gold: none of its items ({listing(map(one_line, truths), 3)}) is in the answers "
            f"({listing(map(one_line, answers.tasks), 3)}); give both the same names of items"
        )
    return codes


def unknown_names(what: str, extra: list[str], known: tuple[str, ...], fix: str) -> CrowdtreeError:
    """Say which names are unknown, what they may stand for, and what to do."""
    return CrowdtreeError(
        f"{what} {listing(map(repr, extra))} is not among {listing(map(repr, known))}"
        f"{did_you_mean(extra[0], known) or ';'} {fix}"
    )


def warn_of_typos(truths: dict[str, str]) -> None:
    """Warn of a rare class whose name is one edit away from that of a class many times as common.

    Names that differ in digits alone are numbered on purpose.

    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_of_typos({**dict.fromkeys("abcde", "dog"), "f": "dgo", "g": "class 1"})
    >>> print(caught[0].message)
    gold: class 'dgo' (1 item, such as task f) may be a typing error for 'dog' (5 items); correct
    it, or name all classes with classes=[...] (--class)
    """
    count = Counter(truths.values())
    for rare, few in count.items():
        for common, many in count.items():
            if many >= _TIMES_AS_COMMON * few and _one_edit_apart(rare, common):
                task = next(task for task, label in truths.items() if label == rare)
                warnings.warn(
                    f"gold: class {rare!r} ({plural(few, 'item')}, such as task {task}) may be a "
                    f"typing error for {common!r} ({plural(many, 'item')}); correct it, or name "
                    "all classes with classes=[...] (--class)",
                    CrowdtreeWarning,
                    stacklevel=2,
                )


def _one_edit_apart(a: str, b: str) -> bool:
    """Whether a letter less, a letter changed or two letters swapped make the names the same.

    >>> [_one_edit_apart(a, b) for a, b in (("cat", "Cat"), ("cta", "cat"), ("cats", "cat"))]
    [True, True, True]
    >>> [_one_edit_apart(a, b) for a, b in (("male", "female"), ("class 1", "class 2"))]
    [False, False]
    """
    a, b = a.casefold(), b.casefold()
    if _DIGITS.sub("0", a) == _DIGITS.sub("0", b):
        return a == b
    short, long = sorted((a, b), key=len)
    same = next(
        (i for i, (x, y) in enumerate(zip(short, long, strict=False)) if x != y), len(short)
    )
    if len(short) == len(long):
        swapped = long[:same] + long[same : same + 2][::-1] + long[same + 2 :]
        return short[same + 1 :] == long[same + 1 :] or short == swapped
    return short[same:] == long[same + 1 :]
