"""File extensions and size limits of the formats of problems and plans."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.reading import MB, open_source, shown

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
DELTA = ("specs", "chars", "items")
"""Files of a field guide in the DELTA format, in one folder."""


def ending_of(path: str | os.PathLike[str]) -> str:
    """Determine the kind of a file from its extension.

    >>> ending_of("birds.CSV"), ending_of("birds.csv.gz")
    ('.csv', '.csv.gz')
    """
    name = os.fspath(path).lower()
    for ending in sorted(ENDINGS, key=len, reverse=True):
        if name.endswith(ending):
            return ending
    if is_delta(Path(path)):
        return ".delta"
    if os.path.isdir(path):
        raise CrowdtreeError(f"{shown(path)}: is a folder; give the name of a file in it")
    hint = " (save an old .xls workbook as .xlsx)" if name.endswith((".xls", ".ods")) else ""
    raise CrowdtreeError(
        f"{shown(path)}: unknown file extension; expected one of {', '.join(ENDINGS)}{hint}"
    )


def is_delta(path: Path) -> bool:
    """Whether a path is a folder with a field guide, or one of its files."""
    if path.is_dir():
        return any((path / name).is_file() for part in DELTA for name in (part, part.upper()))
    return path.name.lower().removesuffix(".txt") in DELTA and path.is_file()


_YAML = re.compile(
    r"^(?:---|(?:crowdtree|kind|dash|dependence|worker_error|classes|questions|sources"
    r"|source_dependence)\s*:)",
    re.MULTILINE,
)


def ending_of_content(data: bytes) -> str:
    """Extension that a file of this content should have, for content that comes without a name.

    >>> ending_of_content(b"question,error,a,b"), ending_of_content(b'{"crowdtree": 1}')
    ('.csv', '.json')
    >>> ending_of_content(b'{"task": 1}\\n{"task": 2}'), ending_of_content(b"classes: [a, b]")
    ('.jsonl', '.yaml')
    """
    for magic, ending in ((b"PK\x03\x04", ".xlsx"), (b"PAR1", ".parquet")):
        if data.startswith(magic):
            return ending
    if not data:
        return ".csv"
    text = open_source(data, "stdin.csv").head().decode("utf-8-sig", errors="replace").lstrip()
    if text.startswith("["):
        return ".json"
    if text.startswith("{"):
        first, _, rest = text.partition("\n")
        return ".jsonl" if rest.strip() and _is_json(first) else ".json"
    return ".yaml" if _YAML.search(text) else ".csv"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def beside(path: Path, what: str) -> Path:
    """Where a second table of a problem is kept: ``birds.csv`` -> ``birds.errors.csv``.

    >>> beside(Path("birds.csv.gz"), "errors").name
    'birds.errors.csv.gz'
    """
    ending = path.name[-len(ending_of(path)) :]
    return path.with_name(f"{path.name[: -len(ending)]}.{what}{ending}")
