"""Verbs that ask: simulate a policy with a synthetic crowd, explain how a label came about."""

from __future__ import annotations

import sys
import warnings
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
    Seed,
    Strengths,
    WorkerError,
)
from crowdtree.cli.designing import make_tree
from crowdtree.errors import CrowdtreeError, CrowdtreeWarning, listing
from crowdtree.plots.save import check_ending
from crowdtree.problem import Problem
from crowdtree.staffing import staff
from crowdtree.text import number, percent, plural

__all__ = ["explain_verb", "simulate_verb"]

MOST_ERROR = 0.499

PolicyName = Annotated[
    Literal["adaptive", "plan", "curtailed", "margin", "batch"],
    typer.Option("--policy", help="How items are asked about."),
]
Target = Annotated[
    float, typer.Option("--target-error", help="Error at which the adaptive policy stops.")
]
MaxAnswers = Annotated[int, typer.Option("--max-answers", help="Most answers per item.")]
Criterion = Annotated[
    Literal["information", "accuracy", "ec2", "gbs"],
    typer.Option("--criterion", help="What the adaptive policy maximises."),
]
Workers = Annotated[
    int | None, typer.Option("--workers", help="Extra workers of a plan; six per node by default.")
]


def simulate_verb(
    file: File,
    policy: PolicyName = "adaptive",
    items: Annotated[int, typer.Option("--items", help="Number of items.")] = 10_000,
    target_error: Target = 0.01,
    max_answers: MaxAnswers = 100,
    criterion: Criterion = "information",
    workers: Workers = None,
    skill_sd: Annotated[
        float, typer.Option("--skill-sd", help="Spread of the workers' skill, in logits.")
    ] = 0.0,
    spammers: Annotated[float, typer.Option("--spammers", help="Share of spammers.")] = 0.0,
    shared_difficulty: Annotated[
        float, typer.Option("--shared-difficulty", help="Correlation of answers on one item.")
    ] = 0.0,
    true_errors: Annotated[
        float,
        typer.Option("--true-errors", metavar="X", help="True errors, as multiple of the assumed."),
    ] = 1.0,
    engine: Annotated[
        str, typer.Option("--engine", help="local, or dask://HOST:PORT.", metavar="WHERE")
    ] = "local",
    jobs: Annotated[int, typer.Option("--jobs", help="Processes; -1 for all cores.")] = 1,
    checkpoint: Annotated[
        Path | None, typer.Option("--checkpoint", metavar="FILE", help="Resume from and save to.")
    ] = None,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="All policies beside each other at the target error."),
    ] = False,
    draw: Annotated[
        Path | None,
        typer.Option("--draw", metavar="FILE", help="Draw to FILE.svg, .png or .html."),
    ] = None,
    as_json: AsJson = False,
    seed: Seed = 0,
    worker_error: WorkerError = None,
    errors: Errors = None,
    dash: DashOption = None,
    normalise: Normalise = False,
    strengths: Strengths = False,
    allow_groups: AllowGroups = False,
) -> None:
    """Let a simulated crowd answer: what a policy costs, and how often it is wrong.

    FILE is a problem, or a plan for the policies plan, curtailed and margin.

    Examples:

      crowdtree simulate example:animals

      crowdtree simulate plan.json --policy curtailed --items 100000

      crowdtree simulate birds.csv --spammers 0.1 --skill-sd 0.5 --true-errors 2 --json

      crowdtree simulate birds.csv --compare --draw policies.svg
    """
    from crowdtree.simulate import Crowd, simulate

    if draw is not None:
        check_ending(draw)
    reading = (worker_error, errors, dash, normalise, strengths)
    if compare:
        refused = {
            "--policy": policy != "adaptive",
            "--workers": workers is not None,
            "--skill-sd": skill_sd != 0,
            "--spammers": spammers != 0,
            "--shared-difficulty": shared_difficulty != 0,
            "--true-errors": true_errors != 1,
            "--engine": engine != "local",
            "--jobs": jobs != 1,
            "--checkpoint": checkpoint is not None,
        }
        _refuse_beside_compare([name for name, given in refused.items() if given])
        plan = common.read_plan(file)
        problem = plan.tree.problem if plan is not None else common.read_problem(file, *reading)
        options = (target_error, items, seed, max_answers, criterion, allow_groups)
        _compare(file, problem, options, draw, as_json)
        return
    problem, chosen = _policy(
        file,
        policy,
        reading,
        target_error=target_error,
        max_answers=max_answers,
        criterion=criterion,
        workers=workers,
        allow_groups=allow_groups,
    )
    truth = None
    if true_errors != 1.0:
        if not 0 <= true_errors < float("inf"):
            raise CrowdtreeError(f"--true-errors: 0 or more needed, got {true_errors:g}")
        truth = _with_true_errors(problem, true_errors)
    crowd = Crowd(
        problem=truth, skill_sd=skill_sd, spammers=spammers, shared_difficulty=shared_difficulty
    )
    run = simulate(
        problem,
        chosen,
        items,
        seed,
        crowd=crowd,
        engine=engine,
        jobs=jobs,
        checkpoint=checkpoint,
        progress=_progress if sys.stderr.isatty() else None,
    )
    if sys.stderr.isatty():
        print("\r" + " " * 60 + "\r", end="", file=sys.stderr, flush=True)
    if draw is not None:
        from crowdtree.plots.policies import draw_run

        draw_run(run, draw, policy)

    def tell(console: Any) -> None:
        wrong, cost = run.misclassification, run.answers_per_item
        console.print(
            f"[bold]{percent(wrong)} misclassified[/] [dim](95 %: {percent(wrong.low)} to "
            f"{percent(wrong.high)})[/] with [bold]{number(cost)} answers[/] per item "
            f"[dim](95 %: {number(cost.low, 4)} to {number(cost.high, 4)})[/]."
        )
        console.print(f"The policy itself expected {percent(run.stated_error)} to be wrong.\n")
        busiest = sorted(run.answers_per_question.items(), key=lambda pair: -pair[1])[:8]
        for name, share in busiest:
            if share > 0:
                text = problem.text(problem.question_index(name))
                console.print(f"  {number(share):>8}  {text}", markup=False)
        console.print("[dim]  answers per item, by question[/]\n")
        reading = (worker_error, errors, dash, normalise, strengths, allow_groups)
        common.tell_next(
            console, common.again("explain", file, "--policy", policy, reading=reading)
        )

    common.emit(as_json, run.to_dict(), tell)


