"""Which part of a tree is shown at once: small subtrees of a large tree fold into a pill.

A *view* is the subtree below one node, cut off where it folds. The views of all folded nodes
together hold the whole tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.outcomes import YES_NO
from crowdtree.core.tree import Tree
from crowdtree.show.plots.style import N_COLOURS

FOLD_SHARE = 0.01
"""Subtrees that fewer items pass fold, in trees with more than `MAX_UNFOLDED` leaves."""
MAX_UNFOLDED = 24
MAX_ENDS = 40
"""A view with more ends than this folds more, the smallest subtrees first."""


@dataclass(frozen=True)
class Entry:
    """A box of a view: an inner node that is shown, one that is folded, or a leaf."""

    kind: str  # "question", "fold" or "leaf"
    index: int  # of the inner node, or of the leaf
    depth: int  # below the root of the view
    children: tuple[int, ...]  # places in the view's list
    answer: str = ""  # that leads to the box; none to the first
    style: str = ""  # class of the answer: "no", "yes", or "a0" to "a5" by its place among others


@dataclass(frozen=True)
class View:
    """The part of a tree below `root` that is drawn at once."""

    root: int
    parent: int | None  # root of the view in which this one is a pill
    entries: tuple[Entry, ...]

    @property
    def folds(self) -> list[int]:
        """Inner nodes that this view folds."""
        return [entry.index for entry in self.entries if entry.kind == "fold"]


def views(tree: Tree, fold: float | None = None) -> Iterator[View]:
    """Yield the view of the whole tree, then those of everything that is folded away.

    `fold`: share of items below which a subtree folds; 0 never folds. By default 1 % in trees with
    more than `MAX_UNFOLDED` leaves, and more where a view would have over `MAX_ENDS` ends.
    """
    leaves = leaf_counts(tree)
    waiting: list[tuple[int, int | None]] = [(0, None)]
    for root, parent in waiting:
        if fold is not None:
            limit = fold if parent is None else 0.0
        else:
            # inside a pill everything is below 1 %: fold only what does not fit
            small = FOLD_SHARE if parent is None and leaves[0] > MAX_UNFOLDED else 0.0
            limit = _limit(tree, root, small)
        view = View(root, parent, tuple(_entries(tree, root, limit)))
        waiting += [(node, root) for node in view.folds]
        yield view


def leaf_counts(tree: Tree) -> NDArray[np.intp]:
    """Leaves below each inner node."""
    count = np.zeros(tree.n_nodes, dtype=np.intp)
    for node in reversed(range(tree.n_nodes)):  # children come after their parents
        for _, child in tree.branches(node):
            count[node] += count[child] if child >= 0 else 1
    return count


def _limit(tree: Tree, root: int, small: float) -> float:
    """The least share, from `small` on, at which a view has no more than `MAX_ENDS` ends.

    A view ends at the leaves and pills whose parent is shown. A node that is shown takes the place
    of one end, and adds one per branch.
    """
    below = sorted(
        ((float(tree.share[node]), len(tree.branches(node))) for node in _subtree(tree, root)),
        reverse=True,
    )
    ends = 1
    for share, branches in below:
        if share < small:
            break
        ends += branches - 1
        if ends > MAX_ENDS:  # nodes of equal share fold together; the root is always shown
            return float(np.nextafter(share, np.inf))
    return small


def _subtree(tree: Tree, root: int) -> Iterator[int]:
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack += [child for _, child in tree.branches(node) if child >= 0]


def _entries(tree: Tree, root: int, limit: float) -> Iterator[Entry]:
    """Yield the boxes of a view level by level, so that children come after their parents."""
    queue: list[tuple[int, int, str, str]] = [(root, 0, "", "")]
    for node, depth, answer, style in queue:
        if node < 0:
            yield Entry("leaf", ~node, depth, (), answer, style)
        elif node != root and tree.share[node] < limit:
            yield Entry("fold", node, depth, (), answer, style)
        else:
            place, names = len(queue), tree.problem.answers[tree.question[node]]
            queue += [
                (child, depth + 1, names[k], names[k] if names == YES_NO else f"a{k % N_COLOURS}")
                for k, child in tree.branches(node)
            ]
            children = tuple(range(place, len(queue)))
            yield Entry("question", node, depth, children, answer, style)
