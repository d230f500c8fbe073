"""The same tables given to crowdtree and to other solvers of optimal trees, in one run.

``make bench-peers``, or ``python -m benchmarks.optimal_peers --time-limit 120``. Every solver runs
in its own environment (``tools/bench_peers.sh`` makes them under ``out/peers``) and its own
process, with the same limits of time and memory. Only the search is timed: neither start, import
nor compilation. Short runs are repeated up to 15 times and the median is shown. The ratio is
that of processor seconds, which a machine with other work on it disturbs less than the clock.

What the solvers can be asked:

- crowdtree: the least additive error; with one common error that is the least expected number of
  questions times the error.
- pystreed: the least expected cost of the questions, one cost per question. So it can be given one
  error per question, but not one per cell. Its trees have at most 20 levels.
- pydl8.5, gosdt, pycontree: the least share of misclassified rows within a given depth (gosdt: plus
  a price per leaf). Any tree that separates the classes is optimal for them, so it is an easier
  question, and its answer says nothing about the expected number of questions. They get the depth
  of crowdtree's tree, which they could not know.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.optimal_common import (
    ERROR_WORDS,
    ROOT,
    Errors,
    Table,
    machine,
    markdown,
    put_between,
    random_table,
    save,
    seconds_text,
    warm_up,
)

SCRIPT = Path(__file__).with_name("peer_solver.py")
DEEPEST = 20  # of pystreed
GRACE_SECONDS = 30.0
TOLERANCE = 1e-9
TARGET_RATIO = 50
TARGET_SIZE = (16, 24)
COST = "expected cost"
WRONG = "misclassified share"


@dataclass(frozen=True)
class Peer:
    """A solver as it is asked: which package, what it minimises, how deep it may go."""

    package: str
    title: str
    objective: str
    told_depth: bool = False
    variant: str = ""


PYSTREED = (
    Peer("pystreed", "pystreed", COST),
    Peer("pystreed", "pystreed, dataset cache on", COST, variant="dataset cache"),
)
TOLD = (
    Peer("pystreed", "pystreed, told the depth", COST, told_depth=True),
    Peer("pystreed", "pystreed, told the depth, dataset cache on", COST, True, "dataset cache"),
)
OTHERS = (
    Peer("pydl8.5", "pydl8.5", WRONG, told_depth=True),
    Peer("gosdt", "gosdt", WRONG, told_depth=True),
    Peer("pycontree", "pycontree", WRONG, told_depth=True),
)


@dataclass(frozen=True)
class Case:
    """A table and the peers that get it."""

    classes: int
    questions: int
    errors: Errors
    equal_prior: bool
    seed: int
    peers: tuple[Peer, ...]

    @property
    def size(self) -> tuple[int, int]:
        return self.classes, self.questions

    @property
    def title(self) -> str:
        prior = "equal prior" if self.equal_prior else "unequal prior"
        size = f"{self.classes} x {self.questions}"
        return f"{size}, {ERROR_WORDS[self.errors]}, {prior}, seed {self.seed}"


def cases(seeds: int) -> Iterator[Case]:
    for seed in range(seeds):
        yield Case(16, 24, "common", True, seed, PYSTREED + TOLD + (OTHERS if not seed else ()))
        yield Case(16, 24, "common", False, seed, PYSTREED + TOLD)
        yield Case(16, 24, "question", False, seed, PYSTREED + TOLD)
    for classes, questions in ((30, 30), (50, 85)):
        yield Case(classes, questions, "common", True, 0, PYSTREED + OTHERS)
        yield Case(classes, questions, "question", False, 0, PYSTREED)


def ask(python: Path, package: str, task: dict[str, Any]) -> dict[str, Any]:
    """Run a solver in its own process; failures are returned as text."""
    if not python.is_file():
        note = python.parents[2] / f"{package}.failed"
        reason = note.read_text(encoding="utf-8").strip() if note.is_file() else "not set up"
        return _failure(f"not installed: {reason}")
    # Beyond its own limit a solver gets some time to notice, then it is ended.
    hard_limit = task["time_limit"] + GRACE_SECONDS
    environment = dict(os.environ)
    if package == "crowdtree":
        path = [str(ROOT / "src"), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    try:
        done = subprocess.run(
            [str(python), str(SCRIPT), package],
            input=json.dumps(task),
            capture_output=True,
            text=True,
            timeout=hard_limit,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _failure(f"did not stop at its time limit; ended after {hard_limit:.0f} s")
    if done.returncode:
        return _failure(_why(done))
    return json.loads(done.stdout.splitlines()[-1])


def _why(done: subprocess.CompletedProcess[str]) -> str:
    last = (done.stderr.strip().splitlines() or ["no message"])[-1][:120]
    if "bad_alloc" in done.stderr or "MemoryError" in done.stderr:
        return "out of memory"
    return f"failed with code {done.returncode}: {last}".replace("|", "/")


def _failure(words: str) -> dict[str, Any]:
    return {"status": words, "tree": None, "seconds": None, "cpu_seconds": None}


def worth(tree: Any, table: Table) -> tuple[float, float]:
    """Additive error of a nested tree, and the share of items in a leaf of another class."""
    problem = table.problem
    additive = wrong = 0.0
    for c, share in enumerate(problem.prior.tolist()):
        node = tree
        while isinstance(node, list):
            question, no, yes = node
            additive += share * float(problem.worker_error[question, c])
            node = yes if problem.outcome[question, c] else no
        wrong += share * (node != c)
    return additive, wrong


def task_of(table: Table, limits: argparse.Namespace) -> dict[str, Any]:
    problem = table.problem
    return {
        "outcome": problem.outcome.tolist(),
        "counts": table.counts,
        "worker_error": problem.worker_error.tolist(),
        "cost": problem.worker_error[:, 0].tolist(),
        "time_limit": limits.time_limit,
        "memory_limit": limits.memory_limit * 1e9,
    }


class Report:
    """Rows of the table, and what in them must not be."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self.faults: list[str] = []
        self.checks = 0
        self.ratios: dict[tuple[Case, Peer], tuple[float, bool]] = {}

    def add(self, case: Case, peer: Peer, found: dict[str, Any], ours: dict[str, Any]) -> None:
        table = random_table(case.classes, case.questions, case.seed, case.errors, case.equal_prior)
        seconds, ratio = found["seconds"], "-"
        value = "no tree"
        if found["tree"] is not None:
            additive, wrong = worth(found["tree"], table)
            value = f"{additive:.6f}" if not wrong else f"{wrong:.3g} of the items misclassified"
            if not wrong:
                self._check(case, peer, found, additive, ours)
        if seconds is not None and peer.package != "crowdtree":
            factor = found["cpu_seconds"] / ours["cpu_seconds"]
            least = "" if found["status"] == "optimal" else "> "
            ratio = f"{least}{factor:,.0f}" if peer.objective == COST else "(other question)"
            if peer.objective == COST:
                self.ratios[case, peer] = factor, found["status"] == "optimal"
        proof = found["status"]
        if proof == "optimal" and peer.objective == COST and found["depth"] < case.classes - 1:
            proof = f"optimal up to depth {found['depth']}"
        if peer.objective == WRONG:
            proof += f", depth {found['depth']}"
        cpu = "-" if found["cpu_seconds"] is None else seconds_text(found["cpu_seconds"])
        self.rows.append([case.title, peer.title, proof, value, cpu, ratio])
        print("  ", *self.rows[-1][1:], sep="  ", flush=True)

    def _check(
        self, case: Case, peer: Peer, found: dict[str, Any], additive: float, ours: dict[str, Any]
    ) -> None:
        """Nobody may beat a proven value, and two proofs of the same question must agree."""
        if ours["status"] != "optimal":
            return
        slack = TOLERANCE * ours["value"]
        if additive < ours["value"] - slack:
            self.faults.append(f"{case.title}: {peer.title} found {additive} < {ours['value']}")
        if peer.objective == COST and found["status"] == "optimal" and peer.package != "crowdtree":
            self.checks += 1
            if additive > ours["value"] + slack:
                self.faults.append(f"{case.title}: {peer.title} proved {additive}, not the same")

    def verdict(self) -> list[str]:
        lines = [f"Proofs of pystreed compared with crowdtree's value: {self.checks}."]
        if self.checks and not self.faults:
            lines[0] += " All agree."
        lines += [f"DISAGREEMENT: {fault}" for fault in self.faults]
        for errors, prior in (("common", True), ("common", False), ("question", False)):
            found = self._least_ratios(errors, prior)
            if found:
                worst, proofs = min(found), len(found)
                met = "met" if worst >= TARGET_RATIO else "NOT met"
                words = f"{ERROR_WORDS[errors]}, {'equal' if prior else 'unequal'} prior"
                lines.append(
                    f"16 x 24, {words}: pystreed in its faster setting takes {worst:,.0f} times as "
                    f"long as crowdtree or more, over {proofs} table(s) "
                    f"(wanted: {TARGET_RATIO} times; {met})."
                )
        return lines

    def _least_ratios(self, errors: str, equal_prior: bool) -> list[float]:
        """One ratio per table: the faster of pystreed's settings that know no depth."""
        least: dict[Case, float] = {}
        for (case, peer), (factor, _) in self.ratios.items():
            wanted = case.size == TARGET_SIZE and not peer.told_depth
            if wanted and (case.errors, case.equal_prior) == (errors, equal_prior):
                least[case] = min(factor, least.get(case, factor))
        return list(least.values())


