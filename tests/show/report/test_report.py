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
from crowdtree.core.text import number, percent, percent_range
from crowdtree.designs.frontiers import Goal
from crowdtree.planning import best_adaptive
from crowdtree.show.report import Example, LiveCampaign, LiveWorker, report_html, write_report
from tests.show.report.helpers import table_plan

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
            self.text.append(data.replace("\u00a0", " "))


def read(page: str) -> Checker:
    found = Checker()
    found.feed(page)
    found.close()
    assert found.open == []
    return found


@pytest.fixture(scope="module")
def animals() -> tuple[ct.Plan, str]:
    tree = ct.design(ct.example("animals"))
    plan = ct.staff(tree, workers=4 * tree.n_nodes)
    return plan, report_html(plan)


def words_of(page: str) -> str:
    return re.sub(r"\s+", " ", " ".join(read(page).text))


def test_other_plans_are_shown_at_the_end(animals: tuple[ct.Plan, str]):
    sources = [ct.Source("people"), ct.Source("gpt-x", "model", price=0.1, worker_error=0.2)]
    problem = ct.Problem(["cat", "dog"], None, ["barks"], [[0, 1]], 0.1, sources=sources)
    examples = [
        Example("Several answers", "A field guide.", ct.design(ct.example("leaves"))),
        Example("A mix", "People and models.", ct.plan(problem, error=0.05, time_limit=0)),
    ]
    words = words_of(report_html(animals[0], examples=examples))
    last = words[words.index("Several answers A field guide.") :]
    assert "in turns spruce" in last
    assert last.index("A mix People and models.") < last.index("people only")


def test_classes_that_no_question_separates_are_named():
    outcome = [["red", "red", "brown", "white"], ["-", "-", "pores", "gills"]]
    problem = ct.Problem(["morel", "false morel", "cep", "cap"], None, ["cap", "under"], outcome,
                         0.1, answers=[["red", "brown", "white"], ["pores", "gills"]])  # fmt: skip
    says = "What to do next Add a question that separates morel and false morel. "
    assert says in words_of(report_html(ct.plan(problem, error=0.3, allow_groups=True)))
    assert says in words_of(report_html(ct.design(problem, allow_groups=True)))


def test_a_plan_and_what_an_adaptive_policy_would_do_come_first(animals: tuple[ct.Plan, str]):
    plan, page = animals
    found, words = read(page), words_of(page)
    parts = ["this plan", "adaptive policy", "one worker per question", "Cost", "How sure",
             "What to do next", "The tree", "What each label is worth"]  # fmt: skip
    places = [words.index(part) for part in parts]
    assert places == sorted(places)
    value = ct.evaluate(plan)
    wrong, answers = percent(value.misclassification), number(value.expected_answers)
    assert f"{wrong} wrong labels with {answers} answers per item" in words
    assert f"this plan {wrong} exact {answers}" in words
    adaptive = best_adaptive(plan.tree.problem, Goal(error=value.misclassification))
    cells = f"{percent(adaptive.error)} {percent_range(*adaptive.error.interval)}"
    assert f"adaptive policy {cells} {number(adaptive.answers)}" in words
    assert adaptive.answers < value.expected_answers
    assert "The best fixed tree" not in words
    assert all(name in words for name in plan.tree.problem.classes)
    assert all(node.text in words for node in plan.tree.nodes)
    assert len(found.ids) == len(set(found.ids))
    for row in value.classes:
        shares = [percent(share) for share in (row.share, row.recall, row.precision)]
        assert f"{row.name} {' '.join(shares)}" in words


@pytest.fixture(scope="module")
def choices() -> ct.PlanChoices:
    problem = ct.example("table1")
    prices = dict.fromkeys(problem.questions, 0.02) | {problem.questions[0]: 0.05}
    return ct.plan(problem, error=0.02, price=prices)


