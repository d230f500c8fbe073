"""Pictures as pages."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import crowdtree as ct
from crowdtree.show.plots import draw_tree
from crowdtree.show.plots.trees import tree_views
from tests.show.plots.helpers import external, some_problem


def test_every_pill_of_the_page_leads_to_a_view(tmp_path: Path) -> None:
    tree = ct.design(some_problem(200))
    page = draw_tree(tree, tmp_path / "tree.html").read_text()
    targets = set(re.findall(r'href="#([^"]+)"', page))
    ids = set(re.findall(r'<section [^>]*id="([^"]+)"', page))
    assert targets <= ids
    assert ids - targets == set() or ids - targets == {"tree-0"}
    assert all(name in page for name in tree.problem.classes)


def test_the_page_asks_the_network_for_nothing(tmp_path: Path) -> None:
    assert external('<img src="https://x.y/z.png">')  # the check can fail
    page = draw_tree(ct.design(some_problem(60)), tmp_path / "tree.html").read_text()
    assert external(page) == []
    assert "prefers-color-scheme: dark" in page


@pytest.mark.parametrize("n", [8, 20, 50, 200])
def test_the_page_has_the_same_rows_at_every_size(n: int) -> None:
    tree = ct.design(some_problem(n))
    page = "".join(view.body for view in tree_views(tree))
    assert page.count('<div class="ct-row question"') == tree.n_nodes
    assert page.count('<div class="ct-row leaf"') == tree.n_leaves
    assert ('class="ct-row fold"' in page) == (n > 24)


def test_a_small_tree_is_drawn_on_wide_screens_and_has_rows_on_others() -> None:
    (view,) = tree_views(ct.design(ct.example("table1")))
    assert view.body.index('class="ct-graph"') < view.body.index('class="ct-rows"')
    (wide,) = tree_views(ct.design(some_problem(20)))
    assert "<svg" not in wide.body


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_of_a_tree_is_cut_off(browser: Any, tmp_path: Path, width: int) -> None:
    with closing(browser.new_page(viewport={"width": width, "height": 800})) as page:
        for n in (8, 20, 50, 200):
            path = draw_tree(ct.design(some_problem(n)), tmp_path / f"{n}.html")
            page.goto(path.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            cut = "e => e.scrollWidth > e.clientWidth + 1"
            rows = page.locator(".tree-view:not([hidden]) .ct-row")
            assert rows.evaluate_all(f"rows => rows.filter({cut}).map(r => r.innerText)") == []
