"""Standard input, output and error that are not what one expects."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import crowdtree as ct
from tests.cli.helpers import TABLE, complaint, result, run


@pytest.fixture
def piped(monkeypatch):
    """Put bytes on standard input."""

    def put(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return put


def written(monkeypatch, encoding: str, *words: object) -> tuple[int, str, str]:
    """Run with streams of an encoding: exit code, output, error."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2)]
    monkeypatch.setattr(sys, "stdout", streams[0])
    monkeypatch.setattr(sys, "stderr", streams[1])
    code = run(*words)
    out, err = (s.buffer.getvalue().decode(encoding) for s in streams if s.flush() is None)
    return code, out, err


ODD = TABLE.replace("robin", "рябина").replace("flies", "летает → 東")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp437", "utf-8", "utf-16"])
def test_any_encoding_takes_the_output(encoding, tmp_path, monkeypatch):
    path = tmp_path / "odd.csv"
    path.write_text(ODD, encoding="utf-8")
    code, out, err = written(monkeypatch, encoding, "design", path)
    assert (code, err) == (0, "")
    no, yes = (
        ("├─ no  → ", "└─ yes → ") if encoding.startswith("utf") else ("|- no  -> ", "`- yes -> ")
    )
    if encoding != "cp437":  # which has the lines, but no arrow
        assert no in out
        assert yes in out
    assert ("рябина" if encoding.startswith("utf") else r"\u0440\u044f") in out
    code, out, _ = written(monkeypatch, encoding, "design", path, "--json")
    assert json.loads(out)["tree"]["question"] == "летает → 東"
    code, out, err = written(monkeypatch, encoding, "design", tmp_path / "東.csv")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert ("東.csv" if encoding.startswith("utf") else r"\u6771.csv") in err


def test_a_file_name_that_is_no_text(capsys):
    assert "no such file" in complaint(capsys, "design", os.fsdecode(b"bad\xff.csv"))


def test_missing_streams(birds, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert run("design", birds) == 0
    assert run("design", birds, "--json") == 0
    monkeypatch.setattr(sys, "stderr", None)
    assert run("design", "nowhere.csv") == 2
    assert sys.stdout is None
    monkeypatch.setattr(sys, "stdin", None)
    assert run("design", "-") == 2


def test_real_processes(birds):
    """What the interpreter does at its end cannot be seen from within."""

    def ran(shell: str, **variables: str) -> tuple[str, str]:
        command = shell.format(program=f"{sys.executable} -m crowdtree design {birds}")
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {command}; echo exit $?"],
            capture_output=True,
            env={**os.environ, **variables},
            timeout=120,
        )
        return done.stdout.decode("cp1252"), done.stderr.decode()

    out, err = ran("{program}", PYTHONIOENCODING="cp1252")
    assert "|- no  -> hunts   error 15 % · 50 % of items" in out
    assert (out.splitlines()[-1], err) == ("exit 0", "")
    assert ran("{program} | true") == ("exit 0\n", "")
    assert ran("{program} --json | true") == ("exit 0\n", "")
    assert ran("{program} >&-") == ("exit 0\n", "")
    if os.path.exists("/dev/full"):
        assert ran("{program} > /dev/full") == ("exit 2\n", "crowdtree: No space left on device\n")


def test_problems_and_plans_from_standard_input(birds, tmp_path, piped, capsys):
    problem = ct.load_problem(birds)
    expected = ct.evaluate(ct.design(problem)).misclassification
    for ending in ("csv", "csv.gz", "tsv", "xlsx", "yaml", "json"):
        ct.save(problem, path := tmp_path / f"p.{ending}")
        for verb in ("design", "pilot"):  # a problem; a problem or a plan
            piped(path.read_bytes())
            found = result(capsys, verb, "-")
            assert found.get("misclassification", expected) == expected
    assert run("design", birds, "-o", tmp_path / "plan.json") == 0
    capsys.readouterr()
    piped((tmp_path / "plan.json").read_bytes())
    assert result(capsys, "evaluate", "-")["misclassification"] == expected
    piped(birds.read_bytes())
    assert run("design", "-") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "Next: crowdtree staff - --workers 30"


