"""File extensions and size limits of the formats of problems and plans."""

from __future__ import annotations

import os
from pathlib import Path

from crowdtree.errors import CrowdtreeError
from crowdtree.reading import MB, shown

__all__ = ["DOCUMENTS", "ENDINGS", "MOST_BYTES", "beside", "ending_of"]

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
DOCUMENTS = (".yaml", ".yml", ".json")


def ending_of(path: str | os.PathLike[str]) -> str:
    """Determine the kind of a file from its extension.

    >>> ending_of("birds.CSV"), ending_of("birds.csv.gz")
    ('.csv', '.csv.gz')
    """
    name = os.fspath(path).lower()
    for ending in sorted(ENDINGS, key=len, reverse=True):
        if name.endswith(ending):
            return ending
    hint = " (save an old .xls workbook as .xlsx)" if name.endswith((".xls", ".ods")) else ""
    raise CrowdtreeError(
        f"{shown(path)}: unknown file extension; expected one of {', '.join(ENDINGS)}{hint}"
    )


def beside(path: Path, what: str) -> Path:
    """Where a second table of a problem is kept: ``birds.csv`` -> ``birds.errors.csv``.

    >>> beside(Path("birds.csv.gz"), "errors").name
    'birds.errors.csv.gz'
    """
    ending = path.name[-len(ending_of(path)) :]
    return path.with_name(f"{path.name[: -len(ending)]}.{what}{ending}")
