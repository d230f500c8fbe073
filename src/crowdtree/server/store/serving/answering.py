"""Taking answers and skips, checked inside the transaction, and taking back leases that expired."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from crowdtree.campaign.events import Answered, Outcome, Response, Skipped
from crowdtree.campaign.view import ItemView
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.sql import fetch_ids, fetch_one
from crowdtree.server.store.db.statements import Lease, Worker, split_lease
from crowdtree.server.store.errors import Refused
from crowdtree.server.store.serving.commands import Submit, Taken
from crowdtree.server.store.serving.item import LoadedItem
from crowdtree.server.store.serving.settle import Changes, hold_back, settle
from crowdtree.server.store.serving.unit_of_work import UnitOfWork
from crowdtree.server.store.types import GIVEN_BACK, LIVE_LEASES, LeaseState


def submit_all(unit: UnitOfWork, requests: Sequence[Submit]) -> None:
    """Take answers and skips, in order."""
    leases = [split_lease(request.lease)[0] for request in requests]
    unit.load([request.token_hash for request in requests], leases)
    for request in requests:
        try:
            request.result = _submit(unit, unit.worker(request.token_hash), request)
        except Refused as error:
            request.error = error


def _submit(unit: UnitOfWork, worker: Worker, request: Submit) -> Taken:
    """Take one answer or skip; a repeated one gets the result of the first."""
    item, lease = _leased(unit, worker, request.lease)
    if lease.state in (LeaseState.ANSWERED, LeaseState.SKIPPED):
        return _taken(_earlier(unit, lease, request.key), request.kind)
    if item.gold is not None:
        return _answer_gold(unit, worker, request, item, lease, item.gold)
    before, counted_on = item.view, lease.state == LeaseState.ACTIVE
    fate, price = _advance(unit, worker, request, item, lease)
    result = _record(unit, worker, request, item, lease, fate, price)
    if fate.about_label:
        item.pending.append(len(unit.answers) - 1)
    follow(unit, item, before, counted_on)
    return result


def follow(unit: Changes, item: LoadedItem, before: ItemView, counted_on: bool) -> None:
    """Bring all about an item in line with an answer; was it counted on, or was its lease over?"""
    if not before.closed:
        hold_back(unit, item)
    if not counted_on and not item.campaign.policy.has_alternatives:
        item.withdraw_leases()  # others were asked in the meantime, maybe one too many now
    settle(unit, item, before)


def _leased(unit: UnitOfWork, worker: Worker, token: str) -> tuple[LoadedItem, Lease]:
    number, nonce = split_lease(token)
    item = unit.leased.get(number)
    if item is not None:
        lease = item.leases[number]
        if lease.worker_id == worker.id and secrets.compare_digest(lease.nonce, nonce):
            return item, lease
    raise Refused("gone")


def _earlier(unit: UnitOfWork, lease: Lease, key: str) -> sql.Outcome:
    """Find the answer with the same key, in the database or earlier in this transaction."""
    found = fetch_one(unit.connection, sql.ANSWER_BY_KEY, lease=lease.id, key=key)
    if found is not None:
        return found
    for row in unit.answers:
        if row.lease_id == lease.id and row.key == key:
            return sql.Outcome(row.fate, row.overdue)
    raise Refused("answered")


def _advance(
    unit: UnitOfWork, worker: Worker, request: Submit, item: LoadedItem, lease: Lease
) -> tuple[Outcome, int]:
    """Let the policy decide, unless an overdue answer can no longer be paid.

    Returns what became of the answer, and its price.
    """
    full_price = item.campaign.price
    price = full_price if request.kind == "answer" else 0
    budget = unit.budgets.get(item.campaign.id)
    reserved = lease.state != LeaseState.EXPIRED  # the price was reserved with the lease
    if budget is not None and not reserved and price and not budget.allows(price):
        return Outcome.OVER_BUDGET, 0
    fate = item.take(_response(unit, worker, request, lease))
    price = price if reserved or fate is Outcome.COUNTED else 0
    if budget is not None:
        budget.add(spent=price, reserved=-full_price if reserved else 0)
    return fate, price


def _response(unit: UnitOfWork, worker: Worker, request: Submit, lease: Lease) -> Response:
    if request.value is None:
        weight = _weight(unit, worker, request.kind)
        return Skipped(worker.id, lease.question, weight=weight)
    return Answered(worker.id, lease.question, request.value, skill=worker.used_skill)


def _weight(unit: UnitOfWork, worker: Worker, kind: str) -> float:
    """How much a skip counts, by what the worker did before; 1 for what is no skip."""
    if kind != "skip":
        return 1.0
    delta = unit.deltas[worker.id]
    return skip_weight(worker.answers + delta.answers, worker.skips + delta.skips)


def _answer_gold(
    unit: UnitOfWork, worker: Worker, request: Submit, item: LoadedItem, lease: Lease, cls: int
) -> Taken:
    """Compare an answer to a gold item with its known class."""
    full_price = item.campaign.price
    price = full_price if request.kind == "answer" else 0
    budget = unit.budgets.get(item.campaign.id)
    if budget is not None:
        reserved = lease.state != LeaseState.EXPIRED
        if not reserved and not budget.allows(price):
            price = 0
        budget.add(spent=price, reserved=-full_price if reserved else 0)
    if request.value is not None:
        judgement = sql.Judgement(worker.id, lease.question, request.value, cls, 0.0, gold=1)
        unit.judgements.append(judgement)
    return _record(unit, worker, request, item, lease, Outcome.GOLD, price)


def _record(
    unit: UnitOfWork,
    worker: Worker,
    request: Submit,
    item: LoadedItem,
    lease: Lease,
    fate: Outcome,
    price: int,
) -> Taken:
    """Append the answer to the log and to the counts."""
    skipped = request.kind == "skip"
    line = sql.NewAnswer(
        campaign_id=item.campaign.id,
        item_id=item.id,
        lease_id=lease.id,
        worker_id=worker.id,
        question=lease.question,
        kind=request.kind,
        value=request.value,
        key=request.key,
        skill=worker.used_skill,
        weight=_weight(unit, worker, request.kind),
        fate=str(fate),
        overdue=int(lease.overdue(unit.now)),
        price=price,
        at=unit.now,
        revision=item.view.revision,
        report=request.report,
    )
    if request.report:
        detail = {"worker": worker.id, "task": item.task, "report": request.report}
        unit.note(item.campaign.id, "report", detail)
    unit.answers.append(line)
    item.logged += 1
    lease.become(LeaseState.SKIPPED if skipped else LeaseState.ANSWERED)
    delta = unit.deltas[worker.id]
    delta.skips += skipped
    delta.answers += not skipped
    delta.accepted += is_accepted(line.kind, fate, line.overdue)
    delta.overdue += line.overdue
    delta.earned += price
    delta.last_question = lease.question
    unit.count(item.campaign.id, f"fate:{fate}")
    unit.count(item.campaign.id, f"asked:{lease.question}")
    unit.count(item.campaign.id, "spent", price)
    return _taken(sql.Outcome(line.fate, line.overdue), request.kind)


def _taken(outcome: sql.Outcome, kind: str) -> Taken:
    """What the worker sees: an answer to a gold item, or a skip of one, looks like any other."""
    usual = "skipped" if kind == "skip" else "counted"
    fate = usual if outcome.fate == "gold" else outcome.fate
    return {"fate": fate, "late": bool(outcome.overdue)}


def expire_leases(unit: UnitOfWork, most: int) -> int:
    """Take back leases that have expired; count them."""
    ahead = unit.now + sql.AHEAD_SECONDS
    found = fetch_ids(unit.connection, sql.OVERDUE_ITEMS, now=unit.now, ahead=ahead, most=most)
    if not found:
        return 0
    unit.load_items(found)
    count = 0
    for number in found:
        item = unit.items[number]
        budget = unit.budgets.get(item.campaign.id)
        for lease in item.leases.values():
            if lease.state in LIVE_LEASES and lease.overdue(unit.now):
                if budget is not None:
                    budget.add(reserved=-item.campaign.price)
                lease.become(LeaseState.EXPIRED)
                if lease.expires_at > GIVEN_BACK:
                    unit.lapses[lease.worker_id] += 1
                unit.count(item.campaign.id, "expired")
                count += 1
        if item.gold is None:
            settle(unit, item, item.view)
    return count


FULL_RECORD = 5
"""Answers beyond the number of skips after which a skip counts in full."""


def skip_weight(answers: int, skips: int) -> float:
    """How much a skip counts, by the answers and skips that the worker gave before.

    >>> skip_weight(0, 0), skip_weight(5, 0), skip_weight(20, 40), skip_weight(200, 3)
    (0.0, 1.0, 0.444, 1.0)
    """
    return round(min(1.0, answers / (FULL_RECORD + skips)), 3)


def is_accepted(kind: str, fate: str, overdue: int) -> bool:
    """Whether a line of the log is an answer that is paid, where there is a price.

    >>> is_accepted("answer", "counted", 1), is_accepted("answer", "late", 1)
    (True, False)
    """
    return kind == "answer" and (
        fate in ("counted", "gold") or (fate in ("surplus", "late") and not overdue)
    )
