"""Replay the log of a campaign and compare it with everything that the database stores."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypedDict

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DatabaseError

from crowdtree.campaign.events import Reason
from crowdtree.core.errors import CrowdtreeError
from crowdtree.io.audits import check_claims
from crowdtree.policies.monitor import Monitor
from crowdtree.server.store.audits.checking import checked_truths
from crowdtree.server.store.audits.stored import (
    AuditRow,
    CheckRow,
    audited_labels,
    make_audit,
    read_audits,
    read_checks,
)
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.campaign_row import get_campaign, tally
from crowdtree.server.store.db.sql import Sql, exists, fetch_one, is_sqlite
from crowdtree.server.store.db.tables import item_events, items, labels, monitors, revisions
from crowdtree.server.store.queries.items import BY_HAND
from crowdtree.server.store.queries.monitor_log import (
    LoggedPast,
    Tested,
    lines_after,
    take,
    tested_policy,
)
from crowdtree.server.store.replay.histories import Course, Histories, Key, Page
from crowdtree.server.store.replay.items import Folded, item_pages, same
from crowdtree.server.store.replay.sums import Sums, check_references, check_sums
from crowdtree.server.store.serving.campaign import (
    Revisions,
    ServedCampaign,
    load_campaign,
)
from crowdtree.server.store.serving.unit_of_work import policy_of_revision
from crowdtree.server.store.types import ITEM_STATUSES, ItemStatus


def check_audits(connection: Connection, campaign_id: int, classes: list[str]) -> Iterator[str]:
    """Recompute every draw and claim of the audits of a campaign; find labels that differ.

    Labels that are older than the current audit must be those that it covers; newer ones only make
    it out of date.
    """
    found = read_audits(connection, campaign_id)
    for row in found:
        drawn = read_checks(connection, row.id, classes)
        try:
            audit = make_audit(connection, row)
            _check_results(drawn, classes)
            audit.follow(drawn)
            check_claims(row.claims, audit)
        except (CrowdtreeError, ValueError, TypeError, KeyError, IndexError) as error:
            yield f"audit {row.id}: {error}"
    if found:
        yield from _audited_labels(connection, found[-1], classes)


def _check_results(drawn: list[CheckRow], classes: list[str]) -> None:
    for number, entry in enumerate(drawn):
        if entry.draw != number:
            raise CrowdtreeError(f"draws[{number}]: is missing")
        if (entry.right is None) != (entry.at is None):
            raise CrowdtreeError(f"draws[{number}]: has a result or a time, not both")
        if entry.right is not None and entry.right != (entry.truth_class == entry.label):
            raise CrowdtreeError(
                f"draws[{number}]: is {'right' if entry.right else 'wrong'}, but was labelled "
                f"{classes[entry.label]} and found to be {entry.truth}"
            )


def _audited_labels(connection: Connection, audit: AuditRow, classes: list[str]) -> Iterator[str]:
    """Compare the labels that were audited with those of the campaign.

    A revision may have corrected the stated error of a label since, which takes nothing from the
    audit; the label itself would be a new one. Labels by hand were audited as such.
    """
    by_hand: dict[str, set[str]] = {}
    at = item_events.c.at <= audit.at
    mine = (item_events.c.campaign_id == audit.campaign_id, at, BY_HAND)
    given = (items.c.task, item_events.c.value)
    made = sa.select(*given).join(items, items.c.id == item_events.c.item_id).where(*mine)
    for task, label in connection.execute(made):
        by_hand.setdefault(task, set()).update([] if label is None else [classes[label]])
    rows = connection.execute(
        sa.select(items.c.task, labels.c.label)
        .join(labels, labels.c.item_id == items.c.id)
        .where(
            items.c.campaign_id == audit.campaign_id,
            items.c.status == ItemStatus.LABELLED,
            labels.c.at <= audit.at,
            labels.c.id <= audit.last_label,
            labels.c.reason != Reason.CHECKED,
        )
    )
    now = {task: classes[label] for task, label in rows if label is not None}
    for task, label in audited_labels(connection, audit.id).items():
        found = now.get(task, label)
        if found != label and label not in by_hand.get(task, ()):
            yield f"audit {audit.id}: item {task!r} was audited as {label}, now {found}"


NUMBERS = ("totals", "log_weight", "mass", "shares")
PARTS = ("answers", "items", "keys", "alarms")
MONITOR_TOLERANCE = 1e-6


def check_monitor(connection: Connection, campaign_id: int) -> Iterator[str]:
    """Replay the log up to where the monitor has read it, and compare."""
    row = connection.execute(
        sa.select(monitors).where(monitors.c.campaign_id == campaign_id)
    ).one_or_none()
    if row is None or not row.state:
        return
    stored = json.loads(row.state)
    after = connection.execute(
        sa.select(revisions.c.after_answer_id).where(
            revisions.c.campaign_id == campaign_id, revisions.c.number == row.tested
        )
    ).scalar_one_or_none()
    past = LoggedPast(connection, campaign_id, Tested(row.tested, after or 0))
    monitor = Monitor(tested_policy(connection, campaign_id, row.tested), past=past)
    position = past.after
    while lines := lines_after(connection, campaign_id, position, stored["position"]):
        for line in lines:
            take(monitor, past, line)
        position = lines[-1].id
    replayed = json.loads(json.dumps(monitor.to_dict()))
    found = stored["monitor"]
    parts = ((found[name], replayed[name]) for name in (*NUMBERS, *PARTS))
    if not all(same(*pair, MONITOR_TOLERANCE, MONITOR_TOLERANCE) for pair in parts):
        yield "what its answers say about its table is not the replay of its log"
    shown = [{k: alarm[k] for k in alarm if k != "text"} for alarm in json.loads(row.alarms)]
    if row.answers != found["answers"] or shown != found["alarms"]:
        yield "the alarms that are shown are not those of its answers"


MAX_REPORTED = 100
CACHE_KIB = 64 * 1024
"""Page cache of SQLite: the check of a file goes back and forth between tables and indexes."""
Report = Callable[[int, int], None]
FINISH_NOTED = Sql(
    "SELECT 1 FROM activity WHERE campaign_id = :campaign AND action = 'finish' LIMIT 1"
)


class Verification(TypedDict):
    """The result of a replay; `differences` is empty when everything agrees."""

    campaign: int
    items: int
    answers: int
    labelled: int
    agrees: bool
    differences: list[str]


def verify(
    connection: Connection, campaign_id: int, report: Report | None = None, *, together: bool = True
) -> Verification:
    """Fold the log of every item of a campaign and compare it with the database.

    On SQLite the file itself is checked first; if it is damaged, nothing is replayed. `report` is
    called with the items that are done and all items. Without `together`, every
    item is folded, also one with the same history as another, with the same result.

    Checked per item: each question handed out was one that the policy asked at some point of the
    log; the fate of every answer, and what its worker was told; the policy's state; when it
    stopped; the label with its error, reason and path; exactly the questions are open that are
    asked for. Checked per campaign:
    rows refer to each other consistently; counts, money and workers' records are the sums over the
    log; audits are the replay of their checks, and cover the labels that there are; what the
    answers say about the table, and the alarms, follow from the log.
    """
    damage = check_file(connection)
    if damage:
        return _result(campaign_id, damage)
    campaign = load_campaign(connection, campaign_id)
    differences = list(check_references(connection, campaign_id))
    lost = _lost_revisions(connection, campaign)
    if lost:
        return _result(campaign_id, [*differences, lost])
    differences += _last_revision(connection, campaign)
    differences += _exclusions(campaign)
    past = Revisions(campaign, partial(policy_of_revision, connection, campaign_id))
    done = not exists(connection, sql.REVISING, campaign=campaign_id)
    sums, truths = Sums(campaign), checked_truths(connection, campaign_id)
    check = _Items(connection, Histories(campaign, truths), past, done, sums)
    total = sum(tally(connection, campaign_id).get(status, 0) for status in ITEM_STATUSES)
    for rows in item_pages(connection, campaign_id):
        with _without_collector():
            differences += check.page(rows, together and not differences)
        if report is not None:
            report(sums.items, total)
    sums.close()
    if sums.finished and not exists(connection, FINISH_NOTED, campaign=campaign_id):
        differences.append("items were labelled by a finish that is not in the activity log")
    differences += check_sums(connection, campaign, sums)
    differences += check_audits(connection, campaign_id, list(campaign.problem.classes))
    differences += check_monitor(connection, campaign_id)
    return _result(campaign_id, differences, sums)


def _result(number: int, differences: list[str], sums: Sums | None = None) -> Verification:
    return {
        "campaign": number,
        "items": 0 if sums is None else sums.items,
        "answers": 0 if sums is None else sums.lines,
        "labelled": 0 if sums is None else sums.labelled,
        "agrees": not differences,
        "differences": differences[:MAX_REPORTED],
    }


def check_file(connection: Connection) -> list[str]:
    """Check the pages and the indexes of an SQLite file; PostgreSQL has tools of its own."""
    if not is_sqlite(connection):
        return []
    try:
        connection.exec_driver_sql(f"PRAGMA cache_size={-CACHE_KIB}")
        found = connection.exec_driver_sql(f"PRAGMA integrity_check({MAX_REPORTED})").scalars()
        return [f"database file: {text}" for text in found if text != "ok"]
    except DatabaseError as error:
        return [f"database file: {error.orig}"]


def _lost_revisions(connection: Connection, campaign: ServedCampaign) -> str:
    """Say whether a revision is missing, without which nothing can be folded."""
    mine = sa.select(revisions.c.number).where(revisions.c.campaign_id == campaign.id)
    numbers = list(connection.execute(mine.order_by(revisions.c.number)).scalars())
    if numbers == (list(range(campaign.revision + 1)) if campaign.revision else []):
        return ""
    return f"it is at revision {campaign.revision}, which is not the last stored"


def _last_revision(connection: Connection, campaign: ServedCampaign) -> Iterator[str]:
    """Check that the campaign's policy is that of its last revision."""
    if not campaign.revision:
        return
    values = {"campaign": campaign.id, "revision": campaign.revision}
    row = fetch_one(connection, sql.POLICY_OF_REVISION, **values)
    last = row and (json.loads(row.problem), json.loads(row.policy))
    present = get_campaign(connection, campaign.id)
    if last != (present.problem, present.policy):
        yield "its policy is not that of its last revision"


