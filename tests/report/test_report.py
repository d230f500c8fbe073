"""The page about a plan."""

from __future__ import annotations

import re
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.report import report_html, write_report
from crowdtree.text import number, percent
from report.helpers import table_plan

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
    headings = [
        "What a label is worth", "What to do next", "The tree", "What each label is worth",
        "Confusions", "Alternatives", "The plan, question by question", "Appendix", "Levels",
        "Bounds", "Other designs",
    ]  # fmt: skip
    places = [words.index(f" {heading}") for heading in headings]
    assert places == sorted(places)  # what a manager needs first, the paper's notation last
    assert not re.search(r"F\^|entropy|H\(L0\)|P_m", words[: words.index("Appendix")])
    assert all(name in words for name in plan.tree.problem.classes)
    for node in plan.tree.nodes:
        assert node.text in words
        assert percent(float(plan.node_error[node.index] / node.share)) in words
    for method in ("marginal", "paper-fm", "paper-fc", "random", "single", "everyone"):
        assert method in words
    assert len(found.ids) == len(set(found.ids))


def test_the_summary_says_what_a_label_is_worth(animals: tuple[ct.Plan, str]) -> None:
    plan, page = animals
    words = " ".join(read(page).text)
    head = words[: words.index("The tree")]
    value = ct.evaluate(plan)
    worst = min(value.classes, key=lambda row: row.precision)
    assert f"{percent(worst.precision)} are {worst.name}" in head
    assert f"mostly {worst.confused_with}" in head
    for row in value.classes:
        cells = [percent(share) for share in (row.share, row.labelled, row.recall, row.precision)]
        assert re.search(rf"{row.name}\s+" + r"\s+".join(cells), words), row.name


def test_the_adaptive_policy_stands_beside_the_plan(animals: tuple[ct.Plan, str]) -> None:
    plan, page = animals
    words = " ".join(read(page).text)
    wrong = percent(ct.evaluate(plan).misclassification)
    table = words[words.index(" Alternatives") :]
    assert re.search(rf"this plan\s+{wrong}", table)
    assert f"adaptive, target {wrong}" in table
    assert "2,000 simulated items, 95 % interval" in table


def test_undecided_items_are_reported() -> None:
    plan = table_plan().leaving_undecided([0])
    assert plan is not None
    words = " ".join(read(report_html(plan)).text)
    value = ct.evaluate(plan)
    assert f"{percent(value.undecided)} of all items are left undecided" in words
    assert "never given" in words
    assert f"{percent(value.decided_error)} of the labelled items get a wrong label" in words


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


def test_a_violated_printed_lower_bound_is_marked() -> None:
    words = " ".join(read(report_html(ct.design(ct.example("table1")))).text)
    assert words.count("printed; does not hold") == 2  # of P_m and of P_c
    staffed = " ".join(read(report_html(table_plan())).text)
    assert "printed; its lower end is not a bound" in staffed


def test_the_page_fetches_nothing_and_supports_dark_mode(animals: tuple[ct.Plan, str]) -> None:
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


def test_groups_margins_and_error_free_workers_are_reported() -> None:
    problem = ct.Problem(["a", "b", "c"], [0.5, 0.3, 0.2], ["q"], [[0, 1, 1]], 0.1)
    tree = ct.design(problem, allow_groups=True)
    assert "lead" in " ".join(read(report_html(ct.Plan(tree, np.array([3]), vote="margin"))).text)
    faultless = ct.design(ct.example("table1").replace(worker_error=0.0))
    assert "0 %" in " ".join(read(report_html(faultless)).text)


def test_the_extension_is_html(tmp_path: Path) -> None:
    assert write_report(tmp_path / "r.html", table_plan()).read_text().startswith("<!doctype html>")
    with pytest.raises(ct.CrowdtreeError, match=r"use \.html or \.htm"):
        write_report(tmp_path / "r.pdf", table_plan())
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


def test_a_report_of_a_problem_with_a_loss_shows_what_mistakes_cost():
    plan = ct.staff(ct.design(ct.example("mushrooms")), workers=20)
    checker = Checker()
    checker.feed(report_html(plan))
    text = " ".join(checker.text)
    assert f"expected loss {number(ct.evaluate(plan).risk)}" in text
    assert "The costliest confusion is" in text
    problem, value = plan.tree.problem, ct.evaluate(plan)
    deadly = problem.prior @ (value.confusion * (problem.loss.matrix == 1000)).sum(axis=1)
    assert f"{percent(deadly)} of the items get a label that costs 1,000" in text


def test_the_price_of_a_report_is_an_example_unless_it_is_given():
    assert "For example, at 0.05 per answer" in report_html(table_plan())
    assert "At a price of 0.05 per answer" in report_html(table_plan(), price=0.05)


def test_the_cost_is_that_of_the_recommended_policy_at_the_prices_of_the_plan() -> None:
    problem = ct.example("table1")
    prices = dict.fromkeys(problem.questions, 0.02) | {problem.questions[0]: 0.05}
    choices = ct.plan(problem, error=0.02, price=prices)
    words = re.sub(r"\s+", " ", " ".join(read(report_html(choices)).text))
    best, tree = choices.recommended.performance, choices.tree.performance
    whole = number(float(f"{1000 * best.cost:.3g}"))
    assert f"At a price of 0.02 to 0.05 per answer that is {whole}." in words
    assert "For example" not in words
    assert "this plan" not in words
    table = words[words.index(" Alternatives") :]
    for name, row in (("adaptive policy", best), ("until a lead", tree)):
        cells = (percent(row.error), number(row.answers), number(row.cost))
        assert f"{name} {' '.join(cells)}" in table
    assert "adaptive, target" not in table
    plain = ct.evaluate(choices.fixed_plan.tree)
    asked = [problem.questions[q] for q in plain.tree.question]
    cost = sum(n * prices[name] for n, name in zip(plain.answers_by_node, asked, strict=True))
    assert f"{number(plain.expected_answers)} {number(cost)} exact" in table
    with pytest.raises(ct.CrowdtreeError, match="its own prices"):
        report_html(choices, price=1.0)


def test_a_price_of_the_report_is_for_choices_without_prices() -> None:
    choices = ct.plan(ct.example("table1"), error=0.02)
    words = " ".join(read(report_html(choices, price=0.5)).text)
    cost = 0.5 * choices.recommended.performance.answers
    assert f"At a price of 0.5 per answer that is {number(float(f'{1000 * cost:.3g}'))}." in words
    assert number(cost) in words


def test_a_phone_shows_the_cost_of_the_choices(browser: Any, tmp_path: Path) -> None:
    choices = ct.plan(ct.example("table1"), error=0.02, price=0.02)
    path = write_report(tmp_path / "report.html", choices)
    with closing(browser.new_page(viewport={"width": 390, "height": 844})) as page:
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        for head in page.locator("th:text-is('cost per item')").all():
            box = head.bounding_box()
            assert box["x"] + box["width"] <= 390
