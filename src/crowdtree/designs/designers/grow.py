"""Grow a tree level by level: one pass over the table per level, then a choice for every node.

A level requires, for each open node and each question, whether the question splits the node,
how much entropy that removes and how much error it adds. The chooser uses nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdtree.core import scores
from crowdtree.core.arrays import FloatArray
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.outcomes import DASH
from crowdtree.core.problem import Problem
from crowdtree.core.tree import NO_BRANCH, Tree

IntArray = NDArray[np.int32]

LEAF = -1
CACHED_CELLS = 100_000
"""Cells of a level that are read at once, so that they stay in the processor's cache."""


@dataclass(frozen=True)
class OpenNodes:
    """The open nodes: rows of (class, share) sorted by node, cut at `start`."""

    cls: IntArray
    share: FloatArray
    start: IntArray  # one more entry than nodes

    @property
    def node_of_row(self) -> IntArray:
        """Which node each row belongs to."""
        return np.repeat(np.arange(len(self.start) - 1, dtype=np.int32), np.diff(self.start))

    @property
    def total(self) -> FloatArray:
        """Share of items in each node."""
        return np.add.reduceat(self.share, self.start[:-1])


@dataclass(frozen=True)
class LevelTable:
    """Input of a chooser at one level; one row per open node, one column per question.

    `gain` is the fall of the entropy (-inf where the question does not split the node), `error`
    the additive error ``sum_i p_i e_i``, `entropy` is ``H(L_{d-1})``.
    """

    gain: FloatArray
    error: FloatArray
    entropy: float
    problem: Problem
    frontier: OpenNodes


Chooser = Callable[[LevelTable], NDArray[np.intp]]


def grow(problem: Problem, choose: Chooser, method: str, unresolved: float = 0.0) -> Tree:
    """Grow a tree with one chooser for all levels.

    `unresolved` is the entropy inside the groups that no question splits, which the level
    entropy leaves out (docs/model.md, section 2); only choosers that use the entropy need it.
    """
    frontier = OpenNodes(
        cls=np.arange(problem.n_classes, dtype=np.int32),
        share=problem.prior,
        start=np.array([0, problem.n_classes], dtype=np.int32),
    )
    question: list[NDArray[np.intp]] = []
    children: list[IntArray] = []
    links, pending = np.full(1, LEAF, dtype=np.int32), np.zeros(1, dtype=np.intp)
    n_nodes = 0
    while len(pending):
        if not problem.is_yes_no:
            gain, error = read_level_several(problem, frontier)
        else:
            gain, error = read_level_plain(problem, frontier)
        splits = _splittable(gain)
        unresolved -= _entropy(_keep(frontier, ~splits))
        frontier, pending = _keep(frontier, splits), pending[splits]
        links[pending] = np.arange(n_nodes, n_nodes + len(pending))  # all others stay leaves
        n_nodes += len(pending)
        if not len(pending):
            break
        if not splits.all():
            gain, error = gain[splits], error[splits]
        entropy = _entropy(frontier) - max(unresolved, 0.0)
        asked = choose(LevelTable(gain, error, entropy, problem, frontier))
        del gain, error
        frontier = _split(problem, frontier, asked)
        sizes = np.diff(frontier.start)
        links = np.where(sizes > 0, LEAF, NO_BRANCH).astype(np.int32)
        question.append(asked)
        children.append(links)
        several = sizes > 1
        frontier, pending = _keep(frontier, several), np.flatnonzero(several)
    if not question:
        refuse_unsplit(problem)
    shape = np.concatenate(children).reshape(-1, problem.n_answers.max())
    return Tree(problem, np.concatenate(question), shape, method)


