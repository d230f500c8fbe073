"""From intervals to a verdict in plain words, and how many labels it still needs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from crowdtree.judging.intervals import Interval
from crowdtree.judging.question import QuestionAnswers
from crowdtree.judging.result import JOIN, REPLACE, UNCLEAR, WORSE, Against, Verdict
from crowdtree.text import rounded_up

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
    more = math.ceil(rounded_up(max(needed, 1.0))) if needed < MAX_NEEDED else None
    return Verdict(UNCLEAR, False, usual, more, needs)


def _answer(difference: Interval | None, gain: Interval | None, margin: float) -> str:
    if difference is None:
        return UNCLEAR
    if difference.low > -margin:
        return REPLACE
    if gain is not None and gain.low > 0:
        return JOIN
    return WORSE if difference.high < -margin else UNCLEAR
