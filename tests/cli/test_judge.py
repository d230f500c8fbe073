"""The verb judge."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

import crowdtree as ct
from tests.cli.learn_helpers import complaint, found, said

PEOPLE = ["ann", "ben", "cy"]


@pytest.fixture
def answers(tmp_path):
    """Three people, a good model and one that guesses, about 400 items; half are known."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 400)
    errors = [0.15, 0.15, 0.15, 0.05, 0.5]
    who = [*PEOPLE, "good", "coin"]
    frame = pl.DataFrame(
        {
            "task": np.tile(np.arange(400), 5),
            "worker": np.repeat(who, 400),
            "label": np.array(["cat", "dog"])[np.concatenate(
                [truth ^ (rng.random(400) < error) for error in errors])],
            "kind": np.repeat(["person"] * 3 + ["model"] * 2, 400),
        }
    )  # fmt: skip
    path, gold = tmp_path / "answers.csv", tmp_path / "gold.csv"
    frame.write_csv(path)
    known = {"task": np.arange(200), "label": np.array(["cat", "dog"])[truth[:200]]}
    pl.DataFrame(known).write_csv(gold)
    return path, gold


def test_the_answer_comes_first_and_agrees_with_the_library(answers, capsys):
    path, _ = answers
    expected = ct.judge(str(path))
    shown = said(capsys, "judge", path)
    assert shown.startswith("coin: worse than a person")
    assert shown.splitlines()[1] == "good: may replace a person."
    assert shown.rstrip().endswith("-o judge.html")
    made = found(capsys, "judge", path)
    assert made["headline"] == expected.headline
    assert made["scores"][1]["verdict"]["words"] == str(expected.verdict("good"))
    by_name = found(capsys, "judge", path, "--models", "good,coin")
    assert by_name["scores"] == made["scores"]


def test_gold_and_tables_of_workers_are_read(answers, tmp_path, capsys):
    path, gold = answers
    workers = tmp_path / "workers.csv"
    workers.write_text("worker,kind\ngood,model\ncoin,llm\nann,person\n")
    made = found(capsys, "judge", path, "--gold", gold, "--models", workers)
    rows = [score for score in made["scores"] if score["verdict"]]
    assert [(score["reference"], score["items"]) for score in rows] == [("gold", 200)] * 2


@pytest.mark.parametrize("kept", [[*PEOPLE, "good", "coin"], PEOPLE])
def test_the_page_stands_alone(answers, kept, tmp_path, capsys):
    path, _ = answers
    pl.read_csv(path).filter(pl.col("worker").is_in(kept)).write_csv(path)
    page = tmp_path / "judge.html"
    assert f"Wrote {page}" in said(capsys, "judge", path, "-o", page).replace("\n", "")
    html = page.read_text()
    assert not re.search(r"""(src|href)=["']?https?:""", html)
    assert "Krippendorff" in html
    assert html.count("<svg") == (2 if "good" in kept else 0)
    assert ("Verdicts" in html) == ("good" in kept)


def test_names_are_escaped_on_the_page(answers, tmp_path):
    frame = pl.read_csv(answers[0]).with_columns(pl.col("worker").replace("good", "<b>good</b>"))
    html = ct.write_report(ct.judge(frame), tmp_path / "page.html").read_text()
    assert "&lt;b&gt;good" in html
    assert "<b>good" not in html


def test_mistakes_name_the_option(answers, tmp_path, capsys):
    path, _ = answers
    assert "--models" in complaint(capsys, "judge", path, "--models", "goood")
    assert "did you mean 'good'?" in complaint(capsys, "judge", path, "--models", "goood")
    assert "--margin: expected a share" in complaint(capsys, "judge", path, "--margin", 3)
    assert ".html" in complaint(capsys, "judge", path, "-o", tmp_path / "page.txt")
