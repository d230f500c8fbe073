"""The verb design."""

from __future__ import annotations

import json

import pytest

import crowdtree as ct
from crowdtree.designs.designers import DESIGNERS
from tests.cli.helpers import result, run


def test_design_prints_the_answer_first_and_how_to_go_on(birds, capsys):
    assert run("design", birds) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Misclassifies 16.9 % of items")
    assert "flies" in "\n".join(lines)
    assert lines[-1] == f"Next: crowdtree staff {birds} --workers 30"


def test_design_json_has_the_public_names(birds, capsys):
    found = result(capsys, "design", birds)
    value = ct.evaluate(ct.design(ct.load_problem(birds)))
    assert found["misclassification"] == value.misclassification
    assert found["expected_answers"] == value.expected_answers
    assert found["tree"]["question"] == "flies"
    assert found["tree"]["yes"] == {
        "question": "sings",
        "no": {"label": "eagle"},
        "yes": {"label": "robin"},
    }
    assert [level["entropy"] for level in found["levels"]][-1] == 0
    assert found["votes"] == [1, 1, 1]


@pytest.mark.parametrize("method", list(DESIGNERS))
def test_every_method_designs(method, capsys):
    found = result(capsys, "design", "example:table1", "--method", method)
    assert found["method"] == method


def test_json_has_no_infinity(tmp_path, capsys):
    path = tmp_path / "rare.csv"
    path.write_text("question,error,a,b,c\nprior,,0.3,0.7,1e-20\nq,0.1,0,1,0\nr,0.1,0,0,1\n")
    assert run("design", path, "--json") == 0

    def refuse(word: str) -> None:
        raise AssertionError(word)

    found = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert found["bounds"]["misclassification_upper"] is None  # the last split gains nothing
