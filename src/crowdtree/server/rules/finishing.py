"""Maintenance: apply judgements of workers, revise and finish campaigns a few items at a time."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.campaign.events import Concluded
from crowdtree.campaign.reasons import Reason
from crowdtree.learning.trust import MAJORITY
from crowdtree.server.reasons import CampaignReason
from crowdtree.server.rules.certificates import Certifying, FinishCheck
from crowdtree.server.rules.revised_items import Revising
from crowdtree.server.settings.model import Settings, stored_settings
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import get_campaign, tally
from crowdtree.server.store.db.sql import Sql, exists, fetch_ids
from crowdtree.server.store.db.states import ItemStatus, in_states
from crowdtree.server.store.db.tables import budgets, campaigns
from crowdtree.server.store.owner.campaigns import set_status
from crowdtree.server.store.serving.cache import ServingCache
from crowdtree.server.store.serving.settle import record, settle
from crowdtree.server.store.serving.unit_of_work import UnitOfWork
from crowdtree.server.store.serving.worker_quality import apply_judgements

log = logging.getLogger("crowdtree.server.store")
OPEN_AT_ONCE = 200
NEW_AT_ONCE = 5000
WITH_STATUS = Sql(
    """SELECT id FROM items WHERE campaign_id = :campaign AND status = :status
    ORDER BY id LIMIT :most {lock items}"""
)
ANY_UNREAD = Sql(
    """SELECT 1 FROM answers WHERE campaign_id = :campaign AND id > COALESCE(
    (SELECT last_answer_id FROM monitors WHERE campaign_id = :campaign), 0) LIMIT 1"""
)


BY_PEOPLE = {
    Reason.SKIPPED: "people could not tell",
    Reason.UNCONFIRMED: "nobody known supports their labels",
}
"""Reasons that workers can bring about, so that they must not finish a campaign, in words."""
VOUCHED = [reason for reason in Reason if reason.is_final or reason in BY_PEOPLE]
"""Reasons of labels for which the owner stands, or which are set aside because of people."""
COUNT_REASON = Sql("SELECT count(*) FROM labels WHERE campaign_id = :campaign AND reason = :reason")
ON_STRANGERS = f"""SELECT items.id FROM items JOIN labels ON labels.item_id = items.id
    WHERE items.campaign_id = :campaign AND items.corrected IS NULL AND labels.answers > 0
    AND items.status {in_states(ItemStatus.LABELLED, ItemStatus.SET_ASIDE)}
    AND labels.reason NOT IN ({", ".join(f"'{reason}'" for reason in VOUCHED)})
    AND NOT EXISTS (SELECT 1 FROM answers JOIN workers ON workers.id = answers.worker_id
    WHERE answers.item_id = items.id AND answers.kind = 'answer'
    AND COALESCE(answers.revised_fate, answers.fate) = 'counted'
    AND workers.known NOT IN ('', '{MAJORITY}'))"""
"""Items with a label, but no answer of anybody whom more than the majority confirms. Those set
aside because nobody was left count; labels by the owner's hand, finish or audit do not."""
ANY_ON_STRANGERS = Sql(f"{ON_STRANGERS} LIMIT 1")
IS_ON_STRANGERS = Sql(f"{ON_STRANGERS} AND items.id = :item")


ANNOUNCED = (CampaignReason.OUT_OF_REACH, CampaignReason.LEFT_TO_OWNER)
"""Reasons of which owners are notified."""


