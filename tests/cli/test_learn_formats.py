"""The verb learn with the formats of other tools."""

from __future__ import annotations

import csv
import json
import warnings

import numpy as np
import polars as pl
import pytest

from crowdtree.core.errors import CrowdtreeError, CrowdtreeWarning
from crowdtree.io import interchange
from crowdtree.learning import learn
from tests import answer_writers
from tests.cli.learn_helpers import complaint, found, run

ENDINGS = {"label-studio": ".json", "zooniverse": ".csv", "wide": ".csv", "crowd-kit": ".csv"}


def written(answers, form, folder):
    path = folder / f"answers{ENDINGS.get(form, '.csv')}"
    answer_writers.WRITERS["crowdkit" if form == "crowd-kit" else form](answers, path)
    return path


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
    tasks[1]["annotations"] += [{**tasks[1]["annotations"][0], "was_cancelled": True}] * 2
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    with pytest.warns(CrowdtreeWarning, match="export.json: 1 answer with several choices"):
        frame = interchange.read_label_studio(path)
    assert list(frame) == ["task", "question", "worker", "label"]
    assert set(frame["question"]) == {"kind"}
    assert frame.n_rows == 18
    assert set(frame["worker"]) == {f"p{n}@site.example" for n in (1, 2, 3)}
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert run("learn", path, "--format", "label-studio") == 0
    shown = capsys.readouterr()
    assert "export.json: 1 answer with several choices left out" in shown.err
    assert "export.json: 2 cancelled annotations left out" in shown.err
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
        (
            "plain",
            "task,worker,label\n1,ann,cat\n1,ben,cat\n",
            "got 'cat' only",
        ),
    ],
)
def test_bad_answers_get_one_line(form, text, words, tmp_path, capsys):
    path = tmp_path / "answers.csv"
    path.write_text(text)
    assert words in complaint(capsys, "learn", path, "--format", form)


@pytest.mark.parametrize(
    ("form", "tool"), [("label-studio", "Label Studio"), ("zooniverse", "Zoo")]
)
def test_exports_are_recognised_and_said(form, tool, leaves, tmp_path, capsys):
    answers, _ = leaves
    path = written(answers, form, tmp_path)
    assert run("learn", path, "--json") == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["labels"] == dict(learn(answers).labels)
    assert shown.err.count("\n") == 1
    assert f"recognised as an export of {tool}" in shown.err
    frame = interchange.load_answers(path)
    assert dict(learn(frame).labels) == dict(learn(answers).labels)
    assert "crowdtree.load" in complaint(capsys, "learn", path, "--format", "plain")


def test_columns_of_answers_in_upper_case(leaves, tmp_path):
    answers, _ = leaves
    path = tmp_path / "answers.csv"
    answers.rename({name: name.title() for name in answers.columns}).write_csv(path)
    assert dict(learn(path).labels) == dict(learn(answers).labels)
    text = b"TASK,Worker,Label\n007,ann,a\n008,bob,b\n7,ann,b\n"
    assert set(learn(text).labels) == {"007", "008", "7"}
    with pytest.raises(CrowdtreeError, match="expected one of crowdkit"):
        interchange.load_answers(path, "excel")
