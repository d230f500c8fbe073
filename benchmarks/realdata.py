"""The real tables that benchmarks read; never part of the package."""

from __future__ import annotations

import csv
import gzip
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import crowdtree as ct


def folder() -> Path | None:
    """The data folder: CROWDTREE_DATA, or ../shared/data beside the repository."""
    root = Path(__file__).resolve().parents[1]
    place = Path(os.environ.get("CROWDTREE_DATA", root.parent / "shared" / "data"))
    return place if place.is_dir() else None


def _rows(name: str) -> list[list[str]] | None:
    place = folder()
    if place is None or not (place / name).exists():
        return None
    path = place / name
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    return list(csv.reader(text.splitlines()))


def awa2() -> ct.Problem | None:
    """50 animals x 85 predicates, uniform prior, every answer wrong with 0.2."""
    rows = _rows("awa2/table.csv")
    if rows is None:
        return None
    body = rows[1:]
    return ct.Problem(rows[0][1:], None, [r[0] for r in body], [r[1:] for r in body], 0.2)


def apascal() -> tuple[list[str], list[str], NDArray[np.int8], NDArray[np.int64]] | None:
    """Classes, questions, one answer per question and object, and the class of each object."""
    rows = _rows("apascal/objects_wide.csv.gz")
    if rows is None:
        return None
    body = rows[1:]
    classes = sorted({r[1] for r in body})
    place = {name: i for i, name in enumerate(classes)}
    answers = np.array([[int(float(v)) for v in r[3:]] for r in body], dtype=np.int8)
    return classes, rows[0][3:], answers, np.array([place[r[1]] for r in body])


def leuven() -> tuple[list[str], list[str], NDArray[np.int8]] | None:
    """Classes, questions, and answers: respondents x questions x classes."""
    rows = _rows("leuven_animals/answers_wide.csv.gz")
    if rows is None:
        return None
    body = rows[1:]
    questions = list(dict.fromkeys(r[0] for r in body))
    workers = sorted({r[1] for r in body})
    answers = np.zeros((len(workers), len(questions), len(rows[0]) - 2), dtype=np.int8)
    place = {name: i for i, name in enumerate(questions)}
    for row in body:
        answers[workers.index(row[1]), place[row[0]]] = [int(float(v)) for v in row[2:]]
    return rows[0][2:], questions, answers