class Maintenance:
    """Revises and finishes campaigns, pauses those without money, and applies judgements."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.cache = ServingCache(clock, np.random.default_rng(0))
        self.revising = Revising(self.cache)
        self.certifying = Certifying(self.cache)
        self.on_strangers: dict[int, int] = {}
        """An item of each campaign that was left to its owner, to look at first the next time."""

    def round(self, connection: Connection) -> bool:
        """Do one round; true when there is more to do at once."""
        rows = connection.execute(
            sa.select(
                *(
                    campaigns.c[name]
                    for name in ("id", "status", "reason", "reason_detail", "settings")
                )
            ).where(campaigns.c.status.in_(["running", "finishing"]))
        ).all()
        more = apply_judgements(connection, self.cache)
        revised = self.revising.round(connection)
        more |= any(revised.values())
        for row in rows:
            if row.id not in revised:  # a revision may take labels back
                more |= self._maintain(connection, row)
        return more

    def _maintain(self, connection: Connection, row: sa.Row[Any]) -> bool:
        """Finish or check a campaign; one that fails must not stop the others."""
        try:
            with connection.begin_nested():
                if row.status == "finishing":
                    return self._finish(connection, row.id)
                settings = stored_settings(row.settings)
                before = (row.reason, row.reason_detail)
                return self._check_running(connection, row.id, settings, before)
        except (ArithmeticError, LookupError, TypeError, ValueError):
            log.exception("the maintenance of campaign %d failed", row.id)
            return False

    def take_opened(self) -> dict[int, int]:
        """Count the questions that revisions have opened since the last call, by campaign."""
        found, self.revising.opened = self.revising.opened, Counter()
        return dict(found)

    def _finish(self, connection: Connection, number: int) -> bool:
        """Label open items on the evidence so far, and set aside those never asked about."""
        open_items = self._some(connection, number, ItemStatus.OPEN, OPEN_AT_ONCE)
        if open_items:
            self._conclude(connection, open_items)
            return True
        new = self._some(connection, number, ItemStatus.NEW, NEW_AT_ONCE)
        if new:
            self._set_aside(connection, new)
            return True
        set_status(connection, number, "finished", self.cache.clock(), actor="server")
        return False

    def _some(
        self, connection: Connection, number: int, status: ItemStatus, most: int
    ) -> list[int]:
        return fetch_ids(connection, WITH_STATUS, campaign=number, status=int(status), most=most)

    def _conclude(self, connection: Connection, ids: list[int]) -> None:
        unit = UnitOfWork(connection, self.cache, self.cache.clock())
        unit.load_items(ids)
        for number in ids:
            item = unit.items[number]
            before = item.view
            if not item.closed:  # it was, if a new policy has just labelled it
                record(unit, item, Concluded(Reason.FINISHED))
                settle(unit, item, before)
        unit.write()

    def _set_aside(self, connection: Connection, ids: list[int]) -> None:
        """Close items about which nobody was asked."""
        unit = UnitOfWork(connection, self.cache, self.cache.clock())
        unit.load_items(ids)
        for item in unit.items.values():
            if item.status == ItemStatus.NEW:
                before = item.view
                record(unit, item, Concluded(Reason.NEVER_ASKED))
                settle(unit, item, before)
        unit.write()

    def _check_running(
        self, connection: Connection, number: int, settings: Settings, before: tuple[str, str]
    ) -> bool:
        """Finish a campaign without open items, pause one without money; true if more is due."""
        now = self.cache.clock()
        unfinished = exists(connection, sql.ANY_UNFINISHED, campaign=number)
        unfinished = unfinished or self._may_be_revised(connection, number, settings)
        over = settings.finish.automatically and not unfinished
        # counted once: while a campaign waits, nothing is set aside
        if over and not before[0] and (text := _set_aside_by_people(connection, number)):
            reason = CampaignReason.MOSTLY_SET_ASIDE
            set_status(connection, number, "paused", now, reason, text, "server")
            note(connection, now, "skipped away", number, {"text": reason.text(text)}, "server")
            return False
        check = self._check(connection, number, settings) if over else FinishCheck()
        if over and not check.reason:
            if check.claims is not None:
                note(connection, now, "certified", number, check.claims, "server")
            set_status(connection, number, "finished", now, actor="server")
            return False
        if (check.reason, check.detail) != before:
            seen = {"id": number, "status": "running", "reason": before[0]}
            seen["reason_detail"] = before[1]
            values = {"reason": check.reason, "reason_detail": check.detail}
            if not connection.execute(campaigns.update().filter_by(**seen).values(values)).rowcount:
                return True  # another process was faster
            if check.reason in ANNOUNCED:
                text = check.reason.text(check.detail)
                detail = {"text": text, **(check.claims or {})}
                note(connection, now, check.reason, number, detail, "server")
        if over or settings.money.budget is None:
            return check.reason is CampaignReason.ASKING_AGAIN
        budget = connection.execute(
            sa.select(budgets).where(budgets.c.campaign_id == number)
        ).one_or_none()
        if (
            budget
            and not budget.reserved
            and budget.spent + settings.money.price_micros > budget.cap
        ):
            set_status(
                connection, number, "paused", now, CampaignReason.BUDGET_SPENT, actor="server"
            )
            note(connection, now, "budget spent", number, actor="server")
        return False

    def _check(self, connection: Connection, number: int, settings: Settings) -> FinishCheck:
        """Why a campaign whose items are all labelled does not finish."""
        if settings.finish.max_wrong_labels is not None:
            found = self.certifying.step(connection, number)
            if found.reason or found.claims is not None:
                return found
        if settings.labels.require_trusted_answer and self._rests_on_strangers(connection, number):
            return FinishCheck(CampaignReason.LEFT_TO_OWNER)
        return FinishCheck()

    def _rests_on_strangers(self, connection: Connection, number: int) -> bool:
        """Whether some label has no answer of anybody whom more than the majority confirms."""
        item = self.on_strangers.pop(number, None)
        if item is None or not exists(connection, IS_ON_STRANGERS, campaign=number, item=item):
            item = next(iter(fetch_ids(connection, ANY_ON_STRANGERS, campaign=number)), None)
        if item is not None:
            self.on_strangers[number] = item
        return item is not None

    def _may_be_revised(self, connection: Connection, number: int, settings: Settings) -> bool:
        """Whether answers are left that may still show that the table is wrong."""
        if not exists(connection, ANY_UNREAD, campaign=number):
            return False
        return settings.table.revises(get_campaign(connection, number).policy["policy"])


def _set_aside_by_people(connection: Connection, number: int) -> str:
    """Why a campaign does not finish by itself: workers had more items set aside than labelled."""
    counts = tally(connection, number)
    labelled = counts.get(ItemStatus.LABELLED.label, 0)
    if counts.get(ItemStatus.SET_ASIDE.label, 0) <= labelled:
        return ""
    count = {
        words: fetch_ids(connection, COUNT_REASON, campaign=number, reason=reason)[0]
        for reason, words in BY_PEOPLE.items()
    }
    if sum(count.values()) <= labelled:
        return ""
    return " or ".join(words for words, items in count.items() if items)
