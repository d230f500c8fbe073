"""Campaigns in a store, for the tests of the store."""

from __future__ import annotations

import json
from typing import Any

import pytest
import sqlalchemy as sa

import crowdtree as ct
from crowdtree.policies import PlanPolicy
from crowdtree.server.rules.finishing import Budget, Finishing
from crowdtree.server.rules.reliability import Reliability
from crowdtree.server.rules.revised_items import RevisedItems
from crowdtree.server.rules.runner import Runner
from crowdtree.server.store import Next, Refused, Store, Submit, tokens
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.owner import campaigns, people
from crowdtree.server.store.owner.people import Visitor
from tests.short import nested, settings_of
from tests.weblab import ALONE, Clock, Lab

MAINTENANCE = (Reliability, RevisedItems, Finishing, Budget)
"""Rules without which a campaign does not end."""
ONE = "task,text\na,one\n"
"""A file with one item."""


def maintain(store: Store) -> None:
    """Let the rules finish what is due."""
    Runner(store, MAINTENANCE).settle()


def games(count: int) -> pytest.MarkDecorator:
    """Seeds of random histories on both databases: one on each at once, the others are slow."""
    quick = {(0, "sqlite"), (1, "postgresql")}
    every = [(seed, kind) for seed in range(count) for kind in ("sqlite", "postgresql")]
    found = [pytest.param(*g, marks=() if g in quick else pytest.mark.slow) for g in every]
    return pytest.mark.parametrize(("seed", "url"), found, indirect=["url"])


def plan_policy() -> PlanPolicy:
    return PlanPolicy(ct.staff(ct.design(ct.example("table1")), workers=8), "curtailed")


def filled(store: Store, n: int = 10, made: Any = None, **settings: Any) -> tuple[int, list[str]]:
    """Make a running campaign with items and ten workers; returns its number and token hashes."""
    made = made or plan_policy()
    now = store.clock()
    number = store.write(
        lambda c: campaigns.create(c, "x", made, settings_of(**ALONE | settings), now)
    )
    rows = [{"task": f"i{k}", "payload": "{}", "gold": None} for k in range(n)]
    assert store.write(lambda c: campaigns.add_items(c, number, rows)) == n
    store.write(lambda c: campaigns.set_status(c, number, "running", now))
    invited = [
        store.write(lambda c: people.invite(c, number, "", made, False, now))[1] for _ in range(10)
    ]
    return number, [tokens.hashed(token) for token in invited]


def work(store: Store, hashes: list[str], errors: list[BaseException] | None = None) -> int:
    """Let workers answer until there is nothing left."""
    count, idle = 0, 0
    while idle < len(hashes):
        idle = 0
        for place, who in enumerate(hashes):
            found = store.ask(Next(who))["task"]
            if found is None:
                idle += 1
                continue
            try:
                store.ask(Submit(who, found["lease"], "answer", place % 2, f"k{count}"))
            except Refused as error:
                (errors if errors is not None else []).append(error)
            count += 1
    return count


def change(app: Lab, number: int, **settings: Any) -> Any:
    return app.client.patch(
        f"/api/campaigns/{number}/settings", json=nested(settings), headers=app.owner
    )


def spent(app: Lab, number: int) -> float:
    return float(app.get(f"/api/campaigns/{number}").json()["spent"])


class Small:
    """A campaign in a database of its own, on the small example with one vote per question."""

    def __init__(self, rows: int = 4, url: str = "sqlite://", **settings: Any) -> None:
        self.clock = Clock()
        self.clock.now = 1000.0
        self.store = Store(url, clock=self.clock, rng=0)
        self.policy = PlanPolicy(ct.design(ct.example("table1")), "curtailed")
        self.number = self.store.write(
            lambda c: campaigns.create(
                c, "Birds", self.policy, settings_of(**ALONE | settings), 0.0
            )
        )
        made = [{"task": str(k), "payload": json.dumps({"text": f"t{k}"})} for k in range(rows)]
        self.store.write(lambda c: campaigns.add_items(c, self.number, made))

    def start(self) -> None:
        self.store.write(lambda c: campaigns.set_status(c, self.number, "running", self.clock.now))

    def worker(self) -> str:
        made = (self.number, "Ann", self.policy, False, self.clock.now)
        return tokens.hashed(self.store.write(lambda c: people.invite(c, *made)[1]))

    def answer(self, who: str, value: int) -> None:
        task = self.store.ask(Next(who))["task"]
        self.store.ask(Submit(who, task["lease"], "answer", value, f"k{task['lease']}"))


def join_openly(store: Store, number: int, now: float) -> str:
    """Join a campaign by its open link; returns the token."""

    def joined(connection: sa.Connection) -> str:
        campaign = get_campaign(connection, number)
        return people.join(connection, campaign, campaign.make_policy(), Visitor(), now, 1e9)

    return store.write(joined)
