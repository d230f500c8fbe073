"""Plans for owners: from what they send to a policy or a menu of plans, computed elsewhere.

What takes seconds runs in the worker process, and its results are cached.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ConfigDict, Field

from crowdtree import io as files
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.fixed_plan import Plan, as_plan
from crowdtree.core.problem import Problem
from crowdtree.core.reading import shown
from crowdtree.core.tree import Tree
from crowdtree.core.votes import Stopping
from crowdtree.designs.designers import design, refuse_groups
from crowdtree.io import problem_from_dict, problem_to_dict
from crowdtree.planning import (
    CertificateCost,
    ExpectedPerformance,
    PlanChoice,
    PlanChoices,
    Report,
    certificate_cost,
    expected_performance,
    people_costs,
    performance_job,
)
from crowdtree.policies import PlanPolicy
from crowdtree.policies.spec import LIMITS, PolicyKind, PolicySpec, make_policy, spec_of
from crowdtree.server.store.types import AnyPolicy, JsonObject
from crowdtree.server.web.plan_menu import PlanMenu, make_menu
from crowdtree.server.web.worker_process import WorkerProcess

T = TypeVar("T")
MAX_MENUS = 8
MAX_PERFORMANCES = 200
SMALL = 4000
"""Cells of a table (classes times questions) for which a tree is found at once."""
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
    stopping: Stopping = "curtailed"
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
    return make_menu(report, problem, given)


def _given_choice(content: bytes, name: str) -> PlanChoice:
    """The policy of an uploaded plan."""
    from crowdtree.show.output import load  # slow to import, and tables do not need it

    held = load(content, name=name)
    if isinstance(held, PlanChoices):
        return held.recommended
    policy = held
    if isinstance(held, Plan | Tree):
        plan = as_plan(held)
        policy = PlanPolicy(plan, "curtailed" if plan.rule.curtailed else "none")
    return PlanChoice(policy.kind, policy, expected_performance(policy))


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


# --------------------------------------------------------------------------------- cache


class Plans:
    """Menus of plans and the performance of policies; computes what it does not hold yet."""

    def __init__(self) -> None:
        self.process = WorkerProcess()
        self.menus: OrderedDict[str, PlanMenu] = OrderedDict()
        self.performances: OrderedDict[str, ExpectedPerformance] = OrderedDict()
        self.by_policy: WeakKeyDictionary[AnyPolicy, ExpectedPerformance] = WeakKeyDictionary()
        """The same by object, because writing out a large policy as a key is slow."""
        self.certificates: OrderedDict[str, CertificateCost] = OrderedDict()
        self.extra: WeakKeyDictionary[AnyPolicy, dict[int, float]] = WeakKeyDictionary()
        """Answers per item in addition, by the least number of people per label."""
        self.pending: dict[tuple[AnyPolicy, int], asyncio.Task[None]] = {}

    def known(self, problem: JsonObject) -> PlanMenu | None:
        """The choices for a stored problem, if they are cached."""
        return self.menus.get(_key(problem))

    async def menu(self, problem: JsonObject, report: Report | None = None) -> PlanMenu:
        """Work out the choices for a stored problem."""
        found = self.known(problem)
        if found is None:
            made = problem_from_dict(problem, "campaign")
            found = await self.process.run(make_menu, made, report=report)
            self.keep(problem, found)
        return found

    async def read(
        self, content: bytes, name: str, options: JsonObject, report: Report
    ) -> PlanMenu:
        """Read a table and work out its choices."""
        found = await self.process.run(read_menu, content, name, options, report=report)
        self.keep(problem_to_dict(found.problem), found)
        return found

    def keep(self, problem: JsonObject, menu: PlanMenu) -> None:
        """Cache the choices and their expected performance."""
        _remember(self.menus, _key(problem), menu, MAX_MENUS)
        for choice in menu.choices:
            _remember(
                self.performances, _policy_key(choice.policy), choice.performance, MAX_PERFORMANCES
            )

    async def performance(self, policy: AnyPolicy) -> ExpectedPerformance:
        """What a policy is expected to do: exactly for a plan, by simulation for others."""
        if policy not in self.by_policy:
            key = _policy_key(policy)
            if key not in self.performances:
                _remember(self.performances, key, await self._performance(policy), MAX_PERFORMANCES)
            self.by_policy[policy] = self.performances[key]
        return self.by_policy[policy]

    async def _performance(self, policy: AnyPolicy) -> ExpectedPerformance:
        if policy.plan is not None:
            return await asyncio.to_thread(expected_performance, policy)
        return await self.process.run(performance_job, policy)

    async def performance_soon(
        self, policy: AnyPolicy, people: int = 1
    ) -> ExpectedPerformance | None:
        """What a policy does with a least number of people per label; nothing while computed."""
        extra = self.extra.get(policy, {}).get(people, 0.0 if people == 1 else None)
        quick = policy in self.by_policy or policy.plan is not None
        if extra is not None and (quick or _policy_key(policy) in self.performances):
            found = await self.performance(policy)
            return found.with_more_answers(extra) if extra else found
        if (policy, people) not in self.pending:
            task = asyncio.create_task(self._prepare(policy, people))
            self.pending[policy, people] = task
            task.add_done_callback(lambda done: self._settled((policy, people), done))
        return None

    async def _prepare(self, policy: AnyPolicy, people: int) -> None:
        await self.performance(policy)
        await self.people_costs(policy, [people])

    def _settled(self, key: tuple[AnyPolicy, int], done: asyncio.Task[None]) -> None:
        self.pending.pop(key, None)
        if not done.cancelled():
            done.exception()  # mark it as retrieved; the next request tries again

    async def people_costs(self, policy: AnyPolicy, people: Sequence[int]) -> dict[int, float]:
        """Answers per item that least numbers of people take in addition, in that process."""
        known = self.extra.setdefault(policy, {1: 0.0})
        if missing := [n for n in people if n not in known]:
            known |= await self.process.run(people_costs, policy, missing)
        return {n: known[n] for n in people}

    async def certificate(self, policy: AnyPolicy, bound: float, items: int) -> CertificateCost:
        """What a certificate costs, by simulation in the separate process."""
        key = f"{_policy_key(policy)} {bound} {items}"
        if key not in self.certificates:
            made = await self.process.run(certificate_cost, policy, bound, items)
            _remember(self.certificates, key, made, MAX_PERFORMANCES)
        return self.certificates[key]

    async def policy_of(self, request: PolicyRequest) -> AnyPolicy:
        """Make the policy that an owner asks for; a large table is left to the process."""
        if request.problem is None or table_size(request.problem) <= SMALL:
            return await asyncio.to_thread(policy_of, request)
        return await self.process.run(build_policy, request)

    def close(self) -> None:
        """Stop what is being computed."""
        for task in self.pending.values():
            task.cancel()
        self.process.close()


def _key(document: object) -> str:
    text = json.dumps(document, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _policy_key(policy: AnyPolicy) -> str:
    return _key({"problem": problem_to_dict(policy.problem), "policy": policy.to_dict()})


def _remember(kept: OrderedDict[str, T], key: str, value: T, most: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)
