"""Processor seconds of every verb, at its first use (nothing compiled) and at its second.

    python -m benchmarks.cold_start --out docs/measured/cold-start.md

Copies the sources of a commit (``--before``) and of the working tree into a temporary folder,
compiles their bytecode as an installer does, and removes compiled kernels before every first run.
The problems are those of the README. ``serve`` is stopped when it answers. Processor seconds are
those of the whole process, the start of Python included.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import crowdtree as ct

ROOT = Path(__file__).resolve().parents[1]
WANTED = 3.0
PORT = 8399
"""Of the server that is started, and stopped as soon as it answers."""
BIRDS = """question,error,robin,eagle,trout,shark
prior,,0.4,0.1,0.3,0.2
flies,0.05,1,1,0,0
hunts,0.15,0,1,0,1
sings,0.10,1,0,-,-
"""
CASES = (
    "--help",
    "check birds.csv",
    "check example:animals",
    "design birds.csv",
    "design example:animals",
    "design example:animals --draw tree.svg",
    "design birds.csv --method optimal -o birds.json",
    "design example:animals --method optimal",
    "design example:animals --method optimal --time-limit 5",
    "staff birds.csv --workers 30",
    "evaluate birds.json",
    "frontier birds.csv --error 0.01 -o plan.json",
    "frontier example:animals",
    "frontier example:animals --draw frontier.svg",
    "simulate birds.csv",
    "simulate plan.json --policy curtailed",
    "simulate birds.csv --compare",
    "simulate example:animals --compare",
    "explain birds.csv --class eagle",
    "learn votes.csv",
    "learn answers.csv --gold gold.csv -o problem.yaml --report learned.html",
    "pilot birds.csv",
    "audit plan labels.csv --bound 0.02",
    "audit start labels.csv -o audit.json --bound 0.02",
    "audit next audit.json -n 20 -o sheet.csv",
    "audit record audit.json sheet.csv --by ann",
    "audit show audit.json",
    "audit verify audit.json --labels labels.csv",
    "campaign create birds.csv --name birds",
    "report birds.csv --out birds.html",
    "report example:animals --out animals.html",
    "reproduce --out paper",
    "demo --out demo",
    f"serve --port {PORT}",
)
LIBRARY = {
    "import crowdtree": "import crowdtree",
    "ct.learn(the nine answers of the README)": (
        "import crowdtree as ct; ct.learn({'task': [1,1,1,2,2,2,3,3,3], "
        "'worker': ['ann','ben','cy']*3, 'label': ['cat','cat','dog','dog','dog','dog',"
        "'cat','cat','cat']}).accuracy"
    ),
    "ct.simulate(birds, AdaptivePolicy, 20,000 items)": (
        "import crowdtree as ct; p = ct.load_problem('birds.csv'); "
        "ct.simulate(p, ct.AdaptivePolicy(p, target_error=0.01), items=20_000, rng=0)"
    ),
}


@dataclass(frozen=True)
class Times:
    """Processor seconds of a first and a second run; None where it failed."""

    cold: float | None
    warm: float | None


def write_inputs(folder: Path) -> None:
    """Write the tables and answers that the cases read: small, and the same in every run."""
    rng = np.random.default_rng(0)
    (folder / "birds.csv").write_text(BIRDS)
    votes = ["task,worker,label"]
    for task in range(60):
        truth = rng.integers(3)
        for worker in rng.choice(12, 5, replace=False):
            label = truth if rng.random() < 0.8 else rng.integers(3)
            votes.append(f"{task},w{worker},{('cat', 'dog', 'fox')[label]}")
    (folder / "votes.csv").write_text("\n".join(votes) + "\n")
    problem = ct.example("table1")
    answers, gold = ["task,question,worker,label"], ["task,label"]
    for task in range(60):
        cls = int(rng.choice(problem.n_classes, p=problem.prior))
        gold.append(f"{task},{problem.classes[cls]}")
        for q in np.flatnonzero(problem.outcome[:, cls] >= 0):
            for worker in rng.choice(12, 4, replace=False):
                right = rng.random() > problem.worker_error[q, cls]
                said = int(problem.outcome[q, cls]) ^ int(not right)
                answers.append(f"{task},{problem.questions[q]},w{worker},{said}")
    (folder / "answers.csv").write_text("\n".join(answers) + "\n")
    (folder / "gold.csv").write_text("\n".join(gold) + "\n")
    stated = np.where(rng.random(1000) < 0.1, 0.15, 0.002)
    labels = [f"photo {i},cat,{error}" for i, error in enumerate(stated)]
    (folder / "labels.csv").write_text("\n".join(["item,label,error", *labels]) + "\n")


def check_sheet(folder: Path) -> None:
    """Fill in the sheet of ``audit next``: every label is right."""
    sheet = folder / "sheet.csv"
    if sheet.exists():
        head, *rows = sheet.read_text().splitlines()
        filled = [row if row.endswith("cat") else f"{row}cat" for row in rows]
        sheet.write_text("\n".join([head, *filled]) + "\n")


def lay_out(commit: str | None, folder: Path) -> Path:
    """Copy the sources of a commit, or of the working tree, and compile their bytecode."""
    if commit is None:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "src", folder / "src", ignore=ignored)
    else:
        command = ["git", "archive", commit, "src"]
        packed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(folder / "src")], check=True)
    return folder / "src"


def processor_seconds(command: Sequence[str], sources: Path, folder: Path) -> float | None:
    """Processor seconds of a process and its children; None if it fails."""
    environment = {**os.environ, "PYTHONPATH": str(sources)}
    environment.pop("NUMBA_CACHE_DIR", None)
    started = os.times()
    process = subprocess.Popen(
        [sys.executable, *command], cwd=folder, env=environment, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    if "serve" in command:
        wait_for_server(process)
        process.terminate()
    said = process.communicate()[1]
    failed = process.returncode != 0 and "serve" not in command
    ended = os.times()
    if failed:
        print(said.decode(errors="replace")[-400:], file=sys.stderr)
        return None
    return (
        ended.children_user + ended.children_system
        - started.children_user - started.children_system
    )  # fmt: skip


def wait_for_server(process: subprocess.Popen[bytes]) -> None:
    """Wait until the server answers, or has ended."""
    while process.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/healthz", timeout=5).close()
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.2)


def measure(sources: Path, folder: Path, only: str) -> dict[str, Times]:
    """Run every case twice, the first time without compiled kernels."""
    folder.mkdir()
    write_inputs(folder)
    cases = {f"crowdtree {case}": ["-m", "crowdtree", *case.split()] for case in CASES}
    cases |= {name: ["-c", code] for name, code in LIBRARY.items()}
    found = {}
    for name, command in cases.items():
        if only not in name:
            continue
        for compiled in [*sources.rglob("*.nbi"), *sources.rglob("*.nbc")]:
            compiled.unlink()
        cold = processor_seconds(command, sources, folder)
        if "start" in command:  # it refuses to replace an audit
            (folder / "audit.json").unlink(missing_ok=True)
        warm = processor_seconds(command, sources, folder)
        check_sheet(folder)
        found[name] = Times(cold, warm)
        print(f"{name}: {cold} {warm}", file=sys.stderr)
    return found


def report(before: str, old: dict[str, Times], new: dict[str, Times]) -> str:
    """Write the table."""

    def cell(value: float | None) -> str:
        return "—" if value is None else f"{value:.2f}"

    lines = [
        "# Cold start",
        "",
        f"Written by `python -m benchmarks.cold_start --before {before}` on "
        f"{time.strftime('%Y-%m-%d')}. Processor seconds (user and system, all threads and child "
        "processes) of a fresh process, the start of Python included. *First*: nothing has been "
        "compiled before on this machine; *second*: the same command again. "
        f"Wanted: at most {WANTED:g} s at the first use. A dash: not available or not measured.",
        "",
        "| command | first, before | first, now | second, before | second, now |",
        "|---|--:|--:|--:|--:|",
    ]
    for name, now in new.items():
        was = old.get(name, Times(None, None))
        cells = [cell(value) for value in (was.cold, now.cold, was.warm, now.warm)]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--before", default="4113173", help="commit to compare with")
    parser.add_argument("--only", default="", help="only cases that contain this text")
    parser.add_argument("--out", type=Path, help="write the report to this file, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        old_sources, new_sources = folder / "before", folder / "now"
        old = measure(lay_out(options.before, old_sources), folder / "old", options.only)
        new = measure(lay_out(None, new_sources), folder / "new", options.only)
        text = report(options.before, old, new)
    print(text)
    if options.out:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
