"""What rules tell the owner on the page of a campaign."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from crowdtree.server.store.db.campaign_row import Campaign
from crowdtree.server.store.queries.progress import Progress


@dataclass(frozen=True)
class Note:
    """Something that needs the owner's attention, and where to look."""

    text: str
    where: str
    link: str


class Overview(Protocol):
    """What is known about a campaign when its page is drawn."""

    @property
    def campaign(self) -> Campaign:
        """The campaign."""

    @property
    def progress(self) -> Progress:
        """Its numbers."""

    @property
    def paused(self) -> int:
        """Workers whom the server paused."""

    @property
    def trusted(self) -> bool:
        """Whether the owner invited somebody by a personal link, or vouched for somebody."""

    @property
    def closes_in_seconds(self) -> float | None:
        """How long stalled items wait at most, if enough people are here to give them a label."""

    @property
    def votes_per_question(self) -> int:
        """People that a question of the plan takes at most; 0 for an adaptive policy."""

    @property
    def link(self) -> str:
        """Beginning of the addresses of the campaign's pages."""

    @property
    def cost(self) -> float | None:
        """What the campaign will have cost in the end, where that is known."""

    def money(self, value: float) -> str:
        """Write an amount in the currency of the campaign."""
