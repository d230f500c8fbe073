"""Tables of any kind as polars frames: CSV and Parquet files, frames, mappings of columns."""

from __future__ import annotations

import io
import os
import re
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from crowdtree.errors import CrowdtreeError, CrowdtreeWarning, listing
from crowdtree.reading import MOST_TABLE, Source, has_content, open_source, separator_of
from crowdtree.text import plural

if TYPE_CHECKING:
    import polars as pl

__all__ = ["read_frame", "why_unreadable"]

_SMALL_SIZE = 64 * 2**20  # files below this are read without a look at the free memory
_BYTES_PER_ROW = 60  # three columns as read (24), encoded (9 to 13), and sorted


def read_frame(
    source: Any, needed: tuple[str, ...], optional: tuple[str, ...], what: str
) -> pl.DataFrame:
    """Read the named columns of anything that is a table.

    Rows with a blank are left out, which a warning says of answers: each of them was given. Gold
    may be blank where it is not known.
    """
    import polars as pl

    if not has_content(source):
        return _select(_as_polars(source, what), needed, optional, what)
    file = open_source(source, f"{what}.csv")
    try:
        table = _Table(file, what)
        try:
            lazy = table.scan()
            if table.numbers_are_names(lazy, (*needed, *optional)):
                lazy = table.scan(as_text=True)
            return _select(lazy, needed, optional, what)
        except pl.exceptions.ComputeError as problem:
            if "could not parse" not in str(problem):
                raise
            # numbers at the top and text further down: read everything as text
            return _select(table.scan(as_text=True), needed, optional, what)
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as problem:
        why = why_unreadable(str(problem), _is_parquet(file))
        raise CrowdtreeError(f"{file.name}: cannot be read ({why})") from None


class _Table:
    """A CSV or Parquet file for polars, which streams files on disk and takes the rest as bytes."""

    def __init__(self, file: Source, what: str) -> None:
        import polars as pl

        file.check(sys.maxsize)  # on disk only the memory is a limit
        self.content: Path | bytes
        self.parquet = _is_parquet(file)
        if self.parquet:
            self.content = file.path or file.read_bytes()
            rows = int(pl.scan_parquet(self._input()).select(pl.len()).collect().item())
            _check_memory(file, rows, what)
            return
        head = file.head()
        if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"[", b"{")):
            raise CrowdtreeError(
                f"{file.name}: expected CSV or Parquet, got JSON; read an export of Label Studio "
                "with crowdtree.load"
            )
        self.separator = separator_of(head.split(b"\n", 1)[0].decode(errors="replace"))
        if file.path is not None and not file.is_gzip():
            self.content, size = file.path, file.path.stat().st_size
        else:
            self.content = file.read_bytes(int(min(MOST_TABLE, _free_memory())))
            size = len(self.content)
        per_row = len(head) / max(1, head.count(b"\n"))
        _check_memory(file, int(size / per_row) if size > _SMALL_SIZE else 0, what)

    def _input(self) -> Any:
        return self.content if isinstance(self.content, Path) else io.BytesIO(self.content)

    def scan(self, as_text: bool = False) -> pl.LazyFrame:
        """Open the table; `as_text` keeps every column as text."""
        import polars as pl

        if self.parquet:
            return pl.scan_parquet(self._input())
        return pl.scan_csv(
            self._input(),
            infer_schema_length=0 if as_text else 10_000,
            separator=self.separator,
        )

    def numbers_are_names(self, lazy: pl.LazyFrame, columns: tuple[str, ...]) -> bool:
        """Whether columns of a CSV that look like numbers are not: 007 is not 7."""
        import polars as pl

        if self.parquet:
            return False
        schema = lazy.collect_schema().items()
        wanted = {*columns, *(other for name in columns for other in ALIASES.get(name, ()))}
        found = {name: kind for name, kind in schema if name.strip().casefold() in wanted}
        if any(kind == pl.Int128 for kind in found.values()):  # too long for a number
            return True
        whole = [name for name, kind in found.items() if kind.is_integer()]
        if not whole:
            return False
        padded = pl.col(whole).str.contains(r"^\s*[+-]?0[0-9]").any()
        text = self.scan(as_text=True).select(padded).collect(engine="streaming")
        return any(text.row(0))


ALIASES = {"task": ("item",), "label": ("truth", "answer")}
"""Other names of columns: audits and campaigns write them so."""
_REPEATED = re.compile(r"_duplicated_\d+$")
"""What the reader of CSV files appends to a name that occurs again."""
_REASONS = {
    "more fields": "a row has more fields than the header; quote fields that hold commas",
    "utf-8": "it is not UTF-8 text; save it as UTF-8",
    "utf8": "it is not UTF-8 text; save it as UTF-8",
    "empty": "it holds no header; expected a header and rows",
    "permission": "no permission",
}


def why_unreadable(problem: str, parquet: bool = False) -> str:
    """Translate an error of polars for somebody who does not know that polars reads the file."""
    if parquet:
        return "it is not a Parquet file, or it is cut short; write it again"
    found = (text for key, text in _REASONS.items() if key in problem.lower())
    return next(found, "it is not a CSV file with a header; save it as CSV or Parquet")


