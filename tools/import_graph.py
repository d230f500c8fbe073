"""Draw which package imports which.

``python tools/import_graph.py`` writes docs/figures/imports.svg. Rows are the layers of the import
contract in pyproject.toml, highest first; lines are the imports that the source has, lazy ones
included. An import that follows from longer chains of others is pale, so that the dark lines show
the structure. An import that goes up, which the contract forbids, is red.
"""

from __future__ import annotations

import sys
import tomllib
from html import escape
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "figures" / "imports.svg"
PACKAGE = "crowdtree"
BOX, HEIGHT, ROW, WIDTH = 104, 26, 54, 800
MARGIN = 20

Edges = dict[tuple[str, str], int]


def layers() -> list[list[str]]:
    """Rows of the contract named "layers", highest first."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = config["tool"]["importlinter"]["contracts"]
    found = next(c for c in contracts if c["name"] == "layers" and c["containers"] == [PACKAGE])
    return [[name.strip() for name in row.split("|")] for row in found["layers"]]


def imports(names: list[str]) -> Edges:
    """How many modules of each package import something of each other one."""
    sys.path.insert(0, str(ROOT / "src"))
    graph = grimp.build_graph(PACKAGE)
    made: Edges = {}
    for module in sorted(graph.modules):
        here = top(module)
        for name in sorted(
            {top(other) for other in graph.find_modules_directly_imported_by(module)}
        ):
            if here != name and here in names and name in names:
                made[here, name] = made.get((here, name), 0) + 1
    return made


def top(module: str) -> str:
    """Name of the package right below the root that a module belongs to."""
    return [*module.split("."), ""][1]


def implied(edges: Edges) -> set[tuple[str, str]]:
    """Edges that a longer path makes superfluous."""
    below: dict[str, set[str]] = {}

    def reach(name: str) -> set[str]:
        if name not in below:
            below[name] = set()  # a cycle ends here
            direct = {b for a, b in edges if a == name}
            below[name] = direct.union(*(reach(other) for other in direct))
        return below[name]

    return {
        (a, b)
        for a, b in edges
        if any(b in reach(c) for start, c in edges if start == a and c != b)
    }


def places(rows: list[list[str]]) -> dict[str, tuple[float, float]]:
    """Middle of each box; rows with one box are shifted in turn, so that lines do not hide."""
    made = {}
    for number, row in enumerate(rows):
        shift = 0.0 if len(row) > 1 else (-1, 0, 1)[number % 3] * 1.1 * BOX
        for i, name in enumerate(row):
            step = min(BOX + 60, (WIDTH - BOX - 2) / max(len(row) - 1, 1))
            x = WIDTH / 2 + shift + (i - (len(row) - 1) / 2) * step
            made[name] = x, MARGIN + HEIGHT / 2 + number * ROW
    return made


def draw(rows: list[list[str]], edges: Edges) -> str:
    """The picture as SVG."""
    place, extra = places(rows), implied(edges)
    number = {name: i for i, row in enumerate(rows) for name in row}
    height = 2 * MARGIN + HEIGHT + (len(rows) - 1) * ROW
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="sans-serif" font-size="13" role="img">',
        "<title>Imports between the packages of crowdtree, by layer</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
    ]
    for pair in sorted(edges, key=lambda pair: (pair not in extra, pair)):
        (x1, y1), (x2, y2) = place[pair[0]], place[pair[1]]
        up = number[pair[1]] <= number[pair[0]]
        colour = "#c0392b" if up else "#d9dee4" if pair in extra else "#3b5b7a"
        side = (x1 - WIDTH / 2 or 1) / abs(x1 - WIDTH / 2 or 1)
        bend = side * 14 * max(0, number[pair[1]] - number[pair[0]] - 1)
        middle = (y1 + y2) / 2
        parts.append(
            f'<path d="M{x1:.0f} {y1 + HEIGHT / 2:.0f} C{x1 + bend:.0f} {middle:.0f} '
            f'{x2 + bend:.0f} {middle:.0f} {x2:.0f} {y2 - HEIGHT / 2:.0f}" fill="none" '
            f'stroke="{colour}" stroke-width="{1.4 if colour != "#d9dee4" else 0.8}">'
            f"<title>{escape(pair[0])} imports {escape(pair[1])} in {edges[pair]} modules</title>"
            "</path>"
        )
    for name, (x, y) in place.items():
        parts.append(
            f'<rect x="{x - BOX / 2:.0f}" y="{y - HEIGHT / 2:.0f}" width="{BOX}" height="{HEIGHT}" '
            f'rx="5" fill="#eef3f8" stroke="#3b5b7a"/>'
            f'<text x="{x:.0f}" y="{y + 4.5:.0f}" text-anchor="middle">{escape(name)}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Write the picture and say what is in it."""
    rows = layers()
    names = [name for row in rows for name in row]
    edges = imports(names)
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(draw(rows, edges), encoding="utf-8")
    number = {name: i for i, row in enumerate(rows) for name in row}
    against = [pair for pair in edges if number[pair[1]] <= number[pair[0]]]
    print(f"{PAGE.relative_to(ROOT)}: {len(names)} packages, {len(edges)} edges, {len(against)} up")


if __name__ == "__main__":
    main()
