"""Exact error and cost of a tree or a plan (docs/model.md, sections 3 and 4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from crowdtree.core import per_class, scores
from crowdtree.core.arrays import FloatArray
from crowdtree.core.bounds import checked_price
from crowdtree.core.checking import check_call, describe_type, named_options
from crowdtree.core.fixed_plan import Plan, as_plan, nested_plan
from crowdtree.core.per_class import ClassRow, Confusion
from crowdtree.core.problem import DASH, Problem
from crowdtree.core.result_methods import Framed, Plotted, Saved
from crowdtree.core.scores import Interval
from crowdtree.core.tree import Tree

_BLOCK_CELLS = 4_000_000  # (class, leaf) pairs in memory at once


class Credible(Protocol):
    """Ends of a credible interval."""

    @property
    def low(self) -> float:
        """Lower end."""
        ...

    @property
    def high(self) -> float:
        """Upper end."""
        ...


class Uncertain(Protocol):
    """Learned estimates with their uncertainty (:class:`crowdtree.learning.Learned`)."""

    def upper_problem(self) -> Problem:
        """Make the problem with every error at its upper credible end."""
        ...

    def credible_interval(self, plan: Plan) -> Credible:
        """Estimate the credible interval of a plan's misclassification."""
        ...


describe_type(Uncertain, "what learn(...) returned", needs=("credible_interval",))


class Bounds(NamedTuple):
    """What the level scores prove, and what the paper prints in their place.

    Attributes
    ----------
    misclassification_upper
        ``H(L_0) / F^m_min`` plus the errors inside groups: a bound.
    additive
        Interval that holds the additive error without group errors: a bound.
    product
        Interval that holds ``prod b``, the multiplicative approximation of P_c: a bound.
    printed_misclassification
        The paper's interval for P_m. Its lower end is no bound.
    printed_correct
        The paper's interval for P_c. Neither end is a bound, and the lower can exceed 1.

    Examples
    --------
    >>> import crowdtree as ct
    >>> value = ct.evaluate(ct.design(ct.example("table1")))
    >>> value.misclassification <= value.bounds.misclassification_upper
    True
    """

    misclassification_upper: float
    additive: Interval
    product: Interval
    printed_misclassification: Interval
    printed_correct: Interval


class _Walked(NamedTuple):
    """Tallies of all classes on every path through the tree, wrong turns included."""

    labelled: FloatArray
    undecided: FloatArray
    visits: FloatArray
    answers: FloatArray
    leaf_share: FloatArray
    leaf_wrong: FloatArray
    leaf_loss: FloatArray


