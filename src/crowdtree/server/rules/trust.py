"""Assessing whom to trust: labels that waited for known people are given, suspects are paused.

What is found depends on the log alone (:mod:`crowdtree.learning.trust`), so any process may look,
and a look that is lost is made up for by the next one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.campaign.events import Released
from crowdtree.campaign.fold import extend
from crowdtree.learning.trust import Answered, Suspicion, Trust, assess
from crowdtree.server.reasons import WorkerReason
from crowdtree.server.settings.model import Settings, stored_settings
from crowdtree.server.store.corrections.excluding import exclude
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import get_campaign, last_line, touch
from crowdtree.server.store.db.sql import Query, Sql, fetch_ids, fetch_sorted
from crowdtree.server.store.db.states import ItemStatus
from crowdtree.server.store.db.tables import campaigns, workers
from crowdtree.server.store.db.worker_status import change_status
from crowdtree.server.store.queries.monitor_log import tested, tested_policy
from crowdtree.server.store.serving.cache import ServingCache
from crowdtree.server.store.serving.settle import is_held_back, record, settle
from crowdtree.server.store.serving.unit_of_work import UnitOfWork

if TYPE_CHECKING:
    from crowdtree.server.store import Store

VOUCHED = ("invited", "owner")
"""Why workers are known for whom the owner vouches; the second are never suspected."""
MOST_ANSWERS = 20_000
"""Last answers of a campaign that are looked at."""
RELEASED_AT_ONCE = 100
SHARE = 100
"""A look is repeated after this many times its processor time, if there are new answers."""
LEAST_SECONDS, MOST_SECONDS = 2.0, 60.0
"""Between two looks: at least, and at most, for the sake of labels that wait."""


class Line(NamedTuple):
    """An answer in the log, and when its question was handed out."""

    id: int
    item_id: int
    question: int
    worker_id: int
    value: int
    at: float
    given_at: float
    gold: int | None


LINES = Query(
    Line,
    """SELECT answers.id, answers.item_id, answers.question, answers.worker_id, answers.value,
    answers.at, leases.given_at, items.gold FROM answers
    JOIN leases ON leases.id = answers.lease_id JOIN items ON items.id = answers.item_id
    WHERE answers.campaign_id = :campaign AND answers.kind = 'answer'
    AND COALESCE(answers.revised_fate, answers.fate) <> 'excluded'
    ORDER BY answers.id DESC LIMIT :most""",
)
HELD = Sql(
    f"""SELECT id FROM items WHERE campaign_id = :campaign AND status = {ItemStatus.OPEN:d}
    AND min_answers > 0 AND id > :after ORDER BY id LIMIT :most {{skip items}}"""
)


class Trusting:
    """Looks at the answers of campaigns, and at the labels that wait."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.cache = ServingCache(clock, np.random.default_rng(0))
        self.seen: dict[int, int] = {}
        """Id of the last answer that was looked at, by campaign."""
        self.due: dict[int, tuple[float, float]] = {}
        """When a campaign may, and when it must be looked at again."""

    def round(self, store: Store) -> dict[int, int]:
        """Look at the campaigns that are due; counts the questions that opened, by campaign."""
        opened: dict[int, int] = {}
        for number, settings in store.read(_concerned):
            begin = time.monotonic()
            may, must = self.due.get(number, (begin, begin))
            if begin < may:
                continue
            last = store.read(partial(last_line, number=number))
            if begin < must and last == self.seen.get(number, 0):
                continue
            used = time.thread_time()
            opened[number] = self.look(store, number, settings)
            self.seen[number] = last
            end = time.monotonic()
            wait = max(LEAST_SECONDS, SHARE * (time.thread_time() - used))
            self.due[number] = (end + wait, end + max(wait, MOST_SECONDS))
        return opened

    def look(self, store: Store, number: int, settings: Settings) -> int:
        """Assess the workers of a campaign, and act on it; counts the questions that opened."""
        if settings.labels.require_trusted_answer or settings.checks.pause_suspects:
            trust, present = store.read(partial(_assessed, number=number))
            store.write(partial(self._apply, number, settings, trust, present))
        opened = 0
        after: int | None = 0
        while after is not None:
            after, more = store.write(partial(self._release, number, after))
            opened += more
        return opened

    def _apply(
        self,
        number: int,
        settings: Settings,
        trust: Trust,
        present: set[int],
        connection: Connection,
    ) -> None:
        """Write who is known, and pause suspects."""
        columns = (workers.c.id, workers.c.status, workers.c.reason, workers.c.known)
        mine = sa.select(*columns).where(workers.c.campaign_id == number)
        demoted, excluded = False, []
        for row in connection.execute(mine.with_for_update(key_share=True)).all():
            known = row.known
            if row.id in trust.suspected and row.known != VOUCHED[1]:
                known = ""
                if settings.checks.pause_suspects and row.status == "active":
                    self._pause(connection, number, row.id, trust.suspected[row.id])
                    excluded.append(row.id)
            elif WorkerReason(row.reason).excludes_answers:
                excluded += [row.id] * (row.id in present)  # answers that were still on their way
            elif row.id in present and row.known not in VOUCHED:
                known = trust.known.get(row.id, "")
            if known != row.known:
                change = workers.update().where(workers.c.id == row.id)
                connection.execute(change.values(known=known))
                demoted |= not known
        if demoted:
            touch(connection, number)
        if excluded:
            why = "the server suspects that they do not answer with care"
            exclude(connection, number, excluded, self.clock(), reason=why, actor="server")

    def _pause(
        self, connection: Connection, number: int, worker: int, suspicion: Suspicion
    ) -> None:
        """Pause a worker, and tell the owner why."""
        now = self.clock()
        change_status(connection, [worker], "paused", WorkerReason.SUSPECTED, suspicion.text)
        detail = {"worker": worker, "rule": suspicion.rule, "text": suspicion.text}
        note(connection, now, "suspect", number, detail, "server")

    def _release(self, number: int, after: int, connection: Connection) -> tuple[int | None, int]:
        """Give the labels that need not wait any longer, of some items.

        Returns the last item that was looked at, and how many questions opened.
        """
        values = {"campaign": number, "after": after, "most": RELEASED_AT_ONCE}
        ids = fetch_ids(connection, HELD, **values)
        if not ids:
            return None, 0
        unit = UnitOfWork(connection, self.cache, self.clock())
        unit.load_items(ids)
        for item in (unit.items[number] for number in ids):
            if item.held:
                before = item.view
                view = extend(item.revisions, before, Released())
                if view.label is None or is_held_back(unit, item.campaign, view):
                    continue
                record(unit, item, Released())
                settle(unit, item, before)
        unit.write()
        return ids[-1], sum(unit.opened.values())


