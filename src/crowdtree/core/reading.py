"""The only reader of files: a path, bytes or a binary stream; encoding, gzip, separators, limits.

Every limit is checked here, so that a hostile or mistaken file costs bounded time and memory, and
every fault of the bytes becomes a one-line error. Supports no format beyond delimited text.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import itertools
import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from crowdtree.core.checking import got
from crowdtree.core.errors import CrowdtreeError

MB = 1_000_000
MAX_TABLE = 4_000 * MB
"""Bytes of the largest table that is read, unpacked."""
MAX_LINE = 4 * MB
"""The longest line of a table, in characters: 10,000 classes may have 400 each."""
MAX_FIELD = 131_072
"""The longest field of a table, in characters; the limit of the csv module of Python."""
MAX_BLANK = 100_000
"""Blank lines in a row after which a file is refused."""
MAX_TITLE = 20
"""Rows among which the header is looked for."""
_CHUNK = 1 << 16
_GZIP = b"\x1f\x8b"


def shown(path: str | os.PathLike[str]) -> str:
    """Name of a file for a message: on one line, whatever it is called.

    >>> shown("data/birds.csv"), shown("two\\nlines.csv")
    ('data/birds.csv', 'two?lines.csv')
    """
    return "".join(c if c.isprintable() else "?" for c in os.fspath(path))


def has_content(source: Any) -> bool:
    """Whether a source is a file in any form (path, bytes, stream) rather than a data frame.

    >>> has_content("birds.csv"), has_content(b"a,b"), has_content({"a": [1]})
    (True, True, False)
    """
    is_file = isinstance(source, str | os.PathLike | bytes | bytearray | Source)
    return is_file or callable(getattr(source, "read", None))


def open_source(source: Any, name: str | None = None) -> Source:
    """Take a path, bytes or a binary stream as a source.

    `source`: a path, bytes, or a binary stream, which is read from its beginning. `name`: file name
    of bytes or of a stream, for messages and for the format; by default the stream's own.

    >>> open_source(b"question,a,b", "birds.csv").read_text()
    'question,a,b'
    """
    if isinstance(source, Source):
        return source
    if isinstance(source, str | os.PathLike):
        return Source(shown(source), Path(source))
    if isinstance(source, io.TextIOBase):
        raise CrowdtreeError("source: expected a binary stream, got text; open it with mode 'rb'")
    if not isinstance(source, bytes | bytearray) and not callable(getattr(source, "read", None)):
        raise CrowdtreeError(
            f"source: expected a path, bytes or a binary stream, got {got(source)}"
        )
    own = getattr(source, "name", None)
    name = name or (own if isinstance(own, str) else None)
    if name is None:
        raise CrowdtreeError("name: expected a file name with bytes or a stream, such as birds.csv")
    if isinstance(source, bytes | bytearray):
        return Source(shown(name), None, io.BytesIO(source))
    if not source.seekable():
        content = source.read(MAX_TABLE + 1)
        return Source(shown(name), None, io.BytesIO(content))
    return Source(shown(name), None, source)


@dataclass(frozen=True)
class Source:
    """A file to be read: on disk, or a binary stream that stays open. Gzip is unpacked."""

    name: str
    path: Path | None
    stream: IO[bytes] | None = None

    def check(self, most: int = MAX_TABLE) -> None:
        """Raise unless there is a file of at most this many bytes."""
        size = self._size()
        if size == 0:
            raise CrowdtreeError(f"{self.name}: is empty")
        if size > most:
            raise CrowdtreeError(
                f"{self.name}: has {size:,} bytes, more than the {most:,} that are read from this "
                "kind of file; keep large tables as .csv or .csv.gz"
            )

    def _size(self) -> int:
        if self.stream is not None:
            return self.stream.seek(0, os.SEEK_END)
        path = self._path()
        try:
            found = path.stat()
        except FileNotFoundError:
            raise CrowdtreeError(f"{self.name}: no such file{_similar(path)}") from None
        except (OSError, ValueError) as error:
            raise CrowdtreeError(f"{self.name}: cannot be read ({_reason(error)})") from None
        if stat.S_ISDIR(found.st_mode):
            raise CrowdtreeError(f"{self.name}: is a folder; give the name of a file in it")
        if not stat.S_ISREG(found.st_mode):  # a pipe could block forever
            raise CrowdtreeError(f"{self.name}: is not a regular file")
        return found.st_size

    def _path(self) -> Path:
        if self.path is None:
            raise CrowdtreeError(f"{self.name}: is not a file on disk")
        return self.path

    @contextlib.contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the bytes as they are stored, from the beginning."""
        if self.stream is not None:
            self.stream.seek(0)
            yield self.stream
        else:
            with self._path().open("rb") as file:
                yield file

    @contextlib.contextmanager
    def _unpacked(self) -> Iterator[tuple[Any, bool]]:
        """Open the bytes, unpacked where they are gzip, and say whether they are."""
        packed = self.is_gzip()
        with self.open() as file, self._faults():
            if not packed:
                yield file, False
                return
            with gzip.GzipFile(fileobj=file, mode="rb") as unpacked:
                yield unpacked, True

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise CrowdtreeError(
                f"{self.name}: is not a whole gzip file; compress it again"
            ) from None
        except OSError as error:
            raise CrowdtreeError(f"{self.name}: cannot be read ({_reason(error)})") from None

    def is_gzip(self) -> bool:
        """Whether the content is compressed by gzip."""
        with self._faults(), self.open() as file:
            return file.read(2) == _GZIP or self.name.lower().endswith(".gz")

    def read_bytes(self, most: int = MAX_TABLE) -> bytes:
        """Read everything, unpacked, in at most so many bytes."""
        self.check(most)
        with self._faults(), self._unpacked() as (file, _):
            data: bytes = file.read(most + 1)
        if len(data) > most:
            raise self._too_large(most)
        return data

    def read_text(self, most: int = MAX_TABLE) -> str:
        """Read a whole text file: UTF-8, with or without a byte order mark."""
        data = self.read_bytes(most)
        _refuse_binary(data[:_CHUNK], self.name)
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise _find_bad_byte(io.BytesIO(data), self.name) from None

    def head(self) -> bytes:
        """First bytes of the content, unpacked; raises where it is not text."""
        with self._faults(), self._unpacked() as (file, _):
            found: bytes = file.read(_CHUNK)
        if not found:
            raise CrowdtreeError(f"{self.name}: is empty")
        _refuse_binary(found, self.name)
        return found

    @contextlib.contextmanager
    def lines(self, most: int = MAX_TABLE, most_line: int = MAX_LINE) -> Iterator[Iterator[str]]:
        """Open a text file for reading line by line, in bounded memory."""
        self.check(most)
        self.head()
        try:
            with self._faults(), self._unpacked() as (file, packed):
                if packed:
                    file = io.BufferedReader(_Limited(file, most, self._too_large(most)))
                text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
                try:
                    yield self._lines(text, most_line)
                finally:
                    text.detach()
        except UnicodeDecodeError:
            with self._unpacked() as (file, _):
                raise _find_bad_byte(file, self.name) from None

    @contextlib.contextmanager
    def rows(
        self, most: int = MAX_TABLE, most_line: int = MAX_LINE, most_field: int = MAX_FIELD
    ) -> Iterator[tuple[str, Iterator[tuple[int, list[str]]]]]:
        """Open a table: its separator, and the number and cells of each row.

        Comments above the table begin with #.
        """
        with self.lines(most, most_line) as lines:
            skipped, first = 0, ""
            for first in lines:
                skipped += 1
                first_word = first.lower().lstrip('"')
                if first.strip(" ,;\t\r\n") and not first_word.startswith(("sep=", "#")):
                    break
                if skipped > MAX_BLANK:
                    raise CrowdtreeError(
                        f"{self.name}: begins with {MAX_BLANK:,} blank lines; remove them"
                    )
            head = [first, *itertools.islice(lines, MAX_TITLE - 1)]
            separator = separator_of(*head)
            yield (
                separator,
                csv_rows(
                    itertools.chain(head, lines),
                    separator,
                    self.name,
                    skipped=skipped - 1,
                    most=most_field,
                ),
            )

    def _lines(self, text: io.TextIOWrapper, most: int) -> Iterator[str]:
        number, rest = 0, ""
        while block := text.read(_CHUNK):
            lines = io.StringIO(rest + block, newline="").readlines()
            if len(max(lines, key=len)) >= most:
                number += next(i for i, line in enumerate(lines, start=1) if len(line) >= most)
                raise CrowdtreeError(
                    f"{self.name}, line {number}: is longer than {most:,} characters; this is not "
                    "a table"
                )
            rest = lines.pop()  # may go on in the next block
            number += len(lines)
            yield from lines
        if rest:
            yield rest

    def _too_large(self, most: int) -> CrowdtreeError:
        return CrowdtreeError(
            f"{self.name}: unpacks to more than {most:,} bytes, which are not read"
        )


