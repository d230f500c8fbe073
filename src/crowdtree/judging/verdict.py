"""From intervals to a verdict in plain words, and how many labels it still needs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from crowdtree.judging.intervals import Interval
from crowdtree.judging.question import QuestionAnswers
from crowdtree.judging.result import JOIN, REPLACE, UNCLEAR, WORSE, Against, Verdict

POWER = 1.43  # (z of 97.5 % + z of 80 %) / z of 97.5 %: four in five such studies decide
MAX_NEEDED = 1_000_000


def decide(data: QuestionAnswers, comparisons: Sequence[Against], margin: float) -> Verdict:
    """Say whether a model may replace a person, or join people."""
    usual = data.usual_reference
    main = next((row for row in comparisons if row.reference == usual), None)
    if main is None or main.difference is None:
        return Verdict(UNCLEAR, False, None)
    answer = _answer(main.difference, main.vote_gain, margin)
    if answer != UNCLEAR:
        others = _answer(main.difference_others, main.vote_gain_others, margin)
        return Verdict(answer, others == answer, usual)
    size = data.votes.sum(axis=1)
    each = 1.0 if usual == "gold" else float(size[size > 1].mean())
    gap = max(abs(main.difference.value + margin), 1e-9)
    needed = main.items * each * ((POWER * main.difference.half / gap) ** 2 - 1)
    needs = "known items" if usual == "gold" else "human labels"
    return Verdict(UNCLEAR, False, usual, _rounded(needed) if needed < MAX_NEEDED else None, needs)


def _answer(difference: Interval | None, gain: Interval | None, margin: float) -> str:
    if difference is None:
        return UNCLEAR
    if difference.low > -margin:
        return REPLACE
    if gain is not None and gain.low > 0:
        return JOIN
    return WORSE if difference.high < -margin else UNCLEAR


def _rounded(value: float) -> int:
    """Two digits, upwards; at least 1.

    >>> _rounded(1234.0), _rounded(7.2)
    (1300, 8)
    """
    value = max(value, 1.0)
    step = 10.0 ** max(0, math.floor(math.log10(value)) - 1)
    return int(math.ceil(value / step - 1e-9) * step)
