"""What was sent to Prolific, kept in the activity log of the campaign.

A call that must not happen twice is recorded before it is sent and when its outcome is known. One
without an outcome is never repeated blindly: a study is looked up by its internal name, a payment
by the bonuses that Prolific lists.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.settings.groups import MICRO
from crowdtree.server.store import Store
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign
from crowdtree.server.store.db.tables import activity

ACTION = "prolific"
CENT = MICRO // 100


@dataclass(frozen=True)
class Payment:
    """Bonuses that were sent to be paid: minor units per submission."""

    id: str
    amounts: Mapping[str, int]
    before: Mapping[str, int]
    """What Prolific listed as paid before."""
    at: float


@dataclass(frozen=True)
class Ledger:
    """What is known of the study of a campaign.

    >>> sent = (1, 5.0, {"call": "create", "state": "sent"})
    >>> done = (2, 6.0, {"call": "create", "state": "done", "study": "s"})
    >>> Ledger.of([sent]).creating, Ledger.of([sent, done]).study
    (5.0, 's')
    """

    last: int = 0
    """Id of the last entry."""
    attempts: int = 0
    """Studies of the campaign that were deleted on Prolific."""
    study: str | None = None
    creating: float | None = None
    """When a study was sent whose creation has no known outcome."""
    sent: Mapping[str, Payment] = field(default_factory=dict)
    """Payments by id."""
    outcomes: Mapping[str, str] = field(default_factory=dict)
    """What became of payments: `done` or `failed`; the last entry counts."""

    @property
    def payment(self) -> Payment | None:
        """A payment without a known outcome."""
        return next((p for name, p in self.sent.items() if name not in self.outcomes), None)

    @property
    def paid(self) -> dict[str, int]:
        """Minor units of bonuses per submission."""
        found: dict[str, int] = {}
        for name, payment in self.sent.items():
            for submission, cents in payment.amounts.items():
                if self.outcomes.get(name) != "failed":
                    found[submission] = found.get(submission, 0) + cents
        return found

    @classmethod
    def of(cls, entries: Iterable[tuple[int, float, Mapping[str, Any]]]) -> Ledger:
        """Read the entries in order."""
        found = cls()
        for entry, at, detail in entries:
            found = replace(found._after(at, detail), last=entry)
        return found

    def _after(self, at: float, detail: Mapping[str, Any]) -> Ledger:
        match detail["call"], detail["state"]:
            case "create", "sent":
                return replace(self, creating=at)
            case "create", "done":
                return replace(self, study=detail["study"], creating=None)
            case "create", "failed":
                return replace(self, creating=None)
            case "create", "gone":
                return replace(self, study=None, attempts=self.attempts + 1)
            case "bonus", "sent":
                made = Payment(detail["payment"], detail["amounts"], detail["before"], at)
                return replace(self, sent={**self.sent, made.id: made})
            case "bonus", outcome:
                return replace(self, outcomes={**self.outcomes, detail["payment"]: outcome})
        return self

    @property
    def known_study(self) -> str:
        """The study, or an error that says how to make one."""
        if self.study is None:
            raise CrowdtreeError("prolific: the campaign has no study yet; create it first")
        return self.study


def look(connection: Connection, campaign_id: int) -> tuple[Campaign, Ledger]:
    """Read a campaign and its ledger."""
    return get_campaign(connection, campaign_id), _read(connection, campaign_id)


def record(
    connection: Connection,
    campaign_id: int,
    now: float,
    detail: Mapping[str, object],
    seen: int | None = None,
) -> None:
    """Append to the ledger, only if `seen` is still its last entry where that is given."""
    get_campaign(connection, campaign_id, lock=True)
    if seen is not None and _read(connection, campaign_id).last != seen:
        raise CrowdtreeError(
            "prolific: somebody else has just sent a call for this campaign; look, and try again"
        )
    note(connection, now, ACTION, campaign_id, detail)


def put(store: Store, campaign_id: int, call: str, state: str, **detail: object) -> None:
    """Append what became of a call."""
    entry = {"call": call, "state": state, **detail}
    store.write(lambda c: record(c, campaign_id, store.clock(), entry))


def _read(connection: Connection, campaign_id: int) -> Ledger:
    rows = connection.execute(
        sa.select(activity.c.id, activity.c.at, activity.c.detail)
        .where(activity.c.campaign_id == campaign_id, activity.c.action == ACTION)
        .order_by(activity.c.id)
    )
    return Ledger.of((row.id, row.at, json.loads(row.detail)) for row in rows)


# ------------------------------------------------------------------------------- amounts


def in_cents(micros: int) -> int:
    """Convert millionths to minor units, rounded up, so that nobody gets less than was promised.

    >>> in_cents(1_500_000), in_cents(50_001)
    (150, 6)
    """
    return -(-micros // CENT)


def written(cents: int, currency: str = "") -> str:
    """Write an amount.

    >>> written(150, "GBP"), written(5)
    ('1.50 GBP', '0.05')
    """
    return f"{cents // 100}.{cents % 100:02d} {currency}".strip()
