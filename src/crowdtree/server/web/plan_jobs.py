"""From what an owner sends to a policy or a menu; the slow part runs in the worker process."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from crowdtree import io as files
from crowdtree import planning
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.fixed_plan import Plan, as_plan
from crowdtree.core.problem import Problem
from crowdtree.core.reading import shown
from crowdtree.core.tree import Tree
from crowdtree.designs.designers import design, refuse_groups
from crowdtree.planning import PlanChoice, PlanChoices, Report
from crowdtree.policies import PlanPolicy
from crowdtree.policies.spec import LIMITS, PolicyKind, PolicySpec, make_policy, spec_of
from crowdtree.server.store.types import AnyPolicy, JsonObject
from crowdtree.server.web import plan_menu
from crowdtree.server.web.plan_menu import PlanMenu

EXAMPLE = "example:"
PLAN_KINDS = ("choices", "policy", "plan", "tree")
SUFFIXES = (".csv", ".xlsx", ".yaml", ".yml", ".json")
MAX_NAME = 60
"""Characters of a file's name in a message."""
MAX_UNPACKED = 64 * 2**20
CHECKED = ("policy", *LIMITS)


class PolicyRequest(BaseModel):
    """What to ask and when to stop.

    Give `problem` (a problem as in a .json file), `example` (a name), or `plan` (a plan as in a
    .json file, which carries its problem).
    """

    model_config = ConfigDict(extra="forbid")
    problem: dict[str, Any] | None = None
    example: Annotated[str, Field(max_length=100)] | None = None
    plan: dict[str, Any] | None = None
    kind: PolicyKind = "plan"
    stopping: Literal["none", "curtailed", "margin"] = "curtailed"
    design: Annotated[str, Field(max_length=40)] = "fm"
    workers: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    answers: Annotated[float, Field(gt=0, le=1_000_000)] | None = None
    staffing: Annotated[str, Field(max_length=40)] = "marginal"
    target_error: Annotated[float, Field(ge=0, lt=1)] = 0.05
    target_loss: Annotated[float, Field(ge=0, le=1e9)] | None = None
    max_answers: Annotated[int, Field(ge=1, le=32_000)] = 50
    allow_groups: bool = False
    options: dict[str, Any] = {}
    """Further options of the policy, as the definition of a campaign has them."""


def policy_of(request: PolicyRequest) -> AnyPolicy:
    """Make the policy that an owner asks for.

    >>> policy_of(PolicyRequest(example="table1", workers=8))
    PlanPolicy(Plan(...), stopping='curtailed')
    """
    spec = PolicySpec(
        **request.model_dump(exclude={"problem", "example", "plan", "options"}),
        options=_checked_options(request.options),
    )
    with warnings.catch_warnings(action="ignore"):
        source = _source(request)
        try:
            return make_policy(source, spec)
        except CrowdtreeError:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            if not request.options:
                raise
            raise CrowdtreeError(f"policy: options: cannot be read: {error}") from None


def _checked_options(options: JsonObject) -> JsonObject:
    for name in CHECKED:
        if name in options:
            raise CrowdtreeError(f"policy: options: put {name} next to options, not inside")
    try:
        json.dumps(options, allow_nan=False)
    except (ValueError, RecursionError):
        raise CrowdtreeError("policy: options: numbers must be finite") from None
    return options


def to_request(policy: AnyPolicy) -> JsonObject:
    """Write a policy as :class:`PolicyRequest` takes it.

    >>> policy = policy_of(PolicyRequest(example="table1", kind="adaptive"))
    >>> policy_of(PolicyRequest(**to_request(policy))).to_dict() == policy.to_dict()
    True
    """
    source, spec = spec_of(policy)
    made: JsonObject
    if isinstance(source, Plan):
        made = {"plan": files.plan_to_dict(source), "kind": spec.kind, "stopping": spec.stopping}
    else:
        made = {"problem": files.problem_to_dict(source), "kind": spec.kind}
        if spec.kind != "batch":
            made |= {"target_error": spec.target_error, "max_answers": spec.max_answers}
        if spec.target_loss is not None:
            made["target_loss"] = spec.target_loss
    return {**made, "options": dict(spec.options)} if spec.options else made


def build_policy(report: Report, request: PolicyRequest) -> AnyPolicy:
    """Make the policy that an owner asks for, in the worker process."""
    report(0.1, "Looking for a good tree")
    return policy_of(request)


def read_menu(report: Report, content: bytes, name: str, options: JsonObject) -> PlanMenu:
    """Read an uploaded table (or ``example:NAME``) and work out its choices."""
    report(0.02, "Reading the table")
    example = name.removeprefix(EXAMPLE)
    given = None
    if example != name:
        problem = files.example(example)
    elif name.lower().endswith(".json") and files.kind_of(content, name=name) in PLAN_KINDS:
        given = _given_choice(content, name)
        problem = given.policy.problem
    else:
        problem = problem_from_bytes(content, name, **options)
    problem.require_yes_no("campaign")
    with warnings.catch_warnings(action="ignore"):
        refuse_groups(design(problem, "gain", allow_groups=True))
    return plan_menu.make_menu(report, problem, given)


def _given_choice(content: bytes, name: str) -> PlanChoice:
    """The policy of an uploaded plan."""
    from crowdtree.show.output import load  # slow to import, and tables do not need it

    held = load(content, name=name)
    if isinstance(held, PlanChoices):
        return held.recommended
    policy = held
    if isinstance(held, Plan | Tree):
        plan = as_plan(held)
        policy = PlanPolicy(plan, "none" if plan.vote == "margin" else "curtailed")
    return PlanChoice(policy.kind, policy, planning.expected_performance(policy))


def table_size(problem: JsonObject) -> int:
    """Count the cells of a table that is not checked yet: classes times questions.

    >>> table_size({"classes": ["a", "b"], "questions": [1, 2, 3]}), table_size({})
    (6, 0)
    """
    parts = (problem.get("classes"), problem.get("questions"))
    sizes = [len(part) if isinstance(part, list | dict) else 0 for part in parts]
    return sizes[0] * sizes[1]


def _source(request: PolicyRequest) -> Problem | Plan:
    if request.plan is not None:
        return files.load_plan(json.dumps(request.plan).encode(), name="plan.json")
    if request.example is not None:
        return files.example(request.example)
    if request.problem is None:
        raise CrowdtreeError("policy: expected a problem, an example or a plan")
    return problem_from_bytes(json.dumps(request.problem).encode(), "problem.json")


def problem_from_bytes(content: bytes, name: str, **options: Any) -> Problem:
    """Read an uploaded problem file; its name is for its format and for messages."""
    name = shown(Path(name).name)
    suffix = Path(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise CrowdtreeError(f"problem: upload one of {', '.join(SUFFIXES)}")
    if suffix == ".xlsx":
        _check_workbook(content)
    return files.load_problem(content, name=f"{Path(name).stem[:MAX_NAME]}{suffix}", **options)


def _check_workbook(content: bytes) -> None:
    """Refuse a workbook that unpacks to more than a table of questions could need."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, OSError):
        raise CrowdtreeError("problem: the workbook cannot be read; save it as .xlsx") from None
    if size > MAX_UNPACKED:
        raise CrowdtreeError("problem: the workbook is too large when unpacked")
