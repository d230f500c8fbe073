"""Calibrated policies from answers to yes/no questions about items of known class.

A table is more certain about the items that it was learned from than about new ones. So the
calibration is cross-fitted: the table is learned again without each part of the items, a policy
with that table is replayed on the part, and the calibration is fitted to all left-out items
together.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.calibration import FEW, Calibration
from crowdtree.designers import DESIGNERS, design
from crowdtree.errors import CrowdtreeError, CrowdtreeWarning
from crowdtree.evaluation import evaluate
from crowdtree.learning.dependence import mean_of
from crowdtree.learning.judging import Judge
from crowdtree.learning.online import classify
from crowdtree.learning.skills import spread_of
from crowdtree.loss import Decision
from crowdtree.plan import Plan, as_plan
from crowdtree.policy import AdaptivePolicy, PlanPolicy
from crowdtree.policy.calibrating import ReplayedStates, fitted, warn_few
from crowdtree.policy.replay import Replayed, label_steps
from crowdtree.stats import Z95, normal_quantile, wilson_interval

if TYPE_CHECKING:
    from crowdtree.learning.model import Learned
    from crowdtree.problem import Problem
    from crowdtree.tree import Tree
__all__ = [
    "LeftOutError",
    "Optimism",
    "TableDiscount",
    "identification_policy",
    "optimism",
    "plan_error",
]

FOLDS = 5
MOST_ITEMS = 4_000
"""Left-out items that are replayed; more would not change the calibration."""
ENDGAMES = (1, 2, 4, 8, 10_000)
"""Last answers that may be chosen for accuracy; beyond the budget: all."""
MOST_PICKED = 30
"""Beyond this budget the endgame is that of this budget: it matters little there."""
OPTIMISM_SD = 0.5
"""Prior deviation of the log odds by which new items err more often than stated."""
MOSTLY = 0.8
"""Share of questions that items were asked at least, so that a plan can be tried on them."""
MOST_NODES = 20_000
"""Of the search for an optimal tree that is made again only to see how optimistic it is."""
DRAWS = 200
"""Calibrations that an interval of the accuracy is made of."""
ASSUMED = Calibration(dependence=0.1)
"""Calibration where no class is known."""


class _Sheet(NamedTuple):
    """Answers as a matrix: items x questions x repeats, -1 where there is none."""

    values: NDArray[np.int8]
    worker: NDArray[np.int64]
    """The person who gave all answers of an item, -1 where there were several."""


class _Refit(NamedTuple):
    """Items that are left out, and what the others teach.

    `problem` and `yes` have the questions of all items, `taught` those of the others alone.
    """

    held: NDArray[np.intp]
    problem: Problem
    yes: NDArray[np.float64]
    taught: Problem
    posterior: NDArray[np.float64]
    """Of the items that are left out, from all their answers."""


class _Refits(NamedTuple):
    """Refits without each part of the items, and whether the parts are of different people."""

    parts: list[_Refit]
    by_person: bool


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
    """Make the adaptive policy of a learned table, calibrated on items of known class.

    Parameters
    ----------
    learned
        From yes/no questions, best with the gold of at least 20 items.
    target_error, max_answers, strict
        As in :class:`AdaptivePolicy`; `strict` refuses a target that the left-out items do not
        reach on average. Unless `endgame` is given, it is the one with which most left-out items
        are labelled right: at the end of the budget for a target of 0, on the way otherwise.
    repeats
        Most answers to a question on an item; by default as many as the answers have.
    folds
        Parts that are left out in turn. Where every item was answered by one person, persons are
        left out; otherwise items.
    seed
        Seed of the folds.
    **options
        As in :class:`AdaptivePolicy`.
    """
    if learned.kind != "classes":
        raise CrowdtreeError(
            "policy: expected yes/no questions, got one question whose answers are the classes"
        )
    _check_folds(folds)
    sheet = _sheet(learned)
    if repeats is None:
        repeats = sheet.values.shape[2]
    if "calibration" in options:
        raise CrowdtreeError(
            "calibration: is fitted by this function; use AdaptivePolicy to pass one"
        )
    options |= {"max_answers": max_answers, "repeats": repeats}
    refits = _refits(learned, sheet.worker, folds, seed)
    left_out = list(_left_out(learned, sheet, refits, folds, seed, options))
    if left_out and options.get("endgame") is None:
        options["endgame"] = _best_endgame(left_out, max_answers, target_error == 0)
        left_out = [part.changed(endgame=options["endgame"]) for part in left_out]
    policy = AdaptivePolicy(
        learned.problem,
        target_error,
        yes_probability=learned.yes_rate,
        calibration=_calibration(learned.problem.prior, left_out, refits.by_person),
        strict=strict,
        **options,
    )
    policy.warn_if_unreachable()
    return policy


def _check_folds(folds: int) -> None:
    if folds < 2:
        raise CrowdtreeError(f"folds: expected a whole number from 2 on, got {folds}")


class LeftOutError(NamedTuple):
    """Share of left-out items that got a wrong label, with its 95 % interval."""

    value: float
    low: float
    high: float
    items: int


class Optimism(NamedTuple):
    """How much more often than stated new items are labelled wrong, in log odds.

    `doubt` is the standard deviation of what is known of it, and `between` that between people,
    where each item was answered by one person; None otherwise.
    """

    centre: float
    doubt: float
    between: float | None


class _Tried(NamedTuple):
    """Left-out items under the plan that was made without them."""

    wrong: NDArray[np.bool_]
    worker: NDArray[np.int64]
    stated: NDArray[np.float64]
    """Error that the plan states, one number per item."""
    by_person: bool


def plan_error(
    learned: Learned,
    make: Callable[[Problem], Tree | Plan],
    *,
    folds: int = FOLDS,
    seed: int = 0,
) -> LeftOutError:
    """Count the errors of a plan on left-out items, one answer per vote as the answers have them.

    The plan is made again without each part of the items, and tried on that part. It is the error
    of a plan that was made from fewer items; ``learned.credible_interval(plan)`` is about the plan
    at hand.

    Parameters
    ----------
    learned
        From yes/no questions, with gold.
    make
        Makes the plan of a problem, as in ``lambda problem: ct.design(problem)``.
    folds, seed
        As in :func:`identification_policy`.
    """
    if learned.kind != "classes" or not (learned.gold >= 0).any():
        raise CrowdtreeError("plan_error: expected yes/no questions and gold")
    _check_folds(folds)
    wrong = _tried(learned, make, folds, seed).wrong
    low, high = wilson_interval(int(wrong.sum()), len(wrong))
    return LeftOutError(float(wrong.mean()), low, high, len(wrong))


def _tried(
    learned: Learned, make: Callable[[Problem], Tree | Plan], folds: int, seed: int
) -> _Tried:
    sheet = _sheet(learned)
    refits = _refits(learned, sheet.worker, folds, seed)
    found = []
    for held, _, _, taught, _ in refits.parts:
        order = [learned.problem.question_index(name) for name in taught.questions]
        plan = as_plan(make(taught))
        labels = label_steps(PlanPolicy(plan), sheet.values[held][:, order])
        stated = np.full(len(held), evaluate(plan).misclassification)
        found.append((labels != learned.gold[held], sheet.worker[held], stated))
    if not found:
        raise CrowdtreeError("plan_error: expected two items of known class of some class, got one")
    wrong, worker, stated = (np.concatenate(column) for column in zip(*found, strict=True))
    return _Tried(wrong, worker, stated, refits.by_person)


def optimism(learned: Learned, plan: Plan) -> Optimism | None:
    """How far what a plan states is from what left-out items show.

    A designer picks the cells that look best, answers are missing, and people differ: a plan
    errs more often than the table that it was made from says. The plan is made again without each
    part of the items, and what it states is compared with its errors on that part. Nothing is
    known (None) of a plan that no designer made from this table, without 20 items of known class,
    where these were asked only some of the questions (an answer that is absent would then be taken
    for one that cannot be given), or where some of the items alone are too few to make a plan.
    """
    known = learned.gold >= 0
    if learned.kind != "classes" or known.sum() < FEW:
        return None
    make = _maker(learned, plan)
    if make is None or (_sheet(learned).values[known, :, 0] >= 0).mean() < MOSTLY:
        return None
    try:
        wrong, worker, stated, person = _tried(learned, make, FOLDS, 0)
    except CrowdtreeError:  # a part of the items leaves no question that splits the classes
        return None
    who = np.unique(worker, return_inverse=True)[1] if person else np.zeros(len(wrong), np.intp)
    expected = np.clip(np.bincount(who, stated) / np.bincount(who), 1e-6, 1 - 1e-6)
    seen, variance = _log_odds(wrong, who, expected)
    gap = seen - np.log(expected) + np.log1p(-expected)
    if person:
        other = Another.of(gap, variance)
        return Optimism(other.centre, other.doubt, other.between)
    kept = OPTIMISM_SD**2 / (OPTIMISM_SD**2 + variance[0])
    return Optimism(float(kept * gap[0]), float(np.sqrt(kept * variance[0])), None)


def _maker(learned: Learned, plan: Plan) -> Callable[[Problem], Plan] | None:
    """What made the plan: its designer or a frontier, with at most as many votes as answers.

    A frontier is made again by the greedy method, and its point is the one that asks as much. A
    tree for upper errors is none of the designers' (None): one for the errors themselves would be
    another tree.
    """
    there, method = plan.tree.problem.worker_error, plan.tree.method
    if method.endswith(" for upper errors") or not np.allclose(
        there, learned.problem.worker_error, atol=1e-6
    ):
        return None
    votes = min(_sheet(learned).values.shape[2], int(plan.votes.max()))
    votes -= (votes + 1) % 2  # a majority is of an odd number
    if plan.method.startswith("frontier"):
        wanted = min(plan.planned_answers, votes * as_plan(plan.tree).planned_answers)
        return lambda taught: _point(taught, votes, wanted)
    if method not in DESIGNERS:
        return None
    options: dict[str, Any] = {"node_limit": MOST_NODES} if method == "optimal" else {}

    def make(taught: Problem) -> Plan:
        tree = design(taught, method, allow_groups=True, **options)
        return Plan(tree, np.full(tree.n_nodes, votes))

    return make


def _point(problem: Problem, votes: int, wanted: float) -> Plan:
    """Plan of a frontier that asks about as much as wanted."""
    from crowdtree.frontiers import frontier

    points = frontier(problem, method="greedy", max_votes=votes, allow_groups=True).points
    return min(points, key=lambda point: abs(point.planned_answers - wanted)).plan


@dataclass(frozen=True, eq=False)
class TableDiscount:
    """How far the evidence about an item of a table is discounted before it is stated.

    The counterpart of :class:`crowdtree.learning.dependence.Worth`, which is about answers to one
    question. `log_posterior`, `answers` and `truth` are those of items of known class, whose class
    the posteriors did not use; `spread` is that of the scale between people, where each item was
    answered by one.
    """

    log_prior: NDArray[np.float64]
    log_posterior: NDArray[np.float64]
    answers: NDArray[np.int64]
    truth: NDArray[np.int64]
    spread: float = 0.0
    weight: NDArray[np.float64] | None = None
    """Weight of each item; None where all are alike."""

    @classmethod
    def of(cls, learned: Learned) -> TableDiscount:
        """From the known items of a result, each left out of the table that it is tried on."""
        prior = learned.problem.prior
        log_prior = np.log(prior / prior.sum())
        refits = _refits(learned, _sheet(learned).worker, FOLDS, 0)
        nothing = np.zeros((0, len(prior)))
        held = np.concatenate([[], *(part.held for part in refits.parts)]).astype(np.intp)
        posterior = np.concatenate([nothing, *(part.posterior for part in refits.parts)])
        count = np.diff(learned.answers.start)[held]
        truth = learned.gold[held].astype(np.int64)
        weight = None if learned.gold_weight is None else learned.gold_weight[held]
        made = cls(log_prior, _log(posterior), count, truth, weight=weight)
        if not refits.by_person:
            return made
        person = np.unique(_sheet(learned).worker[held], return_inverse=True)[1]
        alone = made.calibration.scale_of(
            log_prior, made.log_posterior, count, made.truth, np.ones(len(held)), person
        )
        return replace(made, spread=Another.of(*alone).sd)

    @property
    def known(self) -> int:
        """Items of known class behind it."""
        return len(self.truth)

    @cached_property
    def calibration(self) -> Calibration:
        """What is stated by."""
        if not self.known:
            return ASSUMED
        rows = (self.log_posterior, self.answers, self.truth)
        made = Calibration.fit(self.log_prior, *rows, self.weight)
        return replace(made, spread=self.spread)

    def updated(
        self,
        posterior: NDArray[np.float64],
        answers: NDArray[Any],
        truth: NDArray[Any],
        weight: NDArray[np.float64] | None = None,
    ) -> TableDiscount:
        """After more items of known class, whose class the posteriors did not use."""
        both = None
        if weight is not None or self.weight is not None:
            parts = ((self.weight, self.truth), (weight, truth))
            both = np.concatenate([np.ones(len(t)) if w is None else w for w, t in parts])
        return TableDiscount(
            self.log_prior,
            np.concatenate([self.log_posterior, _log(posterior)]),
            np.concatenate([self.answers, answers]),
            np.concatenate([self.truth, truth]),
            self.spread,
            both,
        )

    def stated(self, posterior: NDArray[np.float64], answers: NDArray[Any]) -> NDArray[np.float64]:
        """Probabilities to state."""
        return self._discounted(self.calibration, _log(posterior), answers)

    def judged(
        self,
        posterior: NDArray[np.float64],
        answers: NDArray[Any],
        level: float,
        judge: Judge,
        made: Decision,
    ) -> tuple[float, float, float]:
        """Mean of what a judge says of the labels of some items, and its interval.

        From 20 known items on it is what is stated about these items, corrected by how far that is
        off on the known ones: it then holds whatever the calibration is worth. Below, and where
        each item was answered by one person, it is an average over what the calibration may be.
        """
        if self.known < FEW or self.spread:
            return self._averaged(posterior, answers, level, judge, made)
        stated, known = (
            self._discounted(self.calibration, *rows)
            for rows in ((_log(posterior), answers), (self.log_posterior, self.answers))
        )
        value, variance = judge.expected(stated, made)
        labelled = judge.decide(self.log_posterior, known)
        gap = judge.found(self.truth, labelled) - judge.expected(known, labelled)[0]
        much = np.ones(len(gap)) if self.weight is None else self.weight
        count = float(much.sum())
        mean = float(value.mean() + much @ gap / count)
        # one more item, as off as any
        doubt = (float(much @ gap**2) + 0.25 * judge.most**2) / (count + 1) / count
        chance = float(variance.sum()) / len(value) ** 2
        half = normal_quantile(level) * float(np.sqrt(doubt + chance))
        low, mean, high = np.clip([mean - half, mean, mean + half], 0, judge.most).tolist()
        return mean, low, high

    def _averaged(
        self,
        posterior: NDArray[np.float64],
        answers: NDArray[Any],
        level: float,
        judge: Judge,
        made: Decision,
    ) -> tuple[float, float, float]:
        rng = np.random.default_rng(0)
        if len(posterior) > MOST_ITEMS:
            some = rng.choice(len(posterior), MOST_ITEMS, replace=False)
            posterior, answers = posterior[some], answers[some]
            made = Decision(made.label[some], made.risk[some], made.referred[some])
        draws = Calibration.draws(
            self.log_prior, self.log_posterior, self.answers, self.truth, DRAWS
        )
        factor = np.exp(self.spread * rng.standard_normal(DRAWS)).tolist()  # another person's scale
        logs = _log(posterior)
        values = (
            judge.expected(
                self._discounted(replace(draw, scale=min(draw.scale * much, 100.0)), logs, answers),
                made,
            )
            for draw, much in zip(draws, factor, strict=True)
        )
        return mean_of(values, np.ones(DRAWS), level, judge.most)

    def _discounted(
        self, calibration: Calibration, log_posterior: NDArray[np.float64], answers: NDArray[Any]
    ) -> NDArray[np.float64]:
        """Stated probability of each class."""
        return np.exp(calibration.discounted(self.log_prior, log_posterior, answers))


def _log(posterior: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.log(np.maximum(posterior, 1e-300))


def _sheet(learned: Learned) -> _Sheet:
    a = learned.answers
    task, question = a.task, a.question_column()
    order = np.lexsort((question, task))
    cell = task[order].astype(np.int64) * len(a.questions) + question[order]
    first = np.concatenate([[True], cell[1:] != cell[:-1]])
    start = np.flatnonzero(first)
    turn = np.arange(len(cell)) - np.repeat(start, np.diff(np.append(start, len(cell))))
    places = np.array([learned.problem.question_index(name) for name in a.questions])
    values = np.full((a.n_tasks, learned.problem.n_questions, int(turn.max()) + 1), -1, np.int8)
    values[task[order], places[question[order]], turn] = a.label[order]
    low, high = (np.full(a.n_tasks, fill, np.int64) for fill in (a.n_workers, -1))
    np.minimum.at(low, task, a.worker)
    np.maximum.at(high, task, a.worker)
    return _Sheet(values, np.where(low == high, low, -1))


def _left_out(
    learned: Learned,
    sheet: _Sheet,
    refits: _Refits,
    folds: int,
    seed: int,
    options: dict[str, Any],
) -> Iterator[_LeftOut]:
    rng = np.random.default_rng(seed)
    for held, problem, yes, _, _ in refits.parts:
        some = held
        if len(held) > MOST_ITEMS // folds:
            some = rng.choice(held, MOST_ITEMS // folds, replace=False)
        policy = AdaptivePolicy(problem, 0.0, yes_probability=yes, strict=False, **options)
        yield _LeftOut(policy, sheet.values[some], learned.gold[some], sheet.worker[some])


def _refits(learned: Learned, worker: NDArray[np.int64], folds: int, seed: int) -> _Refits:
    known: dict[tuple[int, int], _Refits] = learned.refits
    if (folds, seed) not in known:
        rng = np.random.default_rng(seed)
        parts, by_person = _parts(learned.gold, worker, folds, rng)
        known[folds, seed] = _Refits([_without(learned, held) for held in parts], by_person)
    return known[folds, seed]


def _best_endgame(left_out: list[_LeftOut], max_answers: int, at_the_end: bool) -> int:
    """How many of the last answers to choose for accuracy: most left-out items right.

    Where a target ends most items, the last answers of the budget are seldom asked: all or one.
    """
    budget = min(max_answers, MOST_PICKED)
    ways = sorted({min(way, budget) for way in (ENDGAMES if at_the_end else (1, budget))})
    right = []
    for way in ways:
        tried = [part.changed(endgame=way, max_answers=budget) for part in left_out]
        right.append(sum(part.right(at_the_end) for part in tried))
    best = ways[int(np.argmax(right))]
    return max_answers if best == budget else best


def _calibration(
    prior: NDArray[np.float64], left_out: list[_LeftOut], by_person: bool
) -> Calibration:
    items = sum(len(part.truth) for part in left_out)
    warn_few(items, "policy")
    if not items:
        return ASSUMED
    parts = [(part.policy.replay(part.values), part.truth) for part in left_out]
    log_prior = np.log(prior / prior.sum())
    made = fitted(log_prior, parts)
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
    log_prior: NDArray[np.float64],
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
    errors = _log_odds(wrong, ReplayedStates.last(named).of_item, float(wrong.mean()))
    error = Another.of(*errors)
    low, high = (float(_sigmoid(error.centre + side * error.sd)) for side in (-Z95, Z95))
    reached = (low + high) / 2, (high - low) / 2
    return replace(made, spread=Another.of(*alone).sd, reached=reached)


class Another(NamedTuple):
    """A number that differs between people: that of one more person.

    Examples
    --------
    >>> other = Another.of(np.array([-0.1, 0.0, 0.1]), np.full(3, 0.01))
    >>> abs(other.centre) < 1e-9, 0.1 < other.doubt < other.sd
    (True, True)
    """

    centre: float
    doubt: float
    """Standard deviation of the centre."""
    between: float
    """Standard deviation between people, inflated where few people make it uncertain."""

    @classmethod
    def of(cls, value: NDArray[np.float64], variance: NDArray[np.float64]) -> Another:
        """From the number of each person, which is known up to a variance."""
        spread, doubt = spread_of(value, 1 / variance)
        weight = 1 / (spread**2 + variance)
        centre = float(weight @ value / weight.sum())
        return cls(centre, float(weight.sum() ** -0.5), float(spread * np.exp(doubt)))

    @property
    def sd(self) -> float:
        """Standard deviation of the number of one more person."""
        return float(np.hypot(self.doubt, self.between))


def _sigmoid(value: Any) -> Any:
    return 1 / (1 + np.exp(-value))


def _log_odds(
    wrong: NDArray[np.bool_], who: NDArray[np.intp], expected: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Log odds of an error per person, with one more item that errs as expected; variances."""
    count = np.bincount(who) + 1.0
    share = (np.bincount(who, wrong) + expected) / count
    return np.log(share) - np.log1p(-share), 1 / (count * share * (1 - share))


