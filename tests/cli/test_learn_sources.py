"""The verb `learn` with several sources of answers."""

from __future__ import annotations

import json

import numpy as np
import pytest

import crowdtree as ct
from tests.cli.learn_helpers import complaint, found, said


@pytest.fixture
def answers(tmp_path):
    """Three people and a model, which one column names, about sixty items."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 60)
    rows = ["task,worker,label,who_said"]
    for worker, source in (("ann", "people"), ("ben", "people"), ("cy", "people"), ("m", "gpt-x")):
        label = np.where(rng.random(60) < 0.2, rng.integers(0, 3, 60), truth)
        rows += [f"{i},{worker},{'abc'[c]},{source}" for i, c in enumerate(label)]
    file = tmp_path / "answers.csv"
    file.write_text("\n".join(rows), encoding="utf-8")
    return file


def test_sources_are_shown_and_written(answers, tmp_path, capsys):
    out = said(capsys, "learn", answers, "--source", "who_said", "-o", tmp_path / "problem.yaml")
    assert "gpt-x" in out
    assert "crowdtree simulate" in out
    problem = ct.load_problem(tmp_path / "problem.yaml")
    assert [source.name for source in problem.sources] == ["people", "gpt-x"]


def test_a_file_of_workers_names_kinds_and_prices(answers, tmp_path, capsys):
    table = tmp_path / "workers.csv"
    rows = ["worker,source,kind,price", "ann,team,people,1", "ben,team,people,1"]
    table.write_text("\n".join([*rows, "cy,cy,expert,5", "m,m,model,0.1"]), encoding="utf-8")
    made = found(capsys, "learn", answers, "--sources", table)
    told = {row["name"]: (row["kind"], row["price"], row["workers"]) for row in made["sources"]}
    assert told == {"team": ("people", 1, 2), "cy": ("expert", 5, 1), "m": ("model", 0.1, 1)}
    assert json.dumps(made)
    table.write_text("worker,source\nann,team", encoding="utf-8")
    assert "has no source" in complaint(capsys, "learn", answers, "--sources", table)
