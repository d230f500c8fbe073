"""Taking answers, skips and undos: checked inside the transaction, decided by the engine."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from crowdtree.campaign.engine import Event, Kind, stands
from crowdtree.policies import Answer, Label
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.sql import exists, fetch, fetch_one
from crowdtree.server.store.db.statements import Lease, Worker
from crowdtree.server.store.db.states import LeaseState, lease_token, split_lease
from crowdtree.server.store.errors import Refused
from crowdtree.server.store.serving.commands import Submit, Taken, Task, Undo, Undone
from crowdtree.server.store.serving.item import OpenItem, make_task
from crowdtree.server.store.serving.newcomers import ready_label
from crowdtree.server.store.serving.record import is_accepted, lease_seconds, skip_weight
from crowdtree.server.store.serving.settle import settle
from crowdtree.server.store.serving.unit_of_work import UnitOfWork

MOST_ATTEMPTS = 10
"""Times that a question can be answered: the log keeps each, and the activity each report."""


def submit_all(unit: UnitOfWork, requests: Sequence[Submit | Undo]) -> None:
    """Take answers, skips and undos, in order."""
    leases = [split_lease(r.lease)[0] for r in requests if isinstance(r, Submit)]
    unit.load([request.token_hash for request in requests], leases)
    undoing = [
        r.token_hash for r in requests if isinstance(r, Undo) and r.token_hash in unit.workers
    ]
    last = [_last_answer(unit, unit.workers[token_hash]) for token_hash in undoing]
    ids = [row.item_id for row in last if row is not None]
    if ids:
        unit.load_items(ids)
    for request in requests:
        try:
            worker = unit.worker(request.token_hash)
            if isinstance(request, Submit):
                request.result = _submit(unit, worker, request)
            else:
                request.result = _undo(unit, worker, request)
        except Refused as error:
            request.error = error


def _last_answer(unit: UnitOfWork, worker: Worker) -> sql.LastAnswer | None:
    return fetch_one(unit.connection, sql.LAST_ANSWER, worker=worker.id)


def _submit(unit: UnitOfWork, worker: Worker, request: Submit) -> Taken:
    """Take one answer or skip; a repeated one gets the result of the first."""
    item, lease = _leased(unit, worker, request.lease)
    if lease.attempts:
        first = _earlier(unit, lease, request.key)
        if first is not None:
            return _taken(first, request.kind)
    if lease.state in (LeaseState.ANSWERED, LeaseState.SKIPPED):
        raise Refused("answered")
    if item.gold is not None:
        return _answer_gold(unit, worker, request, item, lease, item.gold)
    fate, price = _advance(unit, worker, request, item, lease)
    return _record(unit, worker, request, item, lease, fate, price)


def _leased(unit: UnitOfWork, worker: Worker, token: str) -> tuple[OpenItem, Lease]:
    number, nonce = split_lease(token)
    item = unit.leased.get(number)
    if item is not None:
        lease = item.leases[number]
        if lease.worker_id == worker.id and secrets.compare_digest(lease.nonce, nonce):
            return item, lease
    raise Refused("gone")


def _earlier(unit: UnitOfWork, lease: Lease, key: str) -> sql.Outcome | None:
    """Find an answer with the same key, in the database or earlier in this transaction."""
    found = fetch_one(unit.connection, sql.ANSWER_BY_KEY, lease=lease.id, key=key)
    if found is not None:
        return found
    for row in unit.answers:
        if row.lease_id == lease.id and row.key == key:
            return sql.Outcome(row.fate, row.overdue)
    return None


def _advance(
    unit: UnitOfWork, worker: Worker, request: Submit, item: OpenItem, lease: Lease
) -> tuple[str, int]:
    """Let the engine decide, unless an overdue answer can no longer be paid.

    Returns the fate of the answer and its price.
    """
    full_price = item.campaign.settings.price_micros
    price = full_price if request.kind == "answer" else 0
    budget = unit.budgets.get(item.campaign.id)
    reserved = lease.state != LeaseState.EXPIRED  # the price was reserved with the lease
    if budget is not None and not reserved and price and not budget.allows(price):
        return "over budget", 0
    if item.closed:  # the engine is done with this item
        if budget is not None and reserved:
            budget.add(spent=price, reserved=-full_price)
        return "late", price if reserved else 0
    before = item.node
    event = Event(
        item=item.task,
        question=lease.question,
        worker=str(worker.id),
        value=request.value,
        kind=request.kind,
        key=f"{lease.id}:{request.key}",
        skill=worker.used_skill,
        weight=_weight(unit, worker, request.kind),
    )
    fate = item.take(event)
    _close(unit, item)
    unit.count_move(item.campaign, before, item.node)
    price = price if reserved or fate == "counted" else 0
    if budget is not None:
        budget.add(spent=price, reserved=-full_price if reserved else 0)
    return fate, price


def _weight(unit: UnitOfWork, worker: Worker, kind: str) -> float:
    """How much a skip counts, by what the worker did before; 1 for what is no skip."""
    if kind != "skip":
        return 1.0
    delta = unit.deltas[worker.id]
    return skip_weight(worker.answers + delta.answers, worker.skips + delta.skips)


def _close(unit: UnitOfWork, item: OpenItem) -> None:
    """Close an item whose answers give its label, unless that has to wait."""
    label = ready_label(unit, item, item.item.label)
    if label is not None:
        item.close(label)


def _answer_gold(
    unit: UnitOfWork, worker: Worker, request: Submit, item: OpenItem, lease: Lease, cls: int
) -> Taken:
    """Compare an answer to a gold item with its known class."""
    full_price = item.campaign.settings.price_micros
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
    return _record(unit, worker, request, item, lease, "gold", price)


def _record(
    unit: UnitOfWork,
    worker: Worker,
    request: Submit,
    item: OpenItem,
    lease: Lease,
    fate: str,
    price: int,
) -> Taken:
    """Append the answer to the log and to the counts."""
    skipped = request.kind == "skip"
    line = _line(
        unit,
        worker,
        item,
        lease,
        request.key,
        kind=request.kind,
        value=request.value,
        weight=_weight(unit, worker, request.kind),
        fate=fate,
        price=price,
        report=request.report,
    )
    if request.report:
        detail = {"worker": worker.id, "task": item.task, "report": request.report}
        unit.note(item.campaign.id, "report", detail)
    unit.answers.append(line)
    lease.attempts += 1
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
    if item.gold is None:
        settle(unit, item)
    return _taken(sql.Outcome(fate, line.overdue), request.kind)


def _line(
    unit: UnitOfWork,
    worker: Worker,
    item: OpenItem,
    lease: Lease,
    key: str,
    *,
    kind: Kind,
    fate: str,
    price: int,
    value: int | None = None,
    weight: float = 1.0,
    report: str = "",
) -> sql.NewAnswer:
    """Make a line of the log."""
    return sql.NewAnswer(
        campaign_id=item.campaign.id,
        item_id=item.id,
        lease_id=lease.id,
        worker_id=worker.id,
        question=lease.question,
        kind=kind,
        value=value,
        key=key,
        skill=worker.used_skill,
        weight=weight,
        fate=fate,
        overdue=int(lease.overdue(unit.now)),
        price=price,
        at=unit.now,
        report=report,
    )


# -------------------------------------------------------------------------------- undo


def _undo(unit: UnitOfWork, worker: Worker, request: Undo) -> Undone:
    """Take back the worker's last answer or skip, and hand the question out again."""
    last = _last_answer(unit, worker)
    if last is None or any(row.worker_id == worker.id for row in unit.answers):
        raise Refused("nothing")
    if last.kind == "undo":
        if last.key != request.key:
            raise Refused("nothing.last")
        item = unit.items[last.item_id]
        return {"undone": True, "task": _task(unit, item, _read_lease(unit, item, last.lease_id))}
    if last.item_id not in unit.items:
        raise Refused("busy")
    if last.fate == "over budget":
        raise Refused("late")
    item = unit.items[last.item_id]
    lease = item.leases.get(last.lease_id) or _read_lease(unit, item, last.lease_id)
    key_used = fetch_one(unit.connection, sql.ANSWER_BY_KEY, lease=lease.id, key=request.key)
    if key_used is not None:
        raise Refused("nothing.key")
    if lease.attempts >= MOST_ATTEMPTS:
        raise Refused("late.often")
    full_price = item.campaign.settings.price_micros
    budget = unit.budgets.get(item.campaign.id)
    more = full_price - last.price  # what the question may cost when it is handed out again
    if budget is not None and more > 0 and not budget.allows(more):
        raise Refused("late.money")
    if item.gold is None:
        _undo_in_engine(unit, worker, item, lease, request.key)
    else:
        _refuse_as_ordinary(unit, worker, item, last)
    if item.gold is not None and last.value is not None:
        unit.judgements.append(
            sql.Judgement(worker.id, last.question, last.value, item.gold, 0.0, gold=sql.RELEARN)
        )
    _record_undo(unit, worker, item, lease, request.key, last)
    lease.given_at = unit.now
    lease.expires_at = unit.now + lease_seconds(item.campaign.settings, worker.lapses)
    lease.become(LeaseState.ACTIVE)
    if budget is not None:
        budget.add(spent=-last.price, reserved=full_price)
    if item.gold is None:
        settle(unit, item)
    return {"undone": True, "task": _task(unit, item, lease)}


