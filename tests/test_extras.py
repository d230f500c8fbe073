"""The core works without the packages of the extras, and says which extra to install."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import crowdtree
from crowdtree.core.errors import MissingExtra, needing
from tests.cli.helpers import TABLE

ROOT = Path(crowdtree.__file__).parents[1]
LABELS = "item,label,error\n" + "".join(f"i{n},cat,0.0{n % 9 + 1}\n" for n in range(60))
ANSWERS = "task,worker,label\n" + "".join(
    f"{task},w{worker},{'cat' if (task + worker * task) % 3 else 'dog'}\n"
    for task in range(12)
    for worker in range(4)
)


def bare(folder: Path, *lines: str) -> list[tuple[int, str]]:
    """Run commands without the packages of the extras; the exit code and the errors of each."""
    done = subprocess.run(
        [sys.executable, Path(__file__).parent / "bare.py", *lines],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[tuple[int, str]] = json.loads(done.stdout)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("t.csv", TABLE), ("labels.csv", LABELS), ("answers.csv", ANSWERS)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


CORE = (
    "design t.csv --method optimal --draw tree.svg -o plan.json",
    "frontier t.csv --error 0.05 -o best.json",
    "simulate t.csv --items 200 --compare",
    "report t.csv -o report.html",
    "learn answers.csv",
    "audit plan labels.csv --bound 0.1 --replays 20",
)


def test_the_core_works_without_any_extra(folder):
    for line, (code, errors) in zip(CORE, bare(folder, *CORE), strict=True):
        assert code == 0, (line, errors)
    for name in ("tree.svg", "plan.json", "best.json", "report.html"):
        assert (folder / name).stat().st_size > 500
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "The best fixed tree" in page
    assert "not installed" not in page  # its trees need no charts


NEEDY = {
    "frontier t.csv --draw front.svg": "figures",
    "design t.csv --draw tree.png": "figures",
    "new birds.xlsx": "excel",
    "serve": "serve",
    "campaign create t.csv": "serve",
    "owner link": "serve",
    "simulate t.csv --engine dask://localhost:1 --items 50": "dask",
}


def test_what_needs_an_extra_says_so_in_one_line(folder):
    for (line, extra), (code, errors) in zip(NEEDY.items(), bare(folder, *NEEDY), strict=True):
        assert code == 2, (line, errors)
        assert len(errors.strip().splitlines()) == 1, (line, errors)
        assert f'run: pip install "crowdtree[{extra}]"' in errors, line


def test_a_large_problem_is_designed_without_the_compiler(folder):
    rng = np.random.default_rng(0)
    head = "question,error," + ",".join(f"c{i}" for i in range(60))
    rows = [f"q{q},0.1," + ",".join(map(str, rng.integers(0, 2, 60))) for q in range(60)]
    (folder / "large.csv").write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    designed, front, *proven = bare(
        folder,
        "design large.csv",
        "frontier large.csv --max-points 2 --max-votes 1",
        "design large.csv --method optimal --time-limit 0",
        "design large.csv --method optimal --objective exact --time-limit 0",
    )
    assert [code for code, _ in (designed, front, *proven)] == [0, 0, 0, 0]
    assert front[1].startswith(
        "crowdtree: warning: frontier: greedy trees without proof; for the proven ones run: "
        'pip install "crowdtree[fast]"\n'
    )


def test_mistakes_of_our_own_are_not_taken_for_a_missing_extra():
    with pytest.raises(MissingExtra, match="figures"), needing("charts", "figures"):
        import not_a_package  # noqa: F401
    with pytest.raises(ModuleNotFoundError), needing("charts", "figures"):
        import crowdtree.no_such_module  # noqa: F401
