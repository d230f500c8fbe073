"""What a rule is: it looks at campaigns, and writes what follows from what it sees."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.server.store import Store, Unavailable
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import Campaign
from crowdtree.server.store.db.sql import Query, fetch
from crowdtree.server.store.db.statements import CampaignState
from crowdtree.server.store.db.tables import campaigns
from crowdtree.server.store.errors import database_errors
from crowdtree.server.store.queries.progress import Progress
from crowdtree.server.store.serving.campaign import ServingCache


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


log = logging.getLogger("crowdtree.server.rules")
F = TypeVar("F")


class Evidence(NamedTuple):
    """What there is to know about the workers of a campaign, in numbers."""

    workers: int
    trusted: int
    answers: int


EVIDENCE = Query(
    Evidence,
    """SELECT count(*) AS workers,
    COALESCE(SUM(CASE WHEN known <> '' THEN 1 ELSE 0 END), 0) AS trusted,
    COALESCE(SUM(answers), 0) AS answers FROM workers WHERE campaign_id = :campaign""",
)


class Rule(ABC, Generic[F]):
    """Something that the server does with campaigns on its own.

    A rule keeps nothing that it could not find again: it may be ended at any time, and another
    process may run it as well. What it writes it checks once more in the same transaction.
    """

    name: ClassVar[str]
    seconds: ClassVar[float] = 1.0
    """Between two turns, where nothing is left to do at once."""
    share: ClassVar[float] = 1.0
    """Of the time, how much the rule may take."""
    statuses: ClassVar[tuple[str, ...]] = ("running",)
    """Of the campaigns that it looks at."""

    def __init__(self, cache: ServingCache) -> None:
        self.cache = cache
        self.clock = cache.clock
        self.failures: set[tuple[int, str]] = set()
        """Failures by campaign, each of which the owner is told once."""
        self.seen: dict[int, tuple[int, Evidence]] = {}
        """What each campaign was last looked at with, by its version."""

    def campaigns(self, connection: Connection) -> Sequence[CampaignState]:
        """List the campaigns to look at."""
        columns = (campaigns.c[name] for name in CampaignState._fields)
        mine = sa.select(*columns).where(campaigns.c.status.in_(self.statuses))
        rows = connection.execute(mine.order_by(campaigns.c.id))
        return [CampaignState(*row) for row in rows]

    def is_news(self, connection: Connection, campaign: CampaignState) -> bool:
        """Whether anything about its workers or settings has changed since this was last asked."""
        (evidence,) = fetch(connection, EVIDENCE, campaign=campaign.id)
        now = (campaign.version, evidence)
        before, self.seen[campaign.id] = self.seen.get(campaign.id), now
        return before != now

    @abstractmethod
    def look(self, connection: Connection, campaign: CampaignState) -> F | None:
        """Find what is due in a campaign, in a snapshot that cannot be written."""

    @abstractmethod
    def apply(self, connection: Connection, campaign: CampaignState, finding: F) -> bool:
        """Write it in one short transaction; true when more is due at once."""

    @classmethod
    def notes(cls, _overview: Overview) -> Iterator[Note]:
        """Say what the owner should know, on the page of the campaign."""
        return iter(())

    def forget(self, campaign_id: int) -> None:
        """Drop what is kept about a campaign, because something could not be written."""
        self.seen.pop(campaign_id, None)

    def turn(self, store: Store) -> bool:
        """Look at all campaigns, and write what is due; true when more is due at once.

        A campaign on which the rule fails does not stop it in the others.
        """
        findings, failures = store.read(self._look)
        more = False
        for found in findings:
            more |= self._write(store, *found)
        for campaign, error in failures:
            self._report(store, campaign, error)
        return more

    def _look(
        self, connection: Connection
    ) -> tuple[list[tuple[CampaignState, F]], list[tuple[CampaignState, Exception]]]:
        findings: list[tuple[CampaignState, F]] = []
        failures: list[tuple[CampaignState, Exception]] = []
        for campaign in self.campaigns(connection):
            try:
                finding = self.look(connection, campaign)
            except database_errors():
                for seen in (campaign, *(before for before, _ in findings)):
                    self.forget(seen.id)
                raise
            except Exception as error:
                failures.append((campaign, error))
            else:
                if finding is not None:
                    findings.append((campaign, finding))
        return findings, failures

    def _write(self, store: Store, campaign: CampaignState, finding: F) -> bool:
        try:
            return store.write(partial(self.apply, campaign=campaign, finding=finding))
        except Unavailable as error:
            log.warning("%s: campaign %d waits: %s", self.name, campaign.id, error)
            self.forget(campaign.id)
        except Exception as error:
            self._report(store, campaign, error)
        return False

    def _report(self, store: Store, campaign: CampaignState, error: Exception) -> None:
        """Tell the operator, and the owner once, that the rule failed on a campaign."""
        self.forget(campaign.id)
        failure = (campaign.id, repr(error))
        if failure in self.failures:
            return
        self.failures.add(failure)
        log.error("%s: campaign %d failed", self.name, campaign.id, exc_info=error)
        detail = {"rule": self.name, "text": f"{self.name}: {error or repr(error)}"}
        now = self.clock()
        with suppress(Unavailable):
            store.write(lambda c: note(c, now, "rule failed", campaign.id, detail, "server"))
