"""Processor time of yes/no problems beside another commit, job by job.

    python -m benchmarks.against_commit ab49d719 [--rounds 15] [--only adaptive] [--out FILE]

A temporary worktree of the commit is made. Both sides are one process each, with one thread, and
run every job in turn (here, there, there, here, ...), so that other work on the machine slows both
down. The ratio is that of the least processor times. Both sides must give the same results, to the
bit. ``--out`` puts the table into a page, in place of what follows its heading.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import crowdtree as ct

try:
    from crowdtree.policies import AdaptivePolicy, Answer, Ask, BatchPolicy, PlanPolicy
except ModuleNotFoundError:  # the other commit, in which the package had another name
    from crowdtree.policy import (  # type: ignore[import-not-found,no-redef]
        AdaptivePolicy,
        Answer,
        Ask,
        BatchPolicy,
        PlanPolicy,
    )

ROOT = Path(__file__).resolve().parents[1]
TITLE = "## Yes/no beside the commit before questions with several answers"
Job = Callable[[], Any]
LEAST_SECONDS = 0.03
"""A measurement repeats a job until this much has passed."""


def table(classes: int, questions: int, *, per_cell: bool = True, dash: float = 0.0) -> ct.Problem:
    """Random outcomes; an error of its own for every cell, or for every question."""
    rng = np.random.default_rng(classes)
    outcome = rng.integers(0, 2, (questions, classes)).astype(np.int8)
    outcome[rng.random(outcome.shape) < dash] = -1
    error = rng.uniform(0.02, 0.3, (questions, classes) if per_cell else questions)
    names = [f"c{i}" for i in range(classes)], [f"q{i}" for i in range(questions)]
    return ct.Problem(names[0], rng.dirichlet(np.full(classes, 5.0)), names[1], outcome, error)


def costly(problem: ct.Problem) -> ct.Problem:
    """The problem with mistakes of different costs."""
    n = problem.n_classes
    costs = (1 + np.arange(n * n, dtype=np.float64).reshape(n, n) / n**2) * (1 - np.eye(n))
    return problem.replace(loss=costs)


def answers(gold: float, seed: int = 0) -> dict[str, Any]:
    """Arguments of `learn`: 20 people about 400 items of 4 classes, 6 questions."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, 400)
    outcome = np.array([[0, 1, 1, 0], [1, 1, 0, 0], [0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 1, 0]])
    rows = []
    for item in range(400):
        for question in range(5):
            for worker in rng.choice(20, 3, replace=False):
                right = rng.random() < 0.7 + 0.012 * worker
                said = outcome[question, truth[item]] ^ (not right)
                rows.append((f"i{item}", f"q{question}", f"w{worker}", int(said)))
    known = {f"i{i}": f"c{truth[i]}" for i in range(400) if rng.random() < gold}
    return {"answers": rows, "gold": known}


def learning(folder: Path) -> dict[str, Job]:
    """Jobs of `learn`: labels without gold, and tables with it."""
    jobs: dict[str, Job] = {}
    for name, gold in (("learn, no gold", 0.0), ("learn, gold", 0.6)):
        given = answers(gold)
        path = folder / f"{name}.csv"
        if not gold:  # one question, the label itself
            given["answers"] = [row for row in given["answers"] if row[1] == "q0"]
            lines = [f"{t},{w},{'ny'[v]}" for t, _, w, v in given["answers"]]
            path.write_text("\n".join(["task,worker,label", *lines]))
            jobs[name] = lambda path=path: ct.learn(path).to_frame()
            continue
        lines = [f"{t},{q},{w},{v}" for t, q, w, v in given["answers"]]
        path.write_text("\n".join(["task,question,worker,label", *lines]))
        jobs[name] = lambda path=path, gold=given["gold"]: ct.learn(path, gold).problem
    return jobs


def files(folder: Path) -> dict[str, Job]:
    """Jobs that read problem files."""
    jobs: dict[str, Job] = {}
    for classes, questions in ((20, 20), (200, 100)):
        problem = table(classes, questions, dash=0.05)
        for kind in ("csv", "json", "yaml"):
            if (kind, classes) == ("yaml", 200):
                continue
            path = folder / f"{classes}.{kind}"
            ct.save(problem, path)
            jobs[f"load {kind}, {classes} x {questions}"] = lambda path=path: ct.load_problem(path)
    return jobs


