"""Boxes never overlap."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.plots import layout, tree_svg
from plots.helpers import Box, comb_problem


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
