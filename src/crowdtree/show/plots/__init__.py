"""Pictures of trees, plans and evaluations. Nothing here computes a statistic.

Altair and the renderer are imported only when a chart or a PNG is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from crowdtree.show.plots.trees import draw_tree, tree_svg

__all__ = ["draw_frontier", "draw_tree", "tree_svg"]


def draw_frontier(
    rows: Iterable[Any],
    path: str | os.PathLike[str],
    chosen: Any = None,
    *,
    cost: str = "answers",
    most_votes: int | None = None,
) -> Path:
    """Write the chart of a frontier; see :func:`crowdtree.show.plots.frontiers.draw_frontier`.

    >>> import crowdtree as ct, pathlib, tempfile
    >>> from crowdtree.designs.frontiers.compare import compare
    >>> rows = compare(ct.frontier(ct.example("table1"), max_votes=3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     draw_frontier(rows, pathlib.Path(folder, "frontier.svg")).name
    'frontier.svg'
    """
    from crowdtree.show.plots import frontiers

    return frontiers.draw_frontier(rows, path, chosen, cost=cost, most_votes=most_votes)
