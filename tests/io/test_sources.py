"""Sources of answers in every format: round trips, tables beside the problem, bad fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import crowdtree as ct
from crowdtree import CrowdtreeError, Problem, Source
from crowdtree import io as files
from crowdtree.io import load_problem, problem_from_dict, problem_to_dict, save_problem
from crowdtree.io.problems import EXAMPLES
from tests.io.helpers import FORMATS, message, put
from tests.strategies import problems

DOCUMENTS = (".yaml", ".yml", ".json")
NAMES = ["people", "gpt-x 1.1", "Ann Ö.", "=1+1", "0", "error", "source", 'a,b;"c"', "2%", "- x"]
MIXED = (
    Source("people", dependence=0.1),
    Source("gpt-x", "model", price=0.02, worker_error=[0.1, 0.25], most_per_item=3),
    Source("old", "model", price=1 / 3, error_factor=1.7, repeatable=True),
    Source("ann", "expert", price=4.5, refers=True),
)
PROBLEM = Problem(
    ["a", "b", "c"], None, ["q", "price"], [[0, 0, 1], [0, 1, 1]], 0.1,
    sources=MIXED, source_dependence=0.3,
)  # fmt: skip


@st.composite
def sources(draw: st.DrawFn, problem: Problem, per_cell: bool) -> list[Source]:
    """One to four sources of a problem, the last of which may name classes."""
    shares = st.floats(0, 0.5)
    size = (problem.n_questions, problem.n_classes)
    lists = st.lists(shares, min_size=size[0], max_size=size[0])
    errors = [st.none(), shares, lists, lists.map(np.array)]
    if per_cell:
        row = st.lists(shares, min_size=size[1], max_size=size[1])
        errors.append(st.lists(row, min_size=size[0], max_size=size[0]))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    prices = st.floats(1e-6, 1e6)
    found = []
    for name in names:
        error = draw(st.one_of(errors))
        factors = st.just(1.0) if error is not None or len(names) == 1 else st.floats(0.1, 3)
        found.append(
            Source(
                name,
                draw(st.sampled_from(("people", "model", "expert"))),
                price=draw(prices),
                worker_error=error,
                error_factor=draw(factors),
                dependence=draw(st.none() | st.floats(0, 0.9)),
                repeatable=draw(st.none() | st.booleans()),
                most_per_item=draw(st.none() | st.integers(1, 99)),
            )
        )
    if len(names) > 1 and draw(st.booleans()):
        found[-1] = Source(names[-1], "expert", price=draw(prices), refers=True)
    return found


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.filterwarnings("ignore::crowdtree.core.errors.CrowdtreeWarning")
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_round_trip(tmp_path: Path, ending: str, data: st.DataObject) -> None:
    problem = data.draw(problems(nasty=True, questions=(1, 4), classes=(2, 4)))
    path = tmp_path / f"p{ending}"
    together = data.draw(st.sampled_from([0.0, 0.25, 1 / 3]))
    given = data.draw(sources(problem, per_cell=ending in DOCUMENTS))
    problem = problem.replace(sources=given, source_dependence=together)
    save_problem(problem, path)
    back = load_problem(path)
    assert back == problem
    assert (back.sources, back.expert) == (problem.sources, problem.expert)
    np.testing.assert_array_equal(back.channel, problem.channel)
    assert problem_from_dict(problem_to_dict(problem), "it") == problem


@pytest.mark.parametrize("ending", FORMATS)
def test_sources_are_saved_and_removed(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"p{ending}"
    save_problem(PROBLEM, path)
    back = load_problem(path)
    assert back == PROBLEM
    assert back.notes == ()
    assert back.loss == PROBLEM.loss, "the loss follows from the price of the expert"
    plain = PROBLEM.replace(sources=None, source_dependence=0, loss=None)
    save_problem(plain, path)
    assert load_problem(path) == plain
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("name", [*EXAMPLES])
def test_a_problem_of_people_alone_has_no_new_fields(name: str) -> None:
    problem = ct.example(name).replace(sources=None, source_dependence=0, loss={"refer": 3})
    data = problem_to_dict(problem)
    assert data.keys() == {"crowdtree", "kind", "dash", "loss", "classes", "questions"} | (
        {"dependence"} & data.keys()
    )


def test_what_a_table_cannot_hold_is_refused(tmp_path: Path) -> None:
    rows = np.full((2, 3), 0.2)
    for own in (
        {"worker_error": rows},
        {"table": {"q": [[0.9, 0.8, 0.1], [0.1, 0.2, 0.9]]}},
        {"confusion": {"q": [[0.9, 0.1], [0.2, 0.8]]}},
        {"unsure": 0.1},
    ):
        problem = PROBLEM.replace(sources=[Source("people"), Source("m", "model", **own)])
        for ending in (".csv", ".xlsx"):
            path = tmp_path / f"p{ending}"
            with pytest.raises(CrowdtreeError, match=r"p\.\w+: sources: .* of 'm'; save .*\.yaml"):
                save_problem(problem, path)
            assert not any(tmp_path.iterdir())
        save_problem(problem, tmp_path / "p.json")
        assert load_problem(tmp_path / "p.json") == problem
        (tmp_path / "p.json").unlink()


def test_sources_of_documents_name_questions_and_classes(tmp_path: Path) -> None:
    text = """
