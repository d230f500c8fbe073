"""Problems and plans from the arguments of the command line."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from crowdtree import io as files
from crowdtree.cli import streams
from crowdtree.cli.options import ARGUMENTS, Reading, ReadingGroups, check_price, given
from crowdtree.core.errors import CrowdtreeError, listing
from crowdtree.core.fixed_plan import Plan
from crowdtree.core.problem import Problem
from crowdtree.core.reading import Source, open_source
from crowdtree.core.tree import Tree
from crowdtree.designs.designers import design
from crowdtree.io.documents import with_notes
from crowdtree.io.formats import ending_of_content

if TYPE_CHECKING:
    from crowdtree.planning import PlanChoices
    from crowdtree.policies import Policy

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
    else:
        problem = _read_example(file, reading)
    if problem.notes and not quiet:
        say(f"{file}: {'; '.join(problem.notes)}")
    return problem


def _read_example(file: str, reading: Reading) -> Problem:
    """Load an example problem, with changes."""
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
    notes: tuple[str, ...] = ()
    if reading.sources is not None:
        read = files.read_sources(reading.sources, problem.classes, problem.questions)
        changes["sources"] = read.sources
        changes["source_dependence"] = read.dependence or 0.0
        notes = read.notes
    return with_notes(problem.replace(**changes), notes) if changes else problem


def written() -> set[str]:
    """The options that the user wrote."""
    return {word.partition("=")[0] for word in ARGUMENTS if word.startswith("--")}


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
    chosen = read_chosen(file, reading)
    if chosen is not None:
        if chosen.plan is not None:
            return chosen.plan
        raise CrowdtreeError(
            f"{file}: holds an adaptive policy, which has no tree; crowdtree plan --tree -o writes "
            "the fixed tree"
        )
    plan = None if file.startswith(EXAMPLE) else files.find_plan(source_of(file))
    if plan is not None:
        _refuse_reading(file, reading)
    return plan


def read_chosen(file: str, reading: Reading | None = None) -> Policy[Any] | None:
    """Read the policy that `plan` chose, or nothing if the file holds something else."""
    held = read_choices(file, reading)
    if held is None:
        return None
    from crowdtree.planning import PlanChoices

    return held.policy if isinstance(held, PlanChoices) else held


def read_choices(file: str, reading: Reading | None = None) -> PlanChoices | Policy[Any] | None:
    """Read what `plan` wrote, or a policy; nothing if the file holds something else."""
    if file.startswith(EXAMPLE):
        return None
    source = source_of(file)
    if files.kind_of(source) not in ("choices", "policy"):
        return None
    _refuse_reading(file, reading)
    from crowdtree.show.output import load

    held: PlanChoices | Policy[Any] = load(source)
    return held


def _refuse_reading(file: str, reading: Reading | None) -> None:
    for name, _ in given(reading) if reading else ():
        if name != "--allow-groups":
            raise CrowdtreeError(
                f"{name}: {file} is a plan and contains its problem; use the problem's file"
            )


def read_either(file: str, reading: Reading) -> tuple[Problem, Plan | None]:
    """Read a problem, and the plan where the file holds one."""
    plan = read_plan(file, reading)
    return (read_problem(file, reading), None) if plan is None else (plan.tree.problem, plan)


def read_prices(problem: Problem, entries: list[str] | None) -> list[float] | None:
    """Read ``--price 0.02`` (all questions) and ``--price question=0.05`` (one of them)."""
    if not entries:
        return None
    prices: list[float | None] = [None] * problem.n_questions
    for entry in sorted(entries, key=lambda words: "=" in words):
        name, named, amount = entry.rpartition("=")
        try:
            value = float(amount)
        except ValueError:
            raise CrowdtreeError(
                f"--price: expected 0.02 or question=0.02, got {entry!r}"
            ) from None
        check_price(value)
        if named:
            prices[problem.question_index(name)] = value
        else:
            prices = [value] * problem.n_questions
    absent = [q for q, price in zip(problem.questions, prices, strict=True) if price is None]
    if absent:
        have = "has" if len(absent) == 1 else "have"
        raise CrowdtreeError(
            f"--price: {listing(map(repr, absent), 3)} {have} no price; add --price NUMBER for the "
            "questions that are not named"
        )
    return [price for price in prices if price is not None]


def one_price(entries: list[str] | None) -> float | None:
    """Read ``--price 0.02`` where one price is for all answers."""
    if not entries:
        return None
    try:
        price = float(entries[-1])
    except ValueError:
        raise CrowdtreeError(f"--price: expected one number, got {entries[-1]!r}") from None
    check_price(price)
    return price


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
