"""Questions with several answers in every format: reading, notes, refusals, exact round trips."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crowdtree as ct
from tests.io.helpers import message, put

CAP = ("red", "brown", "white")
TABLE = """question,error,fly agaric,bolete,champignon,chanterelle
prior,,0.1,0.2,0.3,0.4
ring,0.05,1,0,1,0
cap,0.1,red,brown|white,white,-
"""
DOCUMENT = """
unsure: 0.05
classes: [{name: a, unsure: 0.2}, b, c]
questions:
  - {name: ring, error: 0.1, outcome: [1, 0, 0|1]}
  - {name: cap, answers: [red, brown, white], error: 0.1, outcome: [red, [brown, white], "-"]}
  - name: odour
    outcome: {a: anise, b: none, c: anise|none}
    unsure: {c: 30%}
    table: {anise: [0.9, 0.1, 0.3], none: {a: 0.1, b: 0.9, c: 0.7}}
  - name: gills
    answers: [white, pink, black]
    outcome: [white, pink, white]
    unsure: 0
    confusion: {white: [0.8, 0.1, 0.1], pink: [0.1, 0.8, 0.1], black: [0, 0, 1]}
"""


def test_a_row_of_words_is_a_question_with_several_answers(tmp_path: Path) -> None:
    problem = ct.load_problem(put(tmp_path, TABLE, "p.csv"))
    assert problem.answers == (("no", "yes"), CAP)
    assert problem.right[:, 1].T.tolist() == [
        [True, False, False],
        [False, True, True],
        [False, False, True],
        [False, False, False],
    ]
    assert problem.notes == ("answers as they appear: 'cap' (red, brown, white)",)
    declared = TABLE.replace("error,", "error,answers,").replace("prior,,", "prior,,,")
    declared = declared.replace("0.05,", "0.05,,").replace("cap,0.1,", "cap,0.1,white|red|brown,")
    other = ct.load_problem(put(tmp_path, declared, "p.csv"))
    assert other.answers[1] == ("white", "red", "brown")
    assert other.notes == ()
    by_class = """class,prior,ring,cap
