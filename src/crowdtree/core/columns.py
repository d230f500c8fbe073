"""Tables of any kind as columns of text: CSV and Parquet files, data frames, mappings of columns.

A column is kept as a number per row and the list of its different values, so that whatever is done
to names (spelling, blanks, order) is done once per value and not once per row.
"""

from __future__ import annotations

import importlib
import io
import itertools
import os
import re
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.errors import CrowdtreeError, did_you_mean, listing
from crowdtree.core.reading import (
    MAX_TABLE,
    Source,
    cell_text,
    frame_columns,
    has_content,
    open_source,
)

IntArray = NDArray[np.int32]

_ROLES: Mapping[str, Sequence[str]] = {
    "task": (
        "task",
        "item",
        "id taskid itemid assignment:taskid hitid inputhash unitid ticket ticketid ticketnumber "
        "image imageid photo photoid picture filename document documentid docid example exampleid "
        "object objectid subject subjectid subjectids sample sampleid record recordid",
    ),
    "worker": (
        "worker",
        "workerid assignment:workerid",
        "annotator annotatorid who rater raterid user userid username person participant "
        "participantid coder labeler labeller judge reviewer contributor completedby createdby "
        "performer email",
    ),
    "label": (
        "label",
        "accept",  # Prodigy; its answer is accept or reject
        "answer truth",
        "class category response choice annotation value vote verdict decision judgment judgement "
        "rating gold groundtruth",
    ),
    "question": ("question",),
    "source": ("source", "kind"),
    "version": ("version",),
    "kind": ("kind",),
    "price": ("price",),
}
ROLES = {role: [names.split() for names in groups] for role, groups in _ROLES.items()}
"""Names by which columns are recognised, the first group that fits; without case, ``_`` and blanks.
"""
_LABEL_PREFIXES = ("answer.", "output:")  # Mechanical Turk and Toloka name the answers so
_SMALL_SIZE = 64 * 2**20  # files below this are read without a look at the free memory
_BYTES_PER_ROW = 40  # three columns as read, encoded and sorted
_BATCH = 256  # rows that are encoded together: more would leave the cache


class Column(NamedTuple):
    """A column of text: the number of the value in each row (-1: blank), and the values."""

    code: IntArray
    names: list[str]

    def texts(self) -> list[str]:
        """Text of each row, blank where there is none."""
        return list(map([*self.names, ""].__getitem__, self.code.tolist()))

    def renamed(self, names: Iterable[str | None]) -> Column:
        """The same rows with other names; equal names become one, None becomes blank.

        >>> Column(np.array([0, 1, 2], np.int32), ["a", "A", "?"]).renamed(["a", "a", None])
        Column(code=array([ 0,  0, -1], dtype=int32), names=['a'])
        """
        numbers = _Numbers()
        to = [-1 if name is None else numbers[name] for name in names]
        return Column(np.array([*to, -1], np.int32)[self.code], list(numbers))

    def counts(self) -> NDArray[np.int64]:
        """Number of rows of each name."""
        return np.bincount(self.code[self.code >= 0], minlength=len(self.names))


@dataclass(frozen=True, eq=False)
class Columns(Mapping[str, list[str]]):
    """Columns of text by name: ``task``, ``worker``, ``label``, and ``question`` if there are any.

    `gold` are the classes of items that the file itself marks as known, `notes` how it was
    understood, `task_column` what it calls the items, `name` the file or files, for messages.
    `skips` counts the answers to each question that say nothing, where these were left out;
    `sources` is that of each worker, where the answers name sources.

    >>> read = read_columns(b"task,worker,label\\n007,ann,cat\\n", ("task", "label"))
    >>> read["task"], read.rows()
    (['007'], [('007', 'cat')])
    """

    column: dict[str, Column]
    gold: Mapping[str, str] | None = None
    notes: tuple[str, ...] = ()
    task_column: str = "task"
    name: str = "answers"
    skips: Mapping[str, int] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> list[str]:
        return self.column[name].texts()

    def __iter__(self) -> Iterator[str]:
        return iter(self.column)

    def __len__(self) -> int:
        return len(self.column)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.column.values())).code)

    def rows(self) -> list[tuple[str, ...]]:
        """Return the cells of each row."""
        return list(zip(*self.values(), strict=True))

    def select(self, keep: NDArray[np.bool_]) -> Columns:
        """Some of the rows."""
        if keep.all():
            return self
        chosen = {k: Column(v.code[keep], v.names) for k, v in self.column.items()}
        return replace(self, column=chosen)


