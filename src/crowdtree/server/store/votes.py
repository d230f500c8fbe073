"""How an item came to its label, in short: the votes on each question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict


class Votes(TypedDict):
    """Consecutive votes on one question."""

    question: str
    yes: int
    no: int


def counted_votes(
    names: Sequence[str], answers: Iterable[tuple[int, int | None, str]]
) -> list[Votes]:
    """Sum up how an item came to its label: its questions in order, with their votes.

    Parameters
    ----------
    answers
        Question, value and fate of each answer, in order; only those that counted are summed.

    Examples
    --------
    >>> counted_votes(["q", "r"], [(0, 1, "counted"), (0, 0, "late"), (1, 0, "counted")])
    [{'question': 'q', 'yes': 1, 'no': 0}, {'question': 'r', 'yes': 0, 'no': 1}]
    """
    runs: list[Votes] = []
    for question, value, fate in answers:
        if fate != "counted":
            continue
        if not runs or runs[-1]["question"] != names[question]:
            runs.append({"question": names[question], "yes": 0, "no": 0})
        runs[-1]["yes" if value else "no"] += 1
    return runs
