"""Design at scale, side by side with scikit-learn on the same table, in one run.

    python -m benchmarks.design_scale --out docs/measured/benchmarks.md

Every case runs in its own process, so that its peak memory can be measured. Times are wall clock
and processor seconds, with one thread on either side; the latter are hardly disturbed by other work
on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import crowdtree as ct
from benchmarks.tables import from_sklearn, made_problem

Facts = dict[str, Any]
PEERS = [(2_000, 2_000, 50), (5_000, 2_000, 100)]  # classes, questions, times faster wanted
LARGE = (10_000, 10_000)
LARGE_LIMIT_GB = 4.0
SLOPE = [(1_000, 2_000), (2_000, 2_000), (4_000, 2_000), (4_000, 4_000),
         (8_000, 4_000), (8_000, 8_000)]  # fmt: skip


# ------------------------------------------------------------------ one case, in its own process


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Result, wall seconds and processor seconds of some work."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def resident_gb() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1e6


def peak_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def run_case(n_classes: int, n_questions: int, method: str, peer: bool, repeats: int) -> Facts:
    """Design one made table; with `peer`, let scikit-learn do the same."""
    problem = made_problem(n_classes, n_questions)
    before = resident_gb()
    runs = [timed(lambda: ct.design(problem, method)) for _ in range(repeats)]
    tree = runs[0][0]
    facts: Facts = {
        "classes": n_classes,
        "questions": n_questions,
        "method": method,
        "wall": min(run[1] for run in runs),
        "cpu": min(run[2] for run in runs),
        "depth": tree.depth,
        "input_gb": (problem.outcome.nbytes + problem.worker_error.nbytes) / 1e9,
        "beyond_gb": max(peak_gb() - before, 0.0),
        "misclassification": ct.evaluate(tree).misclassification,
    }
    if peer:
        facts["peer"] = run_peer(problem)
    return facts


def run_peer(problem: ct.Problem) -> Facts:
    """scikit-learn's tree on the same table: one row per class, weights = prior."""
    from sklearn.tree import DecisionTreeClassifier

    warnings.simplefilter("ignore", UserWarning)  # "the number of classes is large"
    table = np.ascontiguousarray(problem.outcome.T, dtype=np.float32)
    labels = np.arange(problem.n_classes)
    learner = DecisionTreeClassifier(criterion="entropy", random_state=0)
    fitted, wall, cpu = timed(lambda: learner.fit(table, labels, sample_weight=problem.prior))
    tree = from_sklearn(problem, fitted)
    return {
        "wall": wall,
        "cpu": cpu,
        "depth": tree.depth,
        "misclassification": ct.evaluate(tree).misclassification,
    }


# ------------------------------------------------------------------ all cases


def in_process(*arguments: str) -> Facts:
    command = [sys.executable, "-m", "benchmarks.design_scale", "--case", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    facts: Facts = json.loads(done.stdout.splitlines()[-1])
    print(arguments, json.dumps(facts), file=sys.stderr, flush=True)
    return facts


def slope(x: list[float], y: list[float]) -> float:
    """Exponent of the power law through the points (least squares of the logarithms)."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def report(quick: bool) -> str:
    peers = [in_process("design", f"{n}x{m}", "fm", "peer", "3") for n, m, _ in PEERS]
    sizes = SLOPE[:4] if quick else SLOPE
    growth = [in_process("design", f"{n}x{m}", "fm", "alone", "3") for n, m in sizes]
    large = [] if quick else [in_process("design", "{}x{}".format(*LARGE), "fm", "alone", "2")]
    return "\n".join([*_head(), *_peers(peers), *_large(large), *_growth(growth)])


def _head() -> list[str]:
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    return [
        "# Benchmarks",
        "",
        "Written by `python -m benchmarks.design_scale --out docs/measured/benchmarks.md`; "
        "do not edit.",
        "",
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"numpy {np.__version__}; load averages when this was written: {load}.",
        "",
    ]


def _peers(peers: list[Facts]) -> list[str]:
    lines = [
        "## Side by side with scikit-learn",
        "",
        'The same generated table, with an error per cell: `crowdtree.design(problem, "fm")` '
        'and `DecisionTreeClassifier(criterion="entropy")` on one row per class with weights = '
        "prior. Best of three and one run, one thread each.",
        "",
        "| classes x questions | crowdtree wall s | cpu s | scikit-learn wall s | cpu s | "
        "times faster (wall) | (cpu) | wanted | misclassification | scikit-learn's |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for facts, (n, m, wanted) in zip(peers, PEERS, strict=True):
        peer = facts["peer"]
        lines.append(
            f"| {n:,} x {m:,} | {facts['wall']:.3f} | {facts['cpu']:.3f} | {peer['wall']:.1f} | "
            f"{peer['cpu']:.1f} | {peer['wall'] / facts['wall']:.0f} | "
            f"{peer['cpu'] / facts['cpu']:.0f} | {wanted} | {facts['misclassification']:.4f} | "
            f"{peer['misclassification']:.4f} |"
        )
    return [*lines, ""]


def _large(large: list[Facts]) -> list[str]:
    if not large:
        return []
    facts = large[0]
    return [
        "## 10,000 classes x 10,000 questions, an error in every cell",
        "",
        f"{facts['wall']:.1f} s, {facts['cpu']:.1f} s of processor; "
        f"depth {facts['depth']}. Memory: {facts['beyond_gb']:.2f} GB beyond the "
        f"{facts['input_gb']:.1f} GB of the input (limit {LARGE_LIMIT_GB:.0f} GB).",
        "",
    ]


def _growth(growth: list[Facts]) -> list[str]:
    lines = [
        "## Growth",
        "",
        "| classes x questions | depth | wall s | cpu s | memory beyond the input, GB | "
        "cpu ns per cell and level |",
        "|---|---|---|---|---|---|",
    ]
    work, cpu, memory, cells = [], [], [], []
    for facts in growth:
        size = facts["classes"] * facts["questions"]
        work.append(size * facts["depth"])
        cells.append(size)
        cpu.append(facts["cpu"])
        memory.append(max(facts["beyond_gb"], 1e-3))
        lines.append(
            f"| {facts['classes']:,} x {facts['questions']:,} | {facts['depth']} | "
            f"{facts['wall']:.3f} | {facts['cpu']:.3f} | {facts['beyond_gb']:.3f} | "
            f"{1e9 * facts['cpu'] / work[-1]:.2f} |"
        )
    return [
        *lines,
        "",
        "Exponents of the power laws through these points: time (cpu) against classes x questions "
        f"x depth {slope(work, cpu):.2f}, memory against classes x questions "
        f"{slope(cells, memory):.2f} (1 is proportional).",
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the report there, too")
    parser.add_argument("--quick", action="store_true", help="leave out the largest cases")
    parser.add_argument("--case", nargs="+", help="run one case and print its facts")
    options = parser.parse_args()
    if options.case:
        _, size, method, peer, repeats = options.case
        n, m = map(int, size.split("x"))
        print(json.dumps(run_case(n, m, method, peer == "peer", int(repeats))))
        return
    text = report(options.quick)
    if options.out:
        # what other benchmarks wrote below their own headings stays
        old = options.out.read_text() if options.out.exists() else ""
        kept = re.search(r"^## Installation\n.*", old, re.M | re.S)
        options.out.write_text(text + "\n" + (kept[0] if kept else ""))
    print(text)


if __name__ == "__main__":
    main()
