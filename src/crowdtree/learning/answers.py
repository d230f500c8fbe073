"""Answers as compact arrays: who said what about which item (docs/model.md, section 9).

A frame (polars, pandas, pyarrow), a CSV or a Parquet file becomes four integer columns sorted by
item, 9 to 13 bytes per answer. All other modules of learning work on these numbers.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from crowdtree.errors import CrowdtreeError, CrowdtreeWarning, listing
from crowdtree.learning.frames import read_frame
from crowdtree.learning.passes import Votes, counting_sort, find_repeats
from crowdtree.problem import LINE_BREAKS
from crowdtree.text import plural

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "Answers",
    "Duplicates",
    "as_text",
    "as_yes_no",
    "gold_codes",
    "gold_weights",
    "read_answers",
    "read_gold",
    "sort_answers",
    "unknown_names",
    "warn_of_typos",
]

Duplicates = Literal["last", "first", "all", "error"]
IntArray = NDArray[np.int32]
MAX_LABELS = 127  # labels are kept in one byte
_TIMES_AS_COMMON = 5  # how much more common a class is than one that may be a typing error of it
_DIGITS = re.compile(r"\d+")
YES_NO = {"0": 0, "1": 1, "no": 0, "yes": 1, "false": 0, "true": 1, "n": 0, "y": 1}


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers sorted by item, with the names that the numbers stand for.

    `start` holds where the answers of each item begin (one more entry than items); `worker`,
    `question` (absent when there is one question) and `label` have one entry per answer.
    """

    tasks: NDArray[Any]
    workers: NDArray[Any]
    questions: tuple[str, ...]
    labels: tuple[str, ...]
    start: NDArray[np.int64]
    worker: IntArray
    label: NDArray[np.int8]
    question: IntArray | None = None

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
        from dataclasses import replace

        if np.array_equal(chosen, np.arange(self.n_tasks)):
            return self
        length = np.diff(self.start)[chosen]
        start = np.concatenate([[0], np.cumsum(length)])
        rows = np.repeat(self.start[chosen] - start[:-1], length) + np.arange(start[-1])
        return replace(
            self,
            tasks=self.tasks[chosen],
            start=start,
            worker=self.worker[rows],
            label=self.label[rows],
            question=None if self.question is None else self.question[rows],
        )

    def by_worker(self, code: IntArray, workers: NDArray[Any]) -> Answers:
        """The same answers with workers numbered anew."""
        from dataclasses import replace

        return replace(self, workers=workers, worker=code[self.worker])

    def one_each(self) -> Answers:
        """One answer per worker and item to one question: the most frequent, the latest of equals.

        >>> twice = {"task": [1] * 4, "worker": list("aaab"), "label": ["x", "y", "x", "y"]}
        >>> read_answers(twice, duplicates="all").one_each().label.tolist()
        [0, 1]
        """
        from dataclasses import replace

        labels, workers = len(self.labels), self.n_workers
        cell = (self.task.astype(np.int64) * workers + self.worker) * labels + self.label
        key, place, count = np.unique(cell, return_inverse=True, return_counts=True)
        if len(key) == len(cell) and len(np.unique(key // labels)) == len(key):
            return self
        latest = np.zeros(len(key), np.int64)
        np.maximum.at(latest, place, np.arange(len(cell)))
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

    def to_crowdkit(self) -> pl.DataFrame:
        """Frame of ``task, worker, label`` (and ``question`` where there are several).

        >>> made = read_answers({"task": [1, 1], "worker": ["a", "b"], "label": [0, 1]})
        >>> made.to_crowdkit().rows()
        [('1', 'a', '0'), ('1', 'b', '1')]
        """
        import polars as pl

        columns: dict[str, Any] = {"task": self.tasks[self.task].astype(str)}
        if len(self.questions) > 1:
            columns["question"] = np.array(self.questions)[self.question_column()]
        columns["worker"] = self.workers[self.worker].astype(str)
        columns["label"] = np.array(self.labels)[self.label]
        return pl.DataFrame(columns)


def read_answers(
    source: Any,
    *,
    questions: tuple[str, ...] | None = None,
    labels: tuple[str, ...] | None = None,
    duplicates: Duplicates = "last",
) -> Answers:
    """Read answers from a frame, a mapping of columns, or a CSV or Parquet file.

    Parameters
    ----------
    source
        Columns ``task, worker, label`` and, where there are several questions, ``question``.
    questions
        Names that may occur, in their order; the sorted names of the source otherwise.
    labels
        Labels that may occur, in their order; the sorted labels of the source otherwise.
    duplicates
        What to do when a worker answers the same question about the same item twice: count the
        ``"last"`` answer or the ``"first"`` (both say so in a warning), ``"all"``, or ``"error"``.

    Examples
    --------
    >>> made = read_answers({"task": [2, 1, 1], "worker": ["b", "a", "b"], "label": [1, 0, 1]})
    >>> made.tasks.tolist(), made.start.tolist(), made.label.tolist()
    ([1, 2], [0, 2, 3], [0, 1, 1])
    """
    if duplicates not in ("last", "first", "all", "error"):
        raise CrowdtreeError(
            f'duplicates: expected "last", "first", "all" or "error", got {duplicates!r}'
        )
    frame = read_frame(source, ("task", "worker", "label"), ("question",), "answers")
    task, tasks = _codes(frame["task"], None, "task")
    worker, workers = _codes(frame["worker"], None, "worker")
    many = "question" in frame.columns
    if questions is not None and len(questions) > 1 and not many:
        raise CrowdtreeError(
            f"answers: column question is missing, and there are {len(questions)} questions "
            f"({listing(questions)}); add it, so that each answer says what was asked"
        )
    if many:
        asked, names = _codes(frame["question"], questions, "question")
    yes_no = labels is None and many and (questions is not None or len(names) > 1)
    label, label_names = _label_codes(frame["label"], ("0", "1") if yes_no else labels, yes_no)
    del frame
    return sort_answers(
        Answers(
            tasks,
            workers,
            tuple(map(str, names)) if many else (questions or ("label",))[:1],
            label_names,
            np.zeros(0, np.int64),
            worker,
            label,
            asked if many and len(names) > 1 else None,
        ),
        task,
        duplicates,
    )


def _codes(
    column: pl.Series, known: tuple[str, ...] | None, what: str
) -> tuple[IntArray, NDArray[Any]]:
    """Number the values of a column by their order (`known`, or sorted)."""
    import polars as pl

    if column.dtype.is_integer() and column.dtype != pl.Int128 and known is None:
        return _integer_codes(column.to_numpy())
    if column.dtype.is_float() and known is None:
        whole = column.cast(pl.Int64, strict=False)
        if not whole.null_count() and bool((whole.cast(pl.Float64) == column).all()):
            return _integer_codes(whole.to_numpy())
    text = as_text(column, one_line=what in ("question", "label"))
    names = text.unique().sort().to_numpy() if known is None else np.array(known, dtype=object)
    order = pl.Enum([str(name) for name in names])
    try:
        codes = text.cast(order).to_physical().to_numpy()
    except pl.exceptions.PolarsError:
        extra = sorted(set(text.unique().to_list()) - set(map(str, names)))
        raise CrowdtreeError(
            f"{what}: {listing(map(repr, extra))} is unknown; expected {listing(map(str, names))}"
        ) from None
    return codes.astype(np.int32), names


def as_text(column: pl.Series, one_line: bool = False) -> pl.Series:
    """Write names as text: the only place where values of a table become names.

    Whole floats are written as integers, so that 1.0 and 1 are the same name, and booleans as 0
    and 1. `one_line` replaces line breaks by blanks, as in the names of a problem.

    >>> import polars as pl
    >>> as_text(pl.Series([1.0, 2.5])).to_list(), as_text(pl.Series([True])).to_list()
    (['1', '2.5'], ['1'])
    """
    import polars as pl

    if column.dtype == pl.Boolean:
        column = column.cast(pl.Int8)
    text = column.cast(pl.String).str.strip_chars()
    if column.dtype.is_float():
        whole = column.cast(pl.Int64, strict=False)
        same = (whole.cast(pl.Float64) == column).fill_null(False)
        text = whole.cast(pl.String).zip_with(same, text)
    return text.str.replace_all(LINE_BREAKS, " ") if one_line else text


def _integer_codes(values: NDArray[Any]) -> tuple[IntArray, NDArray[Any]]:
    """Number integers in increasing order, through a table where their range is small."""
    low, high = int(values.min()), int(values.max())
    if values.dtype == np.uint64 and high < 2**63:
        values = values.astype(np.int64)
    if values.dtype != np.uint64 and high - low < 4 * len(values) + 1000:
        met = np.zeros(high - low + 1, dtype=bool)
        place = values.astype(np.int64) - low
        met[place] = True
        rank = np.cumsum(met, dtype=np.int32) - np.int32(1)
        return rank[place], np.flatnonzero(met) + low
    names, codes = np.unique(values, return_inverse=True)
    return codes.astype(np.int32), names


def _label_codes(
    column: pl.Series, known: tuple[str, ...] | None, yes_no: bool
) -> tuple[NDArray[np.int8], tuple[str, ...]]:
    import polars as pl

    if yes_no:
        lower = as_text(column).str.to_lowercase()
        code = lower.replace_strict(YES_NO, default=None, return_dtype=pl.Int8)
        bad = lower.filter(code.is_null())
        if len(bad):
            raise CrowdtreeError(
                f"answers: label {bad[0]!r} of {len(bad)} answers is neither yes nor no; with "
                "several questions write 0/1, no/yes or false/true"
            )
        return code.to_numpy().astype(np.int8), ("0", "1")
    codes, names = _codes(column, known, "label")
    if len(names) > MAX_LABELS:
        raise CrowdtreeError(
            f"answers: {len(names)} different labels, at most {MAX_LABELS} are supported; "
            "is the label column the right one?"
        )
    return codes.astype(np.int8), tuple(str(name) for name in names)


def sort_answers(answers: Answers, task: IntArray, duplicates: Duplicates) -> Answers:
    """Sort columns by the item of each answer, and resolve answers that were given twice."""
    from dataclasses import replace

    start, order = counting_sort(task, answers.n_tasks)
    asked = None if answers.question is None else answers.question[order]
    made = replace(
        answers,
        start=start,
        worker=answers.worker[order],
        label=answers.label[order],
        question=asked,
    )
    if duplicates == "all":
        return made
    keep, twice, first = find_repeats(
        start, made.worker, made.question_column(), duplicates == "last"
    )
    if not twice:
        return made
    item = int(np.searchsorted(start, first, side="right")) - 1
    where = f"worker {made.workers[made.worker[first]]!s} on task {made.tasks[item]!s}"
    count = f"{twice} answer{'s' if twice > 1 else ''} given twice (first: {where})"
    if duplicates == "error":
        raise CrowdtreeError(
            f'answers: {count}; remove the repeats, or pass duplicates="last", "first" or "all"'
        )
    warnings.warn(
        f"answers: {count}; the {duplicates} one counts",
        CrowdtreeWarning,
        stacklevel=5,
    )
    kept = np.concatenate([[0], np.cumsum(keep)])[start].astype(np.int64)
    return replace(
        made,
        start=kept,
        worker=made.worker[keep],
        label=made.label[keep],
        question=None if asked is None else asked[keep],
    )


def read_gold(source: Any) -> dict[str, str]:
    """Read known truths: columns ``task, label``, a mapping from task to label, or an audit.

    >>> read_gold({"task": [1, 2], "label": ["cat", "dog"]})
    {'1': 'cat', '2': 'dog'}
    >>> read_gold({"t1": "cat"})
    {'t1': 'cat'}
    """
    source = _gold_columns(getattr(source, "truths", source))
    if isinstance(source, dict) and not source:
        return {}
    frame = read_frame(source, ("task", "label"), (), "gold")
    tasks = as_text(frame["task"]).to_list()
    labels = as_text(frame["label"], one_line=True).to_list()
    found: dict[str, str] = {}
    for task, label in zip(tasks, labels, strict=True):
        if found.setdefault(task, label) != label:
            raise CrowdtreeError(
                f"gold: task {task!r} is both {found[task]!r} and {label!r}; keep one of them"
            )
    return found


def _gold_columns(source: Any) -> Any:
    """Write a series, or a mapping from task to label, as columns; leave the rest as it is."""
    if hasattr(source, "columns"):
        return source
    if hasattr(source, "index") and hasattr(source, "to_dict"):
        source = source.to_dict()
    elif not hasattr(source, "keys") or set(map(str, source.keys())) == {"task", "label"}:
        return source
    return {"task": list(source.keys()), "label": list(source.values())} if len(source) else {}


def as_yes_no(read: Answers) -> Answers:
    """Read the labels of one question as no and yes."""
    from dataclasses import replace

    if read.labels == ("0", "1"):
        return read
    code = [YES_NO.get(label.lower(), -1) for label in read.labels]
    if -1 in code:
        bad = read.labels[code.index(-1)]
        raise CrowdtreeError(
            f"answers: label {bad!r} is neither yes nor no nor a class of the gold; write 0/1, "
            "no/yes or false/true, or name the classes in the gold as in the answers"
        )
    return replace(read, labels=("0", "1"), label=np.array(code, np.int8)[read.label])


def gold_weights(answers: Answers, source: Any) -> NDArray[np.float64] | None:
    """Weight of each item of an audit, 0 for the others; none where known items are all alike.

    An audit draws unsure items more often, so that they stand for fewer others.
    """
    if not hasattr(source, "truths"):
        return None
    found: dict[str, float] = source.weights
    made = np.array([found.get(str(task), 0.0) for task in answers.tasks.tolist()])
    return np.asarray(made * made.sum() / max(made @ made, 1e-300))


def gold_codes(answers: Answers, truths: dict[str, str] | None, names: tuple[str, ...]) -> IntArray:
    """Known class of each item, -1 where unknown."""
    codes = np.full(answers.n_tasks, -1, np.int32)
    if truths is None:
        return codes
    extra = sorted(set(truths.values()) - set(names))
    if extra:
        task = next(task for task, label in truths.items() if label == extra[0])
        raise unknown_names(
            "gold: class",
            extra,
            names,
            f"correct it (first: task {task}) or name all classes with classes=[...] (--class)",
        )
    place = {name: i for i, name in enumerate(names)}
    for i, task in enumerate(map(str, answers.tasks.tolist())):
        if task in truths:
            codes[i] = place[truths[task]]
    if truths and not (codes >= 0).any():
        raise CrowdtreeError(
            f"gold: none of its {len(truths)} tasks (such as {next(iter(truths))!r}) occurs in the "
            f"answers (such as {str(answers.tasks[0])!r}); use the same ids"
        )
    return codes


def unknown_names(what: str, extra: list[str], known: tuple[str, ...], fix: str) -> CrowdtreeError:
    """Say which names are unknown, what they may stand for, and what to do."""
    from difflib import get_close_matches

    close = get_close_matches(extra[0], known, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return CrowdtreeError(
        f"{what} {listing(map(repr, extra))} is not among {listing(map(repr, known))}; {hint}{fix}"
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
