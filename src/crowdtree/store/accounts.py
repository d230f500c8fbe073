"""Accounts of a campaign: counts, money and workers' records, summed up from the log again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.campaign import ItemState
from crowdtree.problem import DASH, Problem
from crowdtree.store.database import Sql, fetch
from crowdtree.store.tables import ITEM, LEASE, budgets, judgements, workers
from crowdtree.store.work import TAKEN_BACK, Loaded

if TYPE_CHECKING:
    from crowdtree.store.verify import Stored

__all__ = ["Accounts", "check_accounts", "check_references"]

RECORD = ("answers", "skips", "overdue", "earned")
LEARNT = ("gold_right", "gold_asked", "agreed", "judged")
TALLIED = ("fate:", "asked:", "label:")
COUNTED = ("spent", "estimated", "taken", "error_nanos", "undecided", *ITEM.names)

# The database checks one reference a row; those that it implies are copies, and are checked here.
REFERENCES = {
    "answers that do not fit their lease": Sql(
        """SELECT answers.id FROM answers LEFT JOIN leases ON leases.id = answers.lease_id
        WHERE (answers.campaign_id = :campaign
            OR answers.item_id IN (SELECT id FROM items WHERE campaign_id = :campaign)
            OR answers.worker_id IN (SELECT id FROM workers WHERE campaign_id = :campaign)
            OR leases.campaign_id = :campaign)
        AND (leases.id IS NULL OR leases.campaign_id <> answers.campaign_id
            OR leases.item_id <> answers.item_id OR leases.worker_id <> answers.worker_id
            OR leases.question <> answers.question) ORDER BY answers.id LIMIT 10"""
    ),
    "leases that do not fit their item and worker": Sql(
        """SELECT leases.id FROM leases LEFT JOIN items ON items.id = leases.item_id
        LEFT JOIN workers ON workers.id = leases.worker_id
        WHERE (leases.campaign_id = :campaign OR items.campaign_id = :campaign
            OR workers.campaign_id = :campaign)
        AND (items.id IS NULL OR workers.id IS NULL OR items.campaign_id <> leases.campaign_id
            OR workers.campaign_id <> leases.campaign_id) ORDER BY leases.id LIMIT 10"""
    ),
    "open questions that do not fit their item": Sql(
        """SELECT wanted.id FROM wanted LEFT JOIN items ON items.id = wanted.item_id
        WHERE (wanted.campaign_id = :campaign OR items.campaign_id = :campaign)
        AND (items.id IS NULL OR items.campaign_id <> wanted.campaign_id) LIMIT 10"""
    ),
    "labels that do not fit their item": Sql(
        """SELECT labels.id FROM labels LEFT JOIN items ON items.id = labels.item_id
        WHERE (labels.campaign_id = :campaign OR items.campaign_id = :campaign)
        AND (items.id IS NULL OR items.campaign_id <> labels.campaign_id) LIMIT 10"""
    ),
    "waiting items that do not fit": Sql(
        """SELECT waiting.item_id FROM waiting LEFT JOIN items ON items.id = waiting.item_id
        WHERE (waiting.campaign_id = :campaign OR items.campaign_id = :campaign)
        AND (items.id IS NULL OR items.campaign_id <> waiting.campaign_id) LIMIT 10"""
    ),
    "judgements on nobody": Sql(
        """SELECT judgements.id FROM judgements LEFT JOIN workers
        ON workers.id = judgements.worker_id
        WHERE workers.id IS NULL AND :campaign = :campaign LIMIT 10"""
    ),
}


def check_references(connection: Connection, number: int) -> Iterator[str]:
    """Find rows that refer to something else than the rows around them do."""
    for what, statement in REFERENCES.items():
        found = [row[0] for row in fetch(connection, statement, campaign=number)]
        if found:
            yield f"{what}: {', '.join(map(str, found))}"


class Accounts:
    """Sums over the log of a campaign, gathered item by item."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.items = self.lines = self.labelled = self.live = 0
        self.finished = False
        self.tallies: Counter[str] = Counter()
        self.workers: dict[int, Counter[str]] = defaultdict(Counter)

    def add(self, stored: Stored, item: ItemState) -> None:
        """Add an item, as stored and as replayed."""
        self.items += 1
        self.lines += len(stored.log)
        self.tallies[ITEM.names[stored.status]] += 1
        self.live += sum(row[4] in (LEASE.active, LEASE.withdrawn) for row in stored.leases)
        self._label(stored)
        self._log(stored)
        if stored.status == ITEM.labelled:
            for event, fate in zip(item.events, item.fates, strict=True):
                if fate == "counted" and event.value is not None and stored.label is not None:
                    self._judge(int(event.worker), event.question, event.value, stored.label[1])

    def _label(self, stored: Stored) -> None:
        if stored.label is None:
            return
        self.labelled += 1
        _, cls, error, reason, answers, _ = stored.label
        self.finished |= reason == "finished"
        if error is not None:
            self.tallies["estimated"] += 1
            self.tallies["taken"] += answers
            self.tallies["error_nanos"] += round(error * 1e9)
        if reason == "undecided":
            self.tallies["undecided"] += 1
        if stored.status == ITEM.labelled:
            self.tallies[f"label:{cls}"] += 1

    def _log(self, stored: Stored) -> None:
        """Go through an item's lines; an undo takes back the line before it of its lease."""
        last: dict[int, Any] = {}
        for row in stored.log:
            _, question, worker, _, kind, _, lease, _, fate, _, price = row
            self.tallies["spent"] += price
            self.workers[worker]["earned"] += price
            sign, line = 1, row
            if kind == "undo":
                sign, line = -1, last.get(lease, row)
            else:
                self.tallies[f"asked:{question}"] += 1
            last[lease] = row
            self.tallies[f"fate:{line[8]}"] += sign
            self.workers[worker]["answers" if line[4] == "answer" else "skips"] += sign
            self.workers[worker]["overdue"] += sign * line[9]
            if fate == "gold" and kind == "answer" and not _undone(stored.log, row):
                self._judge(worker, question, row[3], stored.gold, gold=True)

    def _judge(self, worker: int, question: int, value: int, cls: Any, gold: bool = False) -> None:
        if cls is None or not 0 <= cls < self.problem.n_classes:
            return
        truth = int(self.problem.outcome[question, cls])
        if truth != DASH:
            self.workers[worker]["gold_asked" if gold else "judged"] += 1
            self.workers[worker]["gold_right" if gold else "agreed"] += int(value == truth)


