"""Passes over answers with one question: sums over millions of them without a compiler.

Who gave which label to which item is a sparse matrix; the sums of expectation maximisation are its
products with dense ones, which SciPy computes about as fast as any loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["AnswerTable", "Votes", "counting_sort", "find_repeats"]

BLOCK = 1 << 18
"""Cells (item, state) that are computed together: they fit into the processor's cache."""
IntArray = NDArray[np.int32]
FloatArray = NDArray[np.float64]


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
        made = self._matrix(column, votes.workers * votes.labels)
        return made, made.T

    @cached_property
    def people(self) -> tuple[Any, Any]:
        """Answers (item, worker), and transposed."""
        made = self._matrix(self._votes.worker[self._mine], self._votes.workers)
        return made, made.T

    @cached_property
    def labels(self) -> FloatArray:
        """Answers (label, item)."""
        made = self._matrix(self._votes.label[self._mine].astype(np.int32), self._votes.labels)
        return np.ascontiguousarray(made.toarray().T)


@dataclass(frozen=True, eq=False)
class AnswerTable:
    """Probabilities of answers in each state: a class, or a class and a tilt of the item.

    Log P(label | worker, class, tilt) is ``plain + tilt - scale``. It is never laid out: with many
    labels there are far more cells than numbers in its terms.

    Parameters
    ----------
    plain
        Logarithms without a tilt, (worker, label, class).
    tilt
        What is added to each label, (tilt, label); None: there are no tilts.
    scale
        Logarithm of the total after a tilt is added, (worker, class, tilt).
    """

    plain: FloatArray
    tilt: FloatArray | None = None
    scale: FloatArray | None = None

    @classmethod
    def of(cls, logits: FloatArray, tilt: FloatArray) -> AnswerTable:
        """From logits (worker, class, label) and tilts (tilt, label)."""
        top = logits.max(axis=2, keepdims=True)
        share = np.exp(logits - top)
        whole = share.sum(axis=2, keepdims=True)
        plain = np.ascontiguousarray((logits - top - np.log(whole)).transpose(0, 2, 1))
        if not tilt.any():
            return cls(plain)
        return cls(plain, tilt, np.log((share / whole) @ np.exp(tilt.T)))

    def row(self, worker: int, label: int) -> FloatArray:
        """Log P(label | worker, state), one number per state."""
        row: FloatArray = self.plain[worker, label]
        if self.tilt is None or self.scale is None:
            return row
        return np.asarray((row[:, None] + self.tilt[:, label] - self.scale[worker]).ravel())

    def expected(self, asked: FloatArray) -> FloatArray:
        """Expected answers (worker, class, label) where `asked` were given in each state."""
        share = np.exp(self.plain).transpose(0, 2, 1)
        if self.tilt is None or self.scale is None:
            return np.asarray(asked[:, :, None] * share)
        by_tilt = asked.reshape(self.scale.shape) * np.exp(-self.scale)
        return np.asarray(share * (by_tilt @ np.exp(self.tilt)))


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
) -> tuple[NDArray[np.bool_], int, int]:
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


