"""Watching the answers of running campaigns: alarms where the table is wrong, and revised tables.

The log is read in the order of its ids, beside the answers that come in. Alarms and revisions
follow from it. What has been computed is stored with the place in the log, so that a process that
takes over goes on from there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.campaign.events import Cause
from crowdtree.core.errors import CrowdtreeError
from crowdtree.policies.monitor import GROWTH, Finding, Monitor, Occasion, Revision
from crowdtree.policies.revising import table_of
from crowdtree.server.rules.rule import Rule
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import get_campaign, read_policy
from crowdtree.server.store.db.sql import Query, fetch, is_sqlite
from crowdtree.server.store.db.statements import CampaignState
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
from crowdtree.server.store.serving.campaign import ServedCampaign, ServingCache

AT_ONCE = 1000
SECONDS_AT_ONCE = 0.1
"""How long a look compares answers, of each campaign."""
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
        row = past.connection.execute(sa.select(*columns).where(mine)).one_or_none()
        if row is None or not row.state or row.tested != tested.revision:
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

    began: int
    """How far the log had been read before."""
    watched: Watched
    revision: Revision | None
    more: bool
    """Whether to go on at once."""


class WrongTable(Rule[Seen | int]):
    """Reads the logs of running campaigns, and compares their answers with their tables.

    A campaign whose answers cannot be compared goes on without: then the finding is the line up to
    which its log is taken as read, so that it can finish.
    """

    name = "wrong table"

    def __init__(self, cache: ServingCache) -> None:
        super().__init__(cache)
        self.watched: dict[int, Watched] = {}
        self.failed: set[int] = set()
        """Campaigns whose answers could not be compared."""
        self.read: dict[int, tuple[int, int]] = {}
        """The last line that was read of each campaign, and the last that there is."""
        self.pending: Snapshot | None = None
        self.complete = 0
        """Id up to which every line of the log can be read."""

    def campaigns(self, connection: Connection) -> Sequence[CampaignState]:
        """List running campaigns, and finished ones of which a few lines are left to read."""
        self._find_complete(connection)
        rows = connection.execute(_to_watch()).all()
        self.read = {row.id: (row.last_answer_id or 0, row.last or 0) for row in rows}
        self.watched = {row.id: self.watched[row.id] for row in rows if row.id in self.watched}
        return [CampaignState(row.id, row.version, row.status) for row in rows]

    def look(self, connection: Connection, campaign: CampaignState) -> Seen | int | None:
        """Compare new answers."""
        began, last = self.read[campaign.id]
        if began >= min(last, self.complete):
            return None
        if campaign.id in self.failed:
            return self.complete
        try:
            return self._compare(connection, campaign, began)
        except (CrowdtreeError, ArithmeticError, LookupError, TypeError, ValueError):
            self.failed.add(campaign.id)
            raise

    def forget(self, campaign_id: int) -> None:
        """Read again what was not written."""
        self.watched.pop(campaign_id, None)

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

    def _compare(self, connection: Connection, state: CampaignState, began: int) -> Seen | None:
        """Compare new answers of a campaign with its table, up to a revision or the time limit."""
        campaign = self.cache.campaign(connection, state)
        watched, past = self._monitor(connection, campaign)
        stored = _stored_revisions(connection, campaign, watched)
        end = time.monotonic() + SECONDS_AT_ONCE
        lines = lines_after(connection, campaign.id, watched.position, self.complete, AT_ONCE)
        made: Revision | None = None
        for line in lines:
            take(watched.monitor, past, line)
            watched.position = line.id
            if line.id in stored:
                watched.monitor.adopt(stored[line.id])
            elif reason := _due(watched, state.status):
                made = watched.monitor.revise(reason)
            if made is not None or time.monotonic() > end:
                break
        if not lines and watched.position <= began:
            return None
        # Nothing to read after the choice of a table passes over the lines before it.
        more = bool(lines) and (watched.position < lines[-1].id or len(lines) == AT_ONCE)
        _find(watched, made is not None)
        return Seen(began, watched, made, more)

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

    def apply(self, connection: Connection, campaign: CampaignState, finding: Seen | int) -> bool:
        """Write what was found, unless another process or an owner was faster."""
        number = campaign.id
        mine = monitors.c.campaign_id == number
        if isinstance(finding, Seen) and finding.revision is not None:
            get_campaign(connection, number, lock=True)
        connection.execute(_ADD, {"campaign": number})
        if isinstance(finding, int):
            passed = monitors.update().where(mine, monitors.c.last_answer_id < finding)
            connection.execute(passed.values(last_answer_id=finding))
            return False
        seen, watched = finding, finding.watched
        row = connection.execute(sa.select(monitors).where(mine).with_for_update()).one()
        if row.last_answer_id != seen.began or tested(connection, number) != watched.tested:
            self.forget(number)
            return True
        known = json.loads(row.alarms) if row.tested == watched.tested.revision else []
        alarms = watched.monitor.alarms
        now = self.cache.clock()
        for alarm in alarms[len(known) :]:
            detail = {"text": str(alarm), **alarm._asdict()}
            note(connection, now, "alarm", number, detail, "server")
        if seen.revision is not None:
            self._revise(connection, number, seen, now)
        values = {
            "last_answer_id": watched.position,
            "tested": watched.tested.revision,
            "state": watched.to_json(),
            "answers": watched.monitor.answers,
            "alarms": json.dumps([{**a._asdict(), "text": str(a)} for a in alarms]),
            "findings": json.dumps([{**f._asdict(), "text": str(f)} for f in watched.findings]),
        }
        connection.execute(monitors.update().where(mine).values(**values))
        return seen.more

    def _revise(self, connection: Connection, campaign_id: int, seen: Seen, now: float) -> None:
        """Revise the campaign; what makes that impossible goes to the activity log."""
        revision = seen.revision
        assert revision is not None
        reason = {
            "text": _words(seen.watched, revision),
            "why": revision.reason,
            "answers": revision.after,
            "last_answer_id": seen.watched.position,
        }
        policy = seen.watched.monitor.policy
        try:
            revise(connection, campaign_id, policy, reason, now, "server", Cause.TABLE)
        except CrowdtreeError as error:
            note(connection, now, "not revised", campaign_id, {"text": str(error)}, "server")


_ADD = sa.text(
    "INSERT INTO monitors (campaign_id) VALUES (:campaign) ON CONFLICT (campaign_id) DO NOTHING"
)


def _to_watch() -> sa.Select[Any]:
    """Select running campaigns, and finished ones of which a few lines are left to read."""
    of_campaign = answers.c.campaign_id == campaigns.c.id
    last = sa.select(sa.func.max(answers.c.id)).where(of_campaign).scalar_subquery()
    unread = last > monitors.c.last_answer_id
    ended = sa.and_(campaigns.c.status == "finished", unread)
    columns = (campaigns.c[name] for name in CampaignState._fields)
    joined = campaigns.outerjoin(monitors, monitors.c.campaign_id == campaigns.c.id)
    running = campaigns.c.status == "running"
    found = sa.select(*columns, monitors.c.last_answer_id, last.label("last"))
    return found.select_from(joined).where(sa.or_(running, ended))


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