class _Numbers(dict[Any, int]):
    """Values numbered in the order in which they are met."""

    def __missing__(self, value: Any) -> int:
        number = self[value] = len(self)
        return number


# ---------------------------------------------------------------- any source


def read_columns(
    source: Any,
    needed: tuple[str, ...],
    optional: tuple[str, ...] = (),
    what: str = "answers",
    columns: Mapping[str, str] | None = None,
) -> Columns:
    """Read the named columns of anything that is a table, or of several of the same kind.

    `needed`, `optional`: which columns; see :data:`ROLES`.
    """
    roles = (*needed, *optional)
    unknown = [name for name in columns or () if name not in roles]
    if unknown:
        raise CrowdtreeError(
            f"columns: expected names for {listing(roles)}, got one for {listing(unknown)}"
        )
    if isinstance(source, list | tuple):
        parts = [read_columns(part, needed, optional, what, columns) for part in source]
        return join(parts, [_name_of(part, what) for part in source])
    if hasattr(source, "to_columns"):  # answers that were read before, or what was learned
        source = source.to_columns()
    if isinstance(source, Columns):
        table = source
    elif has_content(source):
        table = _read_file(open_source(source, f"{what}.csv"), needed, optional, columns, what)
    else:
        table = _read_frame(source, needed, optional, columns, what)
    if not table.n_rows:
        raise CrowdtreeError(f"{table.name}: no rows; expected at least one")
    return table


def _name_of(source: Any, what: str) -> str:
    return open_source(source, what).name if has_content(source) else what


def join(parts: Sequence[Columns], names: Sequence[str]) -> Columns:
    """Put several tables below each other."""
    if not parts:
        raise CrowdtreeError("answers: no file; expected at least one")
    if len(parts) == 1:
        return parts[0]
    roles = [role for role in parts[0] if role != "source" or all(role in part for part in parts)]
    for part, name in zip(parts, names, strict=True):
        for role in {*part, *parts[0]} - {"source"}:
            if role not in part or role not in parts[0]:
                has, lacks = (name, names[0]) if role in part else (names[0], name)
                raise CrowdtreeError(
                    f"{lacks}: column {role} is missing, which {has} has; add it, or read the "
                    "files one by one"
                )
    column = {}
    for role in roles:
        numbers = _Numbers()
        codes = []
        for part in parts:
            own = part.column[role]
            to = np.array([*(numbers[name] for name in own.names), -1], np.int32)
            codes.append(to[own.code])
        column[role] = Column(np.concatenate(codes), list(numbers))
    gold: dict[str, str] = {}
    for part in parts:
        gold |= part.gold or {}
    called = {part.task_column for part in parts}
    notes = [
        f"{name}: {'; '.join(part.notes)}"
        for part, name in zip(parts, names, strict=True)
        if part.notes
    ]
    task = called.pop() if len(called) == 1 else "task"
    return Columns(column, gold or None, tuple(notes), task, listing(names, 3))


# ---------------------------------------------------------------- which column is what


