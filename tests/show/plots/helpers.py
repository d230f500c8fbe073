"""What the tests of this package share."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import crowdtree as ct
from crowdtree.show.plots.text import text_width

SVG = "{http://www.w3.org/2000/svg}"


TEXTS = (
    "Does it fly?",
    "Does it live in the water for most of its life?",
    "Is it bigger than a person?",
    "Has it got fur or hair on most of its body, and whiskers around its mouth?",
)


def some_problem(n: int, seed: int = 0, even: bool = False) -> ct.Problem:
    rng = np.random.default_rng(seed)
    m = 40
    return ct.Problem(
        classes=[f"{('Robin', 'Great white shark', 'Cat')[i % 3]} {i}" for i in range(n)],
        prior=None if even else rng.dirichlet(np.full(n, 0.5)) + 1e-5,
        questions=[f"q{i}" for i in range(m)],
        outcome=rng.integers(0, 2, (m, n)),
        worker_error=rng.uniform(0.02, 0.3, m),
        texts=[TEXTS[i % 4] for i in range(m)],
        normalise=True,
    )


def comb_problem(n: int) -> ct.Problem:
    """Each question tells one class from all others: the tree is as deep as can be."""
    return ct.Problem(
        [f"class {i}" for i in range(n)], None, [f"q{i}" for i in range(n)], np.eye(n), 0.1
    )


class Box(NamedTuple):
    name: str
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def text_boxes(svg: str) -> list[Box]:
    """Boxes around every line of text that is seen, in canvas pixels, in a wide font."""
    found: list[Box] = []

    def walk(element: ET.Element, matrix: np.ndarray) -> None:
        matrix = matrix @ _matrix(element.get("transform", ""))
        if element.tag == SVG + "text" and element.get("opacity") != "0":
            found.extend(_lines(element, matrix))
            return
        for child in element:
            walk(child, matrix)

    walk(ET.fromstring(svg), np.eye(3))
    return found


def _matrix(transform: str) -> np.ndarray:
    made = np.eye(3)
    for name, words in re.findall(r"(translate|rotate)\(([^)]*)\)", transform):
        values = [float(word) for word in re.split(r"[ ,]+", words.strip())]
        step = np.eye(3)
        if name == "translate":
            step[:2, 2] = [*values, 0.0][:2]
        else:
            turn = np.radians(values[0])
            step[:2, :2] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
        made = made @ step
    return made


def _lines(element: ET.Element, matrix: np.ndarray) -> Iterator[Box]:
    kind = element.get("class", "").split()  # drawings of trees are styled by class
    size = 15.0 if "title" in kind else 11.0 if {"small", "answer"} & set(kind) else 13.0
    size = float(element.get("font-size", f"{size}px").removesuffix("px"))
    bold = bool({"bold", "title", "answer"} & set(kind)) or element.get("font-weight") == "600"
    start = {"start": 0.0, "middle": 0.5, "end": 1.0}[element.get("text-anchor", "start")]
    row = 0.0
    for part in element.iter():
        row += float(part.get("dy", 0)) if part.tag == SVG + "tspan" else 0.0
        if not part.text:
            continue
        width = text_width(part.text, size, bold)
        left = float(element.get("x", 0)) - start * width
        base = float(element.get("y", 0)) + row
        corners = [
            (matrix @ [x, y, 1.0])[:2]
            for x in (left, left + width)
            for y in (base - 0.8 * size, base + 0.22 * size)
        ]
        (x0, y0), (x1, y1) = np.min(corners, axis=0), np.max(corners, axis=0)
        yield Box(part.text, x0, y0, x1, y1)


def view_box(svg: str) -> Box:
    left, top, width, height = map(float, ET.fromstring(svg).get("viewBox", "").split())
    return Box("view box", left, top, left + width, top + height)


def external(page: str) -> list[str]:
    """Addresses that a page would fetch."""
    found = re.findall(r"""(?:src|href)\s*=\s*["']?([^"'#\s>][^"'\s>]*)""", page)
    return found + re.findall(r"url\(|@import|https?://(?!www\.w3\.org)", page)
