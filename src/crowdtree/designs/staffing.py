"""Staffing: how many workers vote at each node of a tree (docs/model.md, section 7).

``STAFFERS`` maps a method's name to its function. A budget is either *workers* (each belongs to
one node; beyond the one that every node has) or *answers* (expected answers per item).
"""

from __future__ import annotations

import heapq
import itertools
import math
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from crowdtree.core import scores, voting
from crowdtree.core.arrays import FloatArray, IntArray
from crowdtree.core.checking import check_call, named_options
from crowdtree.core.errors import CrowdtreeError, CrowdtreeWarning
from crowdtree.core.evaluation import evaluate
from crowdtree.core.fixed_plan import Plan, Pool, as_plan
from crowdtree.core.outcomes import DASH, quoted
from crowdtree.core.rng import generator
from crowdtree.core.source_checks import answered_once
from crowdtree.core.tree import Tree
from crowdtree.core.votes import VOTES, CellVotes

MAX_WORKERS = 10_000_000
LOOK_AHEAD, MAX_ENVELOPE = 32, 256
"""Votes up to which the error of a question with several answers is followed: at first, at most."""
CAUTIONS = (1.0, 0.5, 0.0)
"""Powers of the loss at stake with which an error may weigh. The additive risk, the first, is a
poor guide where votes are so few that the best label of many leaves is another than the tree's.
"""


@named_options
def staff(
    tree: Tree,
    workers: int | None = None,
    method: str = "marginal",
    *,
    answers: float | None = None,
    pool: Pool = "node",
    rng: np.random.Generator | int | None = None,
) -> Plan:
    """Decide how many workers vote on each question of a tree.

    Parameters
    ----------
    tree
        The tree.
    workers
        Extra workers beyond the one that every node has (the paper's ``2K``). Methods that add
        them in pairs leave an odd one out, with a warning.
    method
        ``"marginal"``: two more votes where the additive error falls most per unit of budget.
        While every worker error is at most one half, that is optimal for the additive error with
        a budget of `workers`, and with one of `answers` up to the first pair that no longer fits
        (Fox 1966); from there on the cheaper pairs that fit are an approximation. Where a question
        has more than two answers, its votes grow by steps between corners of the convex envelope
        of its error (as far as 32 votes, or twice as many as a node has, show it): optimal at the
        budgets where a step ends, an approximation between;
        ``"paper-fm"`` and ``"paper-fc"``: Algorithm 1 of the paper; ``"single"``: all extra
        workers to one random node; ``"random"``: each extra worker to a random node;
        ``"everyone"``: all workers answer every question. Where mistakes have different costs,
        ``"marginal"`` weighs an error with the largest loss that its wrong branch can cause, which
        is optimal for the additive risk in the same sense; with the square root of that loss; and
        not at all. The plan of the least exact risk is returned. The other methods weigh nothing.
    answers
        In place of `workers`: the expected answers allowed per item, on its error-free path.
    pool
        ``"question"`` lets one team serve all nodes that ask the same question.
    rng
        Source of randomness or its seed, for ``"single"`` and ``"random"``.

    Returns
    -------
    Plan

    Examples
    --------
    >>> import crowdtree as ct
    >>> tree = ct.design(ct.example("table1").replace(worker_error=0.2))
    >>> plan = ct.staff(tree, workers=20)
    >>> plan.votes.tolist(), round(ct.evaluate(plan).misclassification, 6)
    ([9, 7, 5, 3], 0.052922)
    """
    tree = as_plan(tree).tree
    check_call(staff, locals())
    staffer = STAFFERS.get(method)
    if staffer is None:
        raise CrowdtreeError(f"method: {method!r} is unknown; choose from {', '.join(STAFFERS)}")
    weighs = method == "marginal" and tree.problem.loss is not None
    ways = [_Teams(tree, pool, caution) for caution in (CAUTIONS if weighs else (0.0,))]
    budgets = [_Budget.of(workers, answers, teams) for teams in ways]
    in_pairs = method not in ("random", "everyone") and tree.problem.is_yes_no
    if in_pairs and workers is not None and workers % 2:
        warnings.warn(
            f"workers: {method!r} adds workers in pairs, so that votes stay odd: uses "
            f"{workers - 1} of {workers}",
            CrowdtreeWarning,
            stacklevel=2,
        )
    plans = []
    for teams, budget in zip(ways, budgets, strict=True):
        votes = staffer(teams, budget, generator(rng))
        plans.append(Plan(tree, votes[teams.of_node], method=method, pool=pool))
    best = plans[0] if len(plans) == 1 else min(plans, key=lambda plan: evaluate(plan).risk)
    _refuse_repeats(best)
    return best


