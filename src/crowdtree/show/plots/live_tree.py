"""The tree with the items that pass through it: drawn once, its numbers are updated in place."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from crowdtree.core.fixed_plan import Plan
from crowdtree.core.text import plural
from crowdtree.show.plots.style import SMALL_SIZE
from crowdtree.show.plots.text import wrap
from crowdtree.show.plots.tree_drawing import Drawing
from crowdtree.show.plots.tree_fold import Entry, views
from crowdtree.show.plots.tree_model import Facts, Words

WIDEST = "888,888 here · 888,888 passed"
"""The widest text of a node, so that the layout does not move as the numbers grow."""
CAPTION = (
    "Question: items whose answers are being collected there now · items that have passed. "
    "Label: items that got it. A line is as thick as the share of items that took it."
)
THINNEST, THICKEST = 1.25, 14.0


class _LiveFacts(Facts):
    def small(self, node: int) -> str:
        """Reserve the width of the numbers."""
        del node
        return WIDEST

    def leaf_small(self, leaf: int) -> tuple[str, ...]:
        """Reserve the width of the number."""
        del leaf
        return ("888,888 items",)

    def fold_small(self, node: int) -> tuple[str, ...]:
        """Reserve the width of the numbers."""
        return (self.small(node),)

    def words(self, entry: Entry) -> Words:
        """Texts of a box, without numbers in its title."""
        words = super().words(entry)
        return words._replace(title=words.main)


class Flow(Drawing):
    """A drawing whose numbers are filled in later."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(_LiveFacts(plan), next(views(plan.tree)), None)

    def _caption(self, room: float) -> tuple[str, ...]:
        return wrap(CAPTION, min(room, 640.0), SMALL_SIZE, most=9)

    def _key(self, place: int) -> int:
        entry = self.view.entries[place]
        return ~entry.index if entry.kind == "leaf" else entry.index

    def _edge(self, parent: int, child: int, thick: float, shift: float) -> tuple[str, str]:
        line, label = super()._edge(parent, child, thick, shift)
        return line.replace("<path ", f'<path data-edge="{self._key(child)}" ', 1), label

    def _small(self, place: int, line: str, x: float, y: float, anchor: str) -> str:
        del line  # of the width to reserve
        live = super()._small(place, "0", x, y, anchor)
        return live.replace("<text ", f'<text data-flow="{self._key(place)}" ', 1)


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
    words: dict[str, str] = {}
    thick: dict[str, float] = {}
    for key in (*range(tree.n_nodes), *(~leaf for leaf in range(tree.n_leaves))):
        found = nodes.get(str(key), {"in": 0, "out": 0})
        here = max(found["in"] - found["out"], 0)
        words[str(key)] = (
            f"{here:,} here · {found['out']:,} passed"
            if key >= 0
            else f"{plural(found['in'], 'item')}"
        )
        share = found["in"] / total if total else 0.0
        thick[str(key)] = round(THINNEST + (THICKEST - THINNEST) * min(share, 1.0), 2)
    return {"text": words, "thick": thick}
