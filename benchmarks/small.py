"""Small problems: the time to import, and to design Table 1 from a cold start.

    python -m benchmarks.small --out docs/measured/benchmarks.md

Each is the best of several fresh processes, next to the bare start of Python and to numpy, without
which nothing goes. Processor seconds are hardly disturbed by other work on the machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

CASES = {
    "python starts": "pass",
    "import numpy": "import numpy",
    "import crowdtree": "import crowdtree",
    "design Table 1": "import crowdtree as ct; ct.design(ct.example('table1'))",
    "design, staff and evaluate Table 1": (
        "import crowdtree as ct; tree = ct.design(ct.example('table1')); "
        "ct.evaluate(ct.staff(tree, workers=20)).confusion"
    ),
    "crowdtree design (command)": (
        "import sys, crowdtree.cli; from crowdtree.cli import main; "
        "from importlib.resources import files; "
        "sys.argv = ['crowdtree', 'design', str(files('crowdtree') / 'data' / 'table1.csv')]; "
        "\ntry: main()\nexcept SystemExit as end: assert not end.code\n"
    ),
}
WANTED = {"import crowdtree": 0.3, "crowdtree design (command)": 1.0}
NO_COMPILER = "\nimport sys; assert 'numba' not in sys.modules"


def seconds(code: str, repeats: int) -> tuple[float, float] | None:
    """Least wall and processor seconds of a fresh process; None where it fails."""
    wall, cpu = [], []
    for _ in range(repeats):
        start, used = time.perf_counter(), _children()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
        if done.returncode:
            return None
        wall.append(time.perf_counter() - start)
        cpu.append(_children() - used)
    return min(wall), min(cpu)


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def report(repeats: int) -> str:
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    lines = [
        "## Small problems",
        "",
        f"Written by `python -m benchmarks.small --out docs/measured/benchmarks.md`: best of "
        f"{repeats} fresh processes, the start of Python included. None of them loads the "
        f"compiler (checked in the run). Load averages when this was written: {load}.",
        "",
        "| what | wall s | cpu s | wanted below |",
        "|---|---|---|---|",
    ]
    for name, code in CASES.items():
        took = seconds(code + NO_COMPILER, repeats)
        wanted = WANTED.get(name, "")
        cells = "not available | " if took is None else f"{took[0]:.3f} | {took[1]:.3f}"
        lines.append(f"| {name} | {cells} | {wanted} |")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="put the section into this report, too")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    text = report(options.repeats)
    print(text)
    if options.out:
        old = options.out.read_text() if options.out.exists() else "# Benchmarks\n\n"
        options.out.write_text(old.split("## Small problems")[0].rstrip() + "\n\n" + text)


if __name__ == "__main__":
    main()
