"""Every kind of chart at 8, 30, 100 and 200 classes: nothing is clipped, hidden or without a name.

Widths are those of a wide font, so that what holds here holds in other fonts as well.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import crowdtree as ct
from tests.show.plots.helpers import SVG, Box, some_problem, text_boxes, view_box

SIZES = [8, *(pytest.param(n, marks=pytest.mark.slow) for n in (30, 100, 200))]
POLICIES = (
    "adaptive", "frontier, margin", "frontier, majority", "paper", "paper, curtailed",
    "paper, margin", "batch, nearest", "batch, posterior", "batch, Dawid-Skene", "floor", "guide",
)  # fmt: skip


def outside(svg: str) -> list[str]:
    box = view_box(svg)
    return [
        text.name
        for text in text_boxes(svg)
        if text.left < box.left - 0.5
        or text.top < box.top - 0.5
        or text.right > box.right + 0.5
        or text.bottom > box.bottom + 0.5
    ]


def overlapping(svg: str) -> list[tuple[str, str]]:
    """Pairs of texts that lie on each other; the halo behind a name is the name itself."""
    texts = {text for text in text_boxes(svg) if upright(text)}
    return [(a.name, b.name) for a, b in combinations(texts, 2) if shrunk(a).meets(shrunk(b))]


def upright(text: Box) -> bool:
    """Whether a box is a line of text and not the hull of a slanted one."""
    return text.bottom - text.top < 20


def shrunk(box: Box) -> Box:
    """Without the margin for wide fonts."""
    trim = 0.075 * (box.right - box.left)
    return Box(box.name, box.left + trim, box.top + 1, box.right - trim, box.bottom - 1)


def lines_drawn(svg: str) -> set[str]:
    """Names of the lines that have an extent, and of the dots."""
    found = set()
    for path in ET.fromstring(svg).iter(SVG + "path"):
        role, way = path.get("aria-roledescription"), path.get("d", "")
        if role == "circle" or (role == "line mark" and re.search(r"L", way)):
            found.add(str(path.get("aria-label")))
    return found


def check(svg: str, *, slanted: bool = False) -> None:
    assert outside(svg) == []
    if not slanted:
        assert overlapping(svg) == []


def check_curves(svg: str) -> None:
    check(svg)
    written = {text.name for text in text_boxes(svg)}
    drawn = lines_drawn(svg)
    assert drawn
    assert drawn <= written  # every line has a name, and below every name of a line has a line
    named = {text.get("aria-label") for text in ET.fromstring(svg).iter(SVG + "text")} & written
    assert named <= drawn


@pytest.mark.parametrize("n", SIZES)
def test_the_charts_of_a_plan(n: int) -> None:
    from crowdtree.show.plots import confusion, levels, vega

    value = ct.evaluate(ct.staff(ct.design(some_problem(n)), workers=4 * n))
    check(vega.chart_svg(levels.level_chart(value.plan.levels)))
    classes = value.tree.problem.classes
    chart = confusion.confusion_chart(value.confusion, classes, title="Labels of each class")
    check(vega.chart_svg(chart), slanted=True)


@pytest.mark.parametrize("n", SIZES)
def test_the_chart_of_a_frontier(n: int) -> None:
    from crowdtree.designs.frontiers.compare import compare
    from crowdtree.show.plots.frontiers import frontier_chart
    from crowdtree.show.plots.vega import chart_svg

    front = ct.frontier(some_problem(n), "margin", method="greedy", max_points=8)
    svg = chart_svg(frontier_chart(compare(front), front.points[3], most_votes=51))
    check_curves(svg)
    words = " ".join(text.name for text in text_boxes(svg))
    for name in ("Co-design", "Paper", "Everyone", "Random", "Lower limit", "Ideal"):
        assert f"{name}: " in words  # explained
    assert "at most 51 votes per question" in words


def curves() -> list[Any]:
    from crowdtree.simulation.compare import CurveRow

    return [
        CurveRow(name, answers, wrong, 0.8 * wrong, 1.2 * wrong)
        for place, name in enumerate(POLICIES)
        for answers in (2.0 + place, 6.0 + 2 * place, 20.0 + 3 * place)
        for wrong in [0.6 / (answers - place) ** (1.1 + place % 3)]
    ]


def test_many_lines_have_a_legend_and_a_line_of_one_point_is_a_dot() -> None:
    from crowdtree.show.plots.policies import policy_chart
    from crowdtree.show.plots.vega import chart_svg

    rows = curves()
    lone = [row for row in rows if row.series != "paper"]
    lone += [row for row in rows if row.series == "paper"][:1]
    svg = chart_svg(policy_chart(lone, 0.05))
    check_curves(svg)
    assert {"paper", "adaptive", "lower limit (Fano)", "ideal (Burnashev)"} <= lines_drawn(svg)
    dots = [p for p in ET.fromstring(svg).iter() if p.get("aria-roledescription") == "circle"]
    assert [dot.get("aria-label") for dot in dots] == ["paper"]


def test_lines_that_coincide_share_a_name() -> None:
    from crowdtree.show.plots.curves import curve_chart
    from crowdtree.show.plots.vega import chart_svg

    rows = [
        {"series": name, "kind": kind, "x": float(x), "y": base**x}
        for name, kind, base in (("b", "paper", 0.5), ("a", "ours", 0.5), ("c", "paper", 0.6))
        for x in (1, 2, 3)
    ]
    svg = chart_svg(curve_chart(rows, title="A title", x="x"))
    check_curves(svg)
    assert lines_drawn(svg) == {"b, a", "c"}


def test_a_line_that_leaves_the_chart_ends_at_its_edge() -> None:
    from crowdtree.show.plots.curves import curve_chart
    from crowdtree.show.plots.vega import chart_svg

    rows = [
        {"series": name, "kind": kind, "x": x, "y": y}
        for name, kind, last in (("kept", "ours", 0.01), ("gone", "baseline", 0.0))
        for x, y in ((1.0, 0.3), (2.0, last))
    ]
    svg = chart_svg(curve_chart(rows, title="A title", x="x"))
    check_curves(svg)
    assert lines_drawn(svg) == {"kept", "gone"}


@pytest.mark.parametrize("n", SIZES)
def test_where_policies_spend_their_answers(n: int) -> None:
    from crowdtree.show.plots.policies import spending_chart
    from crowdtree.show.plots.vega import chart_svg

    texts = [f"{'Is it a very large animal ' * 4}{i}?" for i in range(40)]
    problem = some_problem(n).replace(texts=texts)
    spent = dict(zip(problem.questions, np.linspace(1, 0.001, 40).tolist(), strict=True))

    class Run:
        answers_per_question = spent
        answers_per_item = sum(spent.values())

    Run.problem = problem  # type: ignore[attr-defined]
    svg = chart_svg(spending_chart({"adaptive": Run(), "paper, margin": Run()}))
    check(svg)
    bars = [p for p in ET.fromstring(svg).iter() if p.get("aria-roledescription") == "bar"]
    assert len(bars) == 2 * 16  # like texts keep their own row
    alone = chart_svg(spending_chart({"adaptive": Run()}))
    check(alone)
    assert "own scale" not in alone
    assert longest_bar(alone) > 2 * longest_bar(svg)


def longest_bar(svg: str) -> float:
    bars = [p for p in ET.fromstring(svg).iter() if p.get("aria-roledescription") == "bar"]
    return max(float(re.findall(r"h(-?[\d.]+)", bar.get("d", ""))[0]) for bar in bars)


def test_the_costs_of_policies_are_in_order_and_missing_ones_are_named() -> None:
    from crowdtree.show.plots.policies import policy_chart
    from crowdtree.show.plots.vega import chart_svg
    from crowdtree.simulation.compare import CurveRow

    def row(series: str, answers: float, error: float) -> CurveRow:
        return CurveRow(series, answers, error, error, error, None)

    # the plan that was chosen for the error comes after the points of its frontier
    rows = [row("frontier, margin", x, e) for x, e in ((2, 0.3), (9, 0.001), (5, 0.05))]
    rows += [row("paper", 3, 0.3), row("paper", 8, 0.04), row("batch, nearest", 40, 0.001)]
    chart = policy_chart(rows, 0.05)
    assert "always below 0.5 %: batch, nearest." in json.dumps(chart.to_dict())
    drawn = chart.to_dict()["datasets"].values()
    line = [r["x"] for rows in drawn for r in rows if r.get("series") == "frontier, margin"]
    assert line == sorted(line)
    check_curves(chart_svg(chart))


def test_few_checks_are_counted_in_whole_numbers() -> None:
    audit = ct.Audit(["a", "b", "c", "d"], ["x"] * 4, [0.1] * 4)
    for item in audit.next(3):
        audit.record(item, "x")
    assert "1.5" not in re.findall(r">([\d.]+)<", str(audit.draw()))


def test_the_chart_of_an_audit_and_of_the_workers() -> None:
    from types import SimpleNamespace

    from crowdtree.show.plots.audits import audit_chart
    from crowdtree.show.plots.live import trust_chart
    from crowdtree.show.plots.vega import chart_svg

    history = [
        SimpleNamespace(checks=k, upper=0.3 / k, low=0.05 / k, high=0.2 / k, estimate=0.1 / k)
        for k in range(1, 300)
    ]
    check_curves(chart_svg(audit_chart(history, 0.95, 0.02)))
    rows = [
        {"name": f"w{i}", "right": 0.5 + i / 80, "reliability": 0.5 + i / 90, "kind": kind}
        for i, kind in enumerate(["spammer"] * 3 + ["worker"] * 30)
    ]
    check(chart_svg(trust_chart(rows)))
