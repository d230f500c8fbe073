"""Verbs that make and judge trees and plans: design, staff, evaluate, check."""

from __future__ import annotations

import math
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
    Output,
    Seed,
    Strengths,
    WorkerError,
)
from crowdtree.design import DESIGNERS, design
from crowdtree.errors import CrowdtreeError, listing
from crowdtree.evaluate import Evaluation, evaluate
from crowdtree.plan import Plan
from crowdtree.problem import Problem
from crowdtree.staffing import STAFFERS, staff
from crowdtree.text import plural
from crowdtree.tree import Tree

__all__ = ["check_verb", "design_verb", "evaluate_verb", "report_of", "staff_verb"]

Method = Annotated[
    str, typer.Option("-m", "--method", help=f"One of: {', '.join(DESIGNERS)}.", metavar="NAME")
]
Design = Annotated[
    str, typer.Option("--design", help=f"One of: {', '.join(DESIGNERS)}.", metavar="NAME")
]
Draw = Annotated[
    Path | None,
    typer.Option("--draw", metavar="FILE", help="Draw the tree to FILE.svg, .png or .html."),
]
Full = Annotated[bool, typer.Option("--full", help="Print large trees without folding.")]
Levels = Annotated[bool, typer.Option("--levels", help="Print the level table too.")]


def design_verb(
    file: File,
    method: Method = "fm",
    as_json: AsJson = False,
    output: Output = None,
    draw: Draw = None,
    levels: Levels = False,
    full: Full = False,
    worker_error: WorkerError = None,
    errors: Errors = None,
    dash: DashOption = None,
    normalise: Normalise = False,
    strengths: Strengths = False,
    allow_groups: AllowGroups = False,
    seed: Seed = 0,
    objective: Annotated[
        Literal["additive", "exact"],
        typer.Option("--objective", help="What method optimal proves least."),
    ] = "additive",
    time_limit: Annotated[
        float | None, typer.Option("--time-limit", metavar="S", help="Seconds for method optimal.")
    ] = None,
    gap_limit: Annotated[
        float, typer.Option("--gap-limit", help="Relative gap at which optimal may stop.")
    ] = 0.0,
    node_limit: Annotated[
        int | None, typer.Option("--node-limit", help="Sets that optimal may search.")
    ] = None,
) -> None:
    """Design the decision tree of questions that misclassifies least.

    Examples:

      crowdtree design example:animals

      crowdtree design example:animals --method optimal

      crowdtree design birds.csv --draw tree.svg -o plan.json

      crowdtree design birds.xlsx --method gain --worker-error 0.1 --json
    """
    reading = (worker_error, errors, dash, normalise, strengths)
    limits: dict[str, Any] = {
        "objective": objective,
        "time_limit": time_limit,
        "gap_limit": gap_limit,
        "node_limit": node_limit,
    }
    if method != "optimal":
        _refuse_limits(method, limits)
        limits = {}
    problem = common.read_problem(file, *reading)
    with terminal.watching() as progress:
        if method == "optimal":
            limits["progress"] = progress
        tree = make_tree(problem, method, allow_groups, seed, **limits)
    value = evaluate(tree)

    def tell(console: Any) -> None:
        terminal.show_summary(console, value)
        terminal.show_certificate(console, tree)
        terminal.show_tree(console, value, full)
        if levels:
            terminal.show_levels(console, value)
        words = [*_design_words(method), "--workers", 2 * 5 * tree.n_nodes]
        command = common.again("staff", file, *words, reading=(*reading, allow_groups))
        common.tell_next(console, command)

    finish(value, tell, as_json, output, draw)


def staff_verb(
    file: File,
    workers: Annotated[
        int | None, typer.Option("--workers", help="Extra workers beyond one per node.")
    ] = None,
    answers: Annotated[
        float | None,
        typer.Option("--answers", help="Expected answers per item, in place of workers."),
    ] = None,
    method: Annotated[
        str, typer.Option("-m", "--method", help=f"One of: {', '.join(STAFFERS)}.", metavar="NAME")
    ] = "marginal",
    design_method: Design = "fm",
    pool: Annotated[
        Literal["node", "question"], typer.Option("--pool", help="What a team of workers serves.")
    ] = "node",
    as_json: AsJson = False,
    output: Output = None,
    draw: Draw = None,
    levels: Levels = False,
    full: Full = False,
    worker_error: WorkerError = None,
    errors: Errors = None,
    dash: DashOption = None,
    normalise: Normalise = False,
    strengths: Strengths = False,
    allow_groups: AllowGroups = False,
    seed: Seed = 0,
) -> None:
    """Say how many workers each question of the tree needs.

    FILE is a problem (its tree is designed first) or a plan made by design.

    Examples:

      crowdtree staff example:animals --workers 100

      crowdtree staff plan.json --answers 20 -o staffed.json

      crowdtree staff birds.csv --workers 50 --method paper-fm --json
    """
    reading = (worker_error, errors, dash, normalise, strengths)
    given = common.read_plan(file, *reading)
    if given is None:
        problem = common.read_problem(file, *reading)
        tree = make_tree(problem, design_method, allow_groups, seed)
    else:
        tree = given.tree
    plan = staff(tree, workers, method, answers=answers, pool=pool, rng=seed)
    value = evaluate(plan)

    def tell(console: Any) -> None:
        terminal.show_summary(console, value)
        terminal.show_tree(console, value, full)
        if levels:
            terminal.show_levels(console, value)
        if output is not None:
            command = common.again("report", str(output))
        elif given is None and workers is not None and (method, pool) == ("marginal", "node"):
            words = [*_design_words(design_method), "--workers", workers]
            command = common.again("report", file, *words, reading=(*reading, allow_groups))
        else:  # the report would staff in its own way
            command = "this with -o plan.json, then crowdtree report plan.json"
        common.tell_next(console, command)

    finish(value, tell, as_json, output, draw)


