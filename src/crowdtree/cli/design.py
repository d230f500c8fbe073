"""The verb `design`: the tree of questions that misclassifies least."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from crowdtree.cli import inputs, render
from crowdtree.cli.options import (
    PlanOutputs,
    ProblemFile,
    ReadingGroups,
    Seed,
    given,
    one_of,
    option,
    with_options,
)
from crowdtree.cli.render import progress
from crowdtree.cli.render.plan import finish
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.evaluation import evaluate
from crowdtree.designs.designers import DESIGNERS

Method = Annotated[str, one_of(DESIGNERS, "-m", "--method")]


@dataclass(frozen=True)
class Limits:
    """Objective and limits of the optimal designer."""

    objective: Annotated[
        Literal["additive", "exact"] | None,
        option(
            "Objective of method optimal; by default additive, but returning the tree that "
            "misclassifies least.",
            show_default=False,
        ),
    ] = None
    time_limit: Annotated[
        float | None, option("Time limit of method optimal, in seconds.", "S")
    ] = None
    gap_limit: Annotated[float, option("Relative gap at which method optimal stops.")] = 0.0
    node_limit: Annotated[
        int | None, option("Maximum number of class sets that method optimal searches.")
    ] = None

    def options(self, method: str) -> dict[str, Any]:
        """Options of a method; those that it does not take are refused rather than ignored."""
        if method == "optimal":
            return asdict(self)
        for name, _ in given(self):
            raise CrowdtreeError(
                f"{name}: method {method!r} does not take it; use --method optimal"
            )
        return {}


@with_options
def design_verb(
    file: ProblemFile,
    *,
    method: Method = "fm",
    outputs: PlanOutputs,
    reading: ReadingGroups,
    seed: Seed = 0,
    limits: Limits,
) -> None:
    """Design a decision tree of questions; for a campaign, use plan.

    Examples:

      crowdtree design example:animals

      crowdtree design example:animals --method optimal

      crowdtree design birds.csv --draw tree.svg -o plan.json

      crowdtree design birds.xlsx --method gain --worker-error 0.1 --json
    """
    options = limits.options(method)
    problem = inputs.read_problem(file, reading)
    prices = inputs.read_prices(problem, outputs.price)
    with progress.progress(progress.search_words) as watch:
        if method == "optimal":
            options["progress"] = watch
        tree = inputs.make_tree(problem, method, reading.allow_groups, seed, **options)
    words: list[object] = [] if method == "fm" else ["--design", method]
    words += ["--seed", seed] if seed else []
    words += ["--workers", 10 * tree.n_nodes, *outputs.price_words, reading]
    finish(evaluate(tree), outputs, render.command("staff", file, *words), prices)
