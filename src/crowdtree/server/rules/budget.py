"""Budgets: a campaign that cannot pay another answer is paused."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.server.reasons import CampaignReason
from crowdtree.server.rules.finishing import is_over
from crowdtree.server.rules.overview import Note, Overview
from crowdtree.server.rules.rule import Rule
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.statements import CampaignState
from crowdtree.server.store.db.tables import budgets
from crowdtree.server.store.owner.campaigns import set_status


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
