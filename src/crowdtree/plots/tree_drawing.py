"""One view of a tree as SVG: boxes with their words, lines, level marks and a caption."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from crowdtree.errors import listing
from crowdtree.plots.layout import Direction, Layout, Size, place
from crowdtree.plots.style import FONT, FONT_SIZE, SMALL_SIZE, Tokens
from crowdtree.plots.text import clean, text_width, wrap
from crowdtree.plots.tree_fold import Entry, View
from crowdtree.plots.tree_model import Facts

__all__ = ["LEGEND", "Drawing", "drawing_css", "line_height", "text", "tree_css"]

_TEXT_WIDTH = 176.0
_LINE, _SMALL_LINE = 17.0, 15.0
_MARGIN = 24.0
_THINNEST, _THICKEST = 1.25, 14.0


MOST_NAMES = 3
"""Names of a group that are written in its box; the others follow below the drawing."""


class _Line(NamedTuple):
    text: str
    style: str  # class of the text: "main", "bold" or "small"


@dataclass(frozen=True)
class _Box:
    kind: str
    lines: tuple[_Line, ...]
    title: str
    share: float
    size: Size
    node: int
    note: str = ""  # names for which the box has no space


def _box(facts: Facts, entry: Entry, narrow: bool) -> _Box:
    if entry.kind == "question":
        return _question_box(facts, entry.index)
    if entry.kind == "leaf":
        return _leaf_box(facts, entry.index, narrow)
    return _fold_box(facts, entry.index)


def _question_box(facts: Facts, node: int) -> _Box:
    name, asked = facts.name(node), facts.text(node)
    shown = wrap(f"{node + 1}. {asked}", _TEXT_WIDTH, FONT_SIZE)
    lines = (*(_Line(line, "main") for line in shown), _Line(facts.small(node), "small"))
    head = asked if name == asked else f"{name}: {asked}"
    title = f"{head} ({facts.small(node)} of items)"
    share = float(facts.tree.share[node])
    return _Box("question", lines, title, share, _size(lines, share), node)


def _leaf_box(facts: Facts, leaf: int, narrow: bool) -> _Box:
    label, others, share = facts.label(leaf), facts.others(leaf), float(facts.leaf_share[leaf])
    if leaf in facts.plan.handed_over:
        label = f"perhaps {label}"
    lines = [_Line(line, "bold") for line in wrap(label, 150, FONT_SIZE, most=8, bold=True)]
    if others:
        either = wrap("or " + listing(others, most=MOST_NAMES), 150, SMALL_SIZE, most=8)
        lines += [_Line(line, "small") for line in either]
    first, *rest = facts.leaf_small(leaf)
    rows = [first, *(rest if narrow or not rest else [" · ".join(rest)])]
    lines += [_Line(row, "small") for row in rows]
    group = f" (or {', '.join(others)})" if others else ""
    title = f"{label}{group}: {', '.join(facts.leaf_small(leaf))}"
    note = f"{label} or {', '.join(others)}" if len(others) > MOST_NAMES else ""
    return _Box("leaf", tuple(lines), title, share, _size(tuple(lines), share), -1, note)


def _fold_box(facts: Facts, node: int) -> _Box:
    size, names = facts.fold_text(node), ", ".join(facts.tree.nodes[node].classes)
    shown = wrap(names, 150, SMALL_SIZE, most=2)
    rows = (f"{node + 1}. {size}", *shown, *facts.fold_small(node))
    lines = tuple(_Line(row, "small") for row in rows)
    title = f"{size} of items, folded: {names}"
    share = float(facts.tree.share[node])
    note = f"{node + 1}. {names}" if shown[-1].endswith("…") else ""
    return _Box("fold", lines, title, share, _size(lines, share), node, note)


def _size(lines: tuple[_Line, ...], share: float) -> Size:
    """Size of the text, with padding that grows with the share of items that pass."""
    rim = 6 + 10 * min(share, 1.0) ** 0.5
    width = max(text_width(line.text, *_font(line.style)) for line in lines)
    height = sum(_LINE if line.style != "small" else _SMALL_LINE for line in lines)
    return Size(width + 2 * rim + 6, height + 2 * rim)


def _font(style: str) -> tuple[float, bool]:
    return (SMALL_SIZE, False) if style == "small" else (FONT_SIZE, style == "bold")


class Drawing:
    """A view laid out on a canvas."""

    def __init__(
        self,
        facts: Facts,
        view: View,
        direction: Direction | None,
        *,
        prefix: str = "",
        title: str = "",
        way: str = "",
    ) -> None:
        self.facts, self.view, self.prefix = facts, view, prefix
        self.boxes, self.layout = self._placed(direction)
        self.down = self.layout.direction == "down"
        self.marks = self._level_marks()
        marks_width = max(text_width(word, SMALL_SIZE) for mark in self.marks for word in mark)
        self.left = _MARGIN + (marks_width + 24 if self.down else 0)
        inner = self.layout.width
        if not self.down:  # the last column must hold its level mark
            inner = max(inner, self.layout.levels[-1][0] + marks_width)
        self.width = max(self.left + inner + _MARGIN, 360.0)
        room = self.width - 2 * _MARGIN
        self.title = wrap(title, room, 15, most=3, bold=True) if title else ()
        self.way = wrap(way, room, SMALL_SIZE, most=6) if way else ()
        self.caption = self._caption(room)
        head = 20.0 * len(self.title) + _SMALL_LINE * len(self.way)
        self.top = _MARGIN + head + (16 if head else 0) + (0 if self.down else 44)
        self.foot = self.top + self.layout.height + 32
        self.height = self.foot + _SMALL_LINE * len(self.caption) + _MARGIN - 8

    def _placed(self, direction: Direction | None) -> tuple[list[_Box], Layout]:
        """Place the boxes; leaves are narrow in a tree that grows down, else flat."""
        entries = self.view.entries
        boxes = [_box(self.facts, entry, narrow=direction != "right") for entry in entries]
        layout = place(
            [box.size for box in boxes],
            [entry.children for entry in entries],
            [entry.depth for entry in entries],
            direction=direction,
        )
        if direction is None and layout.direction == "right":
            return self._placed("right")
        return boxes, layout

    def _caption(self, room: float) -> tuple[str, ...]:
        """The legend, which a page has outside of its drawings, and names written in no box."""
        lines = () if self.prefix else wrap(LEGEND, min(room, 640.0), SMALL_SIZE, most=20)
        notes = [box.note for box in self.boxes if box.note and not (self.prefix and box.node >= 0)]
        if not notes:
            return lines
        listed = wrap(" · ".join(notes), min(room, 1600.0), SMALL_SIZE, most=10_000)
        return (*lines, _NOTES, *listed)

    def _level_marks(self) -> list[tuple[str, ...]]:
        first = int(self.facts.tree.level[self.view.root])
        marks: list[tuple[str, ...]] = []
        for d in range(first, first + len(self.layout.levels)):
            entropy = self.facts.entropy[d]
            left = (f"{entropy:.3g} bits left",) if self.view.parent is None else ()
            marks.append((f"level {d}", *left))
        return marks

    def svg(self, style: str) -> str:
        """The whole picture as text."""
        name = clean(" ".join(self.title) or self.facts.title)
        role = "group" if self.prefix else "img"
        root = self.top + self.layout.corners[0][1] + self.boxes[0].size.height / 2
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="ct-tree" role="{role}" '
            f'aria-label="{escape(name)}" viewBox="0 0 {self.width:.0f} {self.height:.0f}" '
            f'width="{self.width:.0f}" height="{self.height:.0f}" '
            f'data-root="{root:.0f}">',
            f"<title>{escape(name)}</title>",
            style,
            '<rect class="paper" width="100%" height="100%"/>',
            *self._words(),
            f'<g transform="translate({self.left:.1f} {self.top:.1f})">',
            *self._levels(),
            *self._edges(),
            *(self._node(place) for place in range(len(self.boxes))),
            "</g>",
            "</svg>",
        ]
        return "\n".join(part for part in parts if part) + "\n"

    def _words(self) -> Iterator[str]:
        y = _MARGIN + 4
        for line in self.title:
            yield text(line, _MARGIN, y + 8, "title")
            y += 20
        for line in self.way:
            yield text(line, _MARGIN, y + 8, "small")
            y += _SMALL_LINE
        for row, line in enumerate(self.caption):
            yield text(line, _MARGIN, self.foot + _SMALL_LINE * row + 8, "small")

    def _levels(self) -> Iterator[str]:
        for (start, extent), words in zip(self.layout.levels, self.marks, strict=True):
            for row, word in enumerate(words):
                if self.down:
                    y = start + extent / 2 + _SMALL_LINE * (row + 1 - len(words) / 2) - 4
                    yield text(word, _MARGIN - self.left, y, "small level")
                else:
                    yield text(word, start, _SMALL_LINE * (row - len(words)) - 6, "small level")
            if self.down:
                y = start + extent / 2
                yield f'<path class="rail" d="M-12 {y:.1f}H{self.layout.width:.1f}"/>'

    def _edges(self) -> Iterator[str]:
        lines, labels = [], []
        for parent, entry in enumerate(self.view.entries):
            if not entry.children:
                continue
            thick = [self._thickness(child) for child in entry.children]
            # the two lines leave side by side, as a flow that splits
            shifts = (-thick[1] / 2, thick[0] / 2)
            for side, child in enumerate(entry.children):
                line, label = self._edge(parent, child, side, thick[side], shifts[side])
                lines.append(line)
                labels.append(label)
        yield from lines
        yield from labels  # above every line

    def _thickness(self, place: int) -> float:
        return _THINNEST + (_THICKEST - _THINNEST) * min(self.boxes[place].share, 1.0)

    def _edge(
        self, parent: int, child: int, side: int, thick: float, shift: float
    ) -> tuple[str, str]:
        (px, py), (cx, cy) = self.layout.corners[parent], self.layout.corners[child]
        a, b = self.boxes[parent].size, self.boxes[child].size
        answer, anchor = ("no", "yes")[side], "end"
        if self.down:
            start, end = (px + a.width / 2 + shift, py + a.height), (cx + b.width / 2, cy)
            beside = thick / 2 + 5
            x, y = end[0] + (beside if side else -beside), cy - 6
            anchor = "start" if side else "end"
        else:
            start, end = (px + a.width, py + a.height / 2 + shift), (cx, cy + b.height / 2)
            x, y = cx - 5, end[1] - thick / 2 - 3
        way = _curve(start, end, self.down)
        label = text(answer, x, y, f"answer {answer}", anchor)
        return f'<path class="edge {answer}" stroke-width="{thick:.2f}" d="{way}"/>', label

    def _node(self, place: int) -> str:
        box, (x, y) = self.boxes[place], self.layout.corners[place]
        w, h = box.size
        corner = min(h / 2, 16) if box.kind == "fold" else 6
        lines, base = [], y + (h - sum(map(line_height, box.lines))) / 2
        for line in box.lines:
            base += line_height(line)
            lines.append(text(line.text, x + w / 2, base - 4.5, line.style, "middle"))
        body = (
            f"<title>{escape(clean(box.title))}</title>"
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="{corner:.1f}"/>'
            + "".join(lines)
        )
        if box.kind == "fold" and self.prefix:
            label = escape(clean(f"Open {self.facts.fold_text(box.node)}"))
            link = f'href="#{self.prefix}-{box.node}" aria-label="{label}"'
            return f'<a class="fold" {link}>{body}</a>'
        return f'<g class="{box.kind}">{body}</g>'


LEGEND = (
    "Under a question: probability that its vote is wrong · votes · share of items that pass. "
    "Lines are as thick as that share. At a label: the share of items that belong there (that "
    "arrive there, where mistakes have costs); recall: of the items of the class, how many get the "
    "label; precision: of the items with the label, how many are of the class. Bits left: what is "
    "still unknown about the class at a level; a question with two equally likely answers removes "
    "one bit."
)
_NOTES = "Classes that are not written out above, by the number of the node:"


def _curve(start: tuple[float, float], end: tuple[float, float], down: bool) -> str:
    """A line that leaves and arrives straight, with space for its label at the end."""
    (x0, y0), (x1, y1) = start, end
    if down:
        bend = y1 - 18
        mid = (y0 + bend) / 2
        return (
            f"M{x0:.1f} {y0:.1f}C{x0:.1f} {mid:.1f} {x1:.1f} {mid:.1f} {x1:.1f} {bend:.1f}V{y1:.1f}"
        )
    bend = x1 - 30
    mid = (x0 + bend) / 2
    return f"M{x0:.1f} {y0:.1f}C{mid:.1f} {y0:.1f} {mid:.1f} {y1:.1f} {bend:.1f} {y1:.1f}H{x1:.1f}"


def line_height(line: _Line) -> float:
    """Height of a line of text."""
    return _SMALL_LINE if line.style == "small" else _LINE


def text(words: str, x: float, y: float, style: str, anchor: str = "start") -> str:
    """A line of text at a place."""
    where = f'x="{x:.1f}" y="{y:.1f}"'
    at = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text class="{style}" {where}{at}>{escape(clean(words))}</text>'


def drawing_css(t: Tokens) -> str:
    """Style of a drawing, from colours or from the names of a page's custom properties."""
    return (
        f".ct-tree text{{font-family:{FONT};font-size:{FONT_SIZE}px;fill:{t.text};"
        "font-variant-numeric:tabular-nums}"
        f".ct-tree .title{{font-size:15px;font-weight:600}}"
        f".ct-tree .bold{{font-weight:600}}"
        f".ct-tree .small{{font-size:{SMALL_SIZE}px;fill:{t.muted}}}"
        f".ct-tree .paper{{fill:{t.background}}}"
        ".scroll .ct-tree .paper{fill:none}"
        f".ct-tree .rail{{stroke:{t.line};stroke-width:1;stroke-dasharray:1 5;fill:none}}"
        f".ct-tree .edge{{fill:none}}"
        f".ct-tree .edge.no{{stroke:{t.orange}}}"
        f".ct-tree .edge.yes{{stroke:{t.accent}}}"
        f".ct-tree .answer{{font-size:{SMALL_SIZE}px;font-weight:600}}"
        f".ct-tree .answer.no{{fill:{t.orange_text}}}"
        f".ct-tree .answer.yes{{fill:{t.accent}}}"
        f".ct-tree .question rect{{fill:{t.background};stroke:{t.grey};stroke-width:1}}"
        f".ct-tree .leaf rect{{fill:{t.surface}}}"
        f".ct-tree .fold rect{{fill:{t.background};stroke:{t.grey};stroke-width:1;"
        "stroke-dasharray:3 3}"
        f".ct-tree a.fold text{{fill:{t.accent};text-decoration:underline}}"
        f".ct-tree a.fold:hover rect,.ct-tree a.fold:focus rect{{fill:{t.accent_soft};"
        f"stroke:{t.accent};stroke-dasharray:none}}"
    )


def tree_css() -> str:
    """Style of a drawing inside a page, in terms of the page's custom properties."""
    names = {name: f"var(--ct-{name.replace('_', '-')})" for name in Tokens.__dataclass_fields__}
    return drawing_css(Tokens(**names))
