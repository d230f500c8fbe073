"""Replay the checks of audits and compare them with what is stored."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.campaign.reasons import Reason
from crowdtree.core.errors import CrowdtreeError
from crowdtree.io.audits import check_claims
from crowdtree.server.store.audits.stored import (
    AuditRow,
    CheckRow,
    audited_labels,
    make_audit,
    read_audits,
    read_checks,
)
from crowdtree.server.store.db.states import ItemStatus
from crowdtree.server.store.db.tables import item_events, items, labels
from crowdtree.server.store.queries.corrections import BY_HAND


def check_audits(connection: Connection, number: int, classes: list[str]) -> Iterator[str]:
    """Recompute every draw and claim of the audits of a campaign; find labels that differ.

    Labels that are older than the current audit must be those that it covers; newer ones only make
    it out of date.
    """
    found = read_audits(connection, number)
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
