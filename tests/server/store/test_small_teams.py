"""A small honest team finishes by itself: three colleagues, one link, all defaults."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest

pytest.importorskip(
    "sqlalchemy", reason="the server is not installed: pip install crowdtree[serve]"
)

import sqlalchemy as sa

import crowdtree as ct
from crowdtree.policies import AdaptivePolicy, PlanPolicy
from crowdtree.server.rules.runner import Runner
from crowdtree.server.settings.presets import settings_for
from crowdtree.server.store import Next, Store, Submit, tokens
from crowdtree.server.store.db.activity import list_activity
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.tables import items, labels, workers
from crowdtree.server.store.owner import campaigns
from crowdtree.server.store.replay.verify import verify
from tests.storelab import join_openly
from tests.weblab import Clock

PROBLEM = ct.Problem(
    ["robin", "eagle", "trout"], None, ["flies", "hunts"], [[1, 1, 0], [0, 1, 1]], 0.1
)
ADAPTIVE = AdaptivePolicy(PROBLEM, target_error=0.02, max_answers=30)
MARGIN = PlanPolicy(ct.staff(ct.design(PROBLEM), workers=8), "margin")
TICK_SECONDS = 30.0


class Team:
    """People who join by one link, answer at their own pace and err as the table says."""

    def __init__(self, policy: Any, who: str, n_items: int, seconds: tuple[float, ...]) -> None:
        self.clock = Clock()
        self.store = Store("sqlite://", clock=self.clock, rng=0)
        self.settings = settings_for(who)
        now = self.clock()
        self.number = self.store.write(
            lambda c: campaigns.create(c, "Birds", policy, self.settings, now)
        )
        self.rng = np.random.default_rng(0)
        self.truth = self.rng.integers(PROBLEM.n_classes, size=n_items)
        rows = [{"task": str(k), "payload": "{}", "gold": None} for k in range(n_items)]
        self.store.write(lambda c: campaigns.add_items(c, self.number, rows))
        self.store.write(lambda c: campaigns.set_status(c, self.number, "running", now))
        self.seconds = {
            tokens.hashed(join_openly(self.store, self.number, now)): s for s in seconds
        }
        self.free = dict.fromkeys(self.seconds, now)
        self.runner = Runner(self.store)
        self.answers = 0

    def ask(self, worker: str) -> str:
        """Let somebody answer a question; returns why there is none."""
        self.store.writer_of(Next).cache.scanned.clear()  # look again at once
        found = self.store.ask(Next(worker))
        task = found["task"]
        if task is None:
            return str(found["reason"])
        question = PROBLEM.questions.index(task["question"]["name"])
        right = int(PROBLEM.outcome[question, self.truth[int(task["item"]["task"])]])
        value = right ^ int(self.rng.random() < PROBLEM.worker_error[question, 0])
        self.answers += 1
        self.clock.now += self.seconds[worker] / len(self.seconds)
        self.store.ask(Submit(worker, task["lease"], "answer", value, f"k{self.answers}"))
        return ""

    def work(self) -> None:
        """Let everybody answer, the fast ones more often, until nobody gets a question."""
        while self.free:
            worker = min(self.free, key=lambda one: self.free[one])
            self.free[worker] += self.seconds[worker]
            if self.ask(worker):
                del self.free[worker]

    def tick(self) -> None:
        """Let the server do what is due."""
        self.runner.settle()

    def finish(self) -> float:
        """Work until the campaign has finished; returns the minutes without an answer."""
        last, patience = self.clock.now, 3600.0
        while self.status == "running" and self.clock.now - last < patience:
            before = self.answers
            self.free = dict.fromkeys(self.seconds, self.clock.now)
            self.work()
            self.clock.now += TICK_SECONDS
            self.tick()
            last = self.clock.now if self.answers > before else last
        return (self.clock.now - last) / 60

    @property
    def status(self) -> str:
        return str(self.store.read(lambda c: get_campaign(c, self.number)).status)

    @property
    def wrong(self) -> float:
        """Share of wrong labels."""
        found = sa.select(items.c.task, labels.c.label).where(items.c.id == labels.c.item_id)
        rows = self.store.read(lambda c: c.execute(found).all())
        return float(np.mean([self.truth[int(task)] != label for task, label in rows]))

    @property
    def stated(self) -> float:
        """Share of wrong labels by their stated errors."""
        return float(np.mean([error for (error,) in self.rows(labels.c.posterior_error)]))

    @property
    def actions(self) -> list[str]:
        """What has happened to the campaign, in order."""
        entries = self.store.read(lambda c: list_activity(c, self.number))
        return [str(entry["action"]) for entry in reversed(entries)]

    def rows(self, *columns: Any) -> list[Any]:
        return list(self.store.read(lambda c: c.execute(sa.select(*columns)).all()))


@pytest.mark.parametrize(
    ("policy", "n_items", "seconds"),
    [(MARGIN, 200, (1.2, 6.0, 6.0)), (ADAPTIVE, 40, (1.2, 6.0, 6.0)), (ADAPTIVE, 60, (3.0, 6.0))],
    ids=["three with a plan", "three", "two"],
)
def test_colleagues_label_everything_and_read_that_they_have_finished(
    policy: Any, n_items: int, seconds: tuple[float, ...]
) -> None:
    """Of 200 items 41 waited for a fourth person, and the fast colleague was paused."""
    team = Team(policy, "colleagues", n_items, seconds)
    with team.store.opened():
        minutes = team.finish()
        assert team.status == "finished"
        assert minutes <= 7, "the campaign waits for people who are not there"
        assert {status for (status,) in team.rows(workers.c.status)} == {"active"}
        assert team.wrong < team.stated + 3 * (team.stated / n_items) ** 0.5
        reasons = Counter(reason for (reason,) in team.rows(labels.c.reason))
        assert sum(reasons.values()) == n_items
        assert set(reasons) <= {"leaf", "target", "everybody answered"}
        assert reasons["everybody answered"] > 0, "too few people are here for some items"
        assert {team.ask(worker) for worker in team.seconds} == {"finished"}
        assert team.actions[-1] == "finished", "the owner is told"
        assert team.store.read(partial(verify, campaign_id=team.number))["differences"] == []


def test_the_first_colleague_does_not_finish_the_campaign_alone() -> None:
    team = Team(MARGIN, "colleagues", 5, seconds=(5.0,))
    with team.store.opened():
        assert team.finish() >= 60
        assert (team.status, team.rows(labels.c.reason)) == ("running", [])
