"""Which question a worker gets next.

In this order: a question that the worker already holds; sometimes a gold item; an item in progress
with the worker's previous question; any item in progress; a new item. Rows of `open_questions` get
a new id whenever they open, so a worker's search continues from the last id that it has seen: each
row is read once per worker, for any number of items. When nothing is found, the worker's search
starts over, but at a limited rate.

Candidates are looked up without a lock and assigned in memory; what another process has taken by
the time the leases are written is looked for again. On PostgreSQL all workers who ask at the same
time are served together.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from crowdtree.campaign.events import Outcome
from crowdtree.core.problem import DASH
from crowdtree.server.store.db import assignment as search
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.assignment import Grant, HeldTask, NewItem, NewLease, Offer, Rest
from crowdtree.server.store.db.campaign_row import flow
from crowdtree.server.store.db.sql import exists, fetch, fetch_one, is_sqlite, run, send
from crowdtree.server.store.db.statements import Lease, Worker, lease_token
from crowdtree.server.store.errors import Refused
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
from crowdtree.server.store.types import ItemStatus, LeaseState

GOLD_TRIES = 5
MAX_OFFERS = 10
SEARCH_AGAIN_SECONDS = 2.0
SEARCH_SHARE = 50
"""A full search is repeated after this many times its own duration."""
SCANNED_AT_ONCE = 50
TAKE_BACK_SECONDS = 1.0
"""How often leases are taken back in a campaign where somebody waits."""
ANY, OTHER = -1, -2
"""Stand in the search positions for any question, and for any other than the open ones."""


@dataclass
class Turn:
    """A worker who asks for a question."""

    request: Next
    worker: Worker
    campaign: ServedCampaign
    held: list[HeldTask]
    """What the worker holds already."""
    now: float

    @property
    def live(self) -> int:
        """How many questions the worker still holds."""
        return sum(row.expires_at >= self.now for row in self.held)

    def lease(self, item_id: int, question: int, task: str, payload: str) -> NewLease:
        """The lease of a question."""
        campaign = self.campaign
        return NewLease(
            worker_id=self.worker.id,
            campaign_id=campaign.id,
            item_id=item_id,
            question=question,
            nonce=secrets.token_hex(8),
            expires_at=self.now + lease_seconds(campaign.settings, self.worker.lapses),
            people=campaign.people_before_repeat,
            revision=campaign.revision,
            task=task,
            payload=payload,
        )


def assign_all(unit: UnitOfWork, requests: Sequence[Next], others: Iterable[str] = ()) -> None:
    """Assign questions.

    `others` are the tokens of workers whom the transaction also concerns: one query loads all.
    """
    hashes = sorted({request.token_hash for request in requests})
    workers = send(unit.connection, sql.WORKERS, hashes=sorted({*hashes, *others}))
    leases = send(unit.connection, search.HELD, hashes=hashes)
    unit.read_workers(workers)
    held: defaultdict[int, list[HeldTask]] = defaultdict(list)
    for row in leases.rows():
        held[row.worker_id].append(row)
    turns = []
    for request in requests:
        try:
            worker = unit.worker(request.token_hash)
        except Refused as error:
            request.error = error
            continue
        request.campaign = worker.campaign_id
        campaign = unit.campaigns[worker.campaign_id]
        turns.append(Turn(request, worker, campaign, held[worker.id], unit.now))
    while turns:  # one of each worker at a time: the next one depends on what they hold then
        first = {turn.worker.id: turn for turn in reversed(turns)}
        together = [turn for turn in turns if first[turn.worker.id] is turn]
        if is_sqlite(unit.connection):
            together = together[:1]
        _assign(unit, together)
        turns = [turn for turn in turns if turn.request.result is None]


def _assign(unit: UnitOfWork, turns: Sequence[Turn]) -> None:
    """Assign a question to each of different workers, or say why there is none."""
    seeking = []
    for turn in turns:
        worker, campaign = turn.worker, turn.campaign
        reason = "worker paused" if worker.status != "active" else ""
        if not reason and campaign.status == "running":
            reason = preparation(campaign, worker)
        if reason:
            turn.request.result = _nothing(unit, campaign, reason)
        elif (task := _held(turn)) is not None:
            turn.request.result = task
        elif reason := _refusal(unit, turn):
            turn.request.result = _nothing(unit, campaign, reason)
        elif not (_is_gold_turn(unit, turn) and _hand_out_gold(unit, turn)):
            seeking.append(turn)
    # On SQLite nobody else writes meanwhile. Elsewhere others may take what was found.
    for turn in seeking if is_sqlite(unit.connection) else _search(unit, seeking):
        _search(unit, [turn], alone=True)
    _search_all(unit, [turn for turn in seeking if turn.request.result is None])
    for turn in seeking:
        if turn.request.result is None:
            unit.cache.idle.add(turn.worker.id)
            reason = _refusal(unit, turn) or _why_nothing(unit, turn)
            turn.request.result = _nothing(unit, turn.campaign, reason)


def _hand_out(unit: UnitOfWork, turn: Turn, grant: Grant | None) -> bool:
    """Give a worker a question whose lease was written."""
    if grant is None:
        return False
    campaign, worker, settings = turn.campaign, turn.worker, turn.campaign.settings
    seconds = lease_seconds(settings, worker.lapses)
    token = lease_token(grant.lease_id, grant.nonce)
    task = make_task(campaign, token, grant.question, grant.task, grant.payload, seconds)
    turn.request.result = {"task": task, "reason": "", "more": True}
    key = (grant.lease_id, grant.nonce, worker.id, grant.question)
    turn.held.append(HeldTask(*key, unit.now + seconds, grant.task, grant.payload))
    budget = unit.budgets.get(campaign.id)
    if budget is not None:
        budget.add(reserved=turn.campaign.price)
    return True


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


def _held(turn: Turn) -> HandedOut | None:
    """Return a question that the worker holds but does not see, or ``None``."""
    for row in turn.held:
        if row.expires_at >= turn.now and row.token not in turn.request.holding:
            left = row.expires_at - turn.now
            task = make_task(turn.campaign, row.token, row.question, row.task, row.payload, left)
            return {"task": task, "reason": "", "more": True}
    return None


def _refusal(unit: UnitOfWork, turn: Turn) -> str:
    """Why this worker gets nothing now, or ``""``."""
    worker, campaign, live = turn.worker, turn.campaign, turn.live
    if campaign.status != "running":
        return "finished" if campaign.status in ("finished", "finishing") else "paused"
    settings = campaign.settings
    most = settings.tasks.max_answers_per_worker
    if most is not None and worker.answers + live >= most:
        return "holding" if live else "done"  # who still holds a question is not at the end
    if live >= leases_allowed(settings, worker.answers, worker.lapses):
        return "holding"
    budget = unit.budgets.get(campaign.id)
    if budget is not None and not budget.allows(turn.campaign.price):
        if not unit.any_unfinished(campaign.id):
            return "finished"
        return "wait" if budget.could_allow(turn.campaign.price) else "budget"
    return ""


def _why_nothing(unit: UnitOfWork, turn: Turn) -> str:
    """Distinguish waiting for others, having answered everything, and the end of the campaign."""
    worker, campaign = turn.worker, turn.campaign
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


def _is_gold_turn(unit: UnitOfWork, turn: Turn) -> bool:
    """Draw whether the next question is about a gold item; always for the first few."""
    worker, campaign = turn.worker, turn.campaign
    first = worker.answers + turn.live < campaign.settings.checks.gold_first
    rate = 1.0 if first else campaign.settings.checks.gold_rate
    if not campaign.gold or not rate or unit.cache.rng.random() >= rate:
        return False
    # do not pay for gold when there is nothing else to do
    return worker.id not in unit.cache.idle and unit.any_unfinished(campaign.id)


def _hand_out_gold(unit: UnitOfWork, turn: Turn) -> bool:
    """Hand out a gold item with a question that has a right answer, if one is found."""
    campaign = turn.campaign
    for _ in range(GOLD_TRIES):
        gold = campaign.gold[int(unit.cache.rng.integers(len(campaign.gold)))]
        question = _gold_question(unit, turn.worker, campaign, gold.cls)
        if question is None:
            continue
        once = campaign.settings.tasks.one_question_per_item  # as for ordinary items
        facts = {"item": gold.id, "worker": turn.worker.id, "question": ANY if once else question}
        if not exists(unit.connection, search.GOLD_TAKEN, **facts):
            return _lease(unit, turn, gold.id, question)
    return False


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


def _lease(unit: UnitOfWork, turn: Turn, item_id: int, question: int) -> bool:
    """Hand out a question that is not an open one."""
    item = fetch_one(unit.connection, sql.ITEM, id=item_id)
    if item is None:
        return False
    lease = turn.lease(*item[:1], question, *item[1:])
    return _hand_out(unit, turn, search.add_lease(unit.connection, lease, unit.now))


# -------------------------------------------------------------------------------- items


def _search(
    unit: UnitOfWork, turns: Sequence[Turn], alone: bool = False, from_start: bool = False
) -> list[Turn]:
    """Look for a question for each worker; returns those for whom something else may be left.

    A worker who is served `alone` gets the first that nobody else has locked.
    """
    turns = [turn for turn in turns if not _refusal(unit, turn)]
    if not turns:
        return []
    positions = unit.cache.positions
    seekers = []
    for turn in turns:
        worker, preferred = turn.worker, turn.worker.preferred
        wide = worker.question is None
        seekers.append(
            search.Seeker(
                worker_id=worker.id,
                campaign_id=worker.campaign_id,
                question=preferred,
                after=0 if from_start else positions.get((worker.id, preferred), 0),
                after_any=0 if from_start else positions.get((worker.id, ANY), 0),
                people=turn.campaign.people_before_repeat,
                known=int(bool(worker.known)),
                wide=wide,
            )
        )
    if alone:
        offers, new = search.find_for_one(unit.connection, seekers[0])
    else:
        most = min(len(turns), MAX_OFFERS)
        offers, new = search.find_for_all(unit.connection, seekers, most)
    assignment = _Assignment()
    for offer in offers:
        assignment.offers[offer.worker_id].append(offer)
    for item in new:
        assignment.new[item.campaign_id].append(item)
    for turn in turns:
        for offer in reversed(assignment.offers[turn.worker.id]):  # the first of each kind counts
            question = ANY if offer.kind else turn.worker.preferred
            positions[turn.worker.id, question] = offer.id - 1
        price, reserved = turn.campaign.price, assignment.prices
        budget = unit.budgets.get(turn.campaign.id)
        if budget is None or budget.allows(reserved[turn.campaign.id] + price):
            reserved[turn.campaign.id] += price * assignment.assign(turn)
    grants = search.hand_out(unit.connection, assignment.leases, assignment.rest(), unit.now)
    assignment.count_started(unit, {grant.item_id for grant in grants})
    by_worker = {grant.worker_id: grant for grant in grants}
    for turn in turns:
        if _hand_out(unit, turn, by_worker.get(turn.worker.id)):
            unit.cache.idle.discard(turn.worker.id)
    return [turn for turn in turns if turn.request.result is None and assignment.may_have(turn)]


@dataclass
class _Assignment:
    """Leases assigned in memory, before they are written."""

    offers: defaultdict[int, list[Offer]] = field(default_factory=lambda: defaultdict(list))
    """Open questions by worker."""
    new: defaultdict[int, list[NewItem]] = field(default_factory=lambda: defaultdict(list))
    """New items by campaign."""
    leases: list[NewLease] = field(default_factory=list)
    used: Counter[int] = field(default_factory=Counter)
    started: dict[NewItem, tuple[ServedCampaign, list[int]]] = field(default_factory=dict)
    """Items that are started, with the questions that are still to be handed out."""
    prices: Counter[int] = field(default_factory=Counter)
    """What the leases may cost, by campaign."""

    def may_have(self, turn: Turn) -> bool:
        """Whether a worker who got nothing may get something at once: others took what there was.

        Others are other processes, or workers for whom questions were found as well.
        """
        taken = any(lease.worker_id == turn.worker.id for lease in self.leases)
        campaign = turn.campaign.id
        return bool(taken or self.offers[turn.worker.id] or self.new.get(campaign) == [])

    def assign(self, turn: Turn) -> bool:
        """Find a question for a worker."""
        for offer in self.offers[turn.worker.id]:
            if self.used[offer.id] < offer.needed:
                self.used[offer.id] += 1
                lease = turn.lease(offer.item_id, offer.question, offer.task, offer.payload)
                place = self.used[offer.id]
                lease = lease._replace(offer=offer.id, place=place, needed=offer.needed)
                self.leases.append(lease)
                return True
        campaign, new = turn.campaign, self.new.get(turn.campaign.id)
        for item, (other, left) in self.started.items():
            if other is campaign and self._ask(turn, item, left):
                return True
        left = list(campaign.first_questions)
        if not (new and self._ask(turn, new[0], left)):
            return False
        self.started[new.pop(0)] = campaign, left
        return True

    def _ask(self, turn: Turn, item: NewItem, left: list[int]) -> bool:
        question = next((q for q in left if turn.worker.may_answer(q)), None)
        if question is None:
            return False
        left.remove(question)
        self.leases.append(turn.lease(item.item_id, question, item.task, item.payload))
        return True

    def rest(self) -> list[Rest]:
        """Questions of the started items that are still to be handed out."""
        return [
            Rest(campaign.id, item.item_id, question, left.count(question))
            for item, (campaign, left) in self.started.items()
            for question in dict.fromkeys(left)
        ]

    def count_started(self, unit: UnitOfWork, granted: set[int]) -> None:
        """Count the items that were started."""
        for item, (campaign, left) in self.started.items():
            if item.item_id in granted:
                unit.opened[campaign.id] += len(left)
                unit.count(campaign.id, ItemStatus.NEW.label, -1)
                unit.count(campaign.id, ItemStatus.OPEN.label)
                if campaign.policy.plan is not None:
                    unit.count(campaign.id, flow("in", 0, campaign.revision))
                unit.touched.add(campaign.id)


def _search_all(unit: UnitOfWork, turns: Sequence[Turn]) -> None:
    """Search from the start, in case a row was locked and skipped before."""
    scanned, begin = unit.cache.scanned, time.monotonic()
    due = []
    for turn in turns:
        last, took = scanned.get(turn.worker.id, (-1e9, 0.0))
        if begin - last >= max(SEARCH_AGAIN_SECONDS, SEARCH_SHARE * took):
            due.append(turn)
    for turn in due:
        _search(unit, [turn], alone=True, from_start=True)
        if turn.request.result is None and not _refusal(unit, turn):
            _other_question(unit, turn)
        scanned[turn.worker.id] = (begin, (time.monotonic() - begin) / len(due))


def _other_question(unit: UnitOfWork, turn: Turn) -> bool:
    """Ask another question about an item whose open questions the worker has had already."""
    worker, campaign = turn.worker, turn.campaign
    if not campaign.policy.has_alternatives or campaign.settings.tasks.one_question_per_item:
        return False
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
        return _lease(unit, turn, item.id, mine[0])
    return False


def _waits_for_others(item: LoadedItem, worker: Worker) -> bool:
    """Whether the worker holds a question of an item that still lacks other people's answers."""
    held = any(lease.worker_id == worker.id for lease in item.leases.values())
    counted = (given for given, outcome in item.view.with_outcomes() if outcome is Outcome.COUNTED)
    people = {given.worker for given in counted}
    return held and len(people) < item.campaign.rules.people
