"""The verb `evaluate`: what each label is worth, and the confusion matrix."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import crowdtree as ct
from crowdtree import io as files
from crowdtree.core.text import percent
from crowdtree.show.plots import tree_fold
from tests.cli.helpers import result, run


def saved(tmp_path: Path, plan: ct.Plan) -> Path:
    path = tmp_path / "plan.json"
    files.save_plan(plan, path)
    return path


def test_json_has_the_matrix_and_the_classes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = ct.staff(ct.design(ct.example("animals")), workers=40)
    value = ct.evaluate(plan)
    found = result(capsys, "evaluate", saved(tmp_path, plan))
    np.testing.assert_allclose(found["confusion"], value.confusion)
    assert found["classes"] == [row.to_dict() for row in value.classes]


def test_a_small_matrix_is_printed_and_a_large_one_with_full(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = saved(tmp_path, ct.staff(ct.design(ct.example("table1")), workers=4))
    assert run("evaluate", small) == 0
    shown = capsys.readouterr().out
    assert "Rows: true class. Columns: label." in shown
    plan = ct.staff(ct.design(ct.example("animals")), workers=40)
    value, path = ct.evaluate(plan), saved(tmp_path, plan)
    assert run("evaluate", path) == 0
    shown = capsys.readouterr().out
    assert "Rows: true class" not in shown
    assert "The 12 of 20 classes with the least precision" in shown
    worst = value.confusions(1)[0]
    assert re.search(rf"{worst.truth} +{worst.label} +{percent(worst.given)}", shown)
    assert run("evaluate", path, "--full") == 0
    shown = capsys.readouterr().out
    assert "Rows: true class. Columns: label." in shown
    for row in value.classes:
        cells = f"{percent(row.share)} +{percent(row.recall)} +{percent(row.precision)}"
        assert re.search(rf"{row.name} +{cells}", shown), row.name


def test_undecided_items_have_a_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = ct.staff(ct.design(ct.example("table1")), workers=4).leaving_undecided([0])
    assert plan is not None
    assert run("evaluate", saved(tmp_path, plan)) == 0
    shown = capsys.readouterr().out
    assert "never given" in shown
    assert re.search(r"^class +share +recall +precision +undecided", shown, re.MULTILINE)
    assert "(undeci…" in shown


def test_full_drawings_fold_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    problem = ct.Problem(
        [f"class {i}" for i in range(80)], None, [f"q{i}" for i in range(80)], np.eye(80), 0.1
    )
    table, drawn = tmp_path / "wide.json", tmp_path / "tree.svg"
    files.save_problem(problem, table)
    assert next(tree_fold.views(ct.design(problem))).folds
    assert run("design", table, "--draw", drawn) == 0
    assert 'class="fold"' in drawn.read_text()
    assert run("design", table, "--draw", drawn, "--full") == 0
    assert 'class="fold"' not in drawn.read_text()
    assert drawn.read_text().count('class="leaf"') == 80
    capsys.readouterr()


def test_columns_of_the_matrix_are_distinct(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["scratched, thin", "scratched, deep", "dent"]
    problem = ct.Problem(names, None, ["q", "r"], [[0, 1, 1], [0, 1, 0]], 0.03)
    assert run("evaluate", saved(tmp_path, ct.staff(ct.design(problem), workers=2))) == 0
    lines = capsys.readouterr().out.splitlines()
    (head,) = (line for line in lines if line.startswith("of its items"))
    assert re.split(" {2,}", head.strip())[1:] == ["scratch… (1)", "scratch… (2)", "dent"]
