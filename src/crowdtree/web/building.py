"""From what an owner sends to a policy."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from crowdtree import files
from crowdtree.designers import design
from crowdtree.errors import CrowdtreeError
from crowdtree.plan import Plan
from crowdtree.policy import AdaptivePolicy, PlanPolicy, Policy
from crowdtree.problem import Problem
from crowdtree.staffing import staff

__all__ = ["Wish", "make_policy", "policy_of", "problem_from_bytes", "table_size"]

SUFFIXES = (".csv", ".xlsx", ".yaml", ".yml", ".json")
MOST_UNPACKED = 64 * 2**20


class Wish(BaseModel):
    """What to ask and when to stop.

    Give `problem` (a problem as in a .json file), `example` (a name), or `plan` (a plan as in a
    .json file, which carries its problem).
    """

    model_config = ConfigDict(extra="forbid")
    problem: dict[str, Any] | None = None
    example: Annotated[str, Field(max_length=100)] | None = None
    plan: dict[str, Any] | None = None
    kind: Literal["plan", "adaptive"] = "plan"
    stopping: Literal["none", "curtailed", "margin"] = "curtailed"
    design: Annotated[str, Field(max_length=40)] = "fm"
    workers: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    answers: Annotated[float, Field(gt=0, le=1_000_000)] | None = None
    staffing: Annotated[str, Field(max_length=40)] = "marginal"
    target_error: Annotated[float, Field(ge=0, lt=1)] = 0.05
    max_answers: Annotated[int, Field(ge=1, le=32_000)] = 50
    allow_groups: bool = False


def policy_of(wish: Wish) -> Policy[Any]:
    """Make the policy that an owner wishes.

    >>> policy_of(Wish(example="table1", workers=8))
    PlanPolicy(Plan(...), stopping='curtailed')
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if wish.plan is not None:
            return PlanPolicy(_plan(wish.plan), wish.stopping)
        problem = _problem(wish)
        if wish.kind == "adaptive":
            return AdaptivePolicy(problem, wish.target_error, wish.max_answers, strict=False)
        tree = design(problem, wish.design, allow_groups=wish.allow_groups)
        if wish.workers is None and wish.answers is None:
            return PlanPolicy(tree, wish.stopping)  # type: ignore[arg-type]
        plan = staff(tree, wish.workers, wish.staffing, answers=wish.answers)
        return PlanPolicy(plan, wish.stopping)


def make_policy(tell: Any, wish: Wish) -> Policy[Any]:
    """Make the policy that an owner wishes, in the studio."""
    tell(0.1, "Looking for a good tree")
    return policy_of(wish)


def table_size(problem: dict[str, Any]) -> int:
    """Count the answers in a table that nobody has checked yet: classes times questions.

    >>> table_size({"classes": ["a", "b"], "questions": [1, 2, 3]}), table_size({})
    (6, 0)
    """
    parts = (problem.get("classes"), problem.get("questions"))
    sizes = [len(part) if isinstance(part, list | dict) else 0 for part in parts]
    return sizes[0] * sizes[1]


def _problem(wish: Wish) -> Problem:
    if wish.example is not None:
        return files.example(wish.example)
    if wish.problem is None:
        raise CrowdtreeError("policy: give a problem, an example or a plan")
    return problem_from_bytes(json.dumps(wish.problem).encode(), "problem.json")


def _plan(data: dict[str, Any]) -> Plan:
    return files.load_plan(json.dumps(data).encode(), name="plan.json")


def problem_from_bytes(content: bytes, name: str, **options: Any) -> Problem:
    """Read an uploaded problem file; only the ending of its name is used."""
    suffix = Path(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise CrowdtreeError(f"problem: upload one of {', '.join(SUFFIXES)}")
    if suffix == ".xlsx":
        _check_workbook(content)
    return files.load_problem(content, name=f"problem{suffix}", **options)


def _check_workbook(content: bytes) -> None:
    """Refuse a workbook that unpacks to more than a table of questions could need."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, OSError):
        raise CrowdtreeError("problem: the workbook cannot be read; save it as .xlsx") from None
    if size > MOST_UNPACKED:
        raise CrowdtreeError("problem: the workbook is too large when unpacked")
