"""What careless, hostile and absent people can do to a server, before and now.

    git worktree add --detach ../before 4113173
    python -m benchmarks.threats --against ../before
    python -m benchmarks.threats                          # the present version only

Each threat is a function that does to a running server what the threat says, over HTTP, by the
command line and in files only, so that the same calls reach any version. Prints a Markdown table;
the exit code is 1 if a threat is open in the present version.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks import threat_links, threat_outages, threat_strangers, threat_workers
from benchmarks.threat_lab import THREATS, Check, Finding, Lab, NotTested

PARTS = (threat_workers, threat_strangers, threat_outages, threat_links)
"""They have filled the list of threats, which is in this order."""
HERE = Path(__file__).resolve().parents[1]
AT_ONCE = 4
"""Checks that run at the same time: many of them wait."""
STATES = {True: "closed", False: "open", None: "not tested"}


def examined(source: Path, only: str = "") -> dict[str, Finding]:
    """Check all threats in one checkout, or those with a word in their name."""
    lab = Lab(source)
    names = [part.__name__ for part in PARTS]
    chosen = {words: check for words, check in THREATS.items() if only in words}
    chosen = dict(sorted(chosen.items(), key=lambda one: names.index(one[1].__module__)))
    with lab.start("--private-webhooks") as lab.shared, ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(chosen, pool.map(partial(_found, lab), chosen.values()), strict=True))


def _found(lab: Lab, check: Check) -> Finding:
    try:
        return check(lab)
    except NotTested as reason:
        return Finding(None, str(reason))


def table(columns: dict[str, dict[str, Finding]]) -> str:
    """Write a Markdown table: a line for each threat, a column for each version."""
    lines = [["threat", *columns], ["---"] * (1 + len(columns))]
    for words in next(iter(columns.values())):
        found = [column[words] for column in columns.values()]
        lines.append([words, *(f"**{STATES[one.closed]}**: {one.seen}" for one in found)])
    cells = [[cell.replace("|", "/") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells).replace(" --- ", "---")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, help="a checkout of 4113173, or of another version")
    parser.add_argument("--only", default="", help="a word of the threats to check")
    options = parser.parse_args()
    if options.against is not None and not (options.against / "src" / "crowdtree").is_dir():
        parser.error(f"--against: expected a checkout with src/crowdtree, got {options.against}")
    if not any(options.only in words for words in THREATS):
        parser.error(f"--only: no threat has {options.only!r} in its name")
    columns = {}
    if options.against is not None:
        columns["4113173"] = examined(options.against.resolve(), options.only)
    columns["now"] = examined(HERE, options.only)
    print(table(columns))
    sys.exit(any(found.closed is False for found in columns["now"].values()))


if __name__ == "__main__":
    main()