def run(limits: argparse.Namespace) -> Report:
    report = Report()
    us = Peer("crowdtree", "crowdtree", COST)
    print(f"crowdtree compiled or loaded its search in {seconds_text(warm_up())} s", flush=True)
    for case in cases(limits.seeds):
        if limits.only and f"{case.classes}x{case.questions}" not in limits.only:
            continue
        print(case.title, flush=True)
        table = random_table(case.classes, case.questions, case.seed, case.errors, case.equal_prior)
        task = task_of(table, limits)
        ours = ask(Path(sys.executable), "crowdtree", task)
        if ours["tree"] is None:
            raise SystemExit(f"crowdtree on {case.title}: {ours['status']}")
        depth = ours["depth"]
        report.add(case, us, ours | {"depth": case.classes}, ours)
        for peer in case.peers:
            most = depth if peer.told_depth else min(DEEPEST, case.classes - 1)
            python = limits.peers / peer.package / "bin" / "python"
            found = ask(python, peer.package, task | {"depth": most, "variant": peer.variant})
            report.add(case, peer, found | {"depth": most}, ours)
    return report


HEADER = (
    "table",
    "solver",
    "proof",
    "additive error of its tree",
    "CPU seconds",
    "times crowdtree's",
)


def page(report: Report, limits: argparse.Namespace) -> str:
    versions = [path.stem for path in sorted((ROOT / "tools" / "peers").glob("*.txt"))]
    pins = {name: _version(name) for name in versions}
    about = (
        f"{machine()}; limits {limits.time_limit:g} s and {limits.memory_limit:g} GB per run; "
        + ", ".join(f"{name} {version}" for name, version in pins.items())
        + "."
    )
    verdict = "\n".join(f"- {line}" for line in report.verdict())
    # the first table of each kind stands for the others, which the verdict counts
    others = [peer.title for peer in OTHERS]
    shown = [
        row
        for row in report.rows
        if row[0].endswith("seed 0") and "told" not in row[1] and row[1] not in others
    ]
    last = ""
    for row in shown:
        last, row[0] = row[0], "" if row[0] == last else row[0].removesuffix(", seed 0")
    return f"{about}\n\n{verdict}\n\n{markdown(HEADER, shown)}\n"


def _version(name: str) -> str:
    lines = (ROOT / "tools" / "peers" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return next(line.split("==")[1] for line in lines if line.startswith(f"{name}=="))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--time-limit", type=float, default=120, help="seconds per run")
    parser.add_argument("--memory-limit", type=float, default=8, help="gigabytes per run")
    parser.add_argument("--seeds", type=int, default=3, help="tables of 16 x 24 of each kind")
    parser.add_argument("--only", nargs="*", help="sizes such as 16x24")
    parser.add_argument("--peers", type=Path, default=ROOT / "out" / "peers")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "optimal_peers.md")
    parser.add_argument("--page", type=Path, help="write between the markers of this page too")
    limits = parser.parse_args()
    report = run(limits)
    text = page(report, limits)
    save(limits.out, text)
    if limits.page:
        put_between(limits.page, "peers", text)
    print("\n" + text)
    if report.faults:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
