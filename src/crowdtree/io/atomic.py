"""Write files atomically."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.reading import shown


def write_atomically(
    path: str | os.PathLike[str],
    write: Callable[[BinaryIO], object],
    most: int | None = None,
    private: bool = False,
) -> None:
    """Write to a temporary file in the same folder, then put it in the place of `path`.

    A concurrent reader of `path` sees the old file or the new one, never a part. A file larger
    than `most` bytes (the limit of its reader) is not kept. A symbolic link stays, and what it
    points to is replaced. Nobody else can read a `private` file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder) / "a.txt", lambda file: file.write(b"hello"))
    ...     (Path(folder) / "a.txt").read_text()
    'hello'
    """
    path = Path(path)
    name = shown(path)
    if path.is_dir():
        raise CrowdtreeError(f"{name}: is a folder; give the name of a file")
    path = Path(os.path.realpath(path))
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise CrowdtreeError(f"{name}: is neither a file nor a link to one; give another name")
    try:
        handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
    except OSError as error:
        raise _refusal(name, error, path.parent) from None
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        size = os.path.getsize(scratch)
        if most is not None and size > most:
            raise CrowdtreeError(
                f"{name}: would have {size:,} bytes, more than the {most:,} that can be read "
                "from this kind of file; save it as .csv or .csv.gz"
            )
        if not private:
            os.chmod(scratch, _mode(path))
        os.replace(scratch, path)
    except UnicodeEncodeError as error:
        raise CrowdtreeError(
            f"{name}: {error.object[error.start : error.end]!r} in a name or text cannot be "
            "written as UTF-8; remove it"
        ) from None
    except OSError as error:
        raise _refusal(name, error, path.parent) from None
    finally:
        if os.path.exists(scratch):
            os.unlink(scratch)


def _mode(path: Path) -> int:
    """Permissions of the existing file, or of a new one (mkstemp grants none to others)."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _refusal(name: str, error: OSError, folder: Path) -> CrowdtreeError:
    if not folder.is_dir():
        return CrowdtreeError(f"{name}: the folder {shown(folder)} does not exist; create it first")
    return CrowdtreeError(f"{name}: cannot be written ({error.strerror or error})")