def steps(policy: Any, answers_: int = 60) -> list[Any]:
    """One item through the steps of a policy, with answers from a fixed sequence."""
    rng = np.random.default_rng(1)
    seen: list[Any] = []
    for _ in range(20):
        state = policy.start()
        for _ in range(answers_):
            told = policy.ask(state)
            seen.append(told)
            if not isinstance(told, Ask):
                break
            state = policy.update(state, Answer(told.questions[0], int(rng.random() < 0.5)))
    return seen


def designing() -> dict[str, Job]:
    """Jobs of trees and plans."""
    jobs: dict[str, Job] = {}
    for classes, questions in ((8, 12), (50, 60), (200, 100), (1000, 500)):
        problem = table(classes, questions)
        for method in ("fm", "fc"):
            jobs[f"design {method}, {classes} x {questions}"] = partial(
                ct.design, problem, method, allow_groups=True
            )
    small, middle = table(10, 12), table(28, 40)
    loss = costly(table(9, 12))
    tree = ct.design(table(20, 30), allow_groups=True)
    return jobs | {
        "optimal, 10 x 12": lambda: ct.design(small, "optimal", allow_groups=True),
        "optimal, 28 x 40": lambda: ct.design(middle, "optimal", allow_groups=True),
        "optimal with a loss, 9 x 12": lambda: ct.design(loss, "optimal", allow_groups=True),
        "frontier, majority": lambda: ct.frontier(small, allow_groups=True, max_votes=9).to_frame(),
        "frontier, margin": lambda: ct.frontier(
            small, "margin", allow_groups=True, max_votes=9
        ).to_frame(),
        "frontier with a loss": lambda: ct.frontier(
            costly(table(6, 8)), allow_groups=True, max_votes=9
        ).to_frame(),
        "staff": lambda: ct.staff(tree, 200),
        "evaluate": lambda: ct.evaluate(ct.staff(tree, 60)).misclassification,
        "plan": lambda: ct.plan(small, error=0.1, allow_groups=True, max_answers=60).to_frame(),
    }


def asking() -> dict[str, Job]:
    """Jobs of policies and simulated crowds."""
    problem = table(20, 30)
    policy = AdaptivePolicy(problem, 0.05)
    dependent = problem.replace(dependence=0.1)
    loss = costly(problem)
    plan = PlanPolicy(ct.staff(ct.design(problem, allow_groups=True), 60))
    limited = AdaptivePolicy(problem, 0.05, repeats=3)
    together = AdaptivePolicy(dependent, 0.1, strict=False, max_answers=40)
    lossy = AdaptivePolicy(loss, target_loss=0.1)
    skilled = ct.Crowd(skill_sd=0.5, known_skill=True)

    def ran(given: ct.Problem, who: Any, items: int, crowd: Any = None) -> Any:
        run = ct.simulate(given, who, items, crowd=crowd)
        return [run.label.tolist(), run.answers.tolist(), run.stated_error]

    return {
        "make an adaptive policy": lambda: AdaptivePolicy(problem, 0.05),
        "simulate adaptive": lambda: ran(problem, policy, 3000),
        "simulate adaptive, known skills": lambda: ran(problem, policy, 500, skilled),
        "simulate adaptive, limited repeats": lambda: ran(problem, limited, 1000),
        "simulate adaptive, dependence": lambda: ran(dependent, together, 100),
        "simulate adaptive, loss": lambda: ran(loss, lossy, 500),
        "simulate plan": lambda: ran(problem, plan, 5000),
        "simulate batch": lambda: ran(problem, BatchPolicy(problem, 3), 3000),
        "simulate batch, known skills": lambda: ran(problem, BatchPolicy(problem, 3), 500, skilled),
        "one step at a time": lambda: steps(policy),
        "one step at a time, limited repeats": lambda: steps(limited),
        "one step at a time, dependence": lambda: steps(together),
    }