def read_level_plain(problem: Problem, frontier: OpenNodes) -> tuple[FloatArray, FloatArray]:
    """Read a level of yes/no questions."""
    start, share = frontier.start[:-1], frontier.share
    size, total = np.diff(frontier.start), frontier.total
    shape = (len(start), problem.n_questions)
    gain, wrong = np.empty(shape), np.empty(shape)
    step = max(1, CACHED_CELLS // len(frontier.cls))
    for first in range(0, problem.n_questions, step):
        some = slice(first, first + step)
        outcome = problem.outcome[some].take(frontier.cls, axis=1)
        error = problem.worker_error[some].take(frontier.cls, axis=1)
        error *= share
        one, dash = outcome == 1, outcome == DASH
        ones = np.add.reduceat(one, start, axis=1, dtype=np.int32)
        yes = np.add.reduceat(share * one, start, axis=1)
        if dash.any():
            dashes = np.add.reduceat(dash, start, axis=1, dtype=np.int32)
            either = np.add.reduceat(share * dash, start, axis=1)
            error[dash] = 0.0
            splits = (ones > 0) & (ones + dashes < size)
            if problem.dash == "inapplicable":
                splits &= dashes == 0
            fall = scores.split_gain(total, yes + either / 2, either)
        else:
            splits = (ones > 0) & (ones < size)
            fall = scores.split_gain(total, yes, np.zeros_like(yes))
        gain[:, some] = np.where(splits, np.maximum(fall, 0.0), -np.inf).T
        wrong[:, some] = np.add.reduceat(error, start, axis=1).T
    return gain, wrong


def read_level_several(problem: Problem, frontier: OpenNodes) -> tuple[FloatArray, FloatArray]:
    """Read a level of questions with any number of answers.

    A question splits a node if every answer rules out some class of it, so that each part is
    smaller than the node; where ``-`` means inapplicable, every class has an answer.
    """
    start, share, nodes = frontier.start[:-1], frontier.share, len(frontier.start) - 1
    size = np.diff(frontier.start)
    gain, wrong = np.empty((nodes, problem.n_questions)), np.empty((nodes, problem.n_questions))
    step = max(1, CACHED_CELLS // len(frontier.cls))
    for first in range(0, problem.n_questions, step):
        some = slice(first, first + step)
        right = problem.right[:, some][:, :, frontier.cls]
        count = right.sum(axis=0)
        each = share / np.maximum(count, 1)
        error = np.where(count == problem.n_answers[some, None], 0.0, share)
        error *= problem.worker_error[some][:, frontier.cls]
        part = np.stack([np.add.reduceat(each * here, start, axis=1) for here in right])
        kept = np.stack(
            [np.add.reduceat(here, start, axis=1, dtype=np.int32) < size for here in right]
        )
        lost = np.add.reduceat(share * np.log2(np.maximum(count, 1)), start, axis=1)
        splits = kept.all(axis=0) & np.logical_and.reduceat(count > 0, start, axis=1)
        fall = scores.parts_gain(frontier.total, part, lost)
        gain[:, some] = np.where(splits, np.maximum(fall, 0.0), -np.inf).T
        wrong[:, some] = np.add.reduceat(error, start, axis=1).T
    return gain, wrong


def _splittable(gain: FloatArray, step: int = 64) -> NDArray[np.bool_]:
    """Whether some question splits each node; mostly one of the first does."""
    found = np.zeros(len(gain), dtype=np.bool_)
    for first in range(0, gain.shape[1], step):
        found |= np.any(gain[:, first : first + step] > -np.inf, axis=1)
        if found.all():
            break
    return found


def _keep(frontier: OpenNodes, nodes: NDArray[np.bool_]) -> OpenNodes:
    if nodes.all():
        return frontier
    rows = nodes[frontier.node_of_row]
    sizes = np.diff(frontier.start)[nodes]
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return OpenNodes(frontier.cls[rows], frontier.share[rows], start)


def _split(problem: Problem, frontier: OpenNodes, asked: NDArray[np.intp]) -> OpenNodes:
    """Send every row to its child; one with several right answers goes to each, in equal parts."""
    node, width = frontier.node_of_row, int(problem.n_answers.max())
    answer = problem.outcome[asked[node], frontier.cls]
    if np.all(answer >= 0):
        row, side, share = np.arange(len(node)), answer, frontier.share
    else:
        right = problem.right[:, asked[node], frontier.cls]
        row, said = np.nonzero(right.T)
        side = said.astype(np.int8)
        share = (frontier.share / right.sum(axis=0))[row]
    child = width * node[row] + side.astype(np.int32)
    order = np.lexsort((frontier.cls[row], child))
    start = np.searchsorted(child[order], np.arange(width * len(asked) + 1)).astype(np.int32)
    return OpenNodes(frontier.cls[row][order], share[order], start)


def _entropy(frontier: OpenNodes) -> float:
    """``sum_k p(S_k) H(class | S_k)`` over the open nodes, in bits."""
    if not len(frontier.cls):
        return 0.0
    share, total = frontier.share, frontier.total
    return float(total @ np.log2(total) - share @ np.log2(share))


def refuse_unsplit(problem: Problem) -> None:
    """Raise: a root that no question splits makes no tree, with groups or without."""
    hint = "add a question on which the classes differ"
    if problem.dash == "inapplicable" and (problem.outcome == DASH).any():
        every = "both" if problem.n_answers.max() == 2 else "all"
        hint = f'if - means that {every} answers occur, use dash="either" (--dash either)'
    raise CrowdtreeError(f"design: no question splits the {problem.n_classes} classes; {hint}")
