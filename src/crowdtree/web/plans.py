"""Plans to choose from, worked out in the studio and remembered."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict
from typing import Any
from weakref import WeakKeyDictionary

from crowdtree.policy import PlanPolicy, Policy
from crowdtree.store.db.problem_json import ProblemJson, problem_to_json
from crowdtree.web.building import Wish
from crowdtree.web.studio import Studio, Tell

__all__ = ["Plans"]

MOST_OFFERS = 8
MOST_PROMISES = 200
SMALL = 4000
"""Answers in a table (classes times questions) for which a tree is found in a moment."""


class Plans:
    """What the pages know about plans; asks the studio for what they do not know yet."""

    def __init__(self) -> None:
        self.studio = Studio()
        self.offers: OrderedDict[str, Any] = OrderedDict()
        self.promises: OrderedDict[str, Any] = OrderedDict()
        self.near: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        """The same by object: writing out a policy to look it up takes long for a large one."""
        self.under_way: dict[Policy[Any], asyncio.Task[Any]] = {}

    def known(self, problem: ProblemJson) -> Any | None:
        """The choices for a problem as the store keeps it, if they are known."""
        return self.offers.get(_key(problem))

    async def offer(self, problem: ProblemJson, tell: Tell | None = None) -> Any:
        """Work out the choices for a problem as the store keeps it."""
        from crowdtree.web.pages import choices

        found = self.known(problem)
        if found is None:
            found = await self.studio.work(choices.make_offer, problem, tell=tell)
            self.keep(problem, found)
        return found

    async def read(self, content: bytes, name: str, options: dict[str, Any], tell: Tell) -> Any:
        """Read a table and work out its choices."""
        from crowdtree.web.pages import choices

        found = await self.studio.work(choices.read_offer, content, name, options, tell=tell)
        self.keep(problem_to_json(found.problem), found)
        return found

    def keep(self, problem: ProblemJson, offer: Any) -> None:
        """Remember the choices, and what they promise."""
        _remember(self.offers, _key(problem), offer, MOST_OFFERS)
        for choice in offer.choices:
            _remember(self.promises, _policy_key(choice.policy), choice.promise, MOST_PROMISES)

    async def promise(self, policy: Policy[Any]) -> Any:
        """What a policy is expected to do: exactly for a plan, by simulation for others."""
        if policy not in self.near:
            key = _policy_key(policy)
            if key not in self.promises:
                _remember(self.promises, key, await self._promised(policy), MOST_PROMISES)
            self.near[policy] = self.promises[key]
        return self.near[policy]

    async def _promised(self, policy: Policy[Any]) -> Any:
        from crowdtree.web.pages import choices

        if isinstance(policy, PlanPolicy):
            return await asyncio.to_thread(choices.planned, policy)
        return await self.studio.work(choices.make_promise, policy)

    async def promise_soon(self, policy: Policy[Any]) -> Any | None:
        """What a policy is expected to do, or nothing while that is being worked out."""
        quick = isinstance(policy, PlanPolicy) or _policy_key(policy) in self.promises
        if policy in self.near or quick:
            return await self.promise(policy)
        if policy not in self.under_way:
            task = asyncio.create_task(self.promise(policy))
            self.under_way[policy] = task
            task.add_done_callback(lambda done: self._settled(policy, done))
        return None

    def _settled(self, policy: Policy[Any], done: asyncio.Task[Any]) -> None:
        self.under_way.pop(policy, None)
        if not done.cancelled():
            done.exception()  # it is tried again at the next look

    async def policy_of(self, wish: Wish) -> Policy[Any]:
        """Make the policy that an owner wishes; a large table goes to the studio."""
        from crowdtree.web import building

        if wish.problem is None or building.table_size(wish.problem) <= SMALL:
            return await asyncio.to_thread(building.policy_of, wish)
        made: Policy[Any] = await self.studio.work(building.make_policy, wish)
        return made

    def close(self) -> None:
        """Stop what is being worked out."""
        for task in self.under_way.values():
            task.cancel()
        self.studio.close()


def _key(document: object) -> str:
    text = json.dumps(document, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _policy_key(policy: Policy[Any]) -> str:
    return _key({"problem": problem_to_json(policy.problem), "policy": policy.to_dict()})


def _remember(kept: OrderedDict[Any, Any], key: Any, value: Any, most: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)
