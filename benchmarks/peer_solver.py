"""Runs one solver on one table, in that solver's own environment.

Needs nothing but the standard library, numpy and the solver: ``python peer_solver.py NAME`` reads
the task as JSON from standard input and writes the outcome as the last line of standard output.
A tree is ``[question, no, yes]``, a leaf the number of its class.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

# For an item in a leaf of another class. If no item is in the optimal tree, that tree is optimal
# among those that separate all classes too; the report shows the share of such items.
PENALTY = 100.0
ENOUGH_SECONDS, MOST_RUNS = 2.0, 15
Task = dict[str, Any]
Outcome = dict[str, Any]


def timed(work: Callable[[], Any]) -> tuple[Any, Outcome]:
    """Run; repeat short runs and take the medians of the clock and of the processor's seconds."""
    clock: list[float] = []
    processor: list[float] = []
    while True:
        started = time.perf_counter(), time.process_time()
        result = work()
        clock.append(time.perf_counter() - started[0])
        processor.append(time.process_time() - started[1])
        if len(clock) >= MOST_RUNS or sum(clock) >= ENOUGH_SECONDS:
            medians = statistics.median(clock), statistics.median(processor)
            return result, {"seconds": medians[0], "cpu_seconds": medians[1], "runs": len(clock)}


def repeated_rows(task: Task) -> tuple[np.ndarray, np.ndarray]:
    """One row per part of the prior, for solvers that take no weights."""
    counts = task["counts"]
    table = np.array(task["outcome"]).T
    return np.repeat(table, counts, axis=0), np.repeat(np.arange(len(counts)), counts)


def solve_pystreed(task: Task) -> Outcome:
    from pystreed import STreeDCostSensitiveClassifier
    from pystreed.data import CostSpecifier, FeatureCostSpecifier

    rows, labels = repeated_rows(task)
    classes = len(task["counts"])
    wrong = (PENALTY * (1 - np.eye(classes))).tolist()
    # A question's cost is the same however often its group was asked before: no discounts.
    costs = [FeatureCostSpecifier(e, e, f"q{q}", q, q) for q, e in enumerate(task["cost"])]

    def fit() -> Any:
        solver = STreeDCostSensitiveClassifier(
            max_depth=task["depth"], time_limit=task["time_limit"]
        )
        if task["variant"] == "dataset cache":
            # Its cost-sensitive class leaves this cache off; without discounts it is sound.
            solver.use_branch_caching = False
            solver.use_dataset_caching = True
            solver.use_similarity_lower_bound = True
        return solver.fit(rows, labels, CostSpecifier(wrong, costs))

    def nested(node: Any) -> Any:
        if node.is_leaf_node():
            return int(node.label)
        return [int(node.feature), nested(node.left_child), nested(node.right_child)]

    solver, seconds = timed(fit)
    if not solver.is_fitted():
        return {"status": "no tree found", "tree": None, **seconds}
    status = "optimal" if solver.fit_result.is_optimal() else "time limit"
    return {"status": status, "tree": nested(solver.tree_), **seconds}


def solve_pydl85(task: Task) -> Outcome:
    from pydl85 import DL85Classifier

    table = np.array(task["outcome"]).T
    counts = np.array(task["counts"])

    def fit() -> Any:
        solver = DL85Classifier(max_depth=task["depth"], time_limit=int(task["time_limit"]))
        return solver.fit(table, np.arange(len(counts)), (counts / counts.sum()).tolist())

    def nested(node: dict[str, Any]) -> Any:
        if "feat" not in node:
            return int(node["value"])
        return [int(node["feat"]), nested(node["right"]), nested(node["left"])]

    solver, seconds = timed(fit)
    tree = None if solver.tree_ is None else nested(solver.tree_)
    status = "time limit" if solver.timeout_ else "optimal"
    return {"status": status, "tree": tree, **seconds}


def solve_gosdt(task: Task) -> Outcome:
    from gosdt import GOSDTClassifier

    table = np.array(task["outcome"], dtype=bool).T
    prior = np.array(task["counts"]) / sum(task["counts"])
    wrong = np.tile(prior, (len(prior), 1))
    np.fill_diagonal(wrong, 0)

    def fit() -> Any:
        solver = GOSDTClassifier(
            regularization=float(prior.min()) / 2,  # a leaf of its own pays for every class
            allow_small_reg=True,
            depth_budget=task["depth"],
            time_limit=int(task["time_limit"]),
        )
        return solver.fit(table, np.arange(len(prior)), cost_matrix=wrong)

    def nested(node: dict[str, Any]) -> Any:
        if "feature" not in node:
            return int(node["prediction"])
        return [int(node["feature"]), nested(node["false"]), nested(node["true"])]

    solver, seconds = timed(fit)
    models = json.loads(solver.result_.model)
    status = {"CONVERGED": "optimal", "TIMEOUT": "time limit"}.get(
        solver.result_.status.name, solver.result_.status.name
    )
    return {"status": status, "tree": nested(models[0]) if models else None, **seconds}


def solve_pycontree(task: Task) -> Outcome:
    from pycontree import ConTree

    rows, labels = repeated_rows(task)

    def fit() -> Any:
        solver = ConTree(max_depth=task["depth"], time_limit=task["time_limit"])
        return solver.fit(rows.astype(float), labels)

    def nested(node: Any) -> Any:
        if node.is_leaf_node():
            return int(node.get_label())
        left, right = nested(node.get_left()), nested(node.get_right())
        return [int(node.get_split_feature()), left, right]

    solver, seconds = timed(fit)
    status = "optimal" if solver._config.is_within_time_limit() else "time limit"
    return {"status": status, "tree": nested(solver.tree_), **seconds}


def solve_crowdtree(task: Task) -> Outcome:
    import crowdtree as ct

    names = [f"c{c}" for c in range(len(task["counts"]))]
    questions = [f"q{q}" for q in range(len(task["outcome"]))]
    counts = np.array(task["counts"])
    prior, error = counts / counts.sum(), task["worker_error"]
    problem = ct.Problem(names, prior, questions, np.array(task["outcome"]), error)
    few = problem.replace(
        classes=names[:6], prior=None, outcome=problem.outcome[:, :6], worker_error=0.1
    )
    ct.design(few, "optimal", allow_groups=True)  # compiles, or loads what was compiled
    limits = {"time_limit": task["time_limit"], "memory_limit": min(2e9, task["memory_limit"] / 4)}
    tree, seconds = timed(lambda: ct.design(problem, "optimal", **limits))

    def nested(node: dict[str, Any]) -> Any:
        if "label" in node:
            return names.index(node["label"])
        return [questions.index(node["question"]), nested(node["no"]), nested(node["yes"])]

    claim = ct.verify(tree)
    found = {"status": claim.status, "tree": nested(tree.to_dict()), **seconds}
    return found | {"value": claim.value, "gap": claim.gap, "depth": tree.depth}


SOLVERS = {
    "crowdtree": solve_crowdtree,
    "pystreed": solve_pystreed,
    "pydl8.5": solve_pydl85,
    "gosdt": solve_gosdt,
    "pycontree": solve_pycontree,
}


def main() -> None:
    task = json.load(sys.stdin)
    most = int(task["memory_limit"])
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    try:
        found = SOLVERS[sys.argv[1]](task)
    except MemoryError:
        found = {"status": "out of memory", "tree": None, "seconds": None, "cpu_seconds": None}
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