def _parts(
    gold: NDArray[np.int32], worker: NDArray[np.int64], folds: int, rng: np.random.Generator
) -> tuple[list[NDArray[np.intp]], bool]:
    """Items to leave out in turn, and whether those of a person are left out together.

    Every class keeps an item, so some may never be left out. Where leaving out people would lose a
    class, or an item was answered by several, items are left out.
    """
    known = np.flatnonzero(gold >= 0)
    people = rng.permutation(np.unique(worker[known]))
    if len(people) > 1 and people.min() >= 0:
        groups = [known[np.isin(worker[known], people[k::folds])] for k in range(folds)]
        kept = [np.setdiff1d(np.unique(gold[known]), gold[np.setdiff1d(known, g)]) for g in groups]
        if not any(len(lost) for lost in kept):
            return [group for group in groups if len(group)], True
    fold = np.full(len(gold), -1)
    for cls in np.unique(gold[known]):
        mine = rng.permutation(np.flatnonzero(gold == cls))
        if len(mine) > 1:
            fold[mine] = (np.arange(len(mine)) + cls) % folds
            if len(np.unique(fold[mine])) == 1:
                fold[mine[0]] = -1
    return [np.flatnonzero(fold == k) for k in range(folds) if (fold == k).any()], False


def _without(learned: Learned, held: NDArray[np.intp]) -> _Refit:
    """The table that the other items teach, with the questions in the same order."""
    a = learned.answers
    stays = np.ones(a.n_tasks, bool)
    stays[held] = False
    question = np.array(a.questions)[a.question_column()]

    def frame(rows: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
        worker = a.workers[a.worker[rows]].astype(str)
        columns = {"task": a.task, "question": question, "label": a.label}
        return {"worker": worker} | {name: column[rows] for name, column in columns.items()}

    known = np.flatnonzero(stays & (learned.gold >= 0))
    gold = {str(i): learned.classes[learned.gold[i]] for i in known.tolist()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdtreeWarning)
        rest = learned.refit(frame(stays[a.task]), gold)
        # a question that only the left-out items were asked is taken as learned with them
        yes = learned.yes_rate.copy()
        for place, name in enumerate(rest.problem.questions):
            yes[learned.problem.question_index(name)] = rest.yes_rate[place]
        problem = learned.problem.replace(prior=rest.problem.prior)
        posterior = np.tile(rest.problem.prior / rest.problem.prior.sum(), (len(held), 1))
        told = ~stays[a.task] & np.isin(question, rest.problem.questions)
        if told.any():
            names, found = classify(rest, frame(told), plain=True)
            posterior[np.searchsorted(held, np.array(names, dtype=np.int64))] = found
    return _Refit(held, problem, yes, rest.problem, posterior)