def test_the_recommended_policy_comes_first_and_the_fixed_tree_second(choices: ct.PlanChoices):
    words = words_of(report_html(choices))
    best, tree = choices.recommended.performance, choices.tree.performance
    assert choices.recommended.kind == "adaptive"
    parts = [choices.reason, "adaptive policy " + percent(best.error), "fixed tree, votes",
             *choices.notes, "At a price", "How often each question", "What each label is worth",
             "The best fixed tree", "To print or to explain"]  # fmt: skip
    places = [words.index(part) for part in parts]
    assert places == sorted(places)
    for name, row, sure in (
        ("adaptive policy", best, percent_range(*best.error.interval)),
        (choices.tree.name, tree, "exact"),
    ):
        cells = (percent(row.error), sure, number(row.answers), number(row.cost))
        assert f"{name} {' '.join(cells)}" in words
    assert f"answers and a cost of {number(best.cost)} per item" in words
    whole = number(float(f"{1000 * best.cost:.3g}"))
    assert f"At a price of 0.02 to 0.05 per answer that is {whole}." in words
    assert "For example" not in words
    assert choices.headline in choices._repr_html_()
    assert choices.tree.proof in choices._repr_html_()
    with pytest.raises(ct.CrowdtreeError, match="its own prices"):
        report_html(choices, price=1.0)


def test_labels_and_questions_are_those_of_the_recommended_policy(choices: ct.PlanChoices) -> None:
    words = words_of(report_html(choices))
    problem = choices.problem
    run = ct.simulate(problem, choices.policy, items=20_000)
    for name, often in run.answers_per_question.items():
        assert f"{problem.text(problem.question_index(name))} {often:.2f}" in words
    for c, name in enumerate(problem.classes):
        mine = run.truth_index == c
        right = 1 - run.posterior_error[run.label_index == c].mean()
        cells = (percent(problem.prior[c]), f"{run.answers[mine].mean():.1f}", percent(right))
        assert f"{name} {' '.join(cells)}" in words


def test_a_recommended_tree_is_the_main_part() -> None:
    sure = ct.example("table1").replace(worker_error=0.0)
    choices = ct.plan(sure, error=0.02)
    assert choices.recommended.kind == "tree"
    words = words_of(report_html(choices))
    assert "The tree" in words
    assert "The best fixed tree" not in words
    assert "Recall: of the items" in words


def test_undecided_items_are_reported() -> None:
    plan = table_plan().leaving_undecided([0])
    assert plan is not None
    words = " ".join(read(report_html(plan)).text)
    value = ct.evaluate(plan)
    assert f"{percent(value.undecided)} of all items are left undecided" in words
    assert "never given" in words
    assert f"{percent(value.decided_error)} wrong labels" in words


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
    problem, value = plan.tree.problem, ct.evaluate(plan)
    deadly = problem.prior @ (value.confusion * (problem.loss.matrix == 1000)).sum(axis=1)
    assert f"{percent(deadly)} of the items get a label that costs 1,000" in text


def test_the_price_of_a_report_is_an_example_unless_it_is_given():
    assert "For example, at 0.05 per answer" in report_html(table_plan())
    assert "At a price of 0.05 per answer" in report_html(table_plan(), price=0.05)


def test_a_price_of_the_report_is_for_choices_without_prices() -> None:
    choices = ct.plan(ct.example("table1"), error=0.02)
    words = " ".join(read(report_html(choices, price=0.5)).text)
    cost = 0.5 * choices.recommended.performance.answers
    assert f"At a price of 0.5 per answer that is {number(float(f'{1000 * cost:.3g}'))}." in words
    assert number(cost) in words


@pytest.mark.parametrize("width", [390, 1280])
def test_the_answer_is_on_the_first_screen_and_nothing_is_cut(
    width: int, choices: ct.PlanChoices, browser: Any, tmp_path: Path
) -> None:
    crowd = [LiveWorker("ann", 10, 0.9, 0.92, "active")]
    live = LiveCampaign(["c1"] * 3, ["c1"] * 3, 20, 6, 0.1, crowd, price=0.02)
    path = write_report(tmp_path / "report.html", choices, live=live)
    with closing(browser.new_page(viewport={"width": width, "height": 844})) as page:
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        cut = "e => e.filter(e => e.scrollWidth > e.clientWidth + 1).length"
        assert page.eval_on_selector_all(".scroll, figure, table", cut) == 0
        shown = page.locator(".main table").bounding_box()
        assert shown["y"] + shown["height"] <= 844