def _concerned(connection: Connection) -> list[tuple[int, Settings]]:
    """Campaigns that may have newcomers, with their settings."""
    active = campaigns.c.status.in_(["running", "paused"])
    columns = (campaigns.c.id, campaigns.c.settings)
    rows = connection.execute(sa.select(*columns).where(active)).all()
    return [(row.id, stored_settings(row.settings)) for row in rows]


def _assessed(connection: Connection, number: int) -> tuple[Trust, set[int]]:
    """Assess the workers of a campaign; with those who are among the last answers."""
    columns = (workers.c.id, workers.c.known)
    mine = sa.select(*columns).where(workers.c.campaign_id == number, workers.c.known != "")
    known = {row.id: row.known for row in connection.execute(mine)}
    vouched = [worker for worker, why in known.items() if why in VOUCHED]
    lines = fetch_sorted(connection, LINES, campaign=number, most=MOST_ANSWERS)
    campaign = get_campaign(connection, number)
    problem = assumed = campaign.make_policy().problem
    if campaign.revision:
        assumed = tested_policy(connection, number, tested(connection, number).revision).problem
    trust = assess(problem, _timed(lines), vouched, known, assumed)
    return trust, {line.worker_id for line in lines}


def _timed(lines: Iterable[Line]) -> list[Answered]:
    """Answers with the time they took: since the question came, or since the last answer."""
    last: dict[int, float] = {}
    found = []
    for line in lines:
        begin = max(line.given_at, last.get(line.worker_id, line.given_at))
        last[line.worker_id] = line.at
        seconds = max(0.0, line.at - begin)
        said = (line.item_id, line.question, line.worker_id, line.value, seconds, line.gold)
        found.append(Answered(*said))
    return found
