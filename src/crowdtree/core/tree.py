"""Tree: which question is asked where. Immutable arrays; everything else follows from them.

A node is a set of classes and the question asked there, with a branch for every answer that is
right for some of them (docs/model.md, sections 2 and 12). Inner nodes are numbered level by level,
left to right.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from crowdtree.core import scores
from crowdtree.core.arrays import FloatArray
from crowdtree.core.checking import check_call
from crowdtree.core.errors import CrowdtreeError, listing
from crowdtree.core.loss import Loss
from crowdtree.core.outcomes import DASH, YES_NO
from crowdtree.core.problem import Problem
from crowdtree.core.result_methods import Drawn, Framed, Saved

IntArray = NDArray[np.int32]
NO_BRANCH = -(2**31)
"""Child of an answer that is right for no class of the node."""


class Node(NamedTuple):
    """An inner node: its question, its classes, and the share of items that pass.

    `branches` has, for each answer, the next node, or ``~i`` for the i-th leaf.

    >>> import crowdtree as ct
    >>> root = ct.design(ct.example("table1")).nodes[0]
    >>> root.question, root.level, root.share
    ('T1', 0, 1.0)
    >>> root.branches
    {'no': 1, 'yes': -1}
    """

    index: int  # type: ignore[assignment]
    question: str
    text: str
    classes: tuple[str, ...]
    level: int
    share: float
    branches: dict[str, int]


class Level(NamedTuple):
    """A level of the tree; the scores are those of the step that leads to it.

    >>> import crowdtree as ct
    >>> [round(level.entropy, 2) for level in ct.design(ct.example("table1")).levels]
    [1.67, 0.7, 0.3, 0.1, 0.0]
    """

    depth: int
    entropy: float
    partition: tuple[tuple[str, ...], ...]
    g: float | None
    b: float | None
    fm: float | None
    fc: float | None
    fc_printed: float | None


class Certificate(NamedTuple):
    """What is proven about a tree: no tree has a value below `lower_bound`.

    >>> import crowdtree as ct
    >>> proof = ct.design(ct.example("table1"), "optimal").certificate
    >>> proof.status, proof.gap
    ('optimal', 0.0)
    """

    objective: str
    value: float
    lower_bound: float
    gap: float
    status: str
    nodes: int


class Step(NamedTuple):
    """Where the classes are before question d is asked, one row per (node, class).

    `parent` is the row of the step before from which this row came. A class with several right
    answers (``-`` in an `either` problem: all) follows their branches, with a row and an equal part
    of the share each. `answer` is its cell of the outcome table.
    """

    node: IntArray
    cls: IntArray
    share: FloatArray
    parent: IntArray
    answer: NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Tree(Framed, Saved, Drawn):
    """A decision tree of questions.

    Parameters
    ----------
    problem
        The problem the tree is for.
    question
        Index of the question of each inner node, level by level, left to right.
    children
        One per node and answer: the index of an inner node, ``NO_BRANCH`` for an answer that is
        right for no class of the node, or any other negative number for a leaf, which becomes
        ``~leaf`` with the leaves numbered level by level, left to right.
    method
        How it was designed.
    certificate
        What is proven about it, where something is.

    Examples
    --------
    >>> problem = Problem(["a", "b", "c"], None, ["q", "r"], [[0, 0, 1], [0, 1, 1]], 0.1)
    >>> tree = Tree.from_dict(problem, {"question": "q", "yes": {"label": "c"},
    ...     "no": {"question": "r", "no": {"label": "a"}, "yes": {"label": "b"}}})
    >>> print(tree.to_text())
    q
    ├─ no  → r
    │        ├─ no  → a
    │        └─ yes → b
    └─ yes → c
    """

    problem: Problem
    question: IntArray
    children: IntArray
    method: str = "given"
    certificate: Certificate | None = None

    def __post_init__(self) -> None:
        check_call(Tree, vars(self))
        question = np.array(self.question, dtype=np.int32)
        children = np.array(self.children, dtype=np.int32)
        if not len(question):
            raise CrowdtreeError("tree: expected at least one question, got none")
        width = int(self.problem.n_answers.max())
        if children.ndim != 2 or children.shape[1] != width:
            raise CrowdtreeError(
                f"children: expected {'two' if width == 2 else width} per question, got shape "
                f"{children.shape}"
            )
        if not np.all((question >= 0) & (question < self.problem.n_questions)):
            raise CrowdtreeError(f"tree: questions are numbered 0..{self.problem.n_questions - 1}")
        leaf = (children < 0) & (children != NO_BRANCH)
        if len(children) != len(question) or not np.array_equal(
            children[children >= 0], np.arange(1, len(question))
        ):
            raise CrowdtreeError(
                f"tree: {len(question)} questions need {'two' if width == 2 else width} children "
                "each, and the inner nodes must be numbered level by level, left to right"
            )
        self._check_branches(question, children)
        children[leaf] = ~np.arange(leaf.sum(), dtype=np.int32)  # numbered in order of appearance
        for name, values in (("question", question), ("children", children)):
            values.flags.writeable = False
            object.__setattr__(self, name, values)

    def _check_branches(self, question: IntArray, children: IntArray) -> None:
        count = self.problem.n_answers[question]
        exists = np.arange(children.shape[1]) < count[:, None]
        taken = children != NO_BRANCH
        if (taken == exists).all():
            return
        bad = np.flatnonzero((taken & ~exists).any(axis=1) | (taken.sum(axis=1) < 2))
        if len(bad):
            name = self.problem.questions[question[bad[0]]]
            given = np.flatnonzero(taken[bad[0]]).tolist()
            answers = self.problem.answers[question[bad[0]]]
            named = [answers[a] if a < len(answers) else f"answer {a + 1}" for a in given]
            raise CrowdtreeError(
                f"tree: question {name!r} has {count[bad[0]]} answers; expected a branch for two "
                f"or more of these, got {listing(map(repr, named)) or 'none'}"
            )

    # ---------------------------------------------------------------- shape

    def branches(self, node: int) -> list[tuple[int, int]]:
        """Answers of a node that have a branch, each with the next node (or ``~leaf``)."""
        row = self.children[node].tolist()
        return [(answer, child) for answer, child in enumerate(row) if child != NO_BRANCH]

    @property
    def n_nodes(self) -> int:
        """Number of inner nodes."""
        return len(self.question)

    @cached_property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(np.count_nonzero((self.children < 0) & (self.children != NO_BRANCH)))

    def longest_path(self, weight: NDArray[Any]) -> int:
        """Largest sum of the nodes' whole weights on a path from the root to a leaf."""
        longest = np.asarray(weight, dtype=np.int64).copy()
        for node in reversed(range(self.n_nodes)):  # children come after their parents
            below = [longest[child] for child in self.children[node] if child >= 0]
            longest[node] += max(below, default=0)
        return int(longest[0])

    @cached_property
    def level(self) -> IntArray:
        """Level of each inner node; the root is 0."""
        level = np.zeros(self.n_nodes, dtype=np.int32)
        for node in range(self.n_nodes):  # children come after their parents
            for child in self.children[node]:
                if child >= 0:
                    level[child] = level[node] + 1
        return level

    @cached_property
    def by_level(self) -> tuple[NDArray[np.intp], ...]:
        """Inner nodes of each level."""
        ends = np.cumsum(np.bincount(self.level))[:-1]
        return tuple(np.split(np.argsort(self.level, kind="stable"), ends))

    @property
    def depth(self) -> int:
        """The most questions that any item is asked."""
        return int(self.level.max(initial=-1)) + 1

    # ---------------------------------------------------------------- classes at each node

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Rows of (node, class) on the error-free path through the tree, level by level."""
        return tuple(step for step, _ in self._walk)

    @cached_property
    def leaf_rows(self) -> tuple[Step, ...]:
        """Rows that reach a leaf after question d: `node` is the leaf, `parent` a row of step d."""
        return tuple(rows for _, rows in self._walk)

    @cached_property
    def _walk(self) -> tuple[tuple[Step, Step], ...]:
        problem = self.problem
        n = problem.n_classes
        row = Step(
            node=np.zeros(n, dtype=np.int32),
            cls=np.arange(n, dtype=np.int32),
            share=problem.prior,
            parent=np.arange(n, dtype=np.int32),
            answer=np.zeros(0, dtype=np.int8),
        )
        walk = []
        while len(row.node):
            answer = problem.outcome[self.question[row.node], row.cls]
            row = row._replace(answer=answer)
            arrived = self._descend(row)
            inner = arrived.node >= 0
            leaves = _some_rows(arrived, ~inner)
            walk.append((row, leaves._replace(node=~leaves.node)))
            row = _some_rows(arrived, inner)
        return tuple(walk)

    def _descend(self, row: Step) -> Step:
        if (row.answer >= 0).all():
            node = self.children[row.node, row.answer]
            parent = np.arange(len(row.node), dtype=np.int32)
            share = row.share
        else:
            right = self.problem.right[:, self.question[row.node], row.cls]
            count = right.sum(axis=0)
            if not count.all():
                self._refuse_dash(row, int(np.argmin(count)))
            parent, answer = (places.astype(np.int32) for places in np.nonzero(right.T))
            node = self.children[row.node[parent], answer]
            share = row.share[parent] / count[parent]
        if (node == NO_BRANCH).any():
            self._refuse_blocked(row, int(parent[np.argmax(node == NO_BRANCH)]))
        rank = np.where(node >= 0, node, len(self.question) + ~node)
        order = np.lexsort((row.cls[parent], rank))
        parent = parent[order]
        return Step(node[order], row.cls[parent], share[order], parent, row.answer[:0])

    def _refuse_dash(self, row: Step, bad: int) -> NoReturn:
        raise CrowdtreeError(
            f"tree: question {self.problem.questions[self.question[row.node[bad]]]!r} is asked "
            f"where class {self.problem.classes[row.cls[bad]]!r} is still possible, but does "
            f'not apply to it (-); use dash="either" if - means that {_all_answers(self.problem)} '
            "occur"
        )

    def _refuse_blocked(self, row: Step, bad: int) -> NoReturn:
        raise CrowdtreeError(
            f"tree: question {self.problem.questions[self.question[row.node[bad]]]!r} has no "
            f"branch for an answer of class {self.problem.classes[row.cls[bad]]!r}; add it"
        )

    @cached_property
    def usual_answer(self) -> list[int]:
        """Answer of each node that is right for most of its items."""
        part = np.zeros((self.children.shape[1], self.n_nodes))
        for step in self.steps:
            right = self.problem.right[:, self.question[step.node], step.cls]
            each = step.share / right.sum(axis=0)
            for answer, here in enumerate(right):
                np.add.at(part[answer], step.node, each * here)
        return [int(answer) for answer in part.argmax(axis=0)]

    @cached_property
    def leaf_classes(self) -> tuple[tuple[int, ...], ...]:
        """Classes of each leaf, by leaf; more than one where no question splits them."""
        found: list[tuple[int, ...]] = [()] * self.n_leaves
        for rows in self.leaf_rows:
            for leaf, members in _grouped(rows.node, rows.cls):
                found[leaf] = tuple(members.tolist())
        return tuple(found)

    @cached_property
    def leaf_label(self) -> IntArray:
        """Label of each leaf where nobody errs: the best of its classes for these.

        The likeliest (the first of equals); where mistakes have different costs, the one of the
        smallest expected loss. A plan also weighs items that arrive by mistake
        (:attr:`crowdtree.core.fixed_plan.Plan.leaf_label`).
        """
        label = np.full(self.n_leaves, -1, dtype=np.int32)
        loss = self.problem.loss
        for rows in self.leaf_rows:
            order = np.lexsort((rows.cls, -rows.share, rows.node))
            leaf, first = np.unique(rows.node[order], return_index=True)
            label[leaf] = rows.cls[order][first]
            if loss is not None and len(leaf) < len(order):
                for at in leaf.tolist():
                    here = np.flatnonzero(rows.node == at)
                    within = Loss(loss.matrix[np.ix_(rows.cls[here], rows.cls[here])])
                    label[at] = rows.cls[here][int(within.decide(rows.share[here]).label)]
        if np.any(label < 0):
            empty = int(np.argmin(label))
            node = int(np.argmax(np.any(self.children == ~empty, axis=1)))
            raise CrowdtreeError(
                f"tree: no class reaches a leaf of question "
                f"{self.problem.questions[self.question[node]]!r}; leave that question out"
            )
        return label

    @cached_property
    def stakes(self) -> tuple[FloatArray, ...]:
        """Largest loss that a wrong answer can cause, for the rows of each step.

        An item that takes the wrong branch gets a label of that branch. 1 for 0/1 loss.
        """
        problem = self.problem
        if problem.loss is None:
            return tuple(np.ones(len(step.node)) for step in self.steps)
        found = []
        for step in self.steps:
            right = problem.right_sets[self.question[step.node], step.cls]
            rows = [
                problem.loss.stakes(right[None, here], step.cls[here])[0]
                for _, here in _grouped(step.node, np.arange(len(step.node), dtype=np.int32))
            ]
            found.append(np.concatenate(rows))
        return tuple(found)

    @cached_property
    def share(self) -> FloatArray:
        """Share of items that pass each inner node when nobody errs, ``p(S)``."""
        share = np.zeros(self.n_nodes)
        for step in self.steps:
            np.add.at(share, step.node, step.share)
        return share

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The inner nodes, level by level, left to right."""
        members: dict[int, tuple[str, ...]] = {}
        for step in self.steps:
            for node, classes in _grouped(step.node, step.cls):
                members[node] = tuple(self.problem.classes[c] for c in classes)
        return tuple(
            Node(
                index=i,
                question=self.problem.questions[q],
                text=self.problem.text(q),
                classes=members.get(i, ()),
                level=int(self.level[i]),
                share=float(self.share[i]),
                branches={self.problem.answers[q][a]: child for a, child in self.branches(i)},
            )
            for i, q in enumerate(self.question.tolist())
        )

    # ---------------------------------------------------------------- levels

    @cached_property
    def gain(self) -> FloatArray:
        """Fall of the entropy at each inner node, in bits; they add up to ``H(L_0)``."""
        if self.problem.is_yes_no:
            yes, dash = np.zeros(self.n_nodes), np.zeros(self.n_nodes)
            for step in self.steps:
                np.add.at(yes, step.node, step.share * (step.answer == 1))
                np.add.at(dash, step.node, step.share * (step.answer == DASH))
            return scores.split_gain(self.share, yes + dash / 2, dash)
        part = np.zeros((self.children.shape[1], self.n_nodes))
        lost = np.zeros(self.n_nodes)
        for step in self.steps:
            right = self.problem.right[:, self.question[step.node], step.cls]
            count = right.sum(axis=0)
            for answer, here in enumerate(right):
                np.add.at(part[answer], step.node, step.share * here / count)
            np.add.at(lost, step.node, step.share * np.log2(count))
        return scores.parts_gain(self.share, part, lost)

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """Levels ``L_0 .. L_D`` with one worker per question."""
        node_error = np.zeros(self.n_nodes)
        for step in self.steps:
            error = self.problem.worker_error[self.question[step.node], step.cls]
            np.add.at(node_error, step.node, step.share * np.where(step.answer == DASH, 0, error))
        return self.levels_with(node_error)

    def levels_with(self, node_error: FloatArray) -> tuple[Level, ...]:
        """Levels ``L_0 .. L_D``, given ``sum_i p_i e_i`` over the classes of each node."""
        drop = np.bincount(self.level, weights=self.gain, minlength=self.depth)
        error = np.bincount(self.level, weights=node_error, minlength=self.depth)
        entropy = np.append(np.cumsum(drop[::-1])[::-1], 0.0)
        found = [Level(0, float(entropy[0]), self._partition(0), None, None, None, None, None)]
        for d, (h, dh, g) in enumerate(zip(entropy, drop, error, strict=False), start=1):
            found.append(
                Level(
                    depth=d,
                    entropy=float(entropy[d]),
                    partition=self._partition(d),
                    g=float(g),
                    b=float(1 - g),
                    fm=float(scores.additive_score(dh, g)),
                    fc=float(scores.multiplicative_score(h, dh, g)),
                    fc_printed=float(scores.printed_score(h, dh, g)),
                )
            )
        return tuple(found)

    def _partition(self, depth: int) -> tuple[tuple[str, ...], ...]:
        sets: list[tuple[int, ...]] = []
        if depth < len(self.steps):
            step = self.steps[depth]
            sets.extend(tuple(members) for _, members in _grouped(step.node, step.cls))
        for rows in self.leaf_rows[:depth]:
            sets.extend(tuple(members) for _, members in _grouped(rows.node, rows.cls))
        return tuple(tuple(self.problem.classes[c] for c in members) for members in sorted(sets))

    # ---------------------------------------------------------------- conversion

    def to_dict(self) -> dict[str, Any]:
        """Nest the tree as ``{"question", "no", "yes"}`` and ``{"label"}`` (and ``"group"``).

        A question with other answers has ``"branches"``, a mapping from these.
        """
        made: list[dict[str, Any]] = [{}] * self.n_nodes
        for node in reversed(range(self.n_nodes)):
            question = int(self.question[node])
            names = self.problem.answers[question]
            below = {
                names[answer]: made[child] if child >= 0 else self._leaf_dict(~child)
                for answer, child in self.branches(node)
            }
            made[node] = {"question": self.problem.questions[question]} | (
                below if names == YES_NO else {"branches": below}
            )
        return made[0]

    def _leaf_dict(self, leaf: int) -> dict[str, Any]:
        found: dict[str, Any] = {"label": self.problem.classes[self.leaf_label[leaf]]}
        if len(self.leaf_classes[leaf]) > 1:
            found["group"] = [self.problem.classes[c] for c in self.leaf_classes[leaf]]
        return found

    @classmethod
    def from_dict(cls, problem: Problem, nested: Mapping[str, Any], method: str = "given") -> Tree:
        """Read the form of :meth:`to_dict`; labels are checked against the table."""
        check_call(Tree.from_dict, {"problem": problem})
        question: list[int] = []
        children: list[list[int]] = []
        leaves: list[tuple[str, int]] = []
        queue: list[tuple[Mapping[str, Any], int, int]] = [(nested, -1, 0)]
        for entry, parent, side in queue:
            if not isinstance(entry, Mapping):
                raise CrowdtreeError(
                    f"tree: expected a nested table of questions, got {entry!r:.80}"
                )
            if "question" in entry:
                place = len(question)
                question.append(problem.question_index(str(entry["question"])))
                children.append([NO_BRANCH] * int(problem.n_answers.max()))
                names = problem.answers[question[-1]]
                below = nested_branches(entry)
                for key in below:
                    if key not in names:
                        raise CrowdtreeError(
                            f"tree: question {entry['question']!r} has no answer {key!r:.60}; "
                            f"expected {listing(map(repr, names))}"
                        )
                for branch, key in enumerate(names):
                    if isinstance(below.get(key), Mapping):
                        queue.append((below[key], place, branch))
                    elif names == YES_NO or key in below:
                        raise CrowdtreeError(
                            f"tree: question {entry['question']!r} has no {key!r} branch"
                        )
            elif "label" in entry:
                place = ~len(leaves)
                leaves.append((_led_to(problem, entry), parent))
            else:
                raise CrowdtreeError('tree: every entry needs a "question" or a "label"')
            if parent >= 0:
                children[parent][side] = place
        tree = cls(problem, np.array(question), np.array(children), method)
        tree.check_labels([name for name, _ in leaves])
        return tree

    def check_labels(self, labels: list[str]) -> None:
        """Raise unless the table leads the given class of every leaf there."""
        for leaf, name in enumerate(labels):
            here = [self.problem.classes[c] for c in self.leaf_classes[leaf]]
            if name not in here:
                found = f"the table leads {listing(here)} there" if here else "no class reaches it"
                raise CrowdtreeError(f"tree: a leaf is labelled {name!r}, but {found}")

    def to_text(self) -> str:
        """Draw the tree with line characters."""
        names, question = self.problem.questions, self.question
        return "\n".join(
            f"{rail}{branch}{self._leaf_text(~child) if child < 0 else names[question[child]]}"
            for rail, branch, child in self.outline()
        )

    def outline(self, folded: Container[int] = ()) -> Iterator[tuple[str, str, int]]:
        """Yield the lines of the drawing, from the root: rail, branch, and node (or ``~leaf``).

        Nothing is yielded below the nodes in `folded`.
        """
        stack = [(0, "", "", "")]
        while stack:
            child, rail, branch, indent = stack.pop()
            yield rail, branch, child
            if child >= 0 and child not in folded:
                names = self.problem.answers[self.question[child]]
                below = [(names[answer], goal) for answer, goal in self.branches(child)]
                wide = max(len(name) for name, _ in below)
                for place, (name, following) in reversed(list(enumerate(below, start=1))):
                    corner, rail_below = ("└─ ", "   ") if place == len(below) else ("├─ ", "│  ")
                    stack.append(
                        (
                            following,
                            f"{indent}{corner}",
                            f"{name:{wide}} → ",
                            f"{indent}{rail_below}{' ' * (wide + 3)}",
                        )
                    )

    def _leaf_text(self, leaf: int) -> str:
        names = [self.problem.classes[c] for c in self.leaf_classes[leaf]]
        label = self.problem.classes[self.leaf_label[leaf]]
        others = [name for name in names if name != label]
        return f"{label} (or {listing(others)})" if others else label

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        return (
            self.problem == other.problem
            and self.method == other.method
            and self.certificate == other.certificate
            and np.array_equal(self.question, other.question)
            and np.array_equal(self.children, other.children)
        )

    def __hash__(self) -> int:
        return hash((self.question.tobytes(), self.children.tobytes()))

    def __repr__(self) -> str:
        return f"Tree({self.method}: {self.n_nodes} questions asked, depth {self.depth})"


def nested_branches(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Branches of an inner node of a nested tree, by answer."""
    below = entry.get("branches")
    if below is None:
        return {key: entry[key] for key in YES_NO if key in entry}
    if not isinstance(below, Mapping):
        raise CrowdtreeError(
            f"tree: question {entry['question']!r:.60}: expected branches by answer, got "
            f"{below!r:.60}"
        )
    return below


def _all_answers(problem: Problem) -> str:
    return "both answers" if problem.n_answers.max() == 2 else "all answers"


def _led_to(problem: Problem, leaf: Mapping[str, Any]) -> str:
    """A class that the table leads to a leaf; under a loss the label may be another one."""
    group = leaf.get("group")
    if problem.loss is not None and isinstance(group, list) and group:
        return str(group[0])
    return str(leaf["label"])


def _some_rows(step: Step, kept: NDArray[np.bool_]) -> Step:
    return Step(step.node[kept], step.cls[kept], step.share[kept], step.parent[kept], step.answer)


def _grouped(key: IntArray, values: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Cut values into runs of equal key; rows come sorted by key."""
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    if not len(starts):
        return
    for start, part in zip(starts, np.split(values, starts[1:]), strict=True):
        yield int(key[start]), part
