"""Calibrated policies from answers to questions about items of known class.

The calibration is cross-fitted: the table is learned again without each part of the items, a policy
with that table is replayed on the part, and all left-out items together give the calibration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.calibration import Calibration
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.stats import Z95
from crowdtree.learning.refits import (
    FOLDS,
    Another,
    Refits,
    Sheet,
    log_odds,
    refits_of,
    sheet_of,
)
from crowdtree.learning.source_policy import source_policy
from crowdtree.learning.table_discount import ASSUMED
from crowdtree.policies import AdaptivePolicy
from crowdtree.policies.calibrating import (
    ReplayedStates,
    fitted,
    table_key,
    warn_few,
    with_tail,
)
from crowdtree.policies.replay import Replayed

if TYPE_CHECKING:
    from crowdtree.core.problem import Problem
    from crowdtree.learning.model import Learned

MAX_ITEMS = 4_000
"""Left-out items that are replayed; more would not change the calibration."""
ENDGAMES = (1, 2, 4, 8, 10_000)
"""Last answers that may be chosen for accuracy; beyond the budget: all."""
MAX_PICKED = 30
"""Beyond this budget the endgame is that of this budget: it matters little there."""
MAX_TRIED = 20_000_000
"""Items times cells of the table that the endgame is chosen by, at most."""
MAX_REPEATED = 1_000_000
"""Cells (item, question) of a part that the dependence of repeats is learned from."""
_DEPENDENCES = np.linspace(0.01, 0.99, 50)
_PRIOR_SIZE = 6.0  # of a symmetric Beta: standard deviation 0.19, as between the public crowds


class _LeftOut(NamedTuple):
    """Items that were left out, and the policy of the table that the others teach."""

    policy: AdaptivePolicy
    values: NDArray[np.int8]
    truth: NDArray[np.int32]
    worker: NDArray[np.int64]

    def changed(self, **changes: Any) -> _LeftOut:
        return self._replace(policy=self.policy.changed(**changes))

    def right(self, at_the_end: bool) -> float:
        """Items that the plain posterior labels right, at the end or on the whole way."""
        states = self.policy.replay(self.values)
        if at_the_end:
            states = states.last()
        good = np.argmax(states.log_posterior, axis=1) == self.truth[states.item]
        return float(states.weight @ good)


def identification_policy(
    learned: Learned,
    target_error: float = 0.05,
    max_answers: int = 100,
    *,
    repeats: int | None = None,
    folds: int = FOLDS,
    strict: bool = False,
    seed: int = 0,
    **options: Any,
) -> AdaptivePolicy:
    """Make the adaptive policy of a learned table, calibrated on items of known class (20 or more).

    Options are those of :class:`AdaptivePolicy`. `strict` refuses a target that the left-out items
    do not reach on average. `endgame` is by default the one with which most left-out items are
    labelled right: at the end of the budget for a target of 0, on the way otherwise. `repeats` is
    by default as many answers to a question as items have; its `shared_difficulty` is learned from
    them, or 0.5. `folds` parts are left out in turn: persons, where every item was answered by one,
    else items.
    """
    if learned.kind != "classes" or learned.labelling is not None:
        options |= {} if repeats is None else {"repeats": repeats}
        return source_policy(learned, target_error, max_answers, strict, **options)
    sheet = sheet_of(learned)
    if repeats is None:
        repeats = sheet.values.shape[2]
    if "calibration" in options:
        raise CrowdtreeError(
            "calibration: is fitted by this function; use AdaptivePolicy to pass one"
        )
    options |= {"max_answers": max_answers, "repeats": repeats}
    refits = refits_of(learned, sheet.worker, folds, seed)
    if options.get("shared_difficulty") is None and repeats > 1:
        options["shared_difficulty"] = repeat_dependence(learned, sheet, refits)
    left_out = list(_left_out(learned, sheet, refits, folds, seed, options))
    if left_out and options.get("endgame") is None:
        options["endgame"] = _best_endgame(left_out, max_answers, target_error == 0)
        left_out = [part.changed(endgame=options["endgame"]) for part in left_out]
    policy = AdaptivePolicy(
        learned.problem,
        target_error,
        **_open_cells(learned.problem, learned.table),
        calibration=_calibration(learned.problem, left_out, refits.by_person),
        strict=strict,
        **options,
    )
    policy.warn_if_unreachable()
    return policy


def _left_out(
    learned: Learned,
    sheet: Sheet,
    refits: Refits,
    folds: int,
    seed: int,
    options: dict[str, Any],
) -> Iterator[_LeftOut]:
    rng = np.random.default_rng(seed)
    for held, problem, table, _ in refits.parts:
        some = held
        if len(held) > MAX_ITEMS // folds:
            some = rng.choice(held, MAX_ITEMS // folds, replace=False)
        given = options | _open_cells(problem, table)
        policy = AdaptivePolicy(problem, 0.0, strict=False, **given)
        yield _LeftOut(policy, sheet.values[some], learned.gold[some], sheet.worker[some])


def _open_cells(problem: Problem, table: FloatArray) -> dict[str, Any]:
    """Rates of a policy's open cells, where the problem does not hold the table itself."""
    return {"table": table} if problem.table is None else {}


