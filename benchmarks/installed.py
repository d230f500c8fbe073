"""What the wheel installs, and what its verbs cost at their first use.

    python -m benchmarks.installed --before 39eb8ac --out docs/measured/benchmarks.md

Installs the wheel without extras into an empty environment with the pinned versions. The verbs of
an earlier commit run in the environment of this process, which has all packages.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
TITLE = "## Installation"
BEFORE_MB = 778
"""What a wheel installed before the extras, of which llvmlite and numba 208, polars 181."""
VERBS = (
    "plan example:animals --error 0.01", "check example:animals", "design example:animals",
    "staff example:animals --workers 20", "frontier example:animals --error 0.05",
    "simulate example:animals --items 2000", "learn answers.csv",
    "audit plan labels.csv --bound 0.1", "report example:animals -o report.html",
)  # fmt: skip
SIZES = """
from importlib.metadata import distributions
for d in distributions():
    files = [f.locate() for f in d.files or ()]
    print(d.metadata["Name"], sum(f.stat().st_size for f in files if f.is_file()))
"""


def run(*words: object, cwd: Path, path: Path | None = None) -> tuple[float, str]:
    """Run a command; its processor seconds and what it printed."""
    environment = {name: os.environ[name] for name in os.environ if name[:6] != "PYTHON"}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    used = _children()
    text = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=environment, check=True, stdout=-1, text=True
    ).stdout
    return _children() - used, text


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def install(place: Path) -> tuple[Path, list[str]]:
    """Install the wheel; the Python of its environment, and a table of sizes."""
    run(sys.executable, "-m", "build", "-nw", "-o", place, ROOT, cwd=place)
    venv.create(place / "env", with_pip=True)
    python = place / "env" / "bin" / "python"
    pins = ("-c", ROOT / "constraints.txt")
    run(python, "-m", "pip", "install", "-q", *pins, *place.glob("*.whl"), cwd=place)
    lines = (line.split() for line in run(python, "-c", SIZES, cwd=place)[1].splitlines())
    sizes = {name: int(size) / 1e6 for name, size in lines if name not in ("pip", "setuptools")}
    total = sum(sizes.values())
    largest = sorted(sizes.items(), key=lambda pair: -pair[1])[:7]
    rest = total - sum(size for _, size in largest)
    rows = [f"| {name} | {size:.0f} |" for name, size in largest]
    return python, [
        f"`pip install` of the wheel: {total:.0f} MB; {BEFORE_MB} before the extras (not measured "
        "here).",
        "", "| package | MB |", "|---|---|", *rows, f"| {len(sizes) - 7} others | {rest:.0f} |",
    ]  # fmt: skip


def times(python: object, place: Path, path: Path | None = None) -> dict[str, str]:
    """Processor seconds of the import and of each verb: at its first use, and again."""
    cases = {"import crowdtree": ["-c", "import crowdtree"]}
    cases |= {f"crowdtree {verb}": ["-m", "crowdtree", *verb.split()] for verb in VERBS}
    found = {}
    for name, words in cases.items():
        try:
            first, again = (run(python, *words, cwd=place, path=path)[0] for _ in range(2))
        except subprocess.CalledProcessError:  # the verb did not exist
            continue
        found[name] = f"{first:.2f} | {again:.2f}"
    return found


def measure(before: str, place: Path) -> list[str]:
    """Lines of the report."""
    (place / "answers.csv").write_text(
        "task,worker,label\n"
        + "".join(f"{t},w{w},{'ab'[(t + w * t) % 3 == 0]}\n" for t in range(300) for w in range(5))
    )
    (place / "labels.csv").write_text(
        "item,label,error\n" + "".join(f"i{n},cat,0.0{n % 9 + 1}\n" for n in range(500))
    )
    python, lines = install(place)
    now, past = times(python, place), {}
    if before:
        run("git", "-C", ROOT, "worktree", "add", "--detach", place / "old", before, cwd=place)
        try:
            past = times(sys.executable, place, place / "old" / "src")
        finally:
            run("git", "-C", ROOT, "worktree", "remove", "--force", place / "old", cwd=place)
    lines += [
        "",
        f"Processor seconds of fresh processes, the start of Python included. Before: commit "
        f"{before} in the developers' environment, where the first use may compile; none: the verb "
        "did not exist.",
        "",
        "| what | before, first use | again | wheel, first use | again |",
        "|---|---|---|---|---|",
    ]
    return lines + [f"| `{name}` | {past.get(name, 'none | none')} | {now[name]} |" for name in now]


def main() -> None:
    """Print the section, and put it into a report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", default="", help="commit to compare with")
    parser.add_argument("--out", type=Path, help="put the section into this report, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        lines = measure(options.before, Path(place))
    command = f"python -m benchmarks.installed --before {options.before} --out {options.out}"
    written = f"Written by `{command}`."
    text = "\n".join([TITLE, "", written, "", *lines, ""])
    print(text)
    if options.out:
        head = options.out.read_text().partition(TITLE)[0].rstrip()
        options.out.write_text(f"{head}\n\n{text}")


if __name__ == "__main__":
    main()
