"""Labels that are held back until a trusted worker supports them: given as soon as one does."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy.engine import Connection

from crowdtree.campaign.events import Released
from crowdtree.campaign.fold import extend
from crowdtree.core.text import plural
from crowdtree.server.rules.rule import Note, Overview, Rule
from crowdtree.server.store.db.sql import Sql, fetch_ids
from crowdtree.server.store.db.statements import CampaignState
from crowdtree.server.store.serving.campaign import ServingCache
from crowdtree.server.store.serving.settle import happen, is_held_back
from crowdtree.server.store.serving.unit_of_work import UnitOfWork
from crowdtree.server.store.types import ItemStatus

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
