"""What people said about items, as likelihoods: the evidence from which trust is assessed."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import BoolArray, FloatArray
from crowdtree.core.likelihood import LEAST
from crowdtree.core.problem import Problem
from crowdtree.learning.within import at_error

IntArray = NDArray[np.int64]
MIN_ERROR, MAX_ERROR = 1e-3, 0.45
DOUBT = 0.1
"""Chance that the other people are wrong about an item together."""


class Answered(NamedTuple):
    """An answer in the log: who said what, in how many seconds, and the class of a gold item."""

    item: int
    question: int
    worker: int
    value: int
    seconds: float
    gold: int | None = None


class EvidenceByPerson:
    """The answers of a campaign: what each person said about each item, as likelihoods.

    A *statement* is all that one person said about one item; each answer to a gold item is one,
    too. Statements are in the order of their first answers.
    """

    def __init__(self, problem: Problem, answers: list[Answered]) -> None:
        self.problem = problem
        self.prior = problem.prior / problem.prior.sum()
        columns = list(zip(*answers, strict=True)) or [()] * len(Answered._fields)
        item, self.question, self.worker, self.value = (
            np.array(column, dtype=np.int64) for column in columns[:4]
        )
        self.value = np.maximum(self.value, -1)  # "can't tell" is evidence of nothing
        self.seconds = np.array(columns[4], dtype=np.float64)
        gold = np.array([-1 if cls is None else cls for cls in columns[5]], dtype=np.int64)
        key = np.where(gold < 0, item, -1 - np.arange(len(item)))
        pair = np.stack([key, self.worker], axis=1)
        _, first, place = np.unique(pair, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        self.statement: IntArray = np.argsort(order)[place.ravel()]
        """Statement of each answer."""
        first = first[order]
        self.gold: IntArray = gold[first]
        """Known class of each statement's item, or -1."""
        self.is_gold = self.gold >= 0
        items, self.item = np.unique(key[first], return_inverse=True)
        people, self.person = np.unique(self.worker[first], return_inverse=True)
        self.n_items, self.workers = len(items), people.tolist()

    def of_worker(self, worker: int) -> NDArray[np.intp]:
        """Statements of a worker."""
        return np.flatnonzero(self.person == self.workers.index(worker))

    def log_chances(self, table: FloatArray, least: float) -> FloatArray:
        """Log probability of each answer, per class, under a table of P(answer | class)."""
        logs = np.log(np.clip(table, least, 1 - least))[self.value, self.question]
        return np.where(self.value[:, None] < 0, 0.0, logs)

    def at_error(self, error: FloatArray) -> FloatArray:
        """Log probability of each answer, per class, of a person with other errors."""
        return self.log_chances(at_error(self.problem, error), MIN_ERROR)

    def by_statement(self, log_chances: FloatArray) -> FloatArray:
        """Log likelihood of each statement, per class, from that of each answer."""
        total = np.zeros((len(self.gold), *log_chances.shape[1:]))
        np.add.at(total, self.statement, log_chances)
        return total

    @cached_property
    def by_table(self) -> FloatArray:
        """Log likelihood of each statement by the table."""
        return self.by_statement(self.log_chances(self.problem.channel[0], LEAST))

    @cached_property
    def by_coin(self) -> FloatArray:
        """Log likelihood of each statement where all answers to a question are as likely."""
        alike = -np.log(self.problem.n_answers[self.question])
        return self.by_statement(np.where(self.value < 0, 0.0, alike))

    def gold_evidence(self) -> dict[int, float]:
        """Evidence of each worker's answers to gold items."""
        told = self.by_table[np.arange(len(self.gold)), self.gold]
        return self._by_worker(told - np.log(np.exp(self.by_table) @ self.prior), self.is_gold)

    def agreement(self, partners: set[int]) -> dict[int, float]:
        """Evidence of each worker's answers, compared with those of other people."""
        belief, compared = self.beliefs(partners)
        chance = np.exp(self.by_table)
        told = np.log((belief * chance).sum(axis=1)) - np.log(chance @ self.prior)
        return self._by_worker(told, compared)

    def _by_worker(self, value: FloatArray, some: BoolArray) -> dict[int, float]:
        """Sum of the values of some statements, per worker."""
        total = np.bincount(self.person, np.where(some, value, 0.0), minlength=len(self.workers))
        return dict(zip(self.workers, total.tolist(), strict=True))

    def beliefs(self, partners: set[int]) -> tuple[FloatArray, BoolArray]:
        """Chance of each class by what the partners said, without the own statement; if any did.

        For gold items the truth. Others are wrong together with some chance.
        """
        counts, total, number = self.sums(partners)
        others = total[self.item] - np.where(counts[:, None], self.by_table, 0.0)
        belief = self.posterior(others)
        belief[self.is_gold] = np.eye(self.problem.n_classes)[self.gold[self.is_gold]]
        return belief, number[self.item] - counts > 0

    def sums(self, partners: set[int]) -> tuple[BoolArray, FloatArray, FloatArray]:
        """Which statements are those of partners; their sum and their number, per item."""
        counts = np.isin(np.array(self.workers)[self.person], list(partners)) & ~self.is_gold
        total = np.zeros((self.n_items, self.problem.n_classes))
        np.add.at(total, self.item[counts], self.by_table[counts])
        return counts, total, np.bincount(self.item, counts, self.n_items).astype(np.float64)

    def posterior(self, log_likelihood: FloatArray) -> FloatArray:
        """Chance of each class by what people said, who are wrong together with some chance."""
        top = log_likelihood.max(axis=1, keepdims=True, initial=-np.inf)
        posterior = self.prior * np.exp(log_likelihood - top)
        posterior /= posterior.sum(axis=1, keepdims=True)
        return np.asarray((1 - DOUBT) * posterior + DOUBT * self.prior)