def _undone(log: list[Any], row: Any) -> bool:
    later = log[log.index(row) + 1 :]
    return any(line[6] == row[6] and line[4] == "undo" for line in later)


def check_accounts(connection: Connection, campaign: Loaded, accounts: Accounts) -> Iterator[str]:
    """Compare the stored counts, money and workers' records with the sums over the log."""
    from crowdtree.store.campaigns import tally

    stored = tally(connection, campaign.id)
    for name in sorted({*stored, *accounts.tallies}):
        if name in COUNTED or name.startswith(TALLIED):
            there, want = stored.get(name, 0), accounts.tallies[name]
            if there != want:
                yield f"the tally {name!r} is {there}, the log gives {want}"
    yield from _budget(connection, campaign, accounts)
    yield from _workers(connection, campaign, accounts)


def _budget(connection: Connection, campaign: Loaded, accounts: Accounts) -> Iterator[str]:
    found = connection.execute(
        sa.select(budgets).where(budgets.c.campaign_id == campaign.id)
    ).one_or_none()
    if (found is None) != (campaign.settings.budget is None):
        yield "the budget in the settings is not the one that is kept"
    if found is None:
        return
    cap = campaign.settings.budget_micros
    if cap is not None and accounts.tallies["spent"] > cap:
        yield f"{accounts.tallies['spent']} was spent of a budget of {cap} (millionths)"
    reserved = accounts.live * campaign.settings.price_micros
    if (found.spent, found.reserved) != (accounts.tallies["spent"], reserved):
        yield (
            f"the budget says {found.spent} spent and {found.reserved} reserved (millionths), "
            f"the log gives {accounts.tallies['spent']} and {reserved}"
        )


def _workers(connection: Connection, campaign: Loaded, accounts: Accounts) -> Iterator[str]:
    pending, relearn = _pending(connection, campaign)
    columns = [workers.c.id, *(workers.c[name] for name in (*RECORD, *LEARNT))]
    rows = connection.execute(sa.select(*columns).where(workers.c.campaign_id == campaign.id)).all()
    for row in rows:
        want = accounts.workers.pop(row.id, Counter())
        for name in RECORD if row.id in relearn else (*RECORD, *LEARNT):
            there = row._mapping[name] + pending.get(row.id, Counter())[name]
            if there != want[name]:
                yield f"worker {row.id}: {name} is {there}, the log gives {want[name]}"
    for number in accounts.workers:
        yield f"worker {number} has answers, but is not in the campaign"


def _pending(connection: Connection, campaign: Loaded) -> tuple[dict[int, Counter[str]], set[int]]:
    """Count judgements that are not in the workers' rows yet, and who is to be learnt anew."""
    mine = sa.select(workers.c.id).where(workers.c.campaign_id == campaign.id)
    found: dict[int, Counter[str]] = defaultdict(Counter)
    relearn = set()
    for row in connection.execute(sa.select(judgements).where(judgements.c.worker_id.in_(mine))):
        if row.gold == TAKEN_BACK:
            relearn.add(row.worker_id)
            continue
        truth = int(campaign.problem.outcome[row.question, row.cls])
        if truth != DASH:
            found[row.worker_id]["gold_asked" if row.gold else "judged"] += 1
            found[row.worker_id]["gold_right" if row.gold else "agreed"] += int(row.value == truth)
    return found, relearn
