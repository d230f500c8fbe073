"""How a vote stands: one vote, or many at once. When it is over says its rule (`core.votes`).

The answer with the most votes leads; of answers that tie the one that was given first, which given
a tie is a fair draw. Votes that count for no answer ("can't tell", or an answer that is right for
no class of the node) are votes nevertheless.

A tally of many votes is ``tally[answer, vote]``, with the number of the answer's votes in the high
bits and in the low ones how early the first of them came: the largest number leads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Tally = NDArray[np.int64]
_BITS = 20
_ONE = 1 << _BITS
_EARLIEST = _ONE - 1


class Standing(NamedTuple):
    """How one vote stands, or many do: numbers, or arrays of them.

    `leader` is the answer that leads (-1 before any vote that counts), `lead` by how many votes,
    and `first` whether it was given before every answer that ties with the next one, so that it
    would win.
    """

    leader: Any
    lead: Any
    first: Any


def standing(counts: Sequence[int], order: Iterable[int]) -> Standing:
    """Say how one vote stands, by the answers that count in the order in which each first came.

    >>> standing((1, 3, 1), order=(2, 1, 0))
    Standing(leader=1, lead=2, first=False)
    """
    leader, top, second, first = -1, 0, 0, False
    for answer in order:
        count = counts[answer]
        if count > top:
            leader, top, second, first = answer, count, top, not top
        elif count > second:
            second, first = count, True
    return Standing(leader, top - second, first)


def standings(tally: Tally) -> Standing:
    """Say how many votes stand; see :func:`standing`.

    >>> tally = np.zeros((2, 1), dtype=np.int64)
    >>> for turn, answer in enumerate([1, 0, 0]):
    ...     cast(tally, np.array([answer]), turn)
    >>> [int(part[0]) for part in standings(tally)], vote_counts(tally).ravel().tolist()
    ([0, 1, 0], [2, 1])
    """
    top, second = tally[0], np.zeros_like(tally[0])
    for row in tally[1:]:
        second = np.maximum(second, np.minimum(top, row))
        top = np.maximum(top, row)
    first = (top & _EARLIEST) > (second & _EARLIEST)
    return Standing(leaders(tally), (top >> _BITS) - (second >> _BITS), first)


def leaders(tally: Tally) -> NDArray[np.int64]:
    """Answer that leads each vote, -1 before any vote that counts."""
    top = tally[0]
    leader: NDArray[np.int64] = (top > 0) - np.int64(1)
    for answer, row in enumerate(tally[1:], 1):
        leader += (row > top) * (answer - leader)  # numpy.where waits for each branch
        top = np.maximum(top, row)
    return leader


def cast(tally: Tally, answer: Any, turn: Any, vote: NDArray[Any] | None = None) -> None:
    """Add an answer to each vote, or to some of them by number, in place.

    `turn` is how many answers came before it.
    """
    flat = tally.view()
    flat.shape = (tally.size,)  # raises rather than copies
    at = answer * tally.shape[1] + (np.arange(tally.shape[1]) if vote is None else vote)
    flat[at] = np.maximum(flat.take(at) + _ONE, _ONE + _EARLIEST - turn)


def vote_counts(tally: Tally) -> NDArray[np.int64]:
    """Number of votes for each answer."""
    return tally >> _BITS
