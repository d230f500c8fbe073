"""The verb simulate."""

from __future__ import annotations

import pytest

from cli.helpers import run


@pytest.mark.filterwarnings("default::crowdtree.CrowdtreeWarning")
def test_simulate_says_where_errors_were_cut_and_needs_processes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("simulate", "example:table1", "--items", 50, "--policy", "plan")
    assert run(*words, "--true-errors", 20) == 0
    assert "they are kept at 49.9 %" in capsys.readouterr().err
    assert run(*words, "--jobs", 0) == 2
    assert "jobs: expected a count of processes" in capsys.readouterr().err
