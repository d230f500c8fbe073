"""Drawings and charts: complete, readable, safe, self-contained, written whole or not at all."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import asdict
from itertools import combinations, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.plots import draw_tree, layout, save, style, tree_fold, tree_svg
from crowdtree.plots.text import clean, text_width, wrap
from crowdtree.plots.trees import tree_views
from crowdtree.text import percent

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
    """Boxes of every line of text, in canvas pixels."""
    root = ET.fromstring(svg)
    found: list[Box] = []

    def walk(element: ET.Element, dx: float, dy: float) -> None:
        shift = re.match(r"translate\((\S+) (\S+)\)", element.get("transform", ""))
        if shift:
            dx, dy = dx + float(shift[1]), dy + float(shift[2])
        if element.tag == SVG + "text":
            kind = element.get("class", "").split()
            size = 15 if "title" in kind else 11 if {"small", "answer"} & set(kind) else 13
            bold = bool({"bold", "title", "answer"} & set(kind))
            width = text_width(element.text or "", size, bold)
            start = {"start": 0.0, "middle": 0.5, "end": 1.0}[element.get("text-anchor", "start")]
            x = float(element.get("x", 0)) + dx - start * width
            y = float(element.get("y", 0)) + dy
            found.append(Box(element.text or "", x, y - 0.8 * size, x + width, y + 0.22 * size))
        for child in element:
            walk(child, dx, dy)

    walk(root, 0.0, 0.0)
    return found


def node_boxes(svg: str) -> list[Box]:
    """Rectangles of the nodes, in the coordinates of the drawing's group."""
    found = []
    for kind in ("question", "leaf", "fold"):
        for group in ET.fromstring(svg).iter():
            if group.get("class") == kind and group.tag in (SVG + "g", SVG + "a"):
                rect = group.find(SVG + "rect")
                assert rect is not None
                x, y, w, h = (float(rect.get(key, 0)) for key in ("x", "y", "width", "height"))
                found.append(Box(kind, x, y, x + w, y + h))
    return found


# -------------------------------------------------------------------- words


def test_text_width_is_at_least_that_of_helvetica() -> None:
    # advance widths of Helvetica in thousandths, summed by hand from its published metrics
    for text, thousandths in {"Hello": 2278, "Does it fly?": 4946, "8.23 %": 3113}.items():
        assert text_width(text, 10) >= thousandths / 100
        assert text_width(text, 10) <= 1.25 * thousandths / 100  # the margin, and a little
    assert text_width("象", 10) >= 10
    assert text_width("e\u0301", 10) == text_width("e", 10)


@pytest.mark.parametrize("text", ["", "a", "word " * 30, "x" * 200, "一" * 50, "a" * 40 + " b"])
def test_wrapped_lines_fit(text: str) -> None:
    lines = wrap(text, 100, 13)
    assert 1 <= len(lines) <= 4
    assert all(text_width(line, 13) <= 100 for line in lines)


def test_wrap_loses_nothing_that_fits() -> None:
    assert " ".join(wrap("Does it have a long trunk and big ears?", 120, 13)) == (
        "Does it have a long trunk and big ears?"
    )
    assert "".join(wrap("x" * 30, 100, 13)) == "x" * 30


def test_clean_keeps_what_xml_allows() -> None:
    dirty = "a\x00\x08\x1b\ud800\ufffe\tb\u200bc"
    ET.fromstring(f"<a>{clean(dirty)}</a>")
    assert clean("  two\n words ") == "two words"


def test_percent_never_lies_at_the_ends() -> None:
    assert percent(1 - 1e-4) == "> 99.9 %"
    assert percent(1e-7) == "< 0.001 %"
    assert percent(1 - 1e-16) == "100 %"
    assert percent(0.082311) == "8.23 %"


# -------------------------------------------------------------------- tokens


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("tokens", [style.LIGHT, style.DARK])
def test_text_is_readable(tokens: style.Tokens) -> None:
    for word in ("text", "muted", "accent", "orange_text", "error"):
        for ground in ("background", "surface"):
            assert contrast(getattr(tokens, word), getattr(tokens, ground)) >= 4.5, (word, ground)
    assert contrast(tokens.text, tokens.accent_soft) >= 4.5
    assert len(set(asdict(tokens).values())) == len(asdict(tokens))


