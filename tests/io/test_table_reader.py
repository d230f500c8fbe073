"""Tables as people write them, and what can be wrong with them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from crowdtree.io import (
    load_problem,
)
from tests.io.helpers import GOOD, SEP, expected, message, put


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        "\ufeff" + GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\n", "\r"),
        GOOD.replace(",", ";"),
        GOOD.replace(",", ";").replace(".", ","),
        GOOD.replace(",", "\t").replace(".", ","),
        "sep=;\n" + GOOD.replace(",", ";"),
        GOOD.replace("question", "test"),
        GOOD.replace("question", '"Question"').replace("error", "Error"),
        "\n\n,,,,\n" + GOOD + "\n,,,,\n\n",
        GOOD.replace("\n", ",,\n"),
        "".join(f",{line}\n" for line in GOOD.splitlines()),
        GOOD.replace(",", " , "),
        GOOD.replace(",0,1,-", ",0.0,1.0,—"),
        GOOD.replace("a,b,c", "a,,b,c")
        .replace("0.5,", "0.5,,")
        .replace("0,1,-", "0,,1,-")
        .replace("1,1,0", "1,,1,0"),
        GOOD.replace("prior,,0.5,0.3,0.2\n", "") + "prior,,0.5,0.3,0.2\n",
    ],
)
def test_tables_as_people_write_them(tmp_path: Path, text: str) -> None:
    assert load_problem(put(tmp_path, text)) == expected()


def test_separator_survives_commas_in_names(tmp_path: Path) -> None:
    text = "question;error;a,b;c,d,e\nq;0,1;0;1\n"
    assert load_problem(put(tmp_path, text)).classes == ("a,b", "c,d,e")


def test_texts_descriptions_and_dash_of_a_table(tmp_path: Path) -> None:
    text = "question,text,error,a,b\nq,Is it?,0.1,0,1\ndescription,,,first,\ndash,,,either\n"
    problem = load_problem(put(tmp_path, text))
    assert problem.texts == ("Is it?",)
    assert problem.descriptions == ("first", "")
    assert problem.dash == "either"
    assert load_problem(tmp_path / "p.csv", dash="inapplicable").dash == "inapplicable"


def test_question_called_description(tmp_path: Path) -> None:
    problem = load_problem(put(tmp_path, "question,error,a,b\ndescription,0.1,0,1\n"))
    assert problem.questions == ("description",)
    text = message(put(tmp_path, "question,a,b\ndescription,0,1\n"), worker_error=0.1)
    assert "line 2: the row description has answers" in text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["is empty"]),
        ("\n\n", ["is blank"]),
        (",,,\n", ["is blank"]),
        ("hello\n", ["line 1", "expected question (or test) as the first column", "'hello'"]),
        ("a,b,c\n0,1,0\n", ["line 1", "expected question (or test)", "'a'"]),
        ("question,error\nq,0.1\n", ["line 1", "at least two classes", "none"]),
        ("question,error,a\nq,0.1,0\n", ["line 1", "at least two classes", "'a'"]),
        (SEP, ["contains no question", "one row per question"]),
        (SEP + "prior,,0.5,0.5\n", ["contains no question"]),
        (SEP + "q,0.1,0,x\n", ["line 2", "column 4", "'q'", "'b'", "'x'", "0, 1 or -"]),
        (SEP + "q,0.1,0,2\n", ["line 2", "column 4", "'2'", "0, 1 or -"]),
        (SEP + "q,0.1,0,0.5\n", ["line 2", "'0.5'"]),
        (SEP + "q,0.1,0,\n", ["line 2", "column 4", "is blank", "0, 1 or -"]),
        (SEP + "q,0.1,0,nan\n", ["line 2", "'nan'", "0, 1 or -"]),
        (SEP + '"q\nr",0.1,0,1\ns,0.1,0,x\n', ["line 4", "'s'", "'x'"]),
        (SEP + '"q\nr",0.1,0,x\n', ["line 2", "'q\\nr'", "'x'"]),
        (SEP + "\n\nq,0.1,0,x\n", ["line 4", "'x'"]),
        ("sep=,\n\n" + SEP + "q,0.1,0,x\n", ["line 4", "'x'"]),
        (SEP + "q,0.1,0\n", ["line 2", "expected 4 cells", "got 3"]),
        (SEP + "q,0.1,0,1,1\n", ["line 2", "column 5", "one more than the header's 4"]),
        ("question,error,a,b,\nq,0.1,0,1,1\n", ["line 2", "column 5", "no name in the header"]),
        (SEP + ",0.1,0,1\n", ["line 2", "no name"]),
        (SEP + "q,0.1,0,1\nq,0.1,1,0\n", ["line 3", "'q'", "already occurs in line 2"]),
        (
            "question,error,a,a\nq,0.1,0,1\n",
            ["line 1", "occurs twice", "column 3 and column 4"],
        ),
        ("question,a,b\nq,0,1\n", ["no column error", "worker_error=0.1", "--worker-error"]),
        (SEP + "q,,0,1\n", ["line 2", "'q' has no error", "worker_error=0.1"]),
        (SEP + "q,x,0,1\n", ["line 2", "'q' has the error 'x'", "from 0 to 1"]),
        (SEP + "q,1.5,0,1\n", ["line 2", "error '1.5'", "from 0 to 1"]),
        (SEP + "q,-0.1,0,1\n", ["line 2", "error '-0.1'"]),
        (SEP + "q,nan,0,1\n", ["line 2", "error 'nan'"]),
        (SEP + "q,inf,0,1\n", ["line 2", "error 'inf'"]),
        (SEP + "prior,,0.5,0.4\nq,0.1,0,1\n", ["prior: sums to 0.9", "--normalise"]),
        (SEP + "prior,,0.5,x\nq,0.1,0,1\n", ["line 2", "column 4", "row prior", "'b'", "'x'"]),
        (SEP + "prior,,0.5,\nq,0.1,0,1\n", ["line 2", "row prior", "is blank"]),
        (SEP + "prior,,0.5,nan\nq,0.1,0,1\n", ["line 2", "row prior", "'nan'"]),
        (SEP + "prior,,0.5,inf\nq,0.1,0,1\n", ["line 2", "row prior", "'inf'"]),
        (SEP + "prior,,1.5,-0.5\nq,0.1,0,1\n", ["line 2", "row prior", "'-0.5'", "positive"]),
        (SEP + "prior,,1,0\nq,0.1,0,1\n", ["class 'b' has 0", "leave out"]),
        (SEP + "prior,,0.5,0.5\nprior,,0.5,0.5\n", ["line 3", "'prior'", "'0.5'", "0, 1 or -"]),
        (
            SEP + "dependence,,2,\nq,0.1,0,1\n",
            ["line 2: dependence: expected a num", "below 1, got '2'"],
        ),
        (SEP + "dependence,,much,\nq,0.1,0,1\n", ["line 2: dependence: expected", "got 'much'"]),
        (SEP + 'q,"0.1,0,1\n', ["line 2", "check the quotes"]),
        (
            SEP + "q" * 200_000 + ",0.1,0,1\n",
            ["line 2", "more than 131,072 characters"],
        ),
    ],
)
def test_bad_tables(tmp_path: Path, text: str, words: list[str]) -> None:
    found = message(put(tmp_path, text))
    for word in words:
        assert word in found


def test_the_field_limit_does_not_depend_on_the_process(tmp_path: Path) -> None:
    before = csv.field_size_limit(10_000_000)
    try:
        text = "question,error,a,b\n" + "q" * 200_000 + ",0.1,0,1\n"
        assert "more than 131,072 characters" in message(put(tmp_path, text))
    finally:
        csv.field_size_limit(before)