def evaluate_verb(file: File, as_json: AsJson = False, full: Full = False) -> None:
    """Say exactly how often a plan goes wrong and what it costs.

    Example:

      crowdtree evaluate plan.json --json
    """
    plan = common.read_plan(file)
    if plan is None:
        raise CrowdtreeError(
            f"{file}: not a plan; make one with crowdtree design {file} -o plan.json"
        )
    value = evaluate(plan)

    def tell(console: Any) -> None:
        terminal.show_summary(console, value)
        terminal.show_tree(console, value, full)
        terminal.show_levels(console, value)

    finish(value, tell, as_json, None, None)


def check_verb(
    file: File,
    as_json: AsJson = False,
    worker_error: WorkerError = None,
    errors: Errors = None,
    dash: DashOption = None,
    normalise: Normalise = False,
    strengths: Strengths = False,
) -> None:
    """Check a problem file: what is in it, and which classes no question tells apart.

    Example:

      crowdtree check birds.csv
    """
    reading = (worker_error, errors, dash, normalise, strengths)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        problem = common.read_problem(file, *reading)
    tree = design(problem, "gain", allow_groups=True)
    groups = [
        [problem.classes[c] for c in members] for members in tree.leaf_classes if len(members) > 1
    ]
    notes = [str(w.message) for w in caught]
    found = {
        "classes": problem.n_classes,
        "questions": problem.n_questions,
        "dash": problem.dash,
        "groups": groups,
        "warnings": notes,
    }

    def tell(console: Any) -> None:
        counts = plural(problem.n_classes, "class", "classes")
        console.print(f"[bold]{counts}, {plural(problem.n_questions, 'question')}: fine.[/]")
        for note in notes:
            console.print(f"Note: {note}", soft_wrap=True, markup=False)
        for group in groups:
            words = f"No question tells apart: {listing(group, 20)}"
            console.print(words, soft_wrap=True, markup=False)
        command = common.again("design", file, reading=(*reading, bool(groups)))
        common.tell_next(console, command)

    common.emit(as_json, found, tell)


def make_tree(problem: Problem, method: str, allow_groups: bool, seed: int, **options: Any) -> Tree:
    """Design with the options that the method takes."""
    if method == "random":
        options["rng"] = seed
    return design(problem, method, allow_groups=allow_groups, **options)


def _design_words(method: str) -> list[object]:
    return [] if method == "fm" else ["--design", method]


def _refuse_limits(method: str, limits: dict[str, Any]) -> None:
    """Refuse the options of the proven designer where they would be left out in silence."""
    idle = {"objective": "additive", "time_limit": None, "gap_limit": 0.0, "node_limit": None}
    for name, value in limits.items():
        if value != idle[name]:
            option = f"--{name.replace('_', '-')}"
            raise CrowdtreeError(f"{option}: method {method!r} takes none; use --method optimal")


def finish(
    value: Evaluation, tell: Any, as_json: bool, output: Path | None, draw: Path | None
) -> None:
    """Write what was asked for, then print."""
    common.save(value.plan, output)
    if draw is not None:
        from crowdtree.plots import draw_tree

        draw_tree(value.plan, draw)
    common.emit(as_json, report_of(value), tell)


def report_of(value: Evaluation) -> dict[str, Any]:
    """Make the JSON object of a plan: the public names, in words that others rely on."""
    plan, tree = value.plan, value.tree
    return {
        "method": tree.method,
        "tree": tree.to_dict(),
        "misclassification": value.misclassification,
        "additive": value.additive,
        "multiplicative": value.multiplicative,
        "expected_questions": value.expected_questions,
        "expected_answers": value.expected_answers,
        "planned_answers": value.planned_answers,
        "bounds": {
            name: [_number(end) for end in bound] if isinstance(bound, tuple) else _number(bound)
            for name, bound in value.bounds._asdict().items()
        },
        "levels": [_finite(level._asdict()) for level in plan.levels],
        "nodes": [_node_dict(plan, index) for index in range(tree.n_nodes)],
        "staffing": {"method": plan.method, "vote": plan.vote, "workers": plan.workers},
        "votes": plan.votes.tolist(),
        "certificate": None if tree.certificate is None else tree.certificate._asdict(),
    }


def _node_dict(plan: Plan, index: int) -> dict[str, Any]:
    node = plan.tree.nodes[index]
    return {
        "question": node.question,
        "classes": list(node.classes),
        "level": node.level,
        "share": node.share,
        "votes": int(plan.votes[index]),
        "error": float(plan.node_error[index]) / node.share,
    }


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity: a score without error is written as null."""
    return {
        name: _number(value) if isinstance(value, float) else value
        for name, value in values.items()
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
