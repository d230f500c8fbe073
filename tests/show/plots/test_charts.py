"""Charts: text in our colours, in every format."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.show.plots import style
from tests.show.plots.helpers import SVG, external, some_problem

CURVES = [
    {"series": name, "kind": kind, "x": x, "y": 0.3 * base**x, "low": 0.0, "high": 0.4 * base**x}
    for name, kind, base in (
        ("ours", "ours", 0.7),
        ("theirs", "paper", 0.71),
        ("<b>&", "baseline", 0.2),
    )
    for x in range(11)
]


def chart_texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(SVG + "text")]


def make_charts() -> dict[str, object]:
    from crowdtree.show.plots import confusion, curves, levels

    value = ct.evaluate(ct.design(ct.example("table1")))
    classes = value.tree.problem.classes
    return {
        "curve": curves.curve_chart(CURVES, title="A title", x="extra workers"),
        "level": levels.level_chart(value.plan.levels),
        "confusion": confusion.confusion_chart(value.confusion, classes, title="A title"),
    }


@pytest.mark.parametrize("name", ["curve", "level", "confusion"])
def test_charts_are_text_in_our_colours_and_in_every_format(name: str, tmp_path: Path) -> None:
    from crowdtree.show.plots import vega

    chart = make_charts()[name]
    svg = draw_into(chart, tmp_path / "c.svg").decode()
    assert len(chart_texts(svg)) > 4
    page = draw_into(chart, tmp_path / "c.html").decode()
    assert external(page) == []
    inside = page[page.index("<figure") : page.index("</figure>")]
    assert not set(re.findall(r"#[0-9a-f]{6}\b", inside)) & set(asdict(style.LIGHT).values())
    assert "var(--ct-" in inside
    assert draw_into(chart, tmp_path / "c.png")[:4] == b"\x89PNG"
    assert "vega-lite" in json.loads(draw_into(chart, tmp_path / "c.json"))["$schema"]
    with pytest.raises(ct.CrowdtreeError, match=r"use \.svg"):
        vega.draw_chart(chart, tmp_path / "c.pdf")


def draw_into(chart: object, path: Path) -> bytes:
    from crowdtree.show.plots import vega

    return vega.draw_chart(chart, path).read_bytes()


def test_curves_are_labelled_directly_and_leave_the_chart_below_what_matters() -> None:
    from crowdtree.show.plots import vega

    words = chart_texts(vega.chart_svg(make_charts()["curve"]))
    assert {"A title", "extra workers", "misclassified items", "ours", "theirs", "<b>&"} <= set(
        words
    )
    assert "10 %" in words
    assert "0.0001 %" not in words  # the third curve falls to 3e-8


def test_labels_at_the_end_of_lines_stay_apart() -> None:
    from crowdtree.show.plots.line_labels import _apart

    placed = _apart([3.0, 4.0, 5.0, 90.0, 3.5], [1, 1, 1, 1, 2], 14.0, lowest=8.0)
    column = sorted(placed[:4])
    assert all(b - a >= 14 - 1e-9 for a, b in pairwise(column))
    assert min(placed) >= 8
    assert placed[3] == 90


def test_the_chief_line_keeps_its_name_at_its_end() -> None:
    from crowdtree.show.plots.line_labels import end_labels
    from crowdtree.show.plots.vega import alt

    ends = {"random": (90.0, 0.06), "paper": (84.0, 0.05), "co-design": (82.0, 0.05)}
    kinds = {"paper": "paper", "co-design": "ours"}
    rows = [
        {"series": name, "kind": kinds.get(name, "baseline"), "x": x, "y": y}
        for name, (x, y) in ends.items()
    ]
    scale = alt.Scale(domain=[0.0, 1.0])
    names = end_labels(rows, scale, False, lambda x: x)[-1].to_dict()["datasets"].popitem()[1]
    heights = {row["label"]: row["y"] for row in names}
    assert heights["co-design"] == pytest.approx(0.05)
    assert len({round(y, 2) for y in heights.values()}) == 3


@pytest.mark.parametrize(("n", "most"), [(5, 5), (20, 20), (60, 60), (200, 60)])
def test_confusion_labels_are_thinned(n: int, most: int) -> None:
    from crowdtree.show.plots import confusion, vega

    value = ct.evaluate(ct.design(some_problem(n)))
    classes = value.tree.problem.classes
    chart = confusion.confusion_chart(value.confusion, classes, title="t")
    words = chart_texts(vega.chart_svg(chart))
    rows = [word for word in words if word in set(classes)]
    assert 2 * min(n, 5) <= len(rows) <= 2 * most
    spec = chart.to_dict()
    names = {layer["data"]["name"] for layer in spec["layer"][:2]}
    cells = sum(len(spec["datasets"][name]) for name in names)
    assert cells <= confusion.MOST_CELLS
    assert "Orange: wrong" in str(chart.to_dict()["title"])
    if n <= 8:
        assert cells == np.count_nonzero(value.confusion >= 1e-12)


def test_a_frontier_is_drawn(tmp_path: Path) -> None:
    from crowdtree.designs.frontiers.compare import Row
    from crowdtree.show.plots.frontiers import frontier_chart
    from crowdtree.show.plots.vega import draw_chart

    rows = [
        Row(series, cost, wrong := (base / 10) ** cost, wrong, wrong)
        for base, series in enumerate(("floor", "guide", "ours", "paper", "random", "everyone"), 3)
        for cost in (1.0, 2.0, 3.0)
    ]
    svg = draw_chart(frontier_chart(rows), tmp_path / "f.svg").read_text()
    assert {"co-design", "paper", "lower limit (Fano)"} <= set(chart_texts(svg))
    assert "expected answers per item" in chart_texts(svg)


def test_a_priced_frontier_marks_the_plan_at_its_price() -> None:
    from types import SimpleNamespace

    from crowdtree.designs.frontiers.compare import Row
    from crowdtree.show.plots.frontiers import frontier_chart

    errors = {"ours": 0.1, "paper": 0.2}
    rows = [Row(name, cost, e, e, e) for name, e in errors.items() for cost in (1.0, 2.0)]
    chosen = SimpleNamespace(
        decided_error=0.1, undecided=0.0, expected_cost=1.5, expected_answers=30.0
    )
    made = frontier_chart(rows, chosen, cost="price").to_dict()
    data = [row for name in made["datasets"] for row in made["datasets"][name]]
    assert [row["x"] for row in data if str(row.get("label", "")).startswith("10 %")] == [1.5]
    lines = [row["series"] for row in data if "series" in row]
    assert lines[-1] == "co-design"  # drawn last, so that no other line hides it


def test_a_band_stays_around_its_line_where_the_line_leaves_the_chart() -> None:
    from crowdtree.show.plots.curves import _line_above

    line = [
        {"series": "a", "x": 10.0, "y": 0.1, "low": 0.07, "high": 0.13},
        {"series": "a", "x": 60.0, "y": 0.0, "low": 0.0, "high": 0.013},
    ]
    cut = list(_line_above(line, 0.001, log_x=True))[-1]
    assert cut["low"] < cut["y"] == 0.001 < cut["high"] < 0.06
