"""Visual style: one set of tokens for drawings, charts and pages, light and dark.

Colours are those of Okabe and Ito (2008), which are distinguishable for colour-blind people and in
greyscale. Some are darkened to a text contrast of 4.5 to 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

FONT = (
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, "
    "'Liberation Sans', sans-serif"
)
FONT_SIZE = 13
SMALL_SIZE = 11


@dataclass(frozen=True)
class Tokens:
    """Colours by meaning. No two are equal, so that a drawing can be re-coloured by value."""

    background: str
    surface: str
    text: str
    muted: str
    line: str
    grey: str
    accent: str
    accent_soft: str
    orange: str
    orange_text: str
    error: str
    error_soft: str
    blue: str
    purple: str
    sky: str

    @property
    def answers(self) -> tuple[str, ...]:
        """Colours of the lines of answers other than no and yes, in their order."""
        return (self.orange, self.accent, self.blue, self.purple, self.error, self.sky)


LIGHT = Tokens(
    background="#ffffff",
    surface="#f3f5f5",
    text="#1b2324",
    muted="#566163",
    line="#d5dbdc",
    grey="#8a9597",
    accent="#006d5b",
    accent_soft="#d9efe9",
    orange="#e69f00",
    orange_text="#8a5a00",
    error="#b84a00",
    error_soft="#f9e3d5",
    blue="#0072b2",
    purple="#cc79a7",
    sky="#56b4e9",
)
DARK = Tokens(
    background="#121718",
    surface="#1d2425",
    text="#e6ebeb",
    muted="#a3afb1",
    line="#364143",
    grey="#7c888a",
    accent="#3fc7a5",
    accent_soft="#17423a",
    orange="#f0b23e",
    orange_text="#f3bd58",
    error="#ff9a5c",
    error_soft="#4a2a17",
    blue="#5b9dff",
    purple="#e08fc8",
    sky="#8fd0f2",
)
N_COLOURS = len(LIGHT.answers)
"""After so many answers the colours start again; the name stands at every line."""


def css_variables() -> str:
    """Custom properties ``--ct-...`` for a page, light by default and dark where asked for.

    >>> css_variables().splitlines()[1].strip()
    '--ct-background: #ffffff;'
    """

    def block(tokens: Tokens, indent: str) -> str:
        return "".join(
            f"{indent}--ct-{name.replace('_', '-')}: {value};\n"
            for name, value in asdict(tokens).items()
        )

    return (
        ":root {\n" + block(LIGHT, "  ") + "  color-scheme: light dark;\n}\n"
        "@media (prefers-color-scheme: dark) {\n  :root {\n" + block(DARK, "    ") + "  }\n}\n"
    )


def to_css_variables(svg: str) -> str:
    """Replace the light colours of a drawing with the page's custom properties.

    >>> to_css_variables('<path fill="#006d5b"/>')
    '<path fill="var(--ct-accent)"/>'
    """
    for name, value in asdict(LIGHT).items():
        svg = svg.replace(f'"{value}"', f'"var(--ct-{name.replace("_", "-")})"')
    return svg


def chart_config() -> Mapping[str, Any]:
    """Vega-Lite configuration of every chart: light axes, no frames, the system font."""
    axis = {
        "domainColor": LIGHT.grey, "gridColor": LIGHT.line, "gridWidth": 0.75,
        "tickColor": LIGHT.grey, "labelColor": LIGHT.muted, "titleColor": LIGHT.muted,
        "labelFont": FONT, "titleFont": FONT, "labelFontSize": SMALL_SIZE,
        "titleFontSize": SMALL_SIZE, "titleFontWeight": "normal", "titlePadding": 8,
        "labelPadding": 4,
    }  # fmt: skip
    # the name of a vertical axis is written above it, where tick labels of any width leave space
    above = {
        "titleAngle": 0, "titleAlign": "left", "titleAnchor": "end", "titleBaseline": "bottom",
        "titleX": -40, "titleY": -10,
    }  # fmt: skip
    legend = {"labelColor": LIGHT.text, "labelFont": FONT, "labelFontSize": SMALL_SIZE}
    title = {
        "anchor": "start", "frame": "bounds", "color": LIGHT.text, "font": FONT, "fontSize": 15,
        "fontWeight": 600, "subtitleColor": LIGHT.muted, "subtitleFont": FONT,
        "subtitleFontSize": 12, "subtitlePadding": 4, "offset": 14,
    }  # fmt: skip
    return {
        "background": LIGHT.background,
        "font": FONT,
        "view": {"stroke": None},
        "axis": axis,
        "axisY": above,
        "legend": legend,
        "title": title,
        "padding": 16,
        "text": {"font": FONT, "fontSize": SMALL_SIZE, "color": LIGHT.text},
        "concat": {"spacing": 40},
    }