class Votes:
    """The labels that workers gave to items.

    Parameters
    ----------
    start
        Where the answers of each item begin, and the number of answers.
    worker, label
        Worker and label of each answer, sorted by item.
    workers, labels
        How many there are.
    """

    def __init__(
        self,
        start: NDArray[np.int64],
        worker: IntArray,
        label: NDArray[np.int8],
        workers: int,
        labels: int,
    ) -> None:
        self.start, self.worker, self.label = start, worker, label
        self.workers, self.labels = workers, labels
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

    def shares(self) -> FloatArray:
        """Share of each label among the answers of each item, (item, label)."""
        items = len(self.start) - 1
        item = np.repeat(np.arange(items), np.diff(self.start))
        cells = np.bincount(item * self.labels + self.label, minlength=items * self.labels)
        votes = np.diff(self.start)[:, None]
        share = cells.reshape(items, self.labels) / np.maximum(votes, 1)
        return np.where(votes > 0, share, 1.0 / self.labels)

    def counts(self, posterior: FloatArray) -> FloatArray:
        """Expected answers (worker, label, class) for given probabilities (item, class)."""
        made = np.zeros((self.workers * self.labels, posterior.shape[1]))
        for block in self._blocks(posterior.shape[1]):
            made += block.cells[1] @ posterior[block.items]
        return made.reshape(self.workers, self.labels, -1)

    def expect(
        self,
        table: AnswerTable,
        log_prior: FloatArray,
        gold: IntArray,
        posterior: FloatArray,
        given: FloatArray,
        asked: FloatArray | None = None,
    ) -> float:
        """Fill the posterior and expected counts of answers (an E-step).

        `given` is (worker, label, class), `asked` (worker, state). States of one class are
        neighbours. `gold` holds the known class of an item, or -1.

        Returns
        -------
        float
            The log likelihood.
        """
        states, classes = len(log_prior), posterior.shape[1]
        given[:] = 0.0
        if asked is not None:
            asked[:] = 0.0
        total = 0.0
        for block in self._blocks(states):
            items = block.items
            score, top = _weights(block, table, log_prior, gold[items])
            whole = score.sum(axis=0)
            score /= whole
            posterior[items] = score.reshape(classes, states // classes, -1).sum(axis=1).T
            given += (block.cells[1] @ posterior[items]).reshape(given.shape)
            if asked is not None:
                asked += block.people[1] @ score.T
            total += float(top.sum() + np.log(whole).sum())
        return total

    def draw(
        self,
        table: AnswerTable,
        log_prior: FloatArray,
        gold: IntArray,
        uniform: FloatArray,
        given: FloatArray,
        asked: FloatArray,
    ) -> FloatArray:
        """Draw the state of every item: fill counts as drawn; return the items of each class.

        As :meth:`expect` otherwise; `uniform` has one random number per item.
        """
        states, classes = len(log_prior), given.shape[2]
        given[:] = 0.0
        asked[:] = 0.0
        found = np.zeros(classes)
        for block in self._blocks(states):
            items, cells, people = block.items, block.cells[0], block.people[0]
            score, _ = _weights(block, table, log_prior, gold[items])
            reached = np.cumsum(score, axis=0)
            before = reached - score
            # the last possible state that begins at or before the number drawn
            begun = (before <= uniform[items] * reached[-1]) & (score > 0)
            drawn = states - 1 - np.argmax(begun[::-1], axis=0)
            item = np.repeat(np.arange(len(drawn)), np.diff(cells.indptr))
            cls = drawn // (states // classes)
            for made, at, state in ((given, cells, cls), (asked, people, drawn)):
                cell = at.indices.astype(np.int64) * made.shape[-1] + state[item]
                made += np.bincount(cell, minlength=made.size).reshape(made.shape)
            found += np.bincount(cls, minlength=classes)
        return found


def _weights(
    block: _Block, table: AnswerTable, log_prior: FloatArray, gold: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Weight of each item in each state, (state, item), and the logarithm of its scale."""
    states, classes = len(log_prior), table.plain.shape[2]
    plain = (block.cells[0] @ table.plain.reshape(-1, classes)).T
    if table.tilt is None or table.scale is None:
        score = np.ascontiguousarray(plain)
    else:
        score = np.ascontiguousarray((block.people[0] @ -table.scale.reshape(-1, states)).T)
        by_tilt = score.reshape(classes, states // classes, -1)
        by_tilt += plain[:, None] + table.tilt @ block.labels
    score += log_prior[:, None]
    known = np.flatnonzero(gold >= 0)
    if len(known):
        other = np.arange(states)[:, None] // (states // classes) != gold[known]
        score[:, known] = np.where(other, -np.inf, score[:, known])
    top = score.max(axis=0)
    score -= top
    return np.exp(score, out=score), top
