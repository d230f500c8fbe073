"""TableTests against a table: the alternatives to it, and their likelihood ratios for one item.

Skills of workers are left out: a server learns them from the same answers, so that they would
follow the errors that are to be noticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.likelihood import UNSURE, urn
from crowdtree.policies.base import FloatArray
from crowdtree.policies.monitor.past import Said
from crowdtree.policies.revising import (
    MAX_OF_GUESSING,
    Table,
    guessing_error,
    with_error,
    wrong_share,
)

__all__ = ["ALIKE", "CHANCES", "DEPENDENCES", "SHARES", "ItemEvidence", "Key", "TableTests"]

MULTIPLES = (1 / 2, 2 / 3, 3 / 2, 2.0, 3.0)
"""Errors, in multiples of those of the table, that it is compared with."""
GUESSES = 0.2
"""Share of answers that are guessed in one more alternative, also where nobody should err."""
CHANCES = (0.15, 0.1, 0.2, 0.25, 0.15, 0.15)
"""Weights of these alternatives: the multiples, and the guesses."""
DEPENDENCES = np.array([0.0, 0.1, 0.3, 0.6])[:, None]
"""Correlations of answers to one question about an item that it is compared with."""
SHARES = {
    "table": 0.5,
    "question": 0.15,
    "class": 0.1,
    "kind": 0.05,
    "dependence": 0.1,
    "prior": 0.1,
}
"""Weights of the ways to be wrong; those of questions, classes and kinds are shared among them."""
ALIKE = ("dependence", "prior")
"""Subjects whose alternatives have equal weights."""
_LEAST = 1e-300  # a hypothesis that is ruled out can come back
_HIGHEST = 700.0  # logarithm beyond which numbers overflow

Key = tuple[str, str]
"""A way to be wrong: subject, and number of the question or class or name of the kind."""


class _Asked(NamedTuple):
    """One answer: its probability per hypothesis, and the ratios of the alternatives to it."""

    plain: FloatArray
    ratio: FloatArray
    log_ratio: FloatArray


class ItemEvidence:
    """Likelihood of the answers about an item: under the table, and of each alternative.

    `rows` are the alternatives among those of the campaign (errors about each class come first),
    with the `log_ratios` of each to the table. Items with the same answers share one.
    """

    def __init__(self, prior: FloatArray, classes: int) -> None:
        self.chance = prior[None].copy()  # first the table, then a row per alternative
        self.logs = np.zeros(1)
        self.cells = np.zeros((len(CHANCES), len(prior)))
        self.place: dict[Key, slice] = {}
        self.rows: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.log_ratios: FloatArray = np.zeros(classes * len(CHANCES))
        self.counts: dict[int, NDArray[np.int64]] = {}
        """Answers to each question, as the model counts them."""
        self.after: dict[Said, ItemEvidence] = {}
        """What follows from one more answer, where that was computed before."""

    def copy(self) -> ItemEvidence:
        """Copy everything but what follows from it."""
        made = copy(self)
        made.chance, made.logs, made.cells = self.chance.copy(), self.logs.copy(), self.cells.copy()
        made.place = self.place.copy()
        made.counts = {question: counts.copy() for question, counts in self.counts.items()}
        made.after = {}
        return made

    @property
    def posterior(self) -> FloatArray:
        """Posterior of the hypotheses under the table."""
        return self.chance[0]  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        """Numbers that are held."""
        return self.chance.size + self.cells.size + self.log_ratios.size

    def add(self, added: Sequence[tuple[Key, int, int]], chance: FloatArray) -> None:
        """Add alternatives: of each key, its first place in the campaign and their number."""
        here = len(self.chance)
        for key, _, count in added:
            self.place[key] = slice(here, here + count)
            here += count
        rows = [number for _, first, count in added for number in range(first, first + count)]
        self.rows = np.concatenate([self.rows, np.array(rows)])
        self.chance = np.concatenate([self.chance, chance])
        self.logs = np.concatenate([self.logs, np.full(len(rows), self.logs[0])])

    def add_like_table(self, added: Sequence[tuple[Key, int, int]]) -> None:
        """Add alternatives that agree with the table so far."""
        self.add(added, self.chance[:1].repeat(sum(count for _, _, count in added), axis=0))


class TableTests:
    """The alternatives to a table; `class_of` is the class of each hypothesis, counted from 0."""

    def __init__(self, table: Table, class_of: NDArray[np.int64]) -> None:
        self.table = table
        self.classes = int(class_of.max()) + 1
        one_each = np.array_equal(class_of, np.arange(len(class_of)))
        self._member = None if one_each else np.eye(self.classes)[class_of]
        self._asked: dict[tuple[int, int], _Asked] = {}
        self._known: dict[int, tuple[FloatArray, FloatArray]] = {}
        self._none = np.zeros(table.model.slots, dtype=np.int64)

    def is_evidence(self, said: Said) -> bool:
        """Whether the table has a probability of the answer, which "can't tell" may lack."""
        return said.answer.value != UNSURE or self.table.model.knows_unsure

    def _evidence_before(self, item: ItemEvidence, question: int) -> int:
        """Answers to a question about an item so far, those that are evidence."""
        before = item.counts.get(question, self._none)
        return int((before if self.table.model.knows_unsure else before[:-1]).sum())

    def observe(self, item: ItemEvidence, said: Said) -> None:
        """Multiply the likelihoods of an item by those of one more answer.

        The item must have the alternatives that :meth:`missing_alternatives` names.
        """
        question, value, *_ = said.answer
        slot, asked = self.table.model.slot(value), self._evidence_before(item, question)
        before = item.counts.setdefault(question, self._none.copy())
        if self.is_evidence(said):
            now = self._one(question, slot, int(before[slot]), asked)
            for key in self._errors(said):
                item.chance[item.place[key]] *= now.ratio
            if asked:
                other = _urns(self._tables(question)[0][slot], int(before[slot]), asked)
                item.chance[item.place["dependence", ""]] *= other / now.plain
            item.cells += now.log_ratio
            chance = item.chance
            chance *= now.plain
            total = np.add.reduce(chance, axis=1)
            chance /= total[:, None]
            np.maximum(chance, _LEAST, out=chance)
            item.logs += np.log(total)
        before[slot] += 1

    def refresh(self, item: ItemEvidence) -> None:
        """Compute the likelihood ratios from what was told."""
        posterior = item.posterior
        if self._member is None:
            rest, mine = 1 - posterior, posterior * np.exp(np.minimum(item.cells, _HIGHEST))
        else:
            grown = posterior * np.exp(np.minimum(item.cells, _HIGHEST))
            rest, mine = 1 - posterior @ self._member, grown @ self._member
        of_classes = np.log(np.maximum(rest + mine, _LEAST))
        item.log_ratios = np.concatenate([of_classes.T.ravel(), item.logs[1:] - item.logs[0]])

    def missing_alternatives(self, item: ItemEvidence, said: Said) -> list[tuple[Key, int]]:
        """Alternatives that an answer concerns and that the item does not have yet."""
        if not self.is_evidence(said):
            return []
        keys = [(key, len(CHANCES)) for key in self._errors(said)]
        if self._evidence_before(item, said.answer.question):
            keys.append((("dependence", ""), len(DEPENDENCES)))
        return [(key, count) for key, count in keys if key not in item.place]

    def _errors(self, said: Said) -> tuple[Key, ...]:
        """Ways to be wrong about the errors that an answer tells about."""
        return ("table", ""), ("question", str(said.answer.question)), ("kind", said.kind)

    def _one(self, question: int, slot: int, same: int, asked: int) -> _Asked:
        """Probabilities of an answer after `asked` answers, of which so many were the `same`."""
        rho, key = self.table.model.shared_difficulty, (question, slot)
        shared = rho and asked
        if not shared and key in self._asked:
            return self._asked[key]
        plain, others = (each[slot] for each in self._tables(question))
        if shared:
            return _asked(urn(plain, rho, same, asked), urn(others, rho, same, asked))
        self._asked[key] = _asked(plain, others)
        return self._asked[key]

    def _tables(self, question: int) -> tuple[FloatArray, FloatArray]:
        """P(answer | hypothesis), and the same with other errors."""
        if question not in self._known:
            share = self.table.model.chances(question)
            self._known[question] = share, self._alternatives(question, share)
        return self._known[question]

    def _alternatives(self, question: int, share: FloatArray) -> FloatArray:
        """Answers with other errors, as ``[answer, alternative, hypothesis]``."""
        telling, right = share[:-1], self.table.model.right[:-1, question]
        error, guessed = wrong_share(telling, right), guessing_error(telling, right)
        most = np.maximum(error, MAX_OF_GUESSING * guessed)
        others = [np.minimum(error * times, most) for times in MULTIPLES]
        others.append(error + GUESSES * (guessed - error))
        made = [np.vstack([with_error(telling, right, other), share[-1:]]) for other in others]
        return np.stack(made, axis=1)


def _asked(plain: FloatArray, others: FloatArray) -> _Asked:
    ratio = others / plain
    return _Asked(plain, ratio, np.log(ratio))


def _urns(share: FloatArray, same: int, asked: int) -> FloatArray:
    """Probability of an answer under each dependence; see :func:`crowdtree.core.likelihood.urn`."""
    own = 1 - DEPENDENCES
    return np.asarray((own * share + DEPENDENCES * same) / (own + DEPENDENCES * asked))
