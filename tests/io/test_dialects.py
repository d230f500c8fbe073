"""Tables as people have them: whatever the spelling and the layout, the problem is the same."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdtree import Problem
from crowdtree.io import load_problem
from crowdtree.io.table_writer import problem_rows
from tests.io.helpers import expected, message, put
from tests.strategies import problems

WORDS = [("0", "1", "-"), ("no", "yes", "n/a"), ("N", "Y", "NA"), ("FALSE", "TRUE", "—")]
WORDS += [("False", "True", "#N/A"), ("No", "Yes", "n.a.")]


@dataclass(frozen=True)
class Dialect:
    """How a table is written."""

    words: tuple[str, str, str] = WORDS[0]
    percent: bool = False
    separator: str = ","
    decimal_comma: bool = False
    title: int = 0
    notes: bool = False
    transposed: bool = False
    order: int = 0
    shout: bool = False
    blank: int = 0
    comments: bool = False


dialects = st.builds(
    Dialect,
    words=st.sampled_from(WORDS),
    percent=st.booleans(),
    separator=st.sampled_from(",;\t"),
    decimal_comma=st.booleans(),
    title=st.integers(0, 2),
    notes=st.booleans(),
    transposed=st.booleans(),
    order=st.integers(0, 5),
    shout=st.booleans(),
    blank=st.integers(0, 2),
    comments=st.booleans(),
)


def number(value: float, dialect: Dialect) -> str:
    text = repr(value)
    if dialect.percent:
        text = f"{Decimal(text).scaleb(2):f}%"
    return text.replace(".", ",") if dialect.decimal_comma else text


def spelled(row: list[Any], dialect: Dialect) -> list[str]:
    name, *cells = row
    words = dict(zip((0, 1, "-"), dialect.words, strict=True))
    made = [
        number(c, dialect) if isinstance(c, float) else words.get(c, str(c)) if name else c
        for c in cells
    ]
    return [name, *made]


def table(problem: Problem, dialect: Dialect) -> list[list[str]]:
    """The rows of a problem in a dialect; questions and classes stay in their order."""
    header, *rows = [list(row) for row in problem_rows(problem)]
    grid = [list(map(str, header)), *(spelled(row, dialect) for row in rows)]
    if dialect.shout:
        grid[0][:2] = ["QUESTION", "Error"]
        grid[1][0] = "Prior"
    if dialect.notes:
        grid = [
            [*row, "Notes" if i == 0 else "" if i == 1 else "look again"]
            for i, row in enumerate(grid)
        ]
    if dialect.transposed:
        grid = [list(column) for column in zip(*grid, strict=True)]
        grid[0][0] = "CLASS" if dialect.shout else "class"
    first = [row.pop(0) for row in grid]  # the column of names may be anywhere
    for row, name in zip(grid, first, strict=True):
        row.insert(dialect.order % (len(row) + 1), name)
        row += [""] * dialect.blank
    if dialect.comments:
        grid.insert(2, ["# see the field guide", *[""] * (len(grid[0]) - 1)])
    blank = [""] * (len(grid[0]) - 1)
    return [["Birds of the garden", *blank], ["", *blank]][: dialect.title] + grid


def as_text(rows: list[list[str]], dialect: Dialect) -> bytes:
    made = io.StringIO()
    csv.writer(made, delimiter=dialect.separator).writerows(rows)
    return ("\ufeff" if dialect.shout else "").encode() + made.getvalue().encode()


def as_workbook(rows: list[list[str]]) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.active.merge_cells("A1:B1" if rows[0][1:] == [""] * (len(rows[0]) - 1) else "A1:A1")
    made = io.BytesIO()
    book.save(made)
    return made.getvalue()


@settings(max_examples=150, deadline=None)
@given(problem=problems(errors=("one", "question"), dash="inapplicable"), dialect=dialects)
def test_every_dialect_gives_the_same_problem(problem: Problem, dialect: Dialect) -> None:
    rows = table(problem, dialect)
    assert load_problem(as_text(rows, dialect), name="p.csv") == problem


@settings(max_examples=25, deadline=None)
@given(problem=problems(errors=("one", "question"), dash="inapplicable"), dialect=dialects)
def test_dialects_of_workbooks_and_frames(problem: Problem, dialect: Dialect) -> None:
    rows = table(problem, dialect)
    assert load_problem(as_workbook(rows), name="p.xlsx") == problem
    first, *rest = rows
    named = [name or f"Unnamed: {place}" for place, name in enumerate(first)]
    for library in (pd.DataFrame(rest, columns=named), pl.DataFrame(rest, named, orient="row")):
        assert load_problem(library) == problem


MESSY = """Garden birds (version 3)
# counted in 2024; percent of sightings

