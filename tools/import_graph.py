"""Draw which package imports which.

``python tools/import_graph.py`` writes docs/figures/imports.svg: the packages of crowdtree, each
above all that it imports, lazy imports included. An import that follows from longer chains of
others is left out. That no import goes up is checked by ``lint-imports``, not here.
"""

from __future__ import annotations

import sys
from graphlib import TopologicalSorter
from html import escape
from itertools import pairwise
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "figures" / "imports.svg"
PACKAGE = "crowdtree"
BOX, HEIGHT, ROW, STEP, MARGIN = 104, 28, 62, 132, 16
SWEEPS = 12
"""Rounds in which boxes move towards those they are joined with."""

Node = tuple[str, int]
"""A package and its row, or a point where an import passes a row."""


def imports() -> dict[str, set[str]]:
    """Packages that each package imports."""
    sys.path.insert(0, str(ROOT / "src"))
    graph = grimp.build_graph(PACKAGE)
    found: dict[str, set[str]] = {}
    for module in graph.modules:
        others = {_top(other) for other in graph.find_modules_directly_imported_by(module)}
        found.setdefault(_top(module), set()).update(others)
    found.pop("")
    return {name: others - {name, ""} for name, others in found.items() if name[0] != "_"}


def _top(module: str) -> str:
    """Name of the package right below the root that a module belongs to."""
    return [*module.split("."), ""][1]


def without_implied(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """Leave out imports that longer chains imply."""
    below: dict[str, set[str]] = {}
    for name in TopologicalSorter(edges).static_order():
        direct = edges.get(name, set())
        below[name] = direct.union(*(below[other] for other in direct))
    return {
        name: {other for other in direct if not any(other in below[o] for o in direct)}
        for name, direct in edges.items()
    }


def rows_of(edges: dict[str, set[str]]) -> dict[str, int]:
    """Row of each package, counted from the bottom: above all that it imports."""
    row: dict[str, int] = {}
    for name in TopologicalSorter(edges).static_order():
        row[name] = 1 + max((row[other] for other in edges.get(name, ())), default=-1)
    return row


def lines_of(edges: dict[str, set[str]], row: dict[str, int]) -> list[list[Node]]:
    """Points of each line: a package, the rows that it passes, the package it imports."""
    return [
        [
            (name, row[name]),
            *((f"{name}>{other}", level) for level in range(row[name] - 1, row[other], -1)),
            (other, row[other]),
        ]
        for name in sorted(edges)
        for other in sorted(edges[name])
    ]


def arrange(lines: list[list[Node]]) -> dict[Node, float]:
    """Middle of each point, such that few lines cross."""
    joined: dict[Node, set[Node]] = {}
    for line in lines:
        for upper, lower in pairwise(line):
            joined.setdefault(upper, set()).add(lower)
            joined.setdefault(lower, set()).add(upper)
    levels = sorted({level for _, level in joined})
    ranked = {level: sorted(node for node in joined if node[1] == level) for level in levels}
    x: dict[Node, float] = {}

    def spread(level: int) -> None:
        nodes = ranked[level]
        x.update({node: i - (len(nodes) - 1) / 2 for i, node in enumerate(nodes)})

    for level in levels:
        spread(level)
    for sweep in range(SWEEPS):
        for level in levels[:: -1 if sweep % 2 else 1]:
            ranked[level].sort(key=lambda n: sum(x[o] for o in joined[n]) / len(joined[n]))
            spread(level)
    return x


def draw(edges: dict[str, set[str]]) -> str:
    """Draw the picture as SVG."""
    row = rows_of(edges)
    lines = lines_of(edges, row)
    x = arrange(lines)
    top, left = max(row.values()), min(x.values())
    width = (max(x.values()) - left) * STEP + BOX + 2 * MARGIN
    height = top * ROW + HEIGHT + 2 * MARGIN

    def middle(node: Node) -> tuple[float, float]:
        across = MARGIN + BOX / 2 + (x[node] - left) * STEP
        return across, MARGIN + HEIGHT / 2 + (top - node[1]) * ROW

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'font-family="sans-serif" font-size="13" role="img">',
        "<title>Packages of crowdtree, each above what it imports</title>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fff"/>',
    ]
    for line in lines:
        (x1, y1), *rest = (middle(node) for node in line)
        path = f"M{x1:.0f} {y1:.0f}"
        for x2, y2 in rest:
            path += f" C{x1:.0f} {(y1 + y2) / 2:.0f} {x2:.0f} {(y1 + y2) / 2:.0f} {x2:.0f} {y2:.0f}"
            x1, y1 = x2, y2
        parts.append(f'<path d="{path}" fill="none" stroke="#3b5b7a" stroke-width="1.4"/>')
    for name, level in sorted(row.items()):
        across, down = middle((name, level))
        parts.append(
            f'<rect x="{across - BOX / 2:.0f}" y="{down - HEIGHT / 2:.0f}" width="{BOX}" '
            f'height="{HEIGHT}" rx="5" fill="#eef3f8" stroke="#3b5b7a"/>'
            f'<text x="{across:.0f}" y="{down + 4.5:.0f}" text-anchor="middle">'
            f"{escape(name)}</text>"
        )
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Write the picture and say what is in it."""
    found = imports()
    shown = without_implied(found)
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(draw(shown), encoding="utf-8")
    counts = [sum(map(len, edges.values())) for edges in (shown, found)]
    print(f"{PAGE.relative_to(ROOT)}: {len(shown)} packages, {counts[0]} of {counts[1]} imports")


if __name__ == "__main__":
    main()
