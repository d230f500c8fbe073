"""The verb `simulate`: let a simulated crowd answer."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from crowdtree.cli import inputs, render
from crowdtree.cli.options import (
    AsJson,
    Draw,
    File,
    Prices,
    ReadingGroups,
    Seed,
    check_draw,
    check_outputs,
    flag,
    given,
    option,
    with_options,
)
from crowdtree.cli.policy import PolicyOptions, read_policy
from crowdtree.cli.render.progress import item_words, job_words, progress
from crowdtree.cli.render.tables import show_policies
from crowdtree.core.checking import check_share
from crowdtree.core.errors import CrowdtreeError, CrowdtreeWarning, listing
from crowdtree.core.problem import Problem
from crowdtree.core.sources import Source
from crowdtree.core.text import amount, number, percent, plural
from crowdtree.planning import PlanChoices, forecast_checks, run_cost
from crowdtree.simulation import Crowd, simulate
from crowdtree.simulation.compare import compare_policies

MOST_ERROR = 0.499
QUESTIONS_SHOWN = 8
FINDINGS_SHOWN = 5


PeoplePerItem = Annotated[
    int,
    option(
        "Minimum number of different people per label; live campaigns require 2.",
        "N",
        "--people-per-item",
    ),
]


@dataclass(frozen=True)
class CrowdOptions:
    """How the simulated people differ from the assumptions."""

    skill_sd: Annotated[float, option("Standard deviation of the workers' skill, in logits.")] = 0.0
    spammers: Annotated[float, option("Share of spammers.")] = 0.0
    shared_difficulty: Annotated[
        float | None,
        option(
            "Correlation of the answers to one item, in place of the problem's dependence.",
            show_default=False,
        ),
    ] = None
    true_errors: Annotated[
        float, option("True errors, as a multiple of the assumed ones.", "X")
    ] = 1.0
    classifier_accuracy: Annotated[
        float | None,
        option(
            "Every item starts from what a calibrated classifier of this accuracy says.",
            "SHARE",
            show_default=False,
        ),
    ] = None


@dataclass(frozen=True)
class EngineOptions:
    """Where the simulation runs."""

    engine: Annotated[str, option("Where to run: local, or dask://HOST:PORT.", "WHERE")] = "local"
    jobs: Annotated[int, option("Number of processes; -1 for all cores.")] = 1
    checkpoint: Annotated[
        Path | None, option("Folder to save finished parts to and resume from.", "DIR")
    ] = None


@dataclass(frozen=True)
class Outputs:
    """Output options."""

    draw: Draw = None
    as_json: AsJson = False

    def __post_init__(self) -> None:
        check_draw(self.draw)
        check_outputs([self.draw])


@with_options
def simulate_verb(
    file: File,
    *,
    policy: PolicyOptions,
    items: Annotated[int, option("Number of items.")] = 10_000,
    compare: Annotated[
        bool, flag("--compare", "Compare all policies at the target error or loss.")
    ] = False,
    adapt: Annotated[
        bool,
        flag("--adapt", "Test the table against the answers, and revise it if they contradict it."),
    ] = False,
    certify: Annotated[
        float | None,
        option("Estimate the checks that certify at most this share of wrong labels.", "BOUND"),
    ] = None,
    people: PeoplePerItem = 1,
    price: Prices = None,
    crowd: CrowdOptions,
    engine: EngineOptions,
    outputs: Outputs,
    seed: Seed = 0,
    reading: ReadingGroups,
) -> None:
    """Estimate the cost and error of a policy with a simulated crowd.

    FILE is a plan, or a problem, for which --policy makes one.

    Examples:

      crowdtree simulate example:animals

      crowdtree simulate plan.json --items 100000

      crowdtree simulate birds.csv --spammers 0.1 --skill-sd 0.5 --true-errors 2 --json

      crowdtree simulate birds.csv --people-per-item 2

      crowdtree simulate birds.csv --true-errors 2 --adapt --items 500 --certify 0.03

      crowdtree simulate birds.csv --compare --draw policies.svg

      crowdtree simulate example:mushrooms --compare --target-loss 0.05
    """
    if certify is not None:
        check_share("--certify", certify)
    if compare:
        if adapt or certify is not None or people != 1:
            beside = "--adapt" if adapt else "--people-per-item" if people != 1 else "--certify"
            raise CrowdtreeError(f"--compare: simulates without {beside}; leave out one of them")
        _refuse_beside_compare(policy, crowd, engine)
        _compare(file, policy, reading, outputs, items, seed, price)
        return
    problem, chosen = read_policy(file, policy, reading)
    problem = problem.whole or problem
    held = inputs.read_choices(file)
    prices = _prices(file, held, problem, price)
    what = (problem, chosen, crowd, engine, items, seed, people)
    run = _simulate(*what)
    adapting = _simulate(*what, adapt=True) if adapt else None
    checks = None if certify is None else forecast_checks(adapting or run, certify)
    if outputs.draw is not None:
        from crowdtree.show.plots.policies import draw_run

        draw_run(adapting or run, outputs.draw, policy.policy or "adaptive")

    def show(console: Any) -> None:
        if adapting is None:
            _show_run(console, run, problem, prices)
        else:
            _show_run(console, adapting, problem, prices)
            _show_adaptation(console, adapting, run)
        if checks is not None and certify is not None:
            from crowdtree.cli.audit.common import show_forecast

            show_forecast(console, checks, certify)

    found = _data(run, prices)
    if adapting is not None:
        found = {**_data(adapting, prices), "without_adaptation": found}
    if checks is not None:
        found["checks"] = checks.to_dict()
    then = render.command("explain", file, policy, reading)
    if held is not None and problem.is_yes_no:
        then = render.command("campaign create", file)
    render.emit(outputs.as_json, found, show, [outputs.draw], then)


def _simulate(
    problem: Problem,
    policy: Any,
    crowd: CrowdOptions,
    engine: EngineOptions,
    items: int,
    seed: int,
    people_per_item: int,
    adapt: bool = False,
) -> Any:
    people = Crowd(
        problem=_true_problem(problem, crowd.true_errors),
        skill_sd=crowd.skill_sd,
        spammers=crowd.spammers,
        shared_difficulty=crowd.shared_difficulty,
        classifier_accuracy=crowd.classifier_accuracy,
    )
    with progress(item_words) as watch:
        return simulate(
            problem,
            policy,
            items,
            seed,
            crowd=people,
            engine=engine.engine,
            jobs=engine.jobs,
            checkpoint=engine.checkpoint,
            progress=watch,
            adapt=adapt,
            people_per_item=people_per_item,
        )


def _true_problem(problem: Problem, times: float) -> Problem | None:
    """Multiply all errors, and warn where that would make answers worse than a coin."""
    if times == 1.0:
        return None
    if not 0 <= times < float("inf"):
        raise CrowdtreeError(f"--true-errors: expected 0 or more, got {times:g}")
    error = problem.worker_error * times
    beyond = int((error > MOST_ERROR).sum())
    if beyond:
        warnings.warn(
            f"--true-errors {times:g}: {plural(beyond, 'cell')} would err in half of the answers "
            f"or more; {'it is' if beyond == 1 else 'they are'} kept at {percent(MOST_ERROR)}",
            CrowdtreeWarning,
            stacklevel=2,
        )
    own = {} if not problem.has_sources else {"sources": list(_true_sources(problem, times))}
    return problem.replace(worker_error=error.clip(0, MOST_ERROR), **own)


def _true_sources(problem: Problem, times: float) -> Iterator[Source]:
    """Sources whose own errors are multiplied, too."""
    for source in problem.all_sources:
        error = source.worker_error
        if error is not None:
            error = np.clip(times * np.asarray(error, dtype=np.float64), 0, MOST_ERROR)
        yield replace(source, worker_error=error)


def _prices(
    file: str, held: Any, problem: Problem, entries: list[str] | None
) -> Sequence[float] | None:
    """Prices of the plan, or those that were written."""
    own = held.price if isinstance(held, PlanChoices) else None
    if own is not None and entries:
        raise CrowdtreeError(f"--price: {file} has its own prices; use the problem's file")
    return inputs.read_prices(problem, entries) if own is None else own


def _data(run: Any, prices: Sequence[float] | None) -> dict[str, Any]:
    """The run in plain JSON, with its cost where there are prices."""
    data: dict[str, Any] = run.to_dict()
    if prices is not None or run.problem.has_prices:
        cost = run_cost(run, prices)
        data |= {"cost_per_item": float(cost), "cost_per_item_interval": list(cost.interval)}
    if run.problem.has_sources:
        data["cost_per_source"] = run.cost_per_source(prices)
    return data


def _show_run(console: Any, run: Any, problem: Problem, prices: Sequence[float] | None) -> None:
    wrong, cost = run.misclassification, run.answers_per_item
    console.print(
        f"[bold]{percent(wrong)} misclassified[/] [dim](95 %: {percent(wrong.low)} to "
        f"{percent(wrong.high)})[/] with [bold]{amount(cost, 'answer')}[/] per item "
        f"[dim](95 %: {number(cost.low, 4)} to {number(cost.high, 4)})[/]."
    )
    if prices is not None or problem.has_prices:
        paid = run_cost(run, prices)
        whose = "the prices of the plan" if prices is not None else "the prices of the sources"
        whose = "these prices" if "--price" in inputs.written() else whose
        console.print(
            f"[bold]{number(paid)}[/] per item at {whose} "
            f"[dim](95 %: {number(paid.low)} to {number(paid.high)})[/]."
        )
    if problem.loss is not None:
        console.print(
            f"[bold]Loss {number(run.risk)}[/] per item "
            f"[dim](95 %: {number(max(run.risk.low, 0.0))} to {number(run.risk.high)})[/]."
        )
    if run.undecided:
        left = "referred to an expert" if "referred" in run.reasons else "left undecided"
        console.print(
            f"{percent(run.undecided)} of the items were {left}; "
            f"of the others {percent(run.decided_error)} got a wrong label."
        )
    console.print(f"The policy itself estimated {percent(run.stated_error)} wrong.\n")
    asked = list(run.answers_per_question.items())
    shown = len(asked) if len(asked) <= QUESTIONS_SHOWN + 1 else QUESTIONS_SHOWN
    for name, share in asked[:shown]:
        text = problem.text(problem.question_index(name))
        console.print(f"  {number(share):>8}  {text}", markup=False)
    if len(asked) > shown:
        rest = sum(share for _, share in asked[shown:])
        more = plural(len(asked) - shown, "more question")
        console.print(f"  {number(rest):>8}  {more} together")
    console.print("[dim]  answers per item, by question[/]\n")
    if problem.has_sources:
        _show_sources(console, run, prices)


def _show_sources(console: Any, run: Any, prices: Sequence[float] | None) -> None:
    """Answers and cost per item of each source, and of all together."""
    cost = run.cost_per_source(prices)
    rows = [(name, run.answers_per_source.get(name), paid) for name, paid in cost.items()]
    rows.append(("all sources", float(run.answers_per_item), float(run_cost(run, prices))))
    for name, answers, paid in rows:
        given = "" if answers is None else number(answers)
        console.print(f"  {given:>8}  {number(paid):>8}  {name}", markup=False)
    console.print("[dim]  answers and cost per item, by source[/]\n")


def _show_adaptation(console: Any, run: Any, plain: Any) -> None:
    """Say what watching the table found, and what came out without it."""
    made = run.adaptation
    if made.alarms:
        console.print(f"[bold]The table is wrong:[/] {made.alarms[0]}.")
        console.print(
            f"It was revised {plural(len(made.revisions), 'time')}, and "
            f"{plural(made.reopened, 'label')} taken back."
        )
        for finding in [row for row in made.findings if row.differs][:FINDINGS_SHOWN]:
            console.print(f"  {finding}", markup=False)
    else:
        console.print("The answers do not contradict the table; it was not revised.")
    console.print(
        f"Without adaptation: {percent(plain.misclassification)} misclassified with "
        f"{amount(plain.answers_per_item, 'answer')} per item.\n"
    )


def _refuse_beside_compare(*groups: Any) -> None:
    """Refuse options that a comparison does not take, rather than ignore them."""
    kept = ("--target-error", "--target-loss", "--max-answers", "--criterion")
    pairs = [pair for group in groups for pair in given(group)]
    refused = [option for option, value in pairs if option not in kept and value != 0]
    if refused:
        raise CrowdtreeError(
            f"--compare: simulates every policy on this machine with the assumed errors; "
            f"leave out {listing(refused)}"
        )


def _reached(row: Any) -> str:
    wrong = f"{percent(row.misclassification)} misclassified"
    costly = row.problem.loss is not None
    return f"an expected loss of {number(row.risk)} and {wrong}" if costly else wrong


def _targets(choices: PlanChoices) -> tuple[float, float | None]:
    """The error and loss of a plan's goal; what it reaches, where the goal is a budget."""
    goal, found = choices.goal, choices.recommended.performance
    error = float(found.error) if goal.error is None else goal.error
    if choices.problem.loss is None or goal.error is not None:
        return error, None
    return error, float(found.risk) if goal.loss is None else goal.loss


