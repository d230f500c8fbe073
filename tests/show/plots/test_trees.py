"""Drawings of trees: nothing overlaps, everything is there, nothing is fetched."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.core.text import percent
from crowdtree.show.plots import draw_tree, tree_svg
from crowdtree.show.plots.trees import tree_views
from tests.show.plots.helpers import SVG, Box, comb_problem, some_problem, text_boxes


def node_boxes(svg: str) -> list[Box]:
    """Rectangles of the nodes, in the coordinates of the drawing's group."""
    found = []
    for kind in ("question", "leaf", "fold"):
        for group in ET.fromstring(svg).iter():
            if group.get("class") == kind and group.tag in (SVG + "g", SVG + "a"):
                rect = group.find(SVG + "rect")
                assert rect is not None
                x, y, w, h = (float(rect.get(key, 0)) for key in ("x", "y", "width", "height"))
                found.append(Box(kind, x, y, x + w, y + h))
    return found


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("n", [2, 5, 20, 200])
def test_no_label_overlaps_another(n: int, even: bool) -> None:
    plan = ct.staff(ct.design(some_problem(n, even=even)), workers=4 * n)
    svg = tree_svg(plan)
    texts = text_boxes(svg)
    assert not [(a, b) for a, b in combinations(texts, 2) if a.meets(b)]
    width, height = map(float, ET.fromstring(svg).get("viewBox", "").split()[2:])
    assert all(t.left >= 0 and t.right <= width and t.top >= 0 for t in texts)
    assert all(t.bottom <= height for t in texts)
    boxes = node_boxes(svg)
    assert not [(a, b) for a, b in combinations(boxes, 2) if a.meets(b)]
    assert width <= 1100  # fits a page


@pytest.mark.parametrize("n", [5, 24])
def test_every_label_and_number_is_there(n: int) -> None:
    tree = ct.design(some_problem(n))
    plan = ct.staff(tree, workers=2 * n)
    svg = tree_svg(plan)
    titles = [element.text or "" for element in ET.fromstring(svg).iter(SVG + "title")]
    visits = ct.evaluate(plan).visits
    for row in ct.evaluate(plan).classes:
        share, recall, precision = map(percent, (row.labelled, row.recall, row.precision))
        small = f"{share} of items, recall {recall}, precision {precision}"
        assert f"{row.name}: {small}" in titles
    words = {box.name for box in text_boxes(svg)}
    for node in tree.nodes:
        assert any(title.startswith(f"{node.question}: {node.text}") for title in titles)
        error = percent(float(plan.node_error[node.index] / node.share))
        votes = int(plan.votes[node.index])
        share = percent(float(visits[node.index]))
        small = f"{error} error · {votes} vote{'s' * (votes > 1)} · {share}"
        assert small in words
        assert any(word.startswith(f"{node.index + 1}. ") for word in words)
    assert "bits left" not in svg
    asked = " ".join(box.name for box in text_boxes(tree_svg(plan, levels=True)))
    for level in tree.levels:
        assert f"level {level.depth}: {level.entropy:.3g} bits left" in asked
    assert sum(box.name == "no" for box in text_boxes(svg)) == tree.n_nodes
    assert sum(box.name == "yes" for box in text_boxes(svg)) == tree.n_nodes


@pytest.mark.parametrize("n", [8, 30, 100, 200])
@pytest.mark.parametrize("fold", [None, 0.0])
def test_every_class_is_named_in_the_picture_itself(n: int, fold: float | None) -> None:
    """In a PNG there is no title to hover over: folded classes are written out as well."""
    tree = ct.design(some_problem(n, even=True))
    svg = tree_svg(tree, fold=fold)
    written = " ".join(box.name for box in text_boxes(svg))
    missing = [name for name in tree.problem.classes if not re.search(rf"{name}\b", written)]
    assert missing == []
    kinds = [box.name for box in node_boxes(svg)]
    assert kinds.count("question") == tree.n_nodes or fold is None


def test_a_large_group_is_written_out() -> None:
    names = [f"kind {i}" for i in range(12)]
    problem = ct.Problem(["other", *names], None, ["q"], [[0] + [1] * 12], 0.1)
    boxes = text_boxes(tree_svg(ct.design(problem, allow_groups=True)))
    written = " ".join(box.name for box in boxes)
    assert "and 8 more" in written
    assert all(re.search(rf"{name}\b", written) for name in names)


