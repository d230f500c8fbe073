"""Watching the answers of running campaigns: alarms where the table is wrong, and revised tables.

The log is read in the order of its ids, beside the answers that come in. Alarms and revisions
follow from it. What has been computed is stored with the place in the log, so that a process that
takes over goes on from there.
"""

from __future__ import annotations

import json
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.core.errors import CrowdtreeError
from crowdtree.policies.monitor import GROWTH, Finding, Monitor, Occasion, Revision
from crowdtree.policies.revising import table_of
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import get_campaign, read_policy
from crowdtree.server.store.db.engine import is_sqlite
from crowdtree.server.store.db.sql import Query, fetch
from crowdtree.server.store.db.tables import answers, campaigns, monitors, revisions
from crowdtree.server.store.owner.revisions import revise
from crowdtree.server.store.queries.monitor_log import (
    LoggedPast,
    Tested,
    lines_after,
    take,
    tested,
    tested_policy,
)
from crowdtree.server.store.serving.cache import ServingCache
from crowdtree.server.store.serving.campaign import ServedCampaign

if TYPE_CHECKING:
    from crowdtree.server.store import Store

log = logging.getLogger("crowdtree.server.store")

_Row = sa.Row[Any]
AT_ONCE = 1000
SECONDS_AT_ONCE = 0.1
"""How long a look compares answers, of each campaign."""
SLICE_SECONDS, REST_SECONDS = 0.001, 0.009
"""While answers come in, so much is computed at a time, and requests go on for so long after it."""
CLAIM_SECONDS = 30.0
"""How long a process that is gone keeps others from reading the log of its campaigns."""
FEW_FINDINGS = 3
MOST_TEXT = 2000


class Snapshot(NamedTuple):
    """Transactions of PostgreSQL: all below `low` have ended, none from `high` on has begun."""

    low: int
    high: int
    last: int
    """The greatest id in the log."""


SNAPSHOT = Query(
    Snapshot,
    """SELECT pg_snapshot_xmin(now.snapshot)::text::bigint AS low,
    pg_snapshot_xmax(now.snapshot)::text::bigint AS high,
    (SELECT COALESCE(MAX(id), 0) FROM answers) AS last
    FROM (SELECT pg_current_snapshot() AS snapshot) AS now""",
)


@dataclass
class Watched:
    """The monitor of a campaign, and how far it has read the log."""

    tested: Tested
    monitor: Monitor
    position: int
    findings: list[Finding] = field(default_factory=list)
    findings_after: int = 0

    @classmethod
    def stored(cls, tested: Tested, policy: Any, past: LoggedPast) -> Watched:
        """Go on from what is stored, or begin where the table was chosen."""
        mine = monitors.c.campaign_id == past.campaign
        columns = (monitors.c.tested, monitors.c.state, monitors.c.findings)
        row = past.connection.execute(sa.select(*columns).where(mine)).one()
        if not row.state or row.tested != tested.revision:
            return cls(tested, Monitor(policy, past=past), tested.after)
        state = json.loads(row.state)
        monitor = Monitor.from_dict(policy, {**state["monitor"], "revisions": []}, past)
        said = [{k: v for k, v in one.items() if k != "text"} for one in json.loads(row.findings)]
        findings = [Finding(**one) for one in said]
        return cls(tested, monitor, state["position"], findings, state["findings_after"])

    def to_json(self) -> str:
        """Write what has been computed; revisions are stored by themselves."""
        found = self.monitor.to_dict()
        del found["revisions"]
        return json.dumps(
            {"position": self.position, "findings_after": self.findings_after, "monitor": found}
        )


@dataclass(frozen=True)
class Seen:
    """What a look at a campaign found, to be written."""

    campaign: int
    began: int
    """How far the log had been read before."""
    watched: Watched
    revision: Revision | None
    more: bool
    """Whether to go on at once."""


