"""Processor seconds to the first curve of a frontier, to its end, and its gap over time.

    python -m benchmarks.frontier_speed --classes 100 --questions 60 --limit 60
    python -m benchmarks.frontier_speed --against ../other --limit 20        # two checkouts
    python -m benchmarks.frontier_speed --against ../other --classes 700 --method greedy

With ``--against``, this and another checkout run at the same time, so that other work on the
machine slows both down. ``--limit`` is then of this checkout only. A process that has used
``--most`` processor seconds is stopped, and its time is a lower bound.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import crowdtree as ct

ROOT = Path(__file__).resolve().parents[1]


def table(classes: int, questions: int, seed: int = 0) -> ct.Problem:
    """Random outcomes, an error of its own for every question, unequal prior."""
    rng = np.random.default_rng(seed)
    outcome = rng.integers(0, 2, (questions, classes))
    error = rng.uniform(0.05, 0.3, (questions, 1)) * np.ones((1, classes))
    names = [f"c{i}" for i in range(classes)], [f"q{i}" for i in range(questions)]
    return ct.Problem(names[0], rng.dirichlet(np.full(classes, 2.0)), names[1], outcome, error)


def measured(given: argparse.Namespace) -> dict[str, Any]:
    """Compute one frontier: processor seconds of the first curve and of the whole call."""
    seen: list[float] = []
    start = time.process_time()

    def report(points: int, proven: float, gap: float = np.nan) -> None:
        seen.append(time.process_time() - start)
        print(f"{seen[-1]:8.2f} s  {points} points  {proven:.3f}  gap {gap:.4f}", file=sys.stderr)

    limits = {} if given.limit is None else {"time_limit": given.limit}
    problem = table(given.classes, given.questions)
    front = ct.frontier(problem, method=given.method, progress=report, **limits)
    whole = time.process_time() - start
    print(f"{whole:8.2f} s  {front}", file=sys.stderr)
    # a checkout without a gap in its reports has a curve when the call returns
    first = seen[0] if seen and hasattr(front, "gap") else whole
    return {"first_curve": round(first, 2), "whole_call": round(whole, 2), "points": len(front)}


def side_by_side(given: argparse.Namespace) -> dict[str, Any]:
    """Run this and another checkout at the same time."""
    sides = {"this": ROOT, "other": Path(given.against)}
    size = ["--classes", str(given.classes), "--questions", str(given.questions)]
    running = {}
    for name, checkout in sides.items():
        words = ["-m", "benchmarks.frontier_speed", *size, "--method", given.method]
        words += ["--most", str(given.most)]
        if name == "this" and given.limit is not None:
            words += ["--limit", str(given.limit)]
        environment = {**os.environ, "PYTHONPATH": str(checkout.resolve() / "src")}
        running[name] = subprocess.Popen(
            [sys.executable, *words], cwd=ROOT, env=environment, stdout=subprocess.PIPE
        )
    found: dict[str, Any] = {"classes": given.classes, "questions": given.questions}
    for name, process in running.items():
        said = process.communicate()[0]
        stopped = {"first_curve": given.most, "whole_call": given.most, "stopped": True}
        found[name] = json.loads(said) if process.returncode == 0 else stopped
    found["other / this"] = {
        what: round(found["other"][what] / found["this"][what], 1)
        for what in ("first_curve", "whole_call")
    }
    return found | {"load_average": round(os.getloadavg()[0], 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--limit", type=float, default=None, help="time_limit of the frontier")
    parser.add_argument("--method", choices=("optimal", "greedy"), default="optimal")
    parser.add_argument("--against", help="folder of another checkout to compare with")
    parser.add_argument("--most", type=int, default=300, help="processor seconds of a process")
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CPU, (given.most, given.most + 5))
    print(json.dumps(side_by_side(given) if given.against else measured(given)))


if __name__ == "__main__":
    main()
