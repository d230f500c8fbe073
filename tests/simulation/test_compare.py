"""Comparison of all policies: Dawid-Skene, rows, charts and the verb."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.cli import main
from crowdtree.core.bounds import fano_floor
from crowdtree.policies import expected_answers
from crowdtree.simulation import Crowd, simulate, simulate_dawid_skene
from crowdtree.simulation.compare import compare_policies

TABLE1 = ct.example("table1")


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


# ------------------------------------------------------------------ Dawid and Skene


def test_the_batch_learns_skills_that_the_majority_cannot_see():
    problem = TABLE1.replace(worker_error=0.2)
    crowd = Crowd(workers=30, spammers=0.4)
    fused = simulate_dawid_skene(problem, 5, 3000, crowd=crowd, decoder="posterior")
    plain = simulate(problem, ct.BatchPolicy(problem, 5, "posterior"), 3000, crowd=crowd)
    np.testing.assert_array_equal(fused.truth, plain.truth)  # the same people
    np.testing.assert_array_equal(fused.asked, plain.asked)
    assert fused.misclassification.high < plain.misclassification.low
    wrong = fused.misclassification
    assert wrong.low - 0.02 < fused.stated_error < wrong.high + 0.02


def test_nearest_and_posterior_decode_the_same_answers():
    problem = TABLE1.replace(worker_error=0.2)
    nearest = simulate_dawid_skene(problem, 3, 2000, crowd=Crowd(workers=20))
    posterior = simulate_dawid_skene(problem, 3, 2000, crowd=Crowd(workers=20), decoder="posterior")
    assert posterior.misclassification < nearest.misclassification
    assert float(nearest.answers_per_item) == 3 * problem.n_questions


@pytest.mark.parametrize("unsure", [None, 0.2])
def test_the_batch_learns_skills_from_questions_with_several_answers(unsure):
    problem = ct.Problem(
        ["fly", "bay", "field", "honey"], None, ["cap", "gills", "ring"],
        [["red", "brown", "white", "brown|red"], ["free", "pores", "free", "grown"],
         [1, 0, "-", 1]],
        0.15, answers=[["red", "brown", "white"], ["free", "grown", "pores"], ["no", "yes"]],
        unsure=unsure,
    )  # fmt: skip
    crowd = Crowd(workers=20, spammers=0.4)
    fused = simulate_dawid_skene(problem, 7, 3000, crowd=crowd, decoder="posterior")
    plain = simulate(problem, ct.BatchPolicy(problem, 7, "posterior"), 3000, crowd=crowd)
    np.testing.assert_array_equal(fused.truth, plain.truth)
    assert fused.misclassification.high < plain.misclassification.low
    assert abs(fused.misclassification - fused.stated_error) < 0.03


def test_dashes_and_mistakes():
    dashed = ct.Problem(["a", "b", "c"], None, ["q", "r"], [[0, 1, "-"], [0, 0, 1]], 0.1)
    run = simulate_dawid_skene(dashed, 5, 500, crowd=Crowd(workers=10), decoder="posterior")
    assert run.misclassification < 0.1
    with pytest.raises(ct.CrowdtreeError, match="votes: expected a whole number"):
        simulate_dawid_skene(dashed, 0)
    with pytest.raises(ct.CrowdtreeError, match="decoder: expected"):
        simulate_dawid_skene(dashed, 1, decoder="luck")


# ------------------------------------------------------------------ the comparison


@pytest.fixture(scope="module")
def found():
    return compare_policies(TABLE1, 0.02, items=1500)


def test_a_batch_takes_the_fewest_answers_that_reach_the_error(found):
    row = next(row for row in found.rows if row.policy == "batch, posterior")
    votes = row.answers / TABLE1.n_questions
    for fewer in range(1, int(votes)):
        run = ct.simulate(TABLE1, ct.BatchPolicy(TABLE1, fewer, "posterior"), items=row.run.items)
        assert run.misclassification > found.error
    assert votes == 2  # not among the odd numbers that are tried first


def test_rows_agree_with_separate_computations(found):
    rows = {row.policy: row for row in found.rows}
    assert list(rows) == [
        "adaptive",
        "frontier, margin",
        "frontier, majority",
        "paper, margin",
        "paper, curtailed",
        "paper",
        "batch, posterior",
        "batch, Dawid-Skene",
        "batch, nearest",
    ]
    for row in found.rows:
        exact = row.policy.startswith(("paper", "frontier"))
        assert row.exact is exact
        assert (row.misclassification.high > row.misclassification.low) is not exact
        assert row.misclassification.low <= 0.02
        floor = fano_floor(TABLE1, row.misclassification)
        assert row.times_the_floor == pytest.approx(row.answers / floor)
        assert row.times_the_floor > 1
        assert abs(row.run.answers_per_item - row.answers) < 0.5
    assert rows["paper, curtailed"].misclassification == rows["paper"].misclassification
    assert rows["paper, curtailed"].answers < rows["paper"].answers
    plans = [ct.staff(ct.design(TABLE1), 2 * k, "paper-fm") for k in range(6)]
    cheapest = next(p for p in plans if ct.evaluate(p).misclassification <= 0.02)
    assert rows["paper"].answers == pytest.approx(ct.evaluate(cheapest).expected_answers)
    assert rows["paper, curtailed"].answers == pytest.approx(
        expected_answers(cheapest, "curtailed")
    )
    assert rows["adaptive"].answers < rows["paper"].answers


def test_curves_hold_every_series_and_none_goes_below_the_floor(found):
    series = {row.series for row in found.curves}
    assert series == {row.policy for row in found.rows} | {"floor", "guide"}
    for row in found.curves:
        if row.series not in ("floor", "guide") and row.high < 0.5:
            assert row.answers >= fano_floor(TABLE1, row.high) * 0.97
    told = json.loads(json.dumps(found.to_dict()))
    assert told["target_error"] == 0.02
    assert len(told["policies"]) == 9


def test_an_error_out_of_reach_is_reported():
    twins = ct.Problem(["a", "b", "c"], [0.5, 0.2, 0.3], ["q"], [[0, 0, 1]], 0.1)
    seen: list[tuple[float, str]] = []
    told = compare_policies(
        twins, 0.05, items=300, max_answers=40, allow_groups=True,
        progress=lambda share, what: seen.append((share, what)),
    )  # fmt: skip
    shares = [share for share, _ in seen]
    assert shares == sorted(shares)
    assert (shares[0], seen[-1][1]) == (0.0, "simulating batch, nearest")
    assert {row.note.split(",")[0] for row in told.rows} == {"does not reach it"}
    assert all(row.misclassification > 0.05 for row in told.rows)


def test_mistakes():
    with pytest.raises(ct.CrowdtreeError, match="target_error: expected a number between 0 and"):
        compare_policies(TABLE1, 0.0)


# ------------------------------------------------------------------ pictures


def words_of(svg: str) -> list[str]:
    return [e.text or "" for e in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def rows_of(spec: object) -> list[dict[str, object]]:
    """All rows of data in a chart, each once, wherever they are kept."""
    found: dict[str, dict[str, object]] = {}

    def look(part: object) -> None:
        if isinstance(part, dict):
            for value in part.get("values", []) if isinstance(part.get("values"), list) else []:
                if isinstance(value, dict):
                    found[json.dumps(value, sort_keys=True)] = value
            for name, value in part.items():
                if name == "datasets":
                    for rows in value.values():
                        look({"values": rows})
                else:
                    look(value)
        elif isinstance(part, list):
            for value in part:
                look(value)

    look(spec)
    return list(found.values())


def test_the_comparison_is_drawn_with_all_names(found, tmp_path: Path):
    from crowdtree.show.plots.policies import draw_comparison

    svg = draw_comparison(found, tmp_path / "policies.svg").read_text()
    words = words_of(svg)
    for row in found.rows:
        assert row.policy in words, row.policy
    for name in ("lower limit (Fano)", "ideal (Burnashev)", "answers per item", "T1"):
        assert name in words
    assert "stated chance of a wrong label" in words
    assert draw_comparison(found, tmp_path / "p.html").read_text().startswith("<!doctype html>")


def test_bands_are_the_intervals(found):
    from crowdtree.show.plots.policies import policy_chart

    spec = policy_chart(found.curves, found.error).to_dict()
    band = next(layer for layer in spec["layer"] if layer["mark"]["type"] == "area")
    data = band["data"].get("values") or spec["datasets"][band["data"]["name"]]
    drawn = {(row["series"], row["x"]): (row["low"], row["high"]) for row in data}
    simulated = [r for r in found.curves if r.high > r.low and r.misclassification >= 0.002]
    assert simulated
    for row in simulated:
        low, high = drawn[row.series, row.answers]
        assert high == row.high
        assert low >= row.low


def test_spending_and_calibration_show_the_numbers_of_the_run(found, tmp_path: Path):
    from crowdtree.show.plots.policies import calibration_chart, draw_run, spending_chart

    run = found.rows[0].run
    rows = rows_of(spending_chart({"adaptive": run}).to_dict())
    spent = sum(row["value"] for row in rows if "value" in row)
    assert spent == pytest.approx(run.answers_per_item)
    points = rows_of(calibration_chart({"adaptive": run}).to_dict())
    drawn = {(p["stated"], p["observed"]) for p in points if "low" in p}
    assert drawn == {(r.stated, r.observed) for r in run.calibration(8)}
    words = words_of(draw_run(run, tmp_path / "run.svg").read_text())
    assert "Where the answers go" in words


def test_groups_of_a_calibration_keep_like_items_together():
    run = simulate(TABLE1, ct.PlanPolicy(ct.design(TABLE1)), 4000)
    rows = run.calibration(50)
    stated = [row.stated for row in rows]
    assert stated == sorted(set(stated))
    assert len(rows) < 12  # a tree of five classes has few ways to end
    assert sum(row.items for row in rows) == 4000
    assert min(row.items for row in rows) >= 40


# ------------------------------------------------------------------ the verb


def test_simulate_compares_in_a_table_and_draws(tmp_path, capsys):
    picture = tmp_path / "policies.svg"
    words = ["simulate", "example:table1", "--compare", "--items", 400, "--target-error", 0.03]
    assert run(*words, "--draw", picture) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "needs fewest answers" in lines[0]
    table = [line for line in lines if line.startswith("paper, curtailed")]
    assert len(table) == 1
    assert "exact" in table[0]
    assert max(len(line) for line in lines if "policies.svg" not in line) <= 80
    assert picture.read_text().startswith("<svg")
    assert run(*words, "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["policies"]) == 9


def test_simulate_draws_one_policy(tmp_path, capsys):
    picture = tmp_path / "run.png"
    assert run("simulate", "example:table1", "--items", 500, "--draw", picture) == 0
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert "misclassified" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--target-error", "1e-12", "--max-answers", "2"], "needs at least"),
        (["--max-answers", "2"], "--max-answers is 2, which leaves an error of"),
        (["--max-answers", "0"], "--max-answers: expected a whole number"),
        (["--engine", "spark"], "engine: 'spark' is unknown; use \"local\""),
        (["--engine", "dask://127.0.0.1:1"], "engine: "),
        (["--jobs", "0", "--items", "50000"], "jobs: expected a number of processes"),
        (["--items", "0"], "items: expected a whole number"),
        (["--compare", "--spammers", "0.1", "--jobs", "2"], "leave out --spammers, --jobs"),
        (["--draw", "run.gif"], "cannot write '.gif'"),
        (["--true-errors", "-1"], "--true-errors: expected 0 or more"),
    ],
)
def test_simulate_mistakes_get_one_line(words, says, capsys, monkeypatch, tmp_path):
    from crowdtree.simulation import execution

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(execution, "CONNECT_SECONDS", 0.5)
    assert run("simulate", "example:table1", "--items", "10", *words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1, shown.err
    assert says in shown.err
