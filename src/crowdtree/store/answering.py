"""Taking answers, skips and undos: checked inside the transaction, decided by the engine."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from crowdtree.campaign import Event
from crowdtree.store import statements as sql
from crowdtree.store.database import fetch, run_one
from crowdtree.store.desk import Batch, Who
from crowdtree.store.requests import Refused, Submit, Undo
from crowdtree.store.tables import LEASE
from crowdtree.store.work import STANDING, TAKEN_BACK, Held, Work, task_of

__all__ = ["submit_all"]


def submit_all(batch: Batch, requests: Sequence[Submit | Undo]) -> None:
    """Take answers, skips and undos, in order."""
    leases = [_lease_number(r.lease) for r in requests if isinstance(r, Submit)]
    batch.load([request.token_hash for request in requests], leases)
    undone = [r.token_hash for r in requests if isinstance(r, Undo) and r.token_hash in batch.who]
    last = [run_one(batch.connection, sql.LAST_ANSWER, worker=batch.who[h].id) for h in undone]
    if any(last):
        batch.load_items([row[1] for row in last if row])
    for request in requests:
        try:
            who = batch.known(request.token_hash)
            if isinstance(request, Submit):
                request.result = submit(batch, who, request)
            else:
                request.result = undo(batch, who, request)
        except Refused as error:
            request.error = error


def submit(batch: Batch, who: Who, request: Submit) -> dict[str, Any]:
    """Take one answer or skip; a repeated one gets the result of the first."""
    work, lease = _lease(batch, who, request.lease)
    if lease.attempts:
        first = run_one(batch.connection, sql.ANSWER_BY_KEY, lease=lease.id, key=request.key)
        first = first or _pending(batch, lease.id, request.key)
        if first is not None:
            return _result(first[0], first[1])
    if lease.state in (LEASE.answered, LEASE.skipped):
        raise Refused("answered", "This question has been answered already.")
    if work.gold is not None:
        return _gold(batch, who, request, work, lease)
    fate, price = _fate(batch, who, request, work, lease)
    return _record(batch, who, request, work, lease, fate, price)


def _lease(batch: Batch, who: Who, token: str) -> tuple[Work, Held]:
    number = _lease_number(token)
    for work in batch.works.values():
        lease = work.leases.get(number)
        if lease is not None and lease.worker_id == who.id:
            if secrets.compare_digest(lease.nonce, token.partition(".")[2]):
                return work, lease
            break
    raise Refused("gone", "This question is not open any more. Ask for the next one.")


def _pending(batch: Batch, lease: int, key: str) -> tuple[str, int] | None:
    for row in batch.answers:
        if row["lease_id"] == lease and row["key"] == key:
            return row["fate"], row["overdue"]
    return None


def _fate(batch: Batch, who: Who, request: Submit, work: Work, lease: Held) -> tuple[str, int]:
    """Ask the engine, unless an overdue answer can no longer be paid."""
    price = work.campaign.settings.price_micros if request.kind == "answer" else 0
    purse = batch.purses.get(work.campaign.id)
    paid = lease.state != LEASE.expired  # its price was set aside when it was handed out
    if purse is not None and not paid and price and not purse.room(price):
        return "over budget", 0
    if work.closed:  # the engine has nothing more to say about it
        if purse is not None and paid:
            purse.move(price, -work.campaign.settings.price_micros)
        return "late", price if paid else 0
    before = work.node
    event = Event(
        item=work.task,
        question=lease.question,
        worker=str(who.id),
        value=request.value,
        kind=request.kind,
        key=f"{lease.id}:{request.key}",
        skill=who.skill,
    )
    fate = work.take(event)
    batch.flow(work, before)
    if purse is not None and paid:
        purse.move(0, -work.campaign.settings.price_micros)
    price = price if paid or fate == "counted" else 0
    if purse is not None:
        purse.move(price, 0)
    return fate, price


def _record(
    batch: Batch, who: Who, request: Submit, work: Work, lease: Held, fate: str, price: int
) -> dict[str, Any]:
    overdue = int(lease.overdue(batch.now))
    skipped = request.kind == "skip"
    lease.attempts += 1
    lease.become(LEASE.skipped if skipped else LEASE.answered)
    _append(batch, who, work, lease, request.kind, request.value, request.key, fate, price)
    gains = batch.gains[who.id]
    gains.seen = True
    gains.skips += skipped
    gains.answers += not skipped
    gains.overdue += overdue
    gains.earned += price
    gains.last_question = lease.question
    batch.count(work.campaign.id, f"fate:{fate}")
    batch.count(work.campaign.id, f"asked:{lease.question}")
    batch.count(work.campaign.id, "spent", price)
    if work.gold is None:
        batch.settle(work)
    return _result(fate, overdue)


def _append(
    batch: Batch,
    who: Who,
    work: Work,
    lease: Held,
    kind: str,
    value: int | None,
    key: str,
    fate: str,
    price: int,
) -> None:
    batch.answers.append(
        {
            "campaign_id": work.campaign.id,
            "item_id": work.id,
            "lease_id": lease.id,
            "worker_id": who.id,
            "question": lease.question,
            "kind": kind,
            "value": value,
            "key": key,
            "skill": who.skill,
            "fate": fate,
            "overdue": int(lease.overdue(batch.now)),
            "price": price,
            "at": batch.now,
        }
    )


def _gold(batch: Batch, who: Who, request: Submit, work: Work, lease: Held) -> dict[str, Any]:
    """Compare an answer on a gold item with what is known."""
    assert work.gold is not None
    price = work.campaign.settings.price_micros if request.kind == "answer" else 0
    purse = batch.purses.get(work.campaign.id)
    if purse is not None:
        if lease.state == LEASE.expired:
            price = price if purse.room(price) else 0
        else:
            purse.move(0, -work.campaign.settings.price_micros)
        purse.move(price, 0)
    if request.kind == "answer":
        assert request.value is not None
        batch.judge(who.id, lease.question, request.value, work.gold, 0.0, gold=1)
    return _record(batch, who, request, work, lease, "gold", price)


def undo(batch: Batch, who: Who, request: Undo) -> dict[str, Any]:
    """Take back the worker's last answer or skip, and hand the question out again."""
    last = run_one(batch.connection, sql.LAST_ANSWER, worker=who.id)
    if last is None or any(row["worker_id"] == who.id for row in batch.answers):
        raise Refused("nothing", "There is nothing to undo.")
    _, item_id, lease_id, question, kind, key, fate, price, value, overdue = last
    if kind == "undo":
        if key == request.key:
            work = batch.works[item_id]
            return {"undone": True, "task": _task(batch, work, _read_lease(batch, work, lease_id))}
        raise Refused("nothing", "There is nothing to undo: only the last answer can be.")
    if item_id not in batch.works:
        raise Refused("busy", "Try again.")
    if fate == "over budget":
        raise Refused("late", "Too late to undo.")
    work = batch.works[item_id]
    lease = work.leases.get(lease_id) or _read_lease(batch, work, lease_id)
    if run_one(batch.connection, sql.ANSWER_BY_KEY, lease=lease.id, key=request.key) is not None:
        raise Refused("nothing", "There is nothing to undo: this key was used before.")
    purse = batch.purses.get(work.campaign.id)
    more = work.campaign.settings.price_micros - price  # what the question, out again, may cost
    if purse is not None and more > 0 and not purse.room(more):
        raise Refused("late", "Too late to undo: there is no money left for another answer.")
    if work.gold is None:
        _undo_engine(batch, who, work, lease, request.key)
    elif kind == "answer":
        batch.judge(who.id, question, value, work.gold, 0.0, gold=TAKEN_BACK)
    gains = batch.gains[who.id]
    gains.seen = True
    gains.answers -= kind == "answer"
    gains.skips -= kind == "skip"
    gains.overdue -= overdue
    gains.earned -= price
    batch.count(work.campaign.id, f"fate:{fate}", -1)
    batch.count(work.campaign.id, "spent", -price)
    _append(batch, who, work, lease, "undo", None, request.key, "undone", -price)
    lease.given_at = batch.now
    lease.expires_at = batch.now + work.campaign.settings.lease_seconds
    lease.become(LEASE.active)
    if purse is not None:
        purse.move(-price, work.campaign.settings.price_micros)
    if work.gold is None:
        batch.settle(work)
    return {"undone": True, "task": _task(batch, work, lease)}


