"""Boxes never overlap."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.show.plots import layout, tree_svg
from tests.show.plots.helpers import Box, comb_problem


@pytest.mark.parametrize("down", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_boxes_of_any_size_never_overlap(down: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    children: list[list[int]] = [[]]
    level = [0]
    for _ in range(40):
        leaf = int(rng.choice([i for i, pair in enumerate(children) if not pair]))
        children[leaf] = [len(children), len(children) + 1]
        level += [level[leaf] + 1] * 2
        children += [[], []]
    sizes = [layout.Size(*rng.uniform(20, 200, 2)) for _ in children]
    if down:
        made = layout.place_down(sizes, children, level)
    else:
        step = layout.indent(level, 960)
        sizes = [layout.Size(960 - step * d, s.height) for d, s in zip(level, sizes, strict=True)]
        made = layout.place_rows(sizes, children, level, 960)
    boxes = [
        Box(str(i), x, y, x + w, y + h)
        for i, ((x, y), (w, h)) in enumerate(zip(made.corners, sizes, strict=True))
    ]
    assert not [pair for pair in combinations(boxes, 2) if pair[0].meets(pair[1])]
    assert min(b.left for b in boxes) == pytest.approx(0)
    assert max(b.right for b in boxes) == pytest.approx(made.width)
    assert max(b.bottom for b in boxes) == pytest.approx(made.height)


def test_trees_that_fit_a_page_grow_down_and_others_have_one_row_per_node() -> None:
    shallow, deep = ct.design(ct.example("table1")), ct.design(comb_problem(12))
    assert len(lefts(tree_svg(shallow))) == 9  # boxes side by side
    assert len(lefts(tree_svg(deep))) == 12  # one indentation per level
    assert len(lefts(tree_svg(deep, direction="down"))) > 12
    assert len(lefts(tree_svg(shallow, direction="right"))) == 5


def lefts(svg: str) -> set[str]:
    return set(re.findall(r'<rect x="([^"]+)"', svg))
