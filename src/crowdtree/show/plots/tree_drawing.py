"""One view of a tree as SVG: boxes with their words, lines and a caption."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from crowdtree.show.plots.layout import (
    MAX_DOWN,
    Direction,
    Layout,
    Size,
    indent,
    place_down,
    place_rows,
)
from crowdtree.show.plots.style import FONT, FONT_SIZE, SMALL_SIZE, Tokens
from crowdtree.show.plots.text import clean, text_width, wrap
from crowdtree.show.plots.tree_fold import View
from crowdtree.show.plots.tree_model import Facts, Words
from crowdtree.show.plots.tree_rows import rows_css

_WIDTH = 960.0  # of a drawing in rows
_LINE, _SMALL_LINE = 17.0, 15.0
_MARGIN = 24.0
_THINNEST, _THICKEST = 1.25, 14.0
_PAD = 10.0
_CHIP = 28.0  # of the answer that leads to a row, at least
_ANSWER_DOWN, _ANSWER_ROW = 150.0, 240.0  # of the longest answer
_BESIDE = 5.0  # from a line to its answer
_TRUNK = 0.6  # of the indentation, for the lines of one question
_STYLES = {"question": "main", "leaf": "bold", "fold": "small"}


class _Line(NamedTuple):
    text: str
    style: str  # class of the text: "main", "bold" or "small"


@dataclass(frozen=True)
class _Box:
    words: Words
    lines: tuple[_Line, ...]
    small: tuple[str, ...]
    size: Size
    aside: bool = False  # the small print is to the right of the first line, not below the last
    note: str = ""  # names for which the box has no space

    @property
    def height(self) -> float:
        """Height of the text."""
        below = 0.0 if self.aside else _SMALL_LINE * len(self.small)
        return below + sum(map(_line_height, self.lines))


def _lines(words: Words, room: float, sub_room: float) -> tuple[tuple[_Line, ...], str]:
    """Break the text of a box into lines; and the names that do not fit."""
    style, fold = _STYLES[words.kind], words.kind == "fold"
    size, bold = _font(style)
    main = wrap(words.main, room, size, most=4 if words.kind == "question" else 8, bold=bold)
    sub = wrap(words.sub, sub_room, SMALL_SIZE, most=2 if fold else 8) if words.sub else ()
    note = words.note if not fold or sub[-1].endswith("…") else ""
    return (*(_Line(line, style) for line in main), *(_Line(line, "small") for line in sub)), note


def _box_down(words: Words, answer: str) -> _Box:
    """A box as wide as its text, with padding that grows with the share of items that pass.

    The answer above it, to one side of the line, needs half of the width.
    """
    room = 176.0 if words.kind == "question" else 150.0
    lines, note = _lines(words, room, room)
    rim = 6 + 10 * min(words.share, 1.0) ** 0.5
    rows = (*lines, *(_Line(row, "small") for row in words.small))
    width = max(text_width(row.text, *_font(row.style)) for row in rows)
    height = sum(map(_line_height, rows))
    above = 2 * (_answer_width(answer) + _THICKEST / 2 + _BESIDE)
    size = Size(max(width + 2 * rim + 6, above), height + 2 * rim)
    return _Box(words, lines, words.small, size, note=note)


def _answer_width(answer: str) -> float:
    return text_width(answer, SMALL_SIZE, bold=True)


def _box_row(words: Words, width: float, chip: float) -> _Box:
    """A box of a given width, with its small print on the right while that leaves space."""
    small = " · ".join(words.small)
    room = width - 2 * _PAD - chip
    beside = room - text_width(small, SMALL_SIZE) - 24 if small else room
    aside = beside > room / 3
    lines, note = _lines(words, beside if aside else room, room)
    height = sum(map(_line_height, lines)) + (0 if aside or not small else _SMALL_LINE)
    size = Size(width, height + 12)
    return _Box(words, lines, (small,) if small else (), size, aside, note)


def _font(style: str) -> tuple[float, bool]:
    return (SMALL_SIZE, False) if style == "small" else (FONT_SIZE, style == "bold")


def _line_height(line: _Line) -> float:
    return _SMALL_LINE if line.style == "small" else _LINE


class Drawing:
    """A view laid out on a canvas: it grows down while that fits a page, else it has rows."""

    def __init__(
        self,
        facts: Facts,
        view: View,
        direction: Direction | None,
        *,
        prefix: str = "",
        title: str = "",
        way: str = "",
        levels: bool = False,
    ) -> None:
        self.facts, self.view, self.prefix = facts, view, prefix
        self.boxes, self.layout = self._placed(direction)
        self.down = bool(self.layout.levels)
        self.marks = self._level_marks() if levels else []
        marks_width = max((text_width(word, SMALL_SIZE) for word in self.marks), default=0.0)
        self.left = _MARGIN + (marks_width + 24 if self.down and levels else 0)
        self.width = max(self.left + self.layout.width + _MARGIN, 360.0)
        room = self.width - 2 * _MARGIN
        self.title = wrap(title, room, 15, most=3, bold=True) if title else ()
        self.way = wrap(way, room, SMALL_SIZE, most=6) if way else ()
        self.caption = self._caption(room)
        head = 20.0 * len(self.title) + _SMALL_LINE * len(self.way)
        self.top = _MARGIN + head + (16 if head else 0)
        self.foot = self.top + self.layout.height + 32
        self.height = self.foot + _SMALL_LINE * len(self.caption) + _MARGIN - 8

    def _placed(self, direction: Direction | None) -> tuple[list[_Box], Layout]:
        entries = self.view.entries
        words = [self.facts.words(entry) for entry in entries]
        children = [entry.children for entry in entries]
        level = [entry.depth for entry in entries]
        if direction != "right":
            self.answers = self._answers(_ANSWER_DOWN)
            boxes = [_box_down(*pair) for pair in zip(words, self.answers, strict=True)]
            layout = place_down([box.size for box in boxes], children, level)
            if direction == "down" or layout.width <= MAX_DOWN:
                return boxes, layout
        self.step = indent(level, _WIDTH)
        self.answers = self._answers(_ANSWER_ROW)
        self.chips = [0.0] * len(entries)
        for entry in entries:
            widths = [_answer_width(self.answers[child]) + 6 for child in entry.children]
            for child in entry.children:
                self.chips[child] = max(_CHIP, *widths)
        boxes = [
            _box_row(box, _WIDTH - self.step * d, chip)
            for box, d, chip in zip(words, level, self.chips, strict=True)
        ]
        return boxes, place_rows([box.size for box in boxes], children, level, _WIDTH)

    def _answers(self, room: float) -> list[str]:
        """Answer that leads to each box, on one line."""
        answers = (entry.answer for entry in self.view.entries)
        return [wrap(answer, room, SMALL_SIZE, most=1, bold=True)[0] for answer in answers]

    def _caption(self, room: float) -> tuple[str, ...]:
        """The legend, which a page has outside of its drawings, and names written in no box."""
        shown = room if not self.down else min(room, 640.0)
        lines = () if self.prefix else wrap(LEGEND, shown, SMALL_SIZE, most=20)
        if self.marks and not self.down:
            lines = (*lines, *wrap(" · ".join(self.marks), room, SMALL_SIZE, most=20))
        notes = [box.note for box in self.boxes if box.note]
        if not notes:
            return lines
        return (*lines, _NOTES, *wrap(" · ".join(notes), room, SMALL_SIZE, most=10_000))

    def _level_marks(self) -> list[str]:
        first = int(self.facts.tree.level[self.view.root])
        last = max(entry.depth for entry in self.view.entries)
        return [
            f"level {d}: {self.facts.entropy[d]:.3g} bits left"
            for d in range(first, first + last + 1)
        ]

    def svg(self, style: str) -> str:
        """The whole picture as text; `style` has the colours, none inside a page."""
        name = clean(" ".join(self.title) or self.facts.title)
        role = "group" if self.prefix else "img"
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="ct-tree" role="{role}" '
            f'aria-label="{escape(name)}" viewBox="0 0 {self.width:.0f} {self.height:.0f}" '
            f'width="{self.width:.0f}" height="{self.height:.0f}">',
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
        for (start, extent), words in zip(self.layout.levels, self.marks, strict=False):
            y = start + extent / 2
            yield text(words, _MARGIN - self.left, y + 4, "small level")
            yield f'<path class="rail" d="M-12 {y:.1f}H{self.layout.width:.1f}"/>'

    def _edges(self) -> Iterator[str]:
        lines, labels = [], []
        for parent, entry in enumerate(self.view.entries):
            if not entry.children:
                continue
            # the lines leave side by side, as a flow that splits
            thick = self._thicknesses(entry.children)
            for side, child in enumerate(entry.children):
                before, after = sum(thick[:side]), sum(thick[side + 1 :])
                shift = (before - after) / 2 if self.down else after + thick[side] / 2
                line, label = self._edge(parent, child, thick[side], shift)
                lines.append(line)
                labels.append(label)
        yield from lines
        yield from labels  # above every line

    def _thicknesses(self, children: Sequence[int]) -> list[float]:
        thick = [self._thickness(child) for child in children]
        if self.down or len(thick) == 2:
            return thick
        most = min(1.0, _TRUNK * self.step / sum(thick))  # many lines share the indentation
        return [each * most for each in thick]

    def _thickness(self, place: int) -> float:
        thickest = _THICKEST if self.down else min(_THICKEST, self.step / 2)
        return _THINNEST + (thickest - _THINNEST) * min(self.boxes[place].words.share, 1.0)

    def _edge(self, parent: int, child: int, thick: float, shift: float) -> tuple[str, str]:
        (px, py), (cx, cy) = self.layout.corners[parent], self.layout.corners[child]
        a, b = self.boxes[parent].size, self.boxes[child].size
        style = self.view.entries[child].style
        if self.down:
            start, end = (px + a.width / 2 + shift, py + a.height), (cx + b.width / 2, cy)
            beside, left = thick / 2 + _BESIDE, child == self.view.entries[parent].children[0]
            x, anchor = end[0] + (-beside if left else beside), "end" if left else "start"
            answer = self.answers[child]
            way, label = _curve(start, end), text(answer, x, cy - 6, f"answer {style}", anchor)
        else:
            way = _elbow((px + self.step / 5 + shift, py + a.height), (cx, cy + b.height / 2))
            label = ""  # written in the row
        return f'<path class="edge {style}" stroke-width="{thick:.2f}" d="{way}"/>', label

    def _node(self, place: int) -> str:
        box, (x, y) = self.boxes[place], self.layout.corners[place]
        w, h = box.size
        kind = box.words.kind
        corner = min(h / 2, 16) if kind == "fold" else 6
        lines, base = [], y + (h - box.height) / 2
        at, anchor = (x + w / 2, "middle") if self.down else (x + _PAD, "start")
        if not self.down and place:
            style = f"answer {self.view.entries[place].style}"
            lines.append(text(self.answers[place], at, base + _LINE - 4.5, style))
            at += self.chips[place]
        if box.aside:
            top = base + _line_height(box.lines[0]) - 4.5
            lines += [self._small(place, small, x + w - _PAD, top, "end") for small in box.small]
        for line in box.lines:
            base += _line_height(line)
            lines.append(text(line.text, at, base - 4.5, line.style, anchor))
        if not box.aside:
            for small in box.small:
                base += _SMALL_LINE
                lines.append(self._small(place, small, at, base - 4.5, anchor))
        answer = self.view.entries[place].answer
        cut = "" if self.answers[place] == clean(answer) else f"{answer} → "
        body = (
            f"<title>{escape(clean(cut + box.words.title))}</title>"
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="{corner:.1f}"/>'
            + "".join(lines)
        )
        if kind == "fold" and self.prefix:
            label = escape(clean(f"Open {self.facts.fold_text(box.words.node)}"))
            link = f'href="#{self.prefix}-{box.words.node}" aria-label="{label}"'
            return f'<a class="fold" {link}>{body}</a>'
        return f'<g class="{kind}">{body}</g>'

    def _small(self, place: int, line: str, x: float, y: float, anchor: str) -> str:
        """A line of small print of a box."""
        del place
        return text(line, x, y, "small", anchor)


LEGEND = (
    "Question: how often its vote is wrong · votes · share of items that reach it; lines are as "
    "thick as that share. Label: share of items that belong there (that arrive there, where "
    "mistakes have costs); recall: of the items of the class, how many get the label; precision: "
    "of the items that end there, how many are of the class."
)
_NOTES = "Classes that are not written out above, by the number of the node:"


def _curve(start: tuple[float, float], end: tuple[float, float]) -> str:
    """A line that leaves and arrives straight, with space for its label at the end."""
    (x0, y0), (x1, y1) = start, end
    bend = y1 - 18
    mid = (y0 + bend) / 2
    return f"M{x0:.1f} {y0:.1f}C{x0:.1f} {mid:.1f} {x1:.1f} {mid:.1f} {x1:.1f} {bend:.1f}V{y1:.1f}"


def _elbow(start: tuple[float, float], end: tuple[float, float]) -> str:
    """A line straight down, then right, around a corner."""
    (x0, y0), (x1, y1) = start, end
    bend = max(0.0, min(10.0, x1 - x0, y1 - y0))
    return f"M{x0:.1f} {y0:.1f}V{y1 - bend:.1f}Q{x0:.1f} {y1:.1f} {x0 + bend:.1f} {y1:.1f}H{x1:.1f}"


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
        ".ct-graph .ct-tree .paper{fill:none}"
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


def answers_css(t: Tokens) -> str:
    """Colours of answers other than no and yes, of which few drawings have any.

    Only the lines are coloured: many answers are names of colours.
    """
    return "".join(
        f".ct-tree .edge.a{k}{{stroke:{colour}}}.ct-tree .answer.a{k}{{fill:{t.muted}}}"
        for k, colour in enumerate(t.answers)
    )


def tree_css() -> str:
    """Style of a drawing inside a page, in terms of the page's custom properties."""
    names = {name: f"var(--ct-{name.replace('_', '-')})" for name in Tokens.__dataclass_fields__}
    page = Tokens(**names)
    return drawing_css(page) + answers_css(page) + rows_css(page)