def digest(result: Any) -> str:
    """Fingerprint of a result: its numbers to the bit."""
    if isinstance(result, ct.Problem):
        parts: Any = [result.prior, result.outcome, result.worker_error]
        said = b"".join(np.ascontiguousarray(part).tobytes() for part in parts)
    elif isinstance(result, ct.Tree):
        said = repr([result.question.tolist(), result.leaf_classes]).encode()
    elif isinstance(result, ct.Plan):
        said = repr(np.asarray(result.votes).tolist()).encode()
    elif hasattr(result, "rows"):
        said = repr(result.rows()).encode()
    else:
        said = repr(result).encode()
    return hashlib.sha256(said).hexdigest()


def serve(folder: Path) -> None:
    """Run the jobs whose names come in, and print seconds per run and a fingerprint."""
    warnings.simplefilter("ignore")
    jobs = designing() | asking() | learning(folder) | files(folder)
    print(json.dumps(list(jobs)), flush=True)
    times: dict[str, int] = {}
    for line in sys.stdin:
        name = line.strip()
        job, found = jobs[name], ""
        if name not in times:  # compile, and see how long it takes
            found = digest(job())
            began = time.process_time()
            job()
            times[name] = max(1, round(LEAST_SECONDS / (time.process_time() - began)))
        began = time.process_time()
        for _ in range(times[name]):
            job()
        print(json.dumps([(time.process_time() - began) / times[name], found]), flush=True)


class Side:
    """A process with the source of one checkout."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        folder.mkdir()
        path = os.pathsep.join([str(checkout / "src"), str(ROOT)])
        threads = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
        threads["OPENBLAS_NUM_THREADS"] = "1"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.against_commit", "--serve", str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
            env=os.environ | threads | {"PYTHONPATH": path},
        )  # fmt: skip
        self.jobs: list[str] = self._read()

    def _read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def run(self, job: str) -> tuple[float, str]:
        """Seconds of a job, and the fingerprint of its result the first time."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{job}\n")
        self.process.stdin.flush()
        seconds, found = self._read()
        return seconds, found


def compare(sides: list[Side], rounds: int, only: str) -> list[str]:
    """Rows of the table."""
    lines = []
    for job in [name for name in sides[0].jobs if only in name]:
        said = [side.run(job)[1] for side in sides]
        least = [np.inf, np.inf]
        for number in range(rounds):
            for place in (0, 1) if number % 2 else (1, 0):
                least[place] = min(least[place], sides[place].run(job)[0])
        here, there = least
        same = "yes" if said[0] == said[1] else "no"
        lines.append(
            f"| {job} | {1e3 * there:.2f} | {1e3 * here:.2f} | {here / there:.2f} | {same} |"
        )
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Print the table, and put it into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", nargs="?", default="ab49d719")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="jobs whose name contains this")
    parser.add_argument("--out", type=Path, help="put the table into this page, too")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve)
        return
    with tempfile.TemporaryDirectory() as place:
        old = Path(place, "there")
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", old, given.commit], check=True)
        try:
            sides = [Side(ROOT, Path(place, "a")), Side(old, Path(place, "b"))]
            lines = compare(sides, given.rounds, given.only)
        finally:
            subprocess.run([*git, "remove", "--force", old], check=True)
    if given.out:
        write(given.out, given.commit, given.rounds, lines)


def write(page: Path, commit: str, rounds: int, lines: list[str]) -> None:
    """Put the section into a page."""
    text = [
        TITLE, "",
        f"Written by `python -m benchmarks.against_commit {commit} --rounds {rounds} "
        f"--out {page}`.", "",
        f"Milliseconds of processor time, the least of {rounds} runs that take turns with those of "
        "that commit, one thread each; and whether both give the same result to the bit.", "",
        "| job | before | now | ratio | same |", "|---|---|---|---|---|", *lines, "",
    ]  # fmt: skip
    head, _, rest = page.read_text().partition(TITLE)
    after = rest.partition("\n## ")
    page.write_text("\n".join([head.rstrip(), "", *text]) + "".join(after[1:]))


if __name__ == "__main__":
    main()
