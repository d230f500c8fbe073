"""What the issue of hostile workers lists, over HTTP: open in 4113173, closed now."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from benchmarks.threat_lab import Finding
from benchmarks.threats import HERE, examined, table

BEFORE = "4113173"
"""The last commit without the measures."""


def states(found: dict[str, Finding]) -> dict[bool | None, list[str]]:
    """The threats by their state; without PostgreSQL some are not tested."""
    by_state: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    for words, finding in found.items():
        by_state[finding.closed].append(f"{words}: {finding.seen}")
    return by_state


@pytest.mark.slow
def test_every_threat_is_closed() -> None:
    found = states(examined(HERE))
    assert found[False] == []
    assert len(found[True]) >= 36


@pytest.mark.slow
def test_every_threat_was_open_before(tmp_path: Path) -> None:
    """So that the checks can fail; they reach that version by HTTP and its command line."""
    packed = subprocess.run(["git", "archive", BEFORE, "src"], cwd=HERE, capture_output=True)
    if packed.returncode:
        pytest.skip(f"the history of this clone has no commit {BEFORE}: fetch all of it")
    subprocess.run(["tar", "-x"], input=packed.stdout, cwd=tmp_path, check=True)
    found = states(examined(tmp_path))
    assert found[True] == []
    assert len(found[False]) >= 36


def test_the_table_has_a_line_per_threat_and_a_column_per_version() -> None:
    before, now = Finding(False, "a | b"), Finding(True, "none")
    assert table({"1": {"x": before}, "2": {"x": now}}).splitlines() == [
        "| threat | 1 | 2 |",
        "|---|---|---|",
        "| x | **open**: a / b | **closed**: none |",
    ]
