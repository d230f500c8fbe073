"""The verb learn with files as people have them: columns, skips, spellings, wide tables."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.core.errors import CrowdtreeError
from crowdtree.io.audits import load_labels
from crowdtree.learning.answers import SKIPS
from tests.cli.learn_helpers import complaint, run

KINDS = ("billing", "bug", "praise")
PEOPLE = ("anna", "ben", "carla")


@pytest.fixture(scope="module")
def said() -> dict[str, dict[str, str]]:
    """Answers of three people about 40 tickets, whose ids have zeros in front."""
    rng = np.random.default_rng(4)
    tickets = {f"{n:03d}": KINDS[n % 3] for n in range(40)}
    return {
        ticket: {who: kind if rng.random() < 0.8 else str(rng.choice(KINDS)) for who in PEOPLE}
        for ticket, kind in tickets.items()
    }


def put(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def long(said):
    return [(t, who, x) for t, given in said.items() for who, x in given.items()]


def learned(capsys, *words):
    """Result as JSON, and the notes on standard error."""
    assert run("learn", *words, "--json") == 0
    shown = capsys.readouterr()
    return json.loads(shown.out), shown.err


def test_columns_are_named_guessed_and_kept(said, tmp_path, capsys):
    rows = [(t, who, x, f"note {n}") for n, (t, who, x) in enumerate(long(said))]
    path = put(tmp_path / "t.csv", ["Ticket", "who", "kind", "note"], rows)
    labels = tmp_path / "labels.csv"
    found, notes = learned(capsys, path, "--label", "kind", "--labels", labels)
    assert "reading task from 'Ticket', worker from 'who', label from 'kind'" in notes
    lines = labels.read_text().splitlines()
    assert lines[0] == "Ticket,label,probability"
    assert [line.split(",")[0] for line in lines[1:]] == list(said)
    assert load_labels(labels).items == list(said)  # an audit finds the items again
    same = ct.learn(path, columns={"label": "kind"})
    assert found["labels"] == dict(same.labels) == dict(ct.learn(_mapping(said)).labels)
    odd = put(tmp_path / "o.csv", ["Nr.", "x", "y", "z"], rows)
    named = ("--task", "Nr.", "--worker", "x", "--label", "y", "--labels", labels)
    assert learned(capsys, odd, *named)[0]["labels"] == found["labels"]
    assert load_labels(labels).items == list(said)
    for header in (["Nr.", "class"], ["task", "truth"]):  # gold by the same name, or a usual one
        gold = put(tmp_path / "g.csv", header, [("000", "billing"), ("001", "bug")])
        assert learned(capsys, odd, *named, "--gold", gold)[0]["accuracy"]["known"] == 2


def _mapping(said):
    task, worker, label = zip(*long(said), strict=True)
    return {"task": list(task), "worker": list(worker), "label": list(label)}


@pytest.mark.parametrize(
    ("header", "options", "words"),
    [
        (["ticket", "who", "kind", "note"], ["--task", "tiket"], "did you mean 'ticket'?"),
        (["ticket", "user", "rater", "kind"], [], "'user' and 'rater' may both be the worker"),
        (["ticket", "who", "n", "kind"], ["--label", "n"], "nearly unique (120 values in 120 rows"),
        (["task", "task", "who", "label"], [], "two columns"),
        (
            ["a", "b", "c", "d"],
            [],
            "--task, --worker, --label",
        ),
        (["ticket", "who", "n", "label"], ["--worker", "ticket"], "both read from 'ticket'"),
    ],
)
def test_columns_that_are_not_clear_are_refused(header, options, words, said, tmp_path, capsys):
    rows = [(t, who, n, x) for n, (t, who, x) in enumerate(long(said))]
    assert words in complaint(capsys, "learn", put(tmp_path / "t.csv", header, rows), *options)


def test_skips_are_no_classes(said, tmp_path, capsys):
    rows = long(said)
    words = ["I don't know", "?", " Unsure", "N/A", "", "I don’t  know", "pass"]
    rows += [("000", f"x{n}", word) for n, word in enumerate(words)]
    path = put(tmp_path / "t.csv", ["task", "worker", "label"], rows)
    found, notes = learned(capsys, path, "--skip", "Pass")
    assert found["classes"] == list(KINDS)
    assert "7 answers are skips, not labels (" in notes
    assert "blank 1" in notes
    assert "pass" in learned(capsys, path)[0]["classes"]
    kept = ct.learn(path, classes=[*KINDS, "pass", "?"], skip=["pass"])  # named: a class
    assert "?" in kept.answers.labels
    assert {"", "?", "unsure", "n/a", "i don't know"} <= SKIPS


def test_an_item_with_skips_alone_is_said(said, tmp_path, capsys):
    path = put(tmp_path / "t.csv", ["task", "worker", "label"], [*long(said), ("x", "anna", "?")])
    found, notes = learned(capsys, path)
    assert "x" not in found["labels"]
    assert "1 item without any other answer left out" in notes


def test_spellings_are_one_class(said, tmp_path, capsys):
    rows = [(t, who, x.title() if n % 5 == 0 else f" {x} ") for n, (t, who, x) in
            enumerate(long(said))]  # fmt: skip
    path = put(tmp_path / "t.csv", ["task", "worker", "label"], rows)
    gold = put(tmp_path / "g.csv", ["task", "label"], [("000", "BILLING"), ("001", "bug")])
    found, notes = learned(capsys, path, "--gold", gold)
    assert found["classes"] == list(KINDS)
    assert "spellings of a label read as one: 'Praise' as 'praise', 'Bug' as 'bug'" in notes
    assert found["labels"]["000"] == "billing"
    both = ct.learn(path, classes=["billing", "Billing", "bug", "Bug", "praise", "Praise"])
    assert len(set(both.answers.labels)) == 6  # named apart: apart


def test_several_files_are_read_as_one(said, tmp_path, capsys):
    rows = long(said)
    parts = [put(tmp_path / f"{n}.csv", ["ticket", "who", "label"], rows[n::2]) for n in (0, 1)]
    found, notes = learned(capsys, *parts)
    assert found["labels"] == dict(ct.learn(_mapping(said)).labels) == dict(ct.learn(parts).labels)
    assert "0.csv: reading task from 'ticket'" in notes
    own = [
        put(tmp_path / f"{who}.csv", ["ticket", "label"], [(t, x[who]) for t, x in said.items()])
        for who in PEOPLE
    ]
    found, notes = learned(capsys, *own)
    assert {worker["name"] for worker in found["workers"]} == set(PEOPLE)
    assert "all answers are by 'anna', as the file is called" in notes
    assert "worker" in complaint(capsys, "learn", own[0])
    asked = put(tmp_path / "q.csv", ["task", "who", "question", "label"], [("1", "a", "q", "1")])
    assert "question is missing" in complaint(capsys, "learn", asked, parts[0])
    assert "9.csv: no such file" in complaint(capsys, "learn", parts[0], tmp_path / "9.csv")


def test_files_with_columns_of_different_names(said, tmp_path, capsys):
    rows = [(t, who, x, "9:01") for t, who, x in long(said)]
    heads = (["Pic no.", "Done by", "Mine", "When"], ["Bild", "Wer", "Antwort", "Zeit"])
    parts = [put(tmp_path / f"{n}.csv", head, rows[n::2]) for n, head in enumerate(heads)]
    names = {"task": "Pic no.,Bild", "worker": "Done by,Wer", "label": "Mine,Antwort"}
    options = [word for role, name in names.items() for word in (f"--{role}", name)]
    found, notes = learned(capsys, *parts, *options)
    assert found["labels"] == dict(ct.learn(_mapping(said)).labels)
    assert "1.csv: reading task from 'Bild', worker from 'Wer', label from 'Antwort'" in notes
    assert sorted(ct.load(parts, columns=names).rows()) == sorted(long(said))
    wrong = complaint(capsys, "learn", *parts, *options[:4], "--label", "Mine,Antwurt")
    assert "1.csv: no column 'Mine,Antwurt' for label (found: Bild, Wer, Antwort, Zeit)" in wrong


def test_a_hint_about_a_wide_table_leaves_nobody_out(said, tmp_path, capsys):
    people = [f"rater {k}" for k in range(23)]
    rows = [(t, f"review {t}", *(list(given.values()) * 8)[:23], given["ben"])
            for t, given in said.items()]  # fmt: skip
    head = ["review", "text", *people, "expert"]
    few = put(tmp_path / "few.csv", [*head[:7], "expert"], [(*row[:7], row[-1]) for row in rows])
    assert f"--workers '{','.join(people[:5])}'\n" in complaint(capsys, "learn", few)
    many = put(tmp_path / "many.csv", head, rows)
    hint = complaint(capsys, "learn", many)
    assert f"--workers '{','.join(people[:20])}' and 3 more columns\n" in hint
    _, notes = learned(capsys, few, "--workers", ",".join(people[:3]))
    assert "; rater 3, rater 4 left out, with the same values as the workers" in notes
    assert "left out" not in learned(capsys, few, "--workers", "rater *")[1]


def test_wide_tables(said, tmp_path, capsys):
    rows = [(t, f"review {t}", *given.values()) for t, given in said.items()]
    path = put(tmp_path / "w.csv", ["review", "text", *PEOPLE], rows)
    refused = complaint(capsys, "learn", path)
    assert "column 'text' has values that no other column has (40 values in 40 rows" in refused
    assert "--workers anna,ben,carla" in refused
    found, notes = learned(capsys, path, "--workers", "anna,ben,carla")
    assert "reading task from 'review'; workers are the columns anna, ben, carla" in notes
    assert found["labels"] == dict(ct.learn(_mapping(said)).labels)
    assert "'text' has values" in complaint(capsys, "learn", path, "--workers", "anna,text")
    assert "no column 'dora'" in complaint(capsys, "learn", path, "--workers", "anna,dora")
    clean = put(tmp_path / "c.csv", ["photo", *PEOPLE], [(r[0], *r[2:]) for r in rows])
    found, notes = learned(capsys, clean)
    assert {worker["name"] for worker in found["workers"]} == set(PEOPLE)
    assert "workers are the columns anna, ben, carla" in notes
    rated = put(tmp_path / "r.csv", ["photo", "r_1", "r_2", "r_3"], [(r[0], *r[2:]) for r in rows])
    assert learned(capsys, rated, "--workers", "r_*")[0]["labels"] == found["labels"]
    with pytest.raises(CrowdtreeError, match=r'or load\(path, "answers"\)$'):
        ct.load(path)
    assert complaint(capsys, "design", path).endswith("; answers are for crowdtree learn\n")
    read = ct.load(path, "answers", workers=["anna", "ben"])
    assert read.n_rows == 80
    with pytest.raises(CrowdtreeError, match="workers: expected a list"):
        ct.load(path, "answers", workers="anna")


def test_wide_tables_of_questions(tmp_path):
    rows = [(n, who, (n + w) % 2, n % 2, "fine") for n in range(9) for w, who in enumerate(PEOPLE)]
    path = put(tmp_path / "q.csv", ["task", "worker", "flies", "hunts", "remark"], rows)
    with pytest.raises(CrowdtreeError, match=r"'remark' has other answers .*--question flies,hu"):
        ct.load(path, "answers")
    read = ct.load(path, "answers", columns={"question": "flies,hunts"})
    assert set(read["question"]) == {"flies", "hunts"}
    assert read.n_rows == 54


def test_a_workbook_of_answers(said, tmp_path, capsys):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [("ticket", *PEOPLE), *((t, *given.values()) for t, given in said.items())]:
        book.active.append(row)
    book.save(tmp_path / "w.xlsx")
    found, _ = learned(capsys, tmp_path / "w.xlsx")
    assert found["labels"] == dict(ct.learn(_mapping(said)).labels)


# ---------------------------------------------------------------- exports


def studio(said, kind="choices"):
    """An export of Label Studio; five tasks have a ground truth by somebody else."""
    tasks = []
    for n, (ticket, given) in enumerate(said.items()):
        notes = [
            {"completed_by": {"id": 1, "email": who}, "result": [_control(kind, x)]}
            for who, x in given.items()
        ]
        if n < 5:
            truth = {"completed_by": 9, "ground_truth": True}
            notes.append({**truth, "result": [_control(kind, KINDS[n % 3])]})
        data = {"text": f"text {ticket}", "ticket": ticket}
        tasks.append({"id": 1000 + n, "data": data, "annotations": notes})
    return tasks


def _control(kind, label):
    value = {"taxonomy": [["tickets", label]]} if kind == "taxonomy" else {"choices": [label]}
    return {"from_name": "topic", "type": kind, "value": value}


def test_label_studio_by_a_field_of_the_data_with_its_ground_truth(said, tmp_path, capsys):
    path, labels = tmp_path / "e.json", tmp_path / "labels.csv"
    path.write_text(json.dumps(studio(said)))
    found, notes = learned(capsys, path, "--task", "ticket", "--labels", labels)
    assert "5 ground-truth annotations used as gold" in notes
    assert set(found["labels"]) == set(said)
    assert labels.read_text().startswith("ticket,label,probability,known\n000,")
    assert {worker["name"] for worker in found["workers"]} == set(PEOPLE)  # not the expert
    gold = {f"{n:03d}": KINDS[n % 3] for n in range(5)}
    assert found["labels"] == dict(ct.learn(_mapping(said), gold).labels)
    assert set(learned(capsys, path)[0]["labels"]) == {str(1000 + n) for n in range(40)}
    assert "use one of text, ticket, id" in complaint(capsys, "learn", path, "--task", "url")
    assert "name only task, label" in complaint(capsys, "learn", path, "--worker", "x")
    assert "expected one of 'topic'" in complaint(capsys, "learn", path, "--label", "colour")
    path.write_text(json.dumps(studio(said, "taxonomy")))
    assert learned(capsys, path)[0]["classes"] == [f"tickets / {kind}" for kind in KINDS]


def test_label_studio_json_min(said, tmp_path):
    rows = [
        {"text": t, "id": int(t), "topic": x, "annotator": n, "annotation_id": 7, "lead_time": 3.1}
        for t, given in said.items()
        for n, x in enumerate(given.values())
    ]
    rows.append({**rows[0], "annotator": 9, "topic": {"choices": ["bug", "praise"]}})
    path = tmp_path / "min.json"
    path.write_text(json.dumps(rows))
    with pytest.warns(ct.CrowdtreeWarning, match="1 answer with several choices left out"):
        read = ct.load(path, "answers")
    assert dict(ct.learn(read).labels) == {
        str(int(t)): x for t, x in ct.learn(_mapping(said)).labels.items()
    }
    path.write_text(json.dumps([{**row, "id": n} for n, row in enumerate(rows[:-1])]))
    read = ct.load(path, "answers", columns={"label": "topic", "task": "text"})
    assert read.task_column == "text"


def test_label_studio_json_min_of_several_questions(tmp_path):
    rows = [
        {"text": "t", "id": n, **given, "annotator": who, "annotation_id": 1, "lead_time": 3.1}
        for n, who, given in [
            (1, 7, {"cap": "red", "ring": {"choices": ["thin"]}}),
            (1, 8, {"ring": "wide"}),
            (2, 7, {"spots": ["many"], "cap": "brown"}),
        ]
    ]
    path = tmp_path / "min.json"
    path.write_text(json.dumps(rows))
    read = ct.load(path, "answers")
    assert sorted(read.rows()) == [
        ("1", "cap", "7", "red"),
        ("1", "ring", "7", "thin"),
        ("1", "ring", "8", "wide"),
        ("2", "cap", "7", "brown"),
        ("2", "spots", "7", "many"),
    ]
    assert read.task_column == "id"
    assert "3 questions (cap, ring, spots)" in read.notes[0]
    some = ct.load(path, "answers", columns={"question": "ring,spots"})
    assert {row[1] for row in some.rows()} == {"ring", "spots"}
    one = ct.load(path, "answers", columns={"label": "ring"})
    assert sorted(one.rows()) == [("1", "7", "thin"), ("1", "8", "wide")]
    with pytest.raises(ct.CrowdtreeError, match="no field 'veil'; it has text, id, cap, ring"):
        ct.load(path, "answers", columns={"question": "cap,veil"})


@pytest.mark.parametrize("tool", ["mturk", "toloka", "prodigy"])
def test_exports_whose_columns_are_recognised(tool, said, tmp_path, capsys):
    if tool == "prodigy":
        path = tmp_path / "p.jsonl"
        rows = [{"_input_hash": t, "accept": [x], "answer": "accept", "_annotator_id": who}
                for t, who, x in long(said)]  # fmt: skip
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    elif tool == "mturk":
        path = put(tmp_path / "m.csv", ["HITId", "WorkerId", "Input.url", "Answer.kind.label"],
                   [(t, who, f"u{t}", x) for t, who, x in long(said)])  # fmt: skip
    else:
        header = ["INPUT:image", "OUTPUT:result", "ASSIGNMENT:task_id", "ASSIGNMENT:worker_id"]
        path = put(tmp_path / "t.tsv", header, [(f"i{t}", x, t, who) for t, who, x in long(said)])
    assert learned(capsys, path)[0]["labels"] == dict(ct.learn(_mapping(said)).labels)


def test_parquet_without_a_library_says_what_to_install(tmp_path, capsys, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    told = complaint(capsys, "learn", tmp_path / "a.parquet")
    assert "pip install 'crowdtree[frames]'" in told
    with pytest.raises(CrowdtreeError, match=r"polars is not installed; pip install 'crowdtree\[f"):
        ct.example("table1").to_frame()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(CrowdtreeError, match="pandas is not installed; pip install pandas"):
        ct.example("table1").to_frame(library="pandas")


def test_learning_and_auditing_need_no_library_of_frames(said, tmp_path):
    path = put(tmp_path / "t.csv", ["task", "worker", "label"], long(said))
    code = f"""
