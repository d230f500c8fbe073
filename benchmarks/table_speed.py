"""Processor time of a large yes/no table: learning it, making a policy, and testing a threshold.

166 classes x 1,295 questions, each answered about each class by 3 people: 644,910 answers. Classes
are known, and one person at a time is left out of the policy's calibration.

``python -m benchmarks.table_speed [--beside FOLDER] [--json FILE]``; FOLDER is a checkout of
another commit (``git worktree add FOLDER COMMIT``), whose figures are printed beside these as a
ratio. Each side is a process of its own, warmed up on a small table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import polars as pl

import crowdtree as ct

ROOT = Path(__file__).resolve().parents[1]
SHAPE = (166, 1295, 3)
STEPS = ("learn", "policy", "guarantee")


def answers(
    classes: int, questions: int, people: int, seed: int = 0
) -> tuple[np.ndarray, pl.DataFrame, list[str]]:
    """Answers (item, question), the same in rows, and the class of each item.

    Most cells are clear; people differ in how often they say yes, in all and on each question.
    """
    rng = np.random.default_rng(seed)
    share = rng.beta(0.4, 1.2, (questions, 1))
    rate = rng.beta(0.7 * share + 0.02, 0.7 * (1 - share) + 0.02, (questions, classes))
    rate = np.clip(rate, 0.02, 0.98)
    lean = rng.normal(0, 0.5, (people, 1, 1)) + rng.normal(0, 0.5, (people, questions, 1))
    yes = 1 / (1 + np.exp(-np.log(rate / (1 - rate)) - lean))
    values = (rng.random(yes.shape) < yes).transpose(0, 2, 1).reshape(-1, questions)
    item, question = np.indices(values.shape).reshape(2, -1)
    rows = pl.DataFrame(
        {
            "task": item,
            "question": np.array([f"q{i:04}" for i in range(questions)])[question],
            "worker": np.array([f"person {i}" for i in range(people)])[item // classes],
            "label": values[item, question].astype(np.int8),
        }
    )
    return values.astype(np.int8), rows, [f"class {i:03}" for i in range(classes)] * people


def measure(classes: int, questions: int, people: int) -> dict[str, float]:
    """Seconds of processor time of each step."""
    values, rows, truth = answers(classes, questions, people)
    gold = {str(i): name for i, name in enumerate(truth)}
    start = time.process_time()
    learned = ct.learn(rows, gold)
    spent = [time.process_time() - start]
    policy = learned.policy(0.1, 100)
    spent.append(time.process_time() - start - sum(spent))
    order = [int(name[1:]) for name in policy.problem.questions]
    try:
        policy.guarantee(values[:, order], truth)
    except ct.CrowdtreeError as error:
        print(error, file=sys.stderr)
    spent.append(time.process_time() - start - sum(spent))
    return dict(zip(STEPS, spent, strict=True))


def beside(folder: Path) -> dict[str, float]:
    """The same with the source of another checkout."""
    path = os.pathsep.join([str(folder / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.table_speed", "--only-figures"],
        capture_output=True, text=True, check=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip
    made: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return made


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beside", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only-figures", action="store_true", help="print JSON and nothing else")
    given = parser.parse_args()
    measure(12, 40, 3)
    figures = {"here": measure(*SHAPE)}
    if given.only_figures:
        print(json.dumps(figures["here"]))
        return
    if given.beside:
        figures["beside"] = beside(given.beside)
    for step in STEPS:
        other = figures.get("beside", {}).get(step)
        ratio = (
            ""
            if other is None
            else f", {other:.1f} s there: {other / figures['here'][step]:.1f} times"
        )
        print(f"{step:10} {figures['here'][step]:6.1f} s of processor time{ratio}")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