classes: [a, b, c]
worker_error: 0.1
questions:
  - {name: q, outcome: [0, 0, 1]}
  - {name: cap, answers: [red, brown, white], outcome: [red, brown, white]}
source_dependence: 20%
sources:
  - people
  - {name: m, kind: model, price: 0.1, worker_error: {cap: 25%, q: {a: 0.1, b: 0.2, c: 30%}}}
  - {name: n, kind: model, price: 0.1, worker_error: [0.3, 4%], unsure: {q: 0.5, cap: 0.25}}
  - name: t
    table: {cap: {red: [0.5, 0, 0.1], brown: [0.25, 1, 0.1], white: [0.25, 0, 0.8]}}
  - {name: f, price: 2, confusion: {q: [[0.9, 0.1], [0.3, 0.7]]}, notes: by heart}
"""
    found = load_problem(put(tmp_path, text, "p.yaml"))
    expected = [
        Source("people"),
        Source("m", "model", price=0.1, worker_error=[[0.1, 0.2, 0.3], [0.25] * 3]),
        Source("n", "model", price=0.1, worker_error=[0.3, 0.04], unsure=[0.5, 0.25]),
        Source("t", table={"cap": [[0.5, 0, 0.1], [0.25, 1, 0.1], [0.25, 0, 0.8]]}),
        Source("f", price=2, confusion={"q": [[0.9, 0.1], [0.3, 0.7]]}),
    ]
    same = found.replace(sources=expected)
    np.testing.assert_array_equal(found.channel, same.channel)
    assert found.source_dependence == 0.2
    assert found.of_source("n").unsure is not None
    assert any("sources 'people', 't' have no price" in note for note in found.notes)
    save_problem(found, tmp_path / "again.json")
    assert load_problem(tmp_path / "again.json") == found


def test_sources_are_given_in_place_of_the_files(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    save_problem(PROBLEM.replace(sources=None, source_dependence=0, loss=None), path)
    table = put(
        tmp_path,
        "# comment\nsource;kind;price;error;price;q;notes\n#old;model;1;;;;\n"
        "people;;1;;;;all of us\nM;Model;2,5 %;;0,25;10%;\nsource_dependence;0,3\n",
        "who.csv",
    )
    model = Source("M", "model", price=0.025, worker_error=[0.1, 0.25])
    expected = load_problem(path).replace(sources=[Source("people"), model], source_dependence=0.3)
    found = load_problem(path, sources=table)
    assert found == expected
    document = tmp_path / "who.yaml"
    document.write_text(
        "sources: [people, {name: M, kind: model, price: 0.025, worker_error: {price: 0.25, q: "
        "0.1}}]\nsource_dependence: 0.3\n"
    )
    frame = pl.DataFrame(
        {
            "source": ["people", "M", "source_dependence"],
            "kind": [None, "model", "0.3"],
            "price": [1, 0.025, None],
            "error": [None, 0.25, None],
            "q": [None, 0.1, None],
        },
        strict=False,
    )
    assert load_problem(path, sources=frame) == expected
    given = load_problem(path, sources=expected.sources)
    assert given.sources == expected.sources
    whole = tmp_path / "whole.yaml"
    save_problem(PROBLEM, whole)
    assert load_problem(whole, sources=table) == expected
    assert load_problem(path, sources=whole) == PROBLEM
    kept = load_problem(whole, sources=expected.sources)
    assert kept.source_dependence == PROBLEM.source_dependence


def test_a_table_whose_sources_are_all_comments_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    plain = PROBLEM.replace(sources=None, source_dependence=0, loss=None)
    save_problem(plain, path)
    put(tmp_path, "source,kind,price\n# people,people,1\n# m,model,0.1\n", "p.sources.csv")
    assert load_problem(path) == plain


def test_an_expert_has_one_price(tmp_path: Path) -> None:
    text = "classes: [a, b]\nworker_error: 0.1\nquestions: [{name: q, outcome: [0, 1]}]\n"
    text += "loss: {refer: 2}\nsources: [people, {name: ann, refers: true, price: 3}]\n"
    assert "expected one of them" in message(put(tmp_path, text, "p.yaml"))


YAML = """classes: [a, b]
questions: [{name: q, error: 0.1, outcome: [0, 1]}, {name: r, error: 0.1, outcome: [1, 0]}]
"""
ENTRIES: list[tuple[str, str]] = [
    ("price: 0", "sources[1] ('m').price: expected a number above 0, got 0"),
    ("price: -1", "sources[1] ('m').price: expected a number above 0, got -1"),
    ("price: .inf", "sources[1] ('m').price: expected a number above 0, got inf"),
    ("price: dear", "sources[1].price: expected a number, got 'dear'"),
    ("price: true", "sources[1].price: expected a number, got 'True'"),
    ("kind: robot", "sources[1].kind: expected 'people', 'expert' or 'model', got 'robot'"),
    ("colour: red", "sources[1].colour: no such field; use one of name, kind, price"),
    ("worker_error: 2", "sources[1] ('m').worker_error: expected a probability"),
    ("worker_error: often", "sources[1].worker_error"),
    ("worker_error: [0.1]", "sources[1] ('m').worker_error: expected 2 entries, one per question"),
    ("worker_error: [0.1, 7]", "worker_error: question 'r': expected a number from 0 to 1, got"),
    ("worker_error: {q: 0.1}", "sources[1] ('m').worker_error: 'r' is missing; add it"),
    ("worker_error: {q: 0.1, r: 0.1, s: 0.1}", "worker_error: 's' is not a question of this"),
    ("worker_error: {q: 0.1, r: [0.1]}", "worker_error: question 'r': expected 2 cells"),
    ("worker_error: {q: 0.1, r: {a: 0.1, c: 1}}", "question 'r': 'c' is not a class of this"),
    ("worker_error: {q: 0.1, r: {a: 0.1}}", "worker_error: question 'r', class 'b' is missing"),
    ("worker_error: 0.1, error_factor: 2", "worker_error: expected this or error_factor, got bo"),
    ("error_factor: -1", "sources[1] ('m').error_factor: expected 0 or more, got -1"),
    ("error_factor: [1]", "sources[1].error_factor: expected a number, got a list of 1"),
    ("confusion: 0.1", "sources[1].confusion: "),
    ("confusion: {s: [[1, 0], [0, 1]]}", "sources[1] ('m').confusion: 's' is not a question"),
    ("confusion: {q: [[1, 0], [1, 1]]}", "sources[1] ('m').confusion: question 'q', right answer"),
    ("table: 1", "sources[1].table"),
    ("table: [[x]]", "sources[1] ('m').table: expected P(answer | class) by the names of ques"),
    ("table: {q: [[1, 0], [1, 1]]}", "sources[1] ('m').table: question 'q', class 'a': prob"),
    ("unsure: 1", "sources[1] ('m').unsure"),
    ("unsure: {q: 0.1}", "sources[1] ('m').unsure: 'r' is missing; add it"),
    ("dependence: 1", "sources[1] ('m').dependence: expected a number from 0 to below 1, got 1"),
    ("dependence: much", "sources[1].dependence: expected a number, got 'much'"),
    ("repeatable: maybe", "sources[1].repeatable: expected true or false, got 'maybe'"),
    ("most_per_item: 0", "sources[1] ('m').most_per_item: expected a whole number from 1"),
    ("most_per_item: 1.5", "sources[1].most_per_item: "),
    ("refers: 1", "sources[1].refers: expected true or false, got '1'"),
    ("refers: true, dependence: 0.1", "sources[1] ('m').refers: names classes and is right; lea"),
]
LISTS: list[tuple[str, str]] = [
    ("sources: people", "sources: expected a list, got 'people'"),
    ("sources: {people: 1}", "sources: expected a list, got fields; write one entry per line"),
    ("sources: []", "sources: expected 1 to 64 sources, got 0"),
    ("sources: [3]", "sources[0]: expected fields, got '3'"),
    ("sources: [{kind: model}]", "sources[0].name: is missing; add it"),
    ("sources: [people, People]", "sources: 'people', 'People' occurs more than once"),
    ("sources: [a|b]", "sources: expected a name"),
    ("sources: [{name: ' m '}]", "sources: expected a name"),
    ("sources: [{name: m, refers: true}]", "expected one that answers questions"),
    ("sources: [{name: m, error_factor: 2}]", "sources[0] ('m').error_factor: is relative to"),
    ("source_dependence: 1", "source_dependence: expected a number from 0 to below 1, got 1"),
    ("source_dependence: much", "source_dependence: expected a number, got 'much'"),
]
TABLES: list[tuple[str, str]] = [
    ("\n", "p.sources.csv"),
    ("# nothing\n", "expected source,kind,price,error,... as the first row"),
    ("name,price\nm,1\n", "line 1: expected source,kind,price,error,... as the first row"),
    ("source,colour\nm,red\n", "line 1: column 2: 'colour' is not a question; expected kind"),
    ("source,q,q\nm,0.1,0.1\n", "line 1: column 3: 'q' occurs twice; expected kind"),
    ("source,price\n,1\n", "line 2: the source has no name; add one"),
    ("source,price\nm,dear\n", "line 2: price of 'm': expected a number, got 'dear'"),
    ("source,price\nm,0\n", "line 2: source 'm': price: expected a number above 0, got 0"),
    ("source,kind\nm,robot\n", "line 2: kind of 'm': expected people, expert or model, got"),
    ("source,error\nm,2\n", "line 2: error of 'm': expected a number from 0 to 1, got '2'"),
    ("source,q\nm,-0.1\n", "line 2: error of 'm': expected a number from 0 to 1, got '-0.1'"),
    ("source,q\nm,0.1\n", "line 2: 'm' has errors for some questions only; fill in the others"),
    ("source,error_factor\nm,x\n", "line 2: error_factor of 'm': expected a number, got 'x'"),
    ("source,error_factor,error\nm,2,0.1\n", "source 'm': worker_error: expected this or error_"),
    ("source,dependence\nm,1\n", "line 2: source 'm': dependence: expected a number from 0 to b"),
    ("source,repeatable\nm,-\n", "line 2: repeatable of 'm': expected true or false, got '-'"),
    ("source,most_per_item\nm,1.5\n", "line 2: most_per_item of 'm': expected a whole number"),
    ("source,most_per_item\nm,0\n", "line 2: source 'm': most_per_item: expected a whole number"),
    ("source,refers\nm,perhaps\n", "line 2: refers of 'm': expected true or false, got 'perhaps'"),
    ("source,price\nm,1,2\n", "line 2: '2' has no name in the header; name its column"),
    ("source,price\nm,1\nM,1\n", "p.sources.csv: sources: 'm', 'M' occurs more than once"),
    ("source,refers\nm,true\n", "p.sources.csv: sources: expected one that answers questions"),
    ("source,price\nm,1\nsource_dependence,\n", "line 3: source_dependence: expected a number"),
    ("source\nm\nsource_dependence,1\n", "line 3: source_dependence: expected a number from 0 to"),
    ("source\nm\nsource_dependence,0\nsource_dependence,0\n", "line 4: source_dependence occurs"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "words"), ENTRIES)
def test_bad_fields_name_their_place(tmp_path: Path, fields: str, words: str) -> None:
    text = f"{YAML}sources: [people, {{name: m, {fields}}}]\n"
    assert words in message(put(tmp_path, text, "p.yaml"))


@pytest.mark.parametrize(("line", "words"), LISTS)
def test_bad_lists_of_sources(tmp_path: Path, line: str, words: str) -> None:
    assert words in message(put(tmp_path, f"{YAML}{line}\n", "p.yaml"))


@pytest.mark.parametrize(("table", "words"), TABLES)
def test_bad_tables_of_sources(tmp_path: Path, table: str, words: str) -> None:
    put(tmp_path, table, "p.sources.csv")
    path = put(tmp_path, "question,error,a,b\nq,0.1,0,1\nr,0.1,1,0\n")
    with pytest.raises(CrowdtreeError) as caught:
        load_problem(path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_sources_given_as_an_argument() -> None:
    text = message(b"question,error,a,b\nq,0.1,0,1\n", sources="nowhere.csv", name="p.csv")
    assert "nowhere.csv: no such file" in text
    assert "expected a list of sources" in message(
        b"question,error,a,b\nq,0.1,0,1\n", sources=3, name="p.csv"
    )


def test_reading_sources_alone() -> None:
    given: Any = b"source,price\npeople,1\n"
    assert files.read_sources(given, ["a", "b"], ["q"]).sources == [Source("people")]


@pytest.mark.parametrize("more", ["", "expert,expert,5,true\n"])
def test_errors_in_common_of_one_source_are_said_not_to_count(tmp_path: Path, more: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text("question,error,a,b\nq,0.1,1,0\n")
    table = put(
        tmp_path,
        f"source,kind,price,refers\npeople,,1,\n{more}source_dependence,0.4\n",
        "s.csv",
    )
    notes = load_problem(path, sources=table).notes
    assert any("source_dependence does not count, because only one source" in n for n in notes)
    rows = "source,kind,price\npeople,,1\nm,model,1\nsource_dependence,0.4\n"
    two = put(tmp_path, rows, "t.csv")
    assert not any("does not count" in note for note in load_problem(path, sources=two).notes)
    document = (
        "classes: [a, b]\nquestions:\n  - {name: q, error: 0.1, outcome: [1, 0]}\n"
        "sources: [people]\nsource_dependence: 0.4\n"
    )
    notes = load_problem(put(tmp_path, document, "p.yaml")).notes
    assert any("source_dependence does not count" in note for note in notes)
