"""Problems as YAML and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings

import crowdtree as ct
from crowdtree import Problem
from crowdtree.io import (
    load_problem,
    problem_from_dict,
    problem_to_dict,
)
from tests.io.helpers import expected, message, put
from tests.strategies import problems

DOCUMENT = """
worker_error: 0.3
classes:
  - {name: a, prior: 0.5, description: the first}
  - {name: b, prior: 0.3}
  - {name: c, prior: 0.2}
questions:
  - name: q1
    text: Is it?
    error: 0.1
    outcome: [no, yes, "-"]
  - name: q2
    outcome: {c: 0, b: 1, a: 1}
"""


def test_document_as_people_write_it(tmp_path: Path) -> None:
    problem = load_problem(put(tmp_path, DOCUMENT, "p.yaml"))
    wanted = expected().replace(
        worker_error=[0.1, 0.3], texts=["Is it?", ""], descriptions=["the first", "", ""]
    )
    assert problem == wanted
    as_json = put(tmp_path, json.dumps(yaml.safe_load(DOCUMENT)), "p.json")
    assert load_problem(as_json) == wanted
    changed = load_problem(as_json, worker_error=0.2, prior="uniform", dash="either")
    assert changed == wanted.replace(worker_error=0.2, prior=None, dash="either")


def test_document_with_cell_errors_by_name(tmp_path: Path) -> None:
    text = DOCUMENT.replace("error: 0.1", "error: {b: 0.1}")
    problem = load_problem(put(tmp_path, text, "p.yaml"))
    assert problem.worker_error.tolist() == [[0.3, 0.1, 0.3], [0.3, 0.3, 0.3]]
    text = DOCUMENT.replace("error: 0.1", "error: {a: 0.1, b: 0.2}").replace("worker_error", "#")
    problem = load_problem(put(tmp_path, text + "    error: 0.4", "p.yaml"))
    assert problem.worker_error.tolist() == [[0.1, 0.2, 0.5], [0.4, 0.4, 0.4]]


def test_short_document(tmp_path: Path) -> None:
    text = "classes: [a, b]\nquestions: [{name: q, error: 0, outcome: [0, 1]}]"
    problem = load_problem(put(tmp_path, text, "p.yml"))
    assert problem == Problem(["a", "b"], None, ["q"], [[0, 1]], 0.0)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("description", "descripton", ["classes[0].descripton: no such field", "description"]),
        (
            "text:",
            "txt:",
            ["questions[0].txt: no such field; use one of name, text, answers, error"],
        ),
        ("worker_error", "worker_eror", ["worker_eror: no such field; use one of crowdtree"]),
        ("classes:", "class:", ["classes: is missing"]),
        ("name: q2", "name: 2", ["questions[1].name: expected text, got '2'; put it in quotes"]),
        ("name: b", "name: no", ["classes[1]", "expected text", "put it in quotes"]),
        ("prior: 0.3", 'prior: "x"', ["classes[1].prior: expected a number, got 'x'"]),
        ("prior: 0.3", "prior: 0.2", ["prior: sums to 0.9", "--normalise"]),
        ("prior: 0.3", "prior: .nan", ["class 'b' has nan"]),
        (", prior: 0.3", "", ["class 'b' has no prior, but others do"]),
        ("name: b", "name: a", ["'a' occurs more than once"]),
        ("name: q2", "name: q1", ["'q1' occurs more than once"]),
        ("name: b", 'name: " "', ["class 2 has no name"]),
        ('"-"]', '"?"]', ["questions[0] ('q1').outcome: class 'c' is '?'", "0, 1 or"]),
        (', "-"]', "]", ["questions[0] ('q1').outcome: expected 3 cells, one per class, got 2"]),
        ("c: 0, ", "", ["questions[1] ('q2').outcome: class 'c' is missing"]),
        ("c: 0, ", "d: 0, ", ["questions[1] ('q2').outcome: 'd' is not a class"]),
        ("c: 0, ", "c: {d: 0}, ", ["questions[1] ('q2').outcome: class 'c' is fields"]),
        ("error: 0.1", "error: 1.1", ["question 'q1' has 1.1", "from 0 to 1"]),
        ("error: 0.1", "error: [0.1, x, 0.1]", ["questions[0] ('q1').error: class 'b' is 'x'"]),
        ("worker_error: 0.3", "", ["questions[1] ('q2'): has no error", "worker_error:"]),
        ("worker_error: 0.3", "dash: maybe", ["dash: ", "inapplicable", "'maybe'"]),
        (
            "worker_error: 0.3",
            "crowdtree: 2",
            ["newer crowdtree (file version 2, this one reads 1)"],
        ),
        (
            "worker_error: 0.3",
            "kind: plan",
            ["expected a problem, got a plan; load and crowdtree"],
        ),
    ],
)
def test_bad_documents(tmp_path: Path, old: str, new: str, words: list[str]) -> None:
    assert old in DOCUMENT
    found = message(put(tmp_path, DOCUMENT.replace(old, new, 1), "p.yaml"))
    for word in words:
        assert word in found


@settings(max_examples=100)
@given(problem=problems())
def test_the_json_form_of_a_problem_keeps_everything(problem: Problem) -> None:
    data = json.loads(json.dumps(problem_to_dict(problem)))
    assert problem_from_dict(data, "problem") == problem


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "classes: [no, b]\nquestions: []\n",
            "expected a name, got 'False'; put names such as yes",
        ),
        ("classes: [a, b]\nquestions: 3\n", "questions: expected a list, got '3'"),
        (
            "classes: [a, b]\nquestions:\n  q: [0, 1]\n",
            "questions: expected a list, got fields; write one entry per line, such as - {name: ",
        ),
        ("classes: [a, b]\nquestions: [q]\n", "expected fields, got 'q'"),
        (
            "dash: maybe\nclasses: [a, b]\nquestions: []\n",
            "dash: expected 'inapplicable' or 'either', got",
        ),
    ],
)
def test_mistakes_of_type_say_what_was_expected(tmp_path, text, words):
    path = tmp_path / "problem.yaml"
    path.write_text(text)
    with pytest.raises(ct.CrowdtreeError) as raised:
        ct.load_problem(path)
    assert words in str(raised.value)