fly agaric,0.1,1,red\nbolete,0.2,0,brown|white\nchampignon,0.3,1,white\nchanterelle,0.4,0,-
error,,0.05,0.1\nanswers,,,red|brown|white\n"""
    assert ct.load_problem(put(tmp_path, by_class, "p.csv")) == problem


@pytest.mark.parametrize(
    ("row", "note"),
    [
        ("red,Red,brown,red", "question 'q': 'red', 'Red' read as one answer"),
        ("brown,brown,brwon,red", "question 'q': 'brwon' occurs once; a typo for 'brown'?"),
        ("red,red,red,-", "question 'q': the only answer is 'red', so other is added"),
        ("brown,brown,bown,red", "question 'q': 'bown' occurs once; a typo for 'brown'?"),
        (
            "red,red,r\u0435d,brown",
            r"question 'q': 'r\u0435d' has letters of two alphabets, or signs that do not show",
        ),
        (
            "red,red,re\u200bd,brown",
            r"question 'q': 're\u200bd' has letters of two alphabets, or signs that do not show",
        ),
    ],
)
def test_doubtful_words_get_a_note(tmp_path: Path, row: str, note: str) -> None:
    path = put(tmp_path, f"question,error,a,b,c,d\nq,0.1,{row}\n", "p.csv")
    assert note in ct.load_problem(path).notes


def test_an_accent_is_part_of_its_letter(tmp_path: Path) -> None:
    row = "q,0.1,caf\u00e9,cafe\u0301,bar,-"
    problem = ct.load_problem(put(tmp_path, f"question,error,a,b,c,d\n{row}\n", "p.csv"))
    assert problem.answers == (("caf\u00e9", "bar"),)


def test_numbers_and_plain_words_are_no_typos(tmp_path: Path) -> None:
    rows = "q,0.1,none,none,nine,0.5 mm\nr,0.1,3 mm,3 mm,4 mm,5 mm\n"
    notes = ct.load_problem(put(tmp_path, f"question,error,a,b,c,d\n{rows}", "p.csv")).notes
    assert [note for note in notes if "typo" in note and "'r'" in note] == []


def test_counts_are_answers(tmp_path: Path) -> None:
    rows = "legs,0.1,0,2,4,2\npalps,0.1,1,3|4,-,2\ntoes,0.1,2,3,many,5\npairs,0.1,1,2,2,1\n"
    problem = ct.load_problem(put(tmp_path, f"question,error,a,b,c,d\n{rows}", "p.csv"))
    assert problem.answers == (
        ("0", "2", "4"), ("1", "3", "4", "2"), ("2", "3", "many", "5"), ("1", "2"),
    )  # fmt: skip
    text = "classes: [a, b]\nquestions: [{name: legs, error: 0.1, outcome: [2, 4]}]\n"
    assert ct.load_problem(put(tmp_path, text, "p.yaml")).answers == (("2", "4"),)


def test_an_answer_for_no_class_gets_a_note(tmp_path: Path) -> None:
    text = "question,error,answers,a,b\nq,0.1,red|brown|white,red,white\n"
    notes = ct.load_problem(put(tmp_path, text, "p.csv")).notes
    assert "answers that are right for no class: 'q' ('brown')" in notes
    text = text.replace("red,white", "red,-")
    notes = ct.load_problem(put(tmp_path, text, "p.csv")).notes
    assert "answers that are right for no class: 'q' ('brown', 'white')" in notes
    either = put(tmp_path, f"{text}dash,,,either,\n", "p.csv")
    assert not [note for note in ct.load_problem(either).notes if "right for no class" in note]


def test_both_answers_of_a_yes_no_question_may_be_right(tmp_path: Path) -> None:
    path = put(tmp_path, "question,error,a,b,c\nq,0.1,0,1,0|1\n", "p.csv")
    problem = ct.load_problem(path)
    assert problem.answers == (("no", "yes"),)
    assert problem.right[:, 0].T.tolist() == [[True, False], [False, True], [True, True]]
    ct.save(problem, tmp_path / "q.csv")
    assert (tmp_path / "q.csv").read_text().splitlines()[-1] == "q,0.1,0,1,0|1"


def test_a_class_called_answers_stays_a_class(tmp_path: Path) -> None:
    text = "question,error,answers,b\nprior,,0.5,0.5\nq,0.1,0,1\n"
    problem = ct.load_problem(put(tmp_path, text, "p.csv"))
    assert problem.classes == ("answers", "b")
    ct.save(problem, tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text() == text
    named = ct.Problem(["answers", "b"], None, ["notes", "# 1"], [["x", "y"]] * 2, 0.1,
                       answers=[["x", "y"]] * 2)  # fmt: skip
    for name in ("p.csv", "p.xlsx", "p.yaml"):
        assert ct.load_problem(ct.save(named, tmp_path / name)) == named


@pytest.mark.parametrize("ending", [".yaml", ".json"])
def test_documents_carry_everything(tmp_path: Path, ending: str) -> None:
    problem = ct.load_problem(put(tmp_path, DOCUMENT, "p.yaml"))
    assert problem.answers[2] == ("anise", "none")
    assert problem.table is not None
    assert problem.unsure is not None
    assert problem.unsure.tolist() == [
        [0.2, 0.05, 0.05], [0.2, 0.05, 0.05], [0.05, 0.05, 0.3], [0, 0, 0],
    ]  # fmt: skip
    np.testing.assert_allclose(problem.table[:, 3, 1], [0.1, 0.8, 0.1])
    np.testing.assert_allclose(problem.worker_error[2], [0.1, 0.1, 0.0], atol=1e-15)
    again = ct.load_problem(ct.save(problem, tmp_path / f"q{ending}"))
    assert again == problem
    with pytest.raises(ct.CrowdtreeError, match=r"cannot hold a table of answers; save .* \.yaml"):
        ct.save(problem, tmp_path / "q.csv")
    assert not (tmp_path / "q.csv").exists()


@st.composite
def several(draw: Any) -> ct.Problem:
    """Problems with any answers, tables of some cells, and chances of can't tell."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    questions, classes = draw(st.integers(1, 4)), draw(st.integers(2, 4))
    counts = [int(rng.integers(2, 6)) for _ in range(questions)]
    names = [f"{draw(st.sampled_from(['no', '1', 'yes it is', 'é;,']))}{a}" for a in range(5)]
    answers = [None if k == 2 and rng.random() < 0.5 else names[:k] for k in counts]
    right = rng.random((max(counts), questions, classes)) < 0.4
    for q, count in enumerate(counts):
        right[count:, q] = False
    table = np.full(right.shape, np.nan)
    for q, count in enumerate(counts):
        known = rng.random(classes) < draw(st.sampled_from([0.0, 0.5, 1.0]))
        table[:, q, known] = 0.0
        table[:count, q, known] = rng.dirichlet(np.ones(count), classes)[known].T
    draws = draw(st.tuples(*[st.booleans()] * 3))
    return ct.Problem(
        [f"class {c}" for c in range(classes)], rng.dirichlet(np.ones(classes)),
        [f"question {q}" for q in range(questions)], right,
        rng.random((questions, classes)[: 1 + draws[0]]) / 4,
        answers=answers, table=table if draws[1] else None,
        unsure=rng.random((questions, classes)) / 2 if draws[2] else None,
    )  # fmt: skip


