"""Tables of any kind as polars frames: files of CSV and Parquet, frames, mappings of columns.

What ails a file is said in words of its own rather than of the reader.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from crowdtree.errors import CrowdtreeError, listing

if TYPE_CHECKING:
    import polars as pl

__all__ = ["read_frame", "why_unreadable"]

_SMALL_SIZE = 64 * 2**20  # files below this need no thought about memory
_CSV_ROW = 12  # bytes: the shortest likely row of an answers file


def read_frame(
    source: Any, needed: tuple[str, ...], optional: tuple[str, ...], what: str
) -> pl.DataFrame:
    """Read the named columns of anything that is a table; rows with a blank are left out."""
    import polars as pl

    if not isinstance(source, str | Path):
        return _select(_as_polars(source, what), needed, optional, what)
    try:
        try:
            lazy = _scan(source, what)
            if _numbers_are_names(lazy, Path(source), (*needed, *optional)):
                lazy = _scan(source, what, as_text=True)
            return _select(lazy, needed, optional, what)
        except pl.exceptions.ComputeError as problem:
            if "could not parse" not in str(problem):
                raise
            # numbers at the top and text further down: read everything as text
            return _select(_scan(source, what, as_text=True), needed, optional, what)
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as problem:
        why = why_unreadable(str(problem), Path(source))
        raise CrowdtreeError(f"{what}: {Path(source).name!r} cannot be read: {why}") from None


def _numbers_are_names(lazy: pl.LazyFrame, path: Path, columns: tuple[str, ...]) -> bool:
    """Whether columns of a CSV that look like numbers are not: 007 is not 7."""
    import polars as pl

    if _is_parquet(path):
        return False
    found = {name: kind for name, kind in lazy.collect_schema().items() if name in columns}
    if any(kind == pl.Int128 for kind in found.values()):  # too long for a number
        return True
    whole = [name for name, kind in found.items() if kind.is_integer()]
    if not whole:
        return False
    padded = pl.col(whole).str.contains(r"^\s*[+-]?0[0-9]").any()
    text = _scan_csv(path, as_text=True).select(padded).collect(engine="streaming")
    return any(text.row(0))


_REASONS = {
    "more fields": "a row has more fields than the header; quote fields that hold commas",
    "utf-8": "it is not UTF-8 text; save it as UTF-8",
    "utf8": "it is not UTF-8 text; save it as UTF-8",
    "empty": "it holds no header; a header and rows needed",
    "permission": "no permission",
}


def why_unreadable(problem: str, path: Path) -> str:
    """Say what ails a file, in words of its own rather than of the reader."""
    if _is_parquet(path):
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
    kinds = lazy.collect_schema()
    text = [name for name in columns if kinds[name] == pl.String]
    frame = (
        lazy.select(columns)
        .drop_nans()
        .drop_nulls()
        .filter(*(~pl.col(name).str.strip_chars().is_in(_blanks(name)) for name in text))
        .collect(engine="streaming")
    )
    for name in columns:
        if frame.schema[name].is_nested() or frame.schema[name] == pl.Object:
            raise CrowdtreeError(
                f"{what}: column {name} holds lists or objects; one name or number a row needed"
            )
    if not len(frame):
        raise CrowdtreeError(f"{what}: no rows; at least one {what.rstrip('s')} needed")
    assert isinstance(frame, pl.DataFrame)
    return frame


def _blanks(column: str) -> list[str]:
    """What is no name: nothing, and for labels also how programs write a missing number."""
    return ["", "nan", "NaN"] if column == "label" else [""]


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
    if _is_parquet(path):
        return pl.scan_parquet(path)
    with path.open("rb") as file:
        head = file.read(1024)
    if path.suffix.lower() in (".csv", ".tsv", ".txt") and b"\0" in head:
        raise CrowdtreeError(f"{what}: {path.name!r} is no text; a CSV or Parquet file needed")
    return _scan_csv(path, as_text)


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".pq")


def _scan_csv(path: Path, as_text: bool) -> pl.LazyFrame:
    import polars as pl

    return pl.scan_csv(
        path, infer_schema_length=0 if as_text else 10_000, separator=_separator(path)
    )


def _separator(path: Path) -> str:
    """Tell the separator by the header: commas, or the semicolons or tabs of spreadsheets."""
    import gzip

    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            header = file.readline(65_536)
    except (OSError, EOFError):  # what reads it then says what ails it
        return ","
    return max(",;\t", key=header.decode(errors="replace").count)


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

    if _is_parquet(path):
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
