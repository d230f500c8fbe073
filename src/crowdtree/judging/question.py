"""Answers of people and models to one question, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crowdtree.judging.agreement import IntArray
from crowdtree.judging.leave_out import LeaveOneOut, leave_out
from crowdtree.judging.result import Reference


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
        """Leave people out, and compare with the others or with gold; by default all as usual."""
        gold = self.gold if (reference or self.usual_reference) == "gold" else None
        return leave_out(self.votes if votes is None else votes, gold, people)
