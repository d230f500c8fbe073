"""What is written is said; links are followed; missing folders are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.helpers import complaint, result, run


@pytest.mark.parametrize(
    "words",
    [
        ["design", "FILE", "-o", "a.json", "--draw", "b.svg"],
        ["staff", "FILE", "--workers", "4", "-o", "a.json", "--draw", "b.html"],
        ["frontier", "FILE", "--error", "0.1", "-o", "a.json"],
        ["simulate", "FILE", "--items", "20", "--policy", "plan", "--draw", "a.svg"],
        ["explain", "FILE", "--class", "robin", "--html", "a.html"],
    ],
)
def test_what_was_written_is_said(words, birds, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [str(birds) if word == "FILE" else word for word in words]
    assert run(*words) == 0
    names = sorted(path.name for path in tmp_path.iterdir() if path != birds)
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Wrote ")]
    assert said == [f"Wrote {name}." for name in names]
    assert len(names) == sum("." in word for word in words[2:] if not word[0].isdigit())


@pytest.mark.parametrize(
    "words", [[], ["-o", "a.html"], ["--output", "b.html"], ["--out", "c.html"]]
)
def test_reports_take_the_same_option_as_others(words, birds, capsys, monkeypatch):
    written = []
    monkeypatch.setattr(
        "crowdtree.cli.report.write_report", lambda path, _, **_options: written.append(path)
    )
    assert run("report", birds, *words) == 0
    name = words[-1] if words else "report.html"
    assert [str(path) for path in written] == [name]
    assert capsys.readouterr().out.splitlines()[-1] == f"Wrote {name}."


def test_a_folder_that_is_read_only_is_refused_before_the_work(birds, capsys, monkeypatch):
    monkeypatch.setattr("crowdtree.cli.options.os.access", lambda *_: False)
    monkeypatch.setattr("crowdtree.cli.inputs.read_problem", lambda *_: pytest.fail("worked"))
    assert "folder . is read-only" in complaint(capsys, "design", birds, "-o", "plan.json")


def test_a_file_that_is_read_is_not_overwritten(birds, tmp_path, capsys):
    plan, link = tmp_path / "plan.json", tmp_path / "link.json"
    assert run("design", birds, "-o", plan) == 0
    assert run("design", birds, "-o", plan) == 0  # of an earlier run
    capsys.readouterr()
    before = plan.read_bytes()
    link.symlink_to(plan)
    words = ["staff", plan, "--workers", 9]
    for output in (["-o", plan], [f"--output={plan}"], ["-o", link]):
        assert "is read by this command; write to another" in complaint(capsys, *words, *output)
    assert plan.read_bytes() == before


def test_learned_files_are_said(leaves, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    leaves[0].write_csv("answers.csv")
    assert (
        run("learn", "answers.csv", "-o", "p.yaml", "--labels", "l.csv", "--report", "r.html") == 0
    )
    out = capsys.readouterr().out.splitlines()
    assert out[-4:] == [
        "Wrote p.yaml.",
        "Wrote l.csv.",
        "Wrote r.html.",
        "Next: crowdtree plan p.yaml --error 0.13",
    ]


def test_links_are_followed(birds, tmp_path, capsys):
    (tmp_path / "far").mkdir()
    for name, words in {
        "plan.json": ["design", birds, "-o"],
        "tree.svg": ["design", birds, "--draw"],
        "page.html": ["explain", birds, "--class", "robin", "--html"],
    }.items():
        link, target = tmp_path / name, tmp_path / "far" / name
        link.symlink_to(target)
        for _ in range(2):  # a new file, then one that is replaced
            assert run(*words, link) == 0
            assert link.is_symlink()
            assert target.stat().st_size > 100
        assert not list((tmp_path / "far").glob(".*"))
    loop = tmp_path / "loop.json"
    loop.symlink_to(loop)
    capsys.readouterr()
    assert "neither a file nor a link to one" in complaint(capsys, "design", birds, "-o", loop)
    lost = tmp_path / "lost.json"
    lost.symlink_to(tmp_path / "nowhere" / "lost.json")
    assert "nowhere does not exist" in complaint(capsys, "design", birds, "-o", lost)


@pytest.mark.parametrize(
    "words",
    [
        ["design", "FILE", "--draw"],
        ["design", "FILE", "-o"],
        ["frontier", "FILE", "--draw"],
        ["simulate", "FILE", "--draw"],
        ["explain", "FILE", "--html"],
        ["report", "FILE", "-o"],
        ["new"],
    ],
)
def test_missing_folders_are_refused(words, birds, tmp_path, capsys):
    ending = {"-o": "json", "--draw": "svg", "--html": "html", "new": "csv"}[words[-1]]
    ending = "html" if words[0] == "report" else ending
    words = [birds if word == "FILE" else word for word in words]
    folder = tmp_path / "no" / "such"
    said = complaint(capsys, *words, folder / f"file.{ending}")
    assert f"the folder {folder} does not exist; create it first" in said
    assert not (tmp_path / "no").exists()


def test_the_price_of_a_plan(birds, capsys):
    found = result(capsys, "staff", birds, "--workers", 6, "--price", 0.05)
    assert found["expected_cost"] == pytest.approx(0.05 * found["expected_answers"])
    assert run("design", birds, "--price", 0.05) == 0
    assert "0.1 per item at 0.05 per answer." in capsys.readouterr().out
    words = ("design", birds, "--price", 0.02)
    extra = result(capsys, *words, "--price", "hunts=0.12")["expected_cost"]
    assert extra > result(capsys, *words)["expected_cost"]
    for bad in ("-1", "nan", "inf", "cheap", "hunts=1"):
        assert "--price" in complaint(capsys, "design", birds, "--price", bad)


def test_an_odd_worker_is_left_out_and_that_is_said(birds, capsys):
    for verb in ("staff", "explain"):
        words = [verb, birds, "--workers", 5, *(["--policy", "plan"] if verb == "explain" else [])]
        assert run(*words, "--json") == 0
        out, err = capsys.readouterr()
        assert err == (
            "crowdtree: warning: --workers: 'marginal' adds workers in pairs, so that votes stay "
            "odd: uses 4 of 5\n"
        )
        if verb == "staff":
            assert json.loads(out)["staffing"]["workers"] == 4 + 3


def test_an_error_of_0_is_reached_without_errors_only(birds, capsys):
    reach = (["frontier", "--error"], ["simulate", "--items", "50", "--target-error"])
    for verb, *words in reach:
        assert "0 is out of reach" in complaint(capsys, verb, birds, *words, 0)
        found = result(capsys, verb, birds, "--worker-error", 0, *words, 0)
        made = found["plan"] if verb == "frontier" else found
        assert made["misclassification"] == 0
        assert "expected a number, got" in complaint(capsys, verb, birds, *words, "nan")
        for bad in (-0.1, 1):
            said = complaint(capsys, verb, birds, *words, bad)
            assert "error: expected a number between 0 and 1, got" in said
    assert "0 is out of reach" in complaint(capsys, "explain", birds, "--target-error", 0)


def test_a_file_of_a_newer_version_says_so(tmp_path, capsys):
    for kind, words in {
        "problem": ["design"],
        "plan": ["evaluate"],
        "audit": ["audit", "show"],
    }.items():
        path = tmp_path / "new.json"
        path.write_text(json.dumps({"crowdtree": 2, "kind": kind, "tree": {}, "novel": True}))
        said = complaint(capsys, *words, path)
        assert "was written by a newer crowdtree (file version 2, this one reads 1)" in said
    assert Path(path).exists()