def _record_undo(
    unit: UnitOfWork, worker: Worker, item: OpenItem, lease: Lease, key: str, last: sql.LastAnswer
) -> None:
    """Append the undo to the log, and subtract the answer from the counts."""
    delta = unit.deltas[worker.id]
    delta.answers -= last.kind == "answer"
    delta.accepted -= is_accepted(last.kind, last.fate, last.overdue)
    delta.skips -= last.kind == "skip"
    delta.overdue -= last.overdue
    delta.earned -= last.price
    unit.count(item.campaign.id, f"fate:{last.fate}", -1)
    unit.count(item.campaign.id, "spent", -last.price)
    line = _line(unit, worker, item, lease, key, kind="undo", fate="undone", price=-last.price)
    unit.answers.append(line)


def _refuse_as_ordinary(
    unit: UnitOfWork, worker: Worker, item: OpenItem, last: sql.LastAnswer
) -> None:
    """Refuse to undo an answer to a gold item where that of an ordinary item could not be undone.

    An undo that is always possible would tell workers which items are gold.
    """
    if _would_label(item, last.question, last.value):
        raise Refused("late.finished")
    facts = {"item": item.id, "worker": worker.id, "after": last.id}
    if any(row.item_id == item.id for row in unit.answers) or exists(
        unit.connection, sql.ANSWERED_SINCE, **facts
    ):
        raise Refused("late.others")


