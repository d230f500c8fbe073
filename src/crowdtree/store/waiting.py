"""Items that nobody can answer: found, shown to the owner, and in the end set aside.

An open item waits for more workers when it has a question to hand out, nobody holds a question of
it, and nobody who is here may answer it: everybody who is active, has not reached their number of
answers and was seen a short while ago has had the question (or, where a worker sees an item once
only, the item), or answers another question only. Whoever is here and may answer it takes it
sooner or later, so that such items are exactly those that need somebody else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.campaign import open_questions
from crowdtree.policy import PlanPolicy
from crowdtree.store.database import Sql, fetch, run, run_many
from crowdtree.store.desk import Batch, Desk
from crowdtree.store.tables import ITEM, LEASE, campaigns, waiting
from crowdtree.store.work import NO_WORKERS, Loaded, item_state

__all__ = ["AWAY_SECONDS", "Findings", "Watch", "waiting_items"]

AWAY_SECONDS = 900.0
"""Who has not answered for so long is not here."""
LOOK_SECONDS = 5.0
AT_ONCE = 500
MOST_PEOPLE = 2000
THINK_ABOUT = 20
"""Adaptive items a look that are thought through for every worker."""
MANY = 2**31 - 1

PEOPLE = Sql(
    """SELECT id, question FROM workers WHERE campaign_id = :campaign AND status = 'active'
    AND seen_at > :since AND answers < :most ORDER BY seen_at DESC LIMIT :limit"""
)
_HAD = """(SELECT count(DISTINCT leases.worker_id) FROM leases
    WHERE leases.item_id = wanted.item_id {same} AND leases.state <> 3
    AND leases.worker_id IN :here)"""
_IDLE = """NOT EXISTS (SELECT 1 FROM leases WHERE leases.item_id = wanted.item_id
    AND leases.state = 0)"""


def _candidates(once: bool) -> Sql:
    had = _HAD.replace("{same}", "" if once else "AND leases.question = wanted.question")
    return Sql(
        f"""SELECT wanted.id, wanted.item_id, wanted.question, {had} FROM wanted
        WHERE wanted.campaign_id = :campaign AND wanted.id > :after
        AND (:all = 1 OR wanted.item_id IN :ids) AND {_IDLE} ORDER BY wanted.id LIMIT :most"""
    )


CANDIDATES = {once: _candidates(once) for once in (False, True)}
SOME = Sql(
    """SELECT item_id FROM waiting WHERE campaign_id = :campaign AND item_id > :after
    ORDER BY item_id LIMIT :most"""
)
TAKEN = Sql(
    f"""SELECT waiting.item_id FROM waiting WHERE waiting.item_id IN :ids
    AND NOT EXISTS (SELECT 1 FROM wanted WHERE wanted.item_id = waiting.item_id AND {_IDLE})"""
)
LONG = Sql(
    """SELECT item_id FROM waiting WHERE campaign_id = :campaign AND since <= :since
    ORDER BY item_id LIMIT :most"""
)
ITEMS = Sql("SELECT id, task, status, state FROM items WHERE id IN :ids")
EVENTS = Sql(
    """SELECT item_id, question, worker_id, value, kind, key, lease_id, skill, fate FROM answers
    WHERE item_id IN :ids ORDER BY id"""
)
ADD = Sql(
    """INSERT INTO waiting (item_id, campaign_id, since) VALUES (:item, :campaign, :since)
    ON CONFLICT (item_id) DO NOTHING"""
)
DROP = Sql("DELETE FROM waiting WHERE item_id = :item")


def waiting_items(connection: Connection, number: int) -> int:
    """Count the items of a campaign that wait for more workers."""
    found = sa.select(sa.func.count()).where(waiting.c.campaign_id == number)
    return int(connection.execute(found).scalar_one())


class People(NamedTuple):
    """Who is here, and to which question each is dedicated."""

    ids: list[int]
    questions: list[int | None]

    def may(self, question: int) -> int:
        """Count those who may be asked a question."""
        return sum(own in (None, question) for own in self.questions)


@dataclass
class Findings:
    """What a look at a campaign found."""

    campaign: int
    stuck: list[int] = field(default_factory=list)
    fine: list[int] = field(default_factory=list)
    long: list[int] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.stuck or self.fine or self.long)


class Watch:
    """Looks for items that wait, a part at a time, so that a million items cost no more."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.desk = Desk(clock, np.random.default_rng(0))
        self.began = clock()
        self.places: dict[int, int] = {}
        self.noted: dict[int, int] = {}
        self.last = -LOOK_SECONDS

    def due(self) -> bool:
        """Whether it is time to look again."""
        now = time.monotonic()
        if now - self.last < LOOK_SECONDS:
            return False
        self.last = now
        return True

    def look(self, connection: Connection) -> list[Findings]:
        """Look at the next items of each running campaign; only reads."""
        rows = connection.execute(
            sa.select(
                campaigns.c.id, campaigns.c.version, campaigns.c.status, campaigns.c.status_reason
            ).where(campaigns.c.status == "running")
        ).all()
        loaded = [self.desk.campaign(connection, tuple(row)) for row in rows]
        return [found for campaign in loaded if (found := self._look(connection, campaign))]

    def _look(self, connection: Connection, campaign: Loaded) -> Findings:
        found = Findings(campaign.id)
        after = self.places.get(campaign.id, 0)
        rows = self._candidates(connection, campaign, after)
        self.places[campaign.id] = rows[-1][0] if len(rows) == AT_ONCE else 0
        self._sort(connection, campaign, rows, found)
        taken = self._taken(connection, campaign.id)
        known = self._known(connection, [*found.stuck, *found.fine])
        found.stuck = [item for item in found.stuck if item not in known]
        found.fine = [item for item in found.fine if item in known] + taken
        patience = campaign.settings.give_up_seconds
        now = self.clock()
        # A server that was off has not looked whether anybody came.
        if patience is not None and now - self.began >= min(patience, AWAY_SECONDS):
            long = fetch(connection, LONG, campaign=campaign.id, since=now - patience, most=AT_ONCE)
            found.long = [row[0] for row in long]
        return found

    def _taken(self, connection: Connection, number: int) -> list[int]:
        """Find items that are said to wait, but are labelled or in somebody's hands."""
        after = self.noted.get(number, 0)
        some = fetch(connection, SOME, campaign=number, after=after, most=AT_ONCE)
        self.noted[number] = some[-1][0] if len(some) == AT_ONCE else 0
        return [row[0] for row in fetch(connection, TAKEN, ids=[row[0] for row in some])]

    def _known(self, connection: Connection, ids: list[int]) -> set[int]:
        mine = sa.select(waiting.c.item_id).where(waiting.c.item_id.in_(ids))
        return set(connection.execute(mine).scalars())

    def _candidates(
        self,
        connection: Connection,
        campaign: Loaded,
        after: int = 0,
        ids: Sequence[int] | None = None,
    ) -> Sequence[Any]:
        return fetch(
            connection,
            CANDIDATES[campaign.settings.one_question_per_item],
            campaign=campaign.id,
            after=after,
            all=int(ids is None),
            ids=list(ids or ()),
            here=self._people(connection, campaign).ids,
            most=AT_ONCE,
        )

    def _people(self, connection: Connection, campaign: Loaded) -> People:
        rows = fetch(
            connection,
            PEOPLE,
            campaign=campaign.id,
            since=self.clock() - AWAY_SECONDS,
            most=campaign.settings.answers_per_worker or MANY,
            limit=MOST_PEOPLE,
        )
        return People([row[0] for row in rows], [row[1] for row in rows])

    def _sort(
        self, connection: Connection, campaign: Loaded, rows: Sequence[Any], found: Findings
    ) -> None:
        """Tell items that wait from those that somebody here may answer."""
        people = self._people(connection, campaign)
        free = {row[1] for row in rows if row[3] < people.may(row[2])}
        blocked = sorted({row[1] for row in rows} - free)
        if not isinstance(campaign.policy, PlanPolicy):
            others = self._something_else(connection, campaign, blocked[:THINK_ABOUT], people)
            free |= others
            blocked = [item for item in blocked[:THINK_ABOUT] if item not in others]
        found.stuck, found.fine = blocked, sorted(free)

    def _something_else(
        self, connection: Connection, campaign: Loaded, ids: list[int], people: People
    ) -> set[int]:
        """Find items of which somebody here may be asked another question than the best."""
        if campaign.settings.one_question_per_item or not ids:
            return set()
        events: dict[int, list[Any]] = {}
        for row in fetch(connection, EVENTS, ids=ids):
            events.setdefault(row[0], []).append(row)
        found = set()
        for number, task, _, state in fetch(connection, ITEMS, ids=ids):
            item = item_state(campaign, task, state, events.get(number, []))
            if any(
                open_questions(campaign.policy, item, (), str(worker), campaign.rules)
                for worker in people.ids
            ):
                found.add(number)
        return found

    def apply(self, connection: Connection, found: Findings) -> int:
        """Write down what waits, and set aside what has waited too long; count those."""
        now = self.clock()
        run_many(connection, DROP, ({"item": item} for item in found.fine))
        values = {"campaign": found.campaign, "since": now}
        run_many(connection, ADD, ({**values, "item": item} for item in found.stuck))
        return self._give_up(connection, found) if found.long else 0

    def _give_up(self, connection: Connection, found: Findings) -> int:
        batch = Batch(connection, self.desk, self.clock())
        batch.load_items(found.long)  # locked: from now on nobody takes them
        campaign = batch.campaigns[found.campaign]
        again = Findings(found.campaign)
        rows = self._candidates(connection, campaign, ids=found.long)
        self._sort(connection, campaign, rows, again)
        for number in again.stuck:
            work = batch.works[number]
            held = any(lease.state == LEASE.active for lease in work.leases.values())
            if work.status == ITEM.open and not held:
                work.close(campaign.policy.conclude(work.item.state, NO_WORKERS))
                batch.settle(work)
                run(connection, DROP, {"item": number})
        for number in again.fine:
            run(connection, DROP, {"item": number})
        count = len(batch.labels)
        batch.write()
        return count