def test_no_and_yes_differ_in_grey_print() -> None:
    assert contrast(style.LIGHT.orange, style.LIGHT.accent) >= 2


# -------------------------------------------------------------------- layout


@pytest.mark.parametrize("direction", ["down", "right"])
@pytest.mark.parametrize("seed", range(5))
def test_boxes_of_any_size_never_overlap(direction: layout.Direction, seed: int) -> None:
    rng = np.random.default_rng(seed)
    children: list[list[int]] = [[]]
    level = [0]
    for _ in range(40):
        leaf = int(rng.choice([i for i, pair in enumerate(children) if not pair]))
        children[leaf] = [len(children), len(children) + 1]
        level += [level[leaf] + 1] * 2
        children += [[], []]
    sizes = [layout.Size(*rng.uniform(20, 200, 2)) for _ in children]
    made = layout.place(sizes, children, level, direction=direction)
    boxes = [
        Box(str(i), x, y, x + w, y + h)
        for i, ((x, y), (w, h)) in enumerate(zip(made.corners, sizes, strict=True))
    ]
    assert not [pair for pair in combinations(boxes, 2) if pair[0].meets(pair[1])]
    assert min(b.left for b in boxes) == pytest.approx(0)
    assert max(b.right for b in boxes) == pytest.approx(made.width)
    assert max(b.bottom for b in boxes) == pytest.approx(made.height)


def test_narrow_trees_grow_down_and_deep_ones_to_the_right() -> None:
    shallow, deep = ct.design(ct.example("table1")), ct.design(comb_problem(12))
    assert 'class="rail"' in tree_svg(shallow)  # levels marked by a line across: down
    assert 'class="rail"' not in tree_svg(deep)
    assert 'class="rail"' in tree_svg(deep, direction="down")


# -------------------------------------------------------------------- the tree


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("n", [2, 5, 20, 200])
def test_no_label_overlaps_another(n: int, even: bool) -> None:
    plan = ct.staff(ct.design(some_problem(n, even=even)), workers=4 * n)
    svg = tree_svg(plan)
    texts = text_boxes(svg)
    assert not [(a, b) for a, b in combinations(texts, 2) if a.meets(b)]
    width, height = map(float, ET.fromstring(svg).get("viewBox", "").split()[2:])
    assert all(t.left >= 0 and t.right <= width and t.top >= 0 for t in texts)
    assert all(t.bottom <= height for t in texts)
    boxes = node_boxes(svg)
    assert not [(a, b) for a, b in combinations(boxes, 2) if a.meets(b)]
    assert width <= 4000


@pytest.mark.parametrize("n", [5, 24])
def test_every_label_and_number_is_there(n: int) -> None:
    tree = ct.design(some_problem(n))
    plan = ct.staff(tree, workers=2 * n)
    svg = tree_svg(plan)
    titles = [element.text or "" for element in ET.fromstring(svg).iter(SVG + "title")]
    correct = ct.evaluate(plan).correct
    for place, name in enumerate(tree.problem.classes):
        right = percent(float(correct[place]))
        share = percent(float(tree.problem.prior[place]))
        assert f"{name}: {share} of items, right {right}" in titles
    words = {box.name for box in text_boxes(svg)}
    for node in tree.nodes:
        assert any(title.startswith(f"{node.question}: {node.text}") for title in titles)
        error = percent(float(plan.node_error[node.index] / node.share))
        votes = int(plan.votes[node.index])
        small = f"{error} error · {votes} vote{'s' * (votes > 1)} · {percent(node.share)}"
        assert small in words
    for level in tree.levels:
        assert {f"level {level.depth}", f"{level.entropy:.3g} bits left"} <= words
    assert sum(box.name == "no" for box in text_boxes(svg)) == tree.n_nodes
    assert sum(box.name == "yes" for box in text_boxes(svg)) == tree.n_nodes


def test_lines_and_boxes_grow_with_the_share_of_items() -> None:
    tree = ct.design(ct.example("table1"))
    root = ET.fromstring(tree_svg(tree))
    thick = [
        float(e.get("stroke-width", 0))
        for e in root.iter(SVG + "path")
        if "edge" in e.get("class", "")
    ]
    share = [0.4, 0.6, 0.2, 0.2, 0.1, 0.1, 0.05, 0.05]
    assert thick == pytest.approx([1.25 + 12.75 * s for s in share], abs=0.01)
    boxes = [b for b in node_boxes(tree_svg(tree)) if b.name == "question"]
    heights = [b.bottom - b.top for b in boxes]
    assert heights == sorted(heights, reverse=True)
    assert heights[0] > heights[-1]


