"""Every result has a frame, a picture, a file and a form in a notebook."""

from __future__ import annotations

import inspect
import re
import xml.etree.ElementTree as ET
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest

import crowdtree as ct

ANSWERS = {
    "task": [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4],
    "worker": ["ann", "ben", "cy"] * 4,
    "label": ["cat", "cat", "dog", "dog", "dog", "dog", "cat", "cat", "cat", "dog", "dog", "cat"],
}


def table_answers() -> tuple[dict[str, list[object]], dict[str, str]]:
    """Answers of one person per item to two yes/no questions, and the classes of the items."""
    rng = np.random.default_rng(3)
    names, right = ["bee", "cow", "eel"], [[1, 0, 0], [1, 1, 0]]
    columns: dict[str, list[object]] = {"task": [], "question": [], "worker": [], "label": []}
    for item in range(90):
        for q, name in enumerate(("legs", "air")):
            answer = right[q][item % 3] ^ int(rng.random() < 0.1)
            row = {"task": item, "question": name, "worker": f"w{item % 9}", "label": answer}
            for key, value in row.items():
                columns[key].append(value)
    return columns, {str(item): names[item % 3] for item in range(60)}


@cache
def results() -> dict[str, object]:
    problem = ct.example("table1")
    tree = ct.design(problem)
    plan = ct.staff(tree, workers=6)
    policy = ct.AdaptivePolicy(problem, 0.05)
    audit = ct.Audit(["a", "b", "c"], ["x", "y", "x"], [0.1, 0.2, 0.1], bound=0.5)
    for item in audit.next(1):
        audit.record(item, "x")
    learned = ct.learn(ANSWERS)
    return {
        "problem": problem,
        "cells": problem.replace(
            worker_error=np.linspace(0.01, 0.4, 25).reshape(5, 5), dependence=0.1
        ),
        "tree": tree,
        "optimal tree": ct.design(problem, "optimal"),
        "plan": plan,
        "undecided plan": plan.leaving_undecided([0]),
        "evaluation": ct.evaluate(plan),
        "frontier": ct.frontier(problem, max_votes=5, price=[1, 2, 1, 1, 1]),
        "adaptive": policy,
        "planned": ct.PlanPolicy(plan, "curtailed"),
        "batch": ct.BatchPolicy(problem, votes=3, decoder="posterior"),
        "run": ct.simulate(problem, policy, items=300, rng=1),
        "adapted run": ct.simulate(
            problem, ct.AdaptivePolicy(problem.replace(worker_error=0.02), 0.05), 150, adapt=True
        ),
        "learned": learned,
        "calibrated": quietly(lambda: learned.calibrate({"1": "cat", "4": "dog"})),
        "table": ct.learn(*table_answers()),
        "audit": audit,
    }


def quietly(make):
    with pytest.warns(ct.CrowdtreeWarning):
        return make()


LEARNED = ["learned", "calibrated", "table"]
DRAWN = ["tree", "plan", "optimal tree", "undecided plan"]
PLOTTED = ["frontier", "evaluation", "run", "adapted run", *LEARNED, "audit"]
POLICIES = ["adaptive", "planned", "batch"]
ALL = ["problem", "cells", *DRAWN, *PLOTTED, *POLICIES]


def test_every_result_is_tried():
    assert set(ALL) == set(results())


@pytest.mark.parametrize("name", [name for name in ALL if name != "audit"])
def test_what_is_saved_and_loaded_is_equal(name, tmp_path):
    result = results()[name]
    path = result.save(tmp_path / "result.json")
    back = ct.load(path)
    assert type(back) is type(result)
    assert back == result


@pytest.mark.parametrize("name", ["tree", "plan", "frontier", "run", "learned", "adaptive"])
def test_results_that_differ_are_unequal(name):
    problem = ct.example("table1").replace(worker_error=0.2)
    other = {
        "tree": lambda: ct.design(problem),
        "plan": lambda: ct.staff(ct.design(ct.example("table1")), workers=4),
        "frontier": lambda: ct.frontier(ct.example("table1"), max_votes=5),
        "run": lambda: ct.simulate(problem, ct.AdaptivePolicy(problem, 0.05), 300, rng=1),
        "learned": lambda: ct.learn(ANSWERS | {"label": ["cat"] * 6 + ["dog"] * 6}),
        "adaptive": lambda: ct.AdaptivePolicy(ct.example("table1"), 0.06),
    }[name]()
    assert results()[name] != other
    assert results()[name] != "text"


def test_an_audit_is_saved_by_its_method(tmp_path):
    audit = results()["audit"]
    assert ct.load(audit.save(tmp_path / "audit.json")).to_dict() == audit.to_dict()


