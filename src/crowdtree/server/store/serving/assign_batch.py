"""Assigning questions to many workers at once, on PostgreSQL.

Every statement there is a round trip to another process. So one query looks up candidates for all
workers without locking, the assignment is made in memory, and one statement writes all leases: it
locks the rows it takes and leaves out those that another process took in the meantime. Workers who
get nothing this way are served one by one (:mod:`crowdtree.server.store.serving.assign`). On SQLite
a statement is a function call, and all workers are served one by one.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from crowdtree.server.store.db import assignment as search
from crowdtree.server.store.db.assignment import Grant
from crowdtree.server.store.db.campaign_row import flow
from crowdtree.server.store.db.engine import is_sqlite
from crowdtree.server.store.db.sql import Pending, send
from crowdtree.server.store.db.statements import Worker
from crowdtree.server.store.serving.campaign import ServedCampaign
from crowdtree.server.store.serving.unit_of_work import UnitOfWork
from crowdtree.server.store.serving.workers import lease_seconds
from crowdtree.server.store.types import ItemStatus

ANY = -1
"""Stands for any question in the search positions."""
MAX_OFFERS = 10


@dataclass
class Offers:
    """Candidates: open questions by worker, new items by campaign."""

    preferred: dict[int, int] = field(default_factory=dict)
    """The question for which each worker's search was made."""
    found: dict[int, list[search.Offer]] = field(default_factory=dict)
    new: dict[int, list[int]] = field(default_factory=dict)
    pending: tuple[Pending[search.Offer], Pending[search.NewItemOffer]] | None = None

    def read(self, unit: UnitOfWork) -> None:
        """Read the candidates that :func:`request_offers` requested."""
        if self.pending is None:
            return
        offers, items = self.pending
        for offer in offers.rows():
            mine = self.found.setdefault(offer.worker_id, [])
            if not any(other.kind == offer.kind for other in mine):
                question = ANY if offer.kind else self.preferred[offer.worker_id]
                unit.cache.positions[offer.worker_id, question] = offer.id - 1
            mine.append(offer)
        for row in items.rows():
            self.new.setdefault(row.campaign_id, []).append(row.item_id)

    def searched(self, worker: Worker) -> bool:
        """Whether the search was made for the worker's preferred question."""
        return self.preferred.get(worker.id, ANY) == worker.preferred

    def nothing(self, worker: Worker) -> bool:
        """Whether the search for a worker found nothing; false without a search."""
        found = worker.id in self.found or self.new.get(worker.campaign_id)
        return self.searched(worker) and not found


def request_offers(unit: UnitOfWork, hashes: Sequence[str]) -> Offers:
    """Request candidates for the workers that the cache knows, without waiting for them."""
    made = Offers()
    if is_sqlite(unit.connection):
        return made
    cache = unit.cache
    seekers: list[search.Seeker] = []
    for worker in (cache.workers[h] for h in hashes if h in cache.workers):
        campaign = cache.campaigns.get(worker.campaign_id)
        if campaign is None:
            continue
        dedicated = worker.question is not None
        question = worker.question
        if question is None:
            question = cache.last_questions.get(worker.id, ANY)
        made.preferred[worker.id] = question
        seekers.append(
            search.Seeker(
                worker_id=worker.id,
                campaign_id=worker.campaign_id,
                question=question,
                after=cache.positions.get((worker.id, question), 0),
                after_any=cache.positions.get((worker.id, ANY), 0),
                people=campaign.settings.min_people_before_repeat,
                known=int(worker.id in cache.known),
                wide=not dedicated,
            )
        )
    if not seekers:
        return made
    most = min(len(seekers), MAX_OFFERS)
    rows = json.dumps([seeker._asdict() for seeker in seekers])
    campaigns = sorted({seeker.campaign_id for seeker in seekers})
    made.pending = (
        send(unit.connection, search.OFFERS, rows=rows, most=most),
        send(unit.connection, search.NEW_ITEMS, ids=campaigns, most=most),
    )
    return made


class _LeaseJson(TypedDict):
    """What all leases to be written have in common."""

    worker_id: int
    campaign_id: int
    nonce: str
    expires_at: float
    people: int
    revision: int


