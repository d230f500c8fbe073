"""learn and pilot on the command line: every format, with and without gold, and bad input."""

from __future__ import annotations

import csv
import json
import re
import warnings

import numpy as np
import polars as pl
import pytest
import yaml

import crowdtree as ct
from crowdtree.cli import main
from crowdtree.errors import CrowdtreeWarning
from crowdtree.files import interchange
from crowdtree.learn import learn
from crowdtree.learn.pilot import plan_pilot
from learn_crowds import many_questions, one_question

ENDINGS = {"label-studio": ".json", "zooniverse": ".csv", "wide": ".csv", "crowd-kit": ".csv"}


def run(*words):
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


def said(capsys, *words):
    assert run(*words) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def found(capsys, *words):
    return json.loads(said(capsys, *words, "--json"))


def complaint(capsys, *words):
    assert run(*words) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    return error


@pytest.fixture(scope="module")
def leaves():
    """One question about leaves, two labels, 30 of 90 with gold; one worker never looks."""
    crowd = one_question(np.random.default_rng(1), 90, 8, 5)
    names = np.array(["healthy", "blight"])
    answers = pl.DataFrame(
        {
            "task": [f"leaf {t}" for t in crowd.answers["task"]] + [f"leaf {t}" for t in range(90)],
            "worker": [f"w{w}" for w in crowd.answers["worker"]] + ["lazy"] * 90,
            "label": [*names[crowd.answers["label"]], *["healthy"] * 90],
        }
    )
    gold = pl.DataFrame(
        {"task": [f"leaf {t}" for t in range(30)],
         "label": [str(names[int(crowd.gold[str(t)])]) for t in range(30)]}
    )  # fmt: skip
    return answers, gold


@pytest.fixture(scope="module")
def animals():
    crowd = many_questions(np.random.default_rng(2), 80, 6, 3, 9, 10)
    return crowd, pl.DataFrame(crowd.answers).cast(pl.String)


def written(answers, form, folder):
    path = folder / f"answers{ENDINGS.get(form, '.csv')}"
    interchange.WRITERS["crowdkit" if form == "crowd-kit" else form](answers, path)
    return path


# ---------------------------------------------------------------- formats


@pytest.mark.parametrize("form", ENDINGS)
@pytest.mark.parametrize("gold", ["none", "some"])
def test_every_format_says_the_same_of_one_question(form, gold, leaves, tmp_path, capsys):
    answers, known = leaves
    known.write_csv(tmp_path / "gold.csv")
    more = [] if gold == "none" else ["--gold", tmp_path / "gold.csv"]
    plain = learn(answers, None if gold == "none" else known)
    made = found(capsys, "learn", written(answers, form, tmp_path), "--format", form, *more)
    assert made["labels"] == dict(plain.labels)
    assert made["classes"] == ["blight", "healthy"]
    assert {w["name"]: w["answers"] for w in made["workers"]}["lazy"] == 90
    assert ("constant", "lazy") in {(f["kind"], f["subject"]) for f in made["flags"]}


@pytest.mark.parametrize("form", [*ENDINGS, "parquet"])
def test_every_format_says_the_same_of_many_questions(form, animals, tmp_path, capsys):
    crowd, answers = animals
    pl.DataFrame({"task": list(crowd.gold), "label": list(crowd.gold.values())}).write_csv(
        tmp_path / "gold.csv"
    )
    if form == "parquet":
        answers.write_parquet(path := tmp_path / "answers.parquet")
        made = found(capsys, "learn", path, "--gold", tmp_path / "gold.csv")
    else:
        path = written(answers, form, tmp_path)
        made = found(capsys, "learn", path, "--format", form, "--gold", tmp_path / "gold.csv")
    expected = learn(answers, crowd.gold)
    order = [made["questions"].index(name) for name in expected.problem.questions]
    assert np.array(made["outcome"])[order].tolist() == expected.problem.outcome.tolist()
    error = np.array(made["worker_error"])[order]
    assert error == pytest.approx(expected.problem.worker_error, abs=1e-4)


