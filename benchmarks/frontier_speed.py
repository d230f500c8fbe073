"""Time to the first curve of a frontier, and its gap over time, in processor seconds.

    python -m benchmarks.frontier_speed --classes 100 --questions 60 --limit 60

Run it with PYTHONPATH set to another checkout's ``src`` to compare (``--plain``: no gap is known
there, and the limit is per price).
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import crowdtree as ct


def table(classes: int, questions: int, seed: int = 0) -> ct.Problem:
    """Random outcomes, an error of its own for every question, unequal prior."""
    rng = np.random.default_rng(seed)
    outcome = rng.integers(0, 2, (questions, classes))
    error = rng.uniform(0.05, 0.3, (questions, 1)) * np.ones((1, classes))
    names = [f"c{i}" for i in range(classes)], [f"q{i}" for i in range(questions)]
    return ct.Problem(names[0], rng.dirichlet(np.full(classes, 2.0)), names[1], outcome, error)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--limit", type=float, default=None)
    parser.add_argument("--method", choices=("optimal", "greedy"), default="optimal")
    parser.add_argument("--plain", action="store_true")
    given = parser.parse_args()
    start = time.process_time()

    def report(points: int, proven: float, gap: float = np.nan) -> None:
        print(f"{time.process_time() - start:8.2f} s  {points} points  {proven:.3f}  gap {gap:.4f}")

    limits = {} if given.plain else {"time_limit": given.limit}
    problem = table(given.classes, given.questions)
    front = ct.frontier(problem, method=given.method, progress=report, **limits)
    print(f"{time.process_time() - start:8.2f} s  {front}")


if __name__ == "__main__":
    main()