@dataclass
class _Assignment:
    """Leases assigned in memory, before the database has confirmed them."""

    unit: UnitOfWork
    offers: Offers
    used: Counter[int] = field(default_factory=Counter)
    taken: list[dict[str, object]] = field(default_factory=list)
    started: list[dict[str, object]] = field(default_factory=list)
    rest: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    """Questions still to be handed out, by campaign and item that this batch started."""

    def assign(self, worker: Worker, campaign: ServedCampaign) -> bool:
        """Find a question for a worker."""
        lease: _LeaseJson = {
            "worker_id": worker.id,
            "campaign_id": campaign.id,
            "nonce": secrets.token_hex(8),
            "expires_at": self.unit.now + lease_seconds(campaign.settings, worker.lapses),
            "people": campaign.settings.min_people_before_repeat,
            "revision": campaign.revision,
        }
        for offer in self.offers.found.get(worker.id, ()):
            if self.used[offer.id] < offer.needed:
                self.used[offer.id] += 1
                self.taken.append({**lease, "offer": offer.id, "place": self.used[offer.id]})
                return True
        return self._continue_item(worker, campaign, lease) or self._start_item(
            worker, campaign, lease
        )

    def _continue_item(self, worker: Worker, campaign: ServedCampaign, lease: _LeaseJson) -> bool:
        for (number, item), left in self.rest.items():
            mine = [q for q in left if worker.may_answer(q)]
            if number == campaign.id and mine:
                left.remove(mine[0])
                self.started.append({**lease, "item_id": item, "question": mine[0]})
                return True
        return False

    def _start_item(self, worker: Worker, campaign: ServedCampaign, lease: _LeaseJson) -> bool:
        questions = list(campaign.first_questions)
        mine = [q for q in questions if worker.may_answer(q)]
        new = self.offers.new.get(campaign.id)
        if not mine or not new:
            return False
        item = new.pop(0)
        questions.remove(mine[0])
        self.rest[campaign.id, item] = questions
        self.started.append({**lease, "item_id": item, "question": mine[0]})
        return True


def grant_offers(
    unit: UnitOfWork, offers: Offers, seekers: Iterable[tuple[Worker, ServedCampaign]]
) -> dict[int, Grant]:
    """Assign candidates to workers and write the leases; returns them by worker."""
    assignment = _Assignment(unit, offers)
    reserved: dict[int, ServedCampaign] = {}
    for worker, campaign in seekers:
        budget = unit.budgets.get(campaign.id)
        price = campaign.settings.money.price_micros
        if not offers.searched(worker) or (budget and not budget.allows(price)):
            continue
        if assignment.assign(worker, campaign):
            reserved[worker.id] = campaign
            if budget is not None:
                budget.add(reserved=price)
    granted = _write(unit, assignment)
    unit.cache.idle.difference_update(granted)
    for number, campaign in reserved.items():
        budget = unit.budgets.get(campaign.id)
        if budget is not None and number not in granted:
            budget.add(reserved=-campaign.settings.money.price_micros)
    return granted


def _write(unit: UnitOfWork, assignment: _Assignment) -> dict[int, Grant]:
    """Write the leases; both statements are sent before the first result is read."""
    pending: list[Pending[Grant]] = []
    if assignment.taken:
        rows = json.dumps(assignment.taken)
        ids = sorted(assignment.used)
        pending.append(send(unit.connection, search.TAKE_OFFERS, rows=rows, ids=ids, now=unit.now))
    if assignment.started:
        rest = [
            {"campaign_id": campaign, "item_id": item, "question": q, "needed": left.count(q)}
            for (campaign, item), left in assignment.rest.items()
            for q in dict.fromkeys(left)
        ]
        pending.append(
            send(
                unit.connection,
                search.START_ITEMS,
                rows=json.dumps(assignment.started),
                rest=json.dumps(rest),
                ids=sorted(item for _, item in assignment.rest),
                now=unit.now,
            )
        )
    grants = [grant for part in pending for grant in part.rows()]
    started = {grant.item_id for grant in grants}
    for (number, item), left in assignment.rest.items():
        if item in started:
            count_started(unit, unit.campaigns[number], len(left))
    return {grant.worker_id: grant for grant in grants}


def count_started(unit: UnitOfWork, campaign: ServedCampaign, opened: int) -> None:
    """Count an item that was started, with `opened` questions still to be handed out."""
    unit.opened[campaign.id] += opened
    unit.count(campaign.id, ItemStatus.NEW.label, -1)
    unit.count(campaign.id, ItemStatus.OPEN.label)
    if campaign.policy.plan is not None:
        unit.count(campaign.id, flow("in", 0, campaign.revision))
    unit.touched.add(campaign.id)
