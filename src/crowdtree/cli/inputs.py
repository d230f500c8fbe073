"""Problems and plans from the arguments of the command line."""

from __future__ import annotations

import os
import sys
from typing import Any

from crowdtree import files
from crowdtree.cli import streams
from crowdtree.cli.options import Reading, ReadingGroups
from crowdtree.designers import design
from crowdtree.errors import CrowdtreeError
from crowdtree.files.formats import ending_of_content
from crowdtree.plan import Plan
from crowdtree.problem import Problem
from crowdtree.reading import Source, open_source
from crowdtree.tree import Tree

__all__ = [
    "make_tree",
    "read_either",
    "read_plan",
    "read_problem",
    "read_tree",
    "say",
    "show_notes",
    "source_of",
]

EXAMPLE = "example:"


def source_of(file: str | os.PathLike[str]) -> Source:
    """Open a file, or standard input for ``-``, whose format is recognised by its content."""
    if os.fspath(file) != streams.STANDARD_INPUT:
        return open_source(file)
    data = streams.read_input()
    return open_source(data, f"stdin{ending_of_content(data)}")


def read_problem(file: str, reading: Reading | None = None, *, quiet: bool = False) -> Problem:
    """Read a problem from a file or from the examples; say how the file was understood."""
    reading = reading or Reading()
    if not file.startswith(EXAMPLE):
        options = reading.without_groups()
        if reading.errors is not None:
            options["errors"] = source_of(reading.errors)
        problem = files.load_problem(source_of(file), **options)
        if problem.notes and not quiet:
            say(f"{file}: {'; '.join(problem.notes)}")
        return problem
    for option in ("errors", "strengths", "rows"):
        if getattr(reading, option):
            option = f"--{option}"
            raise CrowdtreeError(f"{option}: not for {file}, which has its own table; use a file")
    problem = files.example(file.removeprefix(EXAMPLE))
    changes: dict[str, Any] = {
        name: getattr(reading, name) for name in ("worker_error", "dash", "dependence")
    }
    changes = {name: value for name, value in changes.items() if value is not None}
    if reading.loss is not None:
        changes["loss"] = files.read_loss(reading.loss, problem.classes)
    return problem.replace(**changes) if changes else problem


NOTES: list[str] = []
"""How inputs of the running command were understood; shown before its result, unless it fails."""


def say(note: str) -> None:
    """Note how an input was understood."""
    NOTES.append(note)


def show_notes() -> None:
    """Print the notes, each on one line of standard error, and forget them."""
    for note in NOTES:
        line = streams.visible(" ".join(note.split()))
        print(f"crowdtree: note: {line}", file=sys.stderr, flush=True)
    NOTES.clear()


def read_plan(file: str, reading: Reading | None = None) -> Plan | None:
    """Read a plan, or nothing if the file holds a problem.

    A plan contains its problem, so options for reading a problem are refused, not ignored.
    """
    plan = None if file.startswith(EXAMPLE) else files.find_plan(source_of(file))
    if plan is not None:
        for name, _ in reading.given() if reading else ():
            if name != "--allow-groups":
                raise CrowdtreeError(
                    f"{name}: {file} is a plan and contains its problem; use the problem's file"
                )
    return plan


def read_either(file: str, reading: Reading) -> tuple[Problem, Plan | None]:
    """Read a problem, and the plan where the file holds one."""
    plan = read_plan(file, reading)
    return (read_problem(file, reading), None) if plan is None else (plan.tree.problem, plan)


def read_tree(file: str, reading: ReadingGroups, method: str = "fm", seed: int = 0) -> Tree | Plan:
    """Read a plan, or design the tree of a problem."""
    problem, plan = read_either(file, reading)
    return plan if plan is not None else make_tree(problem, method, reading.allow_groups, seed)


def make_tree(
    problem: Problem, method: str, allow_groups: bool, seed: int = 0, **options: Any
) -> Tree:
    """Design with the options that the method takes."""
    if method == "random":
        options["rng"] = seed
    return design(problem, method, allow_groups=allow_groups, **options)
