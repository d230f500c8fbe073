"""The verb `plan`: the best policy for an error, a budget or a loss."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from crowdtree import io as files
from crowdtree.cli import inputs, render
from crowdtree.cli.options import (
    AsJson,
    Output,
    Prices,
    ProblemFile,
    ReadingGroups,
    Seed,
    check_draw,
    check_outputs,
    check_plan,
    flag,
    given,
    option,
    share_option,
    with_options,
)
from crowdtree.cli.render.plan import show_tree
from crowdtree.cli.render.progress import job_words, progress
from crowdtree.cli.render.tables import show_choices
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.evaluation import evaluate
from crowdtree.core.problem import Problem
from crowdtree.designs.frontiers import Goal
from crowdtree.planning import MAX_ANSWERS, TIME_LIMIT, PlanChoices, plan, reachable_goal
from crowdtree.show.plots import draw_tree


@dataclass(frozen=True)
class GoalOptions:
    """What to plan for: exactly one of these."""

    error: Annotated[
        float | None, share_option("--error", help="Share of wrong labels, at most: 0.01 or 1%.")
    ] = None
    answers: Annotated[float | None, option("Expected answers per item, at most.", "N")] = None
    cost: Annotated[float | None, option("Expected price per item, at most.", "C")] = None
    max_loss: Annotated[float | None, option("Expected loss per item, at most.", "L")] = None

    def __post_init__(self) -> None:
        if not self.given:
            return
        wanted = [name for name, _ in given(self) if name != "--undecided"]
        if len(wanted) > 1:
            raise CrowdtreeError(f"{' and '.join(wanted)}: expected one of them, got both")
        self.goal.check()

    @property
    def goal(self) -> Goal:
        """The goal as the library takes it."""
        undecided = getattr(self, "undecided", 0.0)
        return Goal(self.error, self.answers, self.cost, self.max_loss, undecided)

    @property
    def given(self) -> bool:
        """Whether there is a goal."""
        return (self.error, self.answers, self.cost, self.max_loss) != (None,) * 4

    def plan(
        self, problem: Problem, prices: list[float] | None, reading: ReadingGroups, **options: Any
    ) -> PlanChoices:
        """Plan for the goal."""
        if self.cost is not None and prices is None and not problem.has_prices:
            raise CrowdtreeError("--cost: give the --price of an answer, or use --answers")
        return plan(
            problem,
            error=self.error,
            answers=self.answers,
            cost=self.cost,
            max_loss=self.max_loss,
            price=prices,
            allow_groups=reading.allow_groups,
            **options,
        )


def default_goal(problem: Problem) -> GoalOptions:
    """A goal to suggest: 1 % wrong labels, or an expected loss; more, where that is not reached."""
    goal = reachable_goal(problem, error=0.01, loss=0.1)
    return GoalOptions(error=goal.error, max_loss=goal.loss)


@dataclass(frozen=True)
class Outputs:
    """Output options."""

    as_json: AsJson = False
    output: Output = None
    tree: Annotated[bool, flag("--tree", "Show and write the fixed tree instead.")] = False
    draw: Annotated[
        Path | None,
        option(
            "Draw the fixed tree (of several sources, unless --tree is given, what each mix costs) "
            "to FILE.svg, .png or .html.",
            "FILE",
        ),
    ] = None

    def __post_init__(self) -> None:
        check_plan(self.output)
        check_draw(self.draw)
        check_outputs([self.output, self.draw])


@with_options
def plan_verb(
    file: ProblemFile,
    *,
    goal: GoalOptions,
    price: Prices = None,
    outputs: Outputs,
    max_answers: Annotated[
        int | None,
        option(
            f"Maximum answers per item; by default {MAX_ANSWERS}, and without one for a tree.",
            "N",
            min=1,
        ),
    ] = None,
    time_limit: Annotated[
        float, option("Seconds to spend on the search for trees.", "S", min=0.0)
    ] = TIME_LIMIT,
    reading: ReadingGroups,
    seed: Seed = 0,
) -> None:
    """Plan a campaign: the best policy for an error, a budget or a loss.

    An adaptive policy chooses each question by the answers so far. The best fixed tree is shown
    beside it, for those who need one to print or explain.

    Examples:

      crowdtree plan example:animals --error 0.01

      crowdtree plan birds.csv --answers 8 -o plan.json

      crowdtree plan birds.csv --cost 0.25 --price 0.02 --price hunts=0.05

      crowdtree plan example:mushrooms --max-loss 0.1

      crowdtree plan birds.csv --error 0.01 --tree --draw tree.svg
    """
    if not goal.given:
        raise CrowdtreeError("plan: say what to plan for: --error, --answers, --cost or --max-loss")
    problem = inputs.read_problem(file, reading)
    prices = inputs.read_prices(problem, price)
    with progress(job_words) as watch:
        choices = goal.plan(
            problem,
            prices,
            reading,
            max_answers=max_answers,
            time_limit=time_limit,
            rng=seed,
            progress=watch,
        )
    fixed = choices.fixed_plan
    if fixed is None and outputs.tree:
        raise CrowdtreeError(f"--tree: no fixed tree reaches this: {choices.missing}")
    drawn = outputs.draw
    if fixed is None and drawn is not None and not choices.mixes:
        inputs.say(f"--draw: there is no tree to draw, so {drawn} is not written")
        drawn = None
    if outputs.output is not None and outputs.tree and fixed is not None:
        files.save_plan(fixed, outputs.output)
    elif outputs.output is not None:
        choices.save(outputs.output)
    if drawn is not None and choices.mixes and not outputs.tree:
        choices.draw(drawn)
    elif drawn is not None and fixed is not None:
        draw_tree(fixed, drawn)

    def show(console: Any) -> None:
        show_choices(console, choices)
        if outputs.tree and fixed is not None:
            show_tree(console, evaluate(fixed))

    if outputs.output is not None:
        then = render.command("simulate", str(outputs.output))
    else:
        then = render.again("-o", "plan.json")
    render.emit(
        outputs.as_json,
        choices.to_dict(),
        show,
        (outputs.output, drawn),
        then,
    )
