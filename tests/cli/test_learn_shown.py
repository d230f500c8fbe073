"""What the verb learn shows and writes."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
import yaml

import crowdtree as ct
from crowdtree.learning import learn
from tests.cli.learn_helpers import complaint, found, said


def test_bad_gold_and_bad_options_get_one_line(leaves, tmp_path, capsys):
    leaves[0].write_csv(path := tmp_path / "answers.csv")
    gold = tmp_path / "gold.csv"
    for text, words in (
        ("task,label\nleaf 1,rust\nleaf 2,blight\n", "'rust' is not among"),
        ("task,label\nleaf 1,blight\nleaf 1,healthy\n", "leaf 1"),
        ("task,label\nnowhere,blight\n", "--gold: none of its items"),
        ("name\nx\n", "task"),
    ):
        gold.write_text(text)
        assert words in complaint(capsys, "learn", path, "--gold", gold)
    assert "level" in complaint(capsys, "learn", path, "--level", 1.5)
    assert "labels.csv" in complaint(capsys, "learn", path, "--labels", tmp_path / "labels.txt")
    assert "expected a plan" in complaint(capsys, "learn", path, "--plan", "example:animals")


def test_classes_may_be_named(tmp_path, capsys):
    path = tmp_path / "answers.csv"
    path.write_text("task,worker,label\n1,ann,cat\n1,ben,cat\n2,ann,cat\n")
    assert "--class" in complaint(capsys, "learn", path)
    made = found(capsys, "learn", path, "--class", "dog", "--class", "cat")
    assert made["classes"] == ["dog", "cat"]
    assert set(made["labels"].values()) == {"cat"}


def test_a_class_without_answered_gold_is_named(animals, tmp_path, capsys):
    animals[1].write_csv(path := tmp_path / "answers.csv")
    gold = tmp_path / "gold.csv"
    first = animals[1]["task"][0]
    gold.write_text(f"task,label\n{first},robin\nelsewhere,yeti\n")
    assert "no answered item of 'yeti'" in complaint(capsys, "learn", path, "--gold", gold)


def test_terminal_shows_skills_errors_pairs_and_what_was_assumed(
    animals, tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "80")
    crowd, answers = animals
    answers.write_csv(path := tmp_path / "answers.csv")
    ct.io.save_problem(crowd.problem, tmp_path / "table.yaml")
    shown = said(capsys, "learn", path, "--problem", tmp_path / "table.yaml")
    learned = learn(answers, problem=crowd.problem)
    worker = learned.workers["3"]
    line = next(row for row in shown.splitlines() if row.startswith("3 "))
    assert f"{100 * worker.error:.1f} %" in line
    assert f"{worker.skill:+.2f} ± {(worker.high - worker.low) / 2:.2f}" in line
    half = (learned.intervals.worker_error.high - learned.intervals.worker_error.low)[0, 0] / 2
    first = next(row for row in shown.splitlines() if row.startswith("question00"))
    assert f"{100 * learned.problem.worker_error[0, 0]:.0f} ± {100 * half:.0f}" in first
    assert re.search(r"Of the 18 assumed errors, \d+ lies? outside", shown)
    tables = shown.split("Points to check")[0]
    assert max(map(len, tables.splitlines())) <= 80


def test_terminal_keeps_markup_in_names_and_folds_many_workers(tmp_path, capsys):
    rng = np.random.default_rng(3)
    rows = [("[/b]" if rng.random() < 0.3 else "[a]", t, w) for t in range(60) for w in range(20)]
    pl.DataFrame(
        {"task": [t for _, t, _ in rows], "worker": [f"[red]{w}" for _, _, w in rows],
         "label": [label for label, _, _ in rows]}
    ).write_csv(path := tmp_path / "answers.csv")  # fmt: skip
    shown = said(capsys, "learn", path)
    assert "[red]" in shown
    assert "[/b]" in shown
    assert "… 4 workers between" in shown


def test_answers_settle_thin_cells_only_where_classes_are_known(tmp_path, capsys):
    rng = np.random.default_rng(0)
    task, worker = np.indices((12, 4)).reshape(2, -1)
    label = np.where(rng.random(48) < 0.4, rng.integers(0, 3, 48), task % 3)
    frame = pl.DataFrame({"task": task, "worker": worker, "label": [f"k{x}" for x in label]})
    frame.write_csv(path := tmp_path / "answers.csv")
    gold = pl.DataFrame({"task": range(6), "label": [f"k{t % 3}" for t in range(6)]})
    gold.write_csv(known := tmp_path / "gold.csv")
    shown = said(capsys, "learn", path)
    assert "items of known class narrow it" in shown
    assert re.search(r"and \d more \(see --json or --report\)\n", shown)
    settled = re.search(
        r"; (\d+) answers would settle the", said(capsys, "learn", path, "--gold", known)
    )
    assert settled
    assert int(settled[1]) > 0


def test_a_long_name_leaves_room_for_the_columns(leaves, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    names = {name: f"{name}.of.a.very.long.address@site.example" for name in leaves[0]["worker"]}
    leaves[0].with_columns(pl.col("worker").cast(pl.String).replace(names)).write_csv(
        path := tmp_path / "answers.csv"
    )
    shown = said(capsys, "learn", path).splitlines()
    assert next(line for line in shown if line.startswith("worker")).rstrip().endswith("agrees")
    assert max(len(line) for line in shown if "…" in line and "±" in line) <= 80


def test_files_that_are_written(leaves, tmp_path, capsys):
    leaves[0].write_csv(path := tmp_path / "answers.csv")
    out = {name: tmp_path / name for name in ("p.yaml", "u.yaml", "labels.csv", "page.html")}
    shown = said(capsys, "learn", path, "-o", out["p.yaml"], "--upper", out["u.yaml"],
                 "--labels", out["labels.csv"], "--report", out["page.html"])  # fmt: skip
    assert shown.strip().splitlines()[-1].startswith("Next: crowdtree plan ")
    shown = said(capsys, "learn", path, "--labels", labels := tmp_path / "my labels.csv")
    assert shown.endswith(f"Next: crowdtree audit start '{labels}' -o audit.json\n")
    learned = learn(leaves[0])
    plain, careful = (ct.load_problem(out[name]) for name in ("p.yaml", "u.yaml"))
    assert plain.worker_error == pytest.approx(learned.problem.worker_error, abs=1e-6)
    assert careful.worker_error == pytest.approx(learned.upper_problem().worker_error, abs=1e-6)
    assert (careful.worker_error > plain.worker_error).all()
    labels = pl.read_csv(out["labels.csv"])
    assert dict(zip(labels["task"], labels["label"], strict=True)) == dict(learned.labels)
    assert "Workers, the weakest first" in out["page.html"].read_text()
    assert yaml.safe_load(out["p.yaml"].read_text())


@pytest.mark.parametrize(
    ("option", "name", "words"),
    [
        ("--labels", "labels.txt", "labels.csv"),
        ("--report", "page.pdf", "page.html"),
        ("--report", "nowhere/page.html", "does not exist"),
        ("--upper", "u.txt", "unknown file extension"),
        ("--upper", "p.yaml", "two results"),
    ],
)
def test_nothing_is_written_when_something_cannot_be(option, name, words, leaves, tmp_path, capsys):
    leaves[0].write_csv(path := tmp_path / "answers.csv")
    told = complaint(capsys, "learn", path, "-o", tmp_path / "p.yaml", option, tmp_path / name)
    assert words in told
    assert [file.name for file in tmp_path.iterdir()] == ["answers.csv"]


@pytest.mark.slow
@pytest.mark.filterwarnings("default::crowdtree.CrowdtreeWarning")  # some cells err in half
def test_how_sure_a_plans_error_is(animals, tmp_path, capsys):
    crowd, answers = animals
    answers.write_csv(path := tmp_path / "answers.csv")
    ct.io.save_problem(crowd.problem, table := tmp_path / "table.yaml")
    plan = tmp_path / "plan.json"
    said(capsys, "learn", path, "--problem", table, "-o", tmp_path / "p.yaml")
    said(capsys, "staff", tmp_path / "p.yaml", "--allow-groups", "--workers", 6, "-o", plan)
    made = found(capsys, "learn", path, "--problem", table, "--plan", plan)["credible"]
    learned = learn(answers, problem=crowd.problem)
    expected = learned.credible_interval(ct.io.load_plan(plan))
    assert made["low"] == pytest.approx(expected.low, abs=1e-6)
    assert made["high"] == pytest.approx(expected.high, abs=1e-6)
    assert "The plan misclassifies" in said(
        capsys, "learn", path, "--problem", table, "--plan", plan
    )
    other = tmp_path / "other.json"
    said(capsys, "design", "example:animals", "-o", other)
    error = complaint(capsys, "learn", path, "--problem", table, "--plan", other)
    assert "not those learned" in error
