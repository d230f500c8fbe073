"""Replaying the items of a revised campaign, a few at a time, beside the answers that come in."""

from __future__ import annotations

import time
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.server.reasons import CampaignReason
from crowdtree.server.rules.rule import Rule
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.sql import Sql, exists, fetch, fetch_ids, run_many
from crowdtree.server.store.db.statements import CampaignState, relearn
from crowdtree.server.store.db.tables import revisions, workers
from crowdtree.server.store.owner.campaigns import pause_finished
from crowdtree.server.store.serving.campaign import ServedCampaign, ServingCache
from crowdtree.server.store.serving.unit_of_work import UnitOfWork
from crowdtree.server.store.types import ItemStatus

AT_ONCE = 200
LOADED_AT_ONCE = 10
SECONDS_AT_ONCE = 0.05
"""How long one transaction replays items; on SQLite no answer is taken meanwhile."""
REVISED = (
    ItemStatus.OPEN,
    ItemStatus.LABELLED,
    ItemStatus.SET_ASIDE,
    ItemStatus.WITHDRAWN,
)
BEHIND = Sql(
    f"""SELECT id FROM items WHERE campaign_id = :campaign AND status = :status AND id > :after
    AND {sql.BEHIND} ORDER BY id LIMIT :most {{skip items}}"""
)
ANY_BEHIND = Sql(f"SELECT 1 FROM items WHERE campaign_id = :campaign AND {sql.BEHIND} LIMIT 1")


class RevisedItems(Rule[int]):
    """Replays the items of revised campaigns. Several processes take different items."""

    name = "revised items"

    def __init__(self, cache: ServingCache) -> None:
        super().__init__(cache)
        self.positions: dict[tuple[int, int, ItemStatus], int] = {}
        """Id of the item up to which a campaign, a revision and a status were searched."""

    def campaigns(self, connection: Connection) -> Sequence[CampaignState]:
        """List the campaigns with a revision that is not finished, whatever their status."""
        unfinished = sa.select(revisions.c.campaign_id).where(revisions.c.finished_at.is_(None))
        ids = sorted(set(connection.execute(unfinished).scalars()))
        return fetch(connection, sql.CAMPAIGNS, ids=ids) if ids else []

    def look(self, connection: Connection, campaign: CampaignState) -> int:
        """Return the revision to replay."""
        return self.cache.campaign(connection, campaign).revision

    def apply(self, connection: Connection, campaign: CampaignState, finding: int) -> bool:
        """Replay some items, or finish the revision; false if other processes have the rest."""
        (state,) = fetch(connection, sql.CAMPAIGNS, ids=[campaign.id])
        loaded = self.cache.campaign(connection, state)
        if loaded.revision != finding:
            return True
        if any(self._revise(connection, loaded, status) for status in REVISED):
            return True
        self._finished(connection, loaded)
        return False

    def forget(self, _campaign_id: int) -> None:
        """Search from the beginning."""
        self.positions.clear()

    def _finished(self, connection: Connection, campaign: ServedCampaign) -> None:
        """Finish a revision, unless another process has had some of the items."""
        self.positions.clear()
        values = {"campaign": campaign.id, "revision": campaign.revision}
        if not exists(connection, ANY_BEHIND, **values):
            self._finish(connection, campaign)

    def _revise(self, connection: Connection, campaign: ServedCampaign, status: ItemStatus) -> bool:
        """Replay some items with a status; false if there are none."""
        place = (campaign.id, campaign.revision, status)
        ids = fetch_ids(
            connection,
            BEHIND,
            campaign=campaign.id,
            status=int(status),
            revision=campaign.revision,
            after=self.positions.get(place, 0),
            most=AT_ONCE,
        )
        if not ids:
            return False
        unit = UnitOfWork(connection, self.cache, self.clock())
        unit.campaigns[campaign.id] = campaign  # no need to lock its budget
        end = time.monotonic() + SECONDS_AT_ONCE
        for start in range(0, len(ids), LOADED_AT_ONCE):
            some = ids[start : start + LOADED_AT_ONCE]
            unit.load_items(some)  # which revises them
            self.positions[place] = some[-1]
            if time.monotonic() > end:
                break
        unit.write()
        return True

    def _finish(self, connection: Connection, campaign: ServedCampaign) -> None:
        """Note that all items are revised, and learn anew how reliable workers are."""
        mine = (
            revisions.c.campaign_id == campaign.id,
            revisions.c.number == campaign.revision,
            revisions.c.finished_at.is_(None),
        )
        now = self.clock()
        changed = revisions.update().where(*mine).values(finished_at=now)
        if connection.execute(changed).rowcount:
            answered = (workers.c.campaign_id == campaign.id, workers.c.answers > 0)
            ids = connection.execute(sa.select(workers.c.id).where(*answered)).scalars()
            run_many(connection, sql.ADD_JUDGEMENT, (relearn(n)._asdict() for n in ids))
            if exists(connection, sql.ANY_UNFINISHED, campaign=campaign.id):
                pause_finished(connection, campaign.id, now, CampaignReason.LABELS_WITHDRAWN)
