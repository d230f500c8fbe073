"""Exclude the answers of workers from a campaign, and include them again.

Both make a revision of the campaign, so that its items are replayed in the background
(:mod:`crowdtree.server.rules.revised_items`): labels are kept, corrected, replaced or
withdrawn. What was paid stays paid, and the log stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypedDict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.campaign.reasons import Cause
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import plural
from crowdtree.server.store.corrections.common import check_reason
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign, last_line
from crowdtree.server.store.db.sql import fetch
from crowdtree.server.store.db.statements import EXCLUSIONS, Exclusion
from crowdtree.server.store.db.tables import answers, exclusions, monitors
from crowdtree.server.store.owner.people import check_worker, set_worker_status
from crowdtree.server.store.owner.revisions import add_revision
from crowdtree.server.store.queries.monitor_log import (
    ESTIMATE_AT,
    Tested,
    tested,
    tested_policy,
)
from crowdtree.server.store.types import AnyPolicy

Actor = Literal["owner", "server"]


class Corrected(TypedDict):
    """The revision that answers are excluded or included by, and of whom."""

    campaign: int
    revision: int
    workers: list[int]
    changed: bool
    """Whether anything had to be done."""


def exclude(
    connection: Connection,
    number: int,
    workers: Sequence[int],
    now: float,
    *,
    since: float | None = None,
    reason: str = "",
    actor: Actor = "owner",
    block: bool = False,
) -> Corrected:
    """Exclude the answers and skips that workers have given so far.

    Answers that they give later count again, unless the workers are blocked or paused. Excluding
    answers that are excluded already changes nothing, so that the call can be repeated.

    Parameters
    ----------
    since
        Only answers from this time on.
    block
        Whether to block the workers as well.
    """
    found = get_campaign(connection, number, lock=True)
    new = planned(connection, found, workers, since)
    if block:
        for worker in workers:
            set_worker_status(connection, number, worker, "blocked", now)
    if not new:
        return _corrected(found, found.revision, workers, changed=False)
    people = [made.worker_id for made in new]
    revision = _revise(connection, found, "exclude", people, reason, now, actor)
    connection.execute(
        exclusions.insert(),
        [
            {
                **made._replace(revision=revision)._asdict(),
                "campaign_id": number,
                "since": since,
                "actor": actor,
                "reason": reason,
                "at": now,
            }
            for made in new
        ],
    )
    return _corrected(found, revision, workers)


def include(
    connection: Connection,
    number: int,
    workers: Sequence[int],
    now: float,
    *,
    reason: str = "",
    actor: Actor = "owner",
) -> Corrected:
    """Include the answers of workers again, beside those that came in the meantime.

    A worker who is blocked or paused stays so.
    """
    found = get_campaign(connection, number, lock=True)
    _check(connection, found, workers)
    known = {made.worker_id for made in fetch(connection, EXCLUSIONS, campaign=number)}
    for worker in workers:
        if worker not in known:
            raise CrowdtreeError(f"worker {worker}: no answers of this worker are excluded")
    held = {made.worker_id for made in still_excluded(connection, number)}
    people = [worker for worker in dict.fromkeys(workers) if worker in held]
    if not people:
        return _corrected(found, found.revision, workers, changed=False)
    revision = _revise(connection, found, "include", people, reason, now, actor)
    connection.execute(
        exclusions.update()
        .where(
            exclusions.c.campaign_id == number,
            exclusions.c.worker_id.in_(people),
            exclusions.c.lifted_revision.is_(None),
        )
        .values(lifted_revision=revision, lifted_at=now)
    )
    return _corrected(found, revision, workers)


def planned(
    connection: Connection, campaign: Campaign, workers: Sequence[int], since: float | None
) -> list[Exclusion]:
    """Work out which lines of the log an exclusion would cover; none where all are excluded.

    Workers without answers are passed over, unless nobody has given any.
    """
    _check(connection, campaign, workers)
    last = last_line(connection, campaign.id)
    present = still_excluded(connection, campaign.id)
    found, answered = [], False
    for worker in dict.fromkeys(workers):
        lines = sa.select(sa.func.min(answers.c.id)).where(answers.c.worker_id == worker)
        if since is not None:
            lines = lines.where(answers.c.at >= since)
        first = connection.execute(lines).scalar_one()
        if first is None:
            continue
        answered = True
        for made in present:
            if made.worker_id == worker:
                inside = answers.c.id.between(made.first_answer_id, made.last_answer_id)
                lines = lines.where(sa.not_(inside))
        if connection.execute(lines.where(answers.c.id >= first)).scalar_one() is not None:
            found.append(Exclusion(worker, first, last, campaign.revision + 1, None))
    if not answered:
        when = "" if since is None else " since then"
        names = list(map(str, dict.fromkeys(workers)))
        who = f"worker {names[0]}: has" if len(names) == 1 else f"workers {', '.join(names)}: have"
        raise CrowdtreeError(f"{who} given no answers{when}; nothing to exclude")
    return found


def still_excluded(connection: Connection, number: int) -> list[Exclusion]:
    """List the exclusions of a campaign that are in effect."""
    made = fetch(connection, EXCLUSIONS, campaign=number)
    return [found for found in made if found.lifted_revision is None]


class Table(NamedTuple):
    """The policy of a revision, and the line of the log after which its table is tested.

    `estimated` says whether the server had estimated another table, from answers that count no
    longer: then it does so again, from the others.
    """

    policy: AnyPolicy
    after: int | None
    estimated: bool = False


def next_table(connection: Connection, campaign: Campaign) -> Table:
    """Choose the policy from which a campaign goes on when other answers count.

    A table that the server has estimated followed from the answers so far. It is estimated anew,
    from the table that the owner or an audit made.
    """
    base = tested(connection, campaign.id) if campaign.revision else Tested(0, 0)
    revised = base.revision < campaign.revision
    if revised and not campaign.settings.table.revises(campaign.policy["policy"]):
        return Table(campaign.make_policy(), None)
    policy = tested_policy(connection, campaign.id, base.revision)
    return Table(policy, base.after, revised or base.estimate_at > 0)


def _check(connection: Connection, campaign: Campaign, workers: Sequence[int]) -> None:
    if campaign.status not in ("running", "paused", "finished"):
        raise CrowdtreeError(
            f"campaign {campaign.id} is {campaign.status}: expected a running, paused or finished "
            "one"
        )
    if not workers:
        raise CrowdtreeError("workers: expected at least one")
    for worker in workers:
        check_worker(connection, campaign.id, worker)


def _revise(
    connection: Connection,
    campaign: Campaign,
    action: Literal["exclude", "include"],
    workers: list[int],
    reason: str,
    now: float,
    actor: Actor,
) -> int:
    """Begin the revision in which the workers' answers are excluded or included."""
    check_reason(reason)
    text = f"answers of {plural(len(workers), 'worker')} {action}d"
    text = f"{text}: {reason}" if reason else text
    said: dict[str, object] = {"text": text, f"{action}d": workers}
    table = next_table(connection, campaign)
    if table.estimated:
        said[ESTIMATE_AT] = last_line(connection, campaign.id)
    cause = Cause.EXCLUSION
    revision = add_revision(
        connection, campaign, table.policy, said, now, actor, cause, table.after
    )
    note(connection, now, action, campaign.id, {"revision": revision, **said}, actor)
    # The monitor reads the log again, without the answers that no longer count.
    begun = {"last_answer_id": table.after or 0, "state": "", "answers": 0}
    mine = monitors.c.campaign_id == campaign.id
    connection.execute(monitors.update().where(mine).values(**begun, alarms="[]", findings="[]"))
    return revision


def _corrected(
    campaign: Campaign, revision: int, workers: Sequence[int], changed: bool = True
) -> Corrected:
    people = list(dict.fromkeys(workers))
    return {"campaign": campaign.id, "revision": revision, "workers": people, "changed": changed}