def test_a_plan_by_margin_and_a_group_are_named() -> None:
    problem = ct.Problem(["a", "b", "c"], [0.5, 0.3, 0.2], ["q"], [[0, 1, 1]], 0.1)
    tree = ct.design(problem, allow_groups=True)
    svg = tree_svg(ct.Plan(tree, np.array([3]), vote="margin"))
    assert "lead of 3" in svg
    assert "or c" in {box.name for box in text_boxes(svg)}


def test_dark_and_light_differ_in_colour_only() -> None:
    tree = ct.design(ct.example("table1"))
    light, dark = tree_svg(tree), tree_svg(tree, tokens=style.DARK)
    assert light != dark
    assert re.sub("<style>.*</style>", "", light) == re.sub("<style>.*</style>", "", dark)


# -------------------------------------------------------------------- folding


@pytest.mark.parametrize("n", [25, 200, 1000])
@pytest.mark.parametrize("even", [False, True])
def test_views_hold_every_node_and_leaf_once(n: int, even: bool) -> None:
    tree = ct.design(some_problem(n, even=even), allow_groups=True)
    shown = list(tree_fold.views(tree))
    nodes = [e.index for view in shown for e in view.entries if e.kind == "question"]
    leaves = [e.index for view in shown for e in view.entries if e.kind == "leaf"]
    assert sorted(nodes) == list(range(tree.n_nodes))
    assert sorted(leaves) == list(range(tree.n_leaves))
    for view in shown:
        ends = [entry for entry in view.entries if entry.kind != "question"]
        assert len(ends) <= tree_fold.MOST_ENDS


def test_below_one_percent_folds_and_counts_its_classes() -> None:
    tree = ct.design(some_problem(60))
    whole = next(tree_fold.views(tree))
    counts = tree_fold.leaf_counts(tree)
    assert whole.folds
    for entry in whole.entries:
        if entry.kind == "question" and entry.index:
            assert tree.share[entry.index] >= 0.01
    svg = tree_svg(tree)
    for node in whole.folds:
        assert tree.share[node] < 0.01
        assert counts[node] == len(tree.nodes[node].classes)
        pill = f"{counts[node]} classes · {percent(float(tree.share[node]))}"
        assert f">{pill}</text>" in svg
        for name in tree.nodes[node].classes:
            assert name in svg  # in the pill's title


def test_small_trees_do_not_fold_and_folding_can_be_set() -> None:
    tree = ct.design(some_problem(24))
    assert not next(tree_fold.views(tree)).folds
    assert next(tree_fold.views(tree, fold=0.2)).folds
    large = ct.design(some_problem(200))
    assert not next(tree_fold.views(large, fold=0.0)).folds


def test_very_deep_trees_are_drawn() -> None:
    tree = ct.design(comb_problem(300))
    made = list(tree_views(tree))
    assert len(made) > 1
    ET.fromstring(tree_svg(tree, fold=0.0))


def test_every_pill_of_the_page_leads_to_a_view(tmp_path: Path) -> None:
    tree = ct.design(some_problem(200))
    page = draw_tree(tree, tmp_path / "tree.html").read_text()
    targets = set(re.findall(r'href="#([^"]+)"', page))
    ids = set(re.findall(r'<section [^>]*id="([^"]+)"', page))
    assert targets <= ids
    assert ids - targets == set() or ids - targets == {"tree-0"}
    assert all(name in page for name in tree.problem.classes)


# -------------------------------------------------------------------- safe and self-contained

NASTY = ['<script>alert("x")</script>', "a & b", "\"quoted'", "]]>", "</title></svg>", "<!--"]


def nasty_tree() -> ct.Tree:
    n = len(NASTY)
    return ct.design(ct.Problem(NASTY, None, [f"<b>{i}</b>&\"'" for i in range(n)], np.eye(n), 0.1))


def test_user_text_is_escaped(tmp_path: Path) -> None:
    tree = nasty_tree()
    titles = " ".join(e.text or "" for e in ET.fromstring(tree_svg(tree)).iter(SVG + "title"))
    assert all(name in titles for name in NASTY)
    page = draw_tree(tree, tmp_path / "tree.html", title="<script>").read_text()
    assert page.count("<script>") == 1  # our own
    assert "alert(&quot;x&quot;)" in page


