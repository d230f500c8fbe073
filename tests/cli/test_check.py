"""The verb check, and what reading says on standard error."""

from __future__ import annotations

import pytest

import crowdtree as ct
from tests.cli.helpers import complaint, result, run


def test_check_names_inseparable_classes(tmp_path, capsys):
    path = tmp_path / "twins.csv"
    path.write_text("question,error,a,b,c\nq,0.1,0,0,1\n")
    assert result(capsys, "check", path)["groups"] == [["a", "b"]]
    assert "{a, b}" in complaint(capsys, "design", path)
    assert run("design", path, "--allow-groups") == 0


def test_check_prints_what_the_library_finds(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("crowdtree.planning.adaptive_curve.MENU_ITEMS", 500)
    path = tmp_path / "messy.csv"
    path.write_text("Birds\nclass;flies;swims\nduck;y;y\nrobin;y;n\ntrout;n;y\nerror;5%;60%\n")
    found = result(capsys, "check", path)
    with pytest.warns(ct.CrowdtreeWarning):
        wanted = ct.check(ct.load_problem(path)).to_dict()
    assert found.pop("warnings")[0].startswith("worker_error: question 'swims' has 0.6")
    assert found == wanted
    assert "equal shares" in found["notes"][-1]
    assert run("check", path) == 0
    shown = capsys.readouterr()
    assert "Note: one class per row" in shown.out
    assert "Useless questions: swims (people err" in shown.out
    assert "Next: crowdtree plan" in shown.out
    assert shown.err == ""


def test_every_verb_says_how_a_file_was_understood(tmp_path, capsys):
    path = tmp_path / "messy.csv"
    path.write_text("question,error,a,b\nq,5%,no,yes\n")
    for words in (["design"], ["staff", "--workers", "2"], ["frontier"]):
        assert run(words[0], path, *words[1:], "--json") == 0
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert "crowdtree: note: " in err
        assert "5% read as 0.05, no as 0, yes as 1; no prior given, so equal shares" in err


def test_plain_files_are_read_without_a_word(tmp_path, capsys):
    path = tmp_path / "plain.csv"
    path.write_text("question,error,a,b\nprior,,0.5,0.5\nq,0.1,0,1\n")
    assert run("design", path) == 0
    assert capsys.readouterr().err == ""


def test_rows_can_be_asked_for(tmp_path, capsys):
    path = tmp_path / "birds.csv"
    path.write_text("bird,flies,swims\nrobin,1,0\nduck,1,1\n")
    assert "--rows questions or classes" in complaint(capsys, "design", path)
    found = result(capsys, "design", path, "--rows", "classes", "--worker-error", "0.1")
    assert found["tree"]["question"] == "swims"
    assert "--rows: not for example:" in complaint(
        capsys, "design", "example:table1", "--rows", "classes"
    )
