"""Files and folders that only the user who runs the program can read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

FILE, FOLDER = 0o600, 0o700
_OTHERS = 0o077


def open_private(path: Path, mode: str = "xb") -> BinaryIO:
    """Open a new file for writing, readable by its owner only from the start.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_private(Path(folder) / "key") as file:
    ...         oct(os.fstat(file.fileno()).st_mode & 0o777)
    '0o600'
    """
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, FILE))  # type: ignore[return-value]


def private_folder(path: Path) -> None:
    """Create a folder, and those above it that are missing, open to their owner only.

    Folders that are there already are left as they are.
    """
    if not path.is_dir():
        private_folder(path.parent)
        path.mkdir(FOLDER, exist_ok=True)


def make_private(path: Path) -> None:
    """Take all rights of others from an existing file or folder, if it is ours and not a link."""
    try:
        found = path.lstat()
        if found.st_mode & _OTHERS and not path.is_symlink():
            path.chmod(found.st_mode & 0o700)
    except (FileNotFoundError, PermissionError):
        return  # there is none, or it belongs to somebody else, who decides