@given(several(), st.sampled_from(["yaml", "json", "csv", "xlsx"]))
@settings(max_examples=40, deadline=None)
@pytest.mark.filterwarnings("ignore::crowdtree.CrowdtreeWarning")
def test_files_are_exact(tmp_path_factory: Any, problem: ct.Problem, ending: str) -> None:
    if ending in ("csv", "xlsx") and (problem.table is not None or problem.unsure is not None):
        problem = problem.replace(table=None, unsure=None)
    path = tmp_path_factory.mktemp("exact") / f"p.{ending}"
    assert ct.load_problem(ct.save(problem, path)) == problem


HEAD = "question,error,a,b,c\n"
NAMED = "question,error,answers,a,b,c\n"
LONG = "|".join(f"w{n}" for n in range(33))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD + "q,0.1,red,0,brown\n", "column 4 (question 'q', class 'b') is '0'; write 0, 1"),
        (HEAD + "q,0.1,0,red,1\n", "column 4 (question 'q', class 'b') is 'red'; write 0, 1"),
        (HEAD + "q,0.1,red,0.3,brown\n", "column 4 (question 'q', class 'b') is '0.3'; write"),
        (HEAD + "q,0.1,red,,brown\n", "column 4 (question 'q', class 'b') is blank"),
        (HEAD + "q,0.1,red,,\n", "column 4 (question 'q', class 'b') is blank"),
        (HEAD + "q,0.1,red,0,1\n", "names of answers in the whole row"),
        (HEAD + "q,0.1,red,?,brown\n", "'?'; write 0, 1 or -, or the name of an answer"),
        (HEAD + "q,0.1,red,brown|,brown\n", "'brown|'; write a name on both sides of |"),
        (HEAD + "q,0.1,red,brown|-,brown\n", "'brown|-'; write names of answers with | between"),
        (HEAD + "q,0.1,red,2|0.3,brown\n", "where numbers are names, list them in answers"),
        (HEAD + "q,0.1,0,2,1\n", "column 4 (question 'q', class 'b') is '2'; write 0, 1 or -"),
        (HEAD + "q,0.1,20,30,50\n", "if this row says how often each class occurs, call it prior"),
        (HEAD + "q,0.1,120,30,50\n", "column 3 (question 'q', class 'a') is '120'; write 0, 1"),
        (HEAD + "q,0.1,3,3,0\n", "column 3 (question 'q', class 'a') is '3'; write 0, 1 or -"),
        (HEAD + f"q,0.1,{LONG},u,v\n", "question 'q' has 35 answers; expected at most 32"),
        (NAMED + f"q,0.1,{LONG},w1,w2,w3\n", "question 'q': expected 2 to 32 answers, got 33"),
        (NAMED + "q,0.1,red|brown,red,brwon,-\n", "'brwon'; write 'red', 'brown', several with |"),
        (NAMED + "q,0.1,red|brown,red,brwon,-\n", "; did you mean 'brown'?"),
        (NAMED + "q,0.1,red|brown,red,1,-\n", "column 5 (question 'q', class 'b') is '1'; write"),
        (NAMED + "q,0.1,red|brown,red,,-\n", "class 'b') is blank"),
        (NAMED + "q,0.1,red|brown,,,\n", "question 'q' is blank for every class"),
        (NAMED + "q,0.1,red,red,red,red\nr,0.1,a|b,a,b,a\n", "expected 2 to 32 answers, got 1"),
        (NAMED + "q,0.1,red|Red,red,red,red\n", "'red', 'Red' occurs more than once"),
        (NAMED + "q,0.1,red||brown,red,red,red\n", "line 2: answers: question 'q': an answer has"),
        (NAMED + "q,0.1,red|n/a,red,red,red\n", "'n/a' means that no answer applies; rename it"),
        (HEAD + "q,0.1,red,brown|red|brown,-\n", "'brown|red|brown'; name every answer once"),
        (NAMED + "q,0.1,red|brown,red|RED,brown,-\n", "'red|RED'; name every answer once"),
        (NAMED + "q,0.1,red|brown,,red,brown\n", "blank; write 'red', 'brown', several with |"),
        (NAMED + "q,0.1,red;brown,red,brown,-\nr,0.1,,1,0,1\n", "'q': expected 2 to 32 answers"),
        (NAMED + "q,0.1,red|can’t tell,red,-,red\n", "may be said to any question; leave it out"),
        (NAMED + "q,0.1,no|yes,yes,red,no\n", "'red'; write 'no', 'yes', several with | between"),
    ],
)  # fmt: skip
def test_bad_tables_get_one_line(tmp_path: Path, text: str, words: str) -> None:
    assert words in message(put(tmp_path, text, "p.csv"))


