"""Answers as compact arrays: who said what about which item (MODEL section 9).

Any frame (polars, pandas, pyarrow), CSV or Parquet becomes four integer columns sorted by item,
9 to 13 bytes an answer. Everything behind this file sees numbers only.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from crowdtree.errors import CrowdtreeError, CrowdtreeWarning, listing
from crowdtree.problem import LINE_BREAKS

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Answers", "Duplicates", "read_answers", "read_frame", "read_gold"]

Duplicates = Literal["last", "first", "all", "error"]
IntArray = NDArray[np.int32]
MAX_LABELS = 127  # labels are kept in one byte
YES_NO = {"0": 0, "1": 1, "no": 0, "yes": 1, "false": 0, "true": 1, "n": 0, "y": 1}
_SMALL_SIZE = 64 * 2**20  # files below this need no thought about memory
_CSV_ROW = 12  # bytes: the shortest likely row of an answers file


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers sorted by item, with the names that the numbers stand for.

    `start` holds where the answers of each item begin (one more entry than items); `worker`,
    `question` (absent when there is one question) and `label` are one entry an answer.
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
            f'duplicates: must be "last", "first", "all" or "error", got {duplicates!r}'
        )
    frame = read_frame(source, ("task", "worker", "label"), ("question",), "answers")
    task, tasks = _codes(frame["task"], None, "task")
    worker, workers = _codes(frame["worker"], None, "worker")
    many = "question" in frame.columns
    if many:
        asked, names = _codes(frame["question"], questions, "question")
    yes_no = labels is None and many and (questions is not None or len(names) > 1)
    label, label_names = _label_codes(frame["label"], ("0", "1") if yes_no else labels, yes_no)
    del frame
    return _sorted_by_task(
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


def read_frame(
    source: Any, needed: tuple[str, ...], optional: tuple[str, ...], what: str
) -> pl.DataFrame:
    """Read the named columns of anything that is a table; rows with a blank are left out."""
    import polars as pl

    if not isinstance(source, str | Path):
        return _select(_as_polars(source, what), needed, optional, what)
    try:
        try:
            return _select(_scan(source, what), needed, optional, what)
        except pl.exceptions.ComputeError as problem:
            if "could not parse" not in str(problem):
                raise
            # numbers at the top and text further down: read everything as text
            return _select(_scan(source, what, as_text=True), needed, optional, what)
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as problem:
        raise CrowdtreeError(
            f"{what}: {Path(source).name!r} cannot be read: {_why(str(problem), Path(source))}"
        ) from None


_REASONS = {
    "more fields": "a row has more fields than the header; quote fields that hold commas",
    "utf-8": "it is not UTF-8 text; save it as UTF-8",
    "utf8": "it is not UTF-8 text; save it as UTF-8",
    "empty": "it holds no header; a header and rows needed",
    "permission": "no permission",
}


def _why(problem: str, path: Path) -> str:
    """Say what ails a file, in words of its own rather than of the reader."""
    if path.suffix.lower() in (".parquet", ".pq"):
        return "it is no Parquet file, or cut short; write it anew"
    found = (text for key, text in _REASONS.items() if key in problem.lower())
    return next(found, "it is no CSV file with a header; save it as CSV or Parquet")


def _select(
    lazy: pl.LazyFrame, needed: tuple[str, ...], optional: tuple[str, ...], what: str
) -> pl.DataFrame:
    import polars as pl

    found = lazy.collect_schema().names()
    missing = [name for name in needed if name not in found]
    if missing:
        raise CrowdtreeError(
            f"{what}: column {listing(missing)} is missing (found: {listing(found)}); "
            f"name the columns {', '.join(needed)}"
        )
    columns = [*needed, *(name for name in optional if name in found)]
    frame = lazy.select(columns).drop_nans().drop_nulls().collect(engine="streaming")
    for name in columns:
        if frame.schema[name].is_nested() or frame.schema[name] == pl.Object:
            raise CrowdtreeError(
                f"{what}: column {name} holds lists or objects; one name or number a row needed"
            )
    if not len(frame):
        raise CrowdtreeError(f"{what}: no rows; at least one {what.rstrip('s')} needed")
    assert isinstance(frame, pl.DataFrame)
    return frame


def _scan(source: str | Path, what: str, as_text: bool = False) -> pl.LazyFrame:
    import polars as pl

    path = Path(source)
    if not path.exists():
        raise CrowdtreeError(f"{what}: no file {path.name!r} in {str(path.parent)!r}")
    if path.is_dir():
        raise CrowdtreeError(f"{what}: {path.name!r} is a folder; name the file in it")
    if path.stat().st_size == 0:
        raise CrowdtreeError(f"{what}: {path.name!r} is empty; a header and rows needed")
    _check_memory(path, what)
    if path.suffix.lower() in (".parquet", ".pq"):
        return pl.scan_parquet(path)
    with path.open("rb") as file:
        head = file.read(1024)
    if path.suffix.lower() in (".csv", ".tsv", ".txt") and b"\0" in head:
        raise CrowdtreeError(f"{what}: {path.name!r} is no text; a CSV or Parquet file needed")
    return pl.scan_csv(path, infer_schema_length=0 if as_text else 10_000)


def _check_memory(path: Path, what: str) -> None:
    """Say so before reading a file whose encoded answers cannot fit in memory."""
    size = path.stat().st_size
    if size < _SMALL_SIZE:
        return
    free = _free_memory()
    need = _rows(path, size) * 60  # three columns as read (24), encoded (9 to 13), and sorted
    if need > free:
        raise CrowdtreeError(
            f"{what}: {path.name!r} ({size / 2**30:.1f} GB) needs about {need / 2**30:.1f} GB of "
            f"memory and {free / 2**30:.1f} GB are free; learn from a part of it, and add the "
            "rest with update()"
        )


def _rows(path: Path, size: int) -> int:
    """Rows of a file: exact for Parquet, from the first rows for CSV."""
    import polars as pl

    if path.suffix.lower() in (".parquet", ".pq"):
        return int(pl.scan_parquet(path).select(pl.len()).collect().item())
    if path.suffix.lower() == ".gz":
        size *= 8
    with path.open("rb") as file:
        head = file.read(65_536)
    per_row = len(head) / max(1, head.count(b"\n"))
    return int(size / max(_CSV_ROW if path.suffix == ".gz" else 1, per_row))


def _free_memory() -> float:
    """Bytes that may still be used: the machine's, or less where a limit is set."""
    import os
    import resource

    free = float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        free = 1024.0 * int(text.split("MemAvailable:")[1].split()[0])
    except (OSError, IndexError, ValueError):  # not Linux
        pass
    for limit in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        soft = resource.getrlimit(limit)[0]
        if soft != resource.RLIM_INFINITY:
            free = min(free, soft - _used_memory())
    return free


