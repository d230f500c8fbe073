"""The tree with the items that pass through it: drawn once, its numbers are updated in place."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from html import escape
from typing import Any

from crowdtree.plan import Plan
from crowdtree.plots.style import SMALL_SIZE
from crowdtree.plots.text import clean, wrap
from crowdtree.plots.tree_drawing import Drawing
from crowdtree.plots.tree_fold import views
from crowdtree.plots.tree_model import Facts
from crowdtree.text import plural

__all__ = ["flow_numbers", "flow_svg"]

WIDEST = "888,888 here · 888,888 passed"
"""The widest text of a node, so that the layout does not move as the numbers grow."""
CAPTION = (
    "Under a question: items whose answers are being collected there now · items that have passed. "
    "Under a label: items that got it. A line is as thick as the share of items that took it."
)
THINNEST, THICKEST = 1.25, 14.0


class _LiveFacts(Facts):
    def small(self, node: int) -> str:
        """Reserve the width of the numbers."""
        del node
        return WIDEST


class Flow(Drawing):
    """A drawing whose numbers are filled in later."""

    def __init__(self, plan: Plan) -> None:
        facts = _LiveFacts(plan)
        super().__init__(facts, next(views(plan.tree)), None)
        self.caption = wrap(CAPTION, min(self.width - 48, 640.0), SMALL_SIZE, most=9)
        self.height = self.foot + 15.0 * len(self.caption) + 16
        self.title = ()

    def _level_marks(self) -> list[tuple[str, ...]]:
        return [("",) for _ in self.layout.levels]

    def _levels(self) -> Iterator[str]:
        return iter(())

    def _key(self, place: int) -> int:
        entry = self.view.entries[place]
        return ~entry.index if entry.kind == "leaf" else entry.index

    def _edge(
        self, parent: int, child: int, side: int, thick: float, shift: float
    ) -> tuple[str, str]:
        line, label = super()._edge(parent, child, side, thick, shift)
        return line.replace("<path ", f'<path data-edge="{self._key(child)}" ', 1), label

    def _node(self, place: int) -> str:
        box, (x, y) = self.boxes[place], self.layout.corners[place]
        w, h = box.size
        middle = f'x="{x + w / 2:.1f}" text-anchor="middle"'
        words = [line for line in box.lines if line.style != "small"]
        base = y + (h - 17.0 * len(words) - 15.0) / 2
        lines = []
        for line in words:
            base += 17.0
            text = escape(clean(line.text))
            lines.append(f'<text class="{line.style}" {middle} y="{base - 4.5:.1f}">{text}</text>')
        key = self._key(place)
        lines.append(
            f'<text class="small" data-flow="{key}" {middle} y="{base + 10.5:.1f}">0</text>'
        )
        corner = h / 2 if box.kind == "fold" else 6
        return (
            f'<g class="{box.kind}">'
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="{corner:.1f}"/>'
            + "".join(lines)
            + "</g>"
        )


@lru_cache(maxsize=32)
def flow_svg(plan: Plan) -> str:
    """Draw the tree of a plan with space for live numbers.

    >>> import crowdtree as ct
    >>> flow_svg(ct.staff(ct.design(ct.example("table1")), workers=8)).count("data-flow")
    9
    """
    return Flow(plan).svg("")


def flow_numbers(plan: Plan, nodes: dict[str, dict[str, int]]) -> dict[str, dict[str, Any]]:
    """The text under each box, and the width of the line to it.

    >>> import crowdtree as ct
    >>> plan = ct.staff(ct.design(ct.example("table1")), workers=8)
    >>> flow_numbers(plan, {"0": {"in": 4, "out": 3}, "-4": {"in": 3, "out": 0}})["text"]["0"]
    '1 here · 3 passed'
    """
    tree = plan.tree
    total = nodes.get("0", {}).get("in", 0)
    text: dict[str, str] = {}
    thick: dict[str, float] = {}
    for key in (*range(tree.n_nodes), *(~leaf for leaf in range(tree.n_leaves))):
        found = nodes.get(str(key), {"in": 0, "out": 0})
        here = max(found["in"] - found["out"], 0)
        text[str(key)] = (
            f"{here:,} here · {found['out']:,} passed"
            if key >= 0
            else f"{plural(found['in'], 'item')}"
        )
        share = found["in"] / total if total else 0.0
        thick[str(key)] = round(THINNEST + (THICKEST - THINNEST) * min(share, 1.0), 2)
    return {"text": text, "thick": thick}
