"""The verb pilot."""

from __future__ import annotations

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.learning.pilot import plan_pilot
from tests.cli.learn_helpers import complaint, found, said


def test_pilot_agrees_with_the_library(tmp_path, capsys):
    made = found(capsys, "pilot", "example:animals", "--half-width", 0.04, "--level", 0.9,
                 "--answers-per-item", 2)  # fmt: skip
    tree = ct.design(ct.example("animals"))
    expected = plan_pilot(tree, 0.04, level=0.9, answers_per_item=2)
    assert made["gold_items"] == expected.gold_items
    assert made["answers"] == expected.answers
    assert sum(made["gold_per_class"].values()) == made["gold_items"]
    sizes = [cell["sensitivity"] for cell in made["cells"]]
    assert sizes == sorted(sizes, key=lambda size: -abs(size))
    assert len(sizes) == np.count_nonzero(expected.sensitivity)
    shown = said(capsys, "pilot", "example:animals")
    assert "Cells that affect the misclassification most" in shown
    plan = tmp_path / "plan.json"
    said(capsys, "staff", "example:animals", "--workers", 20, "-o", plan)
    staffed = plan_pilot(ct.io.load_plan(plan)).sensitivity
    assert found(capsys, "pilot", plan)["cells"][0]["sensitivity"] == pytest.approx(staffed.max())


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (["--half-width", 0.7], "--half-width: expected"),
        (["--level", 1], "level"),
        (["--answers-per-item", 0], "--answers-per-item: expected"),
    ],
)
def test_pilot_refuses_invalid_options(option, words, capsys):
    assert words in complaint(capsys, "pilot", "example:animals", *option)


def test_pilot_of_several_answers_shows_which_cells_matter(capsys):
    made = found(capsys, "pilot", "example:leaves")
    pilot = plan_pilot(ct.design(ct.example("leaves")))
    assert made["answers"] == pilot.answers
    assert len(made["cells"]) == (pilot.sensitivity != 0).sum()
    size = [abs(cell["sensitivity"]) for cell in made["cells"]]
    assert size == sorted(size, reverse=True)
    assert "affect the misclassification most" in said(capsys, "pilot", "example:leaves")
