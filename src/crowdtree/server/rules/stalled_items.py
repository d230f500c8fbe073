"""Stalled items: those that no worker who is present can answer.

An open item is stalled when it has a question to hand out, nobody holds a question of it, and
nobody who is present may answer it: every active worker who was seen recently and has answers left
has had the question (or the item, where a worker sees an item only once, or where it lacks other
people's answers), is dedicated to another question, or is not trusted where the label is held back
(:func:`~crowdtree.server.store.serving.settle.hold_back`). Any present worker who may answer an
item gets it sooner or later, so stalled items are exactly those that need somebody else.
The owner sees their number. After ``labels.close_stalled_after_seconds`` they get their best label
on the answers so far; those with the answers of too few people, or of untrusted people alone, are
set aside. An item that fewer people have seen than a label takes waits for a week at least: the
next person may come tomorrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.campaign.events import Concluded, Outcome, Reason
from crowdtree.campaign.fold import extend
from crowdtree.core.text import duration, plural
from crowdtree.server.rules.rule import Note, Overview, Rule
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.assignment import AGAIN
from crowdtree.server.store.db.sql import Query, Sql, fetch, fetch_ids, run, run_many
from crowdtree.server.store.db.statements import CampaignState
from crowdtree.server.store.db.tables import waiting
from crowdtree.server.store.serving.campaign import ServedCampaign, ServingCache, questions_of
from crowdtree.server.store.serving.item import LoadedItem, lines_of, load_view
from crowdtree.server.store.serving.settle import happen, is_held_back
from crowdtree.server.store.serving.unit_of_work import UnitOfWork
from crowdtree.server.store.types import ItemStatus, LeaseState

AWAY_SECONDS = 900.0
"""A worker who was not seen for this long is not present."""
TOO_FEW_PEOPLE_SECONDS = 604_800.0
"""How long an item waits at least that fewer people have seen than a label takes."""
AT_ONCE = 500
MOST_WORKERS = 2000
MOST_REPLAYED = 20
"""Adaptive items per look that are computed for every worker."""
UNLIMITED = 2**31 - 1


class PresentWorker(NamedTuple):
    """A worker who is present; a dedicated one answers one question."""

    id: int
    question: int | None
    known: str
    """Why the worker is known; empty for others."""


class Candidate(NamedTuple):
    """An open question that nobody holds, and how many who may be asked it have had it."""

    id: int
    item_id: int
    question: int
    known_only: int
    had: int


PRESENT = Query(
    PresentWorker,
    """SELECT id, question, known FROM workers WHERE campaign_id = :campaign AND status = 'active'
    AND seen_at > :since AND answers < :most ORDER BY seen_at DESC LIMIT :limit""",
)
_HAD = f"""(SELECT count(DISTINCT leases.worker_id) FROM leases
    WHERE leases.item_id = open_questions.item_id AND {sql.TAKEN} AND leases.worker_id IN :present
    AND (open_questions.known_only = 0 OR leases.worker_id IN :present_known)
    AND {AGAIN.format(people=":people")})"""
_UNHELD = f"""NOT EXISTS (SELECT 1 FROM leases WHERE leases.item_id = open_questions.item_id
    AND {sql.ACTIVE})"""


CANDIDATES = Query(
    Candidate,
    f"""SELECT id, item_id, question, known_only, {_HAD} AS had
    FROM open_questions WHERE campaign_id = :campaign AND id > :after
    AND (:all = 1 OR item_id IN :ids) AND {_UNHELD} ORDER BY id LIMIT :most""",
)
SOME_WAITING = Sql(
    """SELECT item_id FROM waiting WHERE campaign_id = :campaign AND item_id > :after
    ORDER BY item_id LIMIT :most"""
)
NO_LONGER_STALLED = Sql(
    f"""SELECT waiting.item_id FROM waiting WHERE waiting.item_id IN :ids
    AND NOT EXISTS (SELECT 1 FROM open_questions
        WHERE open_questions.item_id = waiting.item_id AND {_UNHELD})"""
)
WAITING_SINCE = Sql(
    """SELECT item_id FROM waiting WHERE campaign_id = :campaign AND since <= :since
    AND (since <= :long_since OR :people <= (SELECT count(DISTINCT answers.worker_id)
        FROM answers WHERE answers.item_id = waiting.item_id))
    ORDER BY item_id LIMIT :most"""
)
ITEMS = Query(
    sql.ItemRow,
    f"SELECT {', '.join(sql.ItemRow._fields)} FROM items WHERE id IN :ids",
)
ADD_WAITING = sql.many(
    """INSERT INTO waiting (item_id, campaign_id, since) VALUES (:item_id, :campaign_id, :since)
    ON CONFLICT (item_id) DO NOTHING"""
)
DROP_WAITING = Sql("DELETE FROM waiting WHERE item_id IN :ids")


@dataclass
class Findings:
    """What a look at a campaign found: items newly stalled, no longer stalled, and to give up."""

    campaign: int
    stalled: list[int] = field(default_factory=list)
    fine: list[int] = field(default_factory=list)
    expired: list[int] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.stalled or self.fine or self.expired)


class StalledItems(Rule[Findings]):
    """Looks for stalled items, a few hundred at a time, so that large campaigns cost no more."""

    name = "stalled items"
    seconds = 5.0
    share = 0.1

    def __init__(self, cache: ServingCache) -> None:
        super().__init__(cache)
        self.began = self.clock()
        self.positions: dict[int, int] = {}
        self.waiting_positions: dict[int, int] = {}

    def look(self, connection: Connection, campaign: CampaignState) -> Findings | None:
        """Look at the next items of a campaign."""
        return self._stalled(connection, self.cache.campaign(connection, campaign)) or None

    @classmethod
    def notes(cls, overview: Overview) -> Iterator[Note]:
        """Items that no present worker may answer."""
        waiting, labels = (
            overview.progress["waiting_for_workers"],
            overview.campaign.settings.labels,
        )
        if not waiting:
            return
        one = waiting == 1
        text = (
            f"{plural(waiting, 'item')} {'waits' if one else 'wait'} for more workers: everybody "
            "who is here has answered, or may not answer."
        )
        here, votes = overview.progress["workers"]["active"], overview.votes_per_question
        if here < votes:
            text += (
                f" A question of the plan takes up to {votes} people, of whom {here} "
                f"{'is' if here == 1 else 'are'} here; an adaptive policy asks other questions."
            )
        if here < labels.people_per_item:
            text += f" A label takes the answers of {labels.people_per_item} people."
        elif (seconds := overview.closes_in_seconds) is not None:
            best = "it gets its best label" if one else "they get their best labels"
            text += f" Without more answers {best} so far after {duration(seconds)}."
        yield Note(text, f"{overview.link}/share", "Invite more people")

    def _stalled(self, connection: Connection, campaign: ServedCampaign) -> Findings:
        number = campaign.id
        found = self._sorted(connection, campaign, self._next_candidates(connection, campaign))
        known = self._known(connection, [*found.stalled, *found.fine])
        found.stalled = [item for item in found.stalled if item not in known]
        found.fine = [item for item in found.fine if item in known]
        found.fine += self._no_longer_stalled(connection, number)
        patience = campaign.settings.labels.close_stalled_after_seconds
        now = self.clock()
        # After a restart, wait before giving up: workers may have come back in the meantime.
        if patience is not None and now - self.began >= min(patience, AWAY_SECONDS):
            found.expired = fetch_ids(
                connection,
                WAITING_SINCE,
                campaign=number,
                people=campaign.rules.people,
                since=now - patience,
                long_since=now - max(patience, TOO_FEW_PEOPLE_SECONDS),
                most=AT_ONCE,
            )
        return found

    def _next_candidates(
        self, connection: Connection, campaign: ServedCampaign
    ) -> Sequence[Candidate]:
        """Open questions in turn; where items must be replayed, no more than can be at once."""
        rows = self._candidates(connection, campaign, self.positions.get(campaign.id, 0))
        some = rows
        if campaign.policy.has_alternatives:
            fine = _may_be_asked(rows, self._present(connection, campaign))
            doubtful = list(dict.fromkeys(row.item_id for row in rows if row.item_id not in fine))
            if len(doubtful) > MOST_REPLAYED:
                first_left = doubtful[MOST_REPLAYED]
                some = rows[: [row.item_id for row in rows].index(first_left)]
        goes_on = len(some) < len(rows) or len(rows) == AT_ONCE
        self.positions[campaign.id] = some[-1].id if goes_on else 0
        return some

    def _no_longer_stalled(self, connection: Connection, campaign_id: int) -> list[int]:
        """Find waiting items that were labelled, or of which a worker holds a question."""
        after = self.waiting_positions.get(campaign_id, 0)
        some = fetch_ids(connection, SOME_WAITING, campaign=campaign_id, after=after, most=AT_ONCE)
        self.waiting_positions[campaign_id] = some[-1] if len(some) == AT_ONCE else 0
        return fetch_ids(connection, NO_LONGER_STALLED, ids=some)

    def _known(self, connection: Connection, ids: list[int]) -> set[int]:
        mine = sa.select(waiting.c.item_id).where(waiting.c.item_id.in_(ids))
        return set(connection.execute(mine).scalars())

    def _candidates(
        self,
        connection: Connection,
        campaign: ServedCampaign,
        after: int = 0,
        ids: Sequence[int] | None = None,
    ) -> list[Candidate]:
        present = self._present(connection, campaign)
        return fetch(
            connection,
            CANDIDATES,
            campaign=campaign.id,
            people=campaign.settings.min_people_before_repeat,
            after=after,
            all=int(ids is None),
            ids=list(ids or ()),
            present=[worker.id for worker in present],
            present_known=[worker.id for worker in present if worker.known],
            most=AT_ONCE,
        )

    def _present(self, connection: Connection, campaign: ServedCampaign) -> list[PresentWorker]:
        return fetch(
            connection,
            PRESENT,
            campaign=campaign.id,
            since=self.clock() - AWAY_SECONDS,
            most=campaign.settings.tasks.max_answers_per_worker or UNLIMITED,
            limit=MOST_WORKERS,
        )

    def _sorted(
        self, connection: Connection, campaign: ServedCampaign, rows: Sequence[Candidate]
    ) -> Findings:
        """Separate stalled items from those that a present worker may answer."""
        present = self._present(connection, campaign)
        fine = _may_be_asked(rows, present)
        stalled = sorted({row.item_id for row in rows} - fine)
        if campaign.policy.has_alternatives:
            stalled = stalled[:MOST_REPLAYED]
            others = self._with_other_question(connection, campaign, stalled, present)
            fine |= others
            stalled = [item for item in stalled if item not in others]
        return Findings(campaign.id, stalled, sorted(fine))

    def _with_other_question(
        self,
        connection: Connection,
        campaign: ServedCampaign,
        ids: list[int],
        present: Sequence[PresentWorker],
    ) -> set[int]:
        """Find items of which a present worker may be asked another question than the open one."""
        if campaign.settings.tasks.one_question_per_item or not ids:
            return set()
        log: dict[int, list[sql.LogLine]] = {}
        for line in fetch(connection, sql.LOG, ids=ids):
            log.setdefault(line.item_id, []).append(line)
        found = set()
        for row in fetch(connection, ITEMS, ids=ids):
            if row.revision != campaign.revision:
                found.add(row.id)  # look again when it is revised
                continue
            view = load_view(campaign, row, lines_of(row, log.get(row.id, [])))
            if any(
                questions_of(campaign.present, view, (), worker.id)
                for worker in present
                if worker.known or not view.held_back
            ):
                found.add(row.id)
        return found

    def apply(self, connection: Connection, campaign: CampaignState, finding: Findings) -> bool:
        """Record which items are stalled, and set aside those stalled too long."""
        if finding.fine:
            run(connection, DROP_WAITING, ids=finding.fine)
        values = {"campaign_id": campaign.id, "since": self.clock()}
        rows = ({**values, "item_id": item} for item in finding.stalled)
        run_many(connection, ADD_WAITING, rows)
        if finding.expired:
            self._give_up(connection, finding)
        return False

    def _give_up(self, connection: Connection, found: Findings) -> None:
        unit = UnitOfWork(connection, self.cache, self.clock())
        unit.load_items(found.expired)  # locks them: check once more before giving up
        campaign = unit.campaigns[found.campaign]
        rows = self._candidates(connection, campaign, ids=found.expired)
        again = self._sorted(connection, campaign, rows)
        done = list(again.fine)
        for number in again.stalled:
            item = unit.items[number]  # one that was just revised is looked at again later
            held = any(lease.state == LeaseState.ACTIVE for lease in item.leases.values())
            if item.status == ItemStatus.OPEN and not held and not item.changed:
                happen(unit, item, Concluded(_reason(unit, item)))
                done.append(number)
        run(connection, DROP_WAITING, ids=done)
        unit.write()


def _may_be_asked(rows: Sequence[Candidate], present: Sequence[PresentWorker]) -> set[int]:
    """Items of which some present worker has not had an open question."""

    def may_answer(row: Candidate) -> int:
        asked = [worker for worker in present if worker.known or not row.known_only]
        return sum(worker.question in (None, row.question) for worker in asked)

    return {row.item_id for row in rows if row.had < may_answer(row)}


def _reason(unit: UnitOfWork, item: LoadedItem) -> Reason:
    """Whether enough people have answered, among them trusted ones where the owner asks for it."""
    view = item.view
    people = {given.worker for given, fate in view.with_outcomes() if fate is Outcome.COUNTED}
    if len(people) < item.campaign.rules.people or view.held_back:
        return Reason.NO_WORKERS
    best = extend(item.revisions, view, Concluded(Reason.EVERYBODY_ANSWERED))
    held_back = is_held_back(unit, item.campaign, best)
    return Reason.NO_WORKERS if held_back else Reason.EVERYBODY_ANSWERED
