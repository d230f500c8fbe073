"""Whom to trust: who is known to answer with care, who is suspected not to, which labels wait.

What is found about people depends on the log alone (:mod:`crowdtree.learning.trust`). Labels are
held back until a trusted worker supports them, and given as soon as one does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.campaign.events import Released
from crowdtree.campaign.fold import extend
from crowdtree.core.text import plural
from crowdtree.learning.trust import Answered, Suspicion, assess
from crowdtree.learning.trust import Trust as Assessment
from crowdtree.server.reasons import WorkerReason
from crowdtree.server.rules.rule import Note, Overview, Rule
from crowdtree.server.store.corrections.exclusions import exclude
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import get_campaign, touch
from crowdtree.server.store.db.sql import Query, Sql, fetch, fetch_ids
from crowdtree.server.store.db.statements import CampaignState
from crowdtree.server.store.db.tables import workers
from crowdtree.server.store.owner.people import change_status
from crowdtree.server.store.queries.monitor_log import tested, tested_policy
from crowdtree.server.store.serving.campaign import ServingCache
from crowdtree.server.store.serving.settle import happen, is_held_back
from crowdtree.server.store.serving.unit_of_work import UnitOfWork
from crowdtree.server.store.types import ItemStatus

VOUCHED = ("invited", "owner")
"""Why workers are known for whom the owner vouches; the second are never suspected."""
MOST_ANSWERS = 20_000
"""Last answers of a campaign that are looked at."""


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


class Assessed(NamedTuple):
    """Who is trusted and who is suspected, and who is among the last answers."""

    trust: Assessment
    present: set[int]


class Trust(Rule[Assessed]):
    """Assesses whom to trust, and pauses suspects."""

    name = "trust"
    seconds = 2.0
    share = 0.1
    statuses = ("running", "paused")

    def look(self, connection: Connection, campaign: CampaignState) -> Assessed | None:
        """Assess the workers of a campaign that may have newcomers, if there is new evidence."""
        settings = self.cache.campaign(connection, campaign).settings
        if not (settings.labels.require_trusted_answer or settings.checks.pause_suspects):
            return None
        return _assessed(connection, campaign.id) if self.is_news(connection, campaign) else None

    @classmethod
    def notes(cls, overview: Overview) -> Iterator[Note]:
        """Workers whom the server paused."""
        if overview.paused:
            text = f"{plural(overview.paused, 'worker')} paused by the server."
            yield Note(text, f"{overview.link}/workers", "View them")

    def apply(self, connection: Connection, campaign: CampaignState, finding: Assessed) -> bool:
        """Write who is known, and pause suspects."""
        number, (trust, present) = campaign.id, finding
        pauses = self.cache.campaign(connection, campaign).settings.checks.pause_suspects
        columns = (workers.c.id, workers.c.status, workers.c.reason, workers.c.known)
        mine = sa.select(*columns).where(workers.c.campaign_id == number)
        demoted, excluded = False, []
        for row in connection.execute(mine.with_for_update(key_share=True)).all():
            known = row.known
            if row.id in trust.suspected and row.known != VOUCHED[1]:
                known = ""
                if pauses and self._pause(connection, number, row, trust.suspected[row.id]):
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
        return False

    def _pause(
        self, connection: Connection, campaign_id: int, row: Any, suspicion: Suspicion
    ) -> bool:
        """Pause a worker and tell the owner why; true if their answers must not count.

        Speed alone excludes nobody. Whoever was paused for it is suspected again for more.
        """
        reason = WorkerReason.HURRIED if suspicion.rule == "fast" else WorkerReason.SUSPECTED
        if row.status != "active" and (row.reason, reason) != (
            WorkerReason.HURRIED,
            WorkerReason.SUSPECTED,
        ):
            return False
        change_status(connection, [row.id], "paused", reason, suspicion.text)
        detail = {"worker": row.id, "rule": suspicion.rule, "text": suspicion.text}
        note(connection, self.clock(), "suspect", campaign_id, detail, "server")
        return reason.excludes_answers


def _assessed(connection: Connection, campaign_id: int) -> Assessed:
    """Assess the workers of a campaign; with those who are among the last answers."""
    columns = (workers.c.id, workers.c.known)
    mine = sa.select(*columns).where(workers.c.campaign_id == campaign_id, workers.c.known != "")
    known = {row.id: row.known for row in connection.execute(mine)}
    vouched = [worker for worker, why in known.items() if why in VOUCHED]
    lines = fetch(connection, LINES, campaign=campaign_id, most=MOST_ANSWERS)[::-1]
    campaign = get_campaign(connection, campaign_id)
    problem = assumed = campaign.make_policy().problem
    if campaign.revision:
        assumed = tested_policy(
            connection, campaign_id, tested(connection, campaign_id).revision
        ).problem
    trust = assess(problem, _timed(lines), vouched, known, assumed)
    return Assessed(trust, {line.worker_id for line in lines})


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


AT_ONCE = 100


HELD = Sql(
    f"""SELECT id FROM items WHERE campaign_id = :campaign AND status = {ItemStatus.OPEN:d}
    AND min_answers > 0 AND id > :after ORDER BY id LIMIT :most {{skip items}}"""
)


class HeldLabels(Rule[int]):
    """Gives the labels that need not wait any longer."""

    name = "held labels"
    seconds = 2.0
    share = 0.1
    statuses = ("running", "paused")

    def __init__(self, cache: ServingCache) -> None:
        super().__init__(cache)
        self.positions: dict[int, int] = {}
        """The last item that was looked at, of campaigns that are gone through."""

    def look(self, connection: Connection, campaign: CampaignState) -> int | None:
        """Return the item after which to look for labels; ``None`` where nothing has changed."""
        if campaign.id in self.positions:
            return self.positions[campaign.id]
        if not self.is_news(connection, campaign):
            return None
        return 0 if fetch_ids(connection, HELD, campaign=campaign.id, after=0, most=1) else None

    def apply(self, connection: Connection, campaign: CampaignState, finding: int) -> bool:
        """Give the labels of the next items; true until all were looked at."""
        ids = fetch_ids(connection, HELD, campaign=campaign.id, after=finding, most=AT_ONCE)
        if not ids:
            self.positions.pop(campaign.id, None)
            return False
        unit = UnitOfWork(connection, self.cache, self.clock())
        unit.load_items(ids)
        for item in (unit.items[number] for number in ids):
            if not item.held:
                continue
            view = extend(item.revisions, item.view, Released())
            if view.label is not None and not is_held_back(unit, item.campaign, view):
                happen(unit, item, Released())
        unit.write()
        self.positions[campaign.id] = ids[-1]
        return True

    @classmethod
    def notes(cls, overview: Overview) -> Iterator[Note]:
        """Labels that follow the majority, or are held back for a trusted worker."""
        campaign, progress = overview.campaign, overview.progress
        running = campaign.status == "running" and bool(sum(progress["workers"].values()))
        tested = overview.trusted or (
            progress["items"]["gold"] and campaign.settings.checks.asks_gold
        )
        asks = campaign.settings.labels.require_trusted_answer and not campaign.reason.ends_joining
        if running and asks and not tested:
            yield Note(
                "Nobody was invited by a personal link, and no check items are asked: labels "
                "follow the majority of those who joined, whoever they are. Invite people whom "
                "you trust, or say that you know everybody who answers.",
                f"{overview.link}/share#who-title",
                "Say who answers",
            )
        if held := progress["waiting_for_known"]:
            one = held == 1
            yield Note(
                f"{plural(held, 'label')} {'is' if one else 'are'} held back until a trusted "
                f"worker supports {'it' if one else 'them'}. If that takes long, invite one or "
                "two people whom you trust by a personal link.",
                f"{overview.link}/workers",
                "View the newcomers",
            )

    def forget(self, campaign_id: int) -> None:
        """Go through the campaign again."""
        super().forget(campaign_id)
        self.positions.pop(campaign_id, None)
