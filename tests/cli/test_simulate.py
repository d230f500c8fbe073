"""The verb simulate."""

from __future__ import annotations

import json

import pytest

from tests.cli.helpers import result, run


@pytest.mark.filterwarnings("default::crowdtree.CrowdtreeWarning")
def test_simulate_reports_limited_errors_and_checks_jobs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("simulate", "example:table1", "--items", 50, "--policy", "plan")
    assert run(*words, "--true-errors", 20) == 0
    assert "they are kept at 49.9 %" in capsys.readouterr().err
    assert run(*words, "--jobs", 0) == 2
    assert "jobs: expected a number of processes" in capsys.readouterr().err


def test_adapt_says_what_was_wrong_and_what_it_would_have_been(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("simulate", "example:animals", "--items", 60, "--policy", "adaptive", "--adapt")
    assert run(*words, "--true-errors", 1.9) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "The table is wrong: after" in out
    assert "people are wrong about" in out
    assert "Without adaptation:" in out
    assert run(*words, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["adaptation"]["alarms"] == []
    assert found["without_adaptation"]["misclassification"] == found["misclassification"]
    assert run(*words, "--jobs", 2) == 2
    assert "leave out engine, jobs and checkpoint" in capsys.readouterr().err
    assert run(*words, "--compare") == 2
    assert "--compare: simulates without --adapt" in capsys.readouterr().err


def test_prices_give_the_cost_of_a_run_and_of_a_comparison(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("simulate", "example:table1", "--items", 200, "--price", 0.5, "--target-error", 0.1)
    found = result(capsys, *words)
    assert found["cost_per_item"] == pytest.approx(0.5 * found["answers_per_item"])
    for row in result(capsys, *words, "--compare")["policies"]:
        asked = sum(row["answers_per_question"].values())
        assert row["cost_per_item"] == pytest.approx(0.5 * asked)
    assert run(*words, "--compare") == 0
    out = capsys.readouterr().out
    assert " price " in out
    assert "--price 0.5 --target-error 0.1 --compare --draw policies.svg" in " ".join(out.split())


def test_certify_says_how_many_checks_a_certificate_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("simulate", "example:animals", "--items", 600, "--policy", "adaptive")
    assert run(*words, "--certify", 0.04) == 0
    assert "certify that at most 4 % of the labels are wrong." in capsys.readouterr().out
    assert run(*words, "--certify", 0.04, "--json") == 0
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert 10 < checks["median"] < 600
    assert run(*words, "--certify", 0.0001, "--true-errors", 1.9) == 0
    assert "no audit can certify" in " ".join(capsys.readouterr().out.split())
    assert run(*words, "--certify", 2) == 2
    assert "--certify: expected a number between 0 and 1" in capsys.readouterr().err
    assert run(*words, "--compare", "--certify", 0.1) == 2
    assert "--compare: simulates without --certify" in capsys.readouterr().err
