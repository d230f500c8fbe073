"""Answer files: ids are names, separators, blanks, gold."""

from __future__ import annotations

import gzip
import io
import os
import sys

import numpy as np
import polars as pl
import pytest

from crowdtree import CrowdtreeError, CrowdtreeWarning, Problem
from crowdtree.core import columns
from crowdtree.learning import learn
from crowdtree.learning.answers import read_answers, read_gold

ROWS = [(t, w, "no" if t % 2 else "yes") for t in range(1, 7) for w in ("ann", "ben", "cy")]


PLAIN = "task,worker,label\n" + "".join(f"{t},{w},{x}\n" for t, w, x in ROWS)


def test_padded_ids_stay_apart(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("task,worker,label\n001,007,1\n001,7,0\n002,007,0\n002,7,0\n")
    read = read_answers(path)
    assert read.workers.tolist() == ["007", "7"]
    assert read.tasks.tolist() == ["001", "002"]
    assert read.n_answers == 4


def test_gold_meets_padded_ids_whatever_else_the_files_hold(tmp_path):
    answers, gold = tmp_path / "answers.csv", tmp_path / "gold.csv"
    rows = [(t, w, int(t != "x4")) for t in ("001", "002", "x4") for w in "abc"]
    answers.write_text("task,worker,label\n" + "".join(f"{t},{w},{x}\n" for t, w, x in rows))
    gold.write_text("task,label\n001,1\n002,0\n")
    assert read_gold(gold) == {"001": "1", "002": "0"}
    learned = learn(answers, gold)
    assert learned.gold.tolist() == [1, 0, -1]


def test_ids_longer_than_numbers_are_names(tmp_path):
    path = tmp_path / "answers.csv"
    names = [f"1234567890123456789{i}" for i in range(10, 13)]
    path.write_text("task,worker,label\n" + "".join(f"{n},{w},x\n" for n in names for w in "ab"))
    assert read_answers(path).tasks.tolist() == names
    frame = pl.read_csv(path)
    assert frame.schema["task"] == pl.Int128  # as polars reads them
    assert read_answers(frame).tasks.tolist() == names


def test_blanks_and_missing_numbers_are_no_labels(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text(PLAIN + "7,ann,NaN\n7,ben,nan\n7,cy, \n8, ,yes\n9,nan,yes\n")
    with pytest.warns(CrowdtreeWarning, match="1 answer left out .*row 22 has no worker"):
        read = read_answers(path)
    assert read.labels == ("no", "yes")
    assert read.tasks.tolist() == ["1", "2", "3", "4", "5", "6", "9"]
    assert read.notes == (
        "3 answers are skips, not labels (blank 1, 'NaN' 1, 'nan' 1); 1 item without any other "
        "answer left out",
    )
    assert "nan" in read.workers.tolist()  # somebody may be called that


def problem_of(*questions: str) -> Problem:
    outcome = [[0, 1]] * len(questions)
    return Problem(["a", "b"], [0.5, 0.5], questions, outcome, [0.1] * len(questions))


def test_answers_without_question_are_not_given_to_the_first_of_several(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text(PLAIN)
    assert learn(path, problem=problem_of("wings")).problem.questions == ("wings",)
    with pytest.raises(CrowdtreeError, match=r"column question is missing.*2 questions"):
        learn(path, problem=problem_of("wings", "fins"))
    asked = {"task": [1, 1, 2, 2] * 2, "question": ["wings", "fins"] * 4,
             "worker": ["ann"] * 4 + ["ben"] * 4, "label": [0, 0, 1, 1] * 2}  # fmt: skip
    learned = learn(asked, problem=problem_of("wings", "fins"))
    with pytest.raises(CrowdtreeError, match=r"column question is missing.*2 questions"):
        learned.update({"task": [3], "worker": ["ann"], "label": [1]})


def test_options_that_would_be_ignored_are_refused():
    asked = {"task": [1, 1, 2, 2] * 2, "question": ["wings", "fins"] * 4,
             "worker": ["ann"] * 4 + ["ben"] * 4, "label": [0, 0, 1, 1] * 2}  # fmt: skip
    with pytest.raises(CrowdtreeError, match="is for one question"):
        learn(asked, {1: "a", 2: "b"}, method="majority")
    with pytest.raises(CrowdtreeError, match="names them already"):
        learn(asked, problem=problem_of("wings", "fins"), classes=["a", "b"])


def test_gold_meets_labels_of_several_lines(tmp_path):
    answers, gold = tmp_path / "answers.csv", tmp_path / "gold.csv"
    rows = [(t, w, t % 2) for t in range(4) for w in "abc"]
    answers.write_text("task,worker,label\n" + "".join(f'{t},{w},"a\n{x}"\n' for t, w, x in rows))
    gold.write_text('task,label\n0,"a\n0"\n1,"a\n1"\n')
    assert learn(answers, gold).gold.tolist() == [0, 1, -1, -1]


def test_answers_are_read_from_bytes_streams_and_gzip(tmp_path):
    expected = read_answers({"task": [t for t, _, _ in ROWS], "worker": [w for _, w, _ in ROWS],
                             "label": [x for _, _, x in ROWS]}).to_columns().rows()  # fmt: skip
    packed = gzip.compress(PLAIN.encode())
    (tmp_path / "a.csv.gz").write_bytes(packed)
    (tmp_path / "packed.csv").write_bytes(packed)
    for source in (
        PLAIN.encode(),
        io.BytesIO(PLAIN.encode()),
        packed,
        tmp_path / "a.csv.gz",
        tmp_path / "packed.csv",
    ):
        assert read_answers(source).to_columns().rows() == expected


def test_packed_answers_do_not_unpack_beyond_the_memory(tmp_path, monkeypatch):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"task,worker,label\n" + b"1,a,x\n" * 100_000))
    monkeypatch.setattr(columns, "_free_memory", lambda: 100_000.0)
    with pytest.raises(CrowdtreeError, match="unpacks to more than 100,000 bytes"):
        read_answers(path)


def test_memory_is_checked_without_posix(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)  # an ImportError, as on Windows
    monkeypatch.delattr(os, "sysconf")
    monkeypatch.setattr(columns, "_SMALL_SIZE", 0)
    path = tmp_path / "a.csv"
    path.write_text(PLAIN)
    assert columns._free_memory() > 0
    assert read_answers(path).n_answers == len(ROWS)


# ---------------------------------------------------------------- gold in every form


@pytest.mark.parametrize(
    "labels", [[True, False], ["two\nlines", "x"], [1.0, 2.0], [1.5, 2.0], [" a ", "b"], [1, 2]]
)
def test_gold_as_a_mapping_reads_as_in_columns(labels):
    tasks = [1, 2]
    columns = read_gold({"task": tasks, "label": labels})
    assert read_gold(dict(zip(tasks, labels, strict=True))) == columns
    assert read_gold(dict(zip([1.0, 2.0], labels, strict=True))) == columns
    answers = read_answers({"task": tasks, "worker": ["a", "b"], "label": labels})
    assert set(columns.values()) == set(answers.labels)


def test_booleans_in_answers_and_in_a_mapping_of_gold_are_the_same_classes():
    answers = {"task": [1, 1, 2, 2], "worker": ["a", "b"] * 2, "label": [True, True, False, False]}
    learned = learn(answers, {1: True, 2: False})
    assert learned.labels == {"1": "1", "2": "0"}
    learned.update({"task": [3], "worker": ["a"], "label": [True]})
    assert learned.workers["a"].answers == 3


@pytest.mark.parametrize("ids", [[2**63, 2**63 + 1, 2**63 + 9], [2**63, 2**64 - 1, 7], [1, 2, 3]])
def test_large_unsigned_ids_are_names(ids):
    task = np.repeat(np.array(ids, np.uint64), 2)
    answers = {"task": pl.Series(task), "worker": ["a", "b"] * 3, "label": list("xxyyxy")}
    learned = learn(pl.DataFrame(answers))
    assert set(learned.labels) == {str(i) for i in ids}


def yes_no(labels):
    task, question = np.indices((len(labels), 2)).reshape(2, -1)
    said = np.array([label != "cat" for label in labels], int)[task]
    return {"task": task, "question": np.array(["p", "q"])[question], "worker": task % 3,
            "label": said}  # fmt: skip


def test_a_typing_error_in_the_gold_of_a_table_is_told():
    labels = ["dog", "cat"] * 6 + ["dgo"]
    gold = {str(i): label for i, label in enumerate(labels)}
    said = r"class 'dgo' \(1 item, such as task 12\) may be a typing error for 'dog' \(6 items\)"
    with pytest.warns(CrowdtreeWarning, match=said):
        learn(yes_no(labels), gold)
    learn(yes_no(labels), gold, classes=["cat", "dog", "dgo"])  # named: no warning
    table = Problem(["cat", "dog"], None, ["p", "q"], [[0, 1], [0, 1]], 0.1)
    with pytest.raises(CrowdtreeError, match="'dgo' is not among 'cat', 'dog'; did you mean 'dog'"):
        learn(yes_no(labels), gold, problem=table)