def _used_memory() -> float:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return 0.0
    import os

    return float(pages * os.sysconf("SC_PAGE_SIZE"))


def _as_polars(source: Any, what: str) -> pl.LazyFrame:
    import narwhals as nw
    import polars as pl

    if isinstance(source, pl.LazyFrame):
        return source
    if isinstance(source, pl.DataFrame):
        return source.lazy()
    if isinstance(source, Answers):
        return source.to_crowdkit().lazy()
    if hasattr(source, "keys") and not hasattr(source, "columns"):
        _check_lengths(source, what)
    try:
        if hasattr(source, "keys") and not hasattr(source, "columns"):
            return pl.DataFrame({str(k): list(v) for k, v in source.items()}, strict=False).lazy()
        if isinstance(source, list | tuple):
            raise TypeError
        frame = nw.from_native(source, eager_only=True)
        return pl.DataFrame(
            {str(name): _column(frame[name].to_numpy()) for name in frame.columns}
        ).lazy()
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        raise CrowdtreeError(
            f"{what}: a frame (polars, pandas, pyarrow), a mapping of columns or the path of a "
            f"CSV or Parquet file needed, got {type(source).__name__}"
        ) from None


def _check_lengths(source: Any, what: str) -> None:
    sizes = {str(name): len(v) for name, v in source.items() if hasattr(v, "__len__")}
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise CrowdtreeError(f"{what}: columns of different lengths ({told}); one entry a row each")


