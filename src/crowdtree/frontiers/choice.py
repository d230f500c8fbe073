"""The frontier as a whole, and the choice of a plan from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.checking import check_call
from crowdtree.designers import design
from crowdtree.errors import CrowdtreeError
from crowdtree.frontiers.point import Point
from crowdtree.frontiers.priced_search import more_votes
from crowdtree.frontiers.vote_options import Options
from crowdtree.plan import Plan, Vote
from crowdtree.result_methods import Framed, Plotted, Saved
from crowdtree.staffing import paper_plans
from crowdtree.text import percent
from crowdtree.tree import Tree

__all__ = ["Frontier", "check_wish"]


def check_wish(
    error: float | None,
    answers: float | None,
    undecided: float = 0.0,
    loss: float | None = None,
) -> None:
    """Raise for what no plan can be chosen by, whatever the frontier is."""
    if [error, answers, loss].count(None) != 2:
        raise CrowdtreeError("plan_for: expected either error or answers, or a loss")
    if loss is not None and not 0 < loss < np.inf:
        raise CrowdtreeError(f"loss: expected a number above 0, got {loss!r}")
    if not 0 <= undecided < 1:
        raise CrowdtreeError(f"undecided: expected a share from 0 to below 1, got {undecided!r}")
    if undecided and error is None:
        raise CrowdtreeError("undecided: give an error that the decided items must keep")
    if error is not None and not 0 <= error < 1:
        raise CrowdtreeError(f"error: expected a probability from 0 to below 1, got {error!r}")


@dataclass(frozen=True, eq=False)
class Frontier(Framed, Saved, Plotted):
    """Plans that no other plan found beats in both error and cost, cheapest first.

    Points are the corners of the lower hull of exact misclassification and expected cost over all
    plans that were found.

    Attributes
    ----------
    points
        The points.
    options
        The votes that a node can take, with their errors and costs.
    supported
        The curve that the search proves: plans of least ``additive error + price x planned cost``.
    gap
        How far that curve may be above the least possible at any price, as a share; 0 if proven.
    status
        ``"optimal"``, ``"greedy"``, or the limit that ended the search.

    Examples
    --------
    >>> import crowdtree as ct
    >>> front = ct.frontier(ct.example("table1"), max_votes=9)
    >>> plan = front.plan_for(error=0.01)
    >>> round(ct.evaluate(plan).misclassification, 5) <= 0.01
    True
    """

    points: tuple[Point, ...]
    options: Options
    supported: tuple[Point, ...] = ()
    gap: float = 1.0
    status: str = "greedy"

    @property
    def vote(self) -> Vote:
        """Kind of vote at each node."""
        return self.options.vote

    @property
    def max_votes(self) -> int:
        """Most votes per node."""
        return int(self.options.votes[-1])

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> Point:
        return self.points[index]

    @property
    def proven(self) -> bool:
        """Whether every point of the supported curve is proven optimal at its price."""
        return self.status == "optimal" and all(p.status == "optimal" for p in self.supported)

    def plan_for(
        self,
        error: float | None = None,
        answers: float | None = None,
        *,
        undecided: float = 0.0,
        loss: float | None = None,
    ) -> Plan:
        """Cheapest plan of at most some error or loss, or best plan of at most some answers.

        Between two points of the frontier, the trees of the neighbouring points and the paper's
        tree get more votes, one step at a time where the additive error falls most per price;
        the best of these plans and of the points is returned.

        Parameters
        ----------
        error
            Misclassification to stay below; exact.
        answers
            Expected answers per item (their price, where questions have prices), wrong turns
            included, to stay below.
        undecided
            Share of items that may be reported as undecided, with their likeliest label: the error
            is then that of the other items. A plan that reaches the error on most items costs far
            less than one that reaches it on all, and may exist where that one does not.
        loss
            Expected loss per item to stay below; exact.
        """
        check_call(type(self).plan_for, locals())
        check_wish(error, answers, undecided, loss)
        if error is not None:
            return self._for_error(error, undecided)
        if loss is not None:
            return self._for_loss(loss)
        assert answers is not None
        return self._for_answers(answers)

    def _for_error(self, error: float, undecided: float) -> Plan:
        def kept(point: Point) -> Point | None:
            """The point, with leaves left undecided if it must; ``None`` if they are too many."""
            if not undecided:
                return point if point.misclassification <= error else None
            made = point.deciding(error)
            return made if made is not None and made.undecided <= undecided else None

        found, best = self._keeping(kept, lambda point: point.misclassification)
        if not found:
            raise CrowdtreeError(self._out_of_reach(error, best))
        return min(found, key=lambda point: point.expected_cost).plan

    def _for_loss(self, loss: float) -> Plan:
        def kept(point: Point) -> Point | None:
            return point if point.risk <= loss else None

        found, best = self._keeping(kept, lambda point: point.risk)
        if not found:
            raise CrowdtreeError(
                f"loss: {loss:g} is out of reach with at most {self.max_votes} votes per node; the "
                f"best possible here is {best.risk:.4g}: raise max_votes or add better questions"
            )
        return min(found, key=lambda point: point.expected_cost).plan

    def _keeping(
        self, kept: Callable[[Point], Point | None], measure: Callable[[Point], float]
    ) -> tuple[list[Point], Point]:
        """Plans that keep a limit, and the best of all by what is limited."""
        found = [made for made in map(kept, self.points) if made is not None]
        place = len(self) - len(found)
        best = self.points[-1]
        for tree in self._trees_around(place):
            for point in self._staffed(tree, lambda _: True):
                best = min(best, point, key=measure)
                made = kept(point)
                if made is not None:
                    found.append(made)
                    break
        return found, best

    def _out_of_reach(self, error: float, best: Point) -> str:
        ways = ["raise max_votes", "add better questions"]
        decided = best.deciding(error)
        if decided is not None:
            ways.insert(0, f"leave {percent(decided.undecided)} of the items undecided")
        return (
            f"error: {error:g} is out of reach with at most {self.max_votes} votes per node; the "
            f"best possible here is {best.misclassification:.4g}: {', '.join(ways[:-1])} or "
            f"{ways[-1]}"
        )

    def _for_answers(self, answers: float) -> Plan:
        def affordable(point: Point) -> bool:
            return point.expected_cost <= answers * (1 + 1e-12)

        found = [point for point in self.points if affordable(point)]
        for tree in self._trees_around(len(found)):

            def fits(votes: NDArray[np.int64], tree: Tree = tree) -> bool:
                return affordable(self._point(tree, votes))

            found.extend(self._staffed(tree, fits))
        found.extend(filter(affordable, self._algorithm_1(affordable)))
        if not found:
            least = self.points[0]
            raise CrowdtreeError(
                f"answers: {answers:g} is too low; the cheapest plan found takes "
                f"{least.expected_cost:.4g} per item with an error of {least.misclassification:.4g}"
            )
        return min(found, key=lambda point: point.risk).plan

    def _algorithm_1(self, affordable: Callable[[Point], bool]) -> Iterator[Point]:
        """Yield the paper's own plans up to the budget, which can be best for some budgets."""
        if self.vote != "majority":
            return
        tree = design(self.options.problem, "fm", allow_groups=True)
        for plan in paper_plans(tree):
            if plan.votes.max() > self.max_votes:
                return
            point = self._point(tree, plan.votes)
            yield point
            if not affordable(point):
                return

    def _trees_around(self, place: int) -> list[Tree]:
        """Trees of the points next to a position on the frontier, and the paper's."""
        near = [point.plan.tree for point in self.points[max(place - 2, 0) : place + 2]]
        near.append(design(self.options.problem, "fm", allow_groups=True))
        return list({tree.question.tobytes(): tree for tree in near}.values())

    def _staffed(self, tree: Tree, fits: Callable[[NDArray[np.int64]], bool]) -> Iterator[Point]:
        """Yield plans with more and more votes on the same tree."""
        for votes in more_votes(tree, self.options, fits):
            yield self._point(tree, votes)

    def _point(self, tree: Tree, votes: NDArray[np.int64]) -> Point:
        plan = Plan(tree, votes, self.vote, "between points of the frontier")
        return Point(plan, self.options.price, np.nan, "between points")

    def to_dict(self) -> dict[str, Any]:
        """The frontier as plain JSON."""
        return {
            "vote": self.vote,
            "proven": self.proven,
            "gap": self.gap,
            "status": self.status,
            "points": self.to_dicts(),
        }

    def to_dicts(self) -> list[dict[str, Any]]:
        """Tabulate the points: one dictionary per point, with the public names."""
        return [
            {
                "expected_answers": point.expected_answers,
                "planned_answers": point.planned_answers,
                "expected_cost": point.expected_cost,
                "planned_cost": point.planned_cost,
                "misclassification": point.misclassification,
                "risk": point.risk,
                "undecided": point.undecided,
                "decided_error": point.decided_error,
                "additive": point.additive,
                "status": point.status,
                "gap": point.gap,
                "votes": point.plan.votes.tolist(),
                "tree": point.value.tree_dict,
            }
            for point in self.points
        ]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frontier):
            return NotImplemented
        return (
            self.max_votes == other.max_votes
            and (self.status, self.gap) == (other.status, other.gap)
            and np.array_equal(self.options.price, other.options.price)
            and _facts(self.points) == _facts(other.points)
            and _facts(self.supported) == _facts(other.supported)
        )

    def __hash__(self) -> int:
        return hash(tuple(point.plan for point in self))

    def __repr__(self) -> str:
        first, last = self.points[0], self.points[-1]
        proof = "proven" if self.proven else "not proven"
        return (
            f"Frontier({len(self)} points, {self.vote}, {proof}: "
            f"{first.misclassification:.3g} for {first.expected_answers:.3g} answers to "
            f"{last.misclassification:.3g} for {last.expected_answers:.3g})"
        )


def _facts(points: Iterable[Point]) -> list[tuple[Plan, str, str]]:
    return [(point.plan, point.status, repr(point.gap)) for point in points]
