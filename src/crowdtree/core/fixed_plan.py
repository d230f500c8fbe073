"""Plan: a tree and the votes of each of its questions (docs/model.md, sections 6 and 7)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.checking import check_call, describe_type
from crowdtree.core.errors import CrowdtreeError, one_line
from crowdtree.core.loss import Decision
from crowdtree.core.outcomes import DASH
from crowdtree.core.problem import Problem
from crowdtree.core.result_methods import Drawn, Framed, Saved
from crowdtree.core.tree import NO_BRANCH, Certificate, Level, Tree, nested_branches
from crowdtree.core.votes import (
    VOTES,
    CellVotes,
    Vote,
    VoteRule,
    answer_rows,
    branch_chances,
    two_verdicts,
)

Pool = Literal["node", "question"]
MAX_NESTED = 100
"""Levels up to which a tree is written nested; readers of JSON give up on very deep nests."""


class Flow(NamedTuple):
    """Where items go: one row per inner node (`reach`) or leaf (`arrived`), one column per class.

    The probability that an item of the class gets there, wrong turns included.
    """

    reach: FloatArray
    arrived: FloatArray


@dataclass(frozen=True, eq=False)
class Plan(Framed, Saved, Drawn):
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
        (see :meth:`leaving_undecided`). Where the problem has an expert, undecided items are
        referred, and so are those of leaves where that is cheaper than any label
        (:attr:`handed_over`).

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
        check_call(Plan, vars(self))
        votes = _whole(self.votes)
        if votes.shape != (self.tree.n_nodes,):
            raise CrowdtreeError(
                f"votes: expected one per node ({self.tree.n_nodes}), got shape {votes.shape}"
            )
        if np.any(votes < 1):
            raise CrowdtreeError(f"votes: every node needs at least 1, got {votes.min()}")
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
    def rule(self) -> VoteRule:
        """The rule of the votes."""
        return VOTES[self.vote]

    @property
    def most_answers(self) -> int | None:
        """Most answers that an item can take; ``None`` for votes without a limit, as by margin.

        >>> import crowdtree as ct
        >>> ct.staff(ct.design(ct.example("table1")), workers=8).most_answers
        12
        """
        if not self.rule.bounded and self.votes.max() > 1:
            return None
        return self.tree.longest_path(self.rule.most(self.votes))

    # ---------------------------------------------------------------- labels

    def flow(self, classes: NDArray[Any]) -> Flow:
        """Follow items of some classes through the tree, wrong turns included."""
        tree = self.tree
        reach = np.ones((tree.n_nodes, len(classes)))
        arrived = np.empty((tree.n_leaves, len(classes)))
        routes = self.routes(np.arange(tree.n_nodes), classes)
        for nodes in tree.by_level:
            for answer, child in enumerate(tree.children[nodes].T):
                below = reach[nodes] * routes[answer][nodes]
                inner = child >= 0
                leaf = ~inner & (child != NO_BRANCH)
                arrived[~child[leaf]] = below[leaf]
                reach[child[inner]] = below[inner]
        return Flow(reach, arrived)

    def routes(self, nodes: NDArray[Any], classes: NDArray[Any]) -> list[FloatArray]:
        """Probability that the vote sends an item down each branch, a table per answer.

        One row per node, one column per class; 0 where there is no branch. Votes for an answer
        without a branch count for nobody.
        """
        tree, problem = self.tree, self.tree.problem
        if problem.is_yes_no:
            wrong = self.error_at(nodes[:, None], classes[None, :])
            return two_verdicts(problem, tree.question[nodes][:, None], classes[None, :], wrong)
        found = [np.zeros((len(nodes), len(classes))) for _ in range(tree.children.shape[1])]
        for row, node in enumerate(nodes.tolist()):
            answers = [answer for answer, _ in tree.branches(node)]
            chances = branch_chances(
                problem,
                self.rule,
                int(tree.question[node]),
                answers,
                tree.usual_answer[node],
                self.votes[node : node + 1],
                classes,
            )
            for answer, chance in zip(answers, chances[0], strict=True):
                found[answer][row] = chance
        return found

    @cached_property
    def _decision(self) -> Decision:
        """Best decision at each leaf, given who arrives there."""
        problem = self.tree.problem
        assert problem.loss is not None
        arrived = self.flow(np.arange(problem.n_classes)).arrived * problem.prior
        made = problem.loss.decide(arrived)
        visited = arrived.any(axis=1)  # without errors some leaves may be reached by nobody
        return made._replace(label=np.where(visited, made.label, self.tree.leaf_label))

    @cached_property
    def leaf_label(self) -> NDArray[np.int32]:
        """Label of each leaf: that of the tree for 0/1 loss, else of the least expected loss.

        Then every item that arrives counts, those that took a wrong turn included.
        """
        if self.tree.problem.loss is None:
            return self.tree.leaf_label
        return self._decision.label.astype(np.int32)

    @cached_property
    def handed_over(self) -> tuple[int, ...]:
        """Leaves whose items are not decided by their label: undecided, or for the expert."""
        loss = self.tree.problem.loss
        if loss is None or loss.refer is None:
            return self.undecided
        dearer = np.flatnonzero(self._decision.referred).tolist()
        return tuple(sorted({*self.undecided, *dearer}))

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
                for _, child in self.tree.branches(node)
            )
        if not decides[0]:
            return None
        kept = np.flatnonzero(decides)
        place = np.cumsum(decides) - 1
        below = children[kept]
        stays = (below >= 0) & decides[np.maximum(below, 0)]
        blocked = below == NO_BRANCH
        leaf = ~below[~stays & ~blocked]  # of the old tree, or the negative of a node cut off
        undecided = [new for new, old in enumerate(leaf.tolist()) if old < 0 or old in gone]
        shape = np.where(stays, place[np.maximum(below, 0)], np.where(blocked, NO_BRANCH, -1))
        tree = Tree(self.tree.problem, self.tree.question[kept], shape, self.tree.method)
        return replace(self, tree=tree, votes=self.votes[kept], undecided=tuple(undecided))

    def to_dict(self) -> dict[str, Any]:
        """Write the plan as plain JSON, without its problem.

        ``"tree"`` is as :func:`nested_plan` nests it; one deeper than 100 levels, too deep for many
        readers of JSON, is a list ``"nodes"`` instead, whose branches are numbers in the list.
        """
        tree, nested = self.tree, nested_plan(self)
        data: dict[str, Any] = {"design": tree.method, "method": self.method}
        data |= {"vote": self.vote, "pool": self.pool}
        if tree.certificate is not None:
            data["certificate"] = {
                key: str(value) if isinstance(value, float) and not np.isfinite(value) else value
                for key, value in tree.certificate._asdict().items()
            }
        return data | ({"tree": nested} if tree.depth <= MAX_NESTED else {"nodes": _flat(nested)})

    @classmethod
    def from_dict(cls, problem: Problem, data: Mapping[str, Any]) -> Plan:
        """Read what :meth:`to_dict` wrote; labels are checked against the table.

        Examples
        --------
        >>> from crowdtree import Problem
        >>> problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1)
        >>> plan = Plan(Tree(problem, [0], [[-1, -2]]), [3])
        >>> plan.to_dict()["tree"]
        {'question': 'q', 'votes': 3, 'no': {'label': 'a'}, 'yes': {'label': 'b'}}
        >>> Plan.from_dict(problem, plan.to_dict()).votes.tolist()
        [3]
        """
        check_call(Plan.from_dict, locals())
        if "nodes" not in data and "tree" not in data:
            raise KeyError("tree")
        nested = _nested(data["nodes"]) if "nodes" in data else data["tree"]
        tree = Tree.from_dict(problem, nested, data.get("design", "given"))
        proven = data.get("certificate")
        if proven is not None:
            numbers = {key: float(proven[key]) for key in ("value", "lower_bound", "gap")}
            tree = replace(tree, certificate=Certificate(**{**proven, **numbers}))
        votes = [_votes_of(node) for node in _inner(nested)]
        undecided = [place for place, leaf in enumerate(_leaves(nested)) if leaf.get("undecided")]
        named = {name: data[name] for name in ("vote", "method", "pool") if name in data}
        return cls(tree, np.array(votes), **named, undecided=tuple(undecided))

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
        problem, question = self.tree.problem, self.tree.question[node]
        if not problem.is_yes_no:
            return self._several_error(node, cls)
        error = problem.worker_error[question, cls]
        if self._voting:
            fused = self.rule.two_way_error(error, self.votes[node], problem.dependence)
        else:
            fused = error
        return np.where(problem.outcome[question, cls] == DASH, 0.5, fused)

    def _several_error(self, node: NDArray[Any], cls: NDArray[Any]) -> FloatArray:
        """Chance that a vote over all answers of the question does not settle on a right one.

        An upper limit at a node where some answers have no branch: there they count for nobody.
        """
        node, cls = np.broadcast_arrays(node, cls)
        found = np.empty(node.shape)
        for votes in np.unique(self.votes[node]):
            here = self.votes[node] == votes
            cells = CellVotes(self.tree.problem, self.tree.question[node[here]], cls[here])
            found[here] = cells.errors(self.rule, votes[None])[0]
        return found

    def answers_at(self, node: ArrayLike, cls: ArrayLike) -> FloatArray:
        """Expected answers that a node takes for an item of a class."""
        node, cls = np.asarray(node), np.asarray(cls)
        problem, rule = self.tree.problem, self.rule
        if rule.always_all:
            return np.broadcast_to(self.votes[node], np.broadcast(node, cls).shape).astype(float)
        if problem.is_yes_no:
            question = self.tree.question[node]
            dash = problem.outcome[question, cls] == DASH
            error = np.where(dash, 0.5, problem.worker_error[question, cls])
            return rule.two_way_answers(error, self.votes[node], problem.dependence)
        node, cls = np.broadcast_arrays(node, cls)
        found = np.empty(node.shape)
        for at in np.unique(node).tolist():
            here = node == at
            classes, place = np.unique(cls[here], return_inverse=True)
            answers = [answer for answer, _ in self.tree.branches(at)]
            rows = answer_rows(problem, self.tree.question[at], classes, answers)
            expected = rule.answers(rows, self.votes[at], problem.dependence)
            found[here] = expected[np.ravel(place)]
        return found

    @cached_property
    def _voting(self) -> bool:
        """Whether votes err less than one worker: two err as often, for a tie is a fair coin."""
        return not self.rule.is_plurality or bool(np.any(self.votes > 2))

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

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        return (
            self.tree == other.tree
            and (self.vote, self.method, self.pool) == (other.vote, other.method, other.pool)
            and self.undecided == other.undecided
            and np.array_equal(self.votes, other.votes)
        )

    def __hash__(self) -> int:
        return hash((self.tree, self.votes.tobytes()))

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


def _instead(value: Any, _: str) -> str:
    """What to pass in place of something that is no plan."""
    if not hasattr(value, "fixed_plan"):  # of PlanChoices
        return "design(problem) makes a tree, staff(tree, workers=...) a plan, load(path) reads one"
    if value.fixed_plan is not None:
        return "pass its .fixed_plan"
    return "it has no fixed tree; simulate its .policy"


describe_type(Plan, "a Plan", _instead)


def as_plan(tree: Tree | Plan) -> Plan:
    """Turn a tree into the plan that asks one worker per node."""
    check_call(as_plan, {"tree": tree})
    if isinstance(tree, Plan):
        return tree
    return Plan(tree, np.ones(tree.n_nodes, dtype=np.int64), method="one worker per node")


def nested_plan(plan: Plan) -> dict[str, Any]:
    """Nest the tree of a plan with its votes: ``{"question", "votes", "no", "yes"}``.

    A question with other answers than no and yes has ``"branches"`` by answer.

    A leaf has its ``"label"``, a leaf of several classes these as ``"group"``, and one whose items
    are left undecided ``"undecided": true``. Where mistakes have different costs, the label may be
    another class than the table leads there (which is then the ``"group"``), and a leaf whose items
    go to the expert has ``"refer": true``.
    """
    nested = plan.tree.to_dict()
    votes = iter(plan.votes.tolist())
    for node in _inner(nested):
        rest = {key: node.pop(key) for key in [*node] if key != "question"}
        node |= {"votes": next(votes)} | rest
    undecided, handed_over = set(plan.undecided), set(plan.handed_over)
    loss, names = plan.tree.problem.loss, plan.tree.problem.classes
    for place, leaf in enumerate(_leaves(nested)):
        if loss is not None:
            label = names[plan.leaf_label[place]]
            if label not in leaf.get("group", [leaf["label"]]):
                leaf.setdefault("group", [leaf["label"]])
            leaf["label"] = label
            if loss.refer is not None and place in handed_over:
                leaf["refer"] = True
        if place in undecided:
            leaf["undecided"] = True
    return nested


def _inner(nested: Any) -> Iterator[Any]:
    """Yield the inner nodes in the order of ``tree.nodes``: level by level, from the left."""
    queue = [nested]
    for entry in queue:
        if "question" in entry:
            children = list(nested_branches(entry).values())
            yield entry
            queue += children


def _leaves(nested: Any) -> Iterator[Any]:
    """Yield the leaves in the order of the tree's numbers."""
    for node in _inner(nested):
        yield from (below for below in nested_branches(node).values() if "question" not in below)


