"""Plan: a tree and the votes of each of its questions (docs/model.md, sections 6 and 7)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree import voting
from crowdtree.errors import CrowdtreeError
from crowdtree.problem import DASH
from crowdtree.tree import Level, Tree

__all__ = ["Plan", "Pool", "Vote", "as_plan"]

Vote = Literal["majority", "margin"]
Pool = Literal["node", "question"]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Plan:
    """A tree, and how many votes each of its inner nodes takes.

    Parameters
    ----------
    tree
        The tree.
    votes
        Votes of each inner node, in the order of ``tree.nodes``: their number for a `majority`,
        the lead at which the vote stops for a `margin`.
    vote
        ``"majority"`` (the paper) or ``"margin"``.
    method
        How it was staffed.
    pool
        Whether a team serves one ``"node"`` or all nodes that ask the same ``"question"``.
    undecided
        Leaves whose items are reported as undecided, with the leaf's label as the best guess
        (see :meth:`leaving_undecided`).

    Examples
    --------
    >>> from crowdtree import Problem
    >>> problem = Problem(["a", "b", "c"], None, ["q", "r"], [[0, 0, 1], [0, 1, 1]], 0.1)
    >>> tree = Tree(problem, [0, 1], [[1, -1], [-2, -3]])
    >>> round(Plan(tree, [3, 1]).planned_answers, 4)
    3.6667
    """

    tree: Tree
    votes: NDArray[np.int64]
    vote: Vote = "majority"
    method: str = "given"
    pool: Pool = "node"
    undecided: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        votes = _whole(self.votes)
        if votes.shape != (self.tree.n_nodes,):
            raise CrowdtreeError(
                f"votes: expected one per node ({self.tree.n_nodes}), got shape {votes.shape}"
            )
        if np.any(votes < 1):
            raise CrowdtreeError(f"votes: every node needs at least 1, got {votes.min()}")
        for name, value, known in (("vote", self.vote, Vote), ("pool", self.pool, Pool)):
            if value not in get_args(known):
                raise CrowdtreeError(f"{name}: must be one of {get_args(known)}, got {value!r}")
        if self.pool == "question":
            self._refuse_uneven(votes)
        undecided = tuple(sorted({int(leaf) for leaf in self.undecided}))
        if undecided and not 0 <= undecided[0] <= undecided[-1] < self.tree.n_leaves:
            raise CrowdtreeError(
                f"undecided: expected numbers of leaves from 0 to {self.tree.n_leaves - 1}, "
                f"got {undecided}"
            )
        votes.flags.writeable = False
        object.__setattr__(self, "votes", votes)
        object.__setattr__(self, "undecided", undecided)

    def _refuse_uneven(self, votes: NDArray[np.int64]) -> None:
        _, first, team = np.unique(self.tree.question, return_index=True, return_inverse=True)
        uneven = np.flatnonzero(votes != votes[first][team])
        if len(uneven):
            name = self.tree.problem.questions[self.tree.question[uneven[0]]]
            raise CrowdtreeError(
                f"votes: the nodes of question {name!r} differ in votes, but one team serves them "
                'all; use equal votes, or pool="node"'
            )

    @property
    def workers(self) -> int:
        """Workers when each belongs to one node (or to one question, with pooled teams)."""
        if self.pool == "node":
            return int(self.votes.sum())
        _, first = np.unique(self.tree.question, return_index=True)
        return int(self.votes[first].sum())

    def leaving_undecided(self, leaves: Collection[int]) -> Plan | None:
        """Report the items of some leaves as undecided, and ask nothing that only splits these.

        Where all leaves below a node are among them, the node becomes one undecided leaf. ``None``
        if that is the root: then nothing is decided.

        Examples
        --------
        >>> from crowdtree import Problem
        >>> problem = Problem(["a", "b", "c"], None, ["q", "r"], [[0, 0, 1], [0, 1, 1]], 0.1)
        >>> plan = Plan(Tree(problem, [0, 1], [[1, -1], [-2, -3]]), [3, 1])
        >>> fewer = plan.leaving_undecided([1, 2])
        >>> print(fewer.tree.to_text(), fewer.votes, fewer.undecided)
        q
        ├─ no  → a (or b)
        └─ yes → c [3] (0,)
        """
        gone = set(leaves)
        children = self.tree.children
        decides = np.zeros(self.tree.n_nodes, dtype=bool)
        for node in reversed(range(self.tree.n_nodes)):  # children come after their parents
            decides[node] = any(
                decides[child] if child >= 0 else ~child not in gone
                for child in children[node].tolist()
            )
        if not decides[0]:
            return None
        kept = np.flatnonzero(decides)
        place = np.cumsum(decides) - 1
        below = children[kept]
        stays = (below >= 0) & decides[np.maximum(below, 0)]
        leaf = ~below[~stays]  # of the old tree, or the negative of a node that is cut off
        undecided = [new for new, old in enumerate(leaf.tolist()) if old < 0 or old in gone]
        shape = np.where(stays, place[np.maximum(below, 0)], -1)
        tree = Tree(self.tree.problem, self.tree.question[kept], shape, self.tree.method)
        return replace(self, tree=tree, votes=self.votes[kept], undecided=tuple(undecided))

    @cached_property
    def planned_answers(self) -> float:
        """Answers per item on its error-free path: ``sum over nodes p(S) x votes``."""
        per_node = np.zeros(self.tree.n_nodes)
        for step in self.tree.steps:
            np.add.at(per_node, step.node, step.share * self.answers_at(step.node, step.cls))
        return float(per_node.sum())

    def error_at(self, node: ArrayLike, cls: ArrayLike) -> FloatArray:
        """Probability that the vote at a node is wrong for a class (0.5 where it has ``-``)."""
        node, cls = np.asarray(node), np.asarray(cls)
        question = self.tree.question[node]
        error = self.tree.problem.worker_error[question, cls]
        rho = self.tree.problem.dependence
        if self.vote == "majority":
            votes = self.votes[node]
            fused = error if not self._voting else voting.majority_error(error, votes, rho)
        else:
            fused = voting.margin_error(error, self.votes[node], rho)
        return np.where(self.tree.problem.outcome[question, cls] == DASH, 0.5, fused)

    def answers_at(self, node: ArrayLike, cls: ArrayLike) -> FloatArray:
        """Expected answers that a node takes for an item of a class."""
        node, cls = np.asarray(node), np.asarray(cls)
        if self.vote == "majority":
            return np.broadcast_to(self.votes[node], np.broadcast(node, cls).shape).astype(float)
        question = self.tree.question[node]
        dash = self.tree.problem.outcome[question, cls] == DASH
        error = np.where(dash, 0.5, self.tree.problem.worker_error[question, cls])
        return voting.margin_votes(error, self.votes[node], self.tree.problem.dependence)

    @cached_property
    def _voting(self) -> bool:
        return bool(np.any(self.votes > 2))

    @cached_property
    def node_error(self) -> FloatArray:
        """``sum_i p_i e_i`` over the classes of each node: its share of the additive error."""
        error = np.zeros(self.tree.n_nodes)
        for step in self.tree.steps:
            wrong = np.where(step.answer == DASH, 0.0, self.error_at(step.node, step.cls))
            np.add.at(error, step.node, step.share * wrong)
        return error

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """Levels of the tree, scored with the fused errors."""
        return self.tree.levels_with(self.node_error)

    def __repr__(self) -> str:
        low, high = self.votes.min(), self.votes.max()
        votes = f"{low}" if low == high else f"{low} to {high}"
        return f"Plan({self.method}: {self.tree.n_nodes} nodes, {self.vote} of {votes})"


def _whole(votes: ArrayLike) -> NDArray[np.int64]:
    given = np.asarray(votes)
    whole = given.dtype.kind in "iu" or (
        given.dtype.kind == "f" and bool(np.all(np.isfinite(given) & (given == np.round(given))))
    )
    if not whole:
        raise CrowdtreeError(f"votes: expected whole numbers, got {votes!r:.80}")
    return given.astype(np.int64)


def as_plan(tree: Tree | Plan) -> Plan:
    """Turn a tree into the plan that asks one worker per node."""
    if isinstance(tree, Plan):
        return tree
    return Plan(tree, np.ones(tree.n_nodes, dtype=np.int64), method="one worker per node")
