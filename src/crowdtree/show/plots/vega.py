"""Code shared by all charts: output, data, colours and titles."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from crowdtree.core.errors import needing
from crowdtree.show.plots.fit import fitted
from crowdtree.show.plots.html import page
from crowdtree.show.plots.save import svg_to_png, write_as
from crowdtree.show.plots.style import LIGHT, chart_config, to_css_variables

with needing("charts", "figures"):
    import altair
    import vl_convert

alt = altair

Row: TypeAlias = Mapping[str, Any]
Chart: TypeAlias = Any  # Altair's builders are effectively typed as Any

WIDTH = 560
PER_CENT = "format(100 * datum.value, '~r') + ' %'"
COLOURS = {"ours": LIGHT.accent, "paper": LIGHT.orange, "baseline": LIGHT.grey}
LABEL_COLOURS = COLOURS | {"paper": LIGHT.orange_text, "baseline": LIGHT.muted}


def chart_svg(chart: Chart, *, page: bool = False) -> str:
    """Render a chart as SVG; for a `page`, in the colours of its custom properties."""
    spec = _spec(chart)
    if page:  # nearly flush with the text
        spec["config"]["padding"] = {"left": 18, "right": 16, "top": 8, "bottom": 8}
    svg = fitted(str(vl_convert.vegalite_to_svg(spec)))
    return to_css_variables(svg) if page else svg


def draw_chart(chart: Chart, path: str | os.PathLike[str]) -> Path:
    """Write a chart as ``.svg``, ``.png``, ``.html`` or ``.json`` (Vega-Lite) by its ending."""
    return write_as(
        path,
        {
            ".svg": lambda: chart_svg(chart),
            ".png": lambda: svg_to_png(chart_svg(chart)),
            ".html": lambda: _page(chart),
            ".json": lambda: json.dumps(_spec(chart), indent=1) + "\n",
        },
    )


def finished(chart: Chart) -> Chart:
    """Fix the colours and fonts of a chart that leaves this package."""
    return alt.Chart.from_dict(_spec(chart))


def _spec(chart: Chart) -> dict[str, Any]:
    spec: dict[str, Any] = chart.to_dict(validate=False)  # checking takes longer than drawing
    return spec | {"config": dict(chart_config())}


def _page(chart: Chart) -> str:
    title = _spec(chart)["title"]["text"]
    return page(str(title), f'<figure class="wide">{chart_svg(chart, page=True)}</figure>')


def title_of(text: str, *subtitle: str) -> alt.TitleParams:
    """Title of a chart, with lines of small print below it."""
    return alt.TitleParams(text, subtitle=list(subtitle)) if subtitle else alt.TitleParams(text)


def table(rows: Iterable[Row]) -> alt.InlineData:
    """Rows as the data of a chart."""
    return alt.InlineData(values=[dict(row) for row in rows])
