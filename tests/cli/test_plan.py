"""The verb plan, and the verbs that read what it wrote."""

from __future__ import annotations

import json

import pytest

import crowdtree as ct
from crowdtree.core.text import number, percent
from tests.cli.helpers import complaint, result, run


@pytest.fixture
def chosen(birds, tmp_path, capsys):
    """A plan for 3 % wrong labels, as a file."""
    path = tmp_path / "plan.json"
    assert run("plan", birds, "--error", 0.03, "--price", 0.5, "-o", path) == 0
    capsys.readouterr()
    return path


def test_both_choices_are_shown_with_what_is_proven(birds, capsys):
    assert run("plan", birds, "--error", 0.03) == 0
    out = capsys.readouterr().out
    assert out.startswith("Adaptive policy: ")
    assert "fixed tree, votes until a lead" in out
    assert "proven: no tree" in out
    assert out.endswith("-o plan.json\n")
    data = result(capsys, "plan", birds, "--answers", 4)
    assert [row["kind"] for row in data["choices"]] == ["adaptive", "tree"]
    assert all(row["answers"] <= 4 for row in data["choices"])
    assert data["recommended"] == "adaptive"


def test_simulate_report_explain_campaigns_and_python_read_the_plan(chosen, tmp_path, capsys):
    choices = ct.load(chosen)
    run_ = result(capsys, "simulate", chosen, "--items", 4000)
    answers = choices.recommended.performance.answers
    assert run_["answers_per_item"] == pytest.approx(answers, rel=0.05)
    page = tmp_path / "page.html"
    told = result(capsys, "report", chosen, "-o", page)
    assert told["expected_answers"] == answers
    assert told["expected_cost"] == pytest.approx(0.5 * answers)
    assert "The best fixed tree" in page.read_text()
    assert run("explain", chosen, "--class", "robin") == 0
    database = f"sqlite:///{tmp_path}/c.db"
    assert run("campaign", "create", chosen, "--database", database, "--json") == 0
    capsys.readouterr()


def test_simulate_states_the_cost_and_what_it_leaves_out(tmp_path, capsys):
    path = tmp_path / "plan.json"
    prices = ("--price", 0.02, "--price", "ring=0.05")
    assert run("plan", "example:mushrooms", "--max-loss", 0.2, *prices, "-o", path) == 0
    capsys.readouterr()
    choices = ct.load(path)
    found = result(capsys, "simulate", path, "--items", 2000)
    asked = found["answers_per_question"]
    cost = sum(n * (0.05 if name == "ring" else 0.02) for name, n in asked.items())
    assert found["cost_per_item"] == pytest.approx(cost)
    assert cost == pytest.approx(choices.recommended.performance.cost, rel=0.1)
    assert run("simulate", path, "--items", 2000) == 0
    out = capsys.readouterr().out
    assert f"{number(cost)} per item at the prices of the plan" in out
    assert f"{len(asked) - 8} more questions together" in out
    paid = choices.recommended.performance
    words = f"expected loss {number(paid.risk)}, {percent(paid.error)} wrong with "
    for shown in (repr(choices), repr(choices.recommended)):
        assert words in shown
        assert shown.endswith(f" for {number(paid.cost)})")


def test_a_plan_is_compared_with_other_policies_at_its_goal(chosen, capsys):
    words = ("simulate", chosen, "--compare", "--items", 300)
    found = result(capsys, *words)
    assert found == result(capsys, *words, "--target-error", 0.03)
    assert found != result(capsys, *words, "--target-error", 0.01)


def test_options_that_the_plan_has_decided_are_refused(chosen, capsys):
    for words in (
        ("simulate", chosen, "--target-error", 0.1),
        ("simulate", chosen, "--policy", "batch"),
        ("report", chosen, "--error", 0.1),
        ("report", chosen, "--price", 2),
        ("campaign", "create", chosen, "--workers", 3),
    ):
        assert "plan.json" in complaint(capsys, *words)
    assert "has no tree; crowdtree plan --tree" in complaint(capsys, "evaluate", chosen)
    assert "contains its problem" in complaint(capsys, "simulate", chosen, "--worker-error", 0.1)


def test_the_tree_alone_can_be_written_and_drawn(birds, tmp_path, capsys):
    tree, picture = tmp_path / "tree.json", tmp_path / "tree.svg"
    words = ("plan", birds, "--error", 0.03, "--tree", "-o", tree, "--draw", picture)
    assert run(*words) == 0
    assert "until one side leads by" in capsys.readouterr().out
    plan = ct.load(tree)
    assert ct.evaluate(plan).misclassification <= 0.03
    assert picture.exists()
    found = result(capsys, "simulate", tree, "--items", 4000)  # as the plan that it is
    assert found["answers_per_item"] == pytest.approx(ct.evaluate(plan).expected_answers, rel=0.05)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "--error, --answers, --cost or --max-loss"),
        (["--error", 0.1, "--answers", 3], "--error and --answers: expected one of them"),
        (["--error", 2], "--error: expected a number between 0 and 1, got 2; 2 % is 0.02"),
        (["--error", 0], "--error: 0 is out of reach; the adaptive policy gets to "),
        (["--error", 0], "; allow more, or add questions"),
        (["--answers", 0.1], "too low"),
        (["--cost", 3], "give the --price"),
        (["--cost", 3, "--price", "flies=2"], "have no price; add --price NUMBER"),
        (["--cost", 3, "--price", "x=2"], "not in the problem"),
        (["--error", 0.1, "--price", "dear"], "expected 0.02 or question=0.02"),
        (["--max-loss", 1], "every mistake costs 1"),
        (["--error", 0.1, "-o", "plan.csv"], "expected the extension .json"),
    ],
)
def test_mistakes_get_one_line(words, says, birds, capsys):
    assert says in complaint(capsys, "plan", birds, *words)


def test_a_broken_plan_gets_one_line(chosen, capsys):
    data = json.loads(chosen.read_text())
    del data["choices"][0]["policy"]
    chosen.write_text(json.dumps(data))
    assert "holds a damaged plan ('policy' is missing); write it again" in complaint(
        capsys, "simulate", chosen
    )


def test_trees_come_with_a_line_about_plan(birds, capsys):
    for words in (
        ("design", birds),
        ("staff", birds, "--answers", 6),
        ("frontier", birds, "--error", 0.03),
    ):
        assert run(*words) == 0
        line = next(x for x in capsys.readouterr().out.splitlines() if "With crowdtree plan" in x)
        assert "answers per item (adaptive, simulated)." in line


def test_one_question_is_not_hidden_to_save_one_line(tmp_path, capsys):
    rows = "".join(
        f"q{n},0.1,{','.join(str((c >> n) & 1) for c in range(512))}\n" for n in range(9)
    )
    table = tmp_path / "nine.csv"
    table.write_text(f"question,error,{','.join(f'c{c}' for c in range(512))}\n{rows}")
    assert run("simulate", table, "--items", 20) == 0
    out = capsys.readouterr().out
    assert "more question" not in out
    assert all(f"  q{n}\n" in out for n in range(9))
