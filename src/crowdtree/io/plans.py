"""Plans as JSON files: the tree, the votes of its nodes, and the problem they are for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from crowdtree.core.errors import CrowdtreeError, named
from crowdtree.core.fixed_plan import Plan, as_plan
from crowdtree.core.problem import Problem
from crowdtree.core.reading import open_source, shown
from crowdtree.core.tree import Tree
from crowdtree.io.documents import KINDS, problem_from_dict, problem_to_dict
from crowdtree.io.formats import ending_of
from crowdtree.io.yaml_json import parse_document, write_document


def plan_to_dict(plan: Plan | Tree) -> dict[str, Any]:
    """Data of a plan as its file holds it."""
    plan = as_plan(plan)
    problem = plan.tree.problem
    data = {"crowdtree": 1, "kind": "plan", "problem": problem_to_dict(problem.whole or problem)}
    return data | plan.to_dict()


def save_plan(plan: Plan | Tree, path: str | os.PathLike[str]) -> None:
    """Save a plan, or a tree as the plan of one vote each, with its problem, as JSON.

    The file holds ``"tree"`` nested by question, no and yes; one deeper than 100 levels, too deep
    for many readers of JSON, is a list ``"nodes"`` instead, whose branches are numbers in the list.

    >>> import tempfile, crowdtree as ct
    >>> plan = ct.staff(ct.design(ct.example("table1")), workers=4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_plan(plan, Path(folder) / "plan.json")
    ...     load_plan(Path(folder) / "plan.json").votes.tolist() == plan.votes.tolist()
    True
    """
    check_plan_ending(path)
    write_document(Path(path), plan_to_dict(plan))


def load_plan(
    source: str | os.PathLike[str] | Any, problem: Problem | None = None, *, name: str | None = None
) -> Plan:
    """Load a plan, for the problem in its file or for another with the same questions.

    `source`: a file of :func:`save_plan` (its path, its bytes, or a binary stream), or one with a
    ``"tree"`` alone if another problem is given: one in place of that in the file, for instance
    with errors learned since. Every leaf's label must agree with it. `name`: file name of bytes or
    of a stream that has none.

    >>> import crowdtree as ct, pathlib, tempfile
    >>> plan = ct.staff(ct.design(ct.example("table1")), workers=8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load_plan(ct.save(plan, pathlib.Path(folder, "plan.json"))) == plan
    True
    """
    file = open_source(source, name)
    check_plan_ending(file.name)
    return plan_from_dict(parse_document(file), file.name, problem)


def plan_from_dict(data: Any, source: str, problem: Problem | None = None) -> Plan:
    """Make a plan from the data of its document; `source` is the name for messages."""
    from crowdtree.io.schema import PlanFile, check

    if isinstance(data, dict) and ("question" in data or "label" in data):
        data = {"crowdtree": 1, "kind": "plan", "tree": data}  # a bare tree
    elif isinstance(data, dict) and data.get("kind") == "tree":
        data = data | {"kind": "plan"}  # one vote at each of its nodes
    if isinstance(data, dict) and (data.get("kind") == "problem" or "questions" in data):
        raise CrowdtreeError(f"{source}: expected a plan, got {KINDS['problem']}")
    found = check(PlanFile, data, source)
    if not found.tree and not found.nodes:
        raise CrowdtreeError(f"{source}: tree: is missing; add it")
    if problem is None:
        if found.problem is None:
            raise CrowdtreeError(f"{source}: contains no problem; pass problem=")
        problem = problem_from_dict(found.problem, f"{source}: problem")
    given = found.model_dump(exclude={"crowdtree", "kind", "problem"}, exclude_none=True)
    return named(source, Plan.from_dict, problem.as_options(), given)


def find_plan(source: str | os.PathLike[str] | Any, *, name: str | None = None) -> Plan | None:
    """Load a plan, or return ``None`` where the file holds a problem."""
    file = open_source(source, name)
    if ending_of(file.name) != ".json":
        return None
    data = parse_document(file)
    holds = isinstance(data, dict) and (
        data.get("kind") == "plan" or not {"tree", "nodes", "question"}.isdisjoint(data)
    )
    return plan_from_dict(data, file.name) if holds else None


def kind_of(source: str | os.PathLike[str] | Any, *, name: str | None = None) -> str:
    """Kind of result that a JSON file holds; empty for other files and for bare data."""
    file = open_source(source, name)
    if ending_of(file.name) != ".json":
        return ""
    data = parse_document(file)
    return str(data.get("kind", "")) if isinstance(data, dict) else ""


def check_plan_ending(path: str | os.PathLike[str], what: str = "a plan") -> None:
    """Raise unless a file name has the extension of plans and other results."""
    if not os.fspath(path).lower().endswith(".json"):
        raise CrowdtreeError(f"{shown(path)}: expected the extension .json for {what}")
