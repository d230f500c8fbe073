"""Delete a worker's personal data, a draft, or a whole campaign."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypedDict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.reasons import WorkerReason
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import Campaign, definition_of, get_campaign
from crowdtree.server.store.db.tables import (
    activity,
    answers,
    audits,
    campaigns,
    credentials,
    exclusions,
    item_events,
    items,
    metadata,
    revisions,
    webhooks,
    workers,
)
from crowdtree.server.store.owner.people import check_worker, set_worker_status
from crowdtree.server.store.types import AnyPolicy

IN_USE = ("running", "finishing")
PARENTS = {"worker_id": workers, "webhook_id": webhooks, "item_id": items, "audit_id": audits}
"""Columns by which a row belongs to a campaign, where it does not name the campaign."""
REASONS = (exclusions, revisions, item_events)
"""Tables with what owners wrote about workers."""
LEAST_ID = 6
"""Characters of an id that is deleted inside of texts too; a shorter one may be another word."""


class Deleted(TypedDict):
    """A campaign that was deleted, and what it had."""

    campaign: int
    name: str
    items: int
    answers: int
    workers: int


def erase_worker(connection: Connection, campaign_id: int, worker: int, now: float) -> None:
    """Delete what identifies a worker; the answers stay, of a worker who has only a number.

    The name, the platform's ids, the mark of the network, texts of reports and all links go, so
    that the worker cannot come back. Labels do not depend on any of that.
    """
    check_worker(connection, campaign_id, worker)
    mine = workers.c.id == worker
    known = connection.execute(sa.select(workers.c.name, workers.c.external_id).where(mine)).one()
    set_worker_status(connection, campaign_id, worker, "blocked", now)
    connection.execute(credentials.delete().where(credentials.c.worker_id == worker))
    nothing = {"name": "", "external_id": None, "network": "", "details": "{}"}
    connection.execute(workers.update().where(mine).values(**nothing, reason=WorkerReason.ERASED))
    names = {text: f"w{worker}" for text in known if text}
    own = known.external_id if len(known.external_id or "") >= LEAST_ID else ""
    said = names | _forget_reports(connection, worker)
    _forget(connection, campaign_id, said, {own: f"w{worker}"} if own else {})
    for table in REASONS if own else ():
        named = (table.c.campaign_id == campaign_id, table.c.reason.contains(own, autoescape=True))
        shorter = sa.func.replace(table.c.reason, own, f"w{worker}")
        connection.execute(table.update().where(*named).values(reason=shorter))
    note(connection, now, "erase worker", campaign_id, {"worker": worker})


def _forget_reports(connection: Connection, worker: int) -> dict[str, str]:
    """Delete what a worker wrote about items; the reason that was chosen stays.

    Returns the reasons by the texts that were deleted.
    """
    wrote = (answers.c.worker_id == worker, answers.c.report.contains(": "))
    rows = connection.execute(sa.select(answers.c.id, answers.c.report).where(*wrote)).all()
    reasons = {row.report: row.report.partition(": ")[0] for row in rows}
    for row in rows:
        mine = answers.update().where(answers.c.id == row.id)
        connection.execute(mine.values(report=reasons[row.report]))
    return reasons


def _forget(
    connection: Connection, campaign_id: int, texts: Mapping[str, str], parts: Mapping[str, str]
) -> None:
    """Replace values, and parts of them, in the activity log of a campaign."""
    rows = connection.execute(
        sa.select(activity.c.id, activity.c.detail).where(activity.c.campaign_id == campaign_id)
    ).all()
    for row in rows:
        detail = json.loads(row.detail)
        if (found := _replaced(detail, texts, parts)) != detail:
            changed = activity.update().where(activity.c.id == row.id)
            connection.execute(changed.values(detail=json.dumps(found)))


def _replaced(value: object, texts: Mapping[str, str], parts: Mapping[str, str]) -> object:
    """Replace strings in JSON, and parts of strings.

    >>> _replaced({"Ann": ["Ann", "Annette", "5f3c8a guessed"]}, {"Ann": "w7"}, {"5f3c8a": "w7"})
    {'w7': ['w7', 'Annette', 'w7 guessed']}
    """
    if isinstance(value, str):
        value = texts.get(value, value)
        for part, other in parts.items():
            value = value.replace(part, other)
        return value
    if isinstance(value, list):
        return [_replaced(each, texts, parts) for each in value]
    if isinstance(value, dict):
        return {texts.get(key, key): _replaced(each, texts, parts) for key, each in value.items()}
    return value


def delete_campaign(connection: Connection, campaign_id: int, name: str, now: float) -> Deleted:
    """Delete a campaign with its items, answers, workers, links and webhooks, for good.

    Parameters
    ----------
    name
        The campaign's name, so that the right one is deleted.

    The activity log keeps who did what and when, without details, and that it was deleted.
    """
    found = get_campaign(connection, campaign_id, lock=True)
    if name.strip() != found.name.strip():
        raise CrowdtreeError(
            f"campaign {campaign_id} is called {found.name!r}, not {name!r}; give its name to "
            "delete it"
        )
    if found.status in IN_USE:
        raise CrowdtreeError(
            f"campaign {campaign_id} is {found.status}; pause it before you delete it"
        )
    gone = Deleted(
        campaign=campaign_id,
        name=found.name,
        items=_count(connection, items, campaign_id),
        answers=_count(connection, answers, campaign_id),
        workers=_count(connection, workers, campaign_id),
    )
    remove_rows(connection, campaign_id)
    mine = activity.c.campaign_id == campaign_id
    connection.execute(activity.update().where(mine).values(detail="{}"))
    note(connection, now, "delete campaign", None, dict(gone))
    return gone


def _count(connection: Connection, table: sa.Table, campaign_id: int) -> int:
    found = sa.select(sa.func.count()).select_from(table).where(table.c.campaign_id == campaign_id)
    return int(connection.execute(found).scalar_one())


def remove_rows(connection: Connection, campaign_id: int) -> None:
    """Delete the rows of a campaign from all tables except the activity log."""
    tables = [table for table in reversed(metadata.sorted_tables) if table is not activity]
    for table in tables:  # those that name another row, while that row is there
        parents = [name for name in PARENTS if name in table.c]
        if parents and "campaign_id" not in table.c:
            parent = PARENTS[parents[0]]
            mine = sa.select(parent.c.id).where(parent.c.campaign_id == campaign_id)
            connection.execute(table.delete().where(table.c[parents[0]].in_(mine)))
    for table in tables:
        if "campaign_id" in table.c:
            connection.execute(table.delete().where(table.c.campaign_id == campaign_id))
    connection.execute(campaigns.delete().where(campaigns.c.id == campaign_id))


def change_policy(connection: Connection, campaign_id: int, policy: AnyPolicy, now: float) -> None:
    """Replace the policy of a draft; items and workers stay."""
    _draft(connection, campaign_id)
    connection.execute(
        campaigns.update()
        .where(campaigns.c.id == campaign_id)
        .values(
            **definition_of(policy),
            version=campaigns.c.version + 1,
        )
    )
    note(connection, now, "policy", campaign_id)


def discard(connection: Connection, campaign_id: int, now: float) -> None:
    """Delete a draft with its items and invitations; the activity log keeps an entry."""
    name = _draft(connection, campaign_id).name
    remove_rows(connection, campaign_id)
    note(connection, now, "discard", campaign_id, {"name": name})


def _draft(connection: Connection, campaign_id: int) -> Campaign:
    found = get_campaign(connection, campaign_id)
    if found.status != "draft":
        raise CrowdtreeError(f"campaign {campaign_id} has started and keeps its plan and its items")
    return found
