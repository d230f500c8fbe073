"""One transaction: rows loaded and locked, changes collected, everything written at the end.

The rules that decide what changes are in :mod:`~crowdtree.server.store.serving.assign`,
:mod:`~crowdtree.server.store.serving.answering` and :mod:`~crowdtree.server.store.serving.settle`.
Results are returned to workers only after the commit (see
:mod:`crowdtree.server.store.serving.writer`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from sqlalchemy.engine import Connection

from crowdtree.campaign.events import Event
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.campaign_row import read_policy
from crowdtree.server.store.db.sql import (
    Pending,
    exists,
    fetch,
    hold_readers,
    is_sqlite,
    run,
    send,
    send_many,
)
from crowdtree.server.store.db.statements import Worker
from crowdtree.server.store.errors import Refused
from crowdtree.server.store.serving.campaign import Revisions, ServedCampaign, ServingCache
from crowdtree.server.store.serving.item import (
    ENDED,
    LoadedItem,
    lines_of,
    load_view,
)
from crowdtree.server.store.serving.settle import Changes, catch_up, happen
from crowdtree.server.store.types import ITEM_STATUSES, AnyPolicy, ItemStatus


@dataclass
class Budget:
    """What a campaign has spent of its cap, and what its leases may still cost."""

    cap: int
    spent: int
    reserved: int
    changed: bool = False

    def allows(self, price: int) -> bool:
        """Whether one more answer can be paid."""
        return self.spent + self.reserved + price <= self.cap

    def could_allow(self, price: int) -> bool:
        """Whether one more answer could be paid if nobody held a question."""
        return self.spent + price <= self.cap

    def add(self, spent: int = 0, reserved: int = 0) -> None:
        """Add to what is spent and reserved."""
        self.spent += spent
        self.reserved += reserved
        self.changed = True


class PendingItems(NamedTuple):
    """Everything about some items, requested in one go."""

    items: Pending[sql.ItemRow]
    log: Pending[sql.LogLine]
    leases: Pending[sql.Lease]
    questions: Pending[sql.OpenQuestion]


@dataclass
class UnitOfWork(Changes):
    """The rows of one transaction, and what it changes."""

    workers: dict[str, Worker] = field(default_factory=dict)
    """By the hash of their token."""
    campaigns: dict[int, ServedCampaign] = field(default_factory=dict)
    budgets: dict[int, Budget] = field(default_factory=dict)
    items: dict[int, LoadedItem] = field(default_factory=dict)
    leased: dict[int, LoadedItem] = field(default_factory=dict)
    """Items by the leases that were loaded with them."""
    unfinished: dict[int, bool] = field(default_factory=dict)
    happened: list[LoadedItem] = field(default_factory=list)
    """Items to which :func:`change_items` has let something happen."""

    # ---------------------------------------------------------------- loading

    def load(self, hashes: Iterable[str], leases: Sequence[int]) -> None:
        """Load the workers behind tokens, and lock and load the items of leases."""
        missing = sorted(set(hashes) - self.workers.keys())
        if not missing:
            self.read_items(self.request_items((), leases))
            return
        workers = send(self.connection, sql.WORKERS, hashes=missing)
        # Budgets must be locked before items. Where no known campaign has one, request everything
        # at once; if another process has just added a budget, the worst case is a deadlock, which
        # is retried.
        known = self.cache.campaigns.values()
        if not known or any(c.settings.money.budget is not None for c in known):
            self.read_workers(workers)
            self.read_items(self.request_items((), leases))
        else:
            items = self.request_items((), leases)
            self.read_workers(workers)
            self.read_items(items)

    def read_workers(self, pending: Pending[Worker]) -> None:
        """Read workers and their campaigns."""
        capped = set()
        for worker in pending.rows():
            number = worker.campaign_id
            if number not in self.campaigns:
                campaign = self.cache.campaign(self.connection, worker.campaign)
                self.campaigns[number] = campaign
                if campaign.settings.money.budget is not None:
                    capped.add(number)
            expired = worker.expires_at is not None and worker.expires_at <= self.now
            if worker.role == "worker" and not expired:
                self.workers[worker.token_hash] = worker
                if worker.known:
                    self.cache.known.add(worker.id)
        self._lock_budgets(capped)

    def load_campaigns(self, ids: Iterable[int]) -> None:
        """Load campaigns, and lock the budgets of those that have one."""
        missing = sorted(set(ids) - set(self.campaigns))
        if not missing:
            return
        for state in fetch(self.connection, sql.CAMPAIGNS, ids=missing):
            self.campaigns[state.id] = self.cache.campaign(self.connection, state)
        self._lock_budgets(
            {n for n in missing if self.campaigns[n].settings.money.budget is not None}
        )

    def _lock_budgets(self, campaigns: set[int]) -> None:
        if campaigns:
            for row in fetch(self.connection, sql.BUDGETS, ids=sorted(campaigns)):
                self.budgets[row.campaign_id] = Budget(row.cap, row.spent, row.reserved)

    def load_items(self, ids: Sequence[int], labels: bool = False) -> None:
        """Lock items, and load what their views need; with the labels of closed ones if asked."""
        self.read_items(self.request_items(ids, ()), labels)

    def request_items(self, ids: Sequence[int], leases: Sequence[int]) -> PendingItems:
        """Request items; on PostgreSQL all four statements share one round trip."""
        c, which, held = self.connection, list(ids), list(leases)
        return PendingItems(
            send(c, sql.ITEMS, ids=which, leases=held),
            send(c, sql.LOG_OF_ITEMS, ids=which, leases=held),
            send(c, sql.LEASES_OF_ITEMS, ids=which, leases=held),
            send(c, sql.QUESTIONS_OF_ITEMS, ids=which, leases=held),
        )

    def read_items(self, pending: PendingItems, labels: bool = False) -> None:
        """Read items that were requested; those that are loaded already stay as they are."""
        rows = pending.items.rows()
        log: dict[int, list[sql.LogLine]] = defaultdict(list)
        for line in pending.log.rows():
            log[line.item_id].append(line)
        leases, questions = pending.leases.rows(), pending.questions.rows()
        new = {row.id for row in rows} - set(self.items)
        self.load_campaigns({row.campaign_id for row in rows})
        self._read_again(rows)
        behind = {
            row.id
            for row in rows
            if row.id in new and row.is_behind(self.campaigns[row.campaign_id].revision)
        }
        closed = [row.id for row in rows if row.status in ENDED and (labels or row.id in behind)]
        known = self.labels_of(closed)
        for row in rows:
            if row.id in new:
                self.items[row.id] = self._load(row, log[row.id], known.get(row.id))
        for lease in leases:
            if lease.item_id in new:
                self.leased[lease.id] = item = self.items[lease.item_id]
                item.leases[lease.id] = lease
        for question in questions:
            if question.item_id in new:
                self.items[question.item_id].questions[question.question] = question
        for number in sorted(behind):
            catch_up(self, self.items[number])

    def _read_again(self, rows: list[sql.ItemRow]) -> None:
        """Read campaigns again that were revised since this transaction has read them."""
        revised = {
            row.campaign_id
            for row in rows
            if row.revision > self.campaigns[row.campaign_id].revision
        }
        if revised:
            for state in fetch(self.connection, sql.CAMPAIGNS, ids=sorted(revised)):
                self.campaigns[state.id] = self.cache.campaign(self.connection, state)

    def labels_of(self, ids: Sequence[int]) -> dict[int, sql.LabelOfItem]:
        """Read labels, by item."""
        rows = fetch(self.connection, sql.LABELS_OF_ITEMS, ids=list(ids)) if ids else []
        return {row.item_id: row for row in rows}

    def _load(
        self, row: sql.ItemRow, log: list[sql.LogLine], label: sql.LabelOfItem | None
    ) -> LoadedItem:
        campaign = self.campaigns[row.campaign_id]
        lines = lines_of(row, log)
        status = ItemStatus(row.status)
        return LoadedItem(
            row.id,
            row.task,
            status,
            row.gold,
            campaign,
            Revisions(campaign, partial(policy_of_revision, self.connection, campaign.id)),
            load_view(campaign, row, lines, label),
            lines,
            len(log),
            label,
            started=status == ItemStatus.OPEN or row.state is not None,
        )

    def any_unfinished(self, campaign: int) -> bool:
        """Whether a campaign has items without a label; queried once per transaction."""
        if campaign not in self.unfinished:
            found = exists(self.connection, sql.ANY_UNFINISHED, campaign=campaign)
            self.unfinished[campaign] = found
        return self.unfinished[campaign]

    def worker(self, token_hash: str) -> Worker:
        """Return the worker behind a token, or refuse."""
        worker = self.workers.get(token_hash)
        if worker is None:
            raise Refused("unknown")
        if worker.status == "blocked":
            raise Refused("blocked")
        return worker

    # ---------------------------------------------------------------- writing

    def write(self) -> None:
        """Write everything that has changed."""
        c = self.connection
        send_many(c, sql.ADD_ACTIVITY, self.notes)
        if self.items:
            self._write_items()
        for number, budget in self.budgets.items():
            if budget.changed:
                values = {"spent": budget.spent, "reserved": budget.reserved}
                run(c, sql.SAVE_BUDGET, campaign_id=number, **values)
        if self.deltas or self.lapses:
            self._write_workers()
        again = map(sql.relearn, sorted(self.relearned))
        send_many(c, sql.ADD_JUDGEMENT, (row._asdict() for row in (*self.judgements, *again)))
        shard = self.cache.shard
        tallies = sorted((*key, value) for key, value in self.tallies.items() if value)
        send_many(
            c,
            sql.ADD_TALLY,
            (
                {"campaign_id": number, "name": name, "shard": shard, "value": value}
                for number, name, value in tallies
            ),
        )

    def _write_items(self) -> None:
        """Write items, and what has changed with them."""
        c, items = self.connection, self.items.values()
        send_many(c, sql.ADD_ANSWER, (row._asdict() for row in self.answers))
        send_many(c, sql.ADD_ITEM_EVENT, (row._asdict() for row in self.events))
        send_many(c, sql.SAVE_FATE, self.revised_fates.values())
        self._write_leases()
        send_many(c, sql.SAVE_ITEM, (item.row() for item in items if item.changed))
        self.write_questions(items)
        send_many(c, sql.DROP_LABEL, self.dropped)
        send_many(c, sql.SAVE_LABEL, self.corrected)
        write_labels(c, self.labels, self.withdrawals)
        for item in items:
            self._count_changes(item)

    def _count_changes(self, item: LoadedItem) -> None:
        """Count what a transaction has changed of an item."""
        number, before = item.campaign.id, item.loaded
        self.count(number, "held", int(item.held) - int(before.held))
        if item.status != before.status:
            self.count(number, ITEM_STATUSES[before.status], -1)
            self.count(number, ITEM_STATUSES[item.status])
        for name, by in item.moves.items():
            self.count(number, name, by)

    def _write_leases(self) -> None:
        leases = (lease for item in self.items.values() for lease in item.leases.values())
        send_many(self.connection, sql.SAVE_LEASE, (vars(x) for x in leases if x.changed))

    def write_questions(self, items: Iterable[LoadedItem]) -> None:
        """Write the open questions of items."""
        added, saved, dropped = [], [], []
        for item in items:
            for question, row, needed in item.question_changes():
                if row is None:
                    values = {"campaign_id": item.campaign.id, "item_id": item.id}
                    values |= {"question": question, "needed": needed}
                    added.append({**values, "known_only": int(item.held)})
                elif needed:
                    saved.append({"id": row, "needed": needed})
                else:
                    dropped.append({"id": row})
        send_many(self.connection, sql.DROP_QUESTION, dropped)
        send_many(self.connection, sql.SAVE_QUESTION, saved)
        send_many(self.connection, sql.ADD_QUESTION, added)

    def _write_workers(self) -> None:
        """Write what the workers did."""
        deltas = sorted(self.deltas.items())
        ids = sorted({*self.deltas, *self.lapses})
        if len(ids) > 1 and not is_sqlite(self.connection):  # by id, to avoid deadlocks
            run(self.connection, sql.LOCK_WORKERS, ids=ids)
        lapses = sorted(self.lapses.items())
        send_many(
            self.connection, sql.ADD_LAPSES, ({"id": number, "lapses": n} for number, n in lapses)
        )
        send_many(
            self.connection,
            sql.ADD_TO_WORKER,
            ({"id": number, "now": self.now, **vars(delta)} for number, delta in deltas),
        )


def policy_of_revision(connection: Connection, campaign_id: int, revision: int) -> AnyPolicy:
    """Read the policy of an earlier revision."""
    values = {"campaign": campaign_id, "revision": revision}
    return read_policy(*fetch(connection, sql.POLICY_OF_REVISION, **values)[0])


def change_items(
    connection: Connection,
    cache: ServingCache,
    now: float,
    ids: Iterable[int],
    event_of: Callable[[LoadedItem], Event | None],
    *,
    reason: str = "",
    activities: Mapping[int, int] | None = None,
) -> UnitOfWork:
    """Let something happen to some items, and write what follows, in one transaction.

    Parameters
    ----------
    event_of
        What happens to an item as it is now; nothing for one that is to stay as it is.
    activities
        Entries of the activity log that say who did it, by item.
    """
    chosen = sorted(set(ids))
    while True:
        unit = UnitOfWork(connection, cache, now)
        unit.load_items(chosen, labels=True)
        if not any(item.changed for item in unit.items.values()):
            break
        unit.write()  # items that were behind are revised: their labels are others now
    for item in unit.items.values():
        if (event := event_of(item)) is not None:
            happen(unit, item, event, reason, (activities or {}).get(item.id, 0))
            unit.happened.append(item)
    unit.write()
    return unit


def write_labels(
    connection: Connection,
    rows: Sequence[sql.LabelLine],
    withdrawn: Sequence[sql.Withdrawal] = (),
) -> None:
    """Write labels, and which ones were taken back."""
    if rows or withdrawn:
        hold_readers(connection)
    send_many(connection, sql.ADD_WITHDRAWAL, (row._asdict() for row in withdrawn))
    send_many(connection, sql.ADD_LABEL, (row._asdict() for row in rows))