import sys
for name in ("polars", "pandas", "pyarrow", "narwhals", "numba"):
    sys.modules[name] = None
import crowdtree as ct
from crowdtree.cli import main
try:
    main(["learn", {str(path)!r}, "--labels", {str(tmp_path / "l.csv")!r}, "--json"])
except SystemExit as left:
    assert not left.code
learned = ct.learn({str(path)!r}, {{"000": "bug"}})
learned.update({{"task": ["000"], "worker": ["dora"], "label": ["bug"]}})
asked = {{"task": [1, 2] * 6, "question": ["p"] * 6 + ["q"] * 6, "worker": list("aabbcc") * 2}}
ct.learn({{**asked, "label": [0, 1] * 6}}, {{1: "x", 2: "y"}}).to_dict()
print(len(ct.load({str(tmp_path / "l.csv")!r}).items), len(learned.labels))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "40 40"


def test_wide_columns_of_questions_with_several_answers_are_read_by_name(tmp_path):
    caps, remarks = ["red", "brown", "white"], [f"remark {n}" for n in range(40)]
    rows = [(f"t{n // 2}", "xy"[n % 2], caps[n % 3], ["no", "yes"][n % 2], remarks[n])
            for n in range(40)]  # fmt: skip
    path = put(tmp_path / "wide.csv", ["task", "worker", "cap", "ring", "note"], rows)
    with pytest.raises(ct.CrowdtreeError, match=r"no question; name .* \(--question cap,ring\)"):
        ct.load(path, "answers", form="wide")
    read = ct.load(path, "answers", columns={"question": "cap,ring"}, form="wide")
    expected = [(t, "cap", w, x) for t, w, x, *_ in rows]
    expected += [(t, "ring", w, x) for t, w, _, x, _ in rows]
    assert sorted(read.rows()) == sorted(expected)
    with pytest.raises(ct.CrowdtreeError, match="'note' has nearly as many values as rows"):
        ct.load(path, "answers", columns={"question": "cap,note"}, form="wide")
