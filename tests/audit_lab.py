"""Tiny audits played out in every way: all draws, all results, with their exact probabilities."""

from __future__ import annotations

import copy

import numpy as np

from crowdtree.audit import kernels
from crowdtree.audit.ledger import Ledger

ALPHA = 0.05


def above_wealth(ledger: Ledger, totals: np.ndarray | None = None) -> np.ndarray:
    """Log wealth against at least as many wrong items as each total (or some of them)."""
    tested = ledger.totals if totals is None else totals
    return np.array([ledger.wealth_against(total) for total in tested])


def below_wealth(ledger: Ledger, ends: np.ndarray | None = None) -> np.ndarray:
    """Log wealth against at most as many wrong items as the end of each cell (or some of them)."""
    indexes = (
        range(len(ledger.ends)) if ends is None else np.flatnonzero(np.isin(ledger.ends, ends))
    )
    return np.array([ledger.below.log_wealth(index) for index in indexes])


def ways(ledger: Ledger, bad: tuple[int, ...], share: float, power: float, batch: int = 1):
    """Yield probability and ledger of every state of an audit, in all its orders.

    `bad` are the wrong items of each stratum; chances lean by what is known at the last sheet.
    """
    start = ledger.expected.copy()
    yield 1.0, ledger
    yield from _after(1.0, ledger, list(bad), share, power, batch, start)


def _after(chance, ledger, bad, share, power, batch, seen):
    if not ledger.remaining:
        return
    if ledger.checks % batch == 0:
        seen = ledger.expected.copy()
    weights = kernels.lean(ledger.left, seen, share, power)
    for stratum in range(len(bad)):
        left = ledger.left[stratum]
        for error, count in ((True, bad[stratum]), (False, left - bad[stratum])):
            if left < 0.5 or count < 0.5:
                continue
            after = copy.deepcopy(ledger)
            after.take(weights, stratum, error)
            rest = [b - (g == stratum and error) for g, b in enumerate(bad)]
            here = chance * weights[stratum] / weights.sum() * count / left
            yield here, after
            yield from _after(here, after, rest, share, power, batch, seen)
