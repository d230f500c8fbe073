"""How many checks an audit takes: before it begins, and for the rest of one."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from crowdtree.audit.inputs import checked_errors
from crowdtree.audit.kernels import replay
from crowdtree.audit.ledger import Ledger, allowed_wrong
from crowdtree.audit.records import Forecast
from crowdtree.audit.strata import STRENGTH, stratify
from crowdtree.core.arrays import BoolArray, FloatArray, IntArray
from crowdtree.core.checking import check_call, check_share
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.rng import generator

BATCH = 50
"""Least checks of a replay between two choices of the chances."""
REPLAYS = 200


def plan_audit(
    errors: Iterable[float],
    bound: float,
    *,
    confidence: float = 0.95,
    replays: int = REPLAYS,
    seed: int = 0,
    truth: Iterable[bool] | None = None,
    uniform: bool = False,
    known: Iterable[bool] | None = None,
) -> Forecast:
    """Say how many checks an audit takes, if the stated errors are right.

    Parameters
    ----------
    errors
        The stated error of each label.
    bound
        The share of wrong labels that is to be certified.
    confidence
        Of the bound.
    replays
        Simulated audits.
    seed
        Of the simulation.
    truth
        Which labels are wrong, instead of chance by the stated errors.
    uniform
        Draw all items with the same chance and bet without stated errors, to compare.
    known
        Which labels are known to be right: these are never drawn, and count towards the bound.

    Examples
    --------
    >>> found = plan_audit([0.001] * 900 + [0.1] * 100, 0.03)
    >>> found.low <= found.median <= found.high
    True
    """
    check_call(plan_audit, locals())
    stated = checked_errors(list(errors), "errors")
    bound, confidence = check_share("bound", bound), check_share("confidence", confidence)
    if replays < 1:
        raise CrowdtreeError(f"replays: expected a whole number of 1 or more, got {replays}")
    rng = generator(seed)
    said = np.array(stated)
    open_ = np.ones(len(said), dtype=bool) if known is None else ~_flags("known", known, len(said))
    used = np.full(len(said), said.mean()) if uniform else said
    codes = stratify(used)
    total = allowed_wrong(bound, len(said)) + 1
    ledger = _ledger_of(codes, used, open_, 1 - confidence, total)
    fixed = None if truth is None else _flags("truth", truth, len(said))
    cases = [
        np.bincount(
            codes,
            open_ & ((rng.random(len(said)) < said) if fixed is None else fixed),
            minlength=len(ledger.left),
        ).astype(np.float64)
        for _ in range(replays)
    ]
    return _forecast(bound, _replays(ledger, total, cases, uniform, rng))


def forecast_rest(
    ledger: Ledger,
    bound: float,
    total: float,
    state: str,
    replays: int,
    rng: np.random.Generator,
    planned: int = 0,
) -> Forecast:
    """Say how many more checks a bound takes, if the working model of a ledger is right.

    The bound is reached when `total` wrong items are ruled out. In a ledger of losses, mistakes are
    simulated as fewer ones that cost the largest loss of their stratum. `planned` is the planned
    number of checks, 0 for none.
    """

    def errors() -> FloatArray:
        belief = rng.choice(len(ledger.beliefs), p=ledger.beliefs)
        mean, strength = ledger.rates[belief], STRENGTH
        share = rng.beta(
            strength * mean + ledger.found, strength * (1 - mean) + ledger.checked - ledger.found
        )
        return rng.binomial(ledger.counts.astype(np.int64), share).astype(np.float64)

    crossed = [-1]
    if state == "reached":
        crossed = [0]
    elif state != "impossible":
        crossed = _replays(ledger, total, [errors() for _ in range(replays)], False, rng, planned)
    return _forecast(bound, crossed)


def _flags(name: str, values: Iterable[bool], items: int) -> BoolArray:
    """Accept one yes or no per item."""
    flags = np.array([bool(value) for value in values])
    if len(flags) != items:
        raise CrowdtreeError(f"{name}: expected one per label ({items}), got {len(flags)}")
    return flags


def _ledger_of(
    codes: IntArray, errors: FloatArray, open_: BoolArray, risk: float, wanted: int
) -> Ledger:
    """Open a ledger of labels by their strata and stated errors; those not open are right."""
    sizes = np.bincount(codes, open_).astype(np.float64)
    means = np.bincount(codes, errors * open_) / np.maximum(sizes, 1)
    return Ledger(sizes, means, (int((~open_).sum()), 0), risk, wanted)


def _replays(
    ledger: Ledger,
    total: float,
    cases: list[FloatArray],
    uniform: bool,
    rng: np.random.Generator,
    planned: int = 0,
) -> list[int]:
    """Checks until at least `total` wrong items are rejected, in each case; -1 for never."""
    if total - ledger.wrong > ledger.left.sum():
        return [0] * len(cases)
    totals = np.array([float(total - ledger.wrong)])
    logs = np.array([ledger.wealth_against(total) if total <= ledger.whole else ledger.need])
    batch = max(BATCH, ledger.remaining // 100)
    ahead = planned - ledger.checks
    plan = (ahead, ledger.rejecting(total, planned)) if ahead > 0 else (0, -1)
    crossed = replay(
        ledger.counts, np.array(cases), ledger.model, totals, logs, ledger.need, batch, uniform,
        rng, ledger.size, plan,
    )  # fmt: skip
    return [int(check) for check in crossed[:, 0]]


def _forecast(bound: float, crossed: list[int]) -> Forecast:
    checks = np.array([count for count in crossed if count >= 0])
    reached = len(checks) / len(crossed)
    if not len(checks):
        return Forecast(bound, None, None, None, None, 0.0, len(crossed))
    low, median, high = (math.ceil(q) for q in np.quantile(checks, [0.1, 0.5, 0.9]))
    return Forecast(bound, float(checks.mean()), low, median, high, reached, len(crossed))