class _Limited(io.RawIOBase):
    """A stream that refuses to unpack more than it should: a small file may be huge unpacked."""

    def __init__(self, file: IO[bytes], most: int, error: CrowdtreeError) -> None:
        self._file, self._left, self._error = file, most, error

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._file.read(len(buffer))
        self._left -= len(chunk)
        if self._left < 0:
            raise self._error
        buffer[: len(chunk)] = chunk
        return len(chunk)


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


def _similar(path: Path) -> str:
    """Suggest a file of nearly the same name."""
    from difflib import get_close_matches

    with contextlib.suppress(OSError):
        names = [name for _, name in zip(range(1000), os.listdir(path.parent), strict=False)]
        if close := get_close_matches(path.name, names, n=1, cutoff=0.7):
            return f"; did you mean {shown(close[0])}?"
    return "; check the name and the folder"


_KINDS = (
    (b"PK\x03\x04", "a zip file, perhaps an XLSX workbook; name it .xlsx"),
    (b"PAR1", "a Parquet file; name it .parquet"),
    (b"\xd0\xcf\x11\xe0", "an old or password-protected Excel file; save it as .xlsx"),
    (codecs.BOM_UTF16_LE, "UTF-16 text; save it as UTF-8 (in Excel: 'CSV UTF-8')"),
    (codecs.BOM_UTF16_BE, "UTF-16 text; save it as UTF-8 (in Excel: 'CSV UTF-8')"),
)