def _refuse_beside_compare(given: list[str]) -> None:
    if given:
        raise CrowdtreeError(
            f"--compare: simulates every policy with people who err as assumed, here; leave out "
            f"{listing(given)}"
        )


def _compare(
    file: str, problem: Problem, options: tuple[Any, ...], draw: Path | None, as_json: bool
) -> None:
    """Compare all policies, and show the table and the picture."""
    from crowdtree.simulate.compare import compare_policies

    target_error, items, seed, max_answers, criterion, allow_groups = options
    watched = sys.stderr.isatty()

    def watch(name: str) -> None:
        print(f"\rnow {name} ...          ", end="", file=sys.stderr, flush=True)

    found = compare_policies(
        problem,
        target_error,
        items=items,
        rng=seed,
        max_answers=max_answers,
        criterion=criterion,
        allow_groups=allow_groups,
        progress=watch if watched else None,
    )
    if watched:
        print("\r" + " " * 60 + "\r", end="", file=sys.stderr, flush=True)
    if draw is not None:
        from crowdtree.plots.policies import draw_comparison

        draw_comparison(found, draw)

    def tell(console: Any) -> None:
        best = min(
            (row for row in found.rows if not row.note), key=lambda r: r.answers, default=None
        )
        if best is not None:
            console.print(
                f"[bold]{best.policy}[/] is cheapest: [bold]{number(best.answers)} answers[/] an "
                f"item for {percent(best.misclassification)} misclassified.\n"
            )
        terminal.show_policies(console, found.rows)
        if draw is None:
            console.print(f"[dim]Next: crowdtree simulate {file} --compare --draw policies.svg[/]")

    common.emit(as_json, found.to_dict(), tell)


