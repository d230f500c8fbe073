"""The verb explain."""

from __future__ import annotations

import json

import pytest

import crowdtree as ct
from crowdtree.cli import main

TABLE1 = ct.example("table1")


PLAN = ct.staff(ct.design(TABLE1), workers=8)


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


@pytest.mark.parametrize("policy", ["adaptive", "plan", "curtailed", "margin", "batch"])
def test_explain_shows_the_reason(policy, capsys):
    assert run("explain", "example:table1", "--policy", policy, "--class", "c2", "--seed", 3) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Before any answer"
    assert lines[-1].startswith("Label: ")
    right = lines[-1].startswith("Label: c2 ")
    assert lines[-1].endswith(". Right." if right else ". Wrong: it is c2.")


def test_explain_takes_answers_and_a_plan_and_writes_a_page(tmp_path, capsys):
    plan = tmp_path / "plan.json"
    ct.save(PLAN, plan)
    page = tmp_path / "trace.html"
    words = ["explain", plan, "--policy", "margin", "--answers", "T1=yes, T1 = NO,T1=1"]
    assert run(*words, "--html", page, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [step["answer"] for step in told["steps"]] == ["yes", "no", "yes"]
    assert told["true_class"] is None
    assert "<h1>" in page.read_text()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--class", "unicorn"], "class: 'unicorn' is not in the problem"),
        (["--class", "c22"], "; did you mean 'c2'?"),
        (["--answers", "T1=perhaps"], "expected T1=no, T1=yes, got 'T1=perhaps'"),
        (["--answers", "yes"], "got 'yes'"),
        (["--answers", "T9=yes"], "--answers: question 'T9' is not in the problem"),
        (["--html", "trace.gif"], "use --html trace.html"),
        (["--target-error", "2"], "--target-error: expected a number between 0 and 1"),
        (["--max-answers", "0"], "--max-answers: expected a whole number"),
        (["--max-answers", "1"], "needs at least"),
    ],
)
def test_explain_errors_take_one_line(words, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("explain", "example:table1", *words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert says in shown.err
