"""Pictures of trees, plans and evaluations. Nothing here computes a statistic.

Altair and the renderer are imported only when a chart or a PNG is asked for.
"""

from crowdtree.show.plots.trees import draw_tree, tree_svg

__all__ = ["draw_tree", "tree_svg"]
