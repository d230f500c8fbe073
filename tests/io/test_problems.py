"""Problems in every format: round trips, options, bytes and streams, examples."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings

import crowdtree as ct
from crowdtree import CrowdtreeError, CrowdtreeWarning, Problem
from crowdtree.io import (
    EXAMPLES,
    load_plan,
    load_problem,
    save_plan,
    save_problem,
)
from tests.io.helpers import FORMATS, GOOD, SEP, expected, message, put, saved
from tests.strategies import problems


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
    frame, errors = problem.to_frame(), problem.to_frame("errors")
    if library == "pandas":
        frame, errors = frame.to_pandas(), errors.to_pandas()
    back = load_problem(frame, errors=None if problem.error_per_question else errors)
    assert back == problem
    assert back.error_per_question == problem.error_per_question


def test_saved_twice_is_the_same_file(tmp_path: Path) -> None:
    for ending in (".csv", ".csv.gz", ".json", ".yaml"):
        paths = [tmp_path / f"{name}{ending}" for name in "ab"]
        for path in paths:
            save_problem(ct.example("animals"), path)
        assert paths[0].read_bytes() == paths[1].read_bytes()


def test_saving_without_cell_errors_removes_the_old_errors_file(tmp_path: Path) -> None:
    problem, path = expected(), tmp_path / "p.csv"
    save_problem(problem.replace(worker_error=np.full((2, 3), 0.25)), path)
    assert (tmp_path / "p.errors.csv").exists()
    save_problem(problem, path)
    assert load_problem(path) == problem
    assert os.listdir(tmp_path) == ["p.csv"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no/such/p.csv", "folder .* does not exist; create it"),
        ("p.doc", "unknown file extension; expected one of .csv"),
        ("folder.csv", "is a folder"),
    ],
)
def test_paths_that_cannot_be_written(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(CrowdtreeError, match=words):
        save_problem(expected(), tmp_path / name)


@pytest.mark.parametrize(
    ("name", "ending", "words"),
    [
        ("\ud800", ".csv", "cannot be written as UTF-8"),
        ("\ud800", ".json", "cannot be written as UTF-8"),
        ("a\x01b", ".xlsx", "a character that a workbook cannot store"),
        ("_x0041_", ".xlsx", "a character that a workbook cannot store"),
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


def test_ignored_errors_file_is_announced(tmp_path: Path) -> None:
    put(tmp_path, "question,a,b,c\nq1,0.3,,\nq2,,,0.4\n", "p.errors.csv")
    with pytest.warns(CrowdtreeWarning, match=r"p\.errors\.csv is ignored"):
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


def test_error_of_half_or_more_is_a_warning(tmp_path: Path) -> None:
    with pytest.warns(CrowdtreeWarning, match="question 'q' has 0.5; at an error of 0.5 or more"):
        load_problem(put(tmp_path, SEP + "q,0.5,0,1\n"))


def test_given_error_needs_no_column(tmp_path: Path) -> None:
    path = put(tmp_path, "question,a,b\nq,0,1\n")
    assert load_problem(path, worker_error=0.1).worker_error.tolist() == [[0.1, 0.1]]
    assert "expected a probability from 0 to 1, got 1.5" in message(path, worker_error=1.5)


@pytest.mark.parametrize("thing", [None, 5, [1, 2], np.zeros((2, 2)), object()])
def test_no_table_at_all(thing: object) -> None:
    assert "expected a file or a data frame" in message(thing)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_can_be_designed(name: str) -> None:
    problem = ct.example(name)
    assert problem.dash == ("either" if name == "leaves" else "inapplicable")
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


def test_gzip_is_detected_by_content(tmp_path: Path) -> None:
    packed = put(tmp_path, gzip.compress(GOOD.encode()), "p.csv")
    assert load_problem(packed) == load_problem(put(tmp_path, GOOD, "q.csv"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "question,error,a,b\nHow common,,0.7,0.3\nq,0.1,0,1\n",
            "if this row says how often each class occurs, call it prior",
        ),
        (
            "question;error;a;b\nshare;;70,5;29,5\nq;0,1;0;1\n",
            "if this row says how often each class occurs, call it prior",
        ),
        (
            "class,share,q\na,70%,0\nb,30%,1\nerror,,0.1\n",
            "if this column says how often each class occurs, call it prior",
        ),
        (
            "question,a,b,Worker error\nprior,0.7,0.3,\nq,0,1,0.1\n",
            "if this column says how often workers err, call it error",
        ),
        (
            "question,a,b,How often people err\nShare of parcels,70%,30%,\nq,0,1,5%\n",
            "if this row says how often each class occurs, call it prior",
        ),
        (
            "question,a,b,How often people err\nprior,70%,30%,\nq,0,1,5%\n",
            "if this column says how often workers err, call it error",
        ),
        (
            "class,prior,q\na,0.7,0\nb,0.3,1\nerror rate,,0.1\n",
            "if this row says how often workers err, call it error",
        ),
    ],
)
def test_a_prior_or_an_error_of_another_name_is_suggested(tmp_path: Path, text, words) -> None:
    assert words in message(put(tmp_path, text))


def test_names_that_differ_in_spelling_alone_are_said() -> None:
    table = b"question,error,Cat,cat,dog\nfurry,0.1,1,0,1\nbig,0.1,0,0,1\n"
    notes = load_problem(table, name="t.csv").notes
    assert "classes 'Cat' and 'cat' differ in spelling alone; are they one?" in notes
    table = table.replace(b"Cat", b"cow").replace(b"big", b"Furry")
    assert any(
        "questions 'furry' and 'Furry'" in n for n in load_problem(table, name="t.csv").notes
    )
