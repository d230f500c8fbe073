"""Plans to choose from, computed in the worker process and cached."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict
from collections.abc import Sequence
from typing import TypeVar
from weakref import WeakKeyDictionary

from crowdtree.io import problem_from_dict, problem_to_dict
from crowdtree.planning import (
    CertificateCost,
    ExpectedPerformance,
    Report,
    certificate_cost,
    expected_performance,
    people_costs,
    performance_job,
)
from crowdtree.server.store.types import AnyPolicy, JsonObject
from crowdtree.server.web.plan_jobs import (
    PolicyRequest,
    build_policy,
    policy_of,
    read_menu,
    table_size,
)
from crowdtree.server.web.plan_menu import PlanMenu, make_menu
from crowdtree.server.web.worker_process import WorkerProcess

T = TypeVar("T")
MAX_MENUS = 8
MAX_PERFORMANCES = 200
SMALL = 4000
"""Cells of a table (classes times questions) for which a tree is found at once."""


class PlanCache:
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