@pytest.mark.parametrize("name", [name for name in ALL if name not in POLICIES])
@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_frames_of_both_libraries(name, library):
    frame = results()[name].to_frame(library=library)
    assert isinstance(frame, pl.DataFrame if library == "polars" else pd.DataFrame)
    assert len(frame)
    assert len(frame.columns) > 1


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("problem", ["outcome", "errors"]),
        ("evaluation", ["classes", "confusion"]),
        ("run", ["items", "classes", "confusion", "calibration"]),
        ("learned", ["labels", "workers", "errors", "flags"]),
    ],
)
def test_a_wrong_part_lists_the_tables(name, parts):
    for part in parts:
        assert len(results()[name].to_frame(part))
    with pytest.raises(ct.CrowdtreeError, match=f"\"{parts[0]}\".*got 'nope'"):
        results()[name].to_frame("nope")
    with pytest.raises(ct.CrowdtreeError, match="library"):
        results()[name].to_frame(library="arrow")


def test_the_frame_of_a_problem_is_read_back():
    problem = results()["problem"]
    assert ct.load_problem(problem.to_frame()) == problem
    assert ct.load_problem(problem.to_frame(library="pandas")) == problem


def test_recall_and_precision_of_the_frame():
    value = results()["evaluation"]
    frame = value.to_frame("classes")
    joint = value.confusion * value.tree.problem.prior[:, None]
    assert frame["recall"].to_numpy() == pytest.approx(np.diagonal(value.confusion))
    assert frame["precision"].to_numpy() == pytest.approx(np.diagonal(joint) / joint.sum(axis=0))


@pytest.mark.parametrize("name", ["problem", "cells", *PLOTTED])
def test_notebooks_show_well_formed_html(name):
    html = results()[name]._repr_html_()
    ET.fromstring(f"<div>{html.replace('&nbsp;', ' ')}</div>")
    assert "<table" in html or "<svg" in html


@pytest.mark.parametrize("name", DRAWN)
def test_drawings_are_shown_and_saved(name, tmp_path):
    picture = results()[name].draw(title="A <title>")
    assert picture.startswith("<svg")
    assert "A &lt;title&gt;" in picture
    assert picture.save(tmp_path / "tree.svg").read_text() == str(picture)
    assert picture.save(tmp_path / "tree.png").read_bytes()[:4] == b"\x89PNG"
    assert results()[name]._repr_svg_().startswith("<svg")


@pytest.mark.parametrize("name", PLOTTED)
def test_charts_are_altair_charts_that_save_themselves(name, tmp_path):
    chart = results()[name].plot()
    chart.save(tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").read_text().startswith("<svg")


def test_names_are_escaped_in_notebooks():
    problem = ct.Problem(["<b>a", "b"], None, ["<script>"], [[0, 1]], 0.1)
    assert "<script>" not in problem._repr_html_()
    assert "<b>" not in ct.evaluate(ct.design(problem))._repr_html_()


def test_thousands_of_flags_are_printed_as_a_summary():
    flags = results()["learned"].flags
    many = type(flags)([*flags] * 4000)
    assert len(repr(many)) < 1000
    assert f"{len(many):,} points to check" in repr(many)
    assert many._repr_html_().count("<tr>") < 20


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"crowdtree": 1, "kind": "house"}', "kind: expected one of audit, .*got 'house'"),
        ('{"crowdtree": 1, "kind": "run", "truth": []}', "holds a damaged simulation"),
        ('{"crowdtree": 1, "kind": "frontier"}', "holds a damaged frontier \\('.*' is missing"),
        ('{"crowdtree": 1, "kind": "learned", "answers": 3}', "holds a damaged result of learn"),
        ("[1, 2]", "x.json: expected"),
        ("{", "x.json, line 1"),
    ],
)
def test_files_that_are_no_results_are_refused_in_one_line(text, message, tmp_path):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(ct.CrowdtreeError, match=message) as caught:
        ct.load(path)
    assert "\n" not in str(caught.value)


def test_results_are_saved_as_json_only(tmp_path):
    with pytest.raises(ct.CrowdtreeError, match=r"\.json for a result"):
        results()["run"].save(tmp_path / "run.csv")
    with pytest.raises(ct.CrowdtreeError, match="without updates"):
        ct.learn(ANSWERS).update({"task": [9], "worker": ["ann"], "label": ["cat"]}).save(
            tmp_path / "learned.json"
        )


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ct.design(x),
        lambda x: ct.frontier(x),
        lambda x: ct.AdaptivePolicy(x),
        lambda x: ct.BatchPolicy(x),
        lambda x: ct.simulate(x, results()["adaptive"]),
    ],
)
def test_a_path_in_place_of_a_problem_names_the_right_call(call):
    with pytest.raises(ct.CrowdtreeError, match=r"load it first: \w+\(load_problem\('b.csv'\)\)"):
        call("b.csv")
    with pytest.raises(ct.CrowdtreeError, match=r"its problem: \w+\(x.problem\) for a Learned"):
        call(results()["learned"])


@pytest.mark.parametrize("call", [ct.evaluate, ct.staff, ct.PlanPolicy])
def test_a_problem_in_place_of_a_tree_names_the_right_call(call):
    with pytest.raises(ct.CrowdtreeError, match=r"got a Problem; design\(problem\) makes a tree"):
        call(ct.example("table1"))