class Watching:
    """Reads the logs of running campaigns. Of several processes, one reads each log."""

    def __init__(
        self, clock: Callable[[], float], busy: Callable[[], bool] = lambda: False
    ) -> None:
        self.busy = busy
        """Whether answers come in, which have priority."""
        self.cache = ServingCache(clock, np.random.default_rng(0))
        self.name = secrets.token_hex(8)
        self.watched: dict[int, Watched] = {}
        self.failed: set[int] = set()
        """Campaigns whose answers could not be compared: they go on without being watched."""
        self.pending: Snapshot | None = None
        self.complete = 0
        """Id up to which every line of the log can be read."""

    def round(self, store: Store) -> bool:
        """Look at each campaign and write what was found; true when there is more to read."""
        try:
            return self._round(store)
        except BaseException:
            self.watched.clear()  # what was not written is read again
            raise

    def _round(self, store: Store) -> bool:
        unclaimed, found = store.read(self._look)
        if unclaimed:
            store.write(lambda connection: self._claim(connection, unclaimed))
        for number in self.failed:
            store.write(partial(self._pass_over, number=number))
        for seen in found:
            if not store.write(partial(self._apply, seen=seen)):
                del self.watched[seen.campaign]
        return bool(unclaimed) or any(seen.more for seen in found)

    # ---------------------------------------------------------------- looking

    def _look(self, connection: Connection) -> tuple[list[int], list[Seen]]:
        """Compare new answers; returns campaigns to claim, and what was found in claimed ones."""
        self._find_complete(connection)
        rows = connection.execute(_to_watch()).all()
        now = self.cache.clock()
        alone = is_sqlite(connection)
        unclaimed = [row.id for row in rows if self._may_claim(row, now, alone)]
        held = [row for row in rows if row.holder == self.name]
        self.watched = {row.id: self.watched[row.id] for row in held if row.id in self.watched}
        found = [self._compared(connection, row) for row in held if row.id not in self.failed]
        return unclaimed, [seen for seen in found if seen is not None]

    def _compared(self, connection: Connection, row: _Row) -> Seen | None:
        """Compare new answers; a campaign on which that fails does not stop the others."""
        try:
            return self._compare(connection, row)
        except (CrowdtreeError, ArithmeticError, LookupError, TypeError, ValueError):
            log.exception("campaign %s is no longer watched", row.id)
            self.failed.add(row.id)
            return None

    def _pass_over(self, connection: Connection, number: int) -> None:
        """Take the log of a campaign as read, so that the campaign can finish."""
        mine = (monitors.c.campaign_id == number, monitors.c.holder == self.name)
        done = monitors.c.last_answer_id < self.complete
        connection.execute(
            monitors.update().where(*mine, done).values(last_answer_id=self.complete)
        )

    def _may_claim(self, row: _Row, now: float, alone: bool) -> bool:
        """Whether nobody reads the log of a campaign, or this claim has to be renewed."""
        if row.holder is None:
            return True
        mine = row.holder == self.name
        least = now + CLAIM_SECONDS / 2 if mine else now
        # A claim from a clock that was ahead does not last longer than others.
        return (alone and not mine) or not least <= row.until <= now + CLAIM_SECONDS

    def _find_complete(self, connection: Connection) -> None:
        """Find the id up to which the log is complete.

        PostgreSQL gives an id to a line before its transaction commits, so a line with a lower id
        can become visible later. That is over when all transactions have ended that had begun when
        the highest id was read; a transaction that writes lines has locked items before.
        """
        if is_sqlite(connection):
            last = connection.execute(sa.select(sa.func.max(answers.c.id))).scalar_one()
            self.complete = last or 0
            return
        now = fetch(connection, SNAPSHOT)[0]
        if self.pending is not None and now.low >= self.pending.high:
            self.complete, self.pending = self.pending.last, None
        if now.low >= now.high:
            self.complete, self.pending = now.last, None
        elif self.pending is None:
            self.pending = now

    def _compare(self, connection: Connection, row: _Row) -> Seen | None:
        """Compare new answers of a campaign with its table, up to a revision or the time limit."""
        if row.last_answer_id >= self.complete:
            return None
        state = sql.CampaignState(row.id, row.version, row.status)
        campaign = self.cache.campaign(connection, state)
        watched, past = self._monitor(connection, campaign)
        stored = _stored_revisions(connection, campaign, watched)
        begin = time.monotonic()
        end = begin + SECONDS_AT_ONCE
        lines = lines_after(connection, row.id, watched.position, self.complete, AT_ONCE)
        made: Revision | None = None
        for line in lines:
            take(watched.monitor, past, line)
            watched.position = line.id
            if line.id in stored:
                watched.monitor.adopt(stored[line.id])
            elif reason := _due(watched, row.status):
                made = watched.monitor.revise(reason)
            now = time.monotonic()
            if made is not None or now > end:
                break
            if now > begin + SLICE_SECONDS and self.busy():
                time.sleep(REST_SECONDS)
                begin = time.monotonic()
        if not lines and watched.position <= row.last_answer_id:
            return None
        # Nothing to read after the choice of a table passes over the lines before it.
        more = bool(lines) and (watched.position < lines[-1].id or len(lines) == AT_ONCE)
        _find(watched, made is not None)
        return Seen(row.id, row.last_answer_id, watched, made, more)

    def _monitor(
        self, connection: Connection, campaign: ServedCampaign
    ) -> tuple[Watched, LoggedPast]:
        """Take the monitor of a campaign, go on from the stored one, or begin a new one."""
        now = tested(connection, campaign.id) if campaign.revision else Tested(0, 0)
        past = LoggedPast(connection, campaign.id, now)
        found = self.watched.get(campaign.id)
        if found is None or found.tested != now:
            policy = campaign.policy
            if campaign.revision > now.revision:
                policy = tested_policy(connection, campaign.id, now.revision)
            found = self.watched[campaign.id] = Watched.stored(now, policy, past)
            after = found.monitor.revised_after
            for position, revision in _stored_revisions(connection, campaign, found).items():
                if position <= found.position:
                    found.monitor.adopt(revision)
            found.monitor.revised_after = after  # one that was refused is not stored
        found.monitor.past = past
        found.monitor.adapt = campaign.settings.table.revises(campaign.policy.to_dict()["policy"])
        return found, past

    # ---------------------------------------------------------------- writing

    def _claim(self, connection: Connection, ids: Sequence[int]) -> None:
        """Claim campaigns whose logs nobody reads; on SQLite there is no other process."""
        now = self.cache.clock()
        known = set(connection.execute(sa.select(monitors.c.campaign_id)).scalars())
        for number in ids:
            if number not in known:
                connection.execute(_ADD, {"campaign": number})
        mine = sa.or_(monitors.c.holder == self.name, sa.literal(is_sqlite(connection)))
        free = sa.or_(mine, sa.not_(monitors.c.until.between(now, now + CLAIM_SECONDS)))
        connection.execute(
            monitors.update()
            .where(monitors.c.campaign_id.in_(ids), free)
            .values(holder=self.name, until=now + CLAIM_SECONDS)
        )

    def _apply(self, connection: Connection, seen: Seen) -> bool:
        """Write what was found, unless another process or an owner was faster."""
        number, watched = seen.campaign, seen.watched
        if seen.revision is not None:
            get_campaign(connection, number, lock=True)
        mine = monitors.c.campaign_id == number
        row = connection.execute(sa.select(monitors).where(mine).with_for_update()).one()
        if (row.holder, row.last_answer_id) != (self.name, seen.began):
            return False
        if tested(connection, number) != watched.tested:
            return False
        known = json.loads(row.alarms) if row.tested == watched.tested.revision else []
        alarms = watched.monitor.alarms
        now = self.cache.clock()
        for alarm in alarms[len(known) :]:
            detail = {"text": str(alarm), **alarm._asdict()}
            note(connection, now, "alarm", number, detail, "server")
        if seen.revision is not None:
            self._revise(connection, seen, seen.revision, now)
        values = {
            "last_answer_id": watched.position,
            "tested": watched.tested.revision,
            "state": watched.to_json(),
            "answers": watched.monitor.answers,
            "alarms": json.dumps([{**a._asdict(), "text": str(a)} for a in alarms]),
            "findings": json.dumps([{**f._asdict(), "text": str(f)} for f in watched.findings]),
        }
        connection.execute(monitors.update().where(mine).values(**values))
        return True

    def _revise(self, connection: Connection, seen: Seen, revision: Revision, now: float) -> None:
        """Revise the campaign; what makes that impossible goes to the activity log."""
        reason = {
            "text": _words(seen.watched, revision),
            "why": revision.reason,
            "answers": revision.after,
            "last_answer_id": seen.watched.position,
        }
        policy = seen.watched.monitor.policy
        try:
            revise(connection, seen.campaign, policy, reason, now, "server")
        except CrowdtreeError as error:
            note(connection, now, "not revised", seen.campaign, {"text": str(error)}, "server")


