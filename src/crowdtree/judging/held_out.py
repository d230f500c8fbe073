"""People left out one by one: what they and a model reach against the same other people.

A person who is compared with a majority that holds their own answer looks too good, the more so the
fewer people there are. So each person is left out in turn, and the model and the person are both
compared with the others. Every item counts once, however many people answered it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdtree.judging.agreement import IntArray
from crowdtree.judging.intervals import FloatArray


def plurality(counts: IntArray) -> FloatArray:
    """Probability that each label wins a vote whose ties are broken by lot.

    >>> plurality(np.array([[2, 2, 1], [0, 3, 1]]))
    array([[0.5, 0.5, 0. ],
           [0. , 1. , 0. ]])
    """
    leads = counts == counts.max(axis=1, keepdims=True, initial=0)
    return np.asarray(leads / leads.sum(axis=1, keepdims=True))


def indicator(label: IntArray, labels: int) -> NDArray[np.int64]:
    """A row per answer with a 1 at its label; no 1 where there is no answer (-1).

    >>> indicator(np.array([1, -1]), 2)
    array([[0, 1],
           [0, 0]])
    """
    return np.asarray(label[:, None] == np.arange(labels)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """One row per item and answer of a person who is left out; equal answers share a row.

    Parameters
    ----------
    item, weight
        Item of each row, and the share of its people that the row stands for.
    label, other
        Answer of the person who is left out, and of a second one where two are; -1 where the item
        has no people.
    truth
        Probability of each label by what answers are compared with: the vote of the other people,
        or the known truth.
    votes
        Votes of people that a model may join, by label.
    target
        Label that such a vote is to find: the answer of the person left out, or the known truth.
    """

    items: int
    item: IntArray
    weight: FloatArray
    label: IntArray
    other: IntArray
    truth: FloatArray
    votes: IntArray
    target: IntArray

    def right(self, label: IntArray) -> FloatArray:
        """Probability that the answers, one per row, are right; 0 where there is none."""
        chosen = self.truth[np.arange(len(label)), np.maximum(label, 0)]
        return np.where(label >= 0, chosen, 0.0)

    def by_item(self, values: FloatArray, rows: NDArray[np.bool_]) -> FloatArray:
        """Mean of the values over the people of each item that has such rows."""
        item, weight = self.item[rows], self.weight[rows]
        total = np.bincount(item, weight * values[rows], self.items)
        return np.asarray(total[np.bincount(item, minlength=self.items) > 0])

    def vote_gain(self, label: IntArray) -> FloatArray:
        """By item, by how much more a vote finds its target when the answers join it.

        Not a number where there is no vote or no answer.
        """
        rows = (label >= 0) & (self.votes.sum(axis=1) > 0)
        votes, target = self.votes[rows], self.target[rows]
        joined = plurality(votes + indicator(label[rows], votes.shape[1]))
        values = (joined - plurality(votes))[np.arange(len(votes)), target]
        total = np.bincount(self.item[rows], self.weight[rows] * values, self.items)
        met = np.bincount(self.item[rows], minlength=self.items) > 0
        return np.where(met, total, np.nan)


def against_people(counts: IntArray, people: int = 1) -> HeldOut:
    """Leave out one person (or two) of each item; the vote of the others is what is right.

    >>> counts = np.array([[2, 1]])  # two people say 0, one says 1
    >>> made = against_people(counts)
    >>> made.label.tolist(), made.truth.tolist()
    ([0, 1], [[0.5, 0.5], [1.0, 0.0]])
    """
    item, weight, first, last, votes = _leave_out(counts, people)
    keep = votes.sum(axis=1) > 0
    item, weight, first, last = item[keep], weight[keep], first[keep], last[keep]
    votes = votes[keep]
    return HeldOut(len(counts), item, weight, first, last, plurality(votes), votes, first)


def against_gold(counts: IntArray, gold: IntArray, people: int = 1) -> HeldOut:
    """Rows of items of known truth (-1: unknown); items without people stay.

    The known truth is nobody's answer, so the votes are of one person more than left out.
    """
    item, weight, first, last, votes = _leave_out(counts, people)
    votes += indicator(last, counts.shape[1])
    bare = np.flatnonzero(counts.sum(axis=1) == 0)
    nobody = np.full(len(bare), -1)
    item, weight = np.append(item, bare), np.append(weight, np.ones(len(bare)))
    first, last = np.append(first, nobody), np.append(last, nobody)
    votes = np.concatenate([votes, counts[bare]])
    known = gold[item] >= 0
    item, weight, first, last = item[known], weight[known], first[known], last[known]
    target = gold[item]
    truth = indicator(target, counts.shape[1]).astype(np.float64)
    return HeldOut(len(counts), item, weight, first, last, truth, votes[known], target)


def _leave_out(
    counts: IntArray, people: int
) -> tuple[IntArray, FloatArray, IntArray, IntArray, IntArray]:
    """Item, weight, the first and last answer left out, and the votes that remain, by row."""
    item, weight = np.arange(len(counts)), np.ones(len(counts))
    labels: list[IntArray] = []
    for _ in range(people):
        row, label = np.nonzero(counts)
        weight = weight[row] * counts[row, label] / counts.sum(axis=1)[row]
        item, labels = item[row], [*(earlier[row] for earlier in labels), label]
        counts = counts[row]
        counts[np.arange(len(row)), label] -= 1
    return item, weight, labels[0], labels[-1], counts
