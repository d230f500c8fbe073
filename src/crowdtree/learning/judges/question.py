"""Answers of people and models to one question, with people left out one by one.

A person who is compared with a majority that holds their own answer looks too good, the more so the
fewer people there are. So each person is left out in turn, and the model and the person are both
compared with the others. Every item counts once, however many people answered it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import BoolArray, FloatArray
from crowdtree.learning.judges.result import Reference

IntArray = NDArray[np.integer[Any]]


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

    By row: the `item`, and as `weight` the share of its people that the row stands for; the `label`
    of the person left out, and of an `other` one where two are (-1 without people); `truth`, the
    probability of each label by the vote of the other people or by gold; the `votes` that a model
    may join; and their `target`: the answer of the person left out, or gold. `items` counts all
    items.
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

    def by_item(self, values: FloatArray, rows: BoolArray) -> FloatArray:
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

    def _by_every_item(self, values: FloatArray, rows: BoolArray) -> FloatArray:
        total = np.bincount(self.item[rows], (self.weight * values)[rows], self.items)
        answered = np.bincount(self.item[rows], minlength=self.items) > 0
        return np.where(answered, total, np.nan)


@dataclass(frozen=True, eq=False)
class QuestionAnswers:
    """Answers to one question, -1 where there is none.

    `people` and `models` have a row per worker and a column per item; `gold` an entry per item.
    """

    question: str
    labels: tuple[str, ...]
    people: IntArray
    people_names: Sequence[str]
    models: IntArray
    model_names: Sequence[str]
    gold: IntArray

    def counts(self, answers: IntArray) -> NDArray[np.int64]:
        """Answers of some workers by item and label."""
        worker, item = np.nonzero(answers >= 0)
        items, labels = answers.shape[1], len(self.labels)
        cell = item * labels + answers[worker, item].astype(np.int64)
        return np.bincount(cell, minlength=items * labels).reshape(items, labels)

    @cached_property
    def votes(self) -> NDArray[np.int64]:
        """Answers of all people by item and label."""
        return self.counts(self.people)

    @property
    def usual_reference(self) -> Reference:
        """Gold where people answered known items; otherwise the other people."""
        return "gold" if ((self.gold >= 0) & (self.votes.sum(axis=1) > 0)).any() else "people"

    def leave_out(
        self, reference: Reference | None = None, votes: IntArray | None = None, people: int = 1
    ) -> LeaveOneOut:
        """Leave one person (or two) out of each item, and compare with the others or with gold.

        With gold, items without people stay, and one person less is left out of `votes`: the truth
        is nobody's answer.
        """
        counts = self.votes if votes is None else votes
        gold = self.gold if (reference or self.usual_reference) == "gold" else None
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
        item, weight, first, last, left = (part[keep] for part in rows)
        target = first if gold is None else gold[item]
        truth = plurality(left) if gold is None else indicator(target, left.shape[1]).astype(float)
        return LeaveOneOut(len(counts), item, weight, first, last, truth, left, target)


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
