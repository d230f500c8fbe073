"""Make space for text: fonts of other machines are wider than the one a chart was laid out with."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

from crowdtree.show.plots.text import text_width

_SVG = "{http://www.w3.org/2000/svg}"
_ANCHOR = {"start": 0.0, "middle": 0.5, "end": 1.0}
_MARGIN = 4.0
Affine = tuple[float, float, float, float, float, float]


def fitted(svg: str) -> str:
    """Widen the view box of a rendered chart where text in a wide font would lie outside.

    >>> small = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="20" viewBox="0 0 9 20">'
    >>> wide = fitted(small + '<text transform="translate(0,15)" font-size="10px">abc</text></svg>')
    >>> ET.fromstring(wide).get("viewBox")
    '0 0 23 20'
    """
    root = ET.fromstring(svg)
    left, top, width, height = map(float, root.get("viewBox", "").split())
    xs, ys = [left, left + width], [top, top + height]
    for x, y in _corners(root, (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)):
        if not left <= x <= left + width:
            xs.append(x - _MARGIN if x < left else x + _MARGIN)
        if not top <= y <= top + height:
            ys.append(y - _MARGIN if y < top else y + _MARGIN)
    x, y = math.floor(min(xs)), math.floor(min(ys))
    w, h = math.ceil(max(xs)) - x, math.ceil(max(ys)) - y
    size = f'width="{w}" height="{h}"'
    for old, new in (
        (r'(><rect )width="[^"]*" height="[^"]*"', rf'\1x="{x}" y="{y}" {size}'),  # the background
        (r'width="[^"]*" height="[^"]*" viewBox="[^"]*"', f'{size} viewBox="{x} {y} {w} {h}"'),
    ):
        svg = re.sub(old, new, svg, count=1)
    return svg


def _corners(element: ET.Element, outer: Affine) -> Iterator[tuple[float, float]]:
    """Yield the corners of every line of text, in the coordinates of the picture."""
    here = _times(outer, _affine(element.get("transform", "")))
    if element.tag == _SVG + "text" and element.get("opacity") != "0":
        size = float(element.get("font-size", "11px").removesuffix("px"))
        bold = element.get("font-weight") in ("bold", "600")
        lines = [part.text or "" for part in element.iter() if part.text]
        wide = max((text_width(line, size, bold) for line in lines), default=0.0)
        start = -wide * _ANCHOR[element.get("text-anchor", "start")]
        low = 0.25 * size + 1.2 * size * (len(lines) - 1)
        a, b, c, d, e, f = here
        for x in (start, start + wide):
            for y in (-0.8 * size, low):
                yield a * x + c * y + e, b * x + d * y + f
        return
    for child in element:
        yield from _corners(child, here)


def _affine(transform: str) -> Affine:
    found: Affine = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
    for name, values in re.findall(r"(translate|rotate)\(([^)]*)\)", transform):
        first, *rest = (float(value) for value in re.split(r"[ ,]+", values.strip()))
        if name == "translate":
            found = _times(found, (1.0, 0.0, 0.0, 1.0, first, rest[0] if rest else 0.0))
        else:
            cos, sin = math.cos(math.radians(first)), math.sin(math.radians(first))
            found = _times(found, (cos, sin, -sin, cos, 0.0, 0.0))
    return found


def _times(m: Affine, n: Affine) -> Affine:
    """Apply `n`, then `m`."""
    return (
        m[0] * n[0] + m[2] * n[1],
        m[1] * n[0] + m[3] * n[1],
        m[0] * n[2] + m[2] * n[3],
        m[1] * n[2] + m[3] * n[3],
        m[0] * n[4] + m[2] * n[5] + m[4],
        m[1] * n[4] + m[3] * n[5] + m[5],
    )
