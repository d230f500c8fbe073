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
from crowdtree.audit import kernels, kernels_numpy
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


def test_a_large_problem_is_designed_greedily_or_refused_without_the_compiler(folder):
    rng = np.random.default_rng(0)
    head = "question,error," + ",".join(f"c{i}" for i in range(60))
    rows = [f"q{q},0.1," + ",".join(map(str, rng.integers(0, 2, 60))) for q in range(60)]
    (folder / "large.csv").write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    designed, front, refused = bare(
        folder,
        "design large.csv",
        "frontier large.csv --max-points 2 --max-votes 1",
        "design large.csv --method optimal",
    )
    assert designed[0] == front[0] == 0
    assert front[1].startswith(
        "crowdtree: warning: frontier: greedy trees without proof; for the proven ones run: "
        'pip install "crowdtree[fast]"\n'
    )
    assert refused[0] == 2
    assert 'pip install "crowdtree[fast]"' in refused[1]


def test_mistakes_of_our_own_are_not_taken_for_a_missing_extra():
    with pytest.raises(MissingExtra, match="figures"), needing("charts", "figures"):
        import not_a_package  # noqa: F401
    with pytest.raises(ModuleNotFoundError), needing("charts", "figures"):
        import crowdtree.no_such_module  # noqa: F401


def test_audits_compute_the_same_with_and_without_the_compiler():
    rng = np.random.default_rng(3)
    for _ in range(40):
        left = rng.integers(0, 40, 6).astype(float)
        left[0] += 1
        wrong, power = rng.beta(0.5, 8, 6), float(rng.choice([0.5, 1.0]))
        weights = kernels.lean(left, wrong, 0.35, power)
        assert kernels_numpy.lean(left, wrong, 0.35, power) == pytest.approx(weights)
        total = float(rng.uniform(0.1, 1.0) * left.sum())
        for g in np.flatnonzero(left):
            for error in (0.0, 0.3, 1.0):
                given = (left, weights, wrong, total, int(g), error)
                assert kernels_numpy.bet(*given) == pytest.approx(kernels.bet(*given), rel=1e-7)
        aimed = kernels.pick_lean(left, wrong, total, 3.0)
        assert kernels_numpy.pick_lean(left, wrong, total, 3.0) == pytest.approx(aimed, rel=1e-6)
        checks = 12
        strata = rng.choice(6, checks, p=left / left.sum()).astype(np.int64)
        errors = (rng.random(checks) < 0.2).astype(float)
        rows = np.stack([np.tile(weights, (checks, 1)), np.tile(wrong, (checks, 1))], axis=1)
        for flip in (False, True):
            run = (left + 12, np.ones(6), rows, strata, errors, flip, total, 0.2, 3, checks, 4.0)
            assert kernels_numpy.wealth(*run) == pytest.approx(kernels.wealth(*run), rel=1e-7)


def test_replays_in_steps_agree_with_those_check_by_check():
    left = np.array([600.0, 300.0, 100.0])
    model = (np.array([0.5, 0.5]), np.array([[0.01, 0.05, 0.2], [0.02, 0.1, 0.4]]))
    model = (*model, np.zeros(3), np.zeros(3))
    bad = np.tile([0.0, 10.0, 20.0], (200, 1))
    plan = (left, bad, model, np.array([80.0]), np.array([0.0]), 3.0, 50, False)
    coarse, fine = (
        kernels_numpy.replay(*plan, np.random.default_rng(5), np.ones(3), resolution=resolution)
        for resolution in (kernels_numpy.RESOLUTION, None)
    )
    assert (fine > 0).all()
    assert np.median(coarse) == pytest.approx(np.median(fine), rel=0.1)
