"""What an installation weighs, and how long its verbs take at their first use.

``python -m benchmarks.installed [FOLDER] [--extras fast,figures]`` builds the wheel of a clone
(this one by default), installs it into an empty environment with the pinned versions, and prints
a table.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERBS = (
    "--version", "design example:animals", "design example:animals --method optimal",
    "staff example:animals --workers 20", "frontier example:animals --error 0.05",
    "simulate example:animals --items 2000", "explain example:animals", "check example:animals",
    "report example:animals -o report.html", "learn answers.csv",
    "audit plan labels.csv --bound 0.1",
)  # fmt: skip
SIZE = """
import importlib.metadata as metadata
ours = [d for d in metadata.distributions() if d.metadata["Name"] not in ("pip", "setuptools")]
sizes = {d.metadata["Name"]: sum(f.locate().stat().st_size for f in d.files or ()
         if f.locate().is_file()) / 1e6 for d in ours}
print(round(sum(sizes.values())))
print(", ".join(f"{n} {s:.0f}" for n, s in sorted(sizes.items(), key=lambda p: -p[1])[:6]))
"""


def run(*words: object, cwd: Path) -> tuple[float, str]:
    """Run a command; its seconds and what it printed."""
    began = time.perf_counter()
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - began
    return seconds, done.stdout.strip() if done.returncode == 0 else "fails: " + done.stderr[-120:]


def measure(folder: Path, extras: list[str], place: Path) -> list[str]:
    """Lines of the report."""
    run(sys.executable, "-m", "build", "-q", "--wheel", "-n", "-o", place, folder, cwd=place)
    (wheel,) = place.glob("*.whl")
    venv.create(place / "env", with_pip=True)
    python = place / "env" / "bin" / "python"
    lines = ["| installed | MB | largest |", "|---|---|---|"]
    for extra in ["", *extras]:
        named = f"{wheel}[{extra}]" if extra else str(wheel)
        run(
            python, "-m", "pip", "install", "-q", "-c", folder / "constraints.txt", named, cwd=place
        )
        size, _, largest = run(python, "-c", SIZE, cwd=place)[1].partition("\n")
        lines.append(f"| {'+ ' + extra if extra else 'the wheel alone'} | {size} | {largest} |")
    (place / "answers.csv").write_text(
        "task,worker,label\n"
        + "".join(f"{t},w{w},{'ab'[(t + w * t) % 3 == 0]}\n" for t in range(300) for w in range(5))
    )
    (place / "labels.csv").write_text(
        "item,label,error\n" + "".join(f"i{n},cat,0.0{n % 9 + 1}\n" for n in range(500))
    )
    lines += ["", "| cold | first s | again s |", "|---|---|---|"]
    statements = [("import crowdtree", ["-c", "import crowdtree"])]
    statements += [(f"crowdtree {verb}", ["-m", "crowdtree", *verb.split()]) for verb in VERBS]
    for name, words in statements:
        (first, said), (again, _) = (run(python, *words, cwd=place) for _ in range(2))
        failed = f" {said}" if said.startswith("fails") else ""
        lines.append(f"| `{name}`{failed} | {first:.2f} | {again:.2f} |")
    return lines


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default=ROOT, type=Path)
    parser.add_argument("--extras", default="", help="extras to add one after the other")
    given = parser.parse_args()
    extras = [name for name in given.extras.split(",") if name]
    with tempfile.TemporaryDirectory() as place:
        print("\n".join(measure(given.folder.absolute(), extras, Path(place))))


if __name__ == "__main__":
    main()
