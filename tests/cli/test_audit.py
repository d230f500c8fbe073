"""The verb audit, from labels to a verified certificate."""

from __future__ import annotations

import csv
import json

import pytest

from tests.cli.helpers import complaint, result, run

TRUTH = {f"p{k}": "fox" if k == 4 else "cat" if k % 2 else "dog" for k in range(60)}


@pytest.fixture
def labels(tmp_path):
    path = tmp_path / "labels.csv"
    rows = [f"p{k},{'cat' if k % 2 else 'dog'},{0.3 if k % 10 == 4 else 0.02}" for k in range(60)]
    path.write_text("\n".join(["item,label,error", *rows]) + "\n")
    return path


@pytest.fixture
def started(labels, tmp_path, capsys):
    audit = tmp_path / "audit.json"
    assert run("audit", "start", labels, "-o", audit, "--bound", 0.2, "--seed", 3) == 0
    capsys.readouterr()
    return audit


def fill(sheet, column="truth", find=TRUTH.get):
    with sheet.open() as file:
        rows = list(csv.DictReader(file))
    lines = ["item," + column, *(f"{row['item']},{find(row['item'])}" for row in rows)]
    sheet.write_text("\n".join(lines) + "\n")
    return [row["item"] for row in rows]


def test_from_labels_to_a_certificate(started, labels, tmp_path, capsys):
    sheet, drawing = tmp_path / "sheet.csv", tmp_path / "audit.svg"
    found = {"state": "open"}
    seen = []
    while found["state"] == "open":
        assert run("audit", "next", started, "-n", 10, "-o", sheet) == 0
        seen += fill(sheet)
        capsys.readouterr()
        found = result(capsys, "audit", "record", started, sheet, "--by", "ann")
    assert found["state"] == "reached"
    assert found["upper"] <= 0.2
    assert len(seen) == len(set(seen)) == found["checks"]
    assert found["forecast"]["median"] == 0
    shown = result(capsys, "audit", "show", started, "--draw", drawing)
    assert shown == found
    assert "<svg" in drawing.read_text()
    checked = result(capsys, "audit", "verify", started, "--labels", labels)
    assert checked["verified"] is True
    assert checked["upper"] == found["upper"]
    assert run("audit", "show", started) == 0
    out = capsys.readouterr().out
    assert "Certified: at most" in out
    assert "Reached." in out
    assert "dog" in out
    assert run("audit", "verify", started) == 0
    assert "Verified" in capsys.readouterr().out


def test_a_sheet_repeats_what_waits_and_may_be_blind(started, tmp_path, capsys):
    first = result(capsys, "audit", "next", started, "-n", 4)["items"]
    again = result(capsys, "audit", "next", started, "-n", 6, "--blind")["items"]
    assert [row["item"] for row in again[:4]] == [row["item"] for row in first]
    assert first[0].keys() == {"item", "label", "truth"}
    assert again[0].keys() == {"item", "truth"}
    sheet = tmp_path / "sheet.csv"
    sheet.write_text(f"item,right\n{first[0]['item']},yes\n{first[1]['item']},\n")
    assert result(capsys, "audit", "record", started, sheet)["checks"] == 1


def test_known_items_are_no_checks_and_a_mistake_is_replaced(labels, tmp_path, capsys):
    audit, known, sheet = (tmp_path / name for name in ("audit.json", "known.json", "sheet.csv"))
    known.write_text(json.dumps([{"item": "p1", "truth": "dog"}, {"item": "p2", "truth": "cat"}]))
    words = ("audit", "start", labels, "-o", audit, "--bound", 0.2, "--seed", 3, "--known", known)
    assert run(*words) == 0
    assert "2 known items are not drawn." in capsys.readouterr().out
    item = result(capsys, "audit", "next", audit, "-n", 1)["items"][0]["item"]
    sheet.write_text(f"item,right\n{item},no\n")
    assert run("audit", "record", audit, sheet) == 0
    assert "after 1 check with 1 wrong and 2 known items with 2 wrong." in " ".join(
        capsys.readouterr().out.split()
    )
    sheet.write_text(f"item,right\n{item},yes\n")
    assert "or --replace to replace the first" in complaint(capsys, "audit", "record", audit, sheet)
    assert run("audit", "record", audit, sheet, "--replace") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "after 1 check with 0 wrong and 2 known items with 2 wrong." in said
    assert "1 earlier result replaced; the audit keeps both." in said
    assert result(capsys, "audit", "verify", audit, "--labels", labels)["replaced"] == 1


def test_plan(labels, capsys):
    found = result(capsys, "audit", "plan", labels, "--bound", 0.15, "--replays", 50)
    assert 0 < found["low"] <= found["median"] <= found["high"] <= 60
    assert run("audit", "plan", labels, "--bound", 0.15, "--replays", 50) == 0
    assert "Next: crowdtree audit start" in capsys.readouterr().out
    rows = [f"p{k},a,0.1,{k % 2 == 0}\n" for k in range(100)]
    labels.write_text("item,label,error,known\n" + "".join(rows))
    half = result(capsys, "audit", "plan", labels, "--bound", 0.1, "--replays", 50)
    labels.write_text("item,label,error,known\n" + "".join(rows).replace("True", "False"))
    none = result(capsys, "audit", "plan", labels, "--bound", 0.1, "--replays", 50)
    assert half["high"] < 50 < none["median"]  # known items are never drawn
    labels.write_text("item,label,error\n" + "".join(f"p{k},a,0.5\n" for k in range(50)))
    assert run("audit", "plan", labels, "--bound", 0.01, "--replays", 20) == 0
    assert "no audit can certify it" in capsys.readouterr().out