def _refuse_binary(head: bytes, name: str) -> None:
    for magic, what in _KINDS:
        if head.startswith(magic):
            raise CrowdtreeError(f"{name}: is {what}")
    place = head.find(b"\0")
    if place >= 0:
        raise CrowdtreeError(
            f"{name}: byte {place + 1} is zero, so this is not a text file; save it as UTF-8 text"
        )


def _find_bad_byte(file: IO[bytes], name: str) -> CrowdtreeError:
    """Find the first byte that is not UTF-8; reads again, in pieces."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    offset, line = 0, 1
    while chunk := file.read(_CHUNK):
        held = len(decoder.getstate()[0])  # bytes of a character cut by the last piece
        try:
            decoder.decode(chunk)
        except UnicodeDecodeError as error:
            place = max(error.start - held, 0)
            line += chunk.count(b"\n", 0, place)
            return _not_utf8(name, offset + place, line, error.object[error.start])
        offset, line = offset + len(chunk), line + chunk.count(b"\n")
    cut = decoder.getstate()[0]  # the file ends within a character
    return _not_utf8(name, offset - len(cut), line, cut[0])


def _not_utf8(name: str, offset: int, line: int, byte: int) -> CrowdtreeError:
    return CrowdtreeError(
        f"{name}, line {line}: byte {offset + 1} ({byte:#04x}) is not UTF-8; save the file as "
        "UTF-8 (in Excel: 'CSV UTF-8')"
    )


# ---------------------------------------------------------------- delimited text


_KEYWORDS = frozenset(
    ("question", "questions", "test", "tests", "class", "classes", "task", "id", "item", "worker")
)
"""Names of columns by which the header of a table is recognised."""


def separator_of(*lines: str) -> str:
    """Detect the separator: what delimits the word question, or the like, else the most frequent.

    Several lines are given where a title may stand above the header.

    >>> separator_of("question;error;a,b;c"), separator_of("test\\ta\\tb"), separator_of("x")
    (';', '\\t', ',')
    >>> separator_of("Test, of birds", "question;a;b")
    ';'
    """
    for least in (3, 2):
        for line in lines:
            for separator in ",;\t":
                cells = line.split(separator)
                words = (cell.strip(' "\r\n').casefold() for cell in cells)
                if len(cells) >= least and not _KEYWORDS.isdisjoint(words):
                    return separator
    common = [(line, max(",;\t", key=line.count)) for line in lines]
    return next((separator for line, separator in common if separator in line), ",")


def csv_rows(
    lines: Iterable[str], separator: str, name: str, *, skipped: int = 0, most: int = MAX_FIELD
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the first line of each row, and its fields.

    Lines are numbered from `skipped` on. A quote that is never closed, text after a closing quote,
    and a field of more than `most` characters are errors.

    >>> list(csv_rows(['a;"b;c"\\n', '"d\\n', 'e";"f""g"\\n'], ";", "x.csv"))
    [(1, ['a', 'b;c']), (2, ['d\\ne', 'f"g'])]
    """
    number = start = skipped  # lines that were read, and those before the row
    first = rest = 0  # characters of the first line of the row, and of the others
    too_long = f"a field has more than {most:,} characters"

    def counted() -> Iterator[str]:
        nonlocal number, first, rest
        for number, line in enumerate(lines, start=skipped + 1):
            if number == start + 1:
                first, rest = len(line), 0
            else:  # all in one quoted field
                rest += len(line)
                if rest > most:
                    raise _unreadable(name, start + 1, too_long)
            yield line

    csv.field_size_limit(max(csv.field_size_limit(), most))  # one for the whole process
    spaces = separator != "\t"
    rows = csv.reader(counted(), delimiter=separator, skipinitialspace=spaces, strict=True)
    try:
        for row in rows:
            if first + rest > most and row and max(map(len, row)) > most:
                raise _unreadable(name, start + 1, too_long)
            yield start + 1, row
            start = number
    except csv.Error as error:
        closed = f"expected {separator!r} after a closing quote"
        why = {"unexpected end of data": "a quote is never closed"}.get(str(error), closed)
        raise _unreadable(name, start + 1, why if "limit" not in str(error) else too_long) from None


