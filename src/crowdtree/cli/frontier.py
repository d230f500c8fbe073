"""The verb `frontier`: error against price."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from crowdtree import io as files
from crowdtree.cli import inputs, render
from crowdtree.cli.options import (
    AsJson,
    Output,
    Prices,
    ProblemFile,
    ReadingGroups,
    check_draw,
    check_outputs,
    check_plan,
    option,
    share_option,
    with_options,
)
from crowdtree.cli.plan import GoalOptions
from crowdtree.cli.render.plan import adaptive_line
from crowdtree.cli.render.progress import frontier_words, progress
from crowdtree.cli.render.tables import show_frontier
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.evaluation import evaluate
from crowdtree.core.problem import Problem
from crowdtree.core.text import amount, number, percent, rounded_up
from crowdtree.core.votes import Vote
from crowdtree.designs.frontiers import frontier
from crowdtree.designs.frontiers.compare import compare, vote_limit


@dataclass(frozen=True)
class Choice(GoalOptions):
    """Which plan to choose, and what to write."""

    undecided: Annotated[
        float,
        share_option(
            "--undecided",
            metavar="SHARE",
            help="Share of items that may stay undecided; --error then applies to the others.",
        ),
    ] = 0.0
    as_json: AsJson = False
    output: Output = None
    draw: Annotated[
        Path | None, option("Draw the frontier to FILE.svg, .png or .html.", "FILE")
    ] = None

    def __post_init__(self) -> None:
        if self.output is not None and not self.given:
            raise CrowdtreeError(
                "-o: add --error, --answers, --cost or --max-loss to choose the plan to write"
            )
        if self.undecided and self.error is None:
            raise CrowdtreeError("--undecided: give the --error that the decided items must keep")
        if self.given:
            self.goal.check()
        check_plan(self.output)
        check_draw(self.draw)
        check_outputs([self.output, self.draw])


@dataclass(frozen=True)
class Search:
    """How the frontier is searched."""

    vote: Annotated[Vote, option("Kind of vote at each node.")] = "majority"
    method: Annotated[
        Literal["optimal", "greedy"] | None,
        option("optimal: proven; greedy: fast, without proof.", show_default=False),
    ] = None
    max_votes: Annotated[int, option("Maximum votes per node.")] = 51
    max_points: Annotated[int, option("Maximum points of the curve.")] = 10_000
    time_limit: Annotated[float | None, option("Seconds for the whole search.", "S")] = None


@with_options
def frontier_verb(
    file: ProblemFile,
    *,
    choice: Choice,
    price: Prices = None,
    search: Search,
    reading: ReadingGroups,
) -> None:
    """Show the trade-off between error and price of fixed trees, and choose one.

    Examples:

      crowdtree frontier example:animals

      crowdtree frontier birds.csv --error 0.01 -o plan.json

      crowdtree frontier birds.csv --error 0.01 --undecided 0.1

      crowdtree frontier example:mushrooms --max-loss 0.1

      crowdtree frontier birds.csv --vote margin --price 0.02 --price hunts=0.05 --draw front.svg
    """
    problem = inputs.read_problem(file, reading)
    prices = inputs.read_prices(problem, price)
    priced = prices is not None or problem.has_prices
    if choice.cost is not None and not priced:
        raise CrowdtreeError("--cost: give the --price of an answer, or use --answers")
    front = _search(problem, search, prices, reading.allow_groups)
    chosen = None
    if choice.given:
        chosen = front.select(**choice.goal._asdict(), time_limit=search.time_limit)
    point = None if chosen is None else chosen.point
    if point is not None and choice.output is not None:
        files.save_plan(point.plan, choice.output)
    if choice.draw is not None:
        _draw(front, point, choice.draw, "price" if priced else "answers", reading.allow_groups)
    found: dict[str, Any] = front.to_dict()
    if chosen is not None:
        found["plan"] = evaluate(chosen.plan).to_dict() | {
            "proven": chosen.proven,
            "lower_bound": chosen.lower_bound,
            "proof": chosen.proof,
        }

    def show(console: Any) -> None:
        if point is not None and chosen is not None:
            paid = f" at a price of {number(point.expected_cost)}" if priced else ""
            console.print(
                f"{_result_words(point)} for [bold]{amount(point.expected_answers, 'answer')}[/] "
                f"per item{paid}."
            )
            console.print(f"{_capital(chosen.proof)}\n")
        points = front.points
        if choice.undecided:  # what each of them leaves undecided at this error
            made = (p.deciding(choice.error) for p in points)
            points = [p for p in made if p is not None]
        show_frontier(console, points, point, priced=priced, undecided=choice.undecided > 0)
        console.print(_proof(front))
        if choice.given and not choice.undecided:
            adaptive_line(console, problem, choice.goal, prices)

    least = min(p.misclassification for p in front)
    wanted = 0.01 if least <= 0.01 else rounded_up(least)
    then = "" if choice.given else render.again("--error", wanted, "-o", "plan.json")
    if choice.output is not None:
        uniform = [] if not price or "=" in "".join(price) else ["--price", price[-1]]
        then = render.command("report", str(choice.output), *uniform)
    render.emit(choice.as_json, found, show, (choice.output, choice.draw), then)


def _search(problem: Problem, search: Search, price: list[float] | None, allow_groups: bool) -> Any:
    with progress(frontier_words) as watch:
        return frontier(
            problem,
            search.vote,
            method=search.method,
            price=price,
            max_votes=search.max_votes,
            max_points=search.max_points,
            time_limit=search.time_limit,
            allow_groups=allow_groups,
            progress=watch,
        )


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _result_words(chosen: Any) -> str:
    """What the chosen plan gets wrong, and what it leaves undecided."""
    loss = chosen.plan.tree.problem.loss
    risk = "" if loss is None else f"[bold]Expected loss {number(chosen.risk)}[/], "
    if not chosen.undecided:
        return f"{risk}[bold]{percent(chosen.misclassification)}[/] misclassified"
    left = "referred to an expert" if loss and loss.refer is not None else "left undecided"
    return (
        f"{risk}[bold]{percent(chosen.decided_error)}[/] of the labelled items misclassified, "
        f"[bold]{percent(chosen.undecided)}[/] of all items {left}"
    )


def _proof(front: Any) -> str:
    """What is proven, and about which quantity."""
    if front.status == "greedy":
        return "Greedy trees: nothing is proven."
    what = "error" if front.options.problem.loss is None else "risk"
    of = f"additive {what} + price x planned answers"
    if front.proven:
        return f"[dim]Proven or within: of the least {of}; the other columns are exact.[/]"
    return (
        f"{_ended(front.status)}: at every price the least possible {of} is at most "
        f"{percent(front.gap)} below this curve."
    )


def _ended(status: str) -> str:
    """Why the search ended without proving every point."""
    return "The search is complete" if status == "optimal" else f"The {status} ended the search"


def _draw(front: Any, chosen: Any, path: Path, cost: str, allow_groups: bool) -> None:
    from crowdtree.show.plots.frontiers import frontier_chart, loss_chart
    from crowdtree.show.plots.vega import draw_chart

    if front.options.problem.loss is not None:
        chart = loss_chart(front, chosen, cost=cost)
    else:
        rows = compare(front, allow_groups)
        chart = frontier_chart(rows, chosen, cost=cost, most_votes=vote_limit(front))
    draw_chart(chart, path)