def _exclusions(campaign: ServedCampaign) -> Iterator[str]:
    """Check that exclusions were made and lifted by revisions, in this order."""
    for found in campaign.exclusions:
        lifted = found.lifted_revision
        end = campaign.revision + 1 if lifted is None else lifted
        if not 1 <= found.revision < end <= campaign.revision + (lifted is None):
            yield f"answers of worker {found.worker_id} are excluded by no revision"


@contextmanager
def _without_collector() -> Iterator[None]:
    """Read many rows, of which none refers to itself; looking for such ones takes half the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@dataclass
class _Items:
    """Compares the items of a campaign with the fold of their logs."""

    connection: Connection
    histories: Histories
    past: Revisions
    done: bool
    sums: Sums

    def page(self, rows: Sequence[sql.ItemRow], together: bool) -> list[str]:
        """Compare some items, and add them to the sums; returns how they differ."""
        histories, known = self.histories, self.histories.known
        page = Page.read(self.connection, histories.campaign.id, rows)
        keys: dict[int, Key | int] = {
            row.id: histories.key(page, row) if together else row.id for row in rows
        }
        new = [*{keys[row.id]: row for row in rows if keys[row.id] not in known}.values()]
        found: dict[int, tuple[Course, list[str]]] = {}
        for row, course, texts in self._fold(page, new):
            found[row.id] = course, texts
            if not texts and together:
                histories.add(keys[row.id], course)
        rest = [row for row in rows if row.id not in found]
        alike = [row for row in rest if keys[row.id] in known]
        found |= {row.id: (known[keys[row.id]], []) for row in alike}
        plain = [row for row in alike if getattr(keys[row.id], "unskilled", False)]
        good = histories.same_errors(page, plain, [found[row.id][0] for row in plain])
        doubtful = [row for row, same in zip(plain, good, strict=True) if not same]
        doubtful += [row for row in rest if row.id not in found]
        found |= {row.id: (course, texts) for row, course, texts in self._fold(page, doubtful)}
        for row in rows:
            label = next(iter(page.labels.get(row.id, ())), None)
            self.sums.add(row, page.lines.get(row.id, ()), label, found[row.id][0])
        return [f"item {row.task!r}: {text}" for row in rows for text in found[row.id][1]]

    def _fold(
        self, page: Page, rows: Sequence[sql.ItemRow]
    ) -> Iterator[tuple[sql.ItemRow, Course, list[str]]]:
        """Fold some items; with what they come to, and how the database differs."""
        histories = self.histories
        for stored in page.stored(self.connection, rows, histories.truths):
            folded = Folded(histories.campaign, self.past, stored)
            lines = page.lines.get(stored.row.id, ())
            course = histories.course(stored, folded.view, lines)
            yield stored.row, course, list(folded.differences(self.done))
