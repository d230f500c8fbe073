"""Answers about real things, split into what is learned from and what is classified.

Each set yields ``Split``: leuven_animals by respondent (learn from three, classify what the fourth
says), apascal and soybean_large in five folds that keep the shares of the classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from benchmarks.realdata import read_table


class Split(NamedTuple):
    """Answers are 0 or 1, -1 where missing; one row per item."""

    questions: list[str]
    train: np.ndarray
    workers: np.ndarray
    truth: list[str]
    test: np.ndarray
    wanted: list[str]


def long(values: np.ndarray, questions: list[str], workers: np.ndarray) -> pl.DataFrame:
    """Rows of (item, question, worker, answer); a missing answer is left out."""
    item, question = np.nonzero(values >= 0)
    return pl.DataFrame(
        {
            "task": item,
            "question": np.array(questions)[question],
            "worker": workers[item],
            "label": values[item, question],
        }
    )


def folds(truth: np.ndarray, count: int, seed: int = 0) -> list[np.ndarray]:
    """Folds that keep the shares of the classes."""
    rng = np.random.default_rng(seed)
    fold = np.empty(len(truth), int)
    for cls in np.unique(truth):
        mine = rng.permutation(np.flatnonzero(truth == cls))
        fold[mine] = np.arange(len(mine)) % count
    return [np.flatnonzero(fold == k) for k in range(count)]


def leuven(folder: Path) -> Iterator[Split]:
    rows = read_table(folder / "leuven_animals", "answers_wide")
    animals = rows[0][2:]
    questions = list(dict.fromkeys(row[0] for row in rows[1:]))
    people = sorted({row[1] for row in rows[1:]})
    values = np.zeros((len(people), len(animals), len(questions)), np.int8)
    at = {name: i for i, name in enumerate(questions)}
    for row in rows[1:]:
        values[people.index(row[1]), :, at[row[0]]] = np.array(row[2:], int) > 0
    for held in range(len(people)):
        others = [p for p in range(len(people)) if p != held]
        train = np.concatenate([values[p] for p in others])
        workers = np.repeat([people[p] for p in others], len(animals))
        yield Split(questions, train, workers, animals * len(others), values[held], animals)


def apascal(folder: Path) -> Iterator[Split]:
    table = pl.read_csv(folder / "apascal" / "objects_wide.csv.gz")
    questions = table.columns[3:]
    values = table.select(questions).to_numpy().astype(np.int8)
    yield from cross_validated(values, questions, table["class"].to_list())


def soybean(folder: Path) -> Iterator[Split]:
    here = folder / "soybean_large"
    table = pl.read_csv(here / "objects.csv", infer_schema=False)
    questions = pl.read_csv(here / "table.csv", infer_schema=False)["test"].to_list()
    columns = []
    for name in questions:
        symptom, state = name.split("==")
        cell = table[symptom].fill_null("").to_numpy()
        columns.append(np.where(cell == "", -1, cell == state))
    values = np.array(columns).T.astype(np.int8)
    yield from cross_validated(values, questions, table["Class"].to_list())


def cross_validated(
    values: np.ndarray, questions: list[str], truth: list[str], count: int = 5
) -> Iterator[Split]:
    names = np.array(truth)
    for test in folds(names, count):
        train = np.setdiff1d(np.arange(len(names)), test)
        workers = np.full(len(train), "crowd")
        yield Split(questions, values[train], workers, names[train].tolist(), values[test],
                    names[test].tolist())  # fmt: skip


SETS = {"leuven": leuven, "apascal": apascal, "soybean": soybean}