def _task(batch: Batch, work: Work, lease: Held) -> dict[str, Any]:
    task, payload = run_one(batch.connection, sql.ITEM_FACE, id=work.id)
    left = lease.expires_at - batch.now
    return task_of(work.campaign, lease.id, lease.nonce, lease.question, task, payload, left)


def _read_lease(batch: Batch, work: Work, lease_id: int) -> Held:
    rows = fetch(batch.connection, sql.LEASES_OF_ITEMS, ids=[work.id], leases=[lease_id])
    for row in rows:
        work.leases.setdefault(row[0], Held(*row))
    return work.leases[lease_id]


def _undo_engine(batch: Batch, who: Who, work: Work, lease: Held, key: str) -> None:
    mine = (str(who.id), lease.question)
    standing = [
        (event.worker, event.question)
        for event, fate in zip(work.item.events, work.item.fates, strict=True)
        if fate in STANDING
    ]
    if work.closed:
        raise Refused("late", "Too late to undo: this item is finished.")
    if not standing or standing[-1] != mine:
        raise Refused("late", "Too late to undo: somebody has answered after you.")
    before = work.node
    event = Event(work.task, lease.question, mine[0], None, "undo", f"{lease.id}:{key}")
    work.take(event)
    batch.flow(work, before)


def _lease_number(token: str) -> int:
    number = token.partition(".")[0]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 19 else -1


def _result(fate: str, overdue: int) -> dict[str, Any]:
    return {"fate": fate if fate != "gold" else "counted", "late": bool(overdue)}
