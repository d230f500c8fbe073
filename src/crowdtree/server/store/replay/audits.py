"""Replay the checks of audits and the lines that monitors have read, and compare."""

from __future__ import annotations

import json
from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.campaign.events import Reason
from crowdtree.core.errors import CrowdtreeError
from crowdtree.io.audits import check_claims
from crowdtree.policies.monitor import Monitor
from crowdtree.server.store.audits.stored import (
    AuditRow,
    CheckRow,
    audited_labels,
    make_audit,
    read_audits,
    read_checks,
)
from crowdtree.server.store.db.tables import item_events, items, labels, monitors, revisions
from crowdtree.server.store.queries.items import BY_HAND
from crowdtree.server.store.queries.monitor_log import (
    LoggedPast,
    Tested,
    lines_after,
    take,
    tested_policy,
)
from crowdtree.server.store.replay.items import same
from crowdtree.server.store.types import ItemStatus


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
        yield from _labels(connection, found[-1], classes)


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


def _labels(connection: Connection, audit: AuditRow, classes: list[str]) -> Iterator[str]:
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


NUMBERS = ("totals", "log_weight", "mass", "shares", "scores")
PARTS = ("answers", "items", "keys", "alarms")
TOLERANCE = 1e-6


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
    if not all(same(*pair, TOLERANCE, TOLERANCE) for pair in parts):
        yield "what its answers say about its table is not the replay of its log"
    shown = [{k: alarm[k] for k in alarm if k != "text"} for alarm in json.loads(row.alarms)]
    if row.answers != found["answers"] or shown != found["alarms"]:
        yield "the alarms that are shown are not those of its answers"
