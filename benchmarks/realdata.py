"""Real data for benchmarks and tests, read from the data folder; never part of the package."""

from __future__ import annotations

import csv
import gzip
import os
from pathlib import Path

import crowdtree as ct

ABSENT = "no data folder: set CROWDTREE_DATA, or put it at ../shared/data"


def folder() -> Path | None:
    """The data folder: CROWDTREE_DATA, or ../shared/data beside the repository."""
    root = Path(__file__).resolve().parents[1]
    place = Path(os.environ.get("CROWDTREE_DATA", root.parent / "shared" / "data"))
    return place if place.is_dir() else None


def read_table(place: Path, name: str) -> list[list[str]]:
    """Rows of a CSV file, compressed or not."""
    plain, packed = place / f"{name}.csv", place / f"{name}.csv.gz"
    raw = plain.read_bytes() if plain.exists() else gzip.decompress(packed.read_bytes())
    return list(csv.reader(raw.decode("utf-8-sig").splitlines()))


def awa2() -> ct.Problem | None:
    """50 animals x 85 predicates, uniform prior, every answer wrong with 0.2."""
    place = folder()
    if place is None or not (place / "awa2").is_dir():
        return None
    header, *rows = read_table(place / "awa2", "table")
    return ct.Problem(header[1:], None, [r[0] for r in rows], [r[1:] for r in rows], 0.2)
