"""Passes over answers with one question: sums over millions of them without a compiler.

Who gave which label to which item is a sparse matrix; the sums of expectation maximisation are its
products with dense ones, which SciPy computes about as fast as any loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Votes", "answer_table", "counting_sort", "find_repeats", "given_and_expected"]

BLOCK = 1 << 18
"""Cells (item, state) that are computed together: they fit into the processor's cache."""
IntArray = NDArray[np.int32]
FloatArray = NDArray[np.float64]
Blocks = list[tuple[slice, Any, Any]]


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
        self._made: tuple[int, Blocks] | None = None

    def _blocks(self, states: int) -> Blocks:
        """Items that are computed together, their rows of the matrix, and these transposed.

        A column belongs to a label of a worker.
        """
        # one more table of all workers per block must not outweigh the items
        cells = max(BLOCK, self.workers * self.labels * states)
        size = max(1, cells // states)
        if self._made is None or self._made[0] != size:
            self._made = size, self._cut(size)
        return self._made[1]

    def _cut(self, size: int) -> Blocks:
        from scipy.sparse import csr_array

        column = self.worker * np.int32(self.labels) + self.label
        blocks = []
        for first in range(0, len(self.start) - 1, size):
            start = self.start[first : first + size + 1]
            mine = column[start[0] : start[-1]]
            shape = len(start) - 1, self.workers * self.labels
            rows = csr_array((np.ones(len(mine)), mine, start - start[0]), shape=shape)
            blocks.append((slice(first, first + size), rows, rows.T))
        return blocks

    def shares(self) -> FloatArray:
        """Share of each label among the answers of each item, (item, label)."""
        items = len(self.start) - 1
        item = np.repeat(np.arange(items), np.diff(self.start))
        cells = np.bincount(item * self.labels + self.label, minlength=items * self.labels)
        votes = np.diff(self.start)[:, None]
        share = cells.reshape(items, self.labels) / np.maximum(votes, 1)
        return np.where(votes > 0, share, 1.0 / self.labels)

    def counts(self, posterior: FloatArray) -> FloatArray:
        """Expected answers (worker, label, state) for given probabilities (item, state)."""
        made = np.zeros((self.workers * self.labels, posterior.shape[1]))
        for items, _, columns in self._blocks(posterior.shape[1]):
            made += columns @ posterior[items]
        return made.reshape(self.workers, self.labels, -1)

    def expect(
        self,
        log_answer: FloatArray,
        log_prior: FloatArray,
        gold: IntArray,
        posterior: FloatArray,
        counts: FloatArray,
    ) -> float:
        """Fill posterior and expected counts (an E-step); return the log likelihood.

        `log_answer` and `counts` are (worker, label, state). States of one class are neighbours.
        `gold` holds the known class of an item, or -1.
        """
        states, classes = len(log_prior), posterior.shape[1]
        made = counts.reshape(-1, states)
        made[:] = 0.0
        total = 0.0
        for items, rows, columns in self._blocks(states):
            score, top = _weights(rows, log_answer, log_prior, gold[items], classes)
            whole = score.sum(axis=0)
            score /= whole
            by_class = score.reshape(classes, states // classes, -1)
            posterior[items] = by_class.sum(axis=1).T
            made += columns @ score.T
            total += float(top.sum() + np.log(whole).sum())
        return total

    def draw(
        self,
        log_answer: FloatArray,
        log_prior: FloatArray,
        gold: IntArray,
        uniform: FloatArray,
        counts: FloatArray,
    ) -> FloatArray:
        """Draw the state of every item: fill counts as drawn; return the items of each class.

        As :meth:`expect` otherwise; `uniform` has one random number per item.
        """
        states, classes = len(log_prior), counts.shape[1]
        made = counts.reshape(-1, states)
        made[:] = 0.0
        found = np.zeros(classes)
        for items, rows, _ in self._blocks(states):
            score, _ = _weights(rows, log_answer, log_prior, gold[items], classes)
            reached = np.cumsum(score, axis=0)
            before = reached - score
            # the last possible state that begins at or before the number drawn
            begun = (before <= uniform[items] * reached[-1]) & (score > 0)
            drawn = states - 1 - np.argmax(begun[::-1], axis=0)
            item = np.repeat(np.arange(len(drawn)), np.diff(rows.indptr))
            cell = rows.indices.astype(np.int64) * states + drawn[item]
            made += np.bincount(cell, minlength=made.size).reshape(made.shape)
            found += np.bincount(drawn // (states // classes), minlength=classes)
        return found


def _weights(
    rows: Any, log_answer: FloatArray, log_prior: FloatArray, gold: IntArray, classes: int
) -> tuple[FloatArray, FloatArray]:
    """Weight of each item in each state, (state, item), and the logarithm of its scale."""
    states = len(log_prior)
    score = np.ascontiguousarray((rows @ log_answer.reshape(-1, states)).T)
    score += log_prior[:, None]
    known = np.flatnonzero(gold >= 0)
    other = np.arange(states)[:, None] // (states // classes) != gold[known]
    score[:, known] = np.where(other, -np.inf, score[:, known])
    top = score.max(axis=0)
    score -= top
    return np.exp(score, out=score), top


def answer_table(logits: FloatArray, tilt: FloatArray) -> FloatArray:
    """Log P(label | worker, state), (worker, label, state).

    From logits (worker, class, label) and tilts (tilt, label); a state is a class and a tilt.
    """
    workers, classes, labels = logits.shape
    top = logits.max(axis=2, keepdims=True)
    whole = top + np.log(np.exp(logits - top) @ np.exp(tilt.T))  # (worker, class, tilt)
    table = logits.transpose(0, 2, 1)[..., None] + tilt.T[:, None, :]
    table -= whole[:, None]
    return table.reshape(workers, labels, classes * len(tilt))


def given_and_expected(counts: FloatArray, table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Answers of each worker to items of each class, given and expected: (worker, class, label).

    `counts` are (worker, label, state), `table` the logarithms of the probabilities of answers.
    """
    workers, labels, _ = counts.shape
    shape = (workers, labels, labels, -1)
    given = counts.reshape(shape).sum(axis=3).transpose(0, 2, 1)
    asked = counts.sum(axis=1).reshape(workers, labels, -1)
    expected = np.einsum("wkt,wlkt->wkl", asked, np.exp(table).reshape(shape))
    return np.ascontiguousarray(given), expected
