"""Passes over few answers, in NumPy: the results of the compiled ones, up to rounding.

Sums are made in another order, so that floating-point results may differ in the last digits
(relatively by 1e-12 at most in the tests); integers are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.jit import interpreted

__all__ = ["FEW", "FEW_IN_TABLES", "class_passes", "passes"]

FEW = 100_000
"""Answers times states up to which a pass is made here: compiling takes longer than all of them."""
FEW_IN_TABLES = 10_000
"""Answers times classes up to which the passes of tables are interpreted."""
IntArray = NDArray[np.int32]
FloatArray = NDArray[np.float64]


def passes(cells: int) -> Any:
    """Choose the passes for answers with so many states altogether: these, or the compiled ones."""
    if cells > FEW:
        from crowdtree.learning import kernels

        return kernels
    return _Few


def class_passes(cells: int) -> Any:
    """Choose the passes over answers about classes: as written, or compiled."""
    if cells > FEW_IN_TABLES:
        from crowdtree.learning import class_kernels

        return class_kernels
    return interpreted("crowdtree.learning.class_kernels")


def _item(start: NDArray[np.int64]) -> NDArray[np.int64]:
    """Item of each answer."""
    return np.repeat(np.arange(len(start) - 1), np.diff(start))


def _weights(
    start: NDArray[np.int64],
    worker: IntArray,
    label: NDArray[np.int8],
    log_answer: FloatArray,
    log_prior: FloatArray,
    gold: IntArray,
    tilts: int,
) -> tuple[FloatArray, FloatArray]:
    """Weight of each state of each item, and the log of their scale."""
    score = np.tile(log_prior, (len(start) - 1, 1))
    np.add.at(score, _item(start), log_answer[worker, label])
    known = np.flatnonzero(gold >= 0)
    other = np.arange(score.shape[1]) // tilts != gold[known, None]
    score[known] = np.where(other, -np.inf, score[known])
    top = score.max(axis=1)
    return np.exp(score - top[:, None]), top


class _Few:
    """The functions of :mod:`crowdtree.learning.kernels`, which describes them."""

    @staticmethod
    def encode_range(values: NDArray[Any], low: int, span: int) -> tuple[IntArray, NDArray[Any]]:
        del low, span
        names, codes = np.unique(values, return_inverse=True)
        return codes.astype(np.int32), names.astype(np.int64)

    @staticmethod
    def counting_sort(key: IntArray, count: int) -> tuple[NDArray[np.int64], IntArray]:
        start = np.concatenate([[0], np.cumsum(np.bincount(key, minlength=count))])
        return start.astype(np.int64), np.argsort(key, kind="stable").astype(np.int32)

    @staticmethod
    def find_repeats(
        start: NDArray[np.int64], worker: IntArray, question: IntArray, keep_last: bool
    ) -> tuple[NDArray[np.bool_], int, int]:
        item = _item(start)
        order = np.lexsort((worker, question, item))
        same = np.ones(max(len(order) - 1, 0), dtype=bool)
        for column in (item, question, worker):
            same &= column[order[1:]] == column[order[:-1]]
        keep = np.ones(len(worker), dtype=bool)
        keep[order[:-1][same] if keep_last else order[1:][same]] = False
        again = order[1:][same]
        return keep, len(again), int(again[0]) if len(again) else -1

    @staticmethod
    def vote_shares(start: NDArray[np.int64], label: NDArray[np.int8], labels: int) -> FloatArray:
        share = np.zeros((len(start) - 1, labels))
        np.add.at(share, (_item(start), label), 1.0)
        votes = np.diff(start)[:, None]
        return np.where(votes > 0, share / np.maximum(votes, 1), 1.0 / labels)

    @staticmethod
    def count_pass(
        start: NDArray[np.int64],
        worker: IntArray,
        label: NDArray[np.int8],
        posterior: FloatArray,
        counts: FloatArray,
    ) -> None:
        counts[:] = 0.0
        np.add.at(counts, (worker, label), posterior[_item(start)])

    @classmethod
    def state_pass(
        cls,
        start: NDArray[np.int64],
        worker: IntArray,
        label: NDArray[np.int8],
        log_answer: FloatArray,
        log_prior: FloatArray,
        gold: IntArray,
        posterior: FloatArray,
        counts: FloatArray,
    ) -> float:
        items, classes = posterior.shape
        tilts = len(log_prior) // classes
        score, top = _weights(start, worker, label, log_answer, log_prior, gold, tilts)
        whole = score.sum(axis=1, keepdims=True)
        score /= whole
        posterior[:] = score.reshape(items, classes, tilts).sum(axis=2)
        cls.count_pass(start, worker, label, score, counts)
        return float(top.sum() + np.log(whole).sum())

    @staticmethod
    def draw_pass(
        start: NDArray[np.int64],
        worker: IntArray,
        label: NDArray[np.int8],
        log_answer: FloatArray,
        log_prior: FloatArray,
        gold: IntArray,
        uniform: FloatArray,
        counts: FloatArray,
    ) -> FloatArray:
        classes = counts.shape[1]
        tilts = len(log_prior) // classes
        score, _ = _weights(start, worker, label, log_answer, log_prior, gold, tilts)
        reached = np.cumsum(score, axis=1)
        before = np.concatenate([np.zeros((len(score), 1)), reached[:, :-1]], axis=1)
        # the last possible state that begins at or before the number drawn
        begun = (before <= uniform[:, None] * reached[:, -1:]) & (score > 0)
        drawn = begun.shape[1] - 1 - np.argmax(begun[:, ::-1], axis=1)
        counts[:] = 0.0
        np.add.at(counts, (worker, label, drawn[_item(start)]), 1.0)
        return np.bincount(drawn // tilts, minlength=classes).astype(np.float64)

    @staticmethod
    def answer_table(logits: FloatArray, tilt: FloatArray, table: FloatArray) -> None:
        score = logits[:, :, None, :] + tilt
        top = score.max(axis=3, keepdims=True)
        score -= top + np.log(np.exp(score - top).sum(axis=3, keepdims=True))
        table[:] = score.transpose(0, 3, 1, 2).reshape(table.shape)

    @staticmethod
    def told_pass(
        counts: FloatArray, table: FloatArray, given: FloatArray, expected: FloatArray
    ) -> None:
        workers, labels, _ = counts.shape
        shape = (workers, labels, labels, -1)
        given[:] = counts.reshape(shape).sum(axis=3).transpose(0, 2, 1)
        asked = counts.sum(axis=1, keepdims=True) * np.exp(table)
        expected[:] = asked.reshape(shape).sum(axis=3).transpose(0, 2, 1)