def _best_endgame(left_out: list[_LeftOut], max_answers: int, at_the_end: bool) -> int:
    """How many of the last answers to choose for accuracy: most left-out items right.

    Where a target ends most items, the last answers of the budget are seldom asked: all or one.
    """
    budget = min(max_answers, MAX_PICKED)
    problem = left_out[0].policy.problem
    most = max(1, MAX_TRIED // (problem.outcome.size * len(left_out)))
    left_out = [p._replace(values=p.values[:most], truth=p.truth[:most]) for p in left_out]
    ways = sorted({min(way, budget) for way in (ENDGAMES if at_the_end else (1, budget))})
    right = []
    for way in ways:
        tried = [part.changed(endgame=way, max_answers=budget) for part in left_out]
        right.append(sum(part.right(at_the_end) for part in tried))
    best = ways[int(np.argmax(right))]
    return max_answers if best == budget else best


def repeat_dependence(learned: Learned, sheet: Sheet, refits: Refits) -> float:
    """Correlation of several people's answers to one question about one item.

    The posterior mean, given how often the left-out items got each answer; the prior
    (docs/model.md, section 13) where no question was answered twice.
    """
    from scipy.special import gammaln

    value = (_PRIOR_SIZE / 2 - 1) * np.log(_DEPENDENCES * (1 - _DEPENDENCES))
    for part in refits.parts:
        some = part.held[: MAX_REPEATED // max(1, part.problem.n_questions)]
        given = (sheet.values[some] >= 0).sum(axis=2)
        item, question = np.nonzero(given > 1)
        chance = part.table[:, question, learned.gold[some[item]]]
        chance = np.clip(chance, 1e-3, 1 - 1e-3)
        chance /= chance.sum(axis=0)
        said = sheet.values[some[item], question] == np.arange(len(chance))[:, None, None]
        count = said.sum(axis=2)
        for place, rho in enumerate(_DEPENDENCES):
            alpha, size = chance * (1 - rho) / rho, (1 - rho) / rho
            value[place] += (gammaln(alpha + count) - gammaln(alpha)).sum()
            value[place] -= (gammaln(size + count.sum(axis=0)) - gammaln(size)).sum()
    chance = np.exp(value - value.max())
    return float(chance @ _DEPENDENCES / chance.sum())


def _calibration(problem: Problem, left_out: list[_LeftOut], by_person: bool) -> Calibration:
    items = sum(len(part.truth) for part in left_out)
    warn_few(items, "policy")
    if not items:
        return ASSUMED
    parts = [(part.policy.replay(part.values), part.truth) for part in left_out]
    log_prior = np.log(problem.prior / problem.prior.sum())
    made = replace(fitted(log_prior, parts), table=table_key(problem))
    if not by_person:
        return made
    person = np.unique(np.concatenate([part.worker for part in left_out]))
    named = [
        (replayed, np.searchsorted(person, part.worker))
        for part, (replayed, _) in zip(left_out, parts, strict=True)
    ]
    return _for_another_person(made, log_prior, parts, named)


def _for_another_person(
    made: Calibration,
    log_prior: FloatArray,
    parts: list[tuple[Replayed, NDArray[np.int32]]],
    named: list[tuple[Replayed, NDArray[np.intp]]],
) -> Calibration:
    """Add how much the people who were left out in turn differ: the next one is none of them.

    `parts` has the class of each item, `named` the number of the person who answered.
    """
    states, last = ReplayedStates.of(parts), ReplayedStates.last(parts)
    alone = made.scale_of(
        log_prior, states.log_posterior, states.answers, states.of_item, states.weight,
        ReplayedStates.of(named).of_item,
    )  # fmt: skip
    stated = made.discounted(log_prior, last.log_posterior, last.answers)
    wrong = stated.argmax(axis=1) != last.of_item
    few = 0.5 / len(wrong)  # half an item, where none or all are wrong
    expected = float(np.clip(wrong.mean(), few, 1 - few))
    errors = log_odds(wrong, ReplayedStates.last(named).of_item, expected)
    error = Another.of(*errors)
    odds = np.array([-Z95, Z95]) * error.sd + error.centre
    low, high = (1 / (1 + np.exp(-odds))).tolist()
    reached = (low + high) / 2, (high - low) / 2
    made = replace(made, spread=Another.of(*alone).sd, reached=reached)
    return with_tail(made, log_prior, parts, never_below=True)