def test_undecided_leaves_state_how_often_the_guess_is_right() -> None:
    plan = ct.staff(ct.design(ct.example("table1")), workers=8).leaving_undecided([0])
    assert plan is not None
    facts = ct.evaluate(plan)
    words = {box.name for box in text_boxes(tree_svg(plan))}
    worth = percent(float(facts.leaf_precision[plan.undecided[0]]))
    assert {"undecided", f"best guess right {worth}"} <= words
    label = plan.tree.problem.classes[plan.leaf_label[plan.undecided[0]]]
    assert f"perhaps {label}" in words
    title = f"{percent(facts.undecided)} of items are undecided"
    assert title in str(ET.fromstring(tree_svg(plan)).get("aria-label"))


def test_lines_and_boxes_grow_with_the_share_of_items() -> None:
    tree = ct.design(ct.example("table1"))
    root = ET.fromstring(tree_svg(tree))
    thick = [
        float(e.get("stroke-width", 0))
        for e in root.iter(SVG + "path")
        if "edge" in e.get("class", "")
    ]
    share = [0.4, 0.6, 0.2, 0.2, 0.1, 0.1, 0.05, 0.05]
    assert thick == pytest.approx([1.25 + 12.75 * s for s in share], abs=0.01)
    boxes = [b for b in node_boxes(tree_svg(tree)) if b.name == "question"]
    heights = [b.bottom - b.top for b in boxes]
    assert heights == sorted(heights, reverse=True)
    assert heights[0] > heights[-1]


def test_a_plan_by_margin_and_a_group_are_named() -> None:
    problem = ct.Problem(["a", "b", "c"], [0.5, 0.3, 0.2], ["q"], [[0, 1, 1]], 0.1)
    tree = ct.design(problem, allow_groups=True)
    svg = tree_svg(ct.Plan(tree, np.array([3]), vote="margin"))
    assert "lead by 3" in svg
    assert "or c" in {box.name for box in text_boxes(svg)}


def test_very_deep_trees_are_drawn() -> None:
    tree = ct.design(comb_problem(300))
    made = list(tree_views(tree))
    assert len(made) > 1
    ET.fromstring(tree_svg(tree, fold=0.0))


NASTY = ['<script>alert("x")</script>', "a & b", "\"quoted'", "]]>", "</title></svg>", "<!--"]


def nasty_tree() -> ct.Tree:
    n = len(NASTY)
    return ct.design(ct.Problem(NASTY, None, [f"<b>{i}</b>&\"'" for i in range(n)], np.eye(n), 0.1))


def test_user_text_is_escaped(tmp_path: Path) -> None:
    tree = nasty_tree()
    titles = " ".join(e.text or "" for e in ET.fromstring(tree_svg(tree)).iter(SVG + "title"))
    assert all(name in titles for name in NASTY)
    page = draw_tree(tree, tmp_path / "tree.html", title="<script>").read_text()
    assert page.count("<script>") == 1  # our own
    assert "alert(&quot;x&quot;)" in page


def test_the_extension_determines_the_format(tmp_path: Path) -> None:
    tree = ct.design(ct.example("table1"))
    assert draw_tree(tree, tmp_path / "t.svg").read_text() == tree_svg(tree)
    assert draw_tree(tree, tmp_path / "t.PNG").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert draw_tree(tree, tmp_path / "t.html").read_text().startswith("<!doctype html>")
    data = json.loads(draw_tree(tree, str(tmp_path / "t.json")).read_text())
    assert data["question"] == "T1"
    assert data["yes"]["label"] == "c4"
    assert data["yes"]["correct"] == data["yes"]["recall"] == pytest.approx(0.95)
    assert data["yes"]["precision"] == pytest.approx(0.57 / 0.59)
    assert data["no"]["no"]["share"] == pytest.approx(0.2)
    assert sorted(file.suffix for file in tmp_path.iterdir()) == [".PNG", ".html", ".json", ".svg"]


@pytest.mark.parametrize("name", ["tree.gif", "tree", "tree.svg.bak"])
def test_unknown_extensions_are_refused_before_any_work(tmp_path: Path, name: str) -> None:
    with pytest.raises(ct.CrowdtreeError, match=r"use \.svg, \.png, \.html or \.json"):
        draw_tree(ct.design(ct.example("table1")), tmp_path / name)
    assert not list(tmp_path.iterdir())
