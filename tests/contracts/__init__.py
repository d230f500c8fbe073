"""One contract for every designer: :func:`check_tree` certifies a tree from the table alone."""

from __future__ import annotations

from crowdtree import Problem, Tree
from tests.contracts.oracle import Row, entropy, final_partition, splitting, walk

__all__ = ["check_tree"]


def check_tree(problem: Problem, tree: Tree) -> None:
    """Raise AssertionError unless the tree is a proper tree of the problem.

    Every question splits its classes; every leaf is one class or a group that no question
    splits; in the strict meaning of ``-`` the leaves are *the* final partition (docs/model.md,
    section 1); nodes are numbered level by level from left to right; and what the tree says of
    itself (classes, shares, labels, levels) is what a walk by hand finds.
    """
    assert tree.problem == problem
    nodes, leaves = walk(problem, tree.question.tolist(), tree.children.tolist())
    _check_order(tree, nodes)
    for node, rows in enumerate(nodes):
        assert int(tree.question[node]) in splitting(problem, rows), (
            f"node {node} asks a question that does not split it"
        )
    for rows in leaves:
        assert len(rows) == 1 or not splitting(problem, rows), f"a leaf that could be split: {rows}"
    if problem.dash == "inapplicable":
        groups = sorted(tuple(sorted(row.cls for row in rows)) for rows in leaves)
        assert groups == final_partition(problem)
    _check_said(problem, tree, nodes, leaves)
    _check_levels(problem, tree, nodes, leaves)


def _check_order(tree: Tree, nodes: list[list[Row]]) -> None:
    level, shown = [0], [0]
    for place, (no, yes) in enumerate(tree.children.tolist()):
        for child in (no, yes):
            if child >= 0:
                shown.append(child)
                level.append(level[place] + 1)
    assert shown == list(range(len(nodes))), "nodes are not numbered level by level"
    assert tree.level.tolist() == level
    assert tree.depth == max(level) + 1
    leaf = [~child for child in tree.children.ravel().tolist() if child < 0]
    assert leaf == list(range(tree.n_leaves))


def _check_said(
    problem: Problem, tree: Tree, nodes: list[list[Row]], leaves: list[list[Row]]
) -> None:
    for node, rows in zip(tree.nodes, nodes, strict=True):
        assert node.classes == tuple(problem.classes[row.cls] for row in rows)
        assert node.question == problem.questions[tree.question[node.index]]
        assert abs(node.share - sum(row.share for row in rows)) < 1e-12
    assert tree.leaf_classes == tuple(tuple(row.cls for row in rows) for rows in leaves)
    for leaf, rows in enumerate(leaves):
        likeliest = max(rows, key=lambda row: (row.share, -row.cls)).cls
        assert tree.leaf_label[leaf] == likeliest


def _check_levels(
    problem: Problem, tree: Tree, nodes: list[list[Row]], leaves: list[list[Row]]
) -> None:
    rest = entropy(leaves)
    levels = tree.levels
    assert len(levels) == tree.depth + 1
    assert levels[-1].entropy == 0
    assert levels[0].partition == (problem.classes,)
    for depth in range(tree.depth):
        open_nodes = [rows for rows, at in zip(nodes, tree.level, strict=True) if at == depth]
        done = [rows for rows in leaves if rows[0].depth <= depth]
        assert abs(levels[depth].entropy - (entropy(open_nodes + done) - rest)) < 1e-9
        members = sorted(tuple(row.cls for row in rows) for rows in open_nodes + done)
        named = tuple(tuple(problem.classes[c] for c in group) for group in members)
        assert levels[depth].partition == named
        g = sum(
            row.share * problem.worker_error[tree.question[node], row.cls]
            for node, rows in enumerate(nodes)
            if tree.level[node] == depth
            for row in rows
            if problem.outcome[tree.question[node], row.cls] >= 0
        )
        step = levels[depth + 1]
        assert step.g is not None
        assert abs(step.g - g) < 1e-12
        assert step.b == 1 - step.g
        assert step.entropy <= levels[depth].entropy + 1e-12
