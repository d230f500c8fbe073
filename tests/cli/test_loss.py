"""What mistakes cost, on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from crowdtree.core.text import number
from tests.cli.helpers import TABLE, complaint, result, run

LOSS = "truth,robin,trout\nshark,500,500\nrefer,0.4\n"


@pytest.fixture
def birds(tmp_path: Path) -> Path:
    (tmp_path / "birds.csv").write_text(TABLE)
    (tmp_path / "costs.csv").write_text(LOSS)
    return tmp_path


def test_verbs_show_the_expected_loss(birds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (birds / "birds.csv", "--loss", birds / "costs.csv")
    assert run("design", *words) == 0
    assert "Expected loss" in capsys.readouterr().out
    assert run("staff", *words, "--answers", 6) == 0
    out = capsys.readouterr().out
    assert "referred to an expert" in out
    assert "to the expert · best guess right" in out
    assert run("simulate", *words, "--target-loss", 0.05, "--max-answers", 5, "--items", 200) == 0
    out = capsys.readouterr().out
    assert "Loss" in out
    assert "referred to an expert" in out
    plan = birds / "plan.json"
    frontier = ("frontier", *words, "--max-votes", 9, "--max-loss", 0.2, "-o", plan)
    found = result(capsys, *frontier, "--draw", birds / "front.svg")
    assert found["plan"]["risk"] <= 0.2
    assert "expected loss per item" in (birds / "front.svg").read_text()
    assert run("frontier", *words, "--max-votes", 9, "--max-loss", 0.2) == 0
    assert "expected loss" in capsys.readouterr().out
    assert run("report", plan, "--out", birds / "report.html") == 0
    page = (birds / "report.html").read_text()
    assert f"expected loss {number(found['plan']['risk'])}" in page  # in the heading
    assert '<th class="n">expected loss</th>' in page


def test_a_loss_beside_the_table_is_found(birds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (birds / "costs.csv").rename(birds / "birds.loss.csv")
    found = result(capsys, "design", birds / "birds.csv", "--method", "optimal")
    assert found["certificate"]["status"] == "optimal"
    assert found["risk"] < found["certificate"]["value"]
    assert run("campaign", "create", birds / "birds.csv", "--adaptive", "--target-loss", 0.1,
               "--database", f"sqlite:///{birds}/x.db", "--json") == 0  # fmt: skip


def test_check_says_what_mistakes_cost(birds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("check", birds / "birds.csv", "--loss", birds / "costs.csv")
    assert run(*words) == 0
    assert "Losses: 1 to 500 per mistake (most: " in (out := capsys.readouterr().out)
    assert "); an expert costs 0.4\n" in out
    (birds / "costs.csv").write_text(LOSS.replace("0.4", "5"))
    assert run(*words) == 0
    told = "an expert costs 5 and is never asked, because the label eagle costs at most 1"
    assert told in capsys.readouterr().out
    assert result(capsys, *words)["loss"]["refer"] == 5
    (birds / "who.csv").write_text("source,price,refers\npeople,1,\nvet,9,true\n")
    assert run("check", birds / "birds.csv", "--sources", birds / "who.csv") == 0
    assert "Losses: 1 per mistake; an expert costs 9 and is" in capsys.readouterr().out


def test_zero_one_loss_changes_nothing(birds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = result(capsys, "design", birds / "birds.csv")
    (birds / "birds.loss.csv").write_text("truth,robin,eagle,trout,shark\nrobin,0,1,1,1\n")
    assert result(capsys, "design", birds / "birds.csv") == plain
    assert plain["risk"] == plain["misclassification"]


def test_mistakes_are_one_line(birds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, costs = birds / "birds.csv", birds / "costs.csv"
    assert "no such file" in complaint(capsys, "design", table, "--loss", "no.csv")
    costs.write_text("truth,robin\nwhale,3\n")
    assert "'whale' is not a class" in complaint(capsys, "design", table, "--loss", costs)
    words = ("simulate", "example:mushrooms", "--items", 10)
    assert "--target-loss: expected" in complaint(capsys, *words, "--target-loss", -1)
    assert "out of reach" in complaint(
        capsys, "frontier", "example:mushrooms", "--max-votes", 3, "--max-loss", 1e-9
    )
    assert "--max-loss" in complaint(capsys, "frontier", table, "-o", birds / "plan.json")


ANSWERS = "task,worker,label\n" + "".join(
    f"p{item},w{worker},{'toxic' if item % 4 == 0 or (item + worker) % 9 == 0 else 'safe'}\n"
    for item in range(40)
    for worker in range(3)
)
COSTS = "truth,safe,toxic\ntoxic,30,0\nsafe,0,1\n"


def test_learn_labels_by_the_loss_and_an_audit_bounds_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("answers.csv", ANSWERS), ("costs.csv", COSTS)):
        (tmp_path / name).write_text(text)
    answers, costs, labels = (tmp_path / f"{n}.csv" for n in ("answers", "costs", "labels"))
    assert run("learn", answers, "--loss", costs, "--labels", labels) == 0
    assert "Their expected loss is" in capsys.readouterr().out
    header, *rows = labels.read_text().splitlines()
    assert header == "task,label,probability,expected_loss"
    assert len(rows) == 40
    goal = ("--loss", costs, "--loss-bound", 5)
    assert run("audit", "plan", labels, *goal) == 0
    assert "certify a mean loss of at most 5 per label" in capsys.readouterr().out
    audit, sheet = tmp_path / "audit.json", tmp_path / "sheet.csv"
    assert run("audit", "start", labels, "-o", audit, *goal, "--seed", 1) == 0
    assert "a mean loss of at most 5" in capsys.readouterr().out
    assert run("audit", "next", audit, "-n", 40, "-o", sheet) == 0
    lines = [line.split(",") for line in sheet.read_text().splitlines()]
    sheet.write_text("item,truth\n" + "".join(f"{i},{label}\n" for i, label, _ in lines[1:]))
    capsys.readouterr()
    assert run("audit", "record", audit, sheet) == 0
    out = capsys.readouterr().out
    assert "Mean loss: certified at most 0 per label" in out
    assert "Wanted mean loss: 5. Reached." in out
    found = result(capsys, "audit", "verify", audit)
    assert found["loss"]["upper"] == 0
    assert run("audit", "verify", audit) == 0
    assert "their mean loss is at most 0" in capsys.readouterr().out


def test_a_comparison_has_a_column_of_losses(
    birds: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("simulate", birds / "birds.csv", "--loss", birds / "costs.csv", "--compare")
    found = result(capsys, *words, "--items", 300, "--target-loss", 0.3)
    assert found["target_loss"] == 0.3
    assert all(row["risk"] >= 0 for row in found["policies"])
    plans = [row for row in found["policies"] if row["exact"] and not row["note"]]
    assert plans
    assert all(row["risk"] <= 0.3 for row in plans)
    plain = ("simulate", birds / "birds.csv", "--compare", "--items", 300, "--target-loss", 0.3)
    assert "every mistake costs 1" in complaint(capsys, *plain)
