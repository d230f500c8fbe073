"""Reconcile the stored counts, money and workers' records with sums over the log."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import cast

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.campaign.events import Answered, Outcome, Reason
from crowdtree.campaign.view import ItemView
from crowdtree.server.store.db.campaign_row import flows, tally
from crowdtree.server.store.db.sql import Sql, exists, fetch_ids
from crowdtree.server.store.db.statements import RELEARN, REVISING
from crowdtree.server.store.db.tables import budgets, judgements, workers
from crowdtree.server.store.reliability import outcome_counts
from crowdtree.server.store.replay.items import StoredItem
from crowdtree.server.store.serving.campaign import ServedCampaign, moves_of
from crowdtree.server.store.serving.workers import is_accepted
from crowdtree.server.store.types import ITEM_STATUSES, LIVE_LEASES, ItemStatus

RECORD = ("answers", "accepted", "skips", "overdue", "earned")
LEARNED = ("gold_right", "gold_asked", "agreed", "judged")
TALLY_GROUPS = ("fate:", "asked:", "label:", "label_nanos:")
TALLIES = ("spent", "estimated", "taken", "error_nanos", "undecided", "held", *ITEM_STATUSES)

# The database enforces one reference per row; what rows repeat of others is checked here.
REPEATED: Sequence[tuple[str, str, str, tuple[str, ...]]] = (
    ("answers", "lease", "leases", ("campaign_id", "item_id", "worker_id", "question")),
    ("leases", "item", "items", ("campaign_id",)),
    ("leases", "worker", "workers", ("campaign_id",)),
    ("open_questions", "item", "items", ("campaign_id",)),
    ("labels", "item", "items", ("campaign_id",)),
    ("waiting", "item", "items", ("campaign_id",)),
    ("withdrawals", "item", "items", ("campaign_id",)),
    ("exclusions", "worker", "workers", ("campaign_id",)),
    ("item_events", "item", "items", ("campaign_id",)),
)
"""Tables, what their rows refer to, in which table, and the columns that must agree."""
LOST_WORKERS = Sql(
    """SELECT judgements.id FROM judgements LEFT JOIN workers ON workers.id = judgements.worker_id
    WHERE workers.id IS NULL LIMIT 10"""
)


def _disagreeing(table: str, name: str, parent: str, columns: Sequence[str]) -> Sql:
    other = " OR ".join(f"parent.{column} <> child.{column}" for column in columns)
    return Sql(
        f"""SELECT child.{name}_id FROM {table} AS child
        LEFT JOIN {parent} AS parent ON parent.id = child.{name}_id
        WHERE (child.campaign_id = :campaign OR parent.campaign_id = :campaign)
        AND (parent.id IS NULL OR {other}) ORDER BY child.{name}_id LIMIT 10"""
    )


REFERENCES = {
    f"{repeated[0].replace('_', ' ')} that do not match the {repeated[1]}": _disagreeing(*repeated)
    for repeated in REPEATED
}


def check_references(connection: Connection, campaign_id: int) -> Iterator[str]:
    """Find rows whose repeated references disagree."""
    for what, statement in REFERENCES.items():
        if found := fetch_ids(connection, statement, campaign=campaign_id):
            yield f"{what} {', '.join(map(str, found))}"
    if found := fetch_ids(connection, LOST_WORKERS):
        yield f"judgements about unknown workers: {', '.join(map(str, found))}"


class Sums:
    """Sums over the log of a campaign, added up item by item."""

    def __init__(self, campaign: ServedCampaign) -> None:
        self.campaign, self.problem = campaign, campaign.problem
        self.items = self.lines = self.labelled = self.live_leases = 0
        self.finished = False
        self.tallies: Counter[str] = Counter()
        self.workers: dict[int, Counter[str]] = defaultdict(Counter)

    def add(self, stored: StoredItem, view: ItemView) -> None:
        """Add an item, as stored and as replayed."""
        self.items += 1
        self.lines += len(stored.log)
        self.tallies[stored.status.label] += 1
        self.tallies["held"] += stored.status == ItemStatus.OPEN and view.held_back
        self.live_leases += sum(lease.state in LIVE_LEASES for lease in stored.leases)
        self._add_label(stored)
        self._add_log(stored)
        begun = stored.row.state is not None or stored.status == ItemStatus.OPEN
        if begun and stored.gold is None and view.judged_by == self.campaign.revision:
            self.tallies.update(moves_of(self.campaign, view))
        if stored.status == ItemStatus.LABELLED and stored.label is not None:
            for given, outcome in view.with_outcomes():
                if outcome is Outcome.COUNTED and isinstance(given, Answered):
                    worker = cast(int, given.worker)
                    self._judge(worker, given.question, given.value, stored.label.label)

    def _add_label(self, stored: StoredItem) -> None:
        label = stored.label
        if label is None:
            return
        self.labelled += 1
        self.finished |= label.reason == Reason.FINISHED
        if label.posterior_error is not None:
            self.tallies["estimated"] += 1
            self.tallies["taken"] += label.answers
            self.tallies["error_nanos"] += round(label.posterior_error * 1e9)
        if Reason(label.reason).is_handed_over:
            self.tallies["undecided"] += 1
        if stored.status == ItemStatus.LABELLED:
            self.tallies[f"label:{label.label}"] += 1
            if label.posterior_error is not None:
                nanos = round(label.posterior_error * 1e9)
                self.tallies[f"label_nanos:{label.label}"] += nanos

    def _add_log(self, stored: StoredItem) -> None:
        """Add the lines of an item."""
        for line in stored.log:
            worker = self.workers[line.worker_id]
            self.tallies["spent"] += line.price
            worker["earned"] += line.price
            self.tallies[f"asked:{line.question}"] += 1
            self.tallies[f"fate:{line.fate}"] += 1
            worker["answers" if line.kind == "answer" else "skips"] += 1
            worker["accepted"] += is_accepted(line.kind, line.fate, line.overdue)
            worker["overdue"] += line.overdue
            if line.fate == "gold" and line.value is not None:
                self._judge(line.worker_id, line.question, line.value, stored.gold, gold=True)

    def _judge(
        self, worker: int, question: int, value: int, cls: int | None, gold: bool = False
    ) -> None:
        if cls is not None and 0 <= cls < self.problem.n_classes:
            self.workers[worker].update(outcome_counts(self.problem, question, value, cls, gold))


def check_sums(connection: Connection, campaign: ServedCampaign, sums: Sums) -> Iterator[str]:
    """Compare the stored tallies, budget and workers' records with the sums over the log."""
    stored = tally(connection, campaign.id)
    for name in sorted({*stored, *sums.tallies}):
        if name in TALLIES or name.startswith(TALLY_GROUPS):
            there, expected = stored.get(name, 0), sums.tallies[name]
            if there != expected:
                yield f"the tally {name!r} is {there}, the log gives {expected}"
    yield from _check_flows(stored, campaign, sums)
    yield from _check_budget(connection, campaign, sums)
    yield from _check_workers(connection, campaign, sums)