_ADD = sa.text(
    "INSERT INTO monitors (campaign_id) VALUES (:campaign) ON CONFLICT (campaign_id) DO NOTHING"
)


def _to_watch() -> sa.Select[Any]:
    """Select running campaigns, and finished ones of which a few lines are left to read."""
    last = sa.select(sa.func.max(answers.c.id)).where(answers.c.campaign_id == campaigns.c.id)
    unread = last.scalar_subquery() > monitors.c.last_answer_id
    ended = sa.and_(campaigns.c.status == "finished", unread)
    columns = [campaigns.c[name] for name in sql.CampaignState._fields]
    columns += [monitors.c[name] for name in ("last_answer_id", "holder", "until")]
    joined = campaigns.outerjoin(monitors, monitors.c.campaign_id == campaigns.c.id)
    running = campaigns.c.status == "running"
    return sa.select(*columns).select_from(joined).where(sa.or_(running, ended))


def _due(watched: Watched, status: str) -> Occasion | None:
    """Why the table is to be estimated now, or ``None`` if it is not.

    After an exclusion it is estimated again at once, and in a finished campaign as well, but not
    before all the answers that are left have been read.
    """
    estimate_at = watched.tested.estimate_at
    monitor = watched.monitor
    if estimate_at and not monitor.revised_after:
        due = monitor.adapt and monitor.answers and watched.position >= estimate_at
        return Occasion.EXCLUSION if due and status in ("running", "finished") else None
    return monitor.due if status == "running" else None