def test_errors_of_the_cells_from_standard_input(birds, piped, capsys):
    rows = "question,robin,eagle,trout,shark\n" + "".join(
        f"{name},0.1,0.2,0.1,0.2\n" for name in ("flies", "hunts", "sings")
    )
    piped(rows.encode())
    assert result(capsys, "design", birds, "--errors", "-")["misclassification"] > 0


def test_answers_and_known_classes_from_standard_input(leaves, tmp_path, piped, capsys):
    answers, gold = leaves
    answers.write_csv(path := tmp_path / "answers.csv")
    gold.write_csv(known := tmp_path / "gold.csv")
    expected = result(capsys, "learn", path, "--gold", known)
    piped(path.read_bytes())
    assert result(capsys, "learn", "-", "--gold", known) == expected
    piped(known.read_bytes())
    assert result(capsys, "learn", path, "--gold", "-") == expected
    answers.write_parquet(buffer := io.BytesIO())
    piped(buffer.getvalue())
    assert result(capsys, "learn", "-", "--gold", known) == expected


def test_audits_from_standard_input(tmp_path, piped, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    labels = "item,label,error\n" + "".join(f"i{n},cat,0.01\n" for n in range(40))
    lines = "".join(f'{{"item": "i{n}", "label": "cat", "error": 0.01}}\n' for n in range(40))
    piped(labels.encode())
    planned = result(capsys, "audit", "plan", "-", "--bound", 0.2)
    piped(lines.encode())
    assert result(capsys, "audit", "plan", "-", "--bound", 0.2) == planned
    piped(labels.encode())
    result(capsys, "audit", "start", "-", "-o", "audit.json", "--seed", 1, "--bound", 0.2)
    drawn = result(capsys, "audit", "next", "audit.json", "-n", 3)["items"]
    piped("".join(["item,truth\n", *(f"{row['item']},cat\n" for row in drawn)]).encode())
    assert run("audit", "record", "audit.json", "-") == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("audit.json -n 20 -o sheet.csv")
    for verb in ("show", "verify"):
        piped(Path("audit.json").read_bytes())
        result(capsys, "audit", verb, "-")
    piped(labels.encode())
    result(capsys, "audit", "verify", "audit.json", "--labels", "-")
    for words in (["next", "-"], ["record", "-", "sheet.csv"]):
        assert "changed in its file" in complaint(capsys, "audit", *words)


def test_campaigns_from_standard_input(birds, tmp_path, piped, capsys, monkeypatch):
    pytest.importorskip("fastapi", reason="needs the server's packages")
    monkeypatch.chdir(tmp_path)
    piped(birds.read_bytes())
    assert result(capsys, "campaign", "create", "-") == {"campaign": 1}
    for n, items in enumerate(
        ["task,text\na,one\n", '{"task": "b"}', '{"task": "c"}\n{"task": "d"}\n']
    ):
        piped(items.encode())
        assert result(capsys, "campaign", "items", "1", "-")["added"] == max(n, 1)
    assert result(capsys, "campaign", "status", "1")["name"] == "Standard input"
    assert run("campaign", "start", "1") == 0
    capsys.readouterr()
    piped(birds.read_bytes())
    assert result(capsys, "campaign", "revise", "1", "-")["revision"] == 0


@pytest.mark.parametrize("data", [b"", b"\0\1\2", b"{", b"[1,", b"classes: [", b"\x1f\x8b broken"])
def test_standard_input_that_cannot_be_read(data, piped, capsys):
    for verb in ("design", "learn", "evaluate", "check"):
        piped(data)
        complaint(capsys, verb, "-")


def test_standard_input_is_read_once(birds, piped, capsys):
    piped(birds.read_bytes())
    assert "can be read once" in complaint(capsys, "design", "-", "--errors", "-")
    assert "can be read once" in complaint(capsys, "learn", "-", "--gold=-")
