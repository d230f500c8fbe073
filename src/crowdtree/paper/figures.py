"""The data of Fig. 1 to 4, computed exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.evaluation import evaluate
from crowdtree.core.tree import Tree
from crowdtree.designs.designers import design
from crowdtree.designs.staffing import random_means, single_mean, staff
from crowdtree.paper.printed import FIG_1A, FIG_1B, order_trees, table_1, with_error

Rows = list[dict[str, Any]]
FIG_3_ERRORS = [step / 100 for step in range(51)]
FIG_4_PAIRS = range(31)


def fig_1_tree(which: str, worker_error: float = 0.05) -> Tree:
    """The tree of Fig. 1 (a) or (b)."""
    return Tree.from_dict(
        table_1(worker_error), FIG_1A if which == "a" else FIG_1B, f"Fig. 1({which})"
    )


def fig_1() -> Rows:
    """Both trees: exact error, its approximations, and the cost."""
    rows = []
    for which in "ab":
        value = evaluate(fig_1_tree(which))
        rows.append(
            {
                "tree": f"Fig. 1({which})",
                "misclassification": value.misclassification,
                "additive": value.additive,
                "multiplicative": value.multiplicative,
                "expected_questions": value.expected_questions,
                "planned_answers": value.planned_answers,
            }
        )
    return rows


def fig_2() -> Rows:
    """Levels of Fig. 1(a): partition, entropy and scores."""
    return [
        {
            "level": level.depth,
            "partition": " ".join("{" + ",".join(part) + "}" for part in level.partition),
            "entropy": level.entropy,
            "g": level.g,
            "b": level.b,
            "fm": level.fm,
            "fc": level.fc,
            "fc_printed": level.fc_printed,
        }
        for level in fig_1_tree("a").levels
    ]


def fig_3() -> Rows:
    """Misclassification of the F^m tree, and of all orders of the questions, over p*.

    The mean is exact: every one of the 120 orders is evaluated.
    """
    problem = table_1()
    orders = order_trees(problem)
    weight = np.array([count for _, count in orders], dtype=np.float64)
    questions = np.array([_questions_per_class(tree) for tree, _ in orders])
    rows = []
    for error in FIG_3_ERRORS:
        # the design does not depend on p* > 0 and misclassifies nothing at 0
        chosen = design(table_1(min(max(error, 0.01), 0.49)))
        # eq. 2: all errors are p*, so the number of questions decides
        wrong = -np.expm1(questions * np.log1p(-error)) @ problem.prior
        rows.append(
            {
                "worker_error": error,
                "proposed": _wrong(with_error(chosen, error)),
                "random_mean": float(weight @ wrong / weight.sum()),
                "random_best": float(wrong.min()),
                "random_worst": float(wrong.max()),
                "random_spread": float(
                    np.sqrt(np.maximum(np.cov(wrong, fweights=weight.astype(int), ddof=0), 0.0))
                ),
            }
        )
    return rows


def _questions_per_class(tree: Tree) -> NDArray[np.int64]:
    """Questions that an item of each class is asked where nobody errs."""
    classes = np.concatenate([step.cls for step in tree.steps])
    return np.bincount(classes, minlength=tree.problem.n_classes)


def fig_4() -> Rows:
    """Misclassification of Fig. 1(b) with 2K extra workers who err with 0.2, by method."""
    tree = fig_1_tree("b", 0.2)
    random = random_means(tree, 2 * FIG_4_PAIRS[-1])
    rows = []
    for pairs in FIG_4_PAIRS:
        extra = 2 * pairs
        row: dict[str, Any] = {
            "K": pairs,
            "extra_workers": extra,
            "single": single_mean(tree, extra),
            "random": float(random[extra]),
        }
        for method in ("paper-fm", "everyone", "marginal"):
            row[method] = evaluate(staff(tree, extra, method)).misclassification
        rows.append(row)
    return rows


def _wrong(tree: Tree) -> float:
    return evaluate(tree).misclassification
