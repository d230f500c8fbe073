"""What new users met on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.show.plots.tree_model import Facts
from tests.cli.helpers import TABLE, complaint, result, run


def test_a_folder_is_named_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is a folder; give the name of a file" in complaint(capsys, "design", tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--answers", "abc"), "--answers: expected a number, got 'abc'"),
        (("--answers", "2%"), "--answers: expected a number, got '2%'; write 0.02"),
        (("--workers=1.5",), "--workers: expected a whole number, got '1.5'"),
    ],
)
def test_a_text_is_no_number(words, said, capsys: pytest.CaptureFixture[str]) -> None:
    assert said in complaint(capsys, "staff", "example:table1", *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("check", "null.json"), "null.json: expected fields (classes, questions), got nothing"),
        (("check", "field.yaml"), "use one of crowdtree, kind, dash, dependence, loss, sources, "),
        (("check", "blank.yaml"), "add error: to it, or worker_error: for all questions"),
        (("learn", "x.csv", "--format", "foo"), "json or wide, got 'foo' (see crowdtree learn"),
        (("simulate", "tree.json", "--target-error", 0.1), "--target-error: is only for adaptive"),
        (("simulate", "tree.json", "--workers", 4), "--workers: the plan has its votes already"),
        (("simulate", "birds.csv", "--workers", 4), "--workers: is only for fixed trees; leave"),
        (("campaign", "create", "birds.csv", "--target-error", 2), "it out, or add --adaptive"),
    ],
)
def test_refusals_name_what_the_user_wrote(
    words, said, tmp_path: Path, monkeypatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("birds.csv").write_text(TABLE)
    Path("null.json").write_text("null")
    entry = "classes: [a, b]\nquestions: [{name: q, outcome: [0, 1]}]\n"
    Path("blank.yaml").write_text(entry)
    Path("field.yaml").write_text(entry + "colour: red\n")
    ct.save(ct.design(ct.example("table1")), "tree.json")
    assert said in complaint(capsys, *words)


def test_gold_may_have_the_columns_of_an_audit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"0{k},{who},{'xy'[k % 2]},,\n" for k in range(6) for who in "ab")
    (tmp_path / "answers.csv").write_text("task,worker,label,,\n" + rows)
    (tmp_path / "gold.csv").write_text("item,truth\n00,x\n01,y\n")
    found = result(capsys, "learn", tmp_path / "answers.csv", "--gold", tmp_path / "gold.csv")
    assert found["accuracy"]["known"] == 2
    (tmp_path / "answers.csv").write_text("task,worker,said,,\n" + rows)
    words = complaint(capsys, "learn", tmp_path / "answers.csv")
    assert "column 'said' has other answers" in words
    (tmp_path / "answers.csv").write_text("task,worker,label,label\n0,a,x,y\n")
    assert "two columns are named 'label'" in complaint(capsys, "learn", tmp_path / "answers.csv")


@pytest.mark.parametrize("name", ["g.csv", "g.json", "m.json", "g.jsonl", "g.xlsx", "s.json"])
def test_gold_comes_in_every_format_of_answers(
    name, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{k},{who},{'xy'[k % 2]}\n" for k in range(6) for who in "ab")
    (tmp_path / "answers.csv").write_text("task,worker,label\n" + rows)
    known, path = {"0": "x", "1": "y", "99": "x"}, tmp_path / name
    objects = [{"task": int(task), "label": label} for task, label in known.items()]
    if name == "g.csv":  # a filled sheet of checks: what counts is the truth
        path.write_text("item,label,truth\n" + "".join(f"{k},z,{v}\n" for k, v in known.items()))
    elif name == "g.xlsx":
        book = pytest.importorskip("openpyxl").Workbook()
        for row in (["task", "label"], *(list(one.values()) for one in objects)):
            book.active.append(row)
        book.save(path)
    elif name == "s.json":
        truth = [{"from_name": "label", "type": "choices", "value": {"choices": ["x"]}}]
        note = {"id": 1, "completed_by": 1, "ground_truth": True, "result": truth}
        other = {"id": 2, "completed_by": 2, "result": truth}
        path.write_text(json.dumps([{"id": 0, "data": {}, "annotations": [note, other]}]))
        known = {"0": "x"}
    else:
        lines = "\n".join(map(json.dumps, objects))
        texts = {"g.json": json.dumps(objects), "m.json": json.dumps(known), "g.jsonl": lines}
        path.write_text(texts[name])
    assert run("learn", tmp_path / "answers.csv", "--gold", path, "--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["accuracy"]["known"] == len(known) - ("99" in known)
    assert ("1 item of the gold without answers left out" in err) == ("99" in known)


def test_a_report_has_a_price(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "birds.csv").write_text(TABLE)
    page = tmp_path / "page.html"
    assert run("report", tmp_path / "birds.csv", "-o", page, "--price", 0.3) == 0
    assert "per item for 1.71" in capsys.readouterr().out
    assert "At a price of 0.3 per answer" in page.read_text()


def test_shares_of_questions_and_leaves_add_up_under_a_loss() -> None:
    plan = ct.staff(ct.design(ct.example("mushrooms")), answers=6)
    facts, tree = Facts(plan), plan.tree

    def below(child: int) -> float:
        return facts.share(child) if child >= 0 else float(facts.value.leaf_share[~child])

    for node, children in enumerate(np.asarray(tree.children).tolist()):
        assert facts.share(node) == pytest.approx(sum(map(below, children)))


def test_no_name_of_a_column_is_cut_in_a_frontier_with_prices(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run("frontier", "example:table1", "--price", 0.05) == 0
    table = capsys.readouterr().out.partition(" points shown")[0]
    assert "misclassified" in table
    assert "…" not in table
    assert max(map(len, table.splitlines())) <= 80