def test_an_export_as_label_studio_writes_it(tmp_path, capsys):
    tasks = []
    for task in range(1, 7):
        notes = [
            {
                "id": 1000 + 10 * task + person,
                "completed_by": {"id": person, "email": f"p{person}@site.example"},
                "result": [
                    {
                        "id": "Dx_aB91ISN",
                        "from_name": "kind",
                        "to_name": "img",
                        "type": "choices",
                        "origin": "manual",
                        "value": {"choices": ["cat" if (task + (person == 3)) % 2 else "dog"]},
                    }
                ],
                "was_cancelled": False,
                "ground_truth": False,
                "lead_time": 4.3,
            }
            for person in (1, 2, 3)
        ]
        tasks.append({"id": task, "data": {"image": "a.jpg"}, "annotations": notes,
                      "predictions": [], "project": 83})  # fmt: skip
    both = {"type": "choices", "from_name": "kind", "value": {"choices": ["cat", "dog"]}}
    tasks[0]["annotations"].append({"completed_by": 9, "result": [both]})
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    with pytest.warns(CrowdtreeWarning, match="export.json: 1 answer with several choices"):
        frame = interchange.read_label_studio(path)
    assert frame.columns == ["task", "question", "worker", "label"]
    assert set(frame["question"]) == {"kind"}
    assert len(frame) == 18
    assert set(frame["worker"]) == {f"p{n}@site.example" for n in (1, 2, 3)}
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert run("learn", path, "--format", "label-studio") == 0
    shown = capsys.readouterr()
    assert "export.json: 1 answer with several choices left out" in shown.err
    assert "6 labels from 18 answers by 3 workers" in shown.out


def test_an_export_as_zooniverse_writes_it(tmp_path):
    path = tmp_path / "classifications.csv"
    columns = ["classification_id", "user_name", "user_id", "user_ip", "workflow_id",
               "workflow_name", "workflow_version", "created_at", "gold_standard", "expert",
               "metadata", "annotations", "subject_data", "subject_ids"]  # fmt: skip
    notes = [
        {"task": "T0", "task_label": "Is there an animal?", "value": "Yes"},
        {"task": "T1", "task_label": "What do you see?", "value": ["Fur", "Horns"]},
        {"task": "T2", "task_label": "Which one?", "value": ["Deer"]},
        {"task": "T3", "task_label": "Mark it", "value": [{"x": 1.5, "y": 2.0, "tool": 0}]},
        {"task": "T4", "task_label": "Both", "value": [
            {"task": "T5", "task_label": "Day or night?", "value": "Day"}]},
        {"task": "T6", "task_label": "Comments", "value": None},
    ]  # fmt: skip
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, columns, restval="")
        table.writeheader()
        table.writerow({"classification_id": 1, "user_name": "not-logged-in-4d2f", "subject_ids": 7,
                        "annotations": json.dumps(notes),
                        "subject_data": json.dumps({"7": {"file": "x" * 200_000}})})  # fmt: skip
    before = csv.field_size_limit()
    with pytest.warns(CrowdtreeWarning, match="1 answer with several"):
        frame = interchange.read_zooniverse(path)
    assert csv.field_size_limit() == before
    who = "not-logged-in-4d2f"
    assert frame.rows() == [
        ("7", "Is there an animal?", who, "Yes"),
        ("7", "Which one?", who, "Deer"),
        ("7", "Day or night?", who, "Day"),
    ]


@pytest.mark.parametrize(
    ("form", "text", "words"),
    [
        ("label-studio", '[{"id": 1, "annotations": [5]}]', "entry 1 is"),
        ("label-studio", '[{"id": 1, "kind": "cat", "annotator": 3}]', "no choices"),
        ("label-studio", '[{"id": 1, "annotations": [{"result": 7}]}]', "JSON-MIN"),
        ("label-studio", "[7]", "entry 1 is"),
        ("zooniverse", 'annotations,subject_ids\n"[7]",1\n', "line 2: "),
        ("zooniverse", 'annotations,subject_ids\n"7",1\n', "line 2: "),
        ("zooniverse", "annotations,subject_ids\n[,1\n", "not JSON"),
        ("zooniverse", "annotations,subject_ids\n[],1\n", "no single-choice answers"),
        ("wide", "a,b\n1,2\n", "a wide table starts with"),
        ("wide", "task,ann,ben\n1,,\n", "is blank"),
        ("plain", "task,worker\n1,2\n", "label"),
        ("plain", "task,worker,label\n", "answers"),
        ("plain", "task,worker,label\n1,ann,cat\n2,ann,dog\n", "one worker only"),
        ("plain", "task,worker,label\n1,ann,cat\n1,ben,cat\n", "every label is 'cat'"),
    ],
)
def test_bad_answers_get_one_line(form, text, words, tmp_path, capsys):
    path = tmp_path / "answers.csv"
    path.write_text(text)
    assert words in complaint(capsys, "learn", path, "--format", form)


