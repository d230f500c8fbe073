"""Drawings of questions with several answers: every branch is drawn and named, without overlap."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.show.plots import tree_fold, tree_svg
from crowdtree.show.plots.trees import tree_views
from tests.show.plots.helpers import SVG, text_boxes
from tests.show.plots.test_trees import node_boxes

COLOURS = ["red", "brown", "white", "yellow", "greenish", "orange", "purple", "grey", "black"]
SURFACES = ("smooth", "covered with scales or warts of a darker colour", "<b>sticky</b>")


def field_guide(n: int, answers: int, seed: int = 0) -> ct.Problem:
    rng = np.random.default_rng(seed)
    names = [SURFACES if q % 3 == 0 else tuple(COLOURS[:answers]) for q in range(12)]
    cells = [[row[int(rng.integers(len(row)))] for _ in range(n)] for row in names]
    prior, questions = rng.dirichlet(np.ones(n)), [f"character {q}" for q in range(12)]
    return ct.Problem(
        [f"species {i}" for i in range(n)], prior, questions, cells, 0.1, answers=names
    )


@pytest.mark.parametrize("direction", [None, "down", "right"])
@pytest.mark.parametrize(("n", "answers"), [(4, 3), (8, 9), (20, 5), (50, 9)])
def test_every_branch_is_drawn_and_nothing_overlaps(n, answers, direction):
    tree = ct.design(field_guide(n, answers), allow_groups=True)
    svg = tree_svg(tree, direction=direction)
    texts, boxes = text_boxes(svg), node_boxes(svg)
    assert not [(a, b) for a, b in combinations(texts, 2) if a.meets(b)]
    assert not [(a, b) for a, b in combinations(boxes, 2) if a.meets(b)]
    if direction != "down":
        width = float(ET.fromstring(svg).get("width", ""))
        assert width <= 1100
    view = next(tree_fold.views(tree))
    shown = Counter(entry.answer for entry in view.entries[1:])
    said = [t for t in ET.fromstring(svg).iter(SVG + "text") if "answer " in t.get("class", "")]
    assert len(said) == shown.total() == svg.count('<path class="edge ')
    drawn = Counter(t.text for t in said)
    assert {name: drawn[name] for name in COLOURS} == {name: shown[name] for name in COLOURS}
    if shown[SURFACES[1]]:  # cut, and written out in the title of the box
        assert SURFACES[1] not in drawn or direction != "down"
        assert "<b>" not in svg
    used = set(re.findall(r'class="edge (\w+)"', svg))
    assert used
    assert all(f".edge.{name}{{stroke:#" in svg for name in used)


def test_an_answer_that_is_cut_is_in_the_title():
    problem = field_guide(3, 3).replace(classes=["a", "b", "c"])
    cells = [[SURFACES[0], SURFACES[1], SURFACES[2]]]
    table = ct.Problem(problem.classes, None, ["cap"], cells, 0.1, answers=[SURFACES])
    svg = tree_svg(ct.design(table), direction="down")
    titles = [title.text or "" for title in ET.fromstring(svg).iter(SVG + "title")]
    assert any(title.startswith(f"{SURFACES[1]} → b") for title in titles)
    assert "<b>sticky</b>" in [t.text for t in ET.fromstring(svg).iter(SVG + "text")]


@pytest.mark.parametrize(("n", "answers"), [(50, 3), (50, 9), (200, 9)])
def test_wide_trees_fold_to_what_fits(n, answers):
    tree = ct.design(field_guide(n, answers), allow_groups=True)
    leaves = []
    for view in tree_fold.views(tree):
        ends = [entry for entry in view.entries if entry.kind != "question"]
        assert len(ends) <= tree_fold.MAX_ENDS
        leaves += [entry.index for entry in ends if entry.kind == "leaf"]
    assert sorted(leaves) == list(range(tree.n_leaves))
    assert tree_fold.leaf_counts(tree)[0] == tree.n_leaves


def test_rows_of_a_page_name_every_answer():
    tree = ct.design(field_guide(20, 9), allow_groups=True)
    (page,) = [view.body for view in tree_views(tree)]
    rows = page[page.index('class="ct-rows"') :]
    assert rows.count("<li ") == tree.n_nodes + tree.n_leaves - 1
    assert rows.count('<ul class="several">') == tree.n_nodes
    assert "<b>" not in rows
    assert "--" not in rows


def test_yes_no_drawings_have_no_other_colours():
    assert ".a0{" not in tree_svg(ct.design(ct.example("table1")))


def test_json_has_branches_by_answer(tmp_path: Path):
    tree = ct.design(ct.example("leaves"))
    picture = tree.draw(tmp_path / "tree.json")
    assert picture.startswith("<svg")
    data = json.loads((tmp_path / "tree.json").read_text(encoding="utf-8"))
    assert list(data["branches"]) == ["nuts", "winged seeds", "cones", "berries", "fluff"]
    assert data["branches"]["fluff"]["label"] == "willow"
    assert data["branches"]["berries"]["yes"]["label"] == "holly"
