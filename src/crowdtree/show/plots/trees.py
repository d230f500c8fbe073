"""Drawings of a tree or plan as hand-laid SVG: text stays text, and nothing overlaps."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from crowdtree.core.fixed_plan import Plan, as_plan
from crowdtree.core.outcomes import YES_NO
from crowdtree.core.tree import Tree
from crowdtree.show.plots.html import TreeView, tree_page
from crowdtree.show.plots.layout import Direction
from crowdtree.show.plots.save import svg_to_png, write_as
from crowdtree.show.plots.style import LIGHT, Tokens
from crowdtree.show.plots.tree_drawing import Drawing, answers_css, drawing_css
from crowdtree.show.plots.tree_fold import views
from crowdtree.show.plots.tree_model import Facts, tree_table
from crowdtree.show.plots.tree_rows import rows_html


def draw_tree(
    tree: Tree | Plan,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    fold: float | None = None,
    direction: Direction | None = None,
    levels: bool = False,
) -> Path:
    """Draw a tree (one worker per question) or plan to a file, by its ending.

    ``.svg``, ``.png``, ``.html`` (self-contained, folded subtrees open in it) or ``.json``. `title`
    is by default the size and the exact misclassification; `fold` the share of items below which a
    subtree folds into a pill (0: never; by default 1 % in trees with more than 24 leaves, and more
    where over 40 ends would be drawn at once). `direction` is ``"down"``, or ``"right"`` for one
    row per node; by default down while that fits a page. `levels` says how many bits about the
    class are still unknown at each level.

    >>> import crowdtree as ct, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = draw_tree(ct.design(ct.example("table1")), pathlib.Path(folder, "tree.svg"))
    ...     print(path.read_text()[:4])
    <svg
    """
    options: dict[str, Any] = {
        "title": title,
        "fold": fold,
        "direction": direction,
        "levels": levels,
    }
    return write_as(
        path,
        {
            ".svg": lambda: tree_svg(tree, **options),
            ".png": lambda: svg_to_png(tree_svg(tree, **options)),
            ".html": lambda: _page(tree, options),
            ".json": lambda: json.dumps(tree_table(tree), indent=2, ensure_ascii=False) + "\n",
        },
    )


def tree_svg(
    tree: Tree | Plan,
    *,
    title: str | None = None,
    fold: float | None = None,
    direction: Direction | None = None,
    levels: bool = False,
    tokens: Tokens = LIGHT,
) -> str:
    """Draw a tree or plan as one SVG text; folded subtrees stay folded.

    >>> import crowdtree as ct
    >>> svg = tree_svg(ct.design(ct.example("table1")))
    >>> svg.count('class="question"'), svg.count('class="leaf"')
    (4, 5)
    """
    facts = Facts(as_plan(tree))
    view = next(views(facts.tree, fold))
    heading = facts.title if title is None else title
    drawing = Drawing(facts, view, direction, title=heading, levels=levels)
    several = "" if set(facts.tree.problem.answers) == {YES_NO} else answers_css(tokens)
    return drawing.svg(f"<style>{drawing_css(tokens)}{several}</style>")


def tree_views(
    tree: Tree | Plan,
    *,
    prefix: str = "tree",
    fold: float | None = None,
    direction: Direction | None = None,
    levels: bool = False,
) -> Iterator[TreeView]:
    """Yield the whole tree and each folded subtree as HTML for a page, linked by their ids.

    Each is a list of rows; on wide screens a small tree is a drawing that grows down instead.
    Their colours are the page's custom properties
    (:func:`crowdtree.show.plots.style.css_variables`).
    """
    facts = Facts(as_plan(tree))
    trail: dict[int, tuple[tuple[str, str], ...]] = {}
    for view in views(facts.tree, fold):
        name = f"{prefix}-{view.root}"
        above = () if view.parent is None else trail[view.parent]
        heading = "Whole tree" if view.parent is None else facts.fold_text(view.root)
        trail[view.root] = (*above, (name, heading))
        drawing = Drawing(facts, view, direction, prefix=prefix, levels=levels)
        graph = f'<div class="ct-graph">{drawing.svg("")}</div>' if drawing.down else ""
        body = f"{_small(facts.way(view.root))}{graph}{rows_html(facts, view, prefix)}"
        yield TreeView(name, above, heading, body)


def _small(words: str) -> str:
    return f'<p class="small">{escape(words)}</p>' if words else ""


def _page(tree: Tree | Plan, options: dict[str, Any]) -> str:
    title = options.pop("title") or Facts(as_plan(tree)).title
    return tree_page(title, tree_views(tree, **options))
