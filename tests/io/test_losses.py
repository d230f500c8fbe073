"""Losses in every format: round trips, tables beside the problem, bad tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import crowdtree as ct
from crowdtree import CrowdtreeError, Problem
from crowdtree import io as files
from crowdtree.io import load_plan, load_problem, problem_from_dict, problem_to_dict, save_plan
from tests.io.helpers import FORMATS

PROBLEM = Problem(
    ["a", "b", "c"], None, ["q", "r"], [[0, 0, 1], [0, 1, 1]], 0.1,
    loss={"matrix": [[0, 7.25, 1], [0.1, 0, 1 / 3], [1, 1, 0]], "refer": 2.5},
)  # fmt: skip


@pytest.mark.parametrize("ending", FORMATS)
def test_a_loss_is_saved_and_loaded(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"problem{ending}"
    ct.save(PROBLEM, path)
    assert load_problem(path) == PROBLEM
    plain = PROBLEM.replace(loss=None)
    ct.save(plain, path)  # and removes what was beside it
    assert load_problem(path) == plain
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_loss_is_part_of_documents_and_plans(tmp_path: Path) -> None:
    data = problem_to_dict(PROBLEM)
    assert data["loss"]["refer"] == 2.5
    assert problem_from_dict(data, "it") == PROBLEM
    assert "loss" not in problem_to_dict(PROBLEM.replace(loss=None))
    plan = ct.staff(ct.design(PROBLEM), workers=2)
    save_plan(plan, tmp_path / "plan.json")
    again = load_plan(tmp_path / "plan.json")
    assert again.tree.problem == PROBLEM
    assert again.leaf_label.tolist() == plan.leaf_label.tolist()


def test_blank_columns_move_no_loss(tmp_path: Path) -> None:
    table = tmp_path / "costs.csv"
    table.write_text("truth,,b,c\na,,7,\nb,,,3\n")
    found = PROBLEM.replace(loss=files.read_loss(table, PROBLEM.classes))
    assert found.loss is not None
    assert found.loss.matrix.tolist() == [[0, 7, 1], [1, 0, 3], [1, 1, 0]]


def test_mistakes_name_the_file_of_the_loss(tmp_path: Path) -> None:
    path, costs = tmp_path / "problem.csv", tmp_path / "costs.yaml"
    ct.save(PROBLEM.replace(loss=None), path)
    costs.write_text("nevr: [[a, b]]\n")
    with pytest.raises(CrowdtreeError, match=r"costs\.yaml: loss: no field 'nevr'"):
        load_problem(path, loss=costs)


def test_a_loss_is_given_in_place_of_the_files(tmp_path: Path) -> None:
    path = tmp_path / "problem.csv"
    ct.save(PROBLEM.replace(loss=None), path)
    table = tmp_path / "costs.csv"
    table.write_text("truth;b;c\na;7,25;\nb;;0,5\nrefer;2,5\n")
    expected = [[0, 7.25, 1], [1, 0, 0.5], [1, 1, 0]]
    found = load_problem(path, loss=table)
    assert found.loss is not None
    assert (found.loss.matrix.tolist(), found.loss.refer) == (expected, 2.5)
    document = tmp_path / "costs.yaml"
    document.write_text("loss:\n  pairs: {a: {b: 7.25}, b: {c: 0.5}}\n  refer: 2.5\n")
    frame = pl.DataFrame(
        {"truth": ["a", "b", "refer"], "b": [7.25, None, 2.5], "c": [1.0, 0.5, None]}
    )
    for other in (document, frame, {"matrix": expected, "refer": 2.5}):
        assert load_problem(path, loss=other) == found
    whole = tmp_path / "problem.yaml"
    ct.save(PROBLEM, whole)
    assert load_problem(whole, loss=table) == found.replace()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("truth,a\nz,3\n", "line 2: 'z' is not a class of the problem"),
        ("truth,a,z\na,0,3\n", "line 1: 'z' is not a class of the problem"),
        ("truth,b\na,dear\n", "line 2: expected a loss of 0 or more, got 'dear'"),
        ("truth,b\na,2\na,3\n", "line 3: class 'a' has two rows"),
        ("truth,b\na,-2\n", "truth 'a', label 'b' has -2"),
        ("truth,b\na,nan\n", "truth 'a', label 'b' has nan"),
        ("truth,a\na,2\n", "write 0 on the diagonal"),
        ("truth,b\nrefer,-1\n", "refer: expected a number from 0"),
        ("truth,b\nrefer,\n", "line 2: expected a loss of 0 or more, got ''"),
        ("truth\n", "expected truth,<label>"),
        ("truth,b\na,2,3\n", "line 2: '3' has no label in the header"),
        ("", "is empty"),
    ],
)
def test_bad_tables_are_refused_in_one_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "problem.csv"
    ct.save(PROBLEM.replace(loss=None), path)
    (tmp_path / "problem.loss.csv").write_text(text)
    with pytest.raises(CrowdtreeError, match=words) as caught:
        load_problem(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("loss", [3, "x", [[0, 1], [1, 0]], {"never": [["a", "z"]]}])
def test_bad_losses_of_documents_name_the_file(loss: Any) -> None:
    data = problem_to_dict(PROBLEM) | {"loss": loss}
    with pytest.raises(CrowdtreeError, match=r"^birds\.json: loss: "):
        problem_from_dict(data, "birds.json")


def test_a_class_named_refer_needs_a_document(tmp_path: Path) -> None:
    problem = Problem(["refer", "b"], None, ["q"], [[0, 1]], 0.1, loss={"refer": 2})
    with pytest.raises(CrowdtreeError, match=r"save it as \.yaml"):
        ct.save(problem, tmp_path / "it.csv")
    assert not list(tmp_path.iterdir())
    other = problem.replace(loss=[[0, 3], [1, 0]])
    ct.save(other, tmp_path / "it.csv")
    assert load_problem(tmp_path / "it.csv") == other
