"""Folded trees hold every node once."""

from __future__ import annotations

import pytest

import crowdtree as ct
from crowdtree.core.text import percent
from crowdtree.show.plots import tree_fold, tree_svg
from tests.show.plots.helpers import some_problem


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
        assert len(ends) <= tree_fold.MAX_ENDS


def test_below_one_percent_folds_and_counts_its_classes() -> None:
    tree = ct.design(some_problem(30))
    whole = next(tree_fold.views(tree))
    counts = tree_fold.leaf_counts(tree)
    assert whole.folds
    for entry in whole.entries:
        if entry.kind == "question" and entry.index:
            assert tree.share[entry.index] >= 0.01
    svg = tree_svg(tree)
    visits = ct.evaluate(tree).visits
    for node in whole.folds:
        assert tree.share[node] < 0.01
        assert counts[node] == len(tree.nodes[node].classes)
        pill = f"{counts[node]} classes · {percent(float(visits[node]))}"
        assert f">{node + 1}. {pill}</text>" in svg
        for name in tree.nodes[node].classes:
            assert name in svg  # in the pill's title


def test_small_trees_do_not_fold_and_folding_can_be_set() -> None:
    tree = ct.design(some_problem(24))
    assert not next(tree_fold.views(tree)).folds
    assert next(tree_fold.views(tree, fold=0.2)).folds
    large = ct.design(some_problem(200))
    assert not next(tree_fold.views(large, fold=0.0)).folds
