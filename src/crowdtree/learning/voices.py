"""What people said about items, as likelihoods: the evidence from which trust is assessed."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.likelihood import AnswerModel
from crowdtree.problem import Problem

__all__ = ["MOST_ERROR", "Answered", "FloatArray", "Voices"]

FloatArray = NDArray[np.float64]
LEAST_ERROR, MOST_ERROR = 1e-3, 0.45
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


class Voices:
    """The answers of a campaign: what each person said about each item, as likelihoods.

    A *voice* is all that one person said about one item; each answer to a gold item is one, too.
    """

    def __init__(self, problem: Problem, answers: list[Answered]) -> None:
        self.problem, self.answers = problem, answers
        self.prior = problem.prior / problem.prior.sum()
        self.workers = sorted({a.worker for a in answers})
        columns = list(zip(*answers, strict=True)) or [()] * len(Answered._fields)
        self.question, self.worker, self.value, self.seconds = map(np.array, columns[1:5])
        self.voices: list[tuple[int, int, int | None]] = []
        """Item (a number of its own for a gold answer), worker and known class of each voice."""
        voice: list[int] = []
        place: dict[tuple[int, int], int] = {}
        for k, (item, _, worker, _, _, gold) in enumerate(answers):
            key = (item if gold is None else -k - 1, worker)
            number = place.setdefault(key, len(self.voices))
            if number == len(self.voices):
                self.voices.append((*key, gold))
            voice.append(number)
        self.voice = np.array(voice, dtype=np.int64)
        found = {item: place for place, item in enumerate({item for item, _, _ in self.voices})}
        self.n_items = len(found)
        self.where = np.array([found[item] for item, _, _ in self.voices], dtype=np.int64)
        place_of = {worker: place for place, worker in enumerate(self.workers)}
        self.who = np.array([place_of[w] for _, w, _ in self.voices], dtype=np.int64)
        self.is_gold = np.array([gold is not None for _, _, gold in self.voices], dtype=bool)
        self.by_worker: dict[int, list[int]] = {}
        for number, (_, worker, _) in enumerate(self.voices):
            self.by_worker.setdefault(worker, []).append(number)

    def told(self, yes: FloatArray) -> FloatArray:
        """Log likelihood of each voice, per class, under a table of P(yes | class)."""
        found = np.zeros((len(self.voices), self.problem.n_classes))
        if len(self.answers):
            said = yes[self.question]
            np.add.at(found, self.voice, np.log(np.where(self.value[:, None] == 1, said, 1 - said)))
        return found

    def yes(self, error: FloatArray) -> FloatArray:
        """P(yes | class) of a person with other errors."""
        sign = AnswerModel.of(self.problem).sign
        found = np.where(sign > 0, 1 - error, np.where(sign < 0, error, 0.5))
        return np.clip(found, LEAST_ERROR, 1 - LEAST_ERROR)

    @cached_property
    def plain(self) -> FloatArray:
        """Log likelihood of each voice by the table."""
        return self.told(AnswerModel.of(self.problem).yes)

    @cached_property
    def blind(self) -> FloatArray:
        """Log likelihood of each voice where the answers are coins."""
        count = np.bincount(self.voice, minlength=len(self.voices))
        return np.asarray(count * np.log(0.5), dtype=np.float64)

    def gold(self) -> dict[int, float]:
        """Evidence of each worker's answers to gold items."""
        found: dict[int, float] = {}
        for number, (_, worker, known) in enumerate(self.voices):
            if known is not None:
                told = self.plain[number]
                told = float(told[known] - np.log(self.prior @ np.exp(told)))
                found[worker] = found.get(worker, 0.0) + told
        return found

    def agreement(self, partners: set[int]) -> dict[int, float]:
        """Evidence of each worker's answers, compared with those of other people."""
        believed, there = self.beliefs(partners)
        chance = np.exp(self.plain)
        told = np.log((believed * chance).sum(axis=1)) - np.log(chance @ self.prior)
        total = np.bincount(self.who, np.where(there, told, 0.0), minlength=len(self.workers))
        return dict(zip(self.workers, total.tolist(), strict=True))

    def beliefs(self, partners: set[int]) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Chance of each class by what the partners said, without the own voice; whether any did.

        For gold items the truth. Others are wrong together with some chance.
        """
        counts, total, voices = self.spoken(partners)
        others = total[self.where] - np.where(counts[:, None], self.plain, 0.0)
        believed = self.doubted(others)
        gold = np.flatnonzero(self.is_gold)
        truths = [self.voices[number][2] for number in gold]
        believed[gold] = np.eye(self.problem.n_classes)[np.array(truths, dtype=np.int64)]
        return believed, voices[self.where] - counts > 0

    def spoken(self, partners: set[int]) -> tuple[NDArray[np.bool_], FloatArray, FloatArray]:
        """Which voices are those of partners; their sum and their number, per item."""
        counts = np.isin(np.array(self.workers)[self.who], list(partners)) & ~self.is_gold
        total = np.zeros((self.n_items, self.problem.n_classes))
        voices = np.zeros(self.n_items)
        np.add.at(total, self.where[counts], self.plain[counts])
        np.add.at(voices, self.where[counts], 1.0)
        return counts, total, voices

    def doubted(self, told: FloatArray) -> FloatArray:
        """Chance of each class by what people said, who are wrong together with some chance."""
        posterior = self.prior * np.exp(told - told.max(axis=1, keepdims=True, initial=-np.inf))
        posterior /= posterior.sum(axis=1, keepdims=True)
        return np.asarray((1 - DOUBT) * posterior + DOUBT * self.prior)
