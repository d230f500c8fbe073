"""Reconcile the stored counts, money and workers' records with sums over the log."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.campaign.events import Outcome, Reason
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.campaign_row import flows, tally
from crowdtree.server.store.db.sql import Sql, exists, fetch_ids
from crowdtree.server.store.db.statements import RELEARN, REVISING, ItemRow
from crowdtree.server.store.db.tables import budgets, judgements, workers
from crowdtree.server.store.reliability import outcome_counts
from crowdtree.server.store.replay.histories import COUNTED, Course, Line
from crowdtree.server.store.serving.answering import is_accepted
from crowdtree.server.store.serving.campaign import ServedCampaign
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
        self.items = self.labelled = self.live_leases = 0
        self.finished = False
        self.tallies: Counter[str] = Counter()
        self.workers: dict[int, Counter[str]] = defaultdict(Counter)
        self.log: Counter[tuple[int | None, tuple[Any, ...]]] = Counter()
        """Lines of the log by what is counted of them, with the class of the item."""
        self.courses: Counter[Course] = Counter()

    def add(
        self, row: ItemRow, lines: Sequence[Line], label: sql.LabelOfItem | None, course: Course
    ) -> None:
        """Add an item as it is stored, and what its fold says."""
        status = ItemStatus(row.status)
        self.items += 1
        self.tallies[status.label] += 1
        self.courses[course] += 1
        cls = row.gold
        if label is not None:
            self._add_label(label, status)
            if status == ItemStatus.LABELLED:
                cls = label.label
        for line in lines:
            if line.line:
                self.log[cls, COUNTED(line)] += 1
            else:
                self.live_leases += line.state in LIVE_LEASES

    @property
    def lines(self) -> int:
        """Lines of the log."""
        return self.log.total()

    def _add_label(self, label: sql.LabelOfItem, status: ItemStatus) -> None:
        self.labelled += 1
        self.finished |= label.reason == Reason.FINISHED
        nanos = None if label.posterior_error is None else round(label.posterior_error * 1e9)
        if nanos is not None:
            self.tallies["estimated"] += 1
            self.tallies["taken"] += label.answers
            self.tallies["error_nanos"] += nanos
        self.tallies["undecided"] += Reason(label.reason).is_handed_over
        if status == ItemStatus.LABELLED:
            self.tallies[f"label:{label.label}"] += 1
            self.tallies[f"label_nanos:{label.label}"] += nanos or 0

    def close(self) -> None:
        """Count the lines of the log by worker and by tally, and the ways of the items."""
        for course, count in self.courses.items():
            for name, by in {**course.moves, "held": int(course.held)}.items():
                self.tallies[name] += count * by
        for (cls, columns), count in self.log.items():
            number, overdue, price, question, kind, value, fate, revised = columns
            worker, gold = self.workers[number], fate == Outcome.GOLD
            self.tallies["spent"] += count * price
            self.tallies[f"asked:{question}"] += count
            self.tallies[f"fate:{fate}"] += count
            worker["earned"] += count * price
            worker["answers" if kind == "answer" else "skips"] += count
            worker["accepted"] += count * is_accepted(kind, fate, overdue)
            worker["overdue"] += count * overdue
            judged = gold or (revised or fate) == Outcome.COUNTED
            judged &= value is not None
            if judged and cls is not None and 0 <= cls < self.problem.n_classes:
                for name, by in outcome_counts(self.problem, question, value, cls, gold).items():
                    worker[name] += count * by


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