def _check_flows(stored: dict[str, int], campaign: ServedCampaign, sums: Sums) -> Iterator[str]:
    """Compare how many items came to each node of the present tree, and left it."""
    if campaign.policy.plan is None:
        return
    there, expected = (flows(x, campaign.revision) for x in (stored, sums.tallies))
    none = {"in": 0, "out": 0}
    for node in sorted({*there, *expected}, key=int):
        found, given = there.get(node, none), expected.get(node, none)
        if found != given:
            yield (
                f"node {node}: {found['in']} items came and {found['out']} left, the log gives "
                f"{given['in']} and {given['out']}"
            )


def _check_budget(connection: Connection, campaign: ServedCampaign, sums: Sums) -> Iterator[str]:
    found = connection.execute(
        sa.select(budgets).where(budgets.c.campaign_id == campaign.id)
    ).one_or_none()
    if (found is None) != (campaign.settings.money.budget is None):
        yield "the budget in the settings is not the stored one"
    if found is None:
        return
    spent, cap = sums.tallies["spent"], campaign.settings.money.budget_micros
    if cap is not None and spent > cap:
        yield f"{spent} was spent of a budget of {cap} (millionths)"
    reserved = sums.live_leases * campaign.settings.money.price_micros
    if (found.spent, found.reserved) != (spent, reserved):
        yield (
            f"the budget says {found.spent} spent and {found.reserved} reserved (millionths), "
            f"the log gives {spent} and {reserved}"
        )


def _check_workers(connection: Connection, campaign: ServedCampaign, sums: Sums) -> Iterator[str]:
    pending, relearned = _pending(connection, campaign)
    columns = [workers.c.id, *(workers.c[name] for name in (*RECORD, *LEARNED))]
    rows = connection.execute(sa.select(*columns).where(workers.c.campaign_id == campaign.id)).all()
    revising = exists(connection, REVISING, campaign=campaign.id)  # they are recomputed at its end
    for row in rows:
        expected = sums.workers.pop(row.id, Counter())
        for name in RECORD if revising or row.id in relearned else (*RECORD, *LEARNED):
            there = row._mapping[name] + pending.get(row.id, Counter())[name]
            if there != expected[name]:
                yield f"worker {row.id}: {name} is {there}, the log gives {expected[name]}"
    for number in sums.workers:
        yield f"worker {number} has answers, but is not in the campaign"


def _pending(
    connection: Connection, campaign: ServedCampaign
) -> tuple[dict[int, Counter[str]], set[int]]:
    """Count judgements that are not applied yet, and find records to be recomputed."""
    mine = sa.select(workers.c.id).where(workers.c.campaign_id == campaign.id)
    found: dict[int, Counter[str]] = defaultdict(Counter)
    relearned = set()
    for row in connection.execute(sa.select(judgements).where(judgements.c.worker_id.in_(mine))):
        if row.gold == RELEARN:
            relearned.add(row.worker_id)
            continue
        gold = bool(row.gold)
        counts = outcome_counts(campaign.problem, row.question, row.value, row.cls, gold)
        found[row.worker_id].update(counts)
    return found, relearned