def explain_verb(
    file: File,
    policy: PolicyName = "adaptive",
    true_class: Annotated[
        str | None, typer.Option("--class", help="What the item truly is; drawn if not given.")
    ] = None,
    answers: Annotated[
        str | None,
        typer.Option(
            "--answers", metavar="Q=A,...", help="Answers so far, such as flies=yes,hunts=no."
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the trace as a page.")
    ] = None,
    target_error: Target = 0.01,
    max_answers: MaxAnswers = 100,
    criterion: Criterion = "information",
    workers: Workers = None,
    as_json: AsJson = False,
    seed: Seed = 0,
    worker_error: WorkerError = None,
    errors: Errors = None,
    dash: DashOption = None,
    normalise: Normalise = False,
    strengths: Strengths = False,
    allow_groups: AllowGroups = False,
) -> None:
    """Show why an item got its label: question, answer and posterior, step by step.

    Without --answers a simulated crowd replies.

    Examples:

      crowdtree explain example:animals --class cat

      crowdtree explain birds.csv --answers flies=yes,sings=no --html trace.html
    """
    from crowdtree.trace import from_answers, from_crowd

    problem, chosen = _policy(
        file,
        policy,
        (worker_error, errors, dash, normalise, strengths),
        target_error=target_error,
        max_answers=max_answers,
        criterion=criterion,
        workers=workers,
        allow_groups=allow_groups,
    )
    if answers is not None and true_class is not None:
        raise CrowdtreeError("explain: give either --answers or --class (a crowd that knows it)")
    if answers is not None:
        trace = from_answers(chosen, _answers(problem, answers))
    else:
        trace = from_crowd(chosen, true_class, seed)
    if html is not None:
        from crowdtree.plots.traces import write_trace

        write_trace(trace, html)

    def tell(console: Any) -> None:
        for line in trace.lines():
            console.print(line, soft_wrap=True, markup=False)

    common.emit(as_json, trace.to_dict(), tell)


def _policy(
    file: str,
    name: str,
    reading: tuple[Any, ...],
    *,
    target_error: float,
    max_answers: int,
    criterion: Any,
    workers: int | None,
    allow_groups: bool,
) -> tuple[Problem, Any]:
    """Make the policy that was asked for, from a problem or a plan."""
    from crowdtree.policy import AdaptivePolicy, BatchPolicy, PlanPolicy

    plan = common.read_plan(file, *reading)
    problem = plan.tree.problem if plan is not None else common.read_problem(file, *reading)
    if name == "adaptive":
        policy = AdaptivePolicy(problem, target_error, max_answers, criterion=criterion)
        return problem, policy
    if name == "batch":
        return problem, BatchPolicy(problem)
    if plan is None:
        tree = make_tree(problem, "fm", allow_groups, seed=0)
        plan = staff(tree, 6 * tree.n_nodes if workers is None else workers)
    return problem, PlanPolicy(plan, "none" if name == "plan" else name)  # type: ignore[arg-type]


def _answers(problem: Problem, words: str) -> list[tuple[int, int]]:
    """Read ``flies=yes,hunts=no``."""
    found = []
    values = {"yes": 1, "y": 1, "1": 1, "no": 0, "n": 0, "0": 0}
    for entry in filter(None, (part.strip() for part in words.split(","))):
        name, _, value = entry.rpartition("=")
        if value.strip().lower() not in values or not name:
            raise CrowdtreeError(f"--answers: {entry!r} is no answer; write question=yes or =no")
        found.append((problem.question_index(name.strip()), values[value.strip().lower()]))
    return found


def _progress(done: int, total: int) -> None:
    print(f"\r{percent(done / total)} of the items   ", end="", file=sys.stderr, flush=True)


def _with_true_errors(problem: Problem, times: float) -> Problem:
    """Multiply all errors, and say so where that would make answers worse than a coin."""
    error = problem.worker_error * times
    beyond = int((error > MOST_ERROR).sum())
    if beyond:
        warnings.warn(
            f"--true-errors {times:g}: {plural(beyond, 'cell')} would err in half of the answers "
            f"or more; {'it is' if beyond == 1 else 'they are'} kept at {percent(MOST_ERROR)}",
            CrowdtreeWarning,
            stacklevel=2,
        )
    return problem.replace(worker_error=error.clip(0, MOST_ERROR))
