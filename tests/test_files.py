"""Every format in and out, and every way in which a file can be wrong."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import crowdtree as ct
from crowdtree import CrowdtreeError, CrowdtreeWarning, Problem
from crowdtree.files import (
    EXAMPLES,
    formats,
    load_plan,
    load_problem,
    load_tree,
    markup,
    save_plan,
    save_problem,
    sources,
    to_frame,
    tree_to_json,
)
from crowdtree.plan import Plan
from crowdtree.tree import Certificate
from strategies import problems

FORMATS = [".csv", ".tsv", ".csv.gz", ".xlsx", ".yaml", ".yml", ".json"]
GOOD = "question,error,a,b,c\nprior,,0.5,0.3,0.2\nq1,0.1,0,1,-\nq2,0.2,1,1,0\n"


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


def expected() -> Problem:
    return Problem(
        ["a", "b", "c"], [0.5, 0.3, 0.2], ["q1", "q2"], [[0, 1, -1], [1, 1, 0]], [0.1, 0.2]
    )


def put(folder: Path, text: str | bytes, name: str = "p.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def message(path: object, **options: object) -> str:
    """What loading complains about: always our error, always one line, always short."""
    with pytest.raises(CrowdtreeError) as caught:
        load_problem(path, **options)  # type: ignore[arg-type]
    text = str(caught.value)
    assert "\n" not in text
    assert "\r" not in text
    assert len(text) < 400
    if isinstance(path, Path):
        assert path.name in text
    return text


def book(folder: Path, sheets: dict[str, list[list[object]]], name: str = "p.xlsx") -> Path:
    made = openpyxl.Workbook()
    made.remove(made.active)
    for title, rows in sheets.items():
        sheet = made.create_sheet(title)
        for row in rows:
            sheet.append(row)
    made.save(folder / name)
    return folder / name


# ---------------------------------------------------------------- round trips


@pytest.mark.parametrize("ending", FORMATS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problem=problems(nasty=True))
@example(
    problem=Problem(
        ["error", "text", "question", "prior"],
        None,
        ["prior", "description", "dash", "text", "error"],
        [[0, 1, 0, 1], [0, 0, 1, 1], [1, 1, 1, 0], [0, 0, 0, 0], [-1, 0, 1, 1]],
        [[0.1, 0.2, 0.3, 0.4]] * 5,
    )
)
@example(
    problem=Problem(
        ["Error", "Text"],
        [1 / 3, 2 / 3],
        ["Description", "PRIOR"],
        [[0, 1], [1, 1]],
        [0.1, 0.30000000000000004],
        descriptions=["-", "0"],
        texts=["1", ""],
        dash="either",
    )
)
def test_round_trip(tmp_path: Path, ending: str, problem: Problem) -> None:
    path = tmp_path / f"p{ending}"
    save_problem(problem, path)
    back = load_problem(path)
    assert back == problem
    assert back.error_per_question == problem.error_per_question
    assert list(tmp_path.glob(".*")) == []  # no temporary file stays behind


@pytest.mark.parametrize("library", ["polars", "pandas"])
@given(problem=problems(texts=True))
def test_frames_round_trip(library: str, problem: Problem) -> None:
    frame, errors = to_frame(problem), to_frame(problem, "errors")
    if library == "pandas":
        frame, errors = frame.to_pandas(), errors.to_pandas()
    back = load_problem(frame, errors=None if problem.error_per_question else errors)
    assert back == problem
    assert back.error_per_question == problem.error_per_question


@given(st.data())
def test_plans_round_trip(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    problem = data.draw(problems(separable=True, nasty=True))
    tree = ct.design(problem)
    n = tree.n_nodes
    votes = data.draw(st.lists(st.integers(1, 9), min_size=n, max_size=n))
    vote = data.draw(st.sampled_from(["majority", "margin"]))
    pool = data.draw(st.sampled_from(["node", "question"]))
    if pool == "question":  # one team a question
        first = tree.question.tolist().index
        votes = [votes[first(question)] for question in tree.question.tolist()]
    plan = Plan(tree, votes, vote, "some method", pool)
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    save_plan(plan, path)
    back = load_plan(path)
    assert back.tree.problem == problem
    assert back.tree.to_dict() == tree.to_dict()
    assert back.votes.tolist() == votes
    assert (back.vote, back.method, back.pool) == (plan.vote, plan.method, plan.pool)
    assert back.tree.method == "fm"


def test_saved_twice_is_the_same_file(tmp_path: Path) -> None:
    for ending in (".csv", ".csv.gz", ".json", ".yaml"):
        paths = [tmp_path / f"{name}{ending}" for name in "ab"]
        for path in paths:
            save_problem(ct.example("animals"), path)
        assert paths[0].read_bytes() == paths[1].read_bytes()


def test_saving_without_cell_errors_removes_those_beside(tmp_path: Path) -> None:
    problem, path = expected(), tmp_path / "p.csv"
    save_problem(problem.replace(worker_error=np.full((2, 3), 0.25)), path)
    assert (tmp_path / "p.errors.csv").exists()
    save_problem(problem, path)
    assert load_problem(path) == problem
    assert os.listdir(tmp_path) == ["p.csv"]


def test_readers_never_see_half_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.json"
    save_problem(expected(), path)
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(CrowdtreeError, match=r"p\.json: cannot be written \(No space left"):
        save_problem(ct.example("table1"), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["p.json"]


def test_rights_of_a_file_stay(tmp_path: Path) -> None:
    path = put(tmp_path, "old", "p.json")
    path.chmod(0o640)
    save_problem(expected(), path)
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no/such/p.csv", "folder .* does not exist; create it"),
        ("p.doc", "unknown file extension; expected one of .csv"),
        ("folder.csv", "is a folder"),
    ],
)
def test_where_nothing_can_be_saved(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(CrowdtreeError, match=words):
        save_problem(expected(), tmp_path / name)


@pytest.mark.parametrize(
    ("name", "ending", "words"),
    [
        ("\ud800", ".csv", "cannot be written as UTF-8"),
        ("\ud800", ".json", "cannot be written as UTF-8"),
        ("a\x01b", ".xlsx", "a character that a workbook cannot keep"),
        ("_x0041_", ".xlsx", "a character that a workbook cannot keep"),
        ("x" * 40_000, ".xlsx", "longer than the 32,767 characters"),
    ],
)
def test_names_that_a_format_cannot_keep(
    tmp_path: Path, name: str, ending: str, words: str
) -> None:
    problem = Problem([name, "b"], None, ["q"], [[0, 1]], 0.1)
    with pytest.raises(CrowdtreeError, match=words) as caught:
        save_problem(problem, tmp_path / f"p{ending}")
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == []


# ---------------------------------------------------------------- tables as people write them


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


def test_no_prior_row_means_equal_priors(tmp_path: Path) -> None:
    problem = load_problem(put(tmp_path, "question,error,a,b\nq,0.1,0,1\n"))
    assert problem.prior.tolist() == [0.5, 0.5]


def test_prior_can_be_given(tmp_path: Path) -> None:
    path = put(tmp_path, GOOD)
    assert load_problem(path, prior={"c": 0.7, "a": 0.1, "b": 0.2}).prior.tolist() == [
        0.1,
        0.2,
        0.7,
    ]
    assert len(set(load_problem(path, prior="uniform").prior)) == 1
    assert load_problem(path, prior=[5, 3, 2], normalise=True).prior.tolist() == [0.5, 0.3, 0.2]
    assert "lacks class 'b'" in message(path, prior={"a": 1, "c": 1})
    assert "unknown class 'd'" in message(path, prior={"a": 1, "b": 1, "c": 1, "d": 1})
    assert 'or "uniform", got' in message(path, prior="flat")


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
    assert "line 2: the row description holds answers" in text


def test_per_cell_errors_from_a_second_table(tmp_path: Path) -> None:
    path = put(tmp_path, GOOD.replace("0.1", "").replace("q2,0.2", "q2,"))
    errors = put(tmp_path, "test,c,b,a\nq2,0.3,0.2,0.1\nq1,,0.25,0.15\n", "other.csv")
    problem = load_problem(path, errors=errors)
    assert problem.worker_error.tolist() == [[0.15, 0.25, 0.5], [0.1, 0.2, 0.3]]
    assert load_problem(path, errors=pl.read_csv(errors)) == problem
    errors.rename(tmp_path / "p.errors.csv")
    assert load_problem(path) == problem


def test_blank_cell_errors_fall_back_to_the_question(tmp_path: Path) -> None:
    errors = put(tmp_path, "question,a,b,c\nq1,0.3,,\nq2,,,0.4\n", "e.csv")
    problem = load_problem(put(tmp_path, GOOD), errors=errors)
    assert problem.worker_error.tolist() == [[0.3, 0.1, 0.1], [0.2, 0.2, 0.4]]


def test_errors_beside_a_filled_column_are_announced(tmp_path: Path) -> None:
    put(tmp_path, "question,a,b,c\nq1,0.3,,\nq2,,,0.4\n", "p.errors.csv")
    with pytest.warns(CrowdtreeWarning, match=r"p\.errors\.csv is not read"):
        assert load_problem(put(tmp_path, GOOD)) == expected()


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        ("question,a,b\nq1,0.1,0.1\nq2,0.1,0.1\n", "lacks the class 'c'"),
        ("question,a,b,c\nq1,0.1,0.1,0.1\n", "lacks the question 'q2'"),
        ("question,a,b,c,d\nq1,,,,\nq2,.1,.1,.1,.1\n", "has the class 'd'"),
        ("question,a,b,c\nq1,0.1,0.1,\nq2,0.1,,0.1\n", "question 'q2', class 'b' is blank"),
        ("question,a,b,c\nq1,0.1,2,\nq2,0.1,0.1,0.1\n", "line 2: column 3 .*'2'; write a number"),
        ("question,a,b,c\nq1,0.1,x,\nq2,0.1,0.1,0.1\n", "line 2: column 3 .*'x'; write a number"),
    ],
)
def test_bad_second_tables(tmp_path: Path, errors: str, words: str) -> None:
    path = put(tmp_path, GOOD.replace("0.1", "").replace("q2,0.2", "q2,"))
    with pytest.raises(CrowdtreeError, match=words):
        load_problem(path, errors=put(tmp_path, errors, "e.csv"))


def test_strengths(tmp_path: Path) -> None:
    path = put(tmp_path, "test,a,b\nq,0.1,0.98\n")
    problem = load_problem(path, strengths=True, least_error=0.05)
    assert problem.outcome.tolist() == [[0, 1]]
    assert problem.worker_error.tolist() == [[0.1, 0.05]]
    shares = put(tmp_path, "test,b,a\nq,,0.1\n", "s.csv")
    problem = load_problem(put(tmp_path, "test,a,b\nq,0,1\n"), strengths=shares)
    assert problem.worker_error.tolist() == [[0.1, 0.25]]
    bad = put(tmp_path, "test,a,b\nq,0.1,1.98\n")
    assert "line 2: column 3 (question 'q', class 'b') is '1.98'" in message(bad, strengths=True)
    assert "expected a table" in message(put(tmp_path, "{}", "p.json"), strengths=True)


# ---------------------------------------------------------------- faults of tables

SEP = "question,error,a,b\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["is empty"]),
        ("\n\n", ["is blank"]),
        (",,,\n", ["is blank"]),
        ("hello\n", ["line 1", "first column must be called question", "'hello'"]),
        ("a,b,c\n0,1,0\n", ["line 1", "must be called question", "'a'"]),
        ("question,error\nq,0.1\n", ["line 1", "at least two classes", "none"]),
        ("question,error,a\nq,0.1,0\n", ["line 1", "at least two classes", "'a'"]),
        (SEP, ["holds no question", "one row per question"]),
        (SEP + "prior,,0.5,0.5\n", ["holds no question"]),
        (SEP + "q,0.1,0,x\n", ["line 2", "column 4", "'q'", "'b'", "'x'", "0, 1 or -"]),
        (SEP + "q,0.1,0,2\n", ["line 2", "column 4", "'2'", "0, 1 or -"]),
        (SEP + "q,0.1,0,0.5\n", ["line 2", "'0.5'"]),
        (SEP + "q,0.1,0,\n", ["line 2", "column 4", "is blank", "0, 1 or -"]),
        (SEP + "q,0.1,0,nan\n", ["line 2", "'nan'", "0, 1 or -"]),
        (SEP + '"q\nr",0.1,0,1\ns,0.1,0,x\n', ["line 4", "'s'", "'x'"]),
        (SEP + '"q\nr",0.1,0,x\n', ["line 2", "'q\\nr'", "'x'"]),
        (SEP + "\n\nq,0.1,0,x\n", ["line 4", "'x'"]),
        ("sep=,\n\n" + SEP + "q,0.1,0,x\n", ["line 4", "'x'"]),
        (SEP + "q,0.1,0\n", ["line 2", "3 cells", "header has 4"]),
        (SEP + "q,0.1,0,1,1\n", ["line 2", "column 5", "one more than the header's 4"]),
        ("question,error,a,b,\nq,0.1,0,1,1\n", ["line 2", "column 5", "no name in the header"]),
        (SEP + ",0.1,0,1\n", ["line 2", "no name"]),
        (SEP + "q,0.1,0,1\nq,0.1,1,0\n", ["line 3", "'q'", "already in line 2"]),
        ("question,error,a,a\nq,0.1,0,1\n", ["line 1", "'a' occurs twice", "columns 3 and 4"]),
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


def test_error_of_half_or_more_is_a_warning(tmp_path: Path) -> None:
    with pytest.warns(CrowdtreeWarning, match="question 'q' has 0.5; from 0.5 on"):
        load_problem(put(tmp_path, SEP + "q,0.5,0,1\n"))


def test_given_error_needs_no_column(tmp_path: Path) -> None:
    path = put(tmp_path, "question,a,b\nq,0,1\n")
    assert load_problem(path, worker_error=0.1).worker_error.tolist() == [[0.1, 0.1]]
    assert "1.5 is no probability" in message(path, worker_error=1.5)


# ---------------------------------------------------------------- faults of files


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        (
            "p.csv",
            GOOD.replace("q2", "é").encode("latin-1"),
            ["line 4", f"byte {GOOD.index('q2') + 1} (0xe9)", "UTF-8"],
        ),
        ("p.csv", GOOD.encode()[:-1] + b"\xc3", ["UTF-8"]),
        (
            "p.csv",
            b"\n" * 70_000 + b"question,error,a,b\n\xff",
            ["line 70002", "byte 70020 (0xff)"],
        ),
        ("p.json", b'{"a":\n "\xe9"}', ["line 2", "byte 9 (0xe9)", "UTF-8"]),
        ("p.yaml", b"a: \xe9", ["line 1", "byte 4 (0xe9)", "UTF-8"]),
        ("p.csv", GOOD.encode("utf-16"), ["UTF-16", "save it as UTF-8"]),
        ("p.csv", b"question\0", ["byte 9 is zero", "not a text file"]),
        ("p.csv", b"PK\x03\x04", ["XLSX", "name it .xlsx"]),
        ("p.csv", b"\xd0\xcf\x11\xe0", ["Excel", "save it as .xlsx"]),
        ("p.csv.gz", GOOD.encode(), ["gzip"]),
        ("p.csv.gz", gzip.compress(GOOD.encode() * 1000, mtime=0)[:-20], ["gzip"]),
        ("p.csv.gz", gzip.compress(b"", mtime=0), ["is empty"]),
        ("p.xlsx", GOOD.encode(), ["not an XLSX workbook"]),
        ("p.xlsx", b"PK\x03\x04 and so on", ["not an XLSX workbook"]),
        ("p.json", b"{", ["line 1", "column 2", "not JSON"]),
        ("p.json", b'{"a": 1,\n "b" 2}', ["line 2", "column 6", "not JSON"]),
        ("p.json", b'{"a": NaN}', ["NaN", "finite"]),
        ("p.json", b'{"a": 1, "a": 2}', ["'a' occurs twice"]),
        ("p.json", b"[" * 100_000, ["nested too deeply"]),
        ("p.json", b'{"a": ' + b"1" * 5000 + b"}", ["not JSON"]),
        ("p.json", b"[1, 2]", ["fields (crowdtree,", "a list of 2"]),
        ("p.json", b"  ", ["is blank"]),
        ("p.yaml", b"a: [1\nb: 2", ["line 2", "column", "not YAML"]),
        ("p.yaml", b"a: [0, - 1]", ["not YAML", '"-"']),
        ("p.yaml", b"a: 1\na: 2", ["line 2", "'a' occurs twice"]),
        ("p.yaml", b"a: &x [1]\nb: *x", ["line 2", "alias", "write the values out"]),
        ("p.yaml", b"a: !!python/object:os.system {}", ["not YAML"]),
        ("p.yaml", b"[" * 100_000, ["got a list"]),
        ("p.yaml", b"a: " + b"[" * 100_000, ["nested too deeply"]),
        ("p.yaml", b"a: b\x07", ["not YAML"]),
        ("p.yaml", b"- 1", ["got a list"]),
        ("p.yaml", b"hello", ["fields (crowdtree,", "'hello'"]),
        ("p.yaml", b"a: 1\n---\nb: 2", ["not YAML"]),
        ("p.yaml", b"? [a]\n: 1", ["not YAML"]),
        ("p.txt", b"question", ["unknown file extension", ".csv"]),
        ("p.xls", b"question", [".xlsx"]),
        ("p", b"question", ["extension"]),
    ],
)
def test_bad_files(tmp_path: Path, name: str, data: bytes, words: list[str]) -> None:
    found = message(put(tmp_path, data, name))
    for word in words:
        assert word in found


def test_no_file(tmp_path: Path) -> None:
    assert "no such file; check the name" in message(tmp_path / "p.csv")
    put(tmp_path, GOOD, "birds.csv")
    assert "did you mean birds.csv?" in message(tmp_path / "brids.csv")
    assert "no such file" in message(tmp_path / "no" / "p.csv")
    (tmp_path / "folder.csv").mkdir()
    assert "is a folder" in message(tmp_path / "folder.csv")
    assert "cannot be read" in message("nul\0.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    assert "not a regular file" in message(tmp_path / "pipe.csv")
    with pytest.raises(CrowdtreeError, match=r"two\?lines.csv: no such file"):
        load_problem("two\nlines.csv")


@pytest.mark.parametrize("thing", [None, 5, [1, 2], np.zeros((2, 2)), object()])
def test_no_table_at_all(thing: object) -> None:
    assert "expected a file or a data frame" in message(thing)


GARBAGE = {
    "bytes": np.random.default_rng(0).bytes(10_000_000),
    "letters": b"abcdefghij" * 1_000_000,
    "words": b"lorem ipsum dolor sit amet\n" * 370_000,
    "newlines": b"\n" * 10_000_000,
    "returns": b"\r" * 10_000_000,
    "commas": b"," * 10_000_000,
    "quotes": b'"' * 10_000_000,
    "brackets": b"[" * 10_000_000,
    "braces": b"{" * 10_000_000,
    "list": b"- a\n" * 2_500_000,
    "nest": b"? " * 5_000_000,
    "digits": b"1" * 10_000_000,
    "header": b"question," * 1_100_000,
    "blank": b"question,error,a,b\n" + b"\n" * 9_900_000,
    "anchors": b"&a *a " * 1_600_000,
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_ten_megabytes_of_garbage(tmp_path: Path, kind: str) -> None:
    path = put(tmp_path, GARBAGE[kind])
    for ending in FORMATS:
        path = path.rename(tmp_path / f"p{ending}")
        message(path)
    path.unlink()  # or the machine would keep some hundred megabytes for a while


def load_or_refuse(path: Path) -> None:
    """Nothing but our own one-line error, or the warning of an error of 0.5, may come out."""
    complaint = ""
    try:
        load_problem(path, normalise=True)
    except (CrowdtreeError, CrowdtreeWarning) as error:
        complaint = str(error)
    assert "\n" not in complaint


@cache
def saved(ending: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        save_problem(expected(), Path(folder) / f"p{ending}")
        return (Path(folder) / f"p{ending}").read_bytes()


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=300), ending=st.sampled_from(FORMATS))
def test_any_bytes_give_our_error_or_a_problem(tmp_path: Path, data: bytes, ending: str) -> None:
    path = put(tmp_path, data, f"p{ending}")
    load_or_refuse(path)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_small_change_gives_our_error_or_a_problem(tmp_path: Path, data: st.DataObject) -> None:
    ending = data.draw(st.sampled_from(FORMATS))
    content = bytearray(saved(ending))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    path = put(tmp_path, bytes(content), f"p{ending}")
    load_or_refuse(path)


def test_limits_of_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for ending in FORMATS:
        monkeypatch.setitem(formats.MOST_BYTES, ending, 10)
        assert "more than the 10 that are read" in message(put(tmp_path, GOOD, f"p{ending}"))
    monkeypatch.setitem(formats.MOST_BYTES, ".csv.gz", 100)
    path = put(tmp_path, gzip.compress(GOOD.encode() + b"\n" * 5_000), "p.csv.gz")
    assert "unpacks to more than 100 bytes" in message(path)
    with pytest.raises(CrowdtreeError, match=r"would take .* more than the 10 that can be read"):
        save_problem(expected(), tmp_path / "q.json")
    assert not (tmp_path / "q.json").exists()


def test_limits_of_yaml_and_blank_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_problem(expected(), tmp_path / "p.yaml")
    monkeypatch.setattr(markup, "MOST_VALUES", 20)
    assert "values; keep large tables as .csv" in message(tmp_path / "p.yaml")
    with pytest.raises(CrowdtreeError, match="values; keep large tables"):
        save_problem(expected(), tmp_path / "p.yaml")
    monkeypatch.setattr(sources, "MOST_BLANK", 3)
    assert "begins with 3 blank lines" in message(put(tmp_path, "\n" * 9 + GOOD))
    assert "has 3 blank lines in a row" in message(put(tmp_path, SEP + "\n" * 9 + GOOD))


# ---------------------------------------------------------------- workbooks


def test_workbook_as_people_make_it(tmp_path: Path) -> None:
    rows: list[list[object]] = [
        [None, None],
        [None, "Question ", "Error", "a", None, "b", "c ", None],
        [None, "prior", None, 0.5, None, 0.3, 0.2],
        [],
        [None, "q1", 0.1, 0.0, "  ", 1.0, "-"],
        [None, "q2", "0.2", "1", None, True, False],
    ]
    path = book(tmp_path, {"My table": rows, "notes": [["anything"]]})
    assert load_problem(path) == expected()


def test_workbook_with_errors(tmp_path: Path) -> None:
    rows: list[list[object]] = [["question", "a", "b"], ["q", 0, 1], [7, 1, 0]]
    errors: list[list[object]] = [["question", "a", "b"], ["q", 0.1, 0.2], [7.0, 0.3, 0.4]]
    problem = load_problem(book(tmp_path, {"Errors": errors, "p": rows}))
    assert problem.questions == ("q", "7")
    assert problem.worker_error.tolist() == [[0.1, 0.2], [0.3, 0.4]]


def test_bad_workbooks(tmp_path: Path) -> None:
    rows: list[list[object]] = [["question", "error", "a", "b"], [], ["q", 0.1, 0, 3]]
    found = message(book(tmp_path, {"Sheet 1": rows}))
    assert "p.xlsx, sheet 'Sheet 1', row 3: column 4 (question 'q', class 'b') is '3'" in found
    rows[2][3] = None
    assert "is blank; write 0, 1 or -" in message(book(tmp_path, {"Sheet 1": rows}))
    assert "no sheet with a table" in message(book(tmp_path, {"errors": rows}))
    assert "is blank" in message(book(tmp_path, {"Sheet": []}))


def test_hostile_workbooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/workbook.xml", b"\0" * 5_000_000)
    assert "not a readable XLSX workbook" in message(path)
    monkeypatch.setattr(sources, "MOST_UNPACKED", 4_000_000)
    assert "unpacks to 5,000,000 bytes" in message(path)
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("xl/workbook.xml", '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]>')
    assert "declares a document type" in message(path)


def test_truncated_workbook(tmp_path: Path) -> None:
    save_problem(expected(), tmp_path / "p.xlsx")
    whole = io.BytesIO((tmp_path / "p.xlsx").read_bytes())
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(tmp_path / "q.xlsx", "w") as target:
        for member in source.namelist():
            if "sheet" in member:
                target.writestr(member, source.read(member)[:100])
            else:
                target.writestr(member, source.read(member))
    assert "not a readable XLSX workbook" in message(tmp_path / "q.xlsx")


# ---------------------------------------------------------------- frames


def test_frames_as_people_make_them() -> None:
    columns = {"question": ["q1", "q2"], "error": [0.1, 0.2], "a": [0, 1], "b": [True, True]}
    frame = pd.DataFrame(columns | {"c": ["-", "0"]})
    wanted = expected().replace(prior=None)
    assert load_problem(frame) == wanted
    assert load_problem(frame.set_index("question")) == wanted
    assert load_problem(pl.from_pandas(frame)) == wanted
    assert load_problem(pl.from_pandas(frame).lazy()) == wanted
    missing = frame.assign(b=pd.array([1, None], dtype="Int64"))
    assert "frame, row 2: column 4 (question 'q2', class 'b') is blank" in message(missing)
    twins = pd.DataFrame([["q", 0.1, 0, 1]], columns=["question", "error", "a", "a"])
    assert "frame: cannot be read" in message(twins)


def test_frame_cannot_have_twin_columns() -> None:
    problem = Problem(["error", "b"], None, ["q"], [[0, 1]], 0.1)
    with pytest.raises(CrowdtreeError, match="two columns 'error'; rename the class"):
        to_frame(problem)
    with pytest.raises(CrowdtreeError, match="part: must be"):
        to_frame(problem, "prior")


# ---------------------------------------------------------------- documents

DOCUMENT = """
worker_error: 0.3
classes:
  - {name: a, prior: 0.5, description: the first}
  - {name: b, prior: 0.3}
  - {name: c, prior: 0.2}
