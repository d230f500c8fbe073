"""Charts: Vega-Lite through Altair, from an evaluation or plain rows.

Every function returns an Altair chart; :func:`draw_chart` writes it, :func:`chart_svg` renders it.
"""

from crowdtree.plots.confusion import confusion_chart
from crowdtree.plots.curves import curve_chart
from crowdtree.plots.frontiers import draw_frontier, frontier_chart
from crowdtree.plots.levels import level_chart
from crowdtree.plots.vega import chart_svg, draw_chart

__all__ = [
    "chart_svg",
    "confusion_chart",
    "curve_chart",
    "draw_chart",
    "draw_frontier",
    "frontier_chart",
    "level_chart",
]
