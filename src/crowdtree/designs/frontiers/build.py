"""Make a frontier: a quick curve first, then a search that improves and proves it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from crowdtree.core.checking import check_call, named_options
from crowdtree.core.errors import CrowdtreeError, CrowdtreeWarning
from crowdtree.core.fixed_plan import Plan
from crowdtree.core.problem import DASH, Problem
from crowdtree.core.source_checks import answered_once
from crowdtree.core.tree import Tree
from crowdtree.core.votes import Vote
from crowdtree.designs.designers import design, refuse_groups
from crowdtree.designs.designers.exact import can_compile, is_tabulated
from crowdtree.designs.designers.optimal import check_limits
from crowdtree.designs.frontiers.choice import Frontier
from crowdtree.designs.frontiers.class_sets import ClassSets
from crowdtree.designs.frontiers.exact_votes import shown_plans
from crowdtree.designs.frontiers.point import Point
from crowdtree.designs.frontiers.priced_search import DESIGNS, Priced, exact_solver, greedy_trees
from crowdtree.designs.frontiers.set_search import max_sets, set_solver
from crowdtree.designs.frontiers.supported import Curve
from crowdtree.designs.frontiers.vote_options import Options, question_prices

FINISHING = 0.1
"""Share of the time limit that is kept for choosing the votes of the points."""


@named_options
def frontier(
    problem: Problem,
    vote: Vote = "majority",
    *,
    method: Literal["optimal", "greedy"] | None = None,
    price: ArrayLike | Mapping[str, float] | None = None,
    max_votes: int = 51,
    max_points: int = 10_000,
    time_limit: float | None = None,
    node_limit: int | None = None,
    memory_limit: float = 1e9,
    allow_groups: bool = False,
    progress: Callable[[int, float, float], None] | None = None,
) -> Frontier:
    """Find the trade-off of error against price: questions and votes chosen together.

    Points are placed by what a user gets: the exact misclassification and the expected cost, wrong
    turns included. No point is dominated by another plan that was found. What is proven concerns
    the curve of additive error and planned cost (``front.supported``), which bounds every plan.

    A first curve from greedy trees takes seconds. The search then improves and proves it where the
    gap is largest, until all is proven, a limit is reached or Ctrl-C is pressed.

    Parameters
    ----------
    problem
        The problem.
    vote
        ``"majority"``: a fixed odd number of votes per node (the paper); ``"margin"``: a node votes
        until one side leads by its margin, for about half the answers.
    method
        ``"optimal"`` searches and proves; ``"greedy"`` builds on level-greedy trees and proves
        nothing. Optimal by default; greedy where ``-`` means either, for large problems with a loss
        or several answers, and, with a warning, for large problems where the extra ``fast`` is not
        installed.
    price
        Price of an answer: one number, one per question, or by question name. That of the source
        multiplies it; with several sources a node asks one of them.
    max_votes
        Most votes per node (largest margin).
    max_points
        Most points.
    time_limit
        Seconds for the whole call. After it the best curve so far is returned, with its gap.
    node_limit
        Sets of classes to search at each price; unlike a time limit it gives the same result on
        every machine.
    memory_limit
        Bytes for the cache of solved sets.
    allow_groups
        Accept classes that no question separates.
    progress
        Called about once a second with the number of points, the share of the curve's edges that
        are proven, and the largest gap: how far the curve may be above the least possible
        ``additive error + price x planned cost`` at any price, as a share.

    Returns
    -------
    Frontier
        Ctrl-C also ends the search: the best curve so far is returned, with its gap.

    Examples
    --------
    >>> import crowdtree as ct
    >>> front = ct.frontier(ct.example("table1"), vote="margin", max_votes=6)
    >>> front.proven, front[0].misclassification > front[-1].misclassification
    (True, True)
    """
    check_call(frontier, locals())
    if max_points < 2:
        raise CrowdtreeError(f"max_points: expected at least 2, got {max_points!r}")
    check_limits(time_limit, 0.0, node_limit, memory_limit)
    prices, once = question_prices(problem, price), answered_once(problem)
    problem = problem.as_options()
    several = not problem.is_yes_no
    either = problem.dash == "either" and bool((problem.outcome == DASH).any()) and not several
    options = Options.of(problem, vote, max_votes, prices, once)
    sets: ClassSets | None = None
    if several or (problem.loss is not None and not either):
        sets = ClassSets(problem, max_sets(options))
    large = sets is not None and sets.too_many
    plain = sets is None and not can_compile() and not is_tabulated(problem.outcome)
    if plain and method is None and not either:
        warnings.warn(
            "frontier: greedy trees without proof; for the proven ones run: "
            'pip install "crowdtree[fast]"',
            CrowdtreeWarning,
            stacklevel=2,
        )
    chosen = method or ("greedy" if either or large or plain else "optimal")
    if chosen == "optimal" and either:
        raise CrowdtreeError(
            'frontier: method "optimal" requires that - means inapplicable; use "greedy"'
        )
    if chosen == "optimal" and large:
        raise CrowdtreeError(
            f'frontier: method "optimal" for {"several answers" if several else "a loss"} is for '
            f"small problems (at most {max_sets(options):,} sets of classes); "
            'use "greedy"'
        )
    quick = design(problem, "fm", allow_groups=True)  # refuses a root that no question splits
    if not allow_groups:
        refuse_groups(quick)
    seconds = np.inf if time_limit is None else time_limit
    deadline = time.monotonic() + (1 - FINISHING) * seconds
    curve = Curve(options, max_points=max_points, deadline=deadline, report=progress)
    designs: list[Tree] = []
    try:
        _first_curve(curve, designs, quick)
        if chosen == "greedy":
            curve.ended = "greedy"
        elif curve.late:
            curve.ended = "time limit"
        else:
            limited = node_limit is not None
            began = time.monotonic()
            solve = (
                exact_solver(options, memory_limit, curve.report, limited=limited)
                if sets is None
                else set_solver(options, sets)
            )
            curve.deadline += time.monotonic() - began  # no limit pays for compiling
            curve.refine(solve, node_limit)
    except KeyboardInterrupt:
        if not curve.points:
            raise
        curve.ended = "interrupted"
    end = curve.deadline + FINISHING * seconds
    shown = shown_plans(curve, designs, end) if problem.loss is None else curve.points
    if len(shown) > max_points:
        shown = [shown[round(i)] for i in np.linspace(0, len(shown) - 1, max_points)]

    def point(plan: Priced) -> Point:
        gap = curve.bound.gap(plan)
        status = "optimal" if gap == 0 else "exact" if curve.ended == "optimal" else curve.ended
        votes = options.votes[plan.option]
        return Point(
            Plan(plan.tree, votes, vote, f"frontier ({chosen})"), options.price, gap, status
        )

    points = map(point, shown)
    return Frontier(
        points=tuple(points) if problem.loss is None else _undominated(points),
        options=options,
        supported=tuple(map(point, curve.points)),
        gap=curve.gap,
        status=curve.ended,
    )


def _undominated(points: Iterable[Point]) -> tuple[Point, ...]:
    """Points of less risk than every cheaper one: the least additive risk need not have that."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda point: (point.expected_cost, point.risk)):
        if not kept or point.risk < kept[-1].risk:
            kept.append(point)
    return tuple(kept)


def _first_curve(curve: Curve, designs: list[Tree], quick: Tree) -> None:
    """Make a usable curve from greedy trees, without any search."""
    curve.add(quick)
    designs.append(quick)
    trees = greedy_trees(curve.options)
    while not curve.late and (tree := next(trees, None)) is not None:
        curve.add(tree)
        if tree.method in DESIGNS:
            designs.append(tree)
    curve.update(curve.resolution)
    curve.report()
