"""The way in: help, version, completion, and JSON from every verb."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer

import crowdtree as ct
from crowdtree.cli.app import app
from tests.cli.helpers import complaint, run


def verbs(group: typer.Typer = app) -> list[list[str]]:
    """The words of every verb."""
    found = [[str(command.name)] for command in group.registered_commands]
    for inner in group.registered_groups:
        assert inner.typer_instance is not None
        found += [[str(inner.name), *words] for words in verbs(inner.typer_instance)]
    return found


@pytest.mark.parametrize("words", [[], ["campaign"], ["audit"]])
def test_without_a_verb_the_help_is_printed(words, capsys):
    assert run(*words) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == " ".join(
        ["Usage: crowdtree", *words, "[OPTIONS] COMMAND [ARGS]..."]
    )
    assert err == ""
    assert run(*words, "--help") == 0
    assert capsys.readouterr().out.rstrip() == out.rstrip()


def test_help_of_a_verb(capsys):
    for words in verbs():
        assert run("help", *words) == 0
        out = capsys.readouterr().out
        assert out.startswith(f"Usage: crowdtree {' '.join(words)} ")
        assert run(*words, "-h") == 0
        assert capsys.readouterr().out == out
    assert run("help") == 0
    assert capsys.readouterr().out.startswith("Usage: crowdtree [OPTIONS]")
    assert "No such command 'fly'" in complaint(capsys, "help", "fly")


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_version(option, capsys):
    assert run(option) == 0
    assert capsys.readouterr().out.strip() == ct.__version__


def test_every_verb_takes_json(capsys):
    for words in verbs():
        assert run(*words, "--help") == 0
        assert "--json" in capsys.readouterr().out, words


def test_help_says_what_kind_of_file_a_verb_reads(capsys):
    def file_of(verb: str) -> str:
        assert run(verb, "--help") == 0
        out = " ".join(capsys.readouterr().out.split())
        return out.split("Arguments: ")[1].split("Options:")[0]

    for verb in ("design", "frontier", "check"):
        assert "A problem" in file_of(verb)
        assert "plan" not in file_of(verb)
    for verb in ("staff", "report", "simulate", "explain", "pilot"):
        assert "A problem" in file_of(verb)
        assert "a plan" in file_of(verb)
    assert "A plan" in file_of("evaluate")
    assert "problem" not in file_of("evaluate")


def test_a_plan_where_a_problem_is_needed(birds, tmp_path, capsys):
    plan = tmp_path / "plan.json"
    assert run("design", birds, "-o", plan) == 0
    capsys.readouterr()
    for verb in ("design", "frontier", "check"):
        assert "expected a problem, got a plan" in complaint(capsys, verb, plan)


@pytest.mark.parametrize(
    ("shell", "typed", "completed", "not_offered"),
    [
        ("bash", "crowdtree fro", "frontier", "design"),
        ("zsh", "crowdtree campaign st", "status", "create"),
        ("fish", "crowdtree design birds.csv --method op", "optimal", "gini"),
    ],
)
def test_completion(shell, typed, completed, not_offered, monkeypatch):
    program = [sys.executable, "-m", "crowdtree"]
    asked = {"bash": "COMP_WORDS", "zsh": "_TYPER_COMPLETE_ARGS", "fish": "_TYPER_COMPLETE_ARGS"}
    given = {
        "_CROWDTREE_COMPLETE": f"complete_{shell}",
        asked[shell]: typed,
        "COMP_CWORD": "1",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    done = subprocess.run(program, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert completed in done.stdout
    assert not_offered not in done.stdout