@cache
def shown() -> dict[str, object]:
    """One result of every type that a public function returns or a class makes."""
    problem, policy = ct.example("table1"), results()["adaptive"]
    return results() | {
        "trace": ct.explain(policy, rng=1),
        "open trace": ct.explain(policy, [("T1", "no")]),
        "sweep": ct.sweep(problem, {"a": policy}, items=50, jobs=1),
        "comparison": ct.compare_policies(problem, 0.05, items=200),
        "checkup": ct.check(problem),
        "pilot": ct.plan_pilot(problem),
        "judgement": ct.judge(ANSWERS, models=["cy"]),
        "agreement": ct.judge(ANSWERS),
        "forecast": ct.plan_audit([0.01] * 100, 0.05),
        "point": results()["frontier"][0],
        "calibration": ct.Calibration(),
        "monitor": ct.Monitor(policy),
        "certificate": ct.verify(results()["optimal tree"]),
        "flags": results()["learned"].flags,
        "choices": ct.plan(problem, error=0.05),
    }


def test_every_result_prints_as_one_line_and_has_an_html_form():
    for name, result in shown().items():
        assert str(result) == repr(result), name
        assert "\n" not in str(result), name
        assert 5 < len(str(result)) < 400, name
        assert " object at 0x" not in str(result), name
        if name != "certificate":  # a tuple of numbers
            html = result._repr_html_()
            ET.fromstring(f"<div>{re.sub('<img ([^>]*)>', '<img/>', html)}</div>")
            assert re.search("<(table|svg|img|pre)", html), name


def test_every_type_that_a_public_function_returns_is_shown():
    types = {type(result).__name__ for result in shown().values()}
    plain = {"Any", "float", "Path", "module", "FloatArray", "OpinionTable"}
    for name in ct.__all__:
        value = getattr(ct, name)
        if inspect.isfunction(value):
            made = inspect.signature(value).return_annotation
            assert made in types | plain, f"{name} returns {made}"


@pytest.mark.parametrize("name", ["frontier", "run", "evaluation", "learned"])
def test_charts_are_drawn_like_trees(name, tmp_path):
    picture = results()[name].draw()
    assert picture.startswith("<svg")
    assert picture.save(tmp_path / "chart.svg").read_text() == str(picture)


def test_labels_are_names_with_their_places_beside_them():
    run, names = results()["run"], ct.example("table1").classes
    assert set(run.label) <= set(names)
    assert [names[place] for place in run.label_index] == run.label.tolist()
    assert [names[place] for place in run.truth_index] == run.truth.tolist()
    assert shown()["trace"].label in names
    assert shown()["open trace"].label is None
    assert set(results()["learned"].labels.values()) <= {"cat", "dog"}


def test_load_recognises_tables_by_their_columns(tmp_path):
    problem, learned = ct.example("table1"), results()["learned"]
    assert ct.load(ct.save(problem, tmp_path / "problem.csv")) == problem
    labels = ct.load(learned, "labels")
    assert ct.load(ct.save(labels, tmp_path / "labels.csv")) == labels
    answers = pl.DataFrame(ANSWERS)
    columns = {name: list(map(str, answers[name])) for name in answers.columns}
    assert dict(ct.load(ct.save(answers, tmp_path / "answers.csv"))) == columns
    answers.write_parquet(tmp_path / "answers.parquet")
    assert dict(ct.load(tmp_path / "answers.parquet")) == columns
    studio = b'[{"id": 1, "annotations": [{"completed_by": 2, "result": [{"type": "choices", '
    studio += b'"from_name": "q", "value": {"choices": ["cat"]}}]}]}]'
    assert ct.load(studio, name="export.json").rows() == [("1", "q", "2", "cat")]
    assert ct.load(b"item,label,error\nx,a,0.1\n", name="a.csv") == (
        ["x"],
        ["a"],
        [0.1],
        None,
        None,
    )
    assert ct.load(b"task,ann,ben\n1,cat,dog\n", "answers", name="a.csv", form="wide").n_rows == 2


def test_load_passes_options_to_the_reader(tmp_path):
    audit, plan = results()["audit"], results()["plan"]
    path = ct.save(audit, tmp_path / "audit.json", key=b"secret")
    assert ct.load(path, key=b"secret").signed
    with pytest.raises(ct.CrowdtreeError):
        ct.load(path, key=b"other")
    better = plan.tree.problem.replace(worker_error=0.01)
    again = ct.load(plan.save(tmp_path / "plan.json"), problem=better)
    assert again.tree.problem == better
    assert again.votes.tolist() == plan.votes.tolist()
    with pytest.raises(ct.CrowdtreeError, match="load: plan has no option 'key'"):
        ct.load(tmp_path / "plan.json", key=b"secret")
    with pytest.raises(ct.CrowdtreeError, match="key: only audits are signed, got a Plan"):
        ct.save(plan, tmp_path / "plan.json", key=b"secret")


def test_one_report_for_plans_learned_answers_and_traces(tmp_path):
    for name in ("plan", "learned", "trace"):
        page = ct.write_report(shown()[name], tmp_path / f"{name}.html")
        assert page.read_text().lower().startswith("<!doctype html>")