def find_roles(
    header: Sequence[str],
    needed: tuple[str, ...],
    optional: tuple[str, ...],
    columns: Mapping[str, str] | None,
    where: str,
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Find the place of each column that is asked for, and say what was guessed.

    Columns have the names that `columns` gives, or one of the usual names (:data:`ROLES`). In a
    table of exactly three columns, the one left over is what is missing.

    >>> roles = ("task", "worker", "label")
    >>> find_roles(["Ticket", "who", "label", "time"], roles, (), None, "a.csv")
    ({'task': 0, 'worker': 1, 'label': 2}, ("reading task from 'Ticket', worker from 'who'",))
    >>> find_roles(["x", "worker", "label"], roles, (), None, "a.csv")[0]
    {'task': 0, 'worker': 1, 'label': 2}
    """
    plain = [_plain(name) for name in header]
    found: dict[str, int] = {}
    for role in (*needed, *optional):
        place = _given(header, plain, role, (columns or {}).get(role), where)
        if place is None:
            place = _usual(header, plain, role, where)
            if role in optional and place is not None and plain[place] != role:
                continue  # another name of it, which may be what is missing
        if place is not None:
            found[role] = place
    missing = [role for role in needed if role not in found]
    left = [place for place in range(len(header)) if place not in found.values() and header[place]]
    if len(missing) == 1 and len(left) == 1 and len(header) == len(needed) == 3:
        found[missing.pop()] = left[0]
    for role in optional:
        place = None if role in found else _usual(header, plain, role, where)
        if place is not None and place not in found.values():
            found[role] = place
    if missing:
        raise CrowdtreeError(
            f"{where}: column {listing(missing)} is missing (found: "
            f"{listing(filter(None, header)) or 'none'}); {_how_to_name(header, needed)}"
        )
    roles = sorted(found, key=(*needed, *optional).index)
    twice = {role: other for role in roles for other in roles if other != role
             and found[other] == found[role]}  # fmt: skip
    if twice:
        role, other = next(iter(twice.items()))
        raise CrowdtreeError(
            f"{where}: {role} and {other} are both read from {header[found[role]]!r}; name another "
            "column"
        )
    said = [f"{r} from {header[found[r]]!r}" for r in roles if plain[found[r]] != r]
    notes = (f"reading {', '.join(said)}",) if said else ()
    return {role: found[role] for role in roles}, notes


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name.casefold())


def _given(
    header: Sequence[str], plain: Sequence[str], role: str, name: str | None, where: str
) -> int | None:
    """Place of a column that was named by the user; ``a,b`` is called one or the other."""
    if name is None:
        return None
    for wanted in (name, *(name.split(",") if "," in name and role != "question" else ())):
        for names, one in ((header, wanted.strip()), (plain, _plain(wanted))):
            places = [place for place, other in enumerate(names) if other == one]
            if len(places) > 1:
                raise CrowdtreeError(f"{where}: two columns are named {one!r}; rename one")
            if places:
                return places[0]
    raise CrowdtreeError(
        f"{where}: no column {name!r} for {role} (found: {listing(filter(None, header))})"
        f"{did_you_mean(name, header)}"
    )


def _usual(header: Sequence[str], plain: Sequence[str], role: str, where: str) -> int | None:
    """Place of the column with a usual name; raises where two have one."""
    exact = [place for place, name in enumerate(header) if name == role]
    if len(exact) == 1:
        return exact[0]
    groups = [[place for place, name in enumerate(plain) if name in names] for names in ROLES[role]]
    if role == "label":
        prefixed = [p for p, name in enumerate(plain) if name.startswith(_LABEL_PREFIXES)]
        groups.insert(3, prefixed)
    places = next((places for places in groups if places), [])
    if len(places) > 1:
        names = [repr(header[place]) for place in places]
        if len(set(names)) < len(names):
            raise CrowdtreeError(f"{where}: two columns are named {names[0]}; rename one")
        raise CrowdtreeError(
            f"{where}: {' and '.join(names[:3])} may both be the {role}; say which with "
            f"columns={{{role!r}: ...}} (--{role})"
        )
    return places[0] if places else None


def _how_to_name(header: Sequence[str], needed: tuple[str, ...]) -> str:
    if "annotations" in header:
        return "read an export of Zooniverse with crowdtree.load"
    said = f"name the columns {', '.join(needed)}, or say what they are called with columns={{...}}"
    said += f" ({', '.join(f'--{role}' for role in needed)})"
    if "worker" in needed:
        said += "; of workers with columns of their own, pass workers=[...] (--workers)"
    return said


# ---------------------------------------------------------------- files


def _read_file(
    file: Source,
    needed: tuple[str, ...],
    optional: tuple[str, ...],
    columns: Mapping[str, str] | None,
    what: str,
) -> Columns:
    """Read a file; text streams through, so that only the encoded columns are in memory."""
    if is_parquet(file):
        return _read_frame(read_parquet(file), needed, optional, columns, file.name)
    file.check(sys.maxsize)  # on disk only the memory is a limit
    head, packed = file.head(), file.is_gzip()
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"[", b"{")):
        raise CrowdtreeError(
            f"{file.name}: expected CSV or Parquet, got JSON; read it with crowdtree.load"
        )
    if file.path is not None and not packed and (size := file.path.stat().st_size) > _SMALL_SIZE:
        _check_memory(file, int(size * max(1, head.count(b"\n")) / len(head)), what)
    most = int(min(MAX_TABLE, _free_memory())) if packed else sys.maxsize
    with file.rows(most) as (_, rows):
        header = next((cells for _, cells in rows if cells), [])
        return read_rows(header, rows, needed, optional, columns, file.name)


def read_rows(
    header: Sequence[str],
    rows: Iterable[tuple[int, list[str]]],
    needed: tuple[str, ...],
    optional: tuple[str, ...],
    columns: Mapping[str, str] | None,
    where: str,
) -> Columns:
    """Read the columns that are asked for from a header and numbered rows."""
    header = [cell.strip() for cell in header]
    if not any(header):
        raise CrowdtreeError(f"{where}: it holds no header; expected a header and rows")
    places, notes = find_roles(header, needed, optional, columns, where)
    column = columns_of_rows(rows, places, len(header), where)
    called = header[places["task"]] if "task" in places else "task"
    return Columns(column, None, notes, called, where)


def columns_of_rows(
    rows: Iterable[tuple[int, list[str]]], places: Mapping[Any, int], width: int, where: str
) -> dict[Any, Column]:
    """Encode the cells of some columns, row by row; blank rows are left out.

    >>> columns_of_rows([(2, ["a", "x"]), (3, []), (4, ["b"])], {"label": 1}, 2, "a.csv")
    {'label': Column(code=array([0, 1], dtype=int32), names=['x', ''])}
    """
    numbers = [_Numbers() for _ in places]
    codes = [array("i") for _ in places]
    at = list(zip(places.values(), numbers, codes, strict=True))
    rows = iter(rows)
    while batch := list(itertools.islice(rows, _BATCH)):
        kept = [cells for _, cells in batch if len(cells) == width]
        if len(kept) < len(batch):
            kept = list(_fitted(batch, width, where))
        across = list(zip(*kept, strict=True))
        for place, number, code in at:
            code.extend(map(number.__getitem__, across[place] if across else ()))
    return {
        role: Column(np.array(code, np.int32), list(number))
        for role, number, code in zip(places, numbers, codes, strict=True)
    }


def _fitted(batch: list[tuple[int, list[str]]], width: int, where: str) -> Iterator[list[str]]:
    """Rows as long as the header; cells that are missing at the end are blank."""
    for number, cells in batch:
        if len(cells) > width and any(map(str.strip, cells[width:])):
            raise CrowdtreeError(
                f"{where}, line {number}: a row has more fields than the header ({len(cells)}, not "
                f"{width}); quote fields that hold separators"
            )
        if cells:
            yield [*cells, *[""] * (width - len(cells))][:width]


def is_parquet(file: Source) -> bool:
    """Whether the name of a file is that of a Parquet file."""
    return file.name.lower().endswith((".parquet", ".pq"))


def read_parquet(file: Source) -> Any:
    """Read a Parquet file as a frame of the library that is installed."""
    file.check(sys.maxsize)
    read: Callable[[Any], Any] | None = None
    for module, name in (("polars", "read_parquet"), ("pyarrow.parquet", "read_table")):
        with suppress(ModuleNotFoundError):
            read = read or getattr(importlib.import_module(module), name)
    if read is None:
        raise CrowdtreeError(
            f"{file.name}: Parquet needs polars or pyarrow; pip install 'crowdtree[frames]', or "
            "save the table as .csv"
        )
    try:
        return read(file.path if file.path is not None else io.BytesIO(file.read_bytes()))
    except Exception:  # each library has errors of its own
        raise CrowdtreeError(
            f"{file.name}: cannot be read (it is not a Parquet file, or it is cut short; write it "
            "again)"
        ) from None


def _check_memory(file: Source, rows: int, what: str) -> None:
    """Raise before reading a file whose encoded answers cannot fit in memory."""
    need, free = rows * _BYTES_PER_ROW, _free_memory()
    if need > free:
        raise CrowdtreeError(
            f"{file.name}: the {what} need about {need / 2**30:.1f} GB of memory and "
            f"{free / 2**30:.1f} GB are free; learn from a part of them, and add the rest with "
            "update()"
        )


def _free_memory() -> float:
    """Bytes that may still be used: the machine's, or less where a limit is set."""
    free = float("inf")
    with suppress(AttributeError, OSError, ValueError):  # not on Windows and macOS
        free = float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, IndexError, ValueError):  # Linux alone
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        free = 1024.0 * int(text.split("MemAvailable:")[1].split()[0])
    return min(free, _memory_limit())