def _select(
    lazy: pl.LazyFrame, needed: tuple[str, ...], optional: tuple[str, ...], what: str
) -> pl.DataFrame:
    import polars as pl

    found = lazy.collect_schema().names()
    lazy = lazy.rename(_spelled(found, (*needed, *optional)))
    found = _named(lazy.collect_schema().names(), (*needed, *optional), what)
    missing = [name for name in needed if name not in found]
    if missing:
        how = f"name the columns {', '.join(needed)}"
        if "annotations" in found:
            how = "read an export of Zooniverse with crowdtree.load"
        raise CrowdtreeError(
            f"{what}: column {listing(missing)} is missing (found: {listing(found)}); {how}"
        )
    columns = [*needed, *(name for name in optional if name in found)]
    kinds = lazy.collect_schema()
    frame = lazy.select(columns).collect(engine="streaming")
    blank = [_is_blank(name, kinds[name]) for name in columns]
    if frame.select(pl.any_horizontal(blank).any()).item():
        if what == "answers":
            _warn_of_blanks(frame, columns, blank)
        frame = frame.filter(~pl.any_horizontal(blank))
    for name in columns:
        if frame.schema[name].is_nested() or frame.schema[name] == pl.Object:
            raise CrowdtreeError(
                f"{what}: column {name} holds lists or objects; expected one name or number per row"
            )
    if not len(frame):
        raise CrowdtreeError(f"{what}: no rows; expected at least one")
    assert isinstance(frame, pl.DataFrame)
    return frame


def _spelled(found: list[str], wanted: tuple[str, ...]) -> dict[str, str]:
    """Columns that are spelled with upper case, blanks or another word, where none has the name.

    >>> _spelled(["Task ", "label", "LABEL"], ("task", "label"))
    {'Task ': 'task'}
    >>> _spelled(["item", "truth"], ("task", "label"))
    {'item': 'task', 'truth': 'label'}
    """
    plain: dict[str, list[str]] = {}
    for name in found:
        plain.setdefault(name.strip().casefold(), []).append(name)
    made: dict[str, str] = {}
    for name in wanted:
        if name in found:
            continue
        spellings = (plain.get(other, []) for other in (name, *ALIASES.get(name, ())))
        best = next((spelling for spelling in spellings if spelling), [])
        if len(best) == 1:
            made[best[0]] = name
    return made


def _named(found: list[str], wanted: tuple[str, ...], what: str) -> list[str]:
    """Columns with a name of their own; raises where two have a name that is wanted.

    >>> _named(["task", "label", "", "_duplicated_0"], ("task", "label"), "answers")
    ['task', 'label']
    """
    kept = []
    for name in found:
        first = _REPEATED.sub("", name)
        if first != name and first in found:
            if first in wanted:
                raise CrowdtreeError(f"{what}: two columns are named {first!r}; rename one")
        elif name.strip():
            kept.append(name)
    return kept


def _is_blank(column: str, kind: pl.DataType) -> pl.Expr:
    """Whether a value is missing: nothing, and for labels also how programs write no number."""
    import polars as pl

    missing = pl.col(column).is_null()
    if kind == pl.String:
        words = ["", "nan", "NaN"] if column == "label" else [""]
        return missing | pl.col(column).str.strip_chars().is_in(words)
    return missing | pl.col(column).is_nan() if kind.is_float() else missing


def _warn_of_blanks(frame: pl.DataFrame, columns: list[str], blank: list[pl.Expr]) -> None:
    """Say how many rows are left out, and where the first one is; empty rows are no answers."""
    import polars as pl

    found = frame.select(
        pl.any_horizontal(blank) & ~pl.all_horizontal(blank),
        *(each.alias(f"is blank {name}") for name, each in zip(columns, blank, strict=True)),
    )
    rows = found.to_series(0).arg_true()
    if not len(rows):
        return
    first = int(rows[0])
    empty = next(name for name, value in zip(columns, found.row(first)[1:], strict=True) if value)
    warnings.warn(
        f"answers: {plural(len(rows), 'answer')} left out because something is missing (first: "
        f"row {first + 1} has no {empty})",
        CrowdtreeWarning,
        stacklevel=5,
    )


def _is_parquet(file: Source) -> bool:
    return file.name.lower().endswith((".parquet", ".pq"))


def _check_memory(file: Source, rows: int, what: str) -> None:
    """Raise before reading a file whose encoded answers cannot fit in memory."""
    need = rows * _BYTES_PER_ROW
    if need < _SMALL_SIZE:
        return
    free = _free_memory()
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


def _as_polars(source: Any, what: str) -> pl.LazyFrame:
    import narwhals as nw
    import polars as pl

    if hasattr(source, "to_crowdkit"):  # answers that were read before, or what was learned
        source = source.to_crowdkit()
    if isinstance(source, pl.LazyFrame):
        return source
    if isinstance(source, pl.DataFrame):
        return source.lazy()
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
            f"{what}: expected a frame (polars, pandas, pyarrow), a mapping of columns or a CSV or "
            f"Parquet file, got {type(source).__name__}"
        ) from None


def _check_lengths(source: Any, what: str) -> None:
    sizes = {str(name): len(v) for name, v in source.items() if hasattr(v, "__len__")}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise CrowdtreeError(
            f"{what}: columns of different lengths ({listed}); expected one entry per row"
        )


def _column(values: NDArray[Any]) -> Any:
    """Take a column over without a copy where it is numeric; text with its blanks otherwise."""
    if values.dtype.kind in "iubf":
        return values
    return [None if value is None or value != value else str(value) for value in values.tolist()]