questions:
  - name: q1
    text: Is it?
    error: 0.1
    outcome: [no, yes, "-"]
  - name: q2
    outcome: {c: 0, b: 1, a: 1}
"""


def test_document_as_people_write_it(tmp_path: Path) -> None:
    problem = load_problem(put(tmp_path, DOCUMENT, "p.yaml"))
    wanted = expected().replace(
        worker_error=[0.1, 0.3], texts=["Is it?", ""], descriptions=["the first", "", ""]
    )
    assert problem == wanted
    as_json = put(tmp_path, json.dumps(yaml.safe_load(DOCUMENT)), "p.json")
    assert load_problem(as_json) == wanted
    changed = load_problem(as_json, worker_error=0.2, prior="uniform", dash="either")
    assert changed == wanted.replace(worker_error=0.2, prior=None, dash="either")


def test_document_with_cell_errors_by_name(tmp_path: Path) -> None:
    text = DOCUMENT.replace("error: 0.1", "error: {b: 0.1}")
    problem = load_problem(put(tmp_path, text, "p.yaml"))
    assert problem.worker_error.tolist() == [[0.3, 0.1, 0.3], [0.3, 0.3, 0.3]]
    text = DOCUMENT.replace("error: 0.1", "error: {a: 0.1, b: 0.2}").replace("worker_error", "#")
    problem = load_problem(put(tmp_path, text + "    error: 0.4", "p.yaml"))
    assert problem.worker_error.tolist() == [[0.1, 0.2, 0.5], [0.4, 0.4, 0.4]]


def test_short_document(tmp_path: Path) -> None:
    text = "classes: [a, b]\nquestions: [{name: q, error: 0, outcome: [0, 1]}]"
    problem = load_problem(put(tmp_path, text, "p.yml"))
    assert problem == Problem(["a", "b"], None, ["q"], [[0, 1]], 0.0)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("description", "descripton", ["classes[0].descripton: no such field", "description"]),
        ("text:", "txt:", ["questions[0].txt: no such field; use one of name, text, error"]),
        ("worker_error", "worker_eror", ["worker_eror: no such field; use one of crowdtree"]),
        ("classes:", "class:", ["classes: is missing"]),
        ("name: q2", "name: 2", ["questions[1].name: expected text, got '2'; put it in quotes"]),
        ("name: b", "name: no", ["classes[1]", "expected text", "put it in quotes"]),
        ("prior: 0.3", 'prior: "x"', ["classes[1].prior: expected a number, got 'x'"]),
        ("prior: 0.3", "prior: 0.2", ["prior: sums to 0.9", "--normalise"]),
        ("prior: 0.3", "prior: .nan", ["class 'b' has nan"]),
        (", prior: 0.3", "", ["class 'b' has no prior but others have"]),
        ("name: b", "name: a", ["'a' occurs more than once"]),
        ("name: q2", "name: q1", ["'q1' occurs more than once"]),
        ("name: b", 'name: " "', ["class 2 has no name"]),
        ('"-"]', '"?"]', ["questions[0] ('q1').outcome: class 'c' is '?'", "0, 1 or"]),
        (', "-"]', "]", ["questions[0] ('q1').outcome: 2 cells for 3 classes"]),
        ("c: 0, ", "", ["questions[1] ('q2').outcome: class 'c' is missing"]),
        ("c: 0, ", "d: 0, ", ["questions[1] ('q2').outcome: 'd' is not a class"]),
        ("c: 0, ", "c: [0], ", ["questions[1] ('q2').outcome: class 'c' is a list of 1"]),
        ("error: 0.1", "error: 1.1", ["question 'q1' has 1.1", "from 0 to 1"]),
        ("error: 0.1", "error: [0.1, x, 0.1]", ["questions[0] ('q1').error: class 'b' is 'x'"]),
        ("worker_error: 0.3", "", ["questions[1] ('q2'): has no error", "worker_error:"]),
        ("worker_error: 0.3", "dash: maybe", ["dash: ", "inapplicable", "'maybe'"]),
        ("worker_error: 0.3", "crowdtree: 2", ["crowdtree: ", "'2'"]),
        ("worker_error: 0.3", "kind: plan", ["holds a plan, not a problem; use load_plan"]),
    ],
)
def test_bad_documents(tmp_path: Path, old: str, new: str, words: list[str]) -> None:
    assert old in DOCUMENT
    found = message(put(tmp_path, DOCUMENT.replace(old, new, 1), "p.yaml"))
    for word in words:
        assert word in found


# ---------------------------------------------------------------- plans


def test_tree_is_a_plan_of_one_vote_each(tmp_path: Path) -> None:
    tree = ct.design(ct.example("animals"))
    save_plan(tree, tmp_path / "tree.json")
    plan = load_plan(tmp_path / "tree.json")
    assert plan.votes.tolist() == [1] * tree.n_nodes
    assert load_tree(tmp_path / "tree.json").to_dict() == tree.to_dict()
    assert "votes" not in tree_to_json(tree)


@pytest.mark.parametrize("gap", [0.0, 0.125, float("inf")])
def test_certificate_is_kept(tmp_path: Path, gap: float) -> None:
    import dataclasses

    proven = Certificate("additive", 1 / 3, 0.1, gap, "time limit", 12)
    tree = dataclasses.replace(ct.design(ct.example("table1")), certificate=proven)
    save_plan(tree, tmp_path / "tree.json")
    assert load_plan(tmp_path / "tree.json").tree.certificate == proven


def test_plan_for_another_problem(tmp_path: Path) -> None:
    problem = ct.example("table1")
    save_plan(ct.design(problem), tmp_path / "p.json")
    other = problem.replace(worker_error=0.25)
    assert load_plan(tmp_path / "p.json", other).tree.problem is other
    bare = put(tmp_path, json.dumps(ct.design(problem).to_dict()), "bare.json")
    assert load_plan(bare, problem).tree.to_dict() == ct.design(problem).to_dict()
    with pytest.raises(CrowdtreeError, match=r"bare\.json: holds no problem; pass problem="):
        load_plan(bare)
    with pytest.raises(CrowdtreeError, match="question 'T1' is not in the problem"):
        load_plan(bare, expected())


def test_groups_are_kept(tmp_path: Path) -> None:
    problem = Problem(["a", "b", "c"], None, ["q"], [[0, 0, 1]], 0.1)
    tree = ct.design(problem, allow_groups=True)
    save_plan(tree, tmp_path / "p.json")
    saved = json.loads((tmp_path / "p.json").read_text())
    assert saved["tree"]["no"] == {"label": "a", "group": ["a", "b"]}
    assert load_plan(tmp_path / "p.json").tree.leaf_classes == tree.leaf_classes


def test_very_deep_tree(tmp_path: Path) -> None:
    n = 1500
    outcome = np.eye(n - 1, n, dtype=np.int8)  # each question picks out one class
    problem = Problem(
        [f"c{i}" for i in range(n)], None, [f"q{i}" for i in range(n - 1)], outcome, 0.001
    )
    children = [[i + 1, -1] for i in range(n - 1)]
    children[-1][0] = -2
    tree = ct.Tree(problem, np.arange(n - 1), np.array(children))
    save_plan(Plan(tree, np.arange(1, n)), tmp_path / "deep.json")
    back = load_plan(tmp_path / "deep.json")
    assert back.tree.children.tolist() == tree.children.tolist()
    assert back.votes.tolist() == list(range(1, n))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "problem"}, "holds a problem, not a plan"),
        ({"crowdtree": 2}, "crowdtree: "),
        ({"vote": "loudest"}, "vote: .*'loudest'"),
        ({"colour": "red"}, "colour: no such field"),
        ({"tree": None}, "tree: is missing"),
        ({"tree": {}}, "tree: is missing"),
        ({"tree": {"question": "q1"}}, "has no 'no' branch"),
        ({"tree": {"question": "x", "no": {}, "yes": {}}}, "question 'x' is not in the problem"),
        ({"tree": {"question": "q2", "no": {}, "yes": {}}}, 'needs a "question" or a "label"'),
        ({"tree": {"question": "q2", "no": {"label": "a"}, "yes": {"label": "b"}}}, "labelled 'a'"),
        ({"votes": 0}, "'0' votes; expected a whole number from 1"),
        ({"votes": 1.5}, "'1.5' votes; expected a whole number from 1"),
        ({"nodes": [{"question": "q2", "no": 0, "yes": {}}]}, r"nodes\[0\].no: must be the number"),
        ({"problem": {"classes": []}}, "problem: questions: is missing"),
        ({"problem": None}, "holds no problem"),
    ],
)
def test_bad_plans(tmp_path: Path, change: dict[str, object], words: str) -> None:
    tree = ct.design(expected())
    save_plan(tree, tmp_path / "p.json")
    data = json.loads((tmp_path / "p.json").read_text())
    if "votes" in change:
        data["tree"] |= change
    else:
        data |= change
    path = put(tmp_path, json.dumps(data), "p.json")
    with pytest.raises(CrowdtreeError, match=words) as caught:
        load_plan(path)
    assert "\n" not in str(caught.value)
    assert "p.json" in str(caught.value)


def test_plans_are_json(tmp_path: Path) -> None:
    with pytest.raises(CrowdtreeError, match=r"plans are kept as \.json"):
        save_plan(ct.design(ct.example("table1")), tmp_path / "p.csv")
    with pytest.raises(CrowdtreeError, match=r"plans are kept as \.json"):
        load_plan(tmp_path / "p.csv")


# ---------------------------------------------------------------- examples


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_can_be_designed(name: str) -> None:
    problem = ct.example(name)
    assert problem.dash == "inapplicable"
    tree = ct.design(problem)
    assert all(len(members) == 1 for members in tree.leaf_classes)


def test_animals_are_a_fair_example() -> None:
    animals = ct.example("animals")
    assert 16 <= animals.n_classes <= 20
    assert 24 <= animals.n_questions <= 30
    splits_root = (animals.outcome >= 0).all(axis=1) & (np.ptp(animals.outcome, axis=1) > 0)
    assert splits_root.sum() >= 8
    assert (animals.outcome == -1).any(axis=1).sum() >= 8
    assert 0.02 <= animals.worker_error.min() < animals.worker_error.max() <= 0.25
    assert all(text.endswith("?") for text in animals.texts)
    assert all(animals.descriptions)
    assert len(set(animals.prior)) > 8
    fm, gain = (ct.evaluate(ct.design(animals, m)).misclassification for m in ("fm", "gain"))
    assert fm < gain


def test_unknown_example() -> None:
    with pytest.raises(CrowdtreeError, match="no 'nope'; choose from table1, animals"):
        ct.example("nope")


def test_tables_need_no_heavy_library() -> None:
    code = (
        "import sys, crowdtree; crowdtree.example('table1');"
        "print([m for m in ('polars', 'pandas', 'pydantic', 'openpyxl', 'yaml', 'narwhals')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_field_limit_does_not_depend_on_the_process(tmp_path: Path) -> None:
    before = csv.field_size_limit(10_000_000)
    try:
        text = "question,error,a,b\n" + "q" * 200_000 + ",0.1,0,1\n"
        assert "more than 131,072 characters" in message(put(tmp_path, text))
    finally:
        csv.field_size_limit(before)


def test_bytes_and_streams_are_read_like_files(tmp_path: Path) -> None:
    path = put(tmp_path, GOOD)
    content = path.read_bytes()
    assert load_problem(content, name="p.csv") == load_problem(path)
    assert load_problem(io.BytesIO(content), name="p.csv") == load_problem(path)
    with path.open("rb") as stream:
        assert load_problem(stream) == load_problem(path)
        assert not stream.closed
    for ending in FORMATS:
        assert load_problem(saved(ending), name=f"p{ending}") == load_problem(
            put(tmp_path, saved(ending), f"p{ending}")
        )
    plan = tmp_path / "plan.json"
    save_plan(ct.design(expected()), plan)
    assert load_plan(plan.read_bytes(), name="plan.json").votes.tolist() == [1, 1]


def test_bytes_need_a_name_and_a_stream_must_be_binary() -> None:
    assert "expected a file name with bytes" in message(b"question,a,b\n")
    assert "open it with mode 'rb'" in message(io.StringIO("question,a,b\n"))


def test_errors_of_bytes_have_the_name_they_were_given() -> None:
    with pytest.raises(CrowdtreeError, match=r"^birds.csv, line 2: "):
        load_problem(b"question,error,a,b\nq,0.1,0,7\n", name="birds.csv")


def test_gzip_is_told_by_the_content(tmp_path: Path) -> None:
    packed = put(tmp_path, gzip.compress(GOOD.encode()), "p.csv")
    assert load_problem(packed) == load_problem(put(tmp_path, GOOD, "q.csv"))
