"""Outputs are checked before work starts."""

from __future__ import annotations

import pytest

from tests.cli.helpers import complaint


@pytest.mark.parametrize(
    ("verb", "options", "says"),
    [
        (
            "design",
            ["-o", "plan.yaml"],
            "expected the extension .json for a plan; use -o plan.json",
        ),
        ("design", ["--draw", "tree.gif"], "cannot write '.gif'"),
        ("design", ["-o", "nowhere/plan.json"], "the folder nowhere does not exist"),
        ("design", ["-o", "."], "is a folder; give the name of a file"),
        ("design", ["-o", "a.json", "--draw", "a.json"], "two results would be written to one"),
        ("staff", ["--workers", "4", "-o", "plan.csv"], "expected the extension .json for a plan"),
        ("staff", ["--workers", "4", "--draw", "tree"], "has no file extension"),
        (
            "frontier",
            ["--error", "0.1", "-o", "plan.txt"],
            "expected the extension .json for a plan",
        ),
        ("frontier", ["--draw", "front.pdf"], "cannot write '.pdf'"),
        ("simulate", ["--draw", "run.gif"], "cannot write '.gif'"),
        ("simulate", ["--compare", "--draw", "run.gif"], "cannot write '.gif'"),
        ("explain", ["--html", "trace.svg"], "expected the extension .html for a page"),
        ("report", ["--out", "report.pdf"], "expected the extension .html for a page"),
        ("learn", ["-o", "problem.doc"], "unknown file extension"),
        ("learn", ["--labels", "labels.json"], "expected the extension .csv for labels"),
        ("learn", ["--report", "page.txt"], "expected the extension .html for a page"),
    ],
)
def test_a_wrong_output_is_refused_before_anything_is_read(
    verb, options, says, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    # the input does not exist: an error about the output shows that nothing was opened before
    assert says in complaint(capsys, verb, "nothing.csv", *options)
    assert list(tmp_path.iterdir()) == []
