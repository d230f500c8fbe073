"""Designing trees as the number of answers per question grows.

``python -m benchmarks.several_answers``; ``against_commit`` measures yes/no problems.
"""

from __future__ import annotations

import resource
import time
import warnings

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


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    growth()