def external(page: str) -> list[str]:
    """Addresses that a page would fetch."""
    found = re.findall(r"""(?:src|href)\s*=\s*["']?([^"'#\s>][^"'\s>]*)""", page)
    return found + re.findall(r"url\(|@import|https?://(?!www\.w3\.org)", page)


def test_the_page_asks_the_network_for_nothing(tmp_path: Path) -> None:
    assert external('<img src="https://x.y/z.png">')  # the check can fail
    page = draw_tree(ct.design(some_problem(60)), tmp_path / "tree.html").read_text()
    assert external(page) == []
    assert "prefers-color-scheme: dark" in page


# -------------------------------------------------------------------- files


def test_the_ending_says_the_format(tmp_path: Path) -> None:
    tree = ct.design(ct.example("table1"))
    assert draw_tree(tree, tmp_path / "t.svg").read_text() == tree_svg(tree)
    assert draw_tree(tree, tmp_path / "t.PNG").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert draw_tree(tree, tmp_path / "t.html").read_text().startswith("<!doctype html>")
    data = json.loads(draw_tree(tree, str(tmp_path / "t.json")).read_text())
    assert data["question"] == "T1"
    assert data["yes"]["label"] == "c4"
    assert data["yes"]["correct"] == pytest.approx(0.95)
    assert data["no"]["no"]["share"] == pytest.approx(0.2)
    assert sorted(file.suffix for file in tmp_path.iterdir()) == [".PNG", ".html", ".json", ".svg"]


@pytest.mark.parametrize("name", ["tree.gif", "tree", "tree.svg.bak"])
def test_unknown_endings_are_refused_before_any_work(tmp_path: Path, name: str) -> None:
    with pytest.raises(ct.CrowdtreeError, match=r"use \.svg, \.png, \.html or \.json"):
        draw_tree(ct.design(ct.example("table1")), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "t.svg"
    target.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(save.os, "replace", fail)
    with pytest.raises(ct.CrowdtreeError, match="No space left on device"):
        draw_tree(ct.design(ct.example("table1")), target)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_file_in_the_way_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ct.CrowdtreeError, match="cannot be written"):
        draw_tree(ct.design(ct.example("table1")), tmp_path / "file" / "t.svg")


# -------------------------------------------------------------------- charts

CURVES = [
    {"series": name, "kind": kind, "x": x, "y": 0.3 * base**x, "low": 0.0, "high": 0.4 * base**x}
    for name, kind, base in (
        ("ours", "ours", 0.7),
        ("theirs", "paper", 0.71),
        ("<b>&", "baseline", 0.2),
    )
    for x in range(11)
]


def chart_texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(SVG + "text")]


def make_charts() -> dict[str, object]:
    from crowdtree.plots import charts

    value = ct.evaluate(ct.design(ct.example("table1")))
    classes = value.tree.problem.classes
    designs = [
        {"name": "fm", "value": 0.08, "kind": "ours"},
        {"name": "mean", "value": 0.11, "kind": "baseline", "low": 0.1, "high": 0.12},
    ]
    return {
        "curve": charts.curve_chart(CURVES, title="A title", x="extra workers"),
        "level": charts.level_chart(value.plan.levels),
        "bounds": charts.bounds_chart(value),
        "confusion": charts.confusion_chart(value.confusion, classes, title="A title"),
        "designs": charts.design_chart(designs, title="A title"),
    }


@pytest.mark.parametrize("name", ["curve", "level", "bounds", "confusion", "designs"])
def test_charts_are_text_in_our_colours_and_in_every_format(name: str, tmp_path: Path) -> None:
    from crowdtree.plots import charts

    chart = make_charts()[name]
    svg = draw_into(charts, chart, tmp_path / "c.svg").decode()
    assert len(chart_texts(svg)) > 4
    page = draw_into(charts, chart, tmp_path / "c.html").decode()
    assert external(page) == []
    inside = page[page.index("<figure") : page.index("</figure>")]
    assert not set(re.findall(r"#[0-9a-f]{6}\b", inside)) & set(asdict(style.LIGHT).values())
    assert "var(--ct-" in inside
    assert draw_into(charts, chart, tmp_path / "c.png")[:4] == b"\x89PNG"
    assert "vega-lite" in json.loads(draw_into(charts, chart, tmp_path / "c.json"))["$schema"]
    with pytest.raises(ct.CrowdtreeError, match=r"use \.svg"):
        charts.draw_chart(chart, tmp_path / "c.pdf")


