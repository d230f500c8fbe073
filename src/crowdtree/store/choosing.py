"""Which question a worker gets next.

In this order: what the worker holds already; now and then a gold item; an item in progress with
the worker's previous question; any item in progress; a new item. Rows of `wanted` get a new id
whenever they open, so it is enough to look at ids above the last one that the worker has passed:
each row is looked at once a worker, however many items there are. When nothing is found, the
worker looks again from the start, but not more often than is cheap.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from crowdtree.campaign import open_questions
from crowdtree.policy import Ask, PlanPolicy
from crowdtree.problem import DASH
from crowdtree.store import statements as sql
from crowdtree.store.database import fetch, run, run_one, send_many
from crowdtree.store.desk import Batch, Who
from crowdtree.store.requests import Next, Refused
from crowdtree.store.tables import LEASE
from crowdtree.store.together import ANY, Offers, hand_out, offers, started
from crowdtree.store.work import Held, Loaded, task_of

__all__ = ["next_all"]

GOLD_TRIES = 5
LOOK_AGAIN_SECONDS = 2.0
BLOCKED_LOOKED_AT = 50
BLOCKED = -2


def next_all(batch: Batch, requests: Sequence[Next]) -> None:
    """Hand out questions: together where that is possible, then one request after the other."""
    hashes = {"hashes": sorted({request.token_hash for request in requests})}
    people = run(batch.connection, sql.WORKERS, hashes)
    leases = run(batch.connection, sql.HELD, hashes)
    offered = offers(batch, hashes["hashes"])
    batch.read_people(people.fetchall())
    held: dict[int, list[Any]] = {}
    for row in leases.fetchall():
        held.setdefault(row[2], []).append(row)
    offered.read(batch)
    golds = _together(batch, requests, held, offered) if offered.prefer else {}
    asked = set(offered.prefer)  # the first time in this batch
    for request in requests:
        if request.result is not None:
            continue
        try:
            who = batch.known(request.token_hash)
            request.campaign = who.campaign_id
            mine = held.setdefault(who.id, [])
            nothing = who.id in asked and offered.nothing(who)
            asked.discard(who.id)
            request.result = _next(batch, who, request, mine, golds.get(id(request)), nothing)
        except Refused as error:
            request.error = error


def _together(
    batch: Batch, requests: Sequence[Next], held: dict[int, list[Any]], offered: Offers
) -> dict[int, bool]:
    """Serve all who need nothing special; say whose turn it is for gold, where that was thrown."""
    golds: dict[int, bool] = {}
    seekers: dict[int, tuple[Next, Who, Loaded]] = {}
    counts = Counter(request.token_hash for request in requests)
    for request in requests:
        who = batch.who.get(request.token_hash)
        if who is None or who.status != "active" or counts[request.token_hash] > 1:
            continue
        campaign = batch.campaigns[who.campaign_id]
        mine = held.get(who.id, [])
        if _at_hand(batch, request, campaign, mine) or _refusal(batch, who, campaign, mine):
            continue
        golds[id(request)] = gold = _gold_turn(batch, who, campaign, mine)
        if not gold and who.id not in seekers:
            seekers[who.id] = (request, who, campaign)
    given = hand_out(batch, offered, [seeker[1:] for seeker in seekers.values()])
    for number, (lease, nonce, question, task, payload) in given.items():
        request, _, campaign = seekers[number]
        request.campaign = campaign.id
        seconds = campaign.settings.lease_seconds
        request.result = _found(task_of(campaign, lease, nonce, question, task, payload, seconds))
    return golds


def _at_hand(batch: Batch, request: Next, campaign: Loaded, held: list[Any]) -> Any:
    """Find what the worker holds and does not see, or ``None``."""
    for row in held:
        if row[4] >= batch.now and f"{row[0]}.{row[1]}" not in request.holding:
            left = row[4] - batch.now
            return _found(task_of(campaign, row[0], row[1], row[3], row[5], row[6], left))
    return None


def _next(
    batch: Batch,
    who: Who,
    request: Next,
    held: list[Any],
    gold: bool | None = None,
    nothing: bool = False,
) -> dict[str, Any]:
    campaign = batch.campaigns[who.campaign_id]
    if who.status != "active":
        return {"task": None, "reason": "worker paused"}
    at_hand: dict[str, Any] | None = _at_hand(batch, request, campaign, held)
    if at_hand is not None:
        return at_hand
    refusal = _refusal(batch, who, campaign, held)
    if refusal:
        return {"task": None, "reason": refusal}
    if gold is None:
        gold = _gold_turn(batch, who, campaign, held)
    chosen = _gold(batch, who, campaign) if gold else None
    chosen = chosen or _ordinary(batch, who, campaign, nothing)
    if chosen is None:
        batch.desk.idle.add(who.id)
        return {"task": None, "reason": _why_nothing(batch, who, campaign)}
    item_id, question, task, payload = chosen
    lease = _lease(batch, who, campaign, item_id, question)
    seconds = campaign.settings.lease_seconds
    held.append((lease[0], lease[1], who.id, question, batch.now + seconds, task, payload))
    return _found(task_of(campaign, lease[0], lease[1], question, task, payload, seconds))


def _refusal(batch: Batch, who: Who, campaign: Loaded, held: list[Any]) -> str:
    """Why this worker gets nothing now, or ``""``."""
    live = [row for row in held if row[4] >= batch.now]
    if campaign.status != "running":
        return "finished" if campaign.status in ("finished", "finishing") else "paused"
    settings = campaign.settings
    most = settings.answers_per_worker
    if most is not None and who.answers + len(live) >= most:
        return "done"
    if len(live) >= settings.leases_per_worker:
        return "holding"
    purse = batch.purses.get(campaign.id)
    if purse is not None and not purse.room(settings.price_micros):
        return "budget"
    return ""


def _why_nothing(batch: Batch, who: Who, campaign: Loaded) -> str:
    """Tell who waits for others from who has answered all they may, and from the end."""
    if not batch.any_open(campaign.id):
        return "finished"
    begin = time.monotonic()
    until, reason = batch.desk.through.get(who.id, (-1e9, ""))
    if begin < until:
        return reason
    one = campaign.settings.one_question_per_item or who.question is not None
    found = run_one(
        batch.connection,
        sql.ANY_FOR_WORKER,
        campaign=campaign.id,
        worker=who.id,
        questions=1 if one else questions_asked(campaign),
    )
    reason = "wait" if found else "all answered"
    end = time.monotonic()
    batch.desk.through[who.id] = (end + max(LOOK_AGAIN_SECONDS, 50 * (end - begin)), reason)
    return reason


def questions_asked(campaign: Loaded) -> int:
    """Count the questions that one item may get."""
    if isinstance(campaign.policy, PlanPolicy):
        return len(set(campaign.policy.plan.tree.question.tolist()))
    return campaign.problem.n_questions


def _found(task: dict[str, Any]) -> dict[str, Any]:
    return {"task": task, "reason": ""}


# -------------------------------------------------------------------------------- gold


def _gold_turn(batch: Batch, who: Who, campaign: Loaded, held: list[Any]) -> bool:
    """Throw the dice for gold: at first always, then now and then."""
    live = sum(row[4] >= batch.now for row in held)
    first = who.answers + live < campaign.settings.gold_first
    rate = 1.0 if first else campaign.settings.gold_rate
    if not campaign.gold or not rate or batch.desk.rng.random() >= rate:
        return False
    return who.id not in batch.desk.idle  # with nothing else to do, it would be money for nothing


def _gold(batch: Batch, who: Who, campaign: Loaded) -> tuple[int, int, str, str] | None:
    """Find an item whose class is known, with a question that has a right answer."""
    for _ in range(GOLD_TRIES):
        item_id, cls = campaign.gold[int(batch.desk.rng.integers(len(campaign.gold)))]
        question = _gold_question(batch, who, campaign, cls)
        if question is None:
            continue
        seen = run_one(
            batch.connection, sql.GOLD_TOUCHED, item=item_id, worker=who.id, question=question
        )
        if seen is None:
            task, payload = run_one(batch.connection, sql.ITEM_FACE, id=item_id)
            return item_id, question, task, payload
    return None


def _gold_question(batch: Batch, who: Who, campaign: Loaded, cls: int) -> int | None:
    outcome = campaign.problem.outcome[:, cls]
    for question in (who.question, who.last_question):
        if question is not None and outcome[question] != DASH:
            return int(question)
    if who.question is not None:
        return None
    definite = [q for q in range(len(outcome)) if outcome[q] != DASH]
    return definite[int(batch.desk.rng.integers(len(definite)))] if definite else None


# -------------------------------------------------------------------------------- items


def _ordinary(
    batch: Batch, who: Who, campaign: Loaded, nothing: bool = False
) -> tuple[int, int, str, str] | None:
    """Find an ordinary item; `nothing` says that all has been looked at but what was passed."""
    look = _look_again if nothing else _search
    chosen = look(batch, who, campaign)
    if chosen is not None:
        batch.desk.idle.discard(who.id)
    return chosen


def _search(batch: Batch, who: Who, campaign: Loaded) -> tuple[int, int, str, str] | None:
    row = _look(batch, who, campaign, who.preferred)
    if row is None and who.question is None:
        row = _look(batch, who, campaign, ANY)
    if row is not None:
        return _take(batch, row)
    return _new_item(batch, who, campaign) or _look_again(batch, who, campaign)


def _look(batch: Batch, who: Who, campaign: Loaded, question: int, start: bool = False) -> Any:
    """Find the first open question that this worker has not had on that item."""
    positions = batch.desk.positions
    place = (who.id, question)
    once = int(campaign.settings.one_question_per_item)
    row = run_one(
        batch.connection,
        sql.CHOOSE[int(question != ANY), once],
        campaign=campaign.id,
        question=question,
        worker=who.id,
        after=0 if start else positions.get(place, 0),
    )
    if row is not None:
        positions[place] = row[0] - 1
    return row


def _take(batch: Batch, row: Any) -> tuple[int, int, str, str]:
    number, item_id, question, count, task, payload = row
    if count > 1:
        send_many(batch.connection, sql.SAVE_WANTED, [{"id": number, "open": count - 1}])
    else:
        send_many(batch.connection, sql.DROP_WANTED, [{"id": number}])
    return item_id, question, task, payload


def _new_item(batch: Batch, who: Who, campaign: Loaded) -> tuple[int, int, str, str] | None:
    found = campaign.policy.ask(campaign.policy.start())
    questions = found.questions if isinstance(found, Ask) else ()
    mine = [q for q in questions if who.question is None or q == who.question]
    if not mine:
        return None
    row = run_one(batch.connection, sql.NEW_ITEM, campaign=campaign.id)
    if row is None:
        return None
    item_id, task, payload = row
    run(batch.connection, sql.OPEN_ITEM, {"id": item_id})
    rest = list(questions)
    rest.remove(mine[0])
    values = {"campaign_id": campaign.id, "item_id": item_id}
    added = [{**values, "question": q, "open": rest.count(q)} for q in dict.fromkeys(rest)]
    send_many(batch.connection, sql.ADD_WANTED, added)
    started(batch, campaign, len(rest))
    return item_id, mine[0], task, payload


def _look_again(batch: Batch, who: Who, campaign: Loaded) -> tuple[int, int, str, str] | None:
    """Look from the start, in case something was passed while somebody else held it."""
    last, took = batch.desk.scanned.get(who.id, (-1e9, 0.0))
    begin = time.monotonic()
    if begin - last < max(LOOK_AGAIN_SECONDS, 50 * took):
        return None
    row = _look(batch, who, campaign, ANY if who.question is None else who.question, start=True)
    chosen = _take(batch, row) if row is not None else _another_question(batch, who, campaign)
    batch.desk.scanned[who.id] = (begin, time.monotonic() - begin)
    return chosen


def _another_question(batch: Batch, who: Who, campaign: Loaded) -> tuple[int, int, str, str] | None:
    """Ask this worker something else about an item whose best question they had already."""
    if isinstance(campaign.policy, PlanPolicy) or campaign.settings.one_question_per_item:
        return None
    place = (who.id, BLOCKED)
    after = batch.desk.positions.get(place, 0)
    rows = fetch(
        batch.connection,
        sql.BLOCKED_ITEMS,
        campaign=campaign.id,
        after=after,
        most=BLOCKED_LOOKED_AT,
    )
    # The next look goes on behind these, and begins again at the end.
    batch.desk.positions[place] = rows[-1][1] if len(rows) == BLOCKED_LOOKED_AT else 0
    for item_id, _ in rows:
        if run_one(batch.connection, sql.LOCK_ITEM, id=item_id) is None:
            continue
        batch.works.pop(item_id, None)
        batch.load_items([item_id])
        work = batch.works[item_id]
        found = open_questions(
            campaign.policy, work.item, work.outstanding, str(who.id), campaign.rules
        )
        found = tuple(q for q in found if who.question in (None, q))
        if not found:
            continue
        # Counted as out already, so that the engine closes what the lease replaces.
        work.leases[-1] = Held(
            -1, "", item_id, who.id, found[0], LEASE.active, 0, batch.now, batch.now
        )
        batch.settle(work)
        batch.write_wanted([work])
        del batch.works[item_id]
        task, payload = run_one(batch.connection, sql.ITEM_FACE, id=item_id)
        return item_id, found[0], task, payload
    return None


def _lease(batch: Batch, who: Who, campaign: Loaded, item_id: int, question: int) -> Any:
    """Write the lease; a worker whose lease on this question expired gets the same one again."""
    row = run_one(
        batch.connection,
        sql.ADD_LEASE,
        nonce=secrets.token_hex(8),
        campaign=campaign.id,
        item=item_id,
        worker=who.id,
        question=question,
        now=batch.now,
        expires=batch.now + campaign.settings.lease_seconds,
    )
    if row is None:
        raise Refused("busy", "Try again.")
    purse = batch.purses.get(campaign.id)
    if purse is not None:
        purse.move(0, campaign.settings.price_micros)
    return row
