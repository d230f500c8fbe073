"""What mistakes cost, on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.helpers import TABLE, complaint, result, run

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
    assert "expected loss per item (exact)" in page


def test_a_loss_beside_the_table_is_found(birds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (birds / "costs.csv").rename(birds / "birds.loss.csv")
    found = result(capsys, "design", birds / "birds.csv", "--method", "optimal")
    assert found["certificate"]["status"] == "optimal"
    assert found["risk"] < found["certificate"]["value"]
    assert run("campaign", "create", birds / "birds.csv", "--adaptive", "--target-loss", 0.1,
               "--database", f"sqlite:///{birds}/x.db", "--json") == 0  # fmt: skip


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
    assert "target_loss: expected" in complaint(capsys, *words, "--target-loss", -1)
    assert "out of reach" in complaint(
        capsys, "frontier", "example:mushrooms", "--max-votes", 3, "--max-loss", 1e-9
    )
    assert "--max-loss" in complaint(capsys, "frontier", table, "-o", birds / "plan.json")
