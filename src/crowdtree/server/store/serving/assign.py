"""Which question a worker gets next.

In this order: a question that the worker already holds; sometimes a gold item; an item in progress
with the worker's previous question; any item in progress; a new item. Rows of `open_questions` get
a new id whenever they open, so a worker's search continues from the last id that it has seen: each
row is read once per worker, for any number of items. When nothing is found, the worker's search
starts over, but at a limited rate.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from crowdtree.campaign.events import Outcome
from crowdtree.core.problem import DASH
from crowdtree.server.store.db import assignment as search
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.assignment import HeldTask
from crowdtree.server.store.db.sql import exists, fetch, fetch_one, run, send, send_many
from crowdtree.server.store.db.statements import Lease, Worker
from crowdtree.server.store.errors import Refused
from crowdtree.server.store.serving.assign_batch import (
    ANY,
    Offers,
    count_started,
    grant_offers,
    request_offers,
)
from crowdtree.server.store.serving.campaign import ServedCampaign, questions_of
from crowdtree.server.store.serving.commands import NO_MORE, HandedOut, Next, make_task
from crowdtree.server.store.serving.item import LoadedItem
from crowdtree.server.store.serving.settle import settle
from crowdtree.server.store.serving.unit_of_work import UnitOfWork
from crowdtree.server.store.serving.workers import (
    lease_seconds,
    leases_allowed,
    preparation,
    take_back_after,
)
from crowdtree.server.store.types import LeaseState, lease_token

GOLD_TRIES = 5
SEARCH_AGAIN_SECONDS = 2.0
SEARCH_SHARE = 50
"""A full search is repeated after this many times its own duration."""
SCANNED_AT_ONCE = 50
TAKE_BACK_SECONDS = 1.0
"""How often leases are taken back in a campaign where somebody waits."""
OTHER = -2
"""Stands for any other question than the open ones in the search positions."""


class Chosen(NamedTuple):
    """An item and the question to ask about it."""

    item: sql.Item
    question: int


def assign_all(unit: UnitOfWork, requests: Sequence[Next], others: Iterable[str] = ()) -> None:
    """Assign questions: in a batch where possible, then one request at a time.

    `others` are the tokens of workers whom the transaction also concerns: one query loads all.
    """
    hashes = sorted({request.token_hash for request in requests})
    workers = send(unit.connection, sql.WORKERS, hashes=sorted({*hashes, *others}))
    leases = send(unit.connection, search.HELD, hashes=hashes)
    offers = request_offers(unit, hashes)
    unit.read_workers(workers)
    held: dict[int, list[HeldTask]] = {}
    for row in leases.rows():
        held.setdefault(row.worker_id, []).append(row)
    offers.read(unit)
    gold_turns = _assign_batch(unit, requests, held, offers) if offers.preferred else {}
    searched = set(offers.preferred)  # the result of the search holds for the first request only
    for request in requests:
        if request.result is not None:
            continue
        try:
            worker = unit.worker(request.token_hash)
            request.campaign = worker.campaign_id
            nothing = worker.id in searched and offers.nothing(worker)
            searched.discard(worker.id)
            mine = held.setdefault(worker.id, [])
            gold = gold_turns.get(id(request))
            request.result = _assign(unit, worker, request, mine, gold, nothing)
        except Refused as error:
            request.error = error


def _assign_batch(
    unit: UnitOfWork, requests: Sequence[Next], held: dict[int, list[HeldTask]], offers: Offers
) -> dict[int, bool]:
    """Serve all requests without special needs; returns for whom a gold turn was drawn."""
    gold_turns: dict[int, bool] = {}
    seekers: dict[int, tuple[Next, Worker, ServedCampaign]] = {}
    counts = Counter(request.token_hash for request in requests)
    for request in requests:
        worker = unit.workers.get(request.token_hash)
        if worker is None or worker.status != "active" or counts[request.token_hash] > 1:
            continue
        campaign = unit.campaigns[worker.campaign_id]
        mine = held.get(worker.id, [])
        if (
            preparation(campaign, worker)
            or _held(unit, request, campaign, mine)
            or _refusal(unit, worker, campaign, mine)
        ):
            continue
        gold_turns[id(request)] = gold = _is_gold_turn(unit, worker, campaign, mine)
        if not gold and worker.id not in seekers:
            seekers[worker.id] = (request, worker, campaign)
    granted = grant_offers(unit, offers, [(w, c) for _, w, c in seekers.values()])
    for number, grant in granted.items():
        request, worker, campaign = seekers[number]
        request.campaign = campaign.id
        item = sql.Item(grant.item_id, grant.task, grant.payload)
        lease = search.LeaseKey(grant.lease_id, grant.nonce)
        request.result = _handed_out(worker, campaign, Chosen(item, grant.question), lease)
    return gold_turns


def _assign(
    unit: UnitOfWork,
    worker: Worker,
    request: Next,
    held: list[HeldTask],
    gold: bool | None = None,
    nothing: bool = False,
) -> HandedOut:
    """Assign one question; `nothing` says that the batch search found none."""
    campaign = unit.campaigns[worker.campaign_id]
    if worker.status != "active":
        return _nothing(unit, campaign, "worker paused")
    first = preparation(campaign, worker)
    if first and campaign.status == "running":
        return _nothing(unit, campaign, first)
    found = _held(unit, request, campaign, held)
    if found is not None:
        return found
    refusal = _refusal(unit, worker, campaign, held)
    if refusal:
        return _nothing(unit, campaign, refusal)
    if gold is None:
        gold = _is_gold_turn(unit, worker, campaign, held)
    chosen = _gold(unit, worker, campaign) if gold else None
    chosen = chosen or _ordinary(unit, worker, campaign, nothing)
    if chosen is None:
        unit.cache.idle.add(worker.id)
        return _nothing(unit, campaign, _why_nothing(unit, worker, campaign))
    lease = _lease(unit, worker, campaign, chosen)
    expires = unit.now + lease_seconds(campaign.settings, worker.lapses)
    _, task, payload = chosen.item
    held.append(HeldTask(*lease, worker.id, chosen.question, expires, task, payload))
    return _handed_out(worker, campaign, chosen, lease)


def _handed_out(
    worker: Worker, campaign: ServedCampaign, chosen: Chosen, lease: search.LeaseKey
) -> HandedOut:
    token = lease_token(lease.id, lease.nonce)
    _, task, payload = chosen.item
    seconds = lease_seconds(campaign.settings, worker.lapses)
    made = make_task(campaign, token, chosen.question, task, payload, seconds)
    return {"task": made, "reason": "", "more": True}


def _nothing(unit: UnitOfWork, campaign: ServedCampaign, reason: str) -> HandedOut:
    """Say why there is no question; when others hold them all, take back those of the idle."""
    if reason == "wait":
        _take_back(unit, campaign)
    return {"task": None, "reason": reason, "more": reason not in NO_MORE}


def _take_back(unit: UnitOfWork, campaign: ServedCampaign) -> None:
    """Let leases of newcomers and of the idle expire, because somebody waits.

    ExpireLeases takes them back, with the money that is reserved for them.
    """
    last = unit.cache.taken_back.get(campaign.id)
    if last is not None and abs(unit.now - last) < TAKE_BACK_SECONDS:
        return
    unit.cache.taken_back[campaign.id] = unit.now
    times = {"now": unit.now, "past": unit.now - 1.0}
    times["before"] = unit.now - take_back_after(campaign.settings)
    run(unit.connection, search.TAKE_BACK, campaign=campaign.id, **times)


def _held(
    unit: UnitOfWork, request: Next, campaign: ServedCampaign, held: list[HeldTask]
) -> HandedOut | None:
    """Return a question that the worker holds but does not see, or ``None``."""
    for row in held:
        if row.expires_at >= unit.now and row.token not in request.holding:
            left = row.expires_at - unit.now
            task = make_task(campaign, row.token, row.question, row.task, row.payload, left)
            return {"task": task, "reason": "", "more": True}
    return None


def _refusal(
    unit: UnitOfWork, worker: Worker, campaign: ServedCampaign, held: list[HeldTask]
) -> str:
    """Why this worker gets nothing now, or ``""``."""
    live = sum(row.expires_at >= unit.now for row in held)
    if campaign.status != "running":
        return "finished" if campaign.status in ("finished", "finishing") else "paused"
    settings = campaign.settings
    most = settings.tasks.max_answers_per_worker
    if most is not None and worker.answers + live >= most:
        return "holding" if live else "done"  # who still holds a question is not at the end
    if live >= leases_allowed(settings, worker.answers, worker.lapses):
        return "holding"
    budget = unit.budgets.get(campaign.id)
    if budget is not None and not budget.allows(settings.money.price_micros):
        if not unit.any_unfinished(campaign.id):
            return "finished"
        return "wait" if budget.could_allow(settings.money.price_micros) else "budget"
    return ""


def _why_nothing(unit: UnitOfWork, worker: Worker, campaign: ServedCampaign) -> str:
    """Distinguish waiting for others, having answered everything, and the end of the campaign."""
    if not unit.any_unfinished(campaign.id):
        return "finished"
    begin = time.monotonic()
    until, reason = unit.cache.waiting.get(worker.id, (-1e9, ""))
    if begin < until:
        return reason
    one = campaign.settings.tasks.one_question_per_item or worker.question is not None
    found = exists(
        unit.connection,
        search.ANY_FOR_WORKER,
        campaign=campaign.id,
        worker=worker.id,
        questions=1 if one else len(campaign.policy.questions_used()),
    )
    reason = "wait" if found else "all answered"
    end = time.monotonic()
    until = end + max(SEARCH_AGAIN_SECONDS, SEARCH_SHARE * (end - begin))
    unit.cache.waiting[worker.id] = (until, reason)
    return reason


# -------------------------------------------------------------------------------- gold


def _is_gold_turn(
    unit: UnitOfWork, worker: Worker, campaign: ServedCampaign, held: list[HeldTask]
) -> bool:
    """Draw whether the next question is about a gold item; always for the first few."""
    live = sum(row.expires_at >= unit.now for row in held)
    first = worker.answers + live < campaign.settings.checks.gold_first
    rate = 1.0 if first else campaign.settings.checks.gold_rate
    if not campaign.gold or not rate or unit.cache.rng.random() >= rate:
        return False
    # do not pay for gold when there is nothing else to do
    return worker.id not in unit.cache.idle and unit.any_unfinished(campaign.id)


def _gold(unit: UnitOfWork, worker: Worker, campaign: ServedCampaign) -> Chosen | None:
    """Find a gold item with a question that has a right answer."""
    for _ in range(GOLD_TRIES):
        gold = campaign.gold[int(unit.cache.rng.integers(len(campaign.gold)))]
        question = _gold_question(unit, worker, campaign, gold.cls)
        if question is None:
            continue
        once = campaign.settings.tasks.one_question_per_item  # as for ordinary items
        facts = {"item": gold.id, "worker": worker.id, "question": ANY if once else question}
        if not exists(unit.connection, search.GOLD_TAKEN, **facts):
            return _chosen(unit, gold.id, question)
    return None


def _gold_question(
    unit: UnitOfWork, worker: Worker, campaign: ServedCampaign, cls: int
) -> int | None:
    outcome = campaign.problem.outcome[:, cls]
    for question in (worker.question, worker.last_question):
        if question is not None and outcome[question] != DASH:
            return int(question)
    if worker.question is not None:
        return None
    definite = [q for q in sorted(campaign.policy.questions_used()) if outcome[q] != DASH]
    return definite[int(unit.cache.rng.integers(len(definite)))] if definite else None


def _chosen(unit: UnitOfWork, item_id: int, question: int) -> Chosen:
    item = fetch_one(unit.connection, sql.ITEM, id=item_id)
    if item is None:
        raise Refused("busy")
    return Chosen(item, question)


# -------------------------------------------------------------------------------- items


def _ordinary(
    unit: UnitOfWork, worker: Worker, campaign: ServedCampaign, nothing: bool = False
) -> Chosen | None:
    """Find an ordinary item; with `nothing`, only by a full search."""
    search = _search_all if nothing else _search
    chosen = search(unit, worker, campaign)
    if chosen is not None:
        unit.cache.idle.discard(worker.id)
    return chosen


def _search(unit: UnitOfWork, worker: Worker, campaign: ServedCampaign) -> Chosen | None:
    row = _first_open(unit, worker, campaign, worker.preferred)
    if row is None and worker.question is None:
        row = _first_open(unit, worker, campaign, ANY)
    if row is not None:
        return _take(unit, row)
    return _new_item(unit, worker, campaign) or _search_all(unit, worker, campaign)


def _first_open(
    unit: UnitOfWork,
    worker: Worker,
    campaign: ServedCampaign,
    question: int,
    from_start: bool = False,
) -> search.Choice | None:
    """Find the first open question that this worker has not had on that item."""
    positions = unit.cache.positions
    row = fetch_one(
        unit.connection,
        search.CHOOSE[question != ANY],
        campaign=campaign.id,
        people=campaign.settings.min_people_before_repeat,
        known=int(bool(worker.known)),
        question=question,
        worker=worker.id,
        after=0 if from_start else positions.get((worker.id, question), 0),
    )
    if row is not None:
        positions[worker.id, question] = row.id - 1
    return row


def _take(unit: UnitOfWork, row: search.Choice) -> Chosen:
    if row.needed > 1:
        send_many(unit.connection, sql.SAVE_QUESTION, [{"id": row.id, "needed": row.needed - 1}])
    else:
        send_many(unit.connection, sql.DROP_QUESTION, [{"id": row.id}])
    return Chosen(sql.Item(row.item_id, row.task, row.payload), row.question)


def _new_item(unit: UnitOfWork, worker: Worker, campaign: ServedCampaign) -> Chosen | None:
    questions = campaign.first_questions
    mine = [q for q in questions if worker.may_answer(q)]
    if not mine:
        return None
    item = fetch_one(unit.connection, search.NEW_ITEM, campaign=campaign.id)
    if item is None:
        return None
    run(unit.connection, search.OPEN_ITEM, id=item.id, revision=campaign.revision)
    rest = list(questions)
    rest.remove(mine[0])
    values = {"campaign_id": campaign.id, "item_id": item.id, "known_only": 0}
    added = [{**values, "question": q, "needed": rest.count(q)} for q in dict.fromkeys(rest)]
    send_many(unit.connection, sql.ADD_QUESTION, added)
    count_started(unit, campaign, len(rest))
    return Chosen(item, mine[0])


def _search_all(unit: UnitOfWork, worker: Worker, campaign: ServedCampaign) -> Chosen | None:
    """Search from the start, in case a row was locked and skipped before."""
    last, took = unit.cache.scanned.get(worker.id, (-1e9, 0.0))
    begin = time.monotonic()
    if begin - last < max(SEARCH_AGAIN_SECONDS, SEARCH_SHARE * took):
        return None
    question = ANY if worker.question is None else worker.question
    row = _first_open(unit, worker, campaign, question, from_start=True)
    chosen = _take(unit, row) if row is not None else _other_question(unit, worker, campaign)
    unit.cache.scanned[worker.id] = (begin, time.monotonic() - begin)
    return chosen


def _other_question(unit: UnitOfWork, worker: Worker, campaign: ServedCampaign) -> Chosen | None:
    """Ask another question about an item whose open questions the worker has had already."""
    if not campaign.policy.has_alternatives or campaign.settings.tasks.one_question_per_item:
        return None
    place = (worker.id, OTHER)
    rows = fetch(
        unit.connection,
        search.SCAN_QUESTIONS,
        campaign=campaign.id,
        after=unit.cache.positions.get(place, 0),
        known=int(bool(worker.known)),
        most=SCANNED_AT_ONCE,
    )
    # The next scan continues after these rows, or starts over if this was the end.
    unit.cache.positions[place] = rows[-1].id if len(rows) == SCANNED_AT_ONCE else 0
    for row in rows:
        facts = {"id": row.item_id, "revision": campaign.revision}
        if not exists(unit.connection, search.LOCK_ITEM, **facts):
            continue  # another process has it, or it is yet to be revised
        unit.load_items([row.item_id])
        item = unit.items.pop(row.item_id)  # not kept: the database may change again before the end
        found = questions_of(campaign.present, item.view, item.outstanding, worker.id)
        mine = [q for q in found if worker.may_answer(q)]
        if not mine or _waits_for_others(item, worker):
            continue
        # Add the lease before settling, so that the engine closes the question that it replaces.
        item.leases[-1] = Lease(
            -1, "", item.id, worker.id, mine[0], LeaseState.ACTIVE, unit.now, unit.now
        )
        settle(unit, item, item.view)
        unit.write_questions([item])
        return _chosen(unit, item.id, mine[0])
    return None


def _waits_for_others(item: LoadedItem, worker: Worker) -> bool:
    """Whether the worker holds a question of an item that still lacks other people's answers."""
    held = any(lease.worker_id == worker.id for lease in item.leases.values())
    counted = (given for given, outcome in item.view.with_outcomes() if outcome is Outcome.COUNTED)
    people = {given.worker for given in counted}
    return held and len(people) < item.campaign.rules.people


def _lease(
    unit: UnitOfWork, worker: Worker, campaign: ServedCampaign, chosen: Chosen
) -> search.LeaseKey:
    """Write the lease; a worker whose lease on this question expired gets the same one again."""
    lease = fetch_one(
        unit.connection,
        search.ADD_LEASE,
        nonce=secrets.token_hex(8),
        campaign=campaign.id,
        item=chosen.item.id,
        worker=worker.id,
        question=chosen.question,
        now=unit.now,
        expires=unit.now + lease_seconds(campaign.settings, worker.lapses),
    )
    if lease is None:
        raise Refused("busy")
    budget = unit.budgets.get(campaign.id)
    if budget is not None:
        budget.add(reserved=campaign.settings.money.price_micros)
    return lease