def test_bad_gold_and_bad_options_get_one_line(leaves, tmp_path, capsys):
    leaves[0].write_csv(path := tmp_path / "answers.csv")
    gold = tmp_path / "gold.csv"
    for text, words in (
        ("task,label\nleaf 1,rust\nleaf 2,blight\n", "'rust' is not among"),
        ("task,label\nleaf 1,blight\nleaf 1,healthy\n", "leaf 1"),
        ("task,label\nnowhere,blight\n", "use the same ids"),
        ("name\nx\n", "task"),
    ):
        gold.write_text(text)
        assert words in complaint(capsys, "learn", path, "--gold", gold)
    assert "level" in complaint(capsys, "learn", path, "--level", 1.5)
    assert "labels.csv" in complaint(capsys, "learn", path, "--labels", tmp_path / "labels.txt")
    assert "not a plan" in complaint(capsys, "learn", path, "--plan", "example:animals")


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


# ---------------------------------------------------------------- what is shown and written


def test_terminal_shows_skills_errors_pairs_and_what_was_assumed(
    animals, tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "80")
    crowd, answers = animals
    answers.write_csv(path := tmp_path / "answers.csv")
    ct.files.save_problem(crowd.problem, tmp_path / "table.yaml")
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
    tables = shown.split("What deserves a look")[0]
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
    assert shown.strip().splitlines()[-1].startswith("Next: crowdtree design ")
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


@pytest.mark.filterwarnings("default::crowdtree.CrowdtreeWarning")  # some cells err in half
def test_how_sure_a_plans_error_is(animals, tmp_path, capsys):
    crowd, answers = animals
    answers.write_csv(path := tmp_path / "answers.csv")
    ct.files.save_problem(crowd.problem, table := tmp_path / "table.yaml")
    plan = tmp_path / "plan.json"
    said(capsys, "learn", path, "--problem", table, "-o", tmp_path / "p.yaml")
    said(capsys, "staff", tmp_path / "p.yaml", "--allow-groups", "--workers", 6, "-o", plan)
    made = found(capsys, "learn", path, "--problem", table, "--plan", plan)["credible"]
    learned = learn(answers, problem=crowd.problem)
    expected = learned.credible_interval(ct.files.load_plan(plan))
    assert made["low"] == pytest.approx(expected.low, abs=1e-6)
    assert made["high"] == pytest.approx(expected.high, abs=1e-6)
    assert "The plan misclassifies" in said(
        capsys, "learn", path, "--problem", table, "--plan", plan
    )
    other = tmp_path / "other.json"
    said(capsys, "design", "example:animals", "-o", other)
    error = complaint(capsys, "learn", path, "--problem", table, "--plan", other)
    assert "not those learned" in error


# ---------------------------------------------------------------- pilot


def test_pilot_says_what_the_library_says(tmp_path, capsys):
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
    assert "Cells that move the misclassification most" in shown
    plan = tmp_path / "plan.json"
    said(capsys, "staff", "example:animals", "--workers", 20, "-o", plan)
    staffed = plan_pilot(ct.files.load_plan(plan)).sensitivity
    assert found(capsys, "pilot", plan)["cells"][0]["sensitivity"] == pytest.approx(staffed.max())


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (["--half-width", 0.7], "half_width"),
        (["--level", 1], "level"),
        (["--answers-per-item", 0], "answers_per_item"),
    ],
)
def test_pilot_refuses_nonsense(option, words, capsys):
    assert words in complaint(capsys, "pilot", "example:animals", *option)
