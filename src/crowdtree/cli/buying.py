"""The verb `frontier`: what error can be had for what price."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from crowdtree.cli import common, terminal
from crowdtree.cli.common import (
    AllowGroups,
    AsJson,
    DashOption,
    Errors,
    File,
    Normalise,
    Output,
    Strengths,
    WorkerError,
)
from crowdtree.cli.designing import report_of
from crowdtree.errors import CrowdtreeError
from crowdtree.evaluate import evaluate
from crowdtree.problem import Problem
from crowdtree.text import number, percent, plural

__all__ = ["frontier_verb"]


def frontier_verb(
    file: File,
    error: Annotated[
        float | None,
        typer.Option("--error", help="Choose the cheapest plan of at most this error."),
    ] = None,
    answers: Annotated[
        float | None, typer.Option("--answers", help="Choose the best plan of at most this cost.")
    ] = None,
    vote: Annotated[
        Literal["majority", "margin"], typer.Option("--vote", help="How a node votes.")
    ] = "majority",
    price: Annotated[
        list[str] | None,
        typer.Option("--price", metavar="[Q=]P", help="Price of an answer, also question=price."),
    ] = None,
    method: Annotated[
        Literal["optimal", "greedy"] | None,
        typer.Option("--method", help="Proven points, or fast ones.", show_default=False),
    ] = None,
    max_votes: Annotated[int, typer.Option("--max-votes", help="Most votes of a node.")] = 51,
    max_points: Annotated[int, typer.Option("--max-points", help="Most points.")] = 10_000,
    time_limit: Annotated[
        float | None, typer.Option("--time-limit", metavar="S", help="Seconds for each price.")
    ] = None,
    as_json: AsJson = False,
    output: Output = None,
    draw: Annotated[
        Path | None,
        typer.Option(
            "--draw", metavar="FILE", help="Draw the frontier to FILE.svg, .png or .html."
        ),
    ] = None,
    worker_error: WorkerError = None,
    errors: Errors = None,
    dash: DashOption = None,
    normalise: Normalise = False,
    strengths: Strengths = False,
    allow_groups: AllowGroups = False,
) -> None:
    """Show what error can be had for what price, and pick a plan.

    Examples:

      crowdtree frontier example:animals

      crowdtree frontier birds.csv --error 0.01 -o plan.json

      crowdtree frontier birds.csv --vote margin --price 0.02 --price hunts=0.05 --draw front.svg
    """
    from crowdtree.frontier import Point, frontier

    if output is not None and error is None and answers is None:
        raise CrowdtreeError("-o: which plan? give --error or --answers")
    problem = common.read_problem(file, worker_error, errors, dash, normalise, strengths)
    front = frontier(
        problem,
        vote,
        method=method,
        price=_prices(problem, price),
        max_votes=max_votes,
        max_points=max_points,
        time_limit=time_limit,
        allow_groups=allow_groups,
        progress=_progress if sys.stderr.isatty() else None,
    )
    if sys.stderr.isatty():
        print("\r" + " " * 60 + "\r", end="", file=sys.stderr, flush=True)
    chosen = None
    if error is not None or answers is not None:
        plan = front.plan_for(error=error, answers=answers)
        chosen = Point(plan, front.options.price, float("nan"), "chosen")
        common.save(plan, output)
    if draw is not None:
        from crowdtree.frontier.compare import compare
        from crowdtree.plots import draw_frontier

        paid = "price" if price else "answers"
        draw_frontier(compare(front, allow_groups), draw, chosen, cost=paid)
    found: dict[str, Any] = {"vote": vote, "proven": front.proven, "points": front.to_dicts()}
    if chosen is not None:
        found["plan"] = report_of(evaluate(chosen.plan))

    def tell(console: Any) -> None:
        if chosen is not None:
            paid = f" at a price of {number(chosen.expected_cost)}" if price else ""
            console.print(
                f"[bold]{percent(chosen.misclassification)}[/] misclassified for "
                f"[bold]{number(chosen.expected_answers)} answers[/] per item{paid}.\n"
            )
        terminal.show_frontier(console, front.points, chosen, priced=bool(price))
        if not front.proven:
            loose = sum(point.status != "optimal" for point in front)
            console.print(f"{plural(loose, 'point')} not proven optimal.")
        if chosen is None:
            words = ["--error", 0.01, "-o", "plan.json"]
            reading = (worker_error, errors, dash, normalise, strengths, allow_groups)
            common.tell_next(console, common.again("frontier", file, *words, reading=reading))

    common.emit(as_json, found, tell)


def _prices(problem: Problem, given: list[str] | None) -> list[float] | None:
    """Read ``--price 0.02`` (all questions) and ``--price question=0.05`` (one of them)."""
    if not given:
        return None
    prices = [1.0] * problem.n_questions
    for entry in sorted(given, key=lambda words: "=" in words):
        name, named, amount = entry.rpartition("=")
        try:
            value = float(amount)
        except ValueError:
            raise CrowdtreeError(
                f"--price: {entry!r} is no price; write 0.02 or question=0.02"
            ) from None
        if named:
            prices[problem.question_index(name)] = value
        else:
            prices = [value] * problem.n_questions
    return prices


def _progress(points: int, settled: float) -> None:
    words = f"{plural(points, 'point')} · {percent(settled)} of the edges settled"
    print(f"\r{words}   ", end="", file=sys.stderr, flush=True)