def _compare(
    file: str,
    policy: PolicyOptions,
    reading: ReadingGroups,
    outputs: Outputs,
    items: int,
    seed: int,
    price: list[str] | None,
) -> None:
    """Compare all policies, and show the table and the picture."""
    held = inputs.read_choices(file, reading)
    problem = inputs.read_either(file, reading)[0] if held is None else held.problem
    prices = _prices(file, held, problem, price)
    error, loss = policy.target_error, policy.target_loss
    written = inputs.written()
    if isinstance(held, PlanChoices) and written.isdisjoint(("--target-error", "--target-loss")):
        error, loss = _targets(held)
    with progress(job_words) as watch:
        found = compare_policies(
            problem,
            error,
            loss=loss,
            items=items,
            rng=seed,
            max_answers=policy.max_answers,
            criterion=policy.criterion,
            allow_groups=reading.allow_groups,
            progress=watch,
        )
    if outputs.draw is not None:
        from crowdtree.show.plots.policies import draw_comparison

        draw_comparison(found, outputs.draw)
    costs = None if prices is None else [float(run_cost(row.run, prices)) for row in found.rows]
    data = found.to_dict()
    for row, cost in zip(data["policies"], costs or (), strict=bool(costs)):
        row["cost_per_item"] = cost

    def show(console: Any) -> None:
        fair = [row for row in found.rows if row.note != "does not reach it"]
        if fair:
            best = min(fair, key=lambda row: row.answers)
            console.print(
                f"[bold]{best.policy}[/] needs fewest answers: "
                f"[bold]{amount(best.answers, 'answer')}[/] per item for {_reached(best)}.\n"
            )
        show_policies(console, found.rows, costs)

    then = "" if outputs.draw is not None else render.again("--draw", "policies.svg")
    render.emit(outputs.as_json, data, show, [outputs.draw], then)
