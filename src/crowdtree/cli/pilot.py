"""The verb `pilot`: size of a pilot in gold items and answers."""

from __future__ import annotations

from typing import Annotated, Any

from crowdtree.cli import inputs, render
from crowdtree.cli.options import AsJson, File, ReadingGroups, option, with_options
from crowdtree.core.fixed_plan import as_plan
from crowdtree.core.text import number, percent, plural
from crowdtree.learning.pilot import plan_pilot

CELLS_SHOWN = 8


@with_options
def pilot_verb(
    file: File,
    *,
    half_width: Annotated[
        float, option("Half-width of the interval to reach for each error.")
    ] = 0.05,
    level: Annotated[float, option("Level of the intervals.")] = 0.95,
    answers_per_item: Annotated[int, option("Answers per question and item.")] = 3,
    as_json: AsJson = False,
    reading: ReadingGroups,
) -> None:
    """Compute how many gold items and answers a pilot needs.

    Shows also which cells of the table matter most. FILE is a problem with guessed errors, or a
    plan.

    Examples:

      crowdtree pilot example:animals

      crowdtree pilot plan.json --half-width 0.02
    """
    tree = inputs.read_tree(file, reading)
    problem = as_plan(tree).tree.problem
    pilot = plan_pilot(tree, half_width, level=level, answers_per_item=answers_per_item)
    cells = _sensitive_cells(problem, pilot)
    found = {
        "gold_items": pilot.gold_items,
        "gold_items_random": pilot.gold_items_random,
        "gold_per_class": dict(zip(problem.classes, pilot.gold_per_class.tolist(), strict=True)),
        "answers": pilot.answers,
        "known_items": pilot.known_items,
        "half_width": pilot.half_width,
        "level": pilot.level,
        "cells": cells,
    }

    def show(console: Any) -> None:
        console.print(
            f"[bold]{plural(pilot.gold_items, 'gold item')} and {plural(pilot.answers, 'answer')}"
            f"[/] determine every relevant error to ± {percent(half_width)} "
            f"[dim](estimate, {percent(level)} intervals)[/]."
        )
        console.print(
            f"With random items instead of items chosen by class: "
            f"{plural(pilot.gold_items_random, 'item')}."
        )
        if pilot.known_items is not None:
            console.print(
                "These answers do not tell how many labels are wrong, because errors correlate: "
                f"to know that to ± {percent(half_width)}, check "
                f"{plural(pilot.known_items, 'labelled item')}.\n"
            )
        console.print("Cells that affect the misclassification most:")
        for cell in cells[:CELLS_SHOWN]:
            console.print(
                f"  {number(cell['sensitivity']):>7}  {cell['question']} · {cell['class']} "
                f"({plural(cell['answers'], 'answer')})",
                markup=False,
            )

    render.emit(as_json, found, show)


def _sensitive_cells(problem: Any, pilot: Any) -> list[dict[str, Any]]:
    """Cells by their effect on the misclassification, the largest first."""
    slope = pilot.sensitivity
    used = [(float(slope[q, c]), q, c) for q, c in zip(*slope.nonzero(), strict=True)]
    return [
        {
            "question": problem.questions[q],
            "class": problem.classes[c],
            "sensitivity": size,
            "answers": int(pilot.answers_per_cell[q, c]),
        }
        for size, q, c in sorted(used, key=lambda cell: (-abs(cell[0]), cell[1], cell[2]))
    ]