def _find(watched: Watched, now: bool) -> None:
    """Estimate what is wrong: after an alarm and a revision, then when answers have grown."""
    monitor = watched.monitor
    if monitor.alarms and (now or monitor.answers >= GROWTH * watched.findings_after):
        watched.findings, watched.findings_after = monitor.findings(), monitor.answers


def _words(watched: Watched, revision: Revision) -> str:
    """Say why the table was revised, and what the answers say."""
    first = f"estimated again from {revision.after:,} answers"
    if revision.reason is Occasion.ALARM:
        first = str(watched.monitor.alarms[0])
    elif revision.reason is Occasion.EXCLUSION:
        first = "estimated again, because other answers count"
    said = [str(found) for found in watched.findings if found.differs]
    return "; ".join([first, *said[:FEW_FINDINGS]])[:MOST_TEXT]


def _stored_revisions(
    connection: Connection, campaign: ServedCampaign, watched: Watched
) -> dict[int, Revision]:
    """Revisions that the server made, by the last line that each follows from."""
    first = watched.tested.revision + len(watched.monitor.revisions) + 1
    if campaign.revision < first:
        return {}
    mine = (revisions.c.campaign_id == campaign.id, revisions.c.number >= first)
    columns = (revisions.c.reason, revisions.c.problem, revisions.c.policy)
    rows = connection.execute(sa.select(*columns).where(*mine).order_by(revisions.c.number)).all()
    made = {}
    for row in rows:
        reason = json.loads(row.reason)
        table = table_of(read_policy(row.problem, row.policy)).to_dict()
        made[reason["last_answer_id"]] = Revision(reason["answers"], Occasion(reason["why"]), table)
    return made
