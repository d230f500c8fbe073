"""People left out one by one: what they and a model reach against the same other people.

A person who is compared with a majority that holds their own answer looks too good, the more so the
fewer people there are. So each person is left out in turn, and the model and the person are both
compared with the others. Every item counts once, however many people answered it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
class LeaveOneOut:
    """One row per item and answer of a person who is left out; equal answers share a row.

    Parameters
    ----------
    items
        Number of items.
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
        Label that such a vote should find: the answer of the person left out, or the known truth.
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
        chance = self.truth[np.arange(len(label)), np.maximum(label, 0)]
        return np.where(label >= 0, chance, 0.0)

    def by_item(self, values: FloatArray, rows: NDArray[np.bool_]) -> FloatArray:
        """Mean of the values over the people of each item that has such rows."""
        means = self._by_every_item(values, rows)
        return means[np.isfinite(means)]

    def vote_gain(self, label: IntArray) -> FloatArray:
        """By every item, how much more often a vote finds its target when the answers join it.

        Not a number where there is no vote or no answer.
        """
        joined = plurality(self.votes + indicator(label, self.votes.shape[1]))
        gain = (joined - plurality(self.votes))[np.arange(len(label)), self.target]
        return self._by_every_item(gain, (label >= 0) & (self.votes.sum(axis=1) > 0))

    def _by_every_item(self, values: FloatArray, rows: NDArray[np.bool_]) -> FloatArray:
        total = np.bincount(self.item[rows], (self.weight * values)[rows], self.items)
        answered = np.bincount(self.item[rows], minlength=self.items) > 0
        return np.where(answered, total, np.nan)


def leave_out(counts: IntArray, gold: IntArray | None = None, people: int = 1) -> LeaveOneOut:
    """Leave one person (or two) out of each item.

    Parameters
    ----------
    counts
        People's answers by item and label.
    gold
        Known label of each item, -1 where unknown: what is right, instead of the vote of the other
        people. Items without people then stay, and one person less is left out of `votes`: the
        truth is nobody's answer.
    people
        How many to leave out.

    Examples
    --------
    >>> rows = leave_out(np.array([[2, 1]]))  # two people say 0, one says 1
    >>> rows.label.tolist(), rows.truth.tolist()
    ([0, 1], [[0.5, 0.5], [1.0, 0.0]])
    """
    rows = _without_people(counts, people)
    if gold is None:
        keep = rows[-1].sum(axis=1) > 0
    else:
        rows[-1] += indicator(rows[-2], counts.shape[1])
        bare = np.flatnonzero(counts.sum(axis=1) == 0)
        nobody = np.full(len(bare), -1)
        parts = (bare, np.ones(len(bare)), nobody, nobody, counts[bare])
        rows = [np.concatenate(pair) for pair in zip(rows, parts, strict=True)]
        keep = gold[rows[0]] >= 0
    item, weight, first, last, votes = (part[keep] for part in rows)
    target = first if gold is None else gold[item]
    truth = plurality(votes) if gold is None else indicator(target, counts.shape[1]).astype(float)
    return LeaveOneOut(len(counts), item, weight, first, last, truth, votes, target)


def _without_people(counts: IntArray, people: int) -> list[NDArray[Any]]:
    """Item, weight, first and last answer left out, and the votes that remain, by row."""
    item, weight = np.arange(len(counts)), np.ones(len(counts))
    labels: list[IntArray] = []
    for _ in range(people):
        row, label = np.nonzero(counts)
        weight = weight[row] * counts[row, label] / counts.sum(axis=1)[row]
        item, labels = item[row], [*(earlier[row] for earlier in labels), label]
        counts = counts[row]
        counts[np.arange(len(row)), label] -= 1
    return [item, weight, labels[0], labels[-1], counts]