def draw_into(charts: object, chart: object, path: Path) -> bytes:
    return charts.draw_chart(chart, path).read_bytes()  # type: ignore[attr-defined]


def test_curves_are_labelled_directly_and_leave_the_chart_below_what_matters() -> None:
    from crowdtree.plots import charts

    words = chart_texts(charts.chart_svg(make_charts()["curve"]))
    assert {"A title", "extra workers", "misclassified items", "ours", "theirs", "<b>&"} <= set(
        words
    )
    assert "10 %" in words
    assert "0.0001 %" not in words  # the third curve falls to 3e-8


def test_labels_at_the_end_of_lines_stay_apart() -> None:
    from crowdtree.plots.curves import _apart

    placed = _apart([3.0, 4.0, 5.0, 90.0, 3.5], [1, 1, 1, 1, 2], 14.0, lowest=8.0)
    column = sorted(placed[:4])
    assert all(b - a >= 14 - 1e-9 for a, b in pairwise(column))
    assert min(placed) >= 8
    assert placed[3] == 90


def test_bounds_chart_shows_the_exact_value_and_what_exceeds_one() -> None:
    from crowdtree.plots import charts

    words = chart_texts(charts.chart_svg(make_charts()["bounds"]))
    assert {"exact 0.08231", "exact 0.9177", "nothing exceeds 1", "1.615 to 2.416"} <= set(words)


@pytest.mark.parametrize(("n", "most"), [(5, 5), (20, 20), (60, 60), (200, 60)])
def test_confusion_labels_are_thinned(n: int, most: int) -> None:
    from crowdtree.plots import charts, confusion

    value = ct.evaluate(ct.design(some_problem(n)))
    classes = value.tree.problem.classes
    chart = charts.confusion_chart(value.confusion, classes, title="t")
    words = chart_texts(charts.chart_svg(chart))
    rows = [word for word in words if word in set(classes)]
    assert 2 * min(n, 5) <= len(rows) <= 2 * most
    spec = chart.to_dict()
    names = {layer["data"]["name"] for layer in spec["layer"][:2]}
    cells = sum(len(spec["datasets"][name]) for name in names)
    assert cells <= confusion.MOST_CELLS
    if n <= 8:
        assert cells == np.count_nonzero(value.confusion >= 1e-12)


def test_classes_with_long_or_like_names_keep_their_own_row() -> None:
    from crowdtree.plots.confusion import _distinct

    names = _distinct(["x" * 40 + "a", "x" * 40 + "b", "short"])
    assert len(set(names)) == 3
    assert max(map(len, names)) < 40


def test_a_frontier_is_drawn(tmp_path: Path) -> None:
    from crowdtree.frontier.compare import Row
    from crowdtree.plots import draw_frontier

    rows = [
        Row(series, cost, 0.5**cost, 0.5**cost, 0.5**cost)
        for series in ("ours", "paper", "random", "everyone", "floor", "guide")
        for cost in (1.0, 2.0, 3.0)
    ]
    svg = draw_frontier(rows, tmp_path / "f.svg").read_text()
    assert {"co-design", "paper", "Fano floor"} <= set(chart_texts(svg))
    assert "expected answers per item" in chart_texts(svg)


def test_a_priced_frontier_marks_the_plan_at_its_price() -> None:
    from types import SimpleNamespace

    from crowdtree.frontier.compare import Row
    from crowdtree.plots.frontiers import frontier_chart

    rows = [Row(name, cost, 0.1, 0.1, 0.1) for name in ("ours", "paper") for cost in (1.0, 2.0)]
    chosen = SimpleNamespace(misclassification=0.1, expected_cost=1.5, expected_answers=30.0)
    made = frontier_chart(rows, chosen, cost="price").to_dict()
    data = [row for name in made["datasets"] for row in made["datasets"][name]]
    assert [row["x"] for row in data if str(row.get("label", "")).startswith("10 %")] == [1.5]
    lines = [row["series"] for row in data if "series" in row]
    assert lines[-1] == "co-design"  # drawn last, so that no other line hides it
