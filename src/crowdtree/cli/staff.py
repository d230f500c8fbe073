"""The verb `staff`: how many workers each question of a tree gets."""

from __future__ import annotations

from typing import Annotated, Literal

from crowdtree.cli import inputs, render
from crowdtree.cli.options import (
    Design,
    ExtraWorkers,
    File,
    PlanOutputs,
    ReadingGroups,
    Seed,
    one_of,
    option,
    with_options,
)
from crowdtree.cli.render.plan import finish
from crowdtree.core.evaluation import evaluate
from crowdtree.core.fixed_plan import Plan
from crowdtree.designs.staffing import STAFFERS, staff


@with_options
def staff_verb(
    file: File,
    *,
    workers: ExtraWorkers = None,
    answers: Annotated[
        float | None, option("Expected answers per item, in place of --workers.")
    ] = None,
    method: Annotated[str, one_of(STAFFERS, "-m", "--method")] = "marginal",
    design_method: Design = "fm",
    pool: Annotated[
        Literal["node", "question"],
        option("Whether a team serves one node, or all nodes of a question."),
    ] = "node",
    outputs: PlanOutputs,
    reading: ReadingGroups,
    seed: Seed = 0,
) -> None:
    """Choose how many workers each question of a tree gets; for a campaign, use plan.

    FILE is a problem, whose tree is designed first, or a plan written by design.

    Examples:

      crowdtree staff example:animals --workers 100

      crowdtree staff plan.json --answers 20 -o staffed.json

      crowdtree staff birds.csv --workers 50 --method paper-fm --json
    """
    given = inputs.read_tree(file, reading, design_method, seed)
    tree = given.tree if isinstance(given, Plan) else given
    prices = inputs.read_prices(tree.problem, outputs.price)
    value = evaluate(staff(tree, workers, method, answers=answers, pool=pool, rng=seed))
    then = render.again("-o", "plan.json")
    if outputs.output is not None:
        then = render.command("report", str(outputs.output), *outputs.price_words)
    finish(value, outputs, then, prices)
