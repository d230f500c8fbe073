"""The verb `check`: what is wrong with a table, what is hard in it, and what errors cost."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from typing import Annotated

from crowdtree.cli import inputs, render
from crowdtree.cli.options import AsJson, ProblemFile, Reading, ReadingGroups, option, with_options
from crowdtree.cli.plan import default_goal
from crowdtree.planning.checkup import check


@with_options
def check_verb(
    file: ProblemFile,
    *,
    time_limit: Annotated[float, option("Seconds to spend on the costs of plans.", min=0.0)] = 20.0,
    as_json: AsJson = False,
    reading: Reading,
) -> None:
    """Check a table: prior, useless questions, classes that are hard to tell apart, costs.

    Example:

      crowdtree check birds.csv
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        problem = inputs.read_problem(file, reading, quiet=True)
    found = check(problem, time_limit=time_limit)
    said = [str(w.message) for w in caught]

    lines = [*found.to_text().split("\n"), *(f"Warning: {text}" for text in said)]
    again = ReadingGroups(**asdict(reading), allow_groups=bool(found.groups))
    then = render.command("plan", file, default_goal(problem), again)
    render.emit(as_json, found.to_dict() | {"warnings": said}, lines, then=then)
