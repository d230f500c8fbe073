"""Passes over answers with one question: sums over millions of them without a compiler.

Who gave which label to which item is a sparse matrix; the sums of expectation maximisation are its
products with dense ones, which SciPy computes about as fast as any loop.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import BoolArray, FloatArray

BLOCK = 1 << 18
"""Cells (item, state) that are computed together: they fit into the processor's cache."""
IntArray = NDArray[np.int32]


class _Block:
    """Items that are computed together, and their answers as sparse matrices."""

    def __init__(self, votes: Votes, first: int, size: int) -> None:
        self.items = slice(first, first + size)
        start = votes.start[first : first + size + 1]
        self._votes, self._start, self._mine = votes, start - start[0], slice(start[0], start[-1])

    def _matrix(self, column: IntArray, columns: int) -> Any:
        from scipy.sparse import csr_array

        ones = np.ones(int(self._start[-1]))
        return csr_array((ones, column, self._start), shape=(len(self._start) - 1, columns))

    @cached_property
    def cells(self) -> tuple[Any, Any]:
        """Answers (item, label of a worker), and transposed."""
        votes, mine = self._votes, self._mine
        column = votes.worker[mine] * np.int32(votes.labels) + votes.label[mine]
        matrix = self._matrix(column, votes.workers * votes.labels)
        return matrix, matrix.T


def counting_sort(key: IntArray, count: int) -> tuple[NDArray[np.int64], IntArray]:
    """Stable order by key, and where each key starts; keys are 0 to `count` - 1.

    >>> start, order = counting_sort(np.array([1, 0, 1], np.int32), 3)
    >>> start.tolist(), order.tolist()
    ([0, 1, 3, 3], [1, 0, 2])
    """
    from scipy.sparse import csc_array

    place = np.arange(len(key), dtype=np.int32)
    column = csc_array((place, key, np.array([0, len(key)], np.int32)), shape=(count, 1))
    rows = column.tocsr()  # the conversion is a counting sort
    return rows.indptr.astype(np.int64), rows.data


def find_repeats(
    start: NDArray[np.int64], worker: IntArray, question: IntArray, keep_last: bool
) -> tuple[BoolArray, int, int]:
    """Mark the answers to keep; count those given twice, and the first of them (-1: none)."""
    keep = np.ones(len(worker), dtype=bool)
    if not len(worker):
        return keep, 0, -1
    item = np.repeat(np.arange(len(start) - 1), np.diff(start))
    people, questions = int(worker.max()) + 1, int(question.max()) + 1
    if len(start) * people * questions < 2**62:
        key = (item * questions + question) * people + worker
        order = np.argsort(key, kind="stable")
        same = key[order[1:]] == key[order[:-1]]
    else:
        order = np.lexsort((worker, question, item))
        same = np.ones(len(order) - 1, dtype=bool)
        for column in (item, question, worker):
            same &= column[order[1:]] == column[order[:-1]]
    again = order[1:][same]
    keep[order[:-1][same] if keep_last else again] = False
    return keep, len(again), int(again[0]) if len(again) else -1


def with_gold(posterior: FloatArray, gold: IntArray) -> FloatArray:
    """Fill in the classes that are known (-1: unknown), in place."""
    known = np.flatnonzero(gold >= 0)
    posterior[known] = 0.0
    posterior[known, gold[known]] = 1.0
    return posterior


class Votes:
    """The labels that workers gave to items: `worker` and `label` of each answer, sorted by item.

    `start` says where the answers of each item begin, and the number of answers. Labels from
    `classes` on are no classes: they say "can't tell". `times` is how many items each one stands
    for: those with the same answers of the same people.
    """

    def __init__(
        self,
        start: NDArray[np.int64],
        worker: IntArray,
        label: NDArray[np.int8],
        workers: int,
        labels: int,
        classes: int | None = None,
        times: FloatArray | None = None,
    ) -> None:
        self.start, self.worker, self.label = start, worker, label
        self.workers, self.labels, self.classes = workers, labels, classes or labels
        self._times = times
        self._made: tuple[int, list[_Block]] | None = None

    def _blocks(self, states: int) -> list[_Block]:
        """The items, as many at a time as fit into the cache."""
        # one more table of all workers per block must not outweigh the items
        cells = max(BLOCK, self.workers * states)
        size = max(1, cells // states)
        if self._made is None or self._made[0] != size:
            firsts = range(0, len(self.start) - 1, size)
            self._made = size, [_Block(self, first, size) for first in firsts]
        return self._made[1]

    @property
    def answers(self) -> float:
        """Number of answers."""
        votes = np.diff(self.start)[:, None]
        return float(self._weighed(votes, slice(None)).sum())

    def mean(self, posterior: FloatArray) -> FloatArray:
        """Class shares by probabilities (item, class)."""
        items = max(len(posterior), 1)
        each = np.full(items, 1 / items) if self._times is None else self._times / self._times.sum()
        return np.asarray(each @ posterior)

    def _weighed(self, values: NDArray[Any], items: slice) -> NDArray[Any]:
        """Values of some items (rows), times how many each one stands for."""
        return values if self._times is None else values * self._times[items, None]

    def shares(self) -> FloatArray:
        """Share of each class among the answers of each item, (item, class)."""
        items = len(self.start) - 1
        item = np.repeat(np.arange(items), np.diff(self.start))
        cells = np.bincount(item * self.labels + self.label, minlength=items * self.labels)
        given = cells.reshape(items, self.labels)[:, : self.classes]
        votes = given.sum(axis=1, keepdims=True)
        return np.where(votes > 0, given / np.maximum(votes, 1), 1.0 / self.classes)

    def counts(self, posterior: FloatArray) -> FloatArray:
        """Expected answers (worker, label, class) for given probabilities (item, class)."""
        made = np.zeros((self.workers * self.labels, posterior.shape[1]))
        for block in self._blocks(posterior.shape[1]):
            made += block.cells[1] @ self._weighed(posterior[block.items], block.items)
        return made.reshape(self.workers, self.labels, -1)

    def expect(
        self,
        table: FloatArray,
        log_prior: FloatArray,
        gold: IntArray,
        posterior: FloatArray,
        counts: FloatArray,
    ) -> tuple[float, FloatArray]:
        """Fill the posterior (item, class) and expected answers (worker, label, state): an E-step.

        `table` has the log probabilities of answers (worker, label, state), `log_prior` that of the
        states, where those of one class are neighbours; `gold` is the known class of each item, or
        -1. Returns the log likelihood, and the expected number of items in each state.
        """
        states, classes = len(log_prior), posterior.shape[1]
        counts[:] = 0.0
        total, mass = 0.0, np.zeros(states)
        flat = table.reshape(-1, states)
        for block in self._blocks(states):
            items, (cells, transposed) = block.items, block.cells
            score = cells @ flat
            score += log_prior
            known = np.flatnonzero(gold[items] >= 0)
            if len(known):
                other = np.arange(states) // (states // classes) != gold[items][known, None]
                score[known] = np.where(other, -np.inf, score[known])
            top = score.max(axis=1, keepdims=True)
            score -= top
            np.exp(score, out=score)
            whole = score.sum(axis=1, keepdims=True)
            score /= whole
            posterior[items] = score.reshape(len(score), classes, -1).sum(axis=2)
            score = self._weighed(score, items)
            counts += (transposed @ score).reshape(counts.shape)
            mass += score.sum(axis=0)
            top, rest = (self._weighed(part, items) for part in (top, np.log(whole)))
            total += float(top.sum() + rest.sum())
        return total, mass
