"""Housekeeping: judging workers, and ending campaigns a few items at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.store import statements as sql
from crowdtree.store.campaigns import note, set_status
from crowdtree.store.database import Sql, fetch, run_many, run_one
from crowdtree.store.desk import Batch, Desk
from crowdtree.store.judging import fold
from crowdtree.store.labelling import write_labels
from crowdtree.store.settings import Settings
from crowdtree.store.tables import ITEM, budgets, campaigns

__all__ = ["Housekeeper"]

OPEN_AT_ONCE = 200
NEW_AT_ONCE = 5000
OPEN_ITEMS = Sql(
    """SELECT id FROM items WHERE campaign_id = :campaign AND status = 1
    ORDER BY id LIMIT :most {lock items}"""
)
NEW_ITEMS = Sql(
    """SELECT id FROM items WHERE campaign_id = :campaign AND status = 0
    ORDER BY id LIMIT :most {lock items}"""
)
SET_ASIDE = sql.many("UPDATE items SET status = 3 WHERE id = :id")


class Housekeeper:
    """Keeps house: ends campaigns that are to end, and folds what was learnt about workers."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.desk = Desk(clock, np.random.default_rng(0))

    def round(self, connection: Connection) -> bool:
        """Do one round; true when there is more to do at once."""
        rows = connection.execute(
            sa.select(campaigns.c.id, campaigns.c.status, campaigns.c.settings).where(
                campaigns.c.status.in_(["running", "finishing"])
            )
        ).all()
        more = fold(connection, self.desk)
        for number, status, settings in rows:
            if status == "finishing":
                more |= self._finish(connection, number)
            else:
                self._watch(connection, number, Settings.model_validate_json(settings))
        return more

    def _finish(self, connection: Connection, number: int) -> bool:
        """Label what is open on present evidence, set aside what was never asked."""
        open_items = fetch(connection, OPEN_ITEMS, campaign=number, most=OPEN_AT_ONCE)
        if open_items:
            self._conclude(connection, [row[0] for row in open_items])
            return True
        new = fetch(connection, NEW_ITEMS, campaign=number, most=NEW_AT_ONCE)
        if new:
            self._set_aside(connection, number, [row[0] for row in new])
            return True
        set_status(connection, number, "finished", self.desk.clock())
        return False

    def _conclude(self, connection: Connection, ids: list[int]) -> None:
        batch = Batch(connection, self.desk, self.desk.clock())
        batch.load_items(ids)
        for number in ids:
            work = batch.works[number]
            work.close(work.campaign.policy.conclude(work.item.state, "finished"))
            batch.settle(work)
        batch.write()

    def _set_aside(self, connection: Connection, number: int, ids: list[int]) -> None:
        now = self.desk.clock()
        blank = {"label": None, "posterior_error": None, "answers": 0, "path": "[]", "at": now}
        write_labels(
            connection,
            ({**blank, "campaign_id": number, "item_id": n, "reason": "never asked"} for n in ids),
        )
        run_many(connection, SET_ASIDE, ({"id": n} for n in ids))
        for name, value in ((ITEM.names[ITEM.new], -len(ids)), ("set aside", len(ids))):
            values = {"campaign_id": number, "name": name, "shard": 0, "value": value}
            run_many(connection, sql.ADD_TALLY, [values])

    def _watch(self, connection: Connection, number: int, settings: Settings) -> None:
        now = self.desk.clock()
        open_ones = run_one(connection, sql.ANY_OPEN, campaign=number)
        if settings.finish_by_itself and open_ones is None:
            set_status(connection, number, "finished", now)
            return
        if settings.budget is None:
            return
        purse = connection.execute(
            sa.select(budgets).where(budgets.c.campaign_id == number)
        ).one_or_none()
        if purse and not purse.reserved and purse.spent + settings.price_micros > purse.cap:
            set_status(connection, number, "paused", now, "the budget is spent")
            note(connection, now, "server", "budget spent", number)