def test_nothing_is_recorded_where_one_row_is_wrong(started, tmp_path, capsys):
    sheet = tmp_path / "sheet.csv"
    run("audit", "next", started, "-n", 5, "-o", sheet)
    capsys.readouterr()
    items = fill(sheet)
    before = started.read_bytes()
    good = sheet.read_text()
    for extra, words in (
        (f"{items[0]},fox\n", "checked twice with different results"),
        ("nobody,cat\n", "unknown"),
        (next(f"{name},cat\n" for name in TRUTH if name not in items), "was not drawn"),
    ):
        sheet.write_text(good + extra)
        assert words in complaint(capsys, "audit", "record", started, sheet)
        assert started.read_bytes() == before
    sheet.write_text("item,truth\n" + f"{items[0]},\n")
    assert "holds no result" in complaint(capsys, "audit", "record", started, sheet)


@pytest.mark.filterwarnings("default")
def test_a_truth_that_is_no_label_warns(started, tmp_path, capsys):
    sheet = tmp_path / "sheet.csv"
    item = result(capsys, "audit", "next", started, "-n", 1)["items"][0]["item"]
    sheet.write_text(f"item,truth\n{item},catt\n")
    assert run("audit", "record", started, sheet) == 0
    assert "no item is labelled 'catt'; counted as wrong" in capsys.readouterr().err


def test_an_audit_of_a_planned_number_of_checks(labels, tmp_path, capsys):
    audit, sheet = tmp_path / "audit.json", tmp_path / "sheet.csv"
    assert run("audit", "start", labels, "-o", audit, "--planned", 20, "--seed", 3) == 0
    assert "Audit of 60 labels, planned for 20 checks." in capsys.readouterr().out
    assert run("audit", "next", audit, "-n", 19, "-o", sheet) == 0
    fill(sheet)
    assert run("audit", "record", audit, sheet) == 0
    assert "Planned: 20 checks; the bound is much lower from there on." in capsys.readouterr().out
    before = result(capsys, "audit", "show", audit)["upper"]
    assert run("audit", "next", audit, "-n", 1, "-o", sheet) == 0
    fill(sheet)
    assert run("audit", "record", audit, sheet) == 0
    assert "Planned" not in capsys.readouterr().out
    assert result(capsys, "audit", "show", audit)["upper"] < 0.75 * before
    assert run("audit", "verify", audit, "--labels", labels) == 0


def test_known_items_and_keys(labels, tmp_path, capsys, monkeypatch):
    gold, key, audit = tmp_path / "gold.csv", tmp_path / "key.txt", tmp_path / "audit.json"
    gold.write_text("task,label\np4,fox\np5,cat\n")
    key.write_text("0123456789abcdef0123456789abcdef\n")
    found = result(capsys, "audit", "start", labels, "-o", audit, "--known", gold, "--key", key)
    assert (found["known"], found["wrong"]) == (2, 1)
    assert "is signed" in complaint(capsys, "audit", "next", audit)
    assert run("audit", "verify", audit, "--key", key) == 0
    assert "Signature: checked" in capsys.readouterr().out
    monkeypatch.setenv("CROWDTREE_AUDIT_KEY", "another secret of enough bytes")
    assert "signature does not match" in complaint(capsys, "audit", "verify", audit)
    key.write_text("short")
    assert "expected at least 16" in complaint(capsys, "audit", "verify", audit, "--key", key)


def test_mistakes_are_one_line(labels, started, tmp_path, capsys):
    assert "exists already" in complaint(capsys, "audit", "start", labels, "-o", started)
    assert "--bound" in complaint(capsys, "audit", "plan", labels)
    assert "no such file" in complaint(capsys, "audit", "show", tmp_path / "none.json")
    assert ".csv" in complaint(capsys, "audit", "next", started, "-o", tmp_path / "sheet.txt")
    bad = tmp_path / "bad.csv"
    bad.write_text("item,label,error\nx,a,1.5\n")
    new = tmp_path / "new.json"
    assert "from 0 to 1" in complaint(capsys, "audit", "start", bad, "-o", new)
    bad.write_text("item,label,error\nx,a,0.5\nx,b,0.5\n")
    assert "occurs twice" in complaint(capsys, "audit", "start", bad, "-o", new)
    assert not new.exists()
    assert "first check" in complaint(
        capsys, "audit", "show", started, "--draw", tmp_path / "a.svg"
    )
    data = json.loads(started.read_text())
    data["claims"]["upper"] = 0.01
    started.write_text(json.dumps(data))
    assert "claims.upper: is '0.01', recomputed" in complaint(capsys, "audit", "verify", started)


@pytest.mark.parametrize("verb", ["plan", "start", "next", "record", "show", "verify"])
def test_help_has_an_example(verb, capsys):
    assert run("audit", verb, "--help") == 0
    assert f"crowdtree audit {verb} " in capsys.readouterr().out
