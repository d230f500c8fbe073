"""A point of the frontier: a plan with its error, its cost and what is proven about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.evaluation import Evaluation, evaluate
from crowdtree.core.fixed_plan import Plan
from crowdtree.core.result_methods import HtmlShown


@dataclass(frozen=True, eq=False)
class Point(HtmlShown):
    """A plan on the frontier, with its error and cost and what is proven about them.

    `gap` is how far ``additive error + price x planned cost`` is above a proven bound, as a share,
    at the price where that is least. `status` is ``"optimal"`` where the gap is 0: at some price no
    plan has a smaller sum. Otherwise it is the limit that ended the search, ``"greedy"``, or
    ``"exact"``: the search is complete, and this plan is better than those that it proves optimal
    in what counts, the exact misclassification and the expected cost.

    >>> import crowdtree as ct
    >>> point = ct.frontier(ct.example("table1"), max_votes=3)[0]
    >>> point.status, round(point.misclassification, 3), round(point.expected_answers, 2)
    ('optimal', 0.082, 1.71)
    """

    plan: Plan
    price: NDArray[np.float64]
    gap: float
    status: str

    @cached_property
    def value(self) -> Evaluation:
        """Everything about the plan."""
        return evaluate(self.plan)

    @property
    def misclassification(self) -> float:
        """Exact share of items that get a wrong label."""
        return self.value.misclassification

    @property
    def risk(self) -> float:
        """Exact expected loss per item; for 0/1 loss the misclassification."""
        return self.value.risk

    @property
    def additive(self) -> float:
        """Additive error: an upper bound of the misclassification."""
        return self.value.additive

    @property
    def planned_answers(self) -> float:
        """Expected answers per item on its error-free path."""
        return self.value.planned_answers

    @property
    def expected_answers(self) -> float:
        """Expected answers per item, wrong turns included."""
        return self.value.expected_answers

    @property
    def undecided(self) -> float:
        """Share of items that are reported as undecided."""
        return self.value.undecided

    @property
    def decided_error(self) -> float:
        """Share of wrong labels among the items that are decided."""
        return self.value.decided_error

    def deciding(self, error: float) -> Point | None:
        """Leave the least certain leaves undecided, until the others err in at most this share.

        Leaves are taken by their share of wrong labels, largest first, so no choice of leaves
        leaves fewer items undecided, but for part of the last leaf. What would only tell undecided
        leaves apart is no longer asked. ``None`` where no leaf is good enough.
        """
        value = self.value
        if value.misclassification <= error:
            return self
        rate = value.leaf_wrong / np.maximum(value.leaf_share, 1e-300)
        order = np.argsort(rate, kind="stable")
        share, wrong = np.cumsum(value.leaf_share[order]), np.cumsum(value.leaf_wrong[order])
        kept = int(np.searchsorted(wrong / np.maximum(share, 1e-300), error, side="right"))
        plan = self.plan.leaving_undecided(order[kept:].tolist())
        return None if plan is None else replace(self, plan=plan, gap=np.nan, status="undecided")

    @cached_property
    def planned_cost(self) -> float:
        """Expected price per item on its error-free path."""
        total = 0.0
        for step in self.plan.tree.steps:
            price = self.price[self.plan.tree.question[step.node]]
            total += float((step.share * price) @ self.plan.answers_at(step.node, step.cls))
        return total

    @cached_property
    def expected_cost(self) -> float:
        """Expected price per item, wrong turns included."""
        return float(self.value.answers_by_node @ self.price[self.plan.tree.question])

    def __repr__(self) -> str:
        return (
            f"Point(answers={self.expected_answers:.4g}, "
            f"misclassification={self.misclassification:.4g}, {self.status})"
        )
