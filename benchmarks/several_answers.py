"""Designing trees as the number of answers per question grows, and yes/no beside another version.

    python -m benchmarks.several_answers                       # growth with the number of answers
    python -m benchmarks.several_answers --other ../other/src  # yes/no: ratio of times

The second form runs this file with each source tree in turn, `--rounds` times alternately, and
prints the ratio of the least processor times.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import crowdtree as ct

SIZE = (1000, 500)


def several_table(classes: int, questions: int, answers: int, several: float = 0.0) -> ct.Problem:
    """Random problem; `several` is the share of cells with two right answers."""
    rng = np.random.default_rng(answers)
    right = np.zeros((answers, questions, classes), dtype=bool)
    rows, columns = np.arange(questions)[:, None], np.arange(classes)
    right[rng.integers(0, answers, (questions, classes)), rows, columns] = True
    more = rng.random((questions, classes)) < several
    right[rng.integers(0, answers, (questions, classes)), rows, columns] |= more
    names = [[f"a{a}" for a in range(answers)]] * questions
    error = rng.uniform(0.02, 0.3, questions)
    names_of = [f"c{i}" for i in range(classes)], [f"q{i}" for i in range(questions)]
    return ct.Problem(names_of[0], None, names_of[1], right, error, answers=names)


def growth() -> None:
    """Print the times of the designers for 2, 3, 5 and 8 answers."""
    classes, questions = SIZE
    print(f"{classes} classes x {questions} questions; optimal: 20 x 20, at most 30 s")
    print("answers  several  fm [s]  fc [s]  gain [s]  nodes  depth  optimal [s]  gap    peak [MB]")
    for answers, several in ((2, 0.0), (3, 0.0), (5, 0.0), (8, 0.0), (3, 0.1), (5, 0.1), (8, 0.1)):
        problem = several_table(classes, questions, answers, several)
        spent = []
        for method in ("fc", "gain", "fm"):
            began = time.perf_counter()
            tree = ct.design(problem, method, allow_groups=True)
            spent.append(time.perf_counter() - began)
        small = several_table(20, 20, answers, several)
        began = time.perf_counter()
        best = ct.design(small, "optimal", objective="additive", allow_groups=True, time_limit=30)
        proven = time.perf_counter() - began
        assert best.certificate is not None
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{answers:7}  {several:7}  {spent[2]:6.2f}  {spent[0]:6.2f}  {spent[1]:8.2f}  "
            f"{tree.n_nodes:5}  {tree.depth:5}  {proven:11.2f}  "
            f"{best.certificate.gap:5.3f}  {peak:9.0f}",
            flush=True,
        )


def yes_no_times() -> dict[str, float]:
    """Least processor times of design and optimal on yes/no problems."""
    rng = np.random.default_rng(0)

    def table(classes: int, questions: int) -> ct.Problem:
        outcome = rng.integers(0, 2, (questions, classes)).astype(np.int8)
        error = rng.uniform(0.02, 0.3, (questions, classes))
        names = [f"c{i}" for i in range(classes)], [f"q{i}" for i in range(questions)]
        return ct.Problem(names[0], None, names[1], outcome, error)

    large, middle, small = table(1000, 500), table(28, 40), table(10, 12)
    loss = 1 - np.eye(9) + np.arange(81.0).reshape(9, 9) * (1 - np.eye(9)) / 81
    costly = table(9, 12).replace(loss=loss)
    jobs = {
        "fm 1000 x 500": lambda: ct.design(large, "fm", allow_groups=True),
        "fc 1000 x 500": lambda: ct.design(large, "fc", allow_groups=True),
        "gini 1000 x 500": lambda: ct.design(large, "gini", allow_groups=True),
        "optimal 28 x 40": lambda: ct.design(middle, "optimal", allow_groups=True),
        "optimal 10 x 12": lambda: ct.design(small, "optimal", allow_groups=True),
        "optimal, loss 9 x 12": lambda: ct.design(costly, "optimal", allow_groups=True),
    }
    found = {}
    for name, job in jobs.items():
        job()  # compile
        times = []
        while len(times) < 3 or (sum(times) < 0.5 and len(times) < 50):
            began = time.process_time()
            job()
            times.append(time.process_time() - began)
        found[name] = min(times)
    return found


def beside(other: Path, rounds: int) -> None:
    """Print the times of two source trees and their ratio."""
    here = Path(ct.__file__).parents[1]
    best: list[dict[str, float]] = [{}, {}]
    for _ in range(rounds):
        for side, source in enumerate((here, other)):
            environment = {**os.environ, "PYTHONPATH": str(source.resolve())}
            command = [sys.executable, __file__, "--times"]
            done = subprocess.run(command, env=environment, capture_output=True, check=True)
            for name, seconds in json.loads(done.stdout).items():
                best[side][name] = min(seconds, best[side].get(name, np.inf))
    print("yes/no                    here [s]  other [s]  ratio")
    for name, seconds in best[0].items():
        print(f"{name:24}  {seconds:8.4f}  {best[1][name]:9.4f}  {seconds / best[1][name]:5.2f}")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--other", type=Path, help="src of another version")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--times", action="store_true", help="print yes/no times as JSON")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.times:
        print(json.dumps(yes_no_times()))
    elif options.other:
        beside(options.other, options.rounds)
    else:
        growth()


if __name__ == "__main__":
    main()