def _memory_limit() -> float:
    """What the limits of the process leave; infinite where there are none."""
    try:
        import resource
    except ImportError:  # Windows
        return float("inf")
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    least = min((soft for soft in limits if soft != resource.RLIM_INFINITY), default=None)
    if least is None:
        return float("inf")
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        pages = 0
    return float(least - pages * resource.getpagesize())


# ---------------------------------------------------------------- frames and mappings


def _read_frame(
    source: Any,
    needed: tuple[str, ...],
    optional: tuple[str, ...],
    columns: Mapping[str, str] | None,
    where: str,
) -> Columns:
    try:
        frame = frame_columns(source, where)
    except TypeError:
        raise CrowdtreeError(
            f"{where}: expected a frame (polars, pandas, pyarrow), a mapping of columns or a CSV "
            f"or Parquet file, got {type(source).__name__}"
        ) from None
    names = list(frame)
    places, notes = find_roles([name.strip() for name in names], needed, optional, columns, where)
    column = {role: _encoded(frame[names[p]], role, where) for role, p in places.items()}
    called = names[places["task"]] if "task" in places else "task"
    return Columns(column, None, notes, called, where)


def _encoded(values: Any, role: str, where: str) -> Column:
    """Number the values of a column of a frame; the only place where they become text."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iub" and len(values):
        return _integers(values.astype(np.int8) if values.dtype == bool else values)
    numbers = _Numbers()
    try:
        # nothing equals not-a-number, so that each would have a number of its own
        code = array("i", [numbers[None if v != v else v] for v in values])
        return Column(np.array(code, np.int32), list(map(cell_text, numbers)))
    except (TypeError, ValueError):  # what is not hashable, or compares to more than yes and no
        raise CrowdtreeError(
            f"{where}: column {role} holds lists or objects; expected one name or number per row"
        ) from None


def _integers(values: NDArray[Any]) -> Column:
    """Number integers in increasing order, through a table where their range is small."""
    low, high = int(values.min()), int(values.max())
    if high < 2**63 and high - low < 4 * len(values) + 1000:
        met = np.zeros(high - low + 1, dtype=bool)
        place = values.astype(np.int64) - low
        met[place] = True
        rank = np.cumsum(met, dtype=np.int32) - np.int32(1)
        return Column(rank[place], list(map(str, (np.flatnonzero(met) + low).tolist())))
    names, codes = np.unique(values, return_inverse=True)
    return Column(codes.astype(np.int32), list(map(str, names.tolist())))