def _would_label(item: OpenItem, question: int, value: int | None) -> bool:
    """Whether an answer to a gold item would have been the last to an ordinary one."""
    policy = item.campaign.policy
    state = policy.start()
    if value is None or not policy.wants(state, question):
        return False
    return isinstance(policy.ask(policy.update(state, Answer(question, value))), Label)


def _undo_in_engine(
    unit: UnitOfWork, worker: Worker, item: OpenItem, lease: Lease, key: str
) -> None:
    if item.closed:
        raise Refused("late.finished")
    mine = (str(worker.id), lease.question)
    standing = [
        (event.worker, event.question)
        for event, fate in zip(item.item.events, item.item.fates, strict=True)
        if stands(fate)
    ]
    if mine not in standing:
        raise Refused("late.unused")
    if standing[-1] != mine:
        raise Refused("late.others")
    before = item.node
    item.take(Event(item.task, lease.question, mine[0], None, "undo", f"{lease.id}:{key}"))
    _close(unit, item)
    unit.count_move(item.campaign, item.node, before, -1)  # the move that the answer made


def _task(unit: UnitOfWork, item: OpenItem, lease: Lease) -> Task:
    found = fetch_one(unit.connection, sql.ITEM, id=item.id)
    payload = "{}" if found is None else found.payload
    token, left = lease_token(lease.id, lease.nonce), lease.expires_at - unit.now
    return make_task(item.campaign, token, lease.question, item.task, payload, left)


def _read_lease(unit: UnitOfWork, item: OpenItem, lease_id: int) -> Lease:
    rows = fetch(unit.connection, sql.LEASES_OF_ITEMS, ids=[item.id], leases=[lease_id])
    for row in rows:
        item.leases.setdefault(row.id, row)
    return item.leases[lease_id]


def _taken(outcome: sql.Outcome, kind: str) -> Taken:
    """What the worker sees: an answer to a gold item, or a skip of one, looks like any other."""
    usual = "skipped" if kind == "skip" else "counted"
    fate = usual if outcome.fate == "gold" else outcome.fate
    return {"fate": fate, "late": bool(outcome.overdue)}
