"""What the verbs share: their options, reading the input, printing the result."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from crowdtree import files
from crowdtree.errors import CrowdtreeError
from crowdtree.plan import Plan, as_plan
from crowdtree.problem import Problem
from crowdtree.tree import Tree

__all__ = [
    "AllowGroups",
    "AsJson",
    "DashOption",
    "Errors",
    "File",
    "Normalise",
    "Output",
    "Seed",
    "Strengths",
    "WorkerError",
    "again",
    "console",
    "emit",
    "read_plan",
    "read_problem",
    "save",
    "tell_next",
]

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A problem (.csv .xlsx .yaml .json), a plan (.json), or example:NAME.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Output = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the plan to FILE.json.")
]
WorkerError = Annotated[
    float | None,
    typer.Option("--worker-error", metavar="E", help="One error for all questions, 0 to 1."),
]
Errors = Annotated[
    Path | None, typer.Option("--errors", metavar="FILE", help="A table of errors, one per cell.")
]
DashOption = Annotated[
    Literal["inapplicable", "either"] | None,
    typer.Option("--dash", help="What - means.", show_default=False),
]
Normalise = Annotated[
    bool, typer.Option("--normalise", help="Scale the prior so that it sums to 1.")
]
Strengths = Annotated[
    bool, typer.Option("--strengths", help="The cells are shares of people who say yes.")
]
AllowGroups = Annotated[
    bool, typer.Option("--allow-groups", help="Accept classes that no question tells apart.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of what is random.")]


def read_problem(
    file: str,
    worker_error: float | None = None,
    errors: Path | None = None,
    dash: Literal["inapplicable", "either"] | None = None,
    normalise: bool = False,
    strengths: bool = False,
) -> Problem:
    """Read a problem from a file or from the examples."""
    if file.startswith("example:"):
        for option, given in (("--errors", errors is not None), ("--strengths", strengths)):
            if given:
                raise CrowdtreeError(f"{option}: {file} has its own table; give a file")
        problem = files.example(file.removeprefix("example:"))
        changes: dict[str, Any] = {}
        if worker_error is not None:
            changes["worker_error"] = worker_error
        if dash is not None:
            changes["dash"] = dash
        return problem.replace(**changes) if changes else problem
    return files.load_problem(
        file,
        errors=errors,
        worker_error=worker_error,
        dash=dash,
        normalise=normalise,
        strengths=strengths,
    )


def read_plan(file: str, *reading: Any) -> Plan | None:
    """Read a plan, or nothing if the file holds a problem.

    `reading` are the options of :func:`read_problem`: a plan holds its problem, so they are
    refused rather than left out in silence.
    """
    if file.startswith("example:") or not files.is_plan(file):
        return None
    names = ("--worker-error", "--errors", "--dash", "--normalise", "--strengths")
    for name, given in zip(names, reading, strict=False):
        if given is not None and given is not False:
            raise CrowdtreeError(f"{name}: {file} is a plan and holds its problem; give that")
    return files.load_plan(file)


def again(verb: str, file: str, *words: object, reading: tuple[Any, ...] = ()) -> str:
    """Write the command to go on with, for the same file read in the same way.

    >>> again("staff", "my birds.csv", "--workers", 4, reading=(0.1, None, None, True))
    "crowdtree staff 'my birds.csv' --workers 4 --worker-error 0.1 --normalise"
    """
    told: list[object] = ["crowdtree", verb, file, *words]
    names = ("--worker-error", "--errors", "--dash", "--normalise", "--strengths", "--allow-groups")
    for name, given in zip(names, reading, strict=False):
        if given is not None and given is not False:
            told += [name] if given is True else [name, given]
    return shlex.join(str(word) for word in told)


def tell_next(console: Any, command: str) -> None:
    """Print how to go on."""
    console.print(f"Next: {command}", style="dim", markup=False, soft_wrap=True)


def console() -> Any:
    """Make the printer: styled on a terminal, plain otherwise, NO_COLOR honoured."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=not sys.stdout.isatty(), emoji=False)


def emit(as_json: bool, found: dict[str, Any], tell: Any) -> None:
    """Print the result as one JSON object, or tell it to a person."""
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
    else:
        tell(console())


def save(result: Tree | Plan, output: Path | None) -> None:
    """Write a plan where one was asked for."""
    if output is None:
        return
    if output.suffix != ".json":
        raise CrowdtreeError(f"{output}: a plan is written as .json; use -o {output.stem}.json")
    files.save_plan(as_plan(result), output)
