"""What the tests of this package share."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import pytest

from crowdtree import CrowdtreeError, Problem
from crowdtree.io import (
    load_problem,
    save_problem,
)

FORMATS = [".csv", ".tsv", ".csv.gz", ".xlsx", ".yaml", ".yml", ".json"]


GOOD = "question,error,a,b,c\nprior,,0.5,0.3,0.2\nq1,0.1,0,1,-\nq2,0.2,1,1,0\n"


def expected() -> Problem:
    return Problem(
        ["a", "b", "c"], [0.5, 0.3, 0.2], ["q1", "q2"], [[0, 1, -1], [1, 1, 0]], [0.1, 0.2]
    )


def put(folder: Path, text: str | bytes, name: str = "p.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def message(path: object, **options: object) -> str:
    """Error message of loading: always a CrowdtreeError, on one short line."""
    with pytest.raises(CrowdtreeError) as caught:
        load_problem(path, **options)  # type: ignore[arg-type]
    text = str(caught.value)
    assert "\n" not in text
    assert "\r" not in text
    assert len(text) < 400
    if isinstance(path, Path):
        assert path.name in text
    return text


SEP = "question,error,a,b\n"


@cache
def saved(ending: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        save_problem(expected(), Path(folder) / f"p{ending}")
        return (Path(folder) / f"p{ending}").read_bytes()
