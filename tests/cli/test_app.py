"""The command line: one line for a mistake, exit code 2."""

from __future__ import annotations

import json
import shlex
import warnings
from pathlib import Path

import pytest

import crowdtree as ct
from crowdtree.cli.app import app
from tests.cli.helpers import TABLE, complaint, result, run


def test_a_plan_goes_from_verb_to_verb(birds, tmp_path, capsys):
    plan, staffed = tmp_path / "plan.json", tmp_path / "staffed.json"
    assert run("design", birds, "-o", plan) == 0
    assert run("staff", plan, "--answers", 9.5, "-o", staffed) == 0
    capsys.readouterr()
    found = result(capsys, "evaluate", staffed)
    assert found["planned_answers"] <= 9.5
    assert found["misclassification"] < 0.1
    page = tmp_path / "page.html"
    assert result(capsys, "report", staffed, "--out", page)["report"] == str(page)
    assert page.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["design", "nowhere.csv"], "nowhere.csv"),
        (["design", "example:unicorns"], "animals"),
        (["design", "example:table1", "--method", "best"], "choose from"),
        (["design", "example:table1", "--worker-error", "2"], "from 0 to 1"),
        (["design", "example:table1", "--wrong-option"], "--wrong-option"),
        (["design", "example:table1", "--draw", "tree.doc"], ".svg"),
        (["design", "example:table1", "-o", "plan.txt"], ".json"),
        (["staff", "example:table1"], "workers"),
        (["staff", "example:table1", "--workers", "-2"], "whole number"),
        (["staff", "example:table1", "--answers", "0.5"], "one worker per node"),
        (["evaluate", "example:table1"], "expected a plan"),
        (["report", "example:table1", "--out", "page.pdf"], ".html"),
        (["design", "example:table1", "--time-limit", "1"], "--method optimal"),
        (["design", "example:table1", "--objective", "exact"], "--method optimal"),
        (["design", "example:table1", "--errors", "errors.csv"], "--errors"),
        (["design", "example:table1", "--strengths"], "--strengths"),
        (["design", "example:table1", "--method", "random", "--seed", "-1"], "--seed"),
        (["explain", "example:table1", "--class", "c1", "--answers", "T1=yes"], "either"),
        (["fly"], "fly"),
    ],
)
def test_mistakes_get_one_line_and_exit_code_2(words, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert says in complaint(capsys, *words)
    assert list(tmp_path.iterdir()) == []


def test_a_useless_worker_is_warned_about_on_stderr_only(birds, capsys):
    birds.write_text(TABLE.replace("0.15", "0.6"))
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert run("design", birds, "--json") == 0
    shown = capsys.readouterr()
    json.loads(shown.out)
    assert shown.err.startswith("crowdtree: warning: ")
    assert "'hunts'" in shown.err


def test_every_verb_is_in_the_readme_and_shows_an_example(capsys):
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    for command in app.registered_commands:
        assert f"`{command.name}`" in readme or f"crowdtree {command.name}" in readme
        assert run(command.name, "--help") == 0
        assert f"crowdtree {command.name}" in capsys.readouterr().out.split("Example")[1]


@pytest.mark.parametrize("option", [["--worker-error", 0.3], ["--dash", "either"], ["--normalise"]])
@pytest.mark.parametrize("verb", ["staff", "report", "simulate", "explain", "pilot"])
def test_a_plan_is_read_as_it_is(verb, option, birds, tmp_path, capsys):
    plan = tmp_path / "plan.json"
    assert run("design", birds, "-o", plan) == 0
    capsys.readouterr()
    assert "contains its problem" in complaint(capsys, verb, plan, *option)


def test_the_suggested_next_command_works(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "my [old] birds.csv"
    path.write_text("question,a,b,c\nprior,1,1,2\n[dim]q[/],0,-,1\n[r],0,1,-\n")
    said = ["check", path.name, "--normalise", "--worker-error", "0.1", "--dash", "either"]
    for verb in ("plan", "plan", "simulate"):
        assert run(*said) == 0
        said = shlex.split(
            capsys.readouterr().out.splitlines()[-1].removeprefix("Next: crowdtree ")
        )
        assert said[0] == verb
        if verb == "plan":
            assert said[1] == path.name
            assert {"--normalise", "--worker-error", "either"} <= set(said)
    assert run(*said) == 0
    shown = capsys.readouterr().out
    assert "[dim]q[/]" in shown
    assert shown.endswith("Next: crowdtree campaign create plan.json\n")


@pytest.mark.parametrize(
    ("words", "then"),
    [
        ("plan F --answers 4 --price 2 --seed=3",
         "plan F --answers 4 --price 2 --seed=3 -o plan.json"),
        ("frontier F --price 2 --vote margin",
         "frontier F --price 2 --vote margin --error 0.01 -o plan.json"),
        ("frontier F --price 2 --answers 9 -o p.json", "report p.json --price 2"),
        ("design F --price 2 --worker-error 0.2",
         "staff F --workers 30 --price 2 --worker-error 0.2"),
        ("staff F --workers 9 --price 2 --pool question",
         "staff F --workers 9 --price 2 --pool question -o plan.json"),
        ("staff F --workers 9 --price 2 -o p.json", "report p.json --price 2"),
        ("simulate F --items 20 --target-error 0.1", "explain F --target-error 0.1"),
    ],
)  # fmt: skip
def test_the_next_command_keeps_the_options(words, then, birds, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(*words.replace("F", str(birds)).split()) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line == f"Next: crowdtree {then}".replace("F", str(birds))
    assert run(*line.removeprefix("Next: crowdtree ").split()) == 0


def test_names_that_look_like_markup_are_shown_as_they_are(tmp_path, capsys):
    path = tmp_path / "odd.csv"
    path.write_text("question,error,[a],[/b],c\n[bold]q[/],0.1,0,0,1\n")
    assert run("check", path) == 0
    assert "No question separates: [a], [/b]" in capsys.readouterr().out
    for verb in ("simulate", "pilot"):
        more = ["--items", 50, "--policy", "plan"] if verb == "simulate" else []
        assert run(verb, path, "--allow-groups", *more) == 0
        assert "[bold]q[/]" in capsys.readouterr().out


def test_ctrl_c_is_reported(birds, capsys, monkeypatch):
    def interrupt(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("crowdtree.cli.inputs.design", interrupt)
    assert run("design", birds) == 130
    assert capsys.readouterr().err.strip() == "crowdtree: interrupted"


def test_version(capsys):
    assert run("--version") == 0
    assert capsys.readouterr().out.strip() == ct.__version__


def test_an_error_table_of_zeros_and_ones_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "o.csv"
    file.write_text("question,a,b\nprior,0.5,0.5\nq,0,1\nr,1,0\n")
    assert run("design", file, "--errors", file) == 2
    assert "is this the table of right answers?" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["staff", "design", "simulate"])
def test_a_bad_seed_gets_one_line(verb: str) -> None:
    problem = ct.example("table1")
    call = {
        "staff": lambda: ct.staff(ct.design(problem), 4, rng=-1),
        "design": lambda: ct.design(problem, "random", rng=-1),
        "simulate": lambda: ct.simulate(problem, ct.AdaptivePolicy(problem), items=5, rng=-1),
    }[verb]
    with pytest.raises(ct.CrowdtreeError, match="rng: expected a seed of 0 or more"):
        call()