QUESTION = "{name: q, answers: [x, y, z], error: 0.1, outcome: [x, y]}"


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("answers: [x, y], outcome: [x, z]", "('q').outcome: class 'b' is 'z'; write 'x', 'y'"),
        ("answers: [brown, red], outcome: [red, brwon]", "; did you mean 'brown'?"),
        ("answers: [x], outcome: [x, x]", "questions[0] ('q'): answers: question 'q': expected 2"),
        ("answers: x|y, outcome: [x, y]", "questions[0].answers: expected a list, got 'x|y'"),
        ("answers: [1, 2], outcome: [1, 2]", "questions[0].answers[0]: expected text, got '1'"),
        ("answers: [x, x], outcome: [x, x]", "'x', 'x' occurs more than once"),
        ("answers: [x|y, z], outcome: [z, z]", "'x|y' contains |, which separates answers"),
        ("outcome: [x, 1]", "('q').outcome: class 'b' is '1'; write 0, 1 or - in the whole row"),
        ("outcome: [x, null]", "('q').outcome: class 'b' is missing"),
        ("outcome: [x, []]", "('q').outcome: class 'b' is a list of 0; write"),
        ("outcome: [x, y], unsure: 1", "unsure: question 'q', class 'a' has 1; expected a prob"),
        ("outcome: [x, y], unsure: often", "questions[0].unsure"),
        ("outcome: [x, y], unsure: {c: 0.1}", "('q').unsure: 'c' is not a class"),
        ("outcome: [x, y], unsure: [0.1]", "('q').unsure: expected 2 cells"),
        ("outcome: [x, y], unsure: [0.1, x]", "('q').unsure: class 'b' is 'x'; write a number"),
        ("outcome: [x, y], table: [[1, 0], [0.1, 1]]",
         "table: question 'q', class 'a': probabilities of the answers sum to 1.1, not 1"),
        ("outcome: [x, y], table: [[1, 0]]", "table: question 'q': expected 2 answers x 2 classes"),
        ("outcome: [x, y], table: [[2, 0], [-1, 1]]", "answer 'x', class 'a': expected a probab"),
        ("outcome: [x, y], table: [[1, a], [0, 1]]", "table: question 'q': expected numbers"),
        ("outcome: [x, y], table: {x: [1, 0]}", "table: question 'q': answer 'y' is missing"),
        ("outcome: [x, y], table: {x: [1, 0], z: [0, 1]}", "table: question 'q': 'z' is not an"),
        ("outcome: [x, y], table: {x: {c: 1}, y: [0, 1]}", "table: question 'q': 'c' is not a cla"),
        ("outcome: [x, y], table: [1, 0]", "table: question 'q': expected one row per answer"),
        ("outcome: [x, y], table: [[1, null], [0, 1]]", "class 'b': expected a probability"),
        ("outcome: [x, y], table: 0.5", "questions[0].table"),
        ("outcome: [x, y], confusion: [[0.9, 0.2], [0, 1]]",
         "confusion: question 'q', right answer 'x': probabilities of the answers sum to 1.1"),
        ("outcome: [x, y], confusion: {x: [1, 0]}", "confusion: question 'q': answer 'y' is miss"),
        ("outcome: [x, y], confusion: [[1, 0], [1]]", "confusion: question 'q': expected"),
        ("outcome: [x, y], confusion: [[1, 0], [0, 1]], table: [[1, 0], [0, 1]]",
         "confusion: question 'q': has a table as well; expected one of the two"),
        ("answer: [x, y], outcome: [x, y]", "questions[0].answer: no such field; use one of name"),
    ],
)  # fmt: skip
def test_bad_documents_get_one_line(tmp_path: Path, entry: str, words: str) -> None:
    text = f"classes: [a, b]\nworker_error: 0.1\nquestions: [{{name: q, {entry}}}]\n"
    assert words in message(put(tmp_path, text, "p.yaml"))


def test_strengths_need_yes_no_questions(tmp_path: Path) -> None:
    shares = put(tmp_path, "question,a,b,c,d\nring,1,0,1,0\ncap,1,0,1,0\n", "shares.csv")
    table = put(
        tmp_path, TABLE.replace("fly agaric,bolete,champignon,chanterelle", "a,b,c,d"), "p.csv"
    )
    with pytest.raises(ct.CrowdtreeError, match=r"^strengths: expected yes/no questions only, but"):
        ct.load_problem(table, strengths=shares)