@dataclass(frozen=True, eq=False)
class Evaluation(Framed, Saved, Plotted):
    """Error and cost of a plan. Every number is exact unless its name says otherwise.

    What requires following every class through every node (`confusion`, `precision`,
    `expected_questions`, `expected_answers`) is computed on first use.
    """

    plan: Plan
    uncertainty: Uncertain | None = None

    @cached_property
    def credible(self) -> Credible | None:
        """Credible interval of the misclassification where errors were learned. An estimate."""
        return None if self.uncertainty is None else self.uncertainty.credible_interval(self.plan)

    @property
    def tree(self) -> Tree:
        """The tree of the plan."""
        return self.plan.tree

    @cached_property
    def wrong(self) -> FloatArray:
        """Share of all items that are of each class and get another label.

        ``1 - prod (1 - e)`` is taken through logarithms, so that errors far below the rounding of
        1 keep their digits.
        """
        tree = self.tree
        if tree.problem.loss is not None or not tree.problem.is_yes_no:
            # its own label may await a class at any leaf, a wrong answer may change nothing
            others = self.confusion * (1 - np.eye(len(self.confusion)))
            return np.asarray(tree.problem.prior * others.sum(axis=1))
        wrong = np.zeros(tree.problem.n_classes)
        log_right = wrong
        for step, rows in zip(tree.steps, tree.leaf_rows, strict=True):
            error = np.where(step.answer == DASH, 0.0, self.plan.error_at(step.node, step.cls))
            with np.errstate(divide="ignore"):  # an error of 1: log 0
                log_right = log_right[step.parent] + np.log1p(-error)
            mine = tree.leaf_label[rows.node] == rows.cls
            lost = np.where(mine, -np.expm1(log_right[rows.parent]), 1.0)
            np.add.at(wrong, rows.cls, rows.share * lost)
        return wrong

    @cached_property
    def correct(self) -> FloatArray:
        """Probability that an item of each class gets its own label."""
        return np.maximum(1 - self.wrong / self.tree.problem.prior, 0.0)

    @cached_property
    def misclassification(self) -> float:
        """``sum_i p_i (1 - prod_d (1 - e_{i,d}))`` (eq. 2), group errors included. Exact."""
        return float(self.wrong.sum())

    @cached_property
    def risk(self) -> float:
        """Expected loss per item, wrong turns and experts included. Exact.

        For 0/1 loss the misclassification.
        """
        loss = self.tree.problem.loss
        if loss is None:
            return self.misclassification
        risk = self._walked.leaf_loss
        if loss.refer is not None:
            referred = list(self.plan.handed_over)
            risk = risk.copy()
            risk[referred] = loss.refer * self.leaf_share[referred]
        return float(risk.sum())

    @cached_property
    def undecided(self) -> float:
        """Share of items that are undecided or referred, wrong turns included. Exact."""
        return float(self.leaf_share[list(self.plan.handed_over)].sum())

    @cached_property
    def decided_error(self) -> float:
        """Share of wrong labels among the items that are decided. Exact."""
        if not self.plan.handed_over:
            return self.misclassification
        decided = np.ones(self.tree.n_leaves, dtype=bool)
        decided[list(self.plan.handed_over)] = False
        share = float(self.leaf_share[decided].sum())
        return float(self.leaf_wrong[decided].sum()) / share if share > 0 else 0.0

    @cached_property
    def group_error(self) -> float:
        """Share of items in groups with a likelier class, which are wrong without any mistake."""
        tree = self.tree
        return float(
            sum(rows.share[tree.leaf_label[rows.node] != rows.cls].sum() for rows in tree.leaf_rows)
        )

    @cached_property
    def additive(self) -> float:
        """``sum_d g(d)`` plus the group errors (eq. 3, 4): at least the misclassification.

        For a problem with a loss that holds for the tree's own labels; see :attr:`additive_risk`.
        With several answers it may be an approximation: see :attr:`additive_is_bound`.
        """
        return float(self.plan.node_error.sum()) + self.group_error

    @property
    def additive_is_bound(self) -> bool:
        """Whether the additive error is proven to be at least the misclassification.

        Always for plain yes/no questions. With several answers, for a plurality in which every vote
        names an answer and the right answers of a class are equally common.
        """
        problem = self.tree.problem
        uneven = problem.table is not None and bool((problem.right.sum(axis=0) > 1).any())
        counted = self.plan.rule.is_plurality and problem.unsure is None
        return problem.is_yes_no or (counted and not uneven)

    @cached_property
    def additive_risk(self) -> float:
        """Sum over the nodes of error x largest loss of a wrong branch, plus the loss in groups.

        At least the risk; for 0/1 loss the additive error. What designers and staffing minimise.
        """
        tree, loss = self.tree, self.tree.problem.loss
        if loss is None:
            return self.additive
        total = 0.0
        for step, stakes, rows in zip(tree.steps, tree.stakes, tree.leaf_rows, strict=True):
            total += float((step.share * stakes) @ self.plan.error_at(step.node, step.cls))
            total += float(rows.share @ loss.matrix[rows.cls, tree.leaf_label[rows.node]])
        return total

    @cached_property
    def multiplicative(self) -> float:
        """``prod_d b(d)`` (eq. 7): an approximation of P_c, not a bound either way."""
        return float(np.prod([level.b for level in self.plan.levels[1:] if level.b is not None]))

    @property
    def planned_answers(self) -> float:
        """Expected answers per item on its error-free path. Exact for that path."""
        return self.plan.planned_answers

    @cached_property
    def confusion(self) -> FloatArray:
        """Probability of each label (column) given the class (row), wrong turns included.

        Undecided items count with their best guess; `recall` and `precision` leave them out.
        """
        if not self.plan.handed_over:
            return self._walked.labelled
        return self._walked.labelled + self._walked.undecided

    @cached_property
    def classes(self) -> tuple[ClassRow, ...]:
        """Recall, precision and the worst confusion of each class. Exact.

        >>> import crowdtree as ct
        >>> row = ct.evaluate(ct.design(ct.example("table1"))).classes[3]
        >>> row.name, round(row.recall, 3), round(row.precision, 3), row.confused_with
        ('c4', 0.95, 0.966, 'c1')
        """
        walked = self._walked
        rows = per_class.class_rows(
            self.tree.problem, walked.labelled, walked.undecided.sum(axis=1)
        )
        return tuple(rows)

    def confusions(self, most: int = 12) -> list[Confusion]:
        """List the most common confusions, by share of all items. Exact.

        >>> import crowdtree as ct
        >>> value = ct.evaluate(ct.design(ct.example("table1")))
        >>> [(row.truth, row.label) for row in value.confusions(2)]
        [('c4', 'c1'), ('c4', 'c3')]
        """
        check_call(Evaluation.confusions, {"most": most})
        return per_class.confusions(self.tree.problem, self._walked.labelled, most)

    @property
    def recall(self) -> FloatArray:
        """Of the items of each class, the share that get its label. Exact."""
        return self._walked.labelled.diagonal()

    @cached_property
    def precision(self) -> FloatArray:
        """Of the items with each label, the share that are of its class. Exact.

        NaN for a label that no item gets. Undecided items have no label.
        """
        return np.array([row.precision for row in self.classes])

    @cached_property
    def leaf_precision(self) -> FloatArray:
        """Of the items that end at each leaf, the share that are of its class. Exact."""
        wrong = self.leaf_wrong
        return per_class.precision(self.leaf_share - wrong, wrong)

    @property
    def labelled(self) -> FloatArray:
        """Probability of each label (column) given the class (row), undecided items left out."""
        return self._walked.labelled

    @property
    def expected_questions(self) -> float:
        """Expected number of questions per item, wrong turns included."""
        return float(self.visits.sum())

    @property
    def expected_answers(self) -> float:
        """Expected number of answers per item, wrong turns included."""
        return float(self.answers_by_node.sum())

    @property
    def expected_cost(self) -> float:
        """Expected price of the answers about an item, at the prices of the sources."""
        problem = self.tree.problem
        return float(self.answers_by_node @ checked_price(None, problem)[self.tree.question])

    @property
    def visits(self) -> FloatArray:
        """Share of items that pass each inner node, wrong turns included."""
        return self._walked.visits

    @property
    def answers_by_node(self) -> FloatArray:
        """Expected answers per item at each inner node, wrong turns included."""
        return self._walked.answers

    @property
    def leaf_share(self) -> FloatArray:
        """Share of items that end at each leaf, wrong turns included."""
        return self._walked.leaf_share

    @property
    def leaf_wrong(self) -> FloatArray:
        """Share of items that end at each leaf and are not of its class."""
        return self._walked.leaf_wrong

    @cached_property
    def _walked(self) -> _Walked:
        n, nodes, leaves = self.tree.problem.n_classes, self.tree.n_nodes, self.tree.n_leaves
        sizes = ((n, n), (n, n), nodes, nodes, leaves, leaves, leaves)
        walked = _Walked(*(np.zeros(size) for size in sizes))
        for classes in self._blocks():
            self._walk_block(classes, walked)
        return walked

    def _blocks(self) -> Iterator[NDArray[np.intp]]:
        n = self.tree.problem.n_classes
        rows = max(1, _BLOCK_CELLS // self.tree.n_leaves)
        for start in range(0, n, rows):
            yield np.arange(start, min(start + rows, n))

    def _walk_block(self, classes: NDArray[np.intp], walked: _Walked) -> None:
        """Follow some classes through the whole tree and add to the totals."""
        plan, prior = self.plan, self.tree.problem.prior[classes]
        loss = self.tree.problem.loss
        reach, arrived = plan.flow(classes)
        answers = plan.answers_at(np.arange(len(reach))[:, None], classes[None, :])
        walked.visits[:] += reach @ prior
        walked.answers[:] += (reach * answers) @ prior
        labels = plan.leaf_label
        kept = np.ones(len(labels), dtype=bool)
        kept[list(plan.handed_over)] = False
        for part, into in ((kept, walked.labelled), (~kept, walked.undecided)):
            np.add.at(into.T, (labels[part, None], classes[None, :]), arrived[part])
        walked.leaf_share[:] += arrived @ prior
        other = labels[:, None] != classes[None, :]
        walked.leaf_wrong[:] += (arrived * other) @ prior
        if loss is not None:
            costs = loss.matrix[classes[None, :], labels[:, None]]
            walked.leaf_loss[:] += (arrived * costs) @ prior

    @cached_property
    def bounds(self) -> Bounds:
        """Bounds from the level scores, corrected and as printed, side by side.

        Of the misclassification under 0/1 loss: other labels may be wrong more often. That bound
        holds where the additive error is one (:attr:`additive_is_bound`).
        """
        levels = self.plan.levels
        entropy = levels[0].entropy
        fm = [level.fm for level in levels if level.fm is not None]
        fc = [level.fc for level in levels if level.fc is not None]
        printed = [level.fc_printed for level in levels if level.fc_printed is not None]
        additive = scores.additive_interval(entropy, fm)
        return Bounds(
            misclassification_upper=additive.upper + self.group_error,
            additive=additive,
            product=scores.product_interval(entropy, fc),
            printed_misclassification=additive,
            printed_correct=scores.printed_correct_interval(entropy, printed),
        )

    @property
    def tree_dict(self) -> dict[str, Any]:
        """The tree as nested JSON; with the plan's labels where mistakes have different costs."""
        return self.tree.to_dict() if self.tree.problem.loss is None else nested_plan(self.plan)

    def to_dict(self) -> dict[str, Any]:
        """Everything about the plan as plain JSON: an infinite score is ``None``."""
        plan, tree = self.plan, self.tree
        return {
            "method": tree.method,
            "tree": self.tree_dict,
            "misclassification": self.misclassification,
            "risk": self.risk,
            "undecided": self.undecided,
            "decided_error": self.decided_error,
            "additive": self.additive,
            "multiplicative": self.multiplicative,
            "expected_questions": self.expected_questions,
            "expected_answers": self.expected_answers,
            **({"expected_cost": self.expected_cost} if tree.problem.has_prices else {}),
            "planned_answers": self.planned_answers,
            "classes": [row.to_dict() for row in self.classes],
            "bounds": _finite(self.bounds._asdict()),
            "levels": [_finite(level._asdict()) for level in plan.levels],
            "nodes": [
                {
                    "question": node.question,
                    "classes": list(node.classes),
                    "level": node.level,
                    "share": node.share,
                    "votes": int(plan.votes[node.index]),
                    "error": float(plan.node_error[node.index]) / node.share,
                }
                for node in tree.nodes
            ],
            "staffing": {"method": plan.method, "vote": plan.vote, "workers": plan.workers},
            "votes": plan.votes.tolist(),
            "certificate": None if tree.certificate is None else tree.certificate._asdict(),
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Evaluation):
            return NotImplemented
        return self.plan == other.plan and self.uncertainty is other.uncertainty

    def __hash__(self) -> int:
        return hash(self.plan)

    def __repr__(self) -> str:
        return (
            f"Evaluation(misclassification={self.misclassification:.6g}, "
            f"additive={self.additive:.6g}, planned_answers={self.planned_answers:.4g}"
            f"{'' if self.tree.problem.loss is None else f', risk={self.risk:.6g}'})"
        )


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """Replace numbers that JSON cannot represent."""

    def number(value: Any) -> Any:
        return value if not isinstance(value, float) or np.isfinite(value) else None

    return {
        name: [number(end) for end in value] if isinstance(value, Interval) else number(value)
        for name, value in values.items()
    }


@named_options
def evaluate(tree: Tree | Plan, uncertainty: Uncertain | None = None) -> Evaluation:
    """Compute the exact error and cost of a plan, or of a tree with one worker per question.

    With `uncertainty` (the learned estimates) ``value.credible`` is the credible interval of the
    misclassification, given the uncertainty of the learned errors and the optimism of a plan that
    was designed on them. The other numbers are exact for the table as it stands.

    Examples
    --------
    >>> import crowdtree as ct
    >>> value = ct.evaluate(ct.design(ct.example("table1")))
    >>> round(value.misclassification, 7), round(value.additive, 7)
    (0.0823119, 0.085)
    """
    check_call(evaluate, {"uncertainty": uncertainty})
    return Evaluation(as_plan(tree), uncertainty)
