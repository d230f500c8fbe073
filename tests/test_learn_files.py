"""Files of answers as people have them: padded ids, other separators, blanks, damaged tables."""

from __future__ import annotations

import gzip

import polars as pl
import pytest

from crowdtree import CrowdtreeError, Problem
from crowdtree.files import interchange
from crowdtree.learn import learn
from crowdtree.learn.answers import read_answers, read_gold

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


@pytest.mark.parametrize("mark", [";", "\t"])
def test_separators_of_spreadsheets(mark, tmp_path):
    path, wide = tmp_path / "answers.csv", tmp_path / "wide.csv"
    path.write_text(PLAIN.replace(",", mark))
    expected = read_answers({"task": [t for t, _, _ in ROWS], "worker": [w for _, w, _ in ROWS],
                             "label": [x for _, _, x in ROWS]}).to_crowdkit()  # fmt: skip
    assert read_answers(path).to_crowdkit().equals(expected)
    interchange.write_wide(expected, wide)
    wide.write_text(wide.read_text().replace(",", mark))
    assert sorted(interchange.read_wide(wide).rows()) == sorted(expected.rows())


def test_blanks_and_missing_numbers_are_no_labels(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text(PLAIN + "7,ann,NaN\n7,ben,nan\n7,cy, \n8, ,yes\n9,nan,yes\n")
    read = read_answers(path)
    assert read.labels == ("no", "yes")
    assert read.tasks.tolist() == [1, 2, 3, 4, 5, 6, 9]
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


def test_a_named_single_question_keeps_its_name(tmp_path):
    path = tmp_path / "export.json"
    asked = {"task": [1, 1, 2, 2], "question": ["fins"] * 4, "worker": ["ann", "ben"] * 2,
             "label": [0, 0, 1, 1]}  # fmt: skip
    interchange.write_label_studio(asked, path)
    frame = interchange.read_label_studio(path)
    assert set(frame["question"]) == {"fins"}
    learned = learn(frame, problem=problem_of("wings", "fins"))
    assert learned.fit.answers[0].sum() < 1 < learned.fit.answers[1].sum()
    assert [f.kind for f in learned.flags if f.subject == "wings"] == ["unasked"]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "is empty"),
        (b"task,ann\n1,a,b,c\n", "more fields than the header"),
        ("task,änn\n1,a\n".encode("latin-1"), "UTF-8"),
        (b"task,ann,ann\n1,a,b\n", "two columns 'ann'"),
        (b"\x1f\x8bnot gzip", "not a whole gzip file"),
    ],
)
def test_wide_tables_that_cannot_be_read(raw, words, tmp_path):
    path = tmp_path / "wide.csv"
    path.write_bytes(raw)
    with pytest.raises(CrowdtreeError, match=words) as told:
        interchange.read_wide(path)
    assert "\n" not in str(told.value)
    assert "olars" not in str(told.value)


def test_a_folder_is_called_one(tmp_path):
    for read in (interchange.read_wide, interchange.read_zooniverse, interchange.read_label_studio):
        with pytest.raises(CrowdtreeError, match="is a folder"):
            read(tmp_path)


def test_wide_tables_may_be_packed(tmp_path):
    path = tmp_path / "wide.csv.gz"
    path.write_bytes(gzip.compress(b"task,ann,ben\n1,x,y\n"))
    assert interchange.read_wide(path).rows() == [("1", "ann", "x"), ("1", "ben", "y")]


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