def _unreadable(name: str, number: int, why: str) -> CrowdtreeError:
    return CrowdtreeError(
        f"{name}, line {number}: cannot be read as a table ({why}); check the quotes"
    )


# ---------------------------------------------------------------- data frames


def cell_text(value: Any) -> str:
    """Text of a cell that may be a number, so that 1.0 and 1 are the same.

    >>> [cell_text(value) for value in (None, 1.0, 0.25, True, "007", float("nan"))]
    ['', '1', '0.25', '1', '007', '']
    """
    if type(value) is str:
        return value
    if hasattr(value, "item"):  # NumPy's own numbers
        value = value.item()
    if value is None or type(value).__name__ == "NAType" or value != value:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return str(value)


def frame_columns(source: Any, where: str = "frame") -> dict[str, Any]:
    """Columns of a data frame (polars, pandas, pyarrow) or of a mapping; TypeError for others.

    Columns of whole numbers are arrays, so that millions of rows take no time; others are lists.

    >>> frame_columns({"task": [1, 2], "label": ("a", "b")})
    {'task': array([1, 2]), 'label': ['a', 'b']}
    """
    if callable(getattr(source, "collect", None)):  # a lazy frame
        source = source.collect()
    if not hasattr(source, "columns"):
        if not hasattr(source, "keys"):
            raise TypeError
        columns = {str(name): _values(source[name]) for name in source}
        sizes = {name: len(values) for name, values in columns.items()}
        if len(set(sizes.values())) > 1:
            listed = ", ".join(f"{name} {size}" for name, size in sizes.items())
            raise CrowdtreeError(
                f"{where}: columns of different lengths ({listed}); expected one entry per row"
            )
        return columns
    names = list(source.column_names if hasattr(source, "column_names") else source.columns)
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise CrowdtreeError(f"{where}: two columns are named {str(twice[0])!r}; rename one")
    return {str(name): _values(source[name]) for name in names}


def _values(column: Any) -> Any:
    """Values of a column: an array of whole numbers, or a list."""
    import numpy as np

    if isinstance(column, list | tuple | range):
        kinds = set(map(type, column))
        return np.array(column) if kinds == {int} and _fits(column) else list(column)
    if isinstance(column, str) or not hasattr(column, "__len__"):
        raise TypeError
    with contextlib.suppress(Exception):  # a frame's own error, such as for numbers of 128 bits
        whole = np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
        if whole.ndim == 1 and whole.dtype.kind in "iub":
            return whole
    for method in ("to_list", "to_pylist", "tolist"):  # whole numbers and blanks stay apart here
        if hasattr(column, method):
            return getattr(column, method)()
    return list(column)


def _fits(column: Any) -> bool:
    return len(column) == 0 or (min(column) >= -(2**63) and max(column) < 2**63)
