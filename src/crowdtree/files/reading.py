"""Open what users hand over: every way in which a file can be no file, too large or not text.

All limits stand here, so that a hostile or mistaken file costs bounded time and memory.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import os
import re
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from crowdtree.errors import CrowdtreeError

__all__ = [
    "ENDINGS",
    "MOST_BYTES",
    "ending_of",
    "errors_beside",
    "one_line",
    "open_text",
    "read_bytes",
    "read_text",
    "shown",
]

MB = 1_000_000
MOST_BYTES = {
    ".csv": 4_000 * MB,
    ".tsv": 4_000 * MB,
    ".csv.gz": 4_000 * MB,  # unpacked
    ".xlsx": 100 * MB,
    ".yaml": 10 * MB,
    ".yml": 10 * MB,
    ".json": 500 * MB,
}
"""The largest file of each kind that is read."""
ENDINGS = tuple(MOST_BYTES)
MOST_LINE = 4 * MB
"""The longest line of a table, in characters: 10,000 classes may have 400 each."""
_CHUNK = 1 << 16


def shown(path: str | os.PathLike[str]) -> str:
    """Name of a file for a message: on one line, whatever it is called.

    >>> shown("data/birds.csv"), shown("two\\nlines.csv")
    ('data/birds.csv', 'two?lines.csv')
    """
    return "".join(c if c.isprintable() else "?" for c in os.fspath(path))


def one_line(value: Any, most: int = 40) -> str:
    """Quote a value for a message, on one line and not too long.

    >>> one_line("two\\nlines"), one_line("x" * 100, most=5)
    ("'two\\\\nlines'", "'xxxxx'...")
    """
    if isinstance(value, list | dict):
        return f"a list of {len(value)}" if isinstance(value, list) else "fields"
    text = str(value)
    return repr(text) if len(text) <= most else f"{text[:most]!r}..."


def ending_of(path: str | os.PathLike[str]) -> str:
    """Tell the kind of a file by the ending of its name.

    >>> ending_of("birds.CSV"), ending_of("birds.csv.gz")
    ('.csv', '.csv.gz')
    """
    name = os.fspath(path).lower()
    for ending in sorted(ENDINGS, key=len, reverse=True):
        if name.endswith(ending):
            return ending
    hint = " (save an old .xls workbook as .xlsx)" if name.endswith((".xls", ".ods")) else ""
    raise CrowdtreeError(
        f"{shown(path)}: the ending says not what it is; use one of {', '.join(ENDINGS)}{hint}"
    )


def errors_beside(path: Path) -> Path:
    """Where the per-cell errors of a table are kept: ``birds.csv`` -> ``birds.errors.csv``.

    >>> errors_beside(Path("birds.csv.gz")).name
    'birds.errors.csv.gz'
    """
    ending = path.name[-len(ending_of(path)) :]
    return path.with_name(f"{path.name[: -len(ending)]}.errors{ending}")


def check_file(path: Path, most: int) -> None:
    """Raise unless there is a file of a size that is read."""
    name = shown(path)
    try:
        found = path.stat()
    except FileNotFoundError:
        raise CrowdtreeError(f"{name}: no such file{_similar(path)}") from None
    except (OSError, ValueError) as error:
        raise CrowdtreeError(f"{name}: cannot be read ({_reason(error)})") from None
    if stat.S_ISDIR(found.st_mode):
        raise CrowdtreeError(f"{name}: is a folder; give the name of a file in it")
    if not stat.S_ISREG(found.st_mode):  # a pipe would wait for ever
        raise CrowdtreeError(f"{name}: is not a regular file")
    size = found.st_size
    if size == 0:
        raise CrowdtreeError(f"{name}: is empty")
    if size > most:
        raise CrowdtreeError(
            f"{name}: has {size:,} bytes, more than the {most:,} that are read from this kind of "
            "file; keep large tables as .csv or .csv.gz"
        )


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


def read_bytes(path: Path) -> bytes:
    """Read a whole file of limited size."""
    check_file(path, MOST_BYTES[ending_of(path)])
    try:
        return path.read_bytes()
    except OSError as error:
        raise CrowdtreeError(f"{shown(path)}: cannot be read ({_reason(error)})") from None


def read_text(path: Path) -> str:
    """Read a whole text file: UTF-8, with or without a byte order mark."""
    data = read_bytes(path)
    _refuse_binary(data[:_CHUNK], shown(path))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _not_utf8(shown(path), error.start, line, data[error.start]) from None


@contextlib.contextmanager
def open_text(path: Path) -> Iterator[Iterator[str]]:
    """Open a table for reading line by line; faults of the bytes become one-line errors."""
    ending = ending_of(path)
    check_file(path, MOST_BYTES[ending])
    name = shown(path)
    packed = ending.endswith(".gz")
    try:
        with _open(path, packed) as file:
            head = file.read(_CHUNK)
            if not head:
                raise CrowdtreeError(f"{name}: is empty")
            _refuse_binary(head, name)
            file.seek(0)
            if packed:
                file = io.BufferedReader(_Limited(file, MOST_BYTES[ending], name))
            text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
            try:
                yield _lines(text, name)
            finally:
                text.detach()
    except UnicodeDecodeError:
        with _open(path, packed) as file:
            raise _find_bad_byte(file, name) from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise CrowdtreeError(f"{name}: is not a whole gzip file; compress it again") from None
    except OSError as error:
        raise CrowdtreeError(f"{name}: cannot be read ({_reason(error)})") from None


def _open(path: Path, packed: bool) -> Any:  # two unrelated types for one thing
    return gzip.open(path, "rb") if packed else path.open("rb")


def _lines(text: io.TextIOWrapper, name: str) -> Iterator[str]:
    number = 0
    while line := text.readline(MOST_LINE):
        number += 1
        if len(line) >= MOST_LINE:
            raise CrowdtreeError(
                f"{name}, line {number}: is longer than {MOST_LINE:,} characters; this is no table"
            )
        yield line


class _Limited(io.RawIOBase):
    """A stream that refuses to unpack more than it should: a small file may hide a huge one."""

    def __init__(self, file: IO[bytes], most: int, name: str) -> None:
        self._file, self._left, self._most, self._name = file, most, most, name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._file.read(len(buffer))
        self._left -= len(chunk)
        if self._left < 0:
            raise CrowdtreeError(
                f"{self._name}: unpacks to more than {self._most:,} bytes, which are not read"
            )
        buffer[: len(chunk)] = chunk
        return len(chunk)


_KINDS = (
    (b"PK\x03\x04", "a zip file, perhaps an XLSX workbook; name it .xlsx"),
    (b"\x1f\x8b", "compressed by gzip; name it .csv.gz"),
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
            f"{name}: byte {place + 1} is zero, so this is no text file; save it as UTF-8 text"
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
    return _not_utf8(name, max(offset - 1, 0), line, None)


def _not_utf8(name: str, offset: int, line: int, byte: int | None) -> CrowdtreeError:
    found = f"byte {offset + 1} ({byte:#04x})" if byte is not None else "the last character"
    return CrowdtreeError(
        f"{name}, line {line}: {found} is not UTF-8; save the file as UTF-8 (in Excel: 'CSV UTF-8')"
    )


def squeeze(text: object) -> str:
    """Put a foreign message on one line.

    >>> squeeze("a\\n   b")
    'a b'
    """
    return re.sub(r"\s+", " ", str(text)).strip()
