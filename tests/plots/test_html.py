"""Pictures as pages."""

from __future__ import annotations

import re
from pathlib import Path

import crowdtree as ct
from crowdtree.plots import draw_tree
from plots.helpers import external, some_problem


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
