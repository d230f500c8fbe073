"""Optimal decision trees for an additive cost, with a proof or a proven gap."""

import threading
import time
from typing import Unpack

import numpy as np
import numpy.typing as npt

from . import cache as memo
from ._jit import make_ready
from .bitset import count
from .blocks import BLOCK, build_blocks, fill_blocks
from .bounds import kraft_bound
from .branch import BUDGET, KRAFT, LOWER, NODES, STOP, TOLERANCE, UPPER, search, take_side
from .extract import (
    TreeArrays,
    extract,
    is_solved,
    leaf_order,
    remembered_question,
    tree_value,
)
from .incumbent import descend
from .solution import Floats, Limits, Solution
from .tables import build, scratch

UNLIMITED = np.iinfo(np.int64).max
MEMORY_LIMIT_BYTES = 1 << 30
RELATIVE_TOLERANCE = 1e-12
POLL_SECONDS = 0.02
FIRST_BUDGET = 1000  # sets that a search for a better tree may expand
RATES = (1.0, 0.7, 0.5, 0.35, 1.4)


class Run:
    """One search: its memory, its limits and the best tree so far."""

    def __init__(
        self,
        outcome: npt.NDArray[np.int8],
        cost: Floats,
        weight: Floats,
        keep: Floats,
        limits: Limits,
    ) -> None:
        self.began = limits.get("began", time.monotonic())
        self.problem = (outcome, cost, weight, keep)
        self.limits = limits
        node_limit = limits.get("node_limit")
        self.gap_limit = limits.get("gap_limit", 0.0)
        self.order = np.arange(weight.size)
        self.control = np.array([0, 0, UNLIMITED if node_limit is None else node_limit, 0, 0])
        self.status = np.array([0.0, np.inf, 0.0])
        self.everything = np.zeros(-(-weight.size // 64), np.uint64)
        for index in range(weight.size):
            self.everything[index // 64] |= np.uint64(1) << np.uint64(index % 64)
        self._lay_out()
        self.tree: TreeArrays | None = None
        self.value = np.inf
        self.solved = False
        self.turn = 0
        self.error: BaseException | None = None

    def _lay_out(self) -> None:
        """Tables and caches for the classes in the current order."""
        outcome, cost, weight, keep = self.problem
        limit = self.limits.get("memory_limit_bytes", MEMORY_LIMIT_BYTES)
        self.tables = build(
            outcome[:, self.order], cost[:, :, self.order], weight[self.order], keep, limit
        )
        left = max(0, limit - self.tables.tiny.nbytes)
        self.exact = memo.create(self.everything.size, left * 7 // 8)
        self.upper = memo.create(self.everything.size, left // 8)
        self.work = scratch(self.tables)

    def _reorder(self) -> None:
        """Put the classes in the order of the best tree's leaves and tabulate whole blocks."""
        assert self.tree is not None
        question, variant, children, leaves = self.tree
        order = leaf_order(children, leaves)
        place = np.argsort(order)
        self.order = self.order[order]
        self.tree = question, variant, children, [np.sort(place[leaf]) for leaf in leaves]
        self._lay_out()
        self.tables = self.tables._replace(
            blocks=build_blocks(self.tables, self.work.local, self.control)
        )

    @property
    def stopped(self) -> bool:
        """Whether a limit or the caller has stopped the search."""
        return bool(self.control[STOP])

    def _keep_tree(self, exact: bool) -> None:
        """Read the tree that the caches describe and keep it if it is better."""
        tree = extract(self, exact)
        if tree is None:
            return
        value = tree_value(tree, self.tables)
        if value < self.value:
            self.tree, self.value = tree, value
            self.status[UPPER] = value

    def improve(self, rate: float, width: int) -> float:
        """Look for a better tree among the promising questions."""
        self.turn += 1
        self.work.sets[0] = self.everything
        nodes = int(self.control[NODES])
        self.control[BUDGET] = nodes + max(FIRST_BUDGET, nodes // 50)
        value = descend(
            0, rate, width, self.turn, self.tables, self.exact, self.upper, self.work, self.control
        )
        self.improved_at = int(self.control[NODES])
        self.exhausted = self.improved_at >= self.control[BUDGET]
        return value

    def make_ready(self) -> None:
        """Compile every kernel that is called from here, so that no limit pays for it."""
        tables, exact, upper, work = self.tables, self.exact, self.upper, self.work
        sets, halves = work.sets, np.zeros((2, 1, 1, 1))
        make_ready(count, sets, 0)
        make_ready(take_side, sets, 0, 0, 0, tables.one, work.sides, 0)
        make_ready(descend, 0, 1.0, 1, 1, tables, exact, upper, work, self.control)
        make_ready(kraft_bound, sets, 0, tables, work)
        make_ready(
            fill_blocks, tables, tables.blocks, halves[0], halves[1], work.local, self.control
        )
        make_ready(search, 0, 1.0, tables, exact, work, self.control, self.status)
        make_ready(is_solved, sets, exact)
        make_ready(remembered_question, sets, tables, exact, upper, work)

    def start(self) -> None:
        """First trees: greedy at several rates, then wider at the best rate."""
        costs = self.tables.cost.min(axis=0).sum(axis=0) / self.tables.weight.sum()
        self.rate = base = float(costs.min())
        best = np.inf
        for factor in RATES:
            value = self.improve(base * factor, 1)
            if value < best * (1 - 1e-9):
                best, self.rate = value, base * factor
        self.width = 2
        self.improve(self.rate, self.width)
        self._keep_tree(exact=False)
        self.status[TOLERANCE] = RELATIVE_TOLERANCE * self.value

    def prove(self) -> None:
        """Raise the lower bound step by step until it meets the best tree."""
        self.work.sets[0] = self.everything
        kraft = kraft_bound(self.work.sets, 0, self.tables, self.work)
        self.control[KRAFT] = int(kraft > 0.7 * self.value)
        lower = self.status[LOWER] = kraft
        if not self.control[KRAFT] and self.tables.weight.size > BLOCK and not self.stopped:
            self._reorder()
        limit = kraft * (1 + 1e-9)
        while not self.stopped:
            if self.value - lower <= max(self.gap_limit * self.value, self.status[TOLERANCE]):
                break
            self.work.sets[0] = self.everything
            found, exact = search(
                0, limit, self.tables, self.exact, self.work, self.control, self.status
            )
            lower = self.status[LOWER] = max(self.status[LOWER], min(found, self.value))
            if exact:
                self._keep_tree(exact=False)
                if self.value > found * (1 + 1e-9):  # parts of it were evicted
                    self._keep_tree(exact=True)
                self.solved = self.value <= found * (1 + 1e-9)
                break
            gap = self.value - lower
            if gap > 0.01 * self.value and self.control[NODES] > 4 * self.improved_at:
                if not self.exhausted:
                    self.width *= 2
                self.improve(self.rate, self.width)
                self._keep_tree(exact=False)
                gap = self.value - lower
            limit = lower + 0.4 * gap
            if gap < 0.01 * self.value:
                limit = self.value
        if self.stopped and self.status[UPPER] < self.value:
            self._keep_tree(exact=False)

    def run(self) -> None:
        """Find good trees, then prove."""
        try:
            self.start()
            self.prove()
        except BaseException as error:  # handed to the caller's thread
            self.error = error


def watch(run: Run) -> str:
    """Run in a thread; stop it at the time limit or on Ctrl-C. Returns why it was stopped."""
    time_limit, progress = run.limits.get("time_limit"), run.limits.get("progress")
    worker = threading.Thread(target=run.run, daemon=True)
    deadline = np.inf if time_limit is None else run.began + time_limit
    reason = ""
    worker.start()
    next_report = time.monotonic() + 1.0
    while worker.is_alive():
        try:
            worker.join(min(POLL_SECONDS, max(0.0, deadline - time.monotonic()) + 1e-4))
            now = time.monotonic()
            if now >= deadline and not reason:
                reason = "time limit"
                run.control[STOP] = 1
            if progress is not None and now >= next_report:
                next_report = now + 1.0
                progress(run.value, float(run.status[LOWER]), int(run.control[NODES]))
        except KeyboardInterrupt:
            reason = "interrupted"
            run.control[STOP] = 1
    return reason


def solve(run: Run, constant: float = 0.0) -> Solution:
    """Search and collect the result; `constant` is part of the cost of every tree."""
    compiling = time.monotonic()
    run.make_ready()
    run.began += time.monotonic() - compiling
    reason = watch(run)
    if run.error is not None:
        raise run.error
    assert run.tree is not None
    value = run.value
    lower = min(float(run.status[LOWER]), value)
    if run.solved or value - lower <= run.status[TOLERANCE]:
        status, lower = "optimal", value
    elif run.stopped:
        status = reason or "node limit"
    else:
        status = "gap limit"
    question, variant, children, leaves = run.tree
    leaves = [np.sort(run.order[leaf]) for leaf in leaves]
    return Solution(
        question=question,
        variant=variant,
        children=children,
        leaves=leaves,
        value=value + constant,
        lower_bound=lower + constant,
        status=status,
        nodes=int(run.control[NODES]),
        forgotten=int(run.exact.state[memo.FORGOTTEN]),
    )


def solve_additive(
    outcome: npt.NDArray[np.int8], cost: Floats, weight: Floats, **limits: Unpack[Limits]
) -> Solution:
    r"""Find the tree of least additive cost.

    .. math:: V(S) = \min_q \Big[ \min_v \sum_{i \in S} w_i\, c_{v,q,i} + V(S_0) + V(S_1) \Big]

    `outcome` (question, class) is 0, 1, or -1 where a question does not apply; `cost` is
    ([variant,] question, class), not negative.

    >>> outcome = np.array([[0, 0, 1], [0, 1, 1]], dtype=np.int8)
    >>> solution = solve_additive(outcome, np.full((2, 3), 0.1), np.array([0.5, 0.25, 0.25]))
    >>> round(solution.value, 12), solution.status, solution.question.tolist()
    (0.15, 'optimal', [1, 0])
    """
    outcome = np.ascontiguousarray(outcome, dtype=np.int8)
    cost = np.asarray(cost, dtype=np.float64)
    if cost.ndim == 2:
        cost = cost[np.newaxis]
    weight = np.asarray(weight, dtype=np.float64)
    return solve(Run(outcome, cost, weight, np.ones(outcome.shape[0]), limits))