def _flat(nested: dict[str, Any]) -> list[dict[str, Any]]:
    """List the inner nodes; branches to inner nodes become their numbers in the list."""
    nodes = list(_inner(nested))
    place = {id(node): number for number, node in enumerate(nodes)}
    return [
        _with_branches(node, {k: place.get(id(v), v) for k, v in nested_branches(node).items()})
        for node in nodes
    ]


def _with_branches(node: dict[Any, Any], below: Mapping[Any, Any]) -> dict[Any, Any]:
    return node | ({"branches": dict(below)} if "branches" in node else dict(below))


def _nested(nodes: list[dict[Any, Any]]) -> dict[Any, Any]:
    """Undo :func:`_flat`."""
    made = [dict(node) for node in nodes]
    for number in reversed(range(len(made))):
        below = dict(nested_branches(made[number]))
        for key, child in below.items():
            if isinstance(child, int):
                if not number < child < len(made):
                    raise CrowdtreeError(
                        f"nodes[{number}].{key}: expected the number of a later node"
                    )
                below[key] = made[child]
        made[number] = _with_branches(made[number], below)
    return made[0] if made else {}


def _votes_of(node: Mapping[Any, Any]) -> int:
    votes = node.get("votes", 1)
    if isinstance(votes, bool) or not isinstance(votes, int) or not 1 <= votes < 2**53:
        raise CrowdtreeError(
            f"tree: question {one_line(node['question'])} has {one_line(votes)} votes; "
            "expected a whole number of at least 1"
        )
    return votes
