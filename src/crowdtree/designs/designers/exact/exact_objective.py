"""Decision trees of least misclassification, with a proof or a proven gap."""

from typing import Unpack

import numpy as np
import numpy.typing as npt

from . import cache as memo_module
from ._jit import make_ready
from .blocks import build_blocks
from .branch import TOLERANCE
from .dive import Path, dive
from .extract import Ints, TreeArrays
from .groups import class_free, label_weights
from .search import MEMORY_LIMIT_BYTES, RELATIVE_TOLERANCE, Run, solve
from .solution import Floats, Limits, Solution


def tree_loss(
    tree: TreeArrays, outcome: npt.NDArray[np.int8], error: Floats, weight: Floats
) -> float:
    """Sum over the classes of weight times the probability of a wrong answer on the path."""
    question, _, children, _ = tree
    total = 0.0
    for member in range(weight.size):
        node = 0 if question.size else -1
        right = 1.0
        while node >= 0:
            asked = question[node]
            right *= 1.0 - error[asked, member]
            node = int(children[node, outcome[asked, member]])
        total += float(weight[member]) * (1.0 - right)
    return total


class _Dive(Run):
    """The exact objective: the relaxed problem bounds it, the dive solves it.

    The relaxed problem lets a question cost all classes below its largest error, so that it
    decomposes over class sets like the additive one.
    """

    def __init__(
        self,
        outcome: npt.NDArray[np.int8],
        error: Floats,
        weight: Floats,
        limits: Limits,
    ) -> None:
        worst = np.where(outcome >= 0, error, 0.0).max(axis=1)
        half = limits.get("memory_limit_bytes", MEMORY_LIMIT_BYTES) // 2
        limits = {**limits, "memory_limit_bytes": half}
        super().__init__(outcome, error[np.newaxis], weight, 1.0 - worst, limits)
        self.outcome, self.error_table, self.weight = outcome, error, weight
        questions, classes = outcome.shape
        words = self.tables.one.shape[1]
        width = words + -(-questions // 64)
        self.memo = memo_module.create(width, half)
        depth = classes + 1
        self.path = Path(
            survival=np.ones((depth, classes)),
            error=np.ascontiguousarray(np.where(outcome >= 0, error, 0.0).T),
            state=np.zeros((depth, width), np.uint64),
            sets=np.zeros((depth, words), np.uint64),
            cost=np.zeros((depth, questions)),
            estimate=np.zeros((depth, questions)),
            members=np.zeros((depth, classes), np.int64),
        )
        self.best_tree: TreeArrays | None = None
        self.best_loss = np.inf
        self.proven = 0.0

    def make_ready(self) -> None:
        """Compile the kernels of the dive, too."""
        super().make_ready()
        state, memo = self.path.state, self.memo
        make_ready(memo_module.find, state, 0, memo.words, memo.state)
        make_ready(memo_module.question_at, 0, memo.words)
        make_ready(
            dive, 0, 1.0, self.tables, self.exact, memo, self.work, self.path, self.control,
            self.status,
        )  # fmt: skip

    def _reorder(self) -> None:
        """Keep the order of the classes: the dive's rows are laid out by it."""
        self.tables = self.tables._replace(
            blocks=build_blocks(self.tables, self.work.local, self.control)
        )

    def _offer(self, tree: TreeArrays) -> None:
        loss = tree_loss(tree, self.outcome, self.error_table, self.weight)
        if loss < self.best_loss:
            self.best_tree, self.best_loss = tree, loss

    def _dive(self, limit: float) -> tuple[float, bool]:
        return dive(
            0, limit, self.tables, self.exact, self.memo, self.work, self.path, self.control,
            self.status,
        )  # fmt: skip

    def _load(self, state: npt.NDArray[np.uint64], survival: Floats) -> None:
        words = self.path.sets.shape[1]
        self.path.state[0] = state
        self.path.sets[0] = state[:words]
        self.path.survival[0] = survival

    def _first_state(self) -> npt.NDArray[np.uint64]:
        state = np.zeros(self.path.state.shape[1], np.uint64)
        state[: self.everything.size] = self.everything
        return state

    def _read_tree(self) -> TreeArrays:
        """Read the solved tree breadth first, solving evicted states again."""
        words = self.path.sets.shape[1]
        question: list[int] = []
        children: list[list[int]] = []
        leaves: list[Ints] = []
        first = (self._first_state(), np.ones(self.weight.size), -1, 0)
        waiting = [first]
        for state, survival, parent, answer in waiting:
            self._load(state, survival)
            members = np.flatnonzero(
                np.unpackbits(state[:words].astype("<u8").view(np.uint8), bitorder="little")
            ).astype(np.int64)
            part = self.outcome[:, members]
            splitting = (part >= 0).all(axis=1) & (part != part[:, :1]).any(axis=1)
            if parent >= 0:
                children[parent][answer] = len(question) if splitting.any() else ~len(leaves)
            if not splitting.any():
                leaves.append(members)
                continue
            self._dive(np.inf)
            slot = memo_module.find(self.path.state, 0, self.memo.words, self.memo.state)
            chosen = memo_module.question_at(slot, self.memo.words) if slot >= 0 else -1
            if chosen < 0:  # stopped before it was solved again
                chosen = int(np.argmax(splitting))
            for value in range(2):
                side = state.copy()
                side[:words] &= self.tables.one[chosen] if value else ~self.tables.one[chosen]
                side[words + chosen // 64] |= np.uint64(1) << np.uint64(chosen % 64)
                chance = survival * (1.0 - self.path.error[:, chosen])
                waiting.append((side, chance, len(question), value))
            question.append(int(chosen))
            children.append([0, 0])
        return (
            np.array(question, np.int64),
            np.zeros(len(question), np.int64),
            np.array(children, np.int64).reshape(-1, 2),
            leaves,
        )

    def prove(self) -> None:
        """First the relaxed problem, whose bound holds here too; then the dive."""
        assert self.tree is not None
        self._offer(self.tree)
        gap_limit, self.gap_limit = self.gap_limit, max(self.gap_limit, 0.02)
        super().prove()
        self.gap_limit = gap_limit
        self._offer(self.tree)
        self.proven = min(float(self.status[0]), self.best_loss)
        self.status[TOLERANCE] = RELATIVE_TOLERANCE * self.best_loss
        limit = self.proven + 0.3 * (self.best_loss - self.proven)
        self.solved = False
        while not self.stopped:
            gap = self.best_loss - self.proven
            if gap <= max(self.gap_limit * self.best_loss, self.status[TOLERANCE]):
                break
            self._load(self._first_state(), np.ones(self.weight.size))
            found, exact = self._dive(limit)
            self.proven = max(self.proven, min(found, self.best_loss))
            self.status[0] = self.proven
            if exact:
                self._offer(self._read_tree())
                self.solved = not self.stopped
                break
            gap = self.best_loss - self.proven
            limit = self.best_loss if gap < 0.02 * self.best_loss else self.proven + 0.5 * gap
        self.tree, self.value = self.best_tree, self.best_loss


def solve_exact(
    outcome: npt.NDArray[np.int8], error: Floats, weight: Floats, **limits: Unpack[Limits]
) -> Solution:
    r"""Find the tree of least misclassification.

    .. math:: \sum_i w_i \Big(1 - \prod_{q \text{ on the path of } i} (1 - e_{q,i})\Big)

    Of classes that no question separates, the heaviest is the label and the others are always
    wrong, which is part of the value. `outcome` (question, class) is 0, 1, or -1 where a question
    does not apply; `error` is the chance of a wrong verdict, `weight` that of each class. If no
    error depends on the class, the problem is an additive one with discounts; otherwise weights
    depend on the path.

    >>> outcome = np.array([[0, 0, 1], [0, 1, 1]], dtype=np.int8)
    >>> solution = solve_exact(outcome, np.full((2, 3), 0.1), np.array([0.5, 0.25, 0.25]))
    >>> round(solution.value, 12), solution.status
    (0.145, 'optimal')
    """
    outcome = np.ascontiguousarray(outcome, dtype=np.int8)
    error = np.asarray(error, dtype=np.float64)
    labelled, always_wrong = label_weights(outcome, np.asarray(weight, dtype=np.float64))
    run: Run
    if class_free(outcome, error):
        keep = 1.0 - np.where(outcome >= 0, error, 0.0).max(axis=1)
        run = Run(outcome, error[np.newaxis], labelled, keep, limits)
    else:
        run = _Dive(outcome, error, labelled, limits)
    return solve(run, constant=always_wrong)
