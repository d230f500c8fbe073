"""Choosing for many workers at once, on PostgreSQL.

Every statement there is a message to another process and back. So a lane asks once what could be
for whom (nothing is locked, only looked at), hands out in memory, and writes all leases in one
statement that locks what it takes and leaves out what somebody else took meanwhile. Who gets
nothing this way is served alone (:mod:`crowdtree.store.choosing`). On SQLite a statement is a
function call, and everybody is served alone.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from crowdtree.policy import Ask, PlanPolicy
from crowdtree.store import statements as sql
from crowdtree.store.database import is_sqlite, run
from crowdtree.store.desk import Batch, Who
from crowdtree.store.work import Loaded

__all__ = ["ANY", "Offers", "hand_out", "offers"]

ANY = -1
"""Stands for any question among the positions."""
MOST_OFFERS = 10


@dataclass
class Offers:
    """What could be handed out: open questions by worker, new items by campaign."""

    prefer: dict[int, int] = field(default_factory=dict)
    """The question that the offers to each worker begin with."""
    found: dict[int, list[Any]] = field(default_factory=dict)
    new: dict[int, list[int]] = field(default_factory=dict)
    _asked: tuple[Any, ...] = ()

    def read(self, batch: Batch) -> None:
        """Wait for what :func:`offers` has asked for."""
        if not self._asked:
            return
        rows, items = self._asked
        for worker, kind, *row in rows.fetchall():
            mine = self.found.setdefault(worker, [])
            place = (worker, ANY if kind else self.prefer[worker])
            if not any(have[0] == kind for have in mine):
                batch.desk.positions[place] = row[0] - 1
            mine.append((kind, *row))
        for campaign, item in items.fetchall():
            self.new.setdefault(campaign, []).append(item)

    def nothing(self, who: Who) -> bool:
        """Whether there was nothing for a worker who was asked for; false if not asked."""
        asked = self.prefer.get(who.id, ANY) == who.preferred
        return asked and who.id not in self.found and not self.new.get(who.campaign_id)


def offers(batch: Batch, hashes: Sequence[str]) -> Offers:
    """Ask what could be for the workers whom this desk knows, without waiting for it."""
    made = Offers()
    known = [batch.desk.people[h] for h in hashes if h in batch.desk.people]
    if is_sqlite(batch.connection) or not known:
        return made
    rows, campaigns = [], set()
    for worker, number, dedicated in known:
        campaign = batch.desk.campaigns.get(number)
        if campaign is None:
            continue
        question = batch.desk.last.get(worker, ANY) if dedicated is None else dedicated
        made.prefer[worker] = question
        campaigns.add(number)
        places = [batch.desk.positions.get((worker, q), 0) for q in (question, ANY)]
        once = campaign.settings.one_question_per_item
        wide = dedicated is None
        values = (worker, number, question, *places, once, wide)
        rows.append(dict(zip(sql.OFFERED, values, strict=True)))
    if not rows:
        return made
    most = min(len(rows), MOST_OFFERS)
    asked = run(batch.connection, sql.OFFERS, {"rows": json.dumps(rows), "most": most})
    new = run(batch.connection, sql.NEW_ITEMS, {"ids": sorted(campaigns), "most": most})
    made._asked = (asked, new)
    return made


@dataclass
class _Hand:
    """What is handed out in one batch, before the database has agreed."""

    batch: Batch
    offers: Offers
    used: Counter[int] = field(default_factory=Counter)
    taken: list[dict[str, Any]] = field(default_factory=list)
    started: list[dict[str, Any]] = field(default_factory=list)
    rest: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    """Questions of items begun in this batch that are still to be handed out."""

    def give(self, who: Who, campaign: Loaded) -> bool:
        """Find something for a worker."""
        lease = {
            "worker_id": who.id,
            "campaign_id": campaign.id,
            "nonce": secrets.token_hex(8),
            "expires_at": self.batch.now + campaign.settings.lease_seconds,
            "once": campaign.settings.one_question_per_item,
        }
        for _, number, _, left in self.offers.found.get(who.id, ()):
            if self.used[number] < left:
                self.used[number] += 1
                self.taken.append({**lease, "wanted": number, "place": self.used[number]})
                return True
        return self._begun(who, campaign, lease) or self._begin(who, campaign, lease)

    def _begun(self, who: Who, campaign: Loaded, lease: dict[str, Any]) -> bool:
        for (number, item), left in self.rest.items():
            mine = [q for q in left if who.question in (None, q)]
            if number == campaign.id and mine:
                left.remove(mine[0])
                self.started.append({**lease, "item_id": item, "question": mine[0]})
                return True
        return False

    def _begin(self, who: Who, campaign: Loaded, lease: dict[str, Any]) -> bool:
        first = campaign.policy.ask(campaign.policy.start())
        questions = list(first.questions) if isinstance(first, Ask) else []
        mine = [q for q in questions if who.question in (None, q)]
        new = self.offers.new.get(campaign.id)
        if not mine or not new:
            return False
        item = new.pop(0)
        questions.remove(mine[0])
        self.rest[campaign.id, item] = questions
        self.started.append({**lease, "item_id": item, "question": mine[0]})
        return True


def hand_out(
    batch: Batch, offered: Offers, seekers: Iterable[tuple[Who, Loaded]]
) -> dict[int, tuple[int, str, int, str, str]]:
    """Hand out what was offered: lease, nonce, question, task and payload by worker."""
    hand = _Hand(batch, offered)
    prices: dict[int, tuple[Loaded, int]] = {}
    for who, campaign in seekers:
        purse = batch.purses.get(campaign.id)
        price = campaign.settings.price_micros
        if offered.prefer.get(who.id, ANY) != who.preferred or (purse and not purse.room(price)):
            continue
        if hand.give(who, campaign):
            prices[who.id] = (campaign, price)
            if purse is not None:
                purse.move(0, price)
    given = _write(batch, hand)
    batch.desk.idle.difference_update(given)
    for worker, (campaign, price) in prices.items():
        purse = batch.purses.get(campaign.id)
        if purse is not None and worker not in given:
            purse.move(0, -price)
    return given


def _write(batch: Batch, hand: _Hand) -> dict[int, tuple[int, str, int, str, str]]:
    """Write the leases; both statements are sent before the first is read."""
    asked = []
    if hand.taken:
        ids = sorted({row["wanted"] for row in hand.taken})
        values = {"rows": json.dumps(hand.taken), "ids": ids, "now": batch.now}
        asked.append(run(batch.connection, sql.TAKE_OFFERS, values))
    if hand.started:
        rest = [
            {"campaign_id": campaign, "item_id": item, "question": q, "open": left.count(q)}
            for (campaign, item), left in hand.rest.items()
            for q in dict.fromkeys(left)
        ]
        ids = sorted(item for _, item in hand.rest)
        rows = {"rows": json.dumps(hand.started), "rest": json.dumps(rest)}
        asked.append(run(batch.connection, sql.START_ITEMS, {**rows, "ids": ids, "now": batch.now}))
    given = {}
    begun = set()
    for part in asked:
        for lease, nonce, worker, item, question, task, payload in part.fetchall():
            given[worker] = (lease, nonce, question, task, payload)
            begun.add(item)
    for (number, item), left in hand.rest.items():
        if item in begun:
            started(batch, batch.campaigns[number], len(left))
    return given


def started(batch: Batch, campaign: Loaded, opened: int) -> None:
    """Count an item that was begun, with so many questions still open."""
    batch.opened[campaign.id] += opened
    batch.count(campaign.id, "new", -1)
    batch.count(campaign.id, "open")
    if isinstance(campaign.policy, PlanPolicy):
        batch.count(campaign.id, "in:0")
    batch.touched.add(campaign.id)
