"""Sets of classes that questions can make of all classes, each once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.problem import Problem

Fractions = tuple[tuple[int, int], ...]
"""Classes of which a set holds a part only: the class, and into how many parts it was divided."""


class ClassSets:
    """Sets of classes that questions can make, with the parts that each question makes of them.

    A class with several right answers is in several parts, with an equal part of its share in each:
    two sets are the same where the shares of their classes are. With `too_many` sets (more than
    `most`) nothing else is there. `member` and `share` are [set, class]; `child` is the set that an
    answer leads to, or -1: [set, question, answer]; `asks` says whether every answer to a question
    rules out some class, `leaf` whether no question does. `by_size` are the other sets, smallest
    first. `label` is the likeliest class of each set, `group_error` the share of the others.
    """

    def __init__(self, problem: Problem, most: float) -> None:
        n, m = problem.n_classes, problem.n_questions
        width = len(problem.right)
        bits = [1 << c for c in range(n)]
        right = [
            [
                sum(bit for bit, here in zip(bits, row, strict=True) if here)
                for row in problem.right[: problem.n_answers[q], q].tolist()
            ]
            for q in range(m)
        ]
        count = problem.right.sum(axis=0)
        missing, several = (
            [sum(bit for bit, here in zip(bits, row, strict=True) if here) for row in table]
            for table in ((count == 0).tolist(), (count > 1).tolist())
        )
        ways = count.tolist()
        first: tuple[int, Fractions] = ((1 << n) - 1, ())
        index, keys = {first: 0}, [first]
        parts: list[list[list[int]]] = []
        for mask, fractions in keys:
            row = []
            for q in range(m):
                pieces = [mask & here for here in right[q]]
                found = [-1] * width
                if not mask & missing[q] and mask not in pieces:
                    divided = bool(fractions or mask & several[q])
                    for answer, piece in enumerate(pieces):
                        if piece:
                            key = piece, _divided(piece, fractions, ways[q]) if divided else ()
                            if key not in index:
                                index[key] = len(keys)
                                keys.append(key)
                            found[answer] = index[key]
                row.append(found)
            parts.append(row)
            if len(keys) > most:
                break
        self.too_many = len(keys) > most
        if self.too_many:
            return
        self.member = np.array([[bool(mask & bit) for bit in bits] for mask, _ in keys])
        self.share = np.where(self.member, problem.prior, 0.0)
        for place, (_, fractions) in enumerate(keys):
            for cls, into in fractions:
                self.share[place, cls] /= into
        self.child = np.array(parts).reshape(len(keys), m, width)
        self.asks: NDArray[np.bool_] = np.asarray((self.child >= 0).any(axis=2))
        self.leaf: NDArray[np.bool_] = np.asarray(~self.asks.any(axis=1))
        size = self.member.sum(axis=1)
        self.by_size = [np.flatnonzero((size == s) & ~self.leaf) for s in range(2, n + 1)]
        self.label = self.share.argmax(axis=1)
        self.group_error = self.share.sum(axis=1) - self.share.max(axis=1)
        self._right, self._count = problem.right, count

    def branches(self, place: int, question: int) -> tuple[tuple[int, ...], int]:
        """Answers that lead on from a set, and the one that is right for most of its items."""
        answers = tuple(np.flatnonzero(self.child[place, question] >= 0).tolist())
        each = self.share[place] / np.maximum(self._count[question], 1)
        part = np.cumsum(each * self._right[list(answers), question], axis=1)[:, -1]
        return answers, answers[int(part.argmax())]


def _divided(piece: int, fractions: Fractions, ways: list[int]) -> Fractions:
    before = dict(fractions)
    after = [(cls, before.get(cls, 1) * into) for cls, into in enumerate(ways) if piece >> cls & 1]
    return tuple((cls, into) for cls, into in after if into > 1)
