"""Answers of other tools, in and out."""

from __future__ import annotations

import gzip

import pytest

from crowdtree import CrowdtreeError, Problem
from crowdtree.io import interchange
from crowdtree.learning import learn
from crowdtree.learning.answers import read_answers
from tests import answer_writers

ROWS = [(t, w, "no" if t % 2 else "yes") for t in range(1, 7) for w in ("ann", "ben", "cy")]


PLAIN = "task,worker,label\n" + "".join(f"{t},{w},{x}\n" for t, w, x in ROWS)


@pytest.mark.parametrize("mark", [";", "\t"])
def test_separators_of_spreadsheets(mark, tmp_path):
    path, wide = tmp_path / "answers.csv", tmp_path / "wide.csv"
    path.write_text(PLAIN.replace(",", mark))
    expected = read_answers({"task": [t for t, _, _ in ROWS], "worker": [w for _, w, _ in ROWS],
                             "label": [x for _, _, x in ROWS]}).to_columns()  # fmt: skip
    assert read_answers(path).to_columns().rows() == expected.rows()
    answer_writers.write_wide(expected, wide)
    wide.write_text(wide.read_text().replace(",", mark))
    assert sorted(interchange.read_wide(wide).rows()) == sorted(expected.rows())


def problem_of(*questions: str) -> Problem:
    outcome = [[0, 1]] * len(questions)
    return Problem(["a", "b"], [0.5, 0.5], questions, outcome, [0.1] * len(questions))


def test_a_named_single_question_keeps_its_name(tmp_path):
    path = tmp_path / "export.json"
    asked = {"task": [1, 1, 2, 2], "question": ["fins"] * 4, "worker": ["ann", "ben"] * 2,
             "label": [0, 0, 1, 1]}  # fmt: skip
    answer_writers.write_label_studio(asked, path)
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


def test_a_folder_is_reported_as_a_folder(tmp_path):
    for read in (interchange.read_wide, interchange.read_zooniverse, interchange.read_label_studio):
        with pytest.raises(CrowdtreeError, match="is a folder"):
            read(tmp_path)


def test_wide_tables_may_be_compressed(tmp_path):
    path = tmp_path / "wide.csv.gz"
    path.write_bytes(gzip.compress(b"task,ann,ben\n1,x,y\n"))
    assert interchange.read_wide(path).rows() == [("1", "ann", "x"), ("1", "ben", "y")]
