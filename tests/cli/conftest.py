"""Fixtures of the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.cli.helpers import TABLE
from tests.learn_crowds import many_questions, one_question


@pytest.fixture
def birds(tmp_path: Path) -> Path:
    path = tmp_path / "birds.csv"
    path.write_text(TABLE)
    return path


@pytest.fixture(scope="module")
def leaves():
    """One question about leaves, two labels, 30 of 90 with gold; one worker never looks."""
    crowd = one_question(np.random.default_rng(1), 90, 8, 5)
    names = np.array(["healthy", "blight"])
    answers = pl.DataFrame(
        {
            "task": [f"leaf {t}" for t in crowd.answers["task"]] + [f"leaf {t}" for t in range(90)],
            "worker": [f"w{w}" for w in crowd.answers["worker"]] + ["lazy"] * 90,
            "label": [*names[crowd.answers["label"]], *["healthy"] * 90],
        }
    )
    gold = pl.DataFrame(
        {"task": [f"leaf {t}" for t in range(30)],
         "label": [str(names[int(crowd.gold[str(t)])]) for t in range(30)]}
    )  # fmt: skip
    return answers, gold


@pytest.fixture(scope="module")
def animals():
    crowd = many_questions(np.random.default_rng(2), 80, 6, 3, 9, 10)
    return crowd, pl.DataFrame(crowd.answers).cast(pl.String)
