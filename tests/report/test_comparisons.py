"""Other designs and staffings beside the plan."""

from __future__ import annotations

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.report import design_rows, report_html, staffing_rows
from report.helpers import table_plan


def test_designs_are_compared_exactly_where_all_orders_can_be_tried() -> None:
    rows = design_rows(ct.evaluate(table_plan()))
    by_name = {row["name"]: row for row in rows}
    assert by_name["fm"]["value"] == pytest.approx(0.08231187, abs=6e-9)
    assert by_name["fm"]["kind"] == "ours"
    assert by_name["mean of random orders"]["value"] == pytest.approx(0.10934, abs=5e-6)
    assert "low" not in by_name["mean of random orders"]


def test_a_sampled_mean_is_called_an_estimate_and_has_an_interval() -> None:
    value = ct.evaluate(ct.design(ct.example("animals")))
    row = design_rows(value)[-1]
    assert row["label"].startswith("estimate")
    assert row["low"] < row["value"] < row["high"]
    assert design_rows(value)[-1] == row  # the same sample each time


def test_a_tree_of_another_design_is_the_chosen_one() -> None:
    rows = design_rows(ct.evaluate(ct.design(ct.example("table1"), "fc-printed")))
    assert rows[0]["name"] == "fc-printed (this tree)"
    assert [row["kind"] for row in rows].count("ours") == 1


def test_the_staffing_curve_covers_the_plan() -> None:
    plan = table_plan()
    rows = staffing_rows(ct.evaluate(plan))
    extra = plan.workers - plan.tree.n_nodes
    assert max(row["x"] for row in rows) >= extra
    assert all(row["x"] % 2 == 0 for row in rows)
    start = {row["y"] for row in rows if row["x"] == 0}
    assert max(start) - min(start) < 1e-12
    for row in rows:
        if row["series"] == "marginal":
            made = ct.evaluate(ct.staff(plan.tree, row["x"])).misclassification
            assert row["y"] == made


def test_large_trees_sample_the_random_staffing() -> None:
    rng = np.random.default_rng(0)
    problem = ct.Problem(
        [f"c{i}" for i in range(70)], None, [f"q{i}" for i in range(30)],
        rng.integers(0, 2, (30, 70)), 0.1,
    )  # fmt: skip
    page = report_html(ct.design(problem))
    assert "an estimate from 30 draws" in page
    rows = staffing_rows(ct.evaluate(ct.design(problem)))
    assert "single" not in {row["series"] for row in rows}
    sampled = [row for row in rows if row["series"] == "random" and row["x"]]
    assert all(row["low"] <= row["y"] <= row["high"] for row in sampled)
