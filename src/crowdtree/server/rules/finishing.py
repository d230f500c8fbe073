"""Finishing campaigns whose items are all labelled, and pausing those whose budget is spent."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import cast

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.campaign.events import Concluded, Reason
from crowdtree.learning.trust import MAJORITY
from crowdtree.server.reasons import CampaignReason
from crowdtree.server.rules.certificates import Certifying, FinishCheck, notes_on_certificate
from crowdtree.server.rules.rule import Note, Overview, Rule
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import Campaign, CampaignStatus, get_campaign, tally
from crowdtree.server.store.db.sql import Sql, exists, fetch_ids
from crowdtree.server.store.db.statements import CampaignState
from crowdtree.server.store.db.tables import budgets, campaigns
from crowdtree.server.store.owner.campaigns import set_status
from crowdtree.server.store.serving.campaign import ServingCache
from crowdtree.server.store.serving.item import LoadedItem
from crowdtree.server.store.serving.unit_of_work import change_items
from crowdtree.server.store.types import ItemStatus, in_states

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
ANY_REVISION_UNFINISHED = Sql(
    "SELECT 1 FROM revisions WHERE campaign_id = :campaign AND finished_at IS NULL LIMIT 1"
)
REASON = sa.select(campaigns.c.reason)

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


class Finishing(Rule[CampaignStatus]):
    """Finishes campaigns: those that the owner finishes, and those whose items are all labelled."""

    name = "finishing"
    statuses = ("running", "finishing")

    def __init__(self, cache: ServingCache) -> None:
        super().__init__(cache)
        self.certifying = Certifying(cache)
        self.on_strangers: dict[int, int] = {}
        """An item of each campaign that was left to its owner, to look at first the next time."""

    def look(self, connection: Connection, campaign: CampaignState) -> CampaignStatus | None:
        """Return the status of a campaign with something to finish."""
        if exists(connection, ANY_REVISION_UNFINISHED, campaign=campaign.id):
            return None  # it may take labels back
        if campaign.status == "finishing" or is_over(connection, self.cache, campaign):
            return cast(CampaignStatus, campaign.status)
        reason = connection.execute(REASON.where(campaigns.c.id == campaign.id)).scalar_one()
        return "running" if reason else None

    def apply(
        self, connection: Connection, campaign: CampaignState, finding: CampaignStatus
    ) -> bool:
        """Finish open items, or the campaign; or say what it waits for."""
        found = get_campaign(connection, campaign.id)
        if found.status != finding:
            return False
        if finding == "finishing":
            return self._finish(connection, campaign.id)
        return self._check_running(connection, found)

    @classmethod
    def notes(cls, overview: Overview) -> Iterator[Note]:
        """Labels that are to be certified, or that rest on untrusted people alone."""
        yield from notes_on_certificate(overview)
        campaign, workers = overview.campaign, sum(overview.progress["workers"].values())
        if workers and campaign.status == "running" and campaign.reason.ends_joining:
            yield Note(
                "The campaign does not finish by itself: some labels rest on strangers alone, "
                "whom neither check items nor people whom you invited confirm. Check some labels, "
                "exclude whom you do not trust, then finish the campaign.",
                f"{overview.link}/audit",
                "Check some labels",
            )

    def _finish(self, connection: Connection, campaign_id: int) -> bool:
        """Label open items on the evidence so far, and set aside those never asked about."""
        steps = (
            (ItemStatus.OPEN, OPEN_AT_ONCE, Reason.FINISHED),
            (ItemStatus.NEW, NEW_AT_ONCE, Reason.NEVER_ASKED),
        )
        for status, most, reason in steps:
            some = {"campaign": campaign_id, "status": int(status), "most": most}
            if ids := fetch_ids(connection, WITH_STATUS, **some):
                close = partial(_conclude, reason)
                change_items(connection, self.cache, self.clock(), ids, close)
                return True
        set_status(connection, campaign_id, "finished", self.clock(), actor="server")
        return False

    def _check_running(self, connection: Connection, campaign: Campaign) -> bool:
        """Finish a campaign without open items, or say why not; true if more is due at once."""
        number, now = campaign.id, self.clock()
        over = is_over(connection, self.cache, campaign.state)
        # counted once: while a campaign waits, nothing is set aside
        if over and not campaign.reason and (text := _set_aside_by_people(connection, number)):
            reason = CampaignReason.MOSTLY_SET_ASIDE
            set_status(connection, number, "paused", now, reason, text, "server")
            note(connection, now, "skipped away", number, {"text": reason.text(text)}, "server")
            return False
        check = self._check(connection, campaign) if over else FinishCheck()
        if over and not check.reason:
            if check.claims is not None:
                note(connection, now, "certified", number, check.claims, "server")
            set_status(connection, number, "finished", now, actor="server")
            return False
        self._say(connection, campaign, check)
        return check.reason is CampaignReason.ASKING_AGAIN

    def _say(self, connection: Connection, campaign: Campaign, check: FinishCheck) -> None:
        """Write why a campaign goes on, once; another process may be faster."""
        if (check.reason, check.detail) == (campaign.reason, campaign.reason_detail):
            return
        seen = {"id": campaign.id, "status": "running"}
        seen |= {"reason": campaign.reason, "reason_detail": campaign.reason_detail}
        values = {"reason": check.reason, "reason_detail": check.detail}
        changed = connection.execute(campaigns.update().filter_by(**seen).values(values)).rowcount
        if changed and check.reason in ANNOUNCED:
            detail = {"text": check.reason.text(check.detail), **(check.claims or {})}
            note(connection, self.clock(), check.reason, campaign.id, detail, "server")

    def _check(self, connection: Connection, campaign: Campaign) -> FinishCheck:
        """Why a campaign whose items are all labelled does not finish."""
        if campaign.settings.finish.max_wrong_labels is not None:
            found = self.certifying.step(connection, campaign.id)
            if found.reason or found.claims is not None:
                return found
        held_up = campaign.settings.labels.require_trusted_answer
        if held_up and self._rests_on_strangers(connection, campaign.id):
            return FinishCheck(CampaignReason.LEFT_TO_OWNER)
        return FinishCheck()

    def _rests_on_strangers(self, connection: Connection, campaign_id: int) -> bool:
        """Whether some label has no answer of anybody whom more than the majority confirms."""
        item = self.on_strangers.pop(campaign_id, None)
        if item is None or not exists(connection, IS_ON_STRANGERS, campaign=campaign_id, item=item):
            item = next(iter(fetch_ids(connection, ANY_ON_STRANGERS, campaign=campaign_id)), None)
        if item is not None:
            self.on_strangers[campaign_id] = item
        return item is not None


def is_over(connection: Connection, cache: ServingCache, campaign: CampaignState) -> bool:
    """Whether a campaign may finish by itself: nothing is open, and no table may be revised."""
    loaded = cache.campaign(connection, campaign)
    if not loaded.settings.finish.automatically:
        return False
    if exists(connection, sql.ANY_UNFINISHED, campaign=campaign.id):
        return False
    unread = exists(connection, ANY_UNREAD, campaign=campaign.id)
    return not (unread and loaded.settings.table.revises(loaded.policy.to_dict()["policy"]))


def _conclude(reason: Reason, item: LoadedItem) -> Concluded | None:
    """Close an item, unless a new policy has just labelled it."""
    return None if item.closed else Concluded(reason)


def _set_aside_by_people(connection: Connection, campaign_id: int) -> str:
    """Why a campaign does not finish by itself: workers had more items set aside than labelled."""
    counts = tally(connection, campaign_id)
    labelled = counts.get(ItemStatus.LABELLED.label, 0)
    if counts.get(ItemStatus.SET_ASIDE.label, 0) <= labelled:
        return ""
    count = {
        words: fetch_ids(connection, COUNT_REASON, campaign=campaign_id, reason=reason)[0]
        for reason, words in BY_PEOPLE.items()
    }
    if sum(count.values()) <= labelled:
        return ""
    return " or ".join(words for words, items in count.items() if items)


class Budget(Rule[int]):
    """Pauses campaigns whose budget is spent."""

    name = "budget"

    def look(self, connection: Connection, campaign: CampaignState) -> int | None:
        """Find out whether the budget is spent; returns the price of an answer then."""
        settings = self.cache.campaign(connection, campaign).settings
        if settings.money.budget is None or is_over(connection, self.cache, campaign):
            return None
        price = settings.money.price_micros
        return price if _is_spent(connection, campaign.id, price) else None

    @classmethod
    def notes(cls, overview: Overview) -> Iterator[Note]:
        """A budget below the expected cost."""
        budget, cost = overview.progress["budget"], overview.cost or overview.progress["spent"]
        if budget is None or cost <= 1.02 * budget or overview.campaign.status == "finished":
            return
        text = (
            f"The budget of {overview.money(budget)} will not be enough: about "
            f"{overview.money(cost)} will be needed."
        )
        yield Note(text, f"{overview.link}/share#payment", "Change the budget")

    def apply(self, connection: Connection, campaign: CampaignState, finding: int) -> bool:
        """Pause the campaign."""
        if _is_spent(connection, campaign.id, finding):
            now, reason = self.clock(), CampaignReason.BUDGET_SPENT
            set_status(connection, campaign.id, "paused", now, reason, actor="server")
            note(connection, now, "budget spent", campaign.id, actor="server")
        return False


def _is_spent(connection: Connection, campaign_id: int, price: int) -> bool:
    """Whether nothing is left for another answer, and nobody holds a question that is paid."""
    mine = sa.select(budgets).where(budgets.c.campaign_id == campaign_id)
    row = connection.execute(mine).one_or_none()
    return row is not None and not row.reserved and row.spent + price > row.cap
