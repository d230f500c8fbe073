"""The report page: complete, honest about what is exact, safe, self-contained."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.report import design_rows, report_html, staffing_rows, write_report
from crowdtree.text import percent

VOID = {"meta", "br"}


class Checker(HTMLParser):
    """Counts tags and refuses those that do not nest."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.ids += [value or "" for key, value in attrs if key == "id"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.text.append(data)


def read(page: str) -> Checker:
    found = Checker()
    found.feed(page)
    found.close()
    assert found.open == []
    return found


def table_plan() -> ct.Plan:
    return ct.staff(ct.design(ct.example("table1")), workers=8)


@pytest.fixture(scope="module")
def table_page() -> str:
    return report_html(table_plan())


@pytest.fixture(scope="module")
def animals() -> tuple[ct.Plan, str]:
    tree = ct.design(ct.example("animals"))
    plan = ct.staff(tree, workers=4 * tree.n_nodes)
    return plan, report_html(plan)


def test_the_summary_comes_first(table_page: str) -> None:
    words = " ".join(read(table_page).text)
    value = ct.evaluate(table_plan())
    head = words[: words.index("The tree")]
    assert percent(value.misclassification) in head
    assert f"{value.expected_answers:.3g}" in head
    assert str(table_plan().workers) in head


def test_every_section_is_there(animals: tuple[ct.Plan, str]) -> None:
    plan, page = animals
    found = read(page)
    words = " ".join(found.text)
    for heading in ("The tree", "The plan", "Staffing", "Levels", "Bounds", "Confusions", "Other"):
        assert heading in words
    assert all(name in words for name in plan.tree.problem.classes)
    for node in plan.tree.nodes:
        assert node.text in words
        assert percent(float(plan.node_error[node.index] / node.share)) in words
    for method in ("marginal", "paper-fm", "paper-fc", "random", "single", "everyone"):
        assert method in words
    assert len(found.ids) == len(set(found.ids))


def test_every_quantity_says_what_it_is(table_page: str) -> None:
    words = " ".join(read(table_page).text)
    for label in (
        "exact",
        "bound",
        "approximation",
        "does not hold",
        "exact mean of all 120 orders",
    ):
        assert label in words
    bounds = ct.evaluate(table_plan()).bounds
    assert f"{bounds.printed_correct.lower:.4g}" in words
    assert f"{bounds.product.lower:.4g}" in words


def test_the_printed_lower_bound_is_called_broken_where_it_is() -> None:
    words = " ".join(read(report_html(ct.design(ct.example("table1")))).text)
    assert words.count("printed; does not hold") == 2  # of P_m and of P_c
    staffed = " ".join(read(report_html(table_plan())).text)
    assert "printed; its lower end is no bound" in staffed


def test_the_page_fetches_nothing_and_goes_dark(animals: tuple[ct.Plan, str]) -> None:
    _, page = animals
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!#)|url\(|https?://(?!www\.w3\.org)""", page)
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page


def test_user_text_is_escaped() -> None:
    nasty = ['<script>alert("x")</script>', "a & b", "</td></svg>", "{{ 7 * 7 }}"]
    problem = ct.Problem(nasty, None, [f"<i>{i}" for i in range(4)], np.eye(4), 0.1)
    page = report_html(ct.design(problem), title="<script>")
    assert page.count("<script>") == 1  # our own
    words = " ".join(read(page).text)
    assert all(name in words for name in nasty)
    assert "<i>" not in page


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


def test_groups_margins_and_faultless_workers_are_reported() -> None:
    problem = ct.Problem(["a", "b", "c"], [0.5, 0.3, 0.2], ["q"], [[0, 1, 1]], 0.1)
    tree = ct.design(problem, allow_groups=True)
    assert "lead" in " ".join(read(report_html(ct.Plan(tree, np.array([3]), vote="margin"))).text)
    faultless = ct.design(ct.example("table1").replace(worker_error=0.0))
    assert "0 %" in " ".join(read(report_html(faultless)).text)


def test_the_ending_is_html(tmp_path: Path) -> None:
    assert write_report(tmp_path / "r.html", table_plan()).read_text().startswith("<!doctype html>")
    with pytest.raises(ct.CrowdtreeError, match=r"use \.html or \.htm"):
        write_report(tmp_path / "r.pdf", table_plan())
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]