Notes;QUESTION;Error;a;b;c;;
from the guide;Prior;;50 %;30 %;20 %;;
;q1;0,1;no;Yes;n/a;;
check this;q2;20%;TRUE;y;N;;
;# end;;;;;;
"""


def test_everything_at_once_is_said_in_one_line(tmp_path: Path) -> None:
    problem = load_problem(put(tmp_path, "\ufeff" + MESSY))
    assert problem == expected()
    assert problem.notes == (
        "header found in line 4",
        "names of the questions in column 2",
        "column 'Notes' left out as comments",
        "1 line left out as comments",
        "50 % read as 0.5, no/N as 0, Yes/TRUE/y as 1, n/a as -",
    )


def test_plain_files_say_nothing(tmp_path: Path) -> None:
    text = "question,error,a,b\nprior,,0.5,0.5\nq,0.1,0,-\n"
    assert load_problem(put(tmp_path, text)).notes == ()
    assert load_problem(put(tmp_path, text)).replace(prior=None).notes == ()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.csv", "question,error,a,b\nq,0.1,0,1\n"),
        ("p.yaml", "classes: [a, b]\nquestions: [{name: q, error: 10%, outcome: [0, 1]}]"),
    ],
)
def test_a_missing_prior_is_said(tmp_path: Path, name: str, text: str) -> None:
    path = put(tmp_path, text, name)
    assert "equal shares" in load_problem(path).notes[0]
    assert load_problem(path).worker_error.tolist() == [[0.1, 0.1]]
    assert load_problem(path, prior="uniform").notes == ()


def test_a_prior_in_percent_is_scaled(tmp_path: Path) -> None:
    text = "question,error,a,b\nprior,,20,80\nq,0.1,0,1\n"
    problem = load_problem(put(tmp_path, text))
    assert problem.prior.tolist() == [0.2, 0.8]
    assert "sums to 100" in problem.notes[0]


def test_documents_have_the_same_spellings_and_notes(tmp_path: Path) -> None:
    text = (
        "notes: from the guide\n"
        "classes: [{name: a, prior: 50%, notes: rare}, {name: b, prior: 30%}, "
        "{name: c, prior: 20%}]\n"
        "questions:\n"
        '  - {name: q1, error: {a: 10%, b: 10%}, outcome: ["N", "Yes", n/a], notes: look}\n'
        "  - {name: q2, error: 20%, outcome: [yes, TRUE, no]}\n"
    )
    problem = load_problem(put(tmp_path, text, "p.yaml"))
    assert problem.outcome.tolist() == expected().outcome.tolist()
    assert problem.prior.tolist() == expected().prior.tolist()
    assert problem.worker_error.tolist() == [[0.1, 0.1, 0.5], [0.2, 0.2, 0.2]]
    assert problem.notes == ("N read as 0, Yes as 1, n/a as -",)


def test_a_class_may_be_called_notes(tmp_path: Path) -> None:
    text = "question,error,notes,b\n{}q,0.1,0,1\nr,0.1,1,1\n"
    for prior in ("", "prior,,0.5,0.5\n"):
        problem = load_problem(put(tmp_path, text.format(prior)))
        assert problem.classes == ("notes", "b")


def test_rows_can_be_asked_for(tmp_path: Path) -> None:
    path = put(tmp_path, "bird,flies,swims\nrobin,1,0\nduck,1,1\n")
    classes = load_problem(path, worker_error=0.1, rows="classes")
    assert classes.classes == ("robin", "duck")
    questions = load_problem(path, worker_error=0.1, rows="questions")
    assert questions.classes == ("flies", "swims")
    assert 'expected "questions" or "classes"' in message_of(path, rows="birds")


def message_of(path: Path, **options: Any) -> str:
    with pytest.raises(ValueError, match="rows") as caught:
        load_problem(path, worker_error=0.1, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("bird,flies,swims\nrobin,1,0\nduck,1,1\n", ["line 1", "'bird'", "--rows"]),
        (",flies,swims\nrobin,1,0\n", ["line 1", "rename the column", "--rows"]),
        ("class,error,a,b\nq,0.1,0,1\n", ["'class' suggests one class per row", "--rows"]),
        ("class,prior,q\na,0.5,0\nb,0.5,x\nerror,,0.1\n", ["column 3", "line 3", "'b'", "'x'"]),
        ("class,prior,q\na,0.5,0\n\na,0.5,1\n", ["'a' occurs twice, in line 2 and line 4"]),
        ("class,prior,q\na,0.5,0\n,0.5,1\n", ["line 3", "the class has no name"]),
        ("class,prior,q\na,0.5\nb,0.5,1\n", ["line 2", "expected 3 cells"]),
        ("class,prior,q\n", ["contains no class"]),
        ("class,prior,q\na,0.5,0\nb,0.5,1\n", ["has no row error"]),
        ('question,error,a,b\nprior,,"1,234","5"\nq,0.1,0,1\n', ["'1,234'", "or 1234"]),
        ("question,error,a,b\nq,5,0,1\n", ["the error '5'", "a percentage such as 5%"]),
        ("question,error,a,b\nbody,,,\nq,0.1,0,1\n", ["'body' is blank for every class", "#"]),
        ("question,error,a,b,\nq,0.1,0,1,see 3\n", ["column 5", "a column called notes"]),
        ("question,error,a,b\nq,0.1,0.2,0.9\n", ["'0.2'", "--strengths"]),
        ("question,error,a,b\nq,0.1,0,a small bird\n", ["a column called notes"]),
        ("question,error,a,b\nq,0.1,x,\n", ["replace crosses by 1, and blank cells by 0"]),
    ],
)
def test_ambiguous_tables_are_refused(tmp_path: Path, text: str, words: list[str]) -> None:
    found = message(put(tmp_path, text))
    for word in words:
        assert word in found


def test_the_sheet_with_the_table_is_found() -> None:
    book = openpyxl.Workbook()
    book.active.append(["Read me"])
    sheet = book.create_sheet("data")
    for row in (["question", "error", "a", "b"], ["prior", None, 0.5, 0.5], ["q", 0.1, 0, 1]):
        sheet.append(row)
    made = io.BytesIO()
    book.save(made)
    problem = load_problem(made.getvalue(), name="p.xlsx")
    assert problem == Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1)
    assert problem.notes == ("sheet 'data' read",)


def test_a_frame_with_its_names_in_the_index() -> None:
    frame = pd.DataFrame(
        [[0, 1, -1], [1, 1, 0]], index=["q1", "q2"], columns=["a", "b", "c"]
    ).assign(error=[0.1, 0.2])
    wanted = expected().replace(prior=None)
    assert load_problem(frame) == wanted
    assert load_problem(frame.rename_axis("question")) == wanted
    turned = frame.T.rename_axis("class")
    assert load_problem(turned) == wanted
    some = frame.rename_axis("question").reset_index().iloc[1:]
    assert load_problem(some).questions == ("q2",)
    blank = frame.astype(object)
    blank.iloc[0, 0] = np.nan
    assert "keep_default_na" in message(blank)


def test_second_tables_may_be_messy_too(tmp_path: Path) -> None:
    path = put(tmp_path, "question,a,b,c\nprior,0.5,0.3,0.2\nq1,0,1,-\nq2,1,1,0\n")
    errors = "Errors of the crowd\nclass;q1;q2\na;15%;10%\nb;25%;20%\nc;n/a;30%\n"
    problem = load_problem(path, errors=put(tmp_path, errors, "e.csv"))
    assert problem.worker_error.tolist() == [[0.15, 0.25, 0.5], [0.1, 0.2, 0.3]]
    assert any("e.csv: one class per row" in note for note in problem.notes)
