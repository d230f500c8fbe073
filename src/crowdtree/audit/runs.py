"""Several audits of one campaign: the risk that they share, and the weights of their checks."""

from __future__ import annotations

from collections.abc import Sequence

FIRST_SHARE = 0.75
"""Share of the risk that is left which a run of audits takes."""


def run_confidence(confidence: float, earlier: int) -> float:
    """Confidence of one run, so that all runs together keep `confidence`.

    Labels that change need a new run, because an audit bounds the error of fixed labels. Every run
    takes three quarters of the risk that the runs before it have left, however many there will be.

    `confidence`: of the statement that no run certifies a bound that does not hold.

    >>> [round(1 - run_confidence(0.95, earlier), 6) for earlier in range(3)]
    [0.0375, 0.009375, 0.002344]
    """
    return 1 - (1 - confidence) * FIRST_SHARE * (1 - FIRST_SHARE) ** earlier


def draw_weights(chances: Sequence[float], items: int) -> list[float]:
    """Weights of items that were drawn without replacement, with chances that changed.

    The expected weighted sum of any number that items have is its sum over all of them (Farquhar,
    Gal and Rainforth 2021). Items that were drawn with equal chances have equal weights.

    >>> draw_weights([1 / 4, 1 / 3], 4), draw_weights([0.5, 0.2], 4)
    ([2.0, 2.0], [1.333..., 3.333...])
    """
    drawn, found = len(chances), []
    for place, chance in enumerate(chances):
        rest = items - place
        extra = (items - drawn) / (rest - 1) * (1 / (rest * chance) - 1) if rest > 1 else 0.0
        found.append(items / drawn * (1 + extra))
    return found
