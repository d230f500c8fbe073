"""Texts and numbers of each node and leaf in a drawing, from the plan and its evaluation."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from crowdtree.evaluation import Evaluation, evaluate
from crowdtree.plan import Plan, as_plan
from crowdtree.plots.text import clean
from crowdtree.plots.tree_fold import leaf_counts
from crowdtree.text import number, percent, plural
from crowdtree.tree import Tree

__all__ = ["Facts", "tree_table"]


class Facts:
    """Texts and numbers of each node, from the plan and its evaluation."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.tree = plan.tree
        self.value: Evaluation = evaluate(plan)
        self.leaves = leaf_counts(plan.tree)
        self.leaf_share = np.zeros(plan.tree.n_leaves)
        for rows in plan.tree.leaf_rows:
            np.add.at(self.leaf_share, rows.node, rows.share)

    @property
    def title(self) -> str:
        """Title of the whole drawing."""
        n = self.tree.problem.n_classes
        asked = plural(self.tree.n_nodes, "question")
        wrong = f"{percent(self.value.decided_error)} of "
        loss = self.tree.problem.loss
        if self.plan.handed_over:
            left = "undecided" if loss is None or loss.refer is None else "go to an expert"
            wrong += f"labels are wrong, {percent(self.value.undecided)} of items {left}"
        else:
            wrong += "items get a wrong label"
        risk = "" if loss is None else f", expected loss {number(self.value.risk)}"
        return f"{asked} for {plural(n, 'class', 'classes')}: {wrong}{risk}"

    def name(self, node: int) -> str:
        """Name of the question."""
        return self.tree.problem.questions[int(self.tree.question[node])]

    def text(self, node: int) -> str:
        """What workers are asked."""
        return self.tree.problem.text(int(self.tree.question[node]))

    def error(self, node: int) -> float:
        """Probability that the vote of a node is wrong, for the items that belong there."""
        return float(self.plan.node_error[node] / self.tree.share[node])

    def votes(self, node: int) -> str:
        """Votes of a node in words."""
        votes = int(self.plan.votes[node])
        return plural(votes, "vote") if self.plan.vote == "majority" else f"lead by {votes}"

    def small(self, node: int) -> str:
        """Small print of a question."""
        share = percent(float(self.tree.share[node]))
        return f"{percent(self.error(node))} error · {self.votes(node)} · {share}"

    def label(self, leaf: int) -> str:
        """Label of a leaf."""
        return self.tree.problem.classes[int(self.plan.leaf_label[leaf])]

    def verdict(self, leaf: int) -> str:
        """What becomes of an item at a leaf: how often its label is right, or who decides."""
        loss = self.tree.problem.loss
        if leaf in self.plan.handed_over:
            return "undecided" if loss is None or loss.refer is None else "to the expert"
        return f"right {percent(self.right(leaf))}"

    def others(self, leaf: int) -> list[str]:
        """Classes that share a leaf with its label."""
        mine = self.plan.leaf_label[leaf]
        return [self.tree.problem.classes[c] for c in self.tree.leaf_classes[leaf] if c != mine]

    def right(self, leaf: int) -> float:
        """Chance that an item of the leaf's class gets its own label.

        Under a loss several leaves may have one label: then the share of the leaf's items that
        are of its class.
        """
        if self.tree.problem.loss is not None:
            return 1 - float(self.value.leaf_wrong[leaf] / max(self.value.leaf_share[leaf], 1e-300))
        return float(self.value.correct[self.tree.leaf_label[leaf]])

    def leaf_dict(self, leaf: int) -> dict[str, Any]:
        """Small print of a leaf."""
        found: dict[str, Any] = {"label": self.label(leaf)}
        if self.others(leaf):
            found["group"] = [self.label(leaf), *self.others(leaf)]
        if leaf in self.plan.handed_over:
            found["undecided"] = True
        return found | {"share": float(self.leaf_share[leaf]), "correct": self.right(leaf)}

    def fold_text(self, node: int) -> str:
        """Words of a pill."""
        # an inner node has at least two leaves, but "either" may lead one class to several
        n = len(self.tree.nodes[node].classes)
        return f"{plural(n, 'class', 'classes')} · {percent(float(self.tree.share[node]))}"

    @cached_property
    def entropy(self) -> list[float]:
        """Bits left at each level; `Tree.levels` would list the classes of every level as well."""
        drop = np.bincount(self.tree.level, weights=self.tree.gain)
        return [*np.cumsum(drop[::-1])[::-1].tolist(), 0.0]

    @cached_property
    def _above(self) -> dict[int, tuple[int, str]]:
        return {
            child: (node, answer)
            for node, pair in enumerate(self.tree.children.tolist())
            for child, answer in zip(pair, ("no", "yes"), strict=True)
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
        no, yes = (
            found[child] if child >= 0 else facts.leaf_dict(~child)
            for child in facts.tree.children[node].tolist()
        )
        found[node] = {
            "question": facts.name(node),
            "text": facts.text(node),
            "error": facts.error(node),
            "votes": int(facts.plan.votes[node]),
            "share": float(facts.tree.share[node]),
            "level": int(facts.tree.level[node]),
            "no": no,
            "yes": yes,
        }
    return found[0]