def _refuse_repeats(plan: Plan) -> None:
    """Raise where several votes go to a source that gives no new answer when asked again."""
    problem = plan.tree.problem
    whole = problem.whole or problem  # options of a tree are numbered source by source
    once = answered_once(whole)
    if once is None:
        return
    for node in np.flatnonzero(once[plan.tree.question] & (plan.votes > 1)).tolist():
        question = int(plan.tree.question[node])
        source = whole.sources[question // whole.n_questions]
        raise CrowdtreeError(
            f"staff: {quoted(source.name)} gives no new answer when asked again, so "
            f"{plan.votes[node]} votes at {quoted(problem.questions[question])} say no more than "
            "one; use crowdtree plan --tree (ct.plan), which asks it once"
        )


class _Teams:
    """Teams of voters: one per node, or one per question when pooled.

    Rows are the (node, class) pairs on the error-free path, sorted by team and level, with the
    share of items that they hold; classes with ``-`` have no error but are paid for. A *part* is
    what one team does in one level: a pooled team may have several.
    """

    def __init__(self, tree: Tree, pool: Pool, caution: float = 1.0) -> None:
        self.tree = tree
        self.dependence = tree.problem.dependence
        if pool == "question":
            _, of_node = np.unique(tree.question, return_inverse=True)
            # number the teams by their first node, so that ties go to the earliest
            first = np.full(of_node.max() + 1, tree.n_nodes)
            np.minimum.at(first, of_node, np.arange(tree.n_nodes))
            of_node = np.argsort(np.argsort(first))[of_node]
        else:
            of_node = np.arange(tree.n_nodes)
        self.of_node: NDArray[np.intp] = of_node
        self.count = int(of_node.max()) + 1
        self.load = np.asarray(np.bincount(of_node, weights=tree.share), dtype=np.float64)
        """Expected answers per item and vote of the team."""
        node = np.concatenate([step.node for step in tree.steps])
        cls = np.concatenate([step.cls for step in tree.steps])
        error = tree.problem.worker_error[tree.question[node], cls]
        dash = np.concatenate([step.answer for step in tree.steps]) == DASH
        share = np.concatenate([step.share for step in tree.steps])
        if tree.problem.loss is not None:  # a mistake weighs the largest loss that it can cause
            share = share * np.concatenate(tree.stakes) ** caution
        order = np.lexsort((node, of_node[node]))  # nodes are numbered level by level
        node = node[order]
        self.row_cell = tree.question[node], cls[order]
        self._errors: dict[bytes, FloatArray] = {}
        self.row_error = error[order]
        self.row_share = np.where(dash, 0.0, share)[order]
        self.row_start = np.searchsorted(of_node[node], np.arange(self.count + 1))
        part = np.stack([of_node[node], tree.level[node]])
        self.part_start = np.flatnonzero(np.diff(part, axis=1, prepend=-1).any(axis=0))
        team, self.part_level = part[:, self.part_start]
        self.part_node = node[self.part_start]
        """Leftmost node of each part."""
        self.first_part = np.searchsorted(team, np.arange(self.count + 1))

    def rows(self, team: int) -> slice:
        """Rows of a team."""
        return slice(int(self.row_start[team]), int(self.row_start[team + 1]))

    def parts(self, team: int) -> slice:
        """Parts of a team."""
        return slice(int(self.first_part[team]), int(self.first_part[team + 1]))

    def gains(self, team: int) -> Iterator[tuple[int, float]]:
        """Votes of each further step, and the fall of the additive error that it brings.

        Pairs of workers for two answers, O(rows) each. With more answers the fall need not shrink
        from vote to vote, so the steps are those between corners of its convex envelope.
        """
        rows = self.rows(team)
        share = self.row_share[rows]
        if not self.tree.problem.is_yes_no:
            yield from _envelope(lambda votes: self.errors(team, votes) @ share)
            return
        for gain in voting.majority_gains(self.row_error[rows], self.dependence):
            yield 2, float(share @ gain)

    def part_gains(self, team: int) -> Iterator[FloatArray]:
        """Fall of the error of each part of a team with each further pair of workers."""
        rows, share, start = self._by_part(team)
        if not self.tree.problem.is_yes_no:
            errors = (self.part_error(team, votes) for votes in itertools.count(1, 2))
            yield from (before - after for before, after in itertools.pairwise(errors))
            return
        for gain in voting.majority_gains(self.row_error[rows], self.dependence):
            yield np.add.reduceat(share * gain, start)

    def part_error(self, team: int, votes: int) -> FloatArray:
        """Additive error of each part of a team."""
        _, share, start = self._by_part(team)
        return np.add.reduceat(share * self.errors(team, np.array([votes]))[0], start)

    def errors(self, team: int, votes: IntArray) -> FloatArray:
        """Errors of pluralities over all answers, one row per number of votes."""
        key = votes.tobytes()
        if key not in self._errors:
            self._errors[key] = self._cells.errors(VOTES["majority"], votes)
        return self._errors[key][:, self.rows(team)]

    @cached_property
    def _cells(self) -> CellVotes:
        return CellVotes(self.tree.problem, *self.row_cell)

    def _by_part(self, team: int) -> tuple[slice, FloatArray, NDArray[np.intp]]:
        rows = self.rows(team)
        return rows, self.row_share[rows], self.part_start[self.parts(team)] - rows.start


def _envelope(errors: Callable[[IntArray], FloatArray]) -> Iterator[tuple[int, float]]:
    """Steps between the corners of the lower convex envelope of the error, by number of votes.

    A corner is final when no error of at least 0 that comes later could lie below the line to it,
    or when the errors of LOOK_AHEAD votes, and of twice as many as its own, lie above that line.
    Ends when no further vote helps, or after MAX_ENVELOPE votes.
    """
    at, horizon = 1, 8
    values = errors(np.arange(1, horizon + 1))
    while True:
        now, ahead = values[at - 1], np.arange(1, horizon + 1 - at)
        fall = (now - values[at:]) / ahead
        best = int(np.argmax(fall * (1 - 1e-12 * ahead))) if len(fall) else 0
        final = len(fall) > 0 and fall[best] > 0 and now - fall[best] * (horizon + 1 - at) <= 0
        ahead_of = max(LOOK_AHEAD, 2 * (at + best + 1))
        if not final and horizon < min(ahead_of, MAX_ENVELOPE):
            further = errors(np.arange(horizon + 1, min(2 * horizon, MAX_ENVELOPE) + 1))
            values = np.concatenate([values, further])
            horizon = len(values)
            continue
        if not len(fall) or fall[best] <= 0:
            return
        step = best + 1
        yield step, float(fall[best] * step)
        at += step


@dataclass
class _Budget:
    """The budget, and the price of one vote of each team."""

    left: float
    price: FloatArray
    workers: bool
    """Whether it counts workers, each of whom costs the same, or answers."""

    @classmethod
    def of(cls, workers: int | None, answers: float | None, teams: _Teams) -> _Budget:
        if (workers is None) == (answers is None):
            raise CrowdtreeError(
                "staff: expected either workers (extra ones) or answers (expected number per item)"
            )
        if workers is not None:
            if not 0 <= workers <= MAX_WORKERS:
                raise CrowdtreeError(
                    f"workers: expected a whole number from 0 to {MAX_WORKERS:,}, got {workers!r}"
                )
            return cls(float(workers), np.ones(teams.count), workers=True)
        base = float(teams.load.sum())
        if answers is None or not -math.inf < answers <= MAX_WORKERS:
            raise CrowdtreeError(
                f"answers: expected a number of at most {MAX_WORKERS:,}, got {answers!r}"
            )
        if answers < base * (1 - 1e-12):
            raise CrowdtreeError(
                f"answers: expected at least {base:.4g} (one worker per node), got {answers:g}"
            )
        return cls(float(answers) - base, teams.load, workers=False)

    def affords(self, team: int, votes: int = 2) -> bool:
        """Whether some more votes of a team fit, up to rounding."""
        return votes * float(self.price[team]) <= self.left * (1 + 1e-12) + 1e-12

    def spend(self, team: int, votes: int = 2) -> None:
        """Pay for some more votes of a team."""
        self.left -= votes * float(self.price[team])


def _one_each(teams: _Teams) -> IntArray:
    return np.ones(teams.count, dtype=np.int64)


def marginal(teams: _Teams, budget: _Budget, _rng: np.random.Generator) -> IntArray:
    """Two more votes where the additive error falls most per unit of budget."""
    votes = _one_each(teams)
    sources = [teams.gains(team) for team in range(teams.count)]
    heap: list[tuple[float, int, int]] = []

    def push(team: int) -> None:
        step, gain = next(sources[team], (0, 0.0))
        if step:
            per_price = gain / (budget.price[team] * (step / 2))
            heapq.heappush(heap, (-_rounded(per_price), team, step))

    for team in range(teams.count):
        push(team)
    while heap:
        gain, team, step = heapq.heappop(heap)
        if gain >= 0 or not budget.affords(team, step):
            continue  # no gain or too expensive: other teams may still fit
        budget.spend(team, step)
        votes[team] += step
        push(team)
    return votes


def _rounded(value: float) -> float:
    """Round to 11 digits: gains that differ by rounding alone are ties, won by the first node."""
    return float(f"{value:.10e}")


def paper_fm(teams: _Teams, budget: _Budget, _rng: np.random.Generator) -> IntArray:
    """Algorithm 1 with ``F^m``: raise the smallest score."""
    return _last(_algorithm_1(teams, budget, PAPER_SCORES["paper-fm"]))


def paper_fc(teams: _Teams, budget: _Budget, _rng: np.random.Generator) -> IntArray:
    """Algorithm 1 with the corrected ``F^c``: raise the smallest score."""
    return _last(_algorithm_1(teams, budget, PAPER_SCORES["paper-fc"]))


def paper_plans(tree: Tree, method: str = "paper-fm") -> Iterator[Plan]:
    """Yield the plans of :func:`staff` by Algorithm 1 with 0, 2, 4 ... extra workers.

    It ends when no vote helps any more.

    >>> import crowdtree as ct
    >>> tree = ct.design(ct.example("table1"))
    >>> plans = paper_plans(tree)
    >>> next(plans) == ct.staff(tree, 0, "paper-fm"), next(plans) == ct.staff(tree, 2, "paper-fm")
    (True, True)
    """
    teams = _Teams(tree, "node", 0.0)
    budget = _Budget(math.inf, np.ones(teams.count), workers=True)
    for votes in _algorithm_1(teams, budget, PAPER_SCORES[method]):
        yield Plan(tree, votes[teams.of_node], method=method)


PAPER_SCORES: Mapping[str, Callable[[FloatArray, FloatArray, FloatArray], FloatArray]] = (
    MappingProxyType(
        {
            "paper-fm": lambda _entropy, drop, error: scores.additive_score(drop, error),
            "paper-fc": scores.multiplicative_score,
        }
    )
)
"""Score of each level from its entropy, the fall of the entropy and the error."""


def _last(steps: Iterator[IntArray]) -> IntArray:
    return deque(steps, maxlen=1)[0]


def _algorithm_1(
    teams: _Teams,
    budget: _Budget,
    score: Callable[[FloatArray, FloatArray, FloatArray], FloatArray],
) -> Iterator[IntArray]:
    """Find the worst level; in it, give two workers where that score improves most; repeat.

    Yields the votes before the first step and after each. Ties go to the earliest level and the
    leftmost node. A level that cannot be improved any more gives way to the next worst.
    """
    tree = teams.tree
    drop = _by_level(tree.level, tree.gain)
    entropy = np.cumsum(drop[::-1])[::-1]
    votes = _one_each(teams)
    sources = [teams.part_gains(team) for team in range(teams.count)]
    gain = np.concatenate([next(source) for source in sources])
    error = np.concatenate([teams.part_error(team, 1) for team in range(teams.count)])
    while True:
        yield votes.copy()
        level_error = _by_level(teams.part_level, error)
        team = _worst_level_team(-score(entropy, drop, level_error), teams, gain, budget)
        if team is None:
            return
        budget.spend(team)
        votes[team] += 2
        gain[teams.parts(team)] = next(sources[team])
        error[teams.parts(team)] = teams.part_error(team, int(votes[team]))


def _by_level(level: NDArray[np.int32], values: FloatArray) -> FloatArray:
    return np.asarray(np.bincount(level, weights=values), dtype=np.float64)


def _worst_level_team(
    bad: FloatArray, teams: _Teams, gain: FloatArray, budget: _Budget
) -> int | None:
    for d in sorted(range(len(bad)), key=lambda d: (-_rounded(float(bad[d])), d)):
        options = [
            (-_rounded(gain[part]), int(teams.part_node[part]))
            for part in np.flatnonzero((teams.part_level == d) & (gain > 0))
            if budget.affords(int(teams.of_node[teams.part_node[part]]))
        ]
        if options:
            return int(teams.of_node[min(options)[1]])
    return None


def single(teams: _Teams, budget: _Budget, rng: np.random.Generator) -> IntArray:
    """All extra workers to one randomly chosen node."""
    return _single_at(teams, budget, int(rng.integers(teams.count)))


def _single_at(teams: _Teams, budget: _Budget, team: int) -> IntArray:
    votes = _one_each(teams)
    votes[team] += 2 * int(budget.left * (1 + 1e-12) / (2 * budget.price[team]))
    return votes


def random(teams: _Teams, budget: _Budget, rng: np.random.Generator) -> IntArray:
    """Each extra worker alone to a uniformly random node: even votes occur."""
    votes = _one_each(teams)
    if budget.workers:  # equal prices: one multinomial draw
        return votes + rng.multinomial(int(budget.left), np.full(teams.count, 1 / teams.count))
    while options := [t for t in range(teams.count) if budget.affords(t, 1)]:
        # Draw as many at once as leave every team affordable: cheap teams may take millions.
        dearest = float(budget.price[options].max())
        times = max(1, int(budget.left / dearest) - 1)
        drawn = rng.multinomial(times, np.full(len(options), 1 / len(options)))
        votes[options] += drawn
        budget.left -= float(drawn @ budget.price[options])
    return votes


def everyone(teams: _Teams, budget: _Budget, _rng: np.random.Generator) -> IntArray:
    """All workers answer every question: ``2K + 1`` votes each, far beyond a budget of workers."""
    if budget.workers:
        return np.full(teams.count, 1 + int(budget.left))
    extra = int(budget.left * (1 + 1e-12) / float(budget.price.sum()))
    return np.full(teams.count, 1 + extra - extra % 2)


STAFFERS: Mapping[str, Callable[[_Teams, _Budget, np.random.Generator], IntArray]] = (
    MappingProxyType(
        {
            "paper-fm": paper_fm,
            "paper-fc": paper_fc,
            "marginal": marginal,
            "single": single,
            "random": random,
            "everyone": everyone,
        }
    )
)


def single_mean(tree: Tree, workers: int) -> float:
    """Exact mean of the misclassification over the choice of ``"single"``'s node.

    >>> import crowdtree as ct
    >>> tree = ct.design(ct.example("table1").replace(worker_error=0.2))
    >>> round(single_mean(tree, 0), 6)
    0.29984
    """
    extra = workers - workers % 2
    plans = (Plan(tree, 1 + extra * here) for here in np.eye(tree.n_nodes, dtype=np.int64))
    return sum(evaluate(plan).misclassification for plan in plans) / tree.n_nodes


def random_means(tree: Tree, most: int) -> FloatArray:
    """Exact means of the misclassification over the draws of ``"random"``, for 0 to `most` workers.

    The extra workers of the nodes are multinomial, which is a chain of binomial splits: the first
    node of a path takes each of the ``n`` workers with probability ``1 / m``, the next each of
    the rest with ``1 / (m - 1)``, and so on. The mean success of a path follows backwards.

    >>> import crowdtree as ct
    >>> tree = ct.design(ct.example("table1").replace(worker_error=0.2))
    >>> random_means(tree, 1).round(6).tolist()
    [0.29984, 0.29984]
    """
    tree.problem.require_yes_no("random_means")
    m = tree.n_nodes
    count = np.arange(most + 1)
    rest = count[:, None] - count[None, :]
    split = [
        voting.binomial(count[None, :], count[:, None], 1 / (m - d)) for d in range(tree.depth)
    ]
    right = np.zeros(most + 1)
    for share, errors in _ways(tree):
        value = np.ones(
            most + 1
        )  # mean success of the rest of the path, by the workers left for it
        for depth in reversed(range(len(errors))):
            stays = 1 - voting.majority_error(errors[depth], 1 + count, tree.problem.dependence)
            onward = np.where(rest >= 0, value[np.maximum(rest, 0)], 0.0)
            value = (split[depth] * stays[None, :] * onward).sum(axis=1)
        right += share * value
    return np.asarray(tree.problem.prior.sum() - right)


def _ways(tree: Tree) -> Iterator[tuple[float, list[float]]]:
    """Yield each path to a leaf of the class's own label: the share that takes it, and its errors.

    A ``-`` on the path is a fair coin whose outcomes are both right: no error.
    """
    trail: list[list[float]] = [[] for _ in range(tree.problem.n_classes)]
    for step, rows in zip(tree.steps, tree.leaf_rows, strict=True):
        error = tree.problem.worker_error[tree.question[step.node], step.cls]
        error = np.where(step.answer == DASH, 0.0, error)
        trail = [
            [*trail[parent], wrong]
            for parent, wrong in zip(step.parent.tolist(), error.tolist(), strict=True)
        ]
        mine = tree.leaf_label[rows.node] == rows.cls
        for share, parent in zip(
            rows.share[mine].tolist(), rows.parent[mine].tolist(), strict=True
        ):
            yield share, trail[parent]
