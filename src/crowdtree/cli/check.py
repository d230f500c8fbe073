"""The verb `check`: the content of a problem file, and its errors."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from typing import Any

from crowdtree.cli import inputs, render
from crowdtree.cli.options import AsJson, ProblemFile, Reading, ReadingGroups, with_options
from crowdtree.designers import design
from crowdtree.errors import listing
from crowdtree.text import plural

__all__ = ["check_verb"]


@with_options
def check_verb(file: ProblemFile, *, as_json: AsJson = False, reading: Reading) -> None:
    """Check a problem file: its size, and the classes that no question separates.

    Example:

      crowdtree check birds.csv
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        problem = inputs.read_problem(file, reading)
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

    def show(console: Any) -> None:
        counts = plural(problem.n_classes, "class", "classes")
        console.print(f"[bold]{counts}, {plural(problem.n_questions, 'question')}: fine.[/]")
        for note in notes:
            console.print(f"Note: {note}", soft_wrap=True, markup=False)
        for group in groups:
            words = f"No question separates: {listing(group, 20)}"
            console.print(words, soft_wrap=True, markup=False)

    again = ReadingGroups(**asdict(reading), allow_groups=bool(groups))
    render.emit(as_json, found, show, then=render.command("design", file, reading=again))
