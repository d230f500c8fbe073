"""Texts and numbers of each node and leaf in a drawing, from the plan and its evaluation."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from crowdtree.core.errors import listing
from crowdtree.core.evaluation import Evaluation, evaluate
from crowdtree.core.fixed_plan import Plan, as_plan
from crowdtree.core.outcomes import YES_NO
from crowdtree.core.text import number, percent, plural
from crowdtree.core.tree import Tree
from crowdtree.show.plots.text import clean
from crowdtree.show.plots.tree_fold import Entry, leaf_counts

MAX_NAMES = 3
"""Names of a group that are written in its box; the others follow below the drawing."""


class Words(NamedTuple):
    """Texts of a box, before they are broken into lines."""

    kind: str  # "question", "leaf" or "fold"
    main: str
    sub: str  # further classes
    small: tuple[str, ...]
    title: str
    share: float
    node: int  # -1 for a leaf
    note: str = ""  # all classes, where the box may not have them


class Facts:
    """Texts and numbers of each node, from the plan and its evaluation."""

    def __init__(self, plan: Plan, value: Evaluation | None = None) -> None:
        self.plan = plan
        self.tree = plan.tree
        self.value = evaluate(plan) if value is None else value
        self.leaves = leaf_counts(plan.tree)
        self.leaf_share = np.zeros(plan.tree.n_leaves)
        for rows in plan.tree.leaf_rows:
            np.add.at(self.leaf_share, rows.node, rows.share)

    @property
    def title(self) -> str:
        """Title of the whole drawing."""
        tree, value, loss = self.tree, self.value, self.tree.problem.loss
        asked = plural(len(np.unique(tree.question)), "question")
        size = f"{plural(tree.problem.n_classes, 'class', 'classes')} by {asked}"
        each = f"{size}, at most {tree.depth} per item"
        risk = "" if loss is None else f", expected loss {number(value.risk)}"
        if self.plan.handed_over:
            left = f"{percent(value.undecided)} of items {self.left_over}"
            wrong = f"{percent(value.decided_error)} of the others get a wrong label"
            return f"{each}: {left}, {wrong}{risk}"
        return f"{each}: {percent(value.misclassification)} of items get a wrong label{risk}"

    @property
    def left_over(self) -> str:
        """What becomes of items that get no label."""
        loss = self.tree.problem.loss
        return "are undecided" if loss is None or loss.refer is None else "go to an expert"

    def name(self, node: int) -> str:
        """Name of the question."""
        return self.tree.problem.questions[int(self.tree.question[node])]

    def text(self, node: int) -> str:
        """What workers are asked."""
        return self.tree.problem.text(int(self.tree.question[node]))

    def share(self, node: int) -> float:
        """Share of all items that get to a question, wrong turns included."""
        return float(self.value.visits[node])

    def error(self, node: int) -> float:
        """Probability that the vote of a node is wrong, for the items that belong there."""
        return float(self.plan.node_error[node] / self.tree.share[node])

    def votes(self, node: int) -> str:
        """Votes of a node in words."""
        return self.plan.rule.drawn(int(self.plan.votes[node]))

    def small(self, node: int) -> str:
        """Small print of a question."""
        share = percent(self.share(node))
        return f"{percent(self.error(node))} error · {self.votes(node)} · {share}"

    def label(self, leaf: int) -> str:
        """Label of a leaf."""
        return self.tree.problem.classes[int(self.plan.leaf_label[leaf])]

    def leaf_small(self, leaf: int) -> tuple[str, ...]:
        """Small print of a leaf: its share, and what the label or the best guess is worth."""
        loss = self.tree.problem.loss
        share = f"{percent(float(self.value.leaf_share[leaf]))} of items"
        worth = percent(float(self.value.leaf_precision[leaf]))
        if leaf in self.plan.handed_over:
            word = "undecided" if loss is None or loss.refer is None else "to the expert"
            return share, word, f"best guess right {worth}"
        return share, f"recall {percent(self.recall(leaf))}", f"precision {worth}"

    def others(self, leaf: int) -> list[str]:
        """Classes that share a leaf with its label."""
        mine = self.plan.leaf_label[leaf]
        return [self.tree.problem.classes[c] for c in self.tree.leaf_classes[leaf] if c != mine]

    def words(self, entry: Entry) -> Words:
        """Texts of a box."""
        if entry.kind == "question":
            return self._question_words(entry.index)
        return (self._leaf_words if entry.kind == "leaf" else self._fold_words)(entry.index)

    def _question_words(self, node: int) -> Words:
        name, text = self.name(node), self.text(node)
        head = text if name == text else f"{name}: {text}"
        title, share = f"{head} ({self.small(node)} of items)", float(self.tree.share[node])
        return Words("question", f"{node + 1}. {text}", "", (self.small(node),), title, share, node)

    def _leaf_words(self, leaf: int) -> Words:
        label, others, small = self.label(leaf), self.others(leaf), self.leaf_small(leaf)
        if leaf in self.plan.handed_over:
            label = f"perhaps {label}"
        either = "or " + listing(others, most=MAX_NAMES) if others else ""
        group = f" (or {', '.join(others)})" if others else ""
        note = f"{label} or {', '.join(others)}" if len(others) > MAX_NAMES else ""
        title, share = f"{label}{group}: {', '.join(small)}", float(self.leaf_share[leaf])
        return Words("leaf", label, either, small, title, share, -1, note)

    def _fold_words(self, node: int) -> Words:
        size, names = self.fold_text(node), ", ".join(self.tree.nodes[node].classes)
        head, title = f"{node + 1}. {size}", f"{size} of items, folded: {names}"
        share = float(self.tree.share[node])
        small = self.fold_small(node)
        return Words("fold", head, names, small, title, share, node, f"{node + 1}. {names}")

    def recall(self, leaf: int) -> float:
        """Share of the items of the leaf's class that get its label."""
        return float(self.value.recall[self.plan.leaf_label[leaf]])

    def leaf_dict(self, leaf: int) -> dict[str, Any]:
        """Facts of a leaf as plain JSON."""
        found: dict[str, Any] = {"label": self.label(leaf)}
        if self.others(leaf):
            found["group"] = [self.label(leaf), *self.others(leaf)]
        if leaf in self.plan.handed_over:
            found["undecided"] = True
        worth = float(self.value.leaf_precision[leaf])
        return found | {
            "share": float(self.leaf_share[leaf]),
            "correct": float(self.value.correct[self.plan.leaf_label[leaf]]),
            "recall": self.recall(leaf),
            "precision": None if np.isnan(worth) else worth,
        }

    def fold_text(self, node: int) -> str:
        """Size of a folded subtree in words."""
        # an inner node has at least two leaves, but "either" may lead one class to several
        n = len(self.tree.nodes[node].classes)
        return f"{plural(n, 'class', 'classes')} · {percent(self.share(node))}"

    def fold_small(self, node: int) -> tuple[str, ...]:
        """Small print of a folded subtree below its size and classes."""
        del node
        return ()

    @cached_property
    def entropy(self) -> list[float]:
        """Bits left at each level; `Tree.levels` would list the classes of every level as well."""
        drop = np.bincount(self.tree.level, weights=self.tree.gain)
        return [*np.cumsum(drop[::-1])[::-1].tolist(), 0.0]

    @cached_property
    def _above(self) -> dict[int, tuple[int, str]]:
        return {
            child: (node, self.tree.problem.answers[self.tree.question[node]][answer])
            for node in range(self.tree.n_nodes)
            for answer, child in self.tree.branches(node)
            if child >= 0
        }

    def way(self, node: int) -> str:
        """Questions and answers that lead to a node."""
        steps: list[str] = []
        while node in self._above:
            node, answer = self._above[node]
            steps.append(f"{clean(self.text(node))} {answer}")
        return " → ".join(reversed(steps))


def tree_table(tree: Tree | Plan) -> dict[str, Any]:
    """Nest the facts: question, error, votes and share; label, share and probability."""
    facts = Facts(as_plan(tree))
    found: dict[int, dict[str, Any]] = {}
    for node in reversed(range(facts.tree.n_nodes)):
        names = facts.tree.problem.answers[facts.tree.question[node]]
        below = {
            names[answer]: found[child] if child >= 0 else facts.leaf_dict(~child)
            for answer, child in facts.tree.branches(node)
        }
        found[node] = {
            "question": facts.name(node),
            "text": facts.text(node),
            "error": facts.error(node),
            "votes": int(facts.plan.votes[node]),
            "share": float(facts.tree.share[node]),
            "level": int(facts.tree.level[node]),
            **(below if names == YES_NO else {"branches": below}),
        }
    return found[0]