def _column(values: NDArray[Any]) -> Any:
    """Take a column over without a copy where it is numeric; text with its blanks otherwise."""
    if values.dtype.kind in "iubf":
        return values
    return [None if value is None or value != value else str(value) for value in values.tolist()]


def _codes(
    column: pl.Series, known: tuple[str, ...] | None, what: str
) -> tuple[IntArray, NDArray[Any]]:
    """Number the values of a column by their order (`known`, or sorted)."""
    import polars as pl

    if column.dtype.is_integer() and known is None:
        return _integer_codes(column.to_numpy())
    if column.dtype.is_float() and known is None:
        whole = column.cast(pl.Int64, strict=False)
        if not whole.null_count() and bool((whole.cast(pl.Float64) == column).all()):
            return _integer_codes(whole.to_numpy())
    text = _text(column)
    if what in ("question", "label"):  # names on one line, as in a problem
        text = text.str.replace_all(LINE_BREAKS, " ")
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


def _text(column: pl.Series) -> pl.Series:
    """Write a column as text; whole floats as integers, so that 1.0 and 1 are the same label."""
    import polars as pl

    if column.dtype.is_float():
        whole = column.cast(pl.Int64, strict=False)
        if not whole.null_count() and bool((whole.cast(pl.Float64) == column).all()):
            column = whole
    if column.dtype == pl.Boolean:
        column = column.cast(pl.Int8)
    return column.cast(pl.String).str.strip_chars()


def _integer_codes(values: NDArray[Any]) -> tuple[IntArray, NDArray[Any]]:
    """Number integers in increasing order, through a table where their range is small."""
    low, high = int(values.min()), int(values.max())
    if high - low < 4 * len(values) + 1000:
        from crowdtree.learn import kernels

        return kernels.encode_range(values, low, high - low + 1)
    names, codes = np.unique(values, return_inverse=True)
    return codes.astype(np.int32), names


def _label_codes(
    column: pl.Series, known: tuple[str, ...] | None, yes_no: bool
) -> tuple[NDArray[np.int8], tuple[str, ...]]:
    import polars as pl

    if yes_no:
        lower = _text(column).str.to_lowercase()
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


def _sorted_by_task(answers: Answers, task: IntArray, duplicates: Duplicates) -> Answers:
    from dataclasses import replace

    from crowdtree.learn import kernels

    start, order = kernels.counting_sort(task, answers.n_tasks)
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
    keep, twice, first = kernels.find_repeats(
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
        f'answers: {count}; the {duplicates} one counts (duplicates="error" refuses)',
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
    """Read known truths: columns ``task, label``, or a mapping from task to label.

    >>> read_gold({"task": [1, 2], "label": ["cat", "dog"]})
    {'1': 'cat', '2': 'dog'}
    >>> read_gold({"t1": "cat"})
    {'t1': 'cat'}
    """
    if hasattr(source, "keys") and not hasattr(source, "columns"):
        keys = list(source.keys())
        if set(map(str, keys)) != {"task", "label"}:
            return _named(source)
    elif hasattr(source, "index") and hasattr(source, "to_dict") and not hasattr(source, "columns"):
        return _named(source.to_dict())
    frame = read_frame(source, ("task", "label"), (), "gold")
    tasks, labels = _text(frame["task"]).to_list(), _text(frame["label"]).to_list()
    found: dict[str, str] = {}
    for task, label in zip(tasks, labels, strict=True):
        if found.setdefault(task, label) != label:
            raise CrowdtreeError(
                f"gold: task {task!r} is both {found[task]!r} and {label!r}; keep one of them"
            )
    return found


def _named(truths: Any) -> dict[str, str]:
    """Tasks and labels as text; blanks are left out, as in a file."""
    made = {
        _name(task): _name(label)
        for task, label in truths.items()
        if label is not None and label == label
    }
    if truths and not made:
        raise CrowdtreeError(f"gold: all {len(truths)} labels are blank; at least one needed")
    return made


def _name(value: Any) -> str:
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()
