"""Goals on the command line: caps, percent, goals out of reach, and hints that can be pasted."""

from __future__ import annotations

import json
import shlex

import pytest

import crowdtree as ct
from tests.cli.helpers import complaint, result, run

TICKETS = """question,error,billing,refund,password,login,bug,feature
prior,,0.3,0.15,0.2,0.15,0.15,0.05
about money,0.05,1,1,0,0,0,0
wants money back,0.1,0,1,0,0,0,0
cannot sign in,0.08,0,0,1,1,0,0
something fails,0.15,0,0,0,1,1,0
asks for something new,0.2,0,0,0,0,0,1
"""
DASHES = """question,error,a,b,c
q,0.1,-,0,1
r,0.1,0,-,1
s,0.1,0,1,-
"""
TWINS = "question,error,a,b,c,d\nprior,,0.06,0.04,0.5,0.4\nq,0.1,0,0,1,1\nr,0.1,0,0,0,1\n"


@pytest.fixture
def tickets(tmp_path):
    path = tmp_path / "tickets.csv"
    path.write_text(TICKETS)
    return path


@pytest.fixture
def dashes(tmp_path):
    path = tmp_path / "dashes.csv"
    path.write_text(DASHES)
    return path


@pytest.fixture
def twins(tmp_path):
    path = tmp_path / "twins.csv"
    path.write_text(TWINS)
    return path


def test_no_item_takes_more_answers_than_the_maximum(tickets, tmp_path, capsys):
    path = tmp_path / "plan.json"
    found = result(capsys, "plan", tickets, "--answers", 7, "--max-answers", 9, "-o", path)
    assert found["goal"]["max_answers"] == 9
    tree = ct.load(path).fixed_plan
    assert tree.vote == "majority"
    assert max(tree.votes) > 1
    assert tree.most_answers <= 9
    found = result(capsys, "plan", tickets, "--error", 0.15, "--max-answers", 9)
    assert [row["kind"] for row in found["choices"]] == ["adaptive", "tree"]
    assert run("plan", tickets, "--answers", 7, "--max-answers", 2) == 0
    assert "No fixed tree: a maximum of 2 is too low for the trees found" in capsys.readouterr().out
    data = result(capsys, "plan", tickets, "--answers", 7)
    assert "max_answers" not in data["goal"]
    assert data["choices"][1]["name"] == "fixed tree, votes until a lead"


def test_the_reason_agrees_with_the_numbers(tickets, capsys):
    for words in (("--answers", 7, "--max-answers", 9), ("--error", 0.02), ("--answers", 3)):
        found = result(capsys, "plan", tickets, *words)
        best, other = found["choices"]
        assert found["recommended"] == best["kind"]
        part = "answers" if "--error" in words else "error"
        if "as good as" in found["reason"]:
            tree, adaptive = sorted((best, other), key=lambda row: row["kind"] != "tree")
            low, high = adaptive[f"{part}_interval"]
            assert low <= tree[part] <= high
        else:
            share = 100 * (1 - best[part] / other[part])
            assert found["reason"].startswith(f"{share:.0f} % ")


def test_a_table_without_a_tree_still_has_a_plan(dashes, tmp_path, capsys):
    assert run("check", dashes) == 0
    out = capsys.readouterr().out
    assert "No fixed tree: a tree cannot begin, because every question has - for some class." in out
    assert "No plan exists" not in out
    assert "What errors cost" in out
    picture, path = tmp_path / "tree.svg", tmp_path / "plan.json"
    assert run("plan", dashes, "--error", 0.02, "--draw", picture, "-o", path) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("Adaptive policy: ")
    assert shown.out.count("a tree cannot begin") == 1
    assert "--draw: there is no tree to draw" in shown.err
    assert path.exists()
    assert not picture.exists()
    words = complaint(capsys, "plan", dashes, "--error", 0.02, "--tree", "-o", path)
    assert words.startswith("crowdtree: --tree: no fixed tree reaches this")
    assert run("report", path, "-o", tmp_path / "page.html") == 0
    page = (tmp_path / "page.html").read_text()
    assert page.count("a tree cannot begin") == 1


def test_the_hint_asks_for_an_error_that_is_reached(twins, capsys):
    assert "the adaptive policy gets to 0.04" in complaint(
        capsys, "plan", twins, "--error", 0.01, "--allow-groups"
    )
    assert run("check", twins) == 0
    *_, hint = capsys.readouterr().out.strip().splitlines()
    words = shlex.split(hint.removeprefix("Next: crowdtree "))
    assert float(words[words.index("--error") + 1]) == pytest.approx(0.045, abs=0.005)
    assert run(*words) == 0


def test_plan_and_frontier_find_the_same_tree_for_a_loss(tickets, tmp_path, capsys):
    loss = tmp_path / "loss.yaml"
    loss.write_text("pairs:\n  bug: {feature: 20}\n  refund: {billing: 5}\nrefer: 2\n")
    given = (tickets, "--loss", loss, "--price", 0.02, "--price", "something fails=0.05")
    for words in (("--answers", 7), ("--max-loss", 0.1)):
        plan = result(capsys, "plan", *given, *words)
        tree = next(row for row in plan["choices"] if row["kind"] == "tree")
        front = result(capsys, "frontier", "--vote", "margin", *given, *words)["plan"]
        assert tree["risk"] == pytest.approx(front["risk"])
        assert tree["answers"] == pytest.approx(front["expected_answers"])
        assert "found" in plan["reason"]


def test_shares_may_be_written_in_percent(tickets, capsys):
    assert result(capsys, "plan", tickets, "--error", "2%")["goal"] == {"error": 0.02}
    words = ("simulate", tickets, "--items", 200)
    in_percent = result(capsys, *words, "--target-error", "5 %", "--worker-error", "10%")
    assert in_percent == result(capsys, *words, "--target-error", 0.05, "--worker-error", 0.1)
    wrong = complaint(capsys, "plan", tickets, "--error", "2x")
    assert wrong.startswith("crowdtree: --error: expected a number, got '2x'")


def test_an_incomplete_plan_is_called_one(tmp_path, capsys):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"crowdtree": 1, "kind": "plan"}))
    assert complaint(capsys, "simulate", path).endswith("plan.json: tree: is missing; add it\n")
