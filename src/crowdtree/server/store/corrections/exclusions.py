"""Exclude the answers of workers from a campaign, include them again, and preview either.

Both make a revision of the campaign, so that its items are replayed in the background
(:mod:`crowdtree.server.rules.revised_items`): labels are kept, corrected, replaced or
withdrawn. What was paid stays paid, and the log stays as it is.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple, TypedDict, cast

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.campaign.events import Cause, Outcome, PolicyChanged
from crowdtree.campaign.fold import extend
from crowdtree.campaign.view import Revision, Status
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import plural
from crowdtree.server.store.corrections.items import check_reason
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign, last_line
from crowdtree.server.store.db.sql import Query, Sql, fetch, fetch_ids
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
from crowdtree.server.store.reliability import Level, level_of
from crowdtree.server.store.serving.campaign import Revisions, ServedCampaign, load_campaign
from crowdtree.server.store.serving.item import lines_of, load_view
from crowdtree.server.store.serving.unit_of_work import policy_of_revision
from crowdtree.server.store.types import AnyPolicy, ItemStatus

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
    campaign_id: int,
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
    found = get_campaign(connection, campaign_id, lock=True)
    new = planned(connection, found, workers, since)
    if block:
        for worker in workers:
            set_worker_status(connection, campaign_id, worker, "blocked", now)
    if not new:
        return _corrected(found, found.revision, workers, changed=False)
    people = [made.worker_id for made in new]
    revision = _revise(connection, found, "exclude", people, reason, now, actor)
    connection.execute(
        exclusions.insert(),
        [
            {
                **made._replace(revision=revision)._asdict(),
                "campaign_id": campaign_id,
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
    campaign_id: int,
    workers: Sequence[int],
    now: float,
    *,
    reason: str = "",
    actor: Actor = "owner",
) -> Corrected:
    """Include the answers of workers again, beside those that came in the meantime.

    A worker who is blocked or paused stays so.
    """
    found = get_campaign(connection, campaign_id, lock=True)
    _check(connection, found, workers)
    known = {made.worker_id for made in fetch(connection, EXCLUSIONS, campaign=campaign_id)}
    for worker in workers:
        if worker not in known:
            raise CrowdtreeError(f"worker {worker}: no answers of this worker are excluded")
    held = {made.worker_id for made in still_excluded(connection, campaign_id)}
    people = [worker for worker in dict.fromkeys(workers) if worker in held]
    if not people:
        return _corrected(found, found.revision, workers, changed=False)
    revision = _revise(connection, found, "include", people, reason, now, actor)
    connection.execute(
        exclusions.update()
        .where(
            exclusions.c.campaign_id == campaign_id,
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


def still_excluded(connection: Connection, campaign_id: int) -> list[Exclusion]:
    """List the exclusions of a campaign that are in effect."""
    made = fetch(connection, EXCLUSIONS, campaign=campaign_id)
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


MAX_ITEMS = 5000
"""Items that are replayed for a preview."""
PREVIEWED_AT_ONCE = 500
TOUCHED = Sql(
    f"""SELECT DISTINCT item_id AS id FROM answers WHERE worker_id = :worker
    AND id BETWEEN :first AND :last
    AND fate NOT IN ('{Outcome.GOLD}', '{Outcome.OVER_BUDGET}') ORDER BY item_id"""
)
ITEMS = Query(
    sql.ItemRow, f"SELECT {', '.join(sql.ItemRow._fields)} FROM items WHERE id IN :ids ORDER BY id"
)


class Preview(TypedDict):
    """What would become of the items that some workers have answered."""

    campaign: int
    workers: list[int]
    answers: int
    """Answers and skips that would no longer count, or count again."""
    items: int
    """Items that they are about."""
    labels: int
    """Labels that these items have."""
    replaced: int
    """Labels that would be others."""
    withdrawn: int
    """Labels that would be withdrawn: their items are asked about again."""
    reopened: int
    """Items set aside that would be asked about again."""
    complete: bool
    """Whether all items were replayed; otherwise the counts are those of the first ones."""
    text: str


def preview(
    connection: Connection,
    campaign_id: int,
    workers: Sequence[int],
    since: float | None = None,
    lift: bool = False,
) -> Preview:
    """Replay the items that workers have answered without them, or with `lift` with them again.

    Parameters
    ----------
    since
        Only answers from this time on.
    lift
        Whether to include answers that are excluded now.
    """
    campaign = get_campaign(connection, campaign_id)
    new = planned(connection, campaign, workers, since) if not lift else []
    held = [made for made in still_excluded(connection, campaign_id) if made.worker_id in workers]
    changed = new if not lift else held
    ids = sorted({item for made in changed for item in _touched(connection, made)})
    revisions = _Supposed(connection, load_campaign(connection, campaign_id), changed, lift)
    found: Preview = {
        "campaign": campaign_id,
        "workers": list(dict.fromkeys(workers)),
        "answers": 0,
        "items": len(ids),
        "labels": 0,
        "replaced": 0,
        "withdrawn": 0,
        "reopened": 0,
        "complete": len(ids) <= MAX_ITEMS,
        "text": "",
    }
    ids = ids[:MAX_ITEMS]
    for start in range(0, len(ids), PREVIEWED_AT_ONCE):
        _add(connection, revisions, ids[start : start + PREVIEWED_AT_ONCE], found)
    found["text"] = _words(found, campaign, lift, revisions.table.estimated)
    return found


def _touched(connection: Connection, made: sql.Exclusion) -> list[int]:
    first, last = made.first_answer_id, made.last_answer_id
    return fetch_ids(connection, TOUCHED, worker=made.worker_id, first=first, last=last)


class _Supposed:
    """The revisions of a campaign, and one more that did not happen."""

    def __init__(
        self,
        connection: Connection,
        served: ServedCampaign,
        changed: Sequence[sql.Exclusion],
        lift: bool,
    ) -> None:
        campaign = get_campaign(connection, served.id)
        self.table = next_table(connection, campaign)
        self.served, self.number = served, served.revision + 1
        after = [*served.exclusions, *changed]
        if lift:
            after = [one for one in served.exclusions if one not in changed]
        level = level_of(self.table.policy.problem)
        levels = [*served.levels, Level(self.number, last_line(connection, served.id), level)]
        policy = self.table.policy.at_least(served.rules.people)
        row = replace(served.row, revision=self.number)
        made = replace(served, row=row, policy=policy, exclusions=after, levels=levels)
        past = Revisions(served, partial(policy_of_revision, connection, served.id))
        self.all = ChainMap({self.number: made.present}, cast(dict[int, Revision], past))


def _add(connection: Connection, revisions: _Supposed, ids: list[int], found: Preview) -> None:
    """Fold one more event into the views of some items, and count what would become of them."""
    labels = {row.item_id: row for row in fetch(connection, sql.LABELS_OF_ITEMS, ids=ids)}
    log: dict[int, list[sql.LogLine]] = {item: [] for item in ids}
    for line in fetch(connection, sql.LOG, ids=ids):
        log[line.item_id].append(line)
    for row in fetch(connection, ITEMS, ids=ids):
        if row.status == ItemStatus.WITHDRAWN or row.gold is not None:
            continue
        before = load_view(revisions.served, row, lines_of(row, log[row.id]), labels.get(row.id))
        for number in range(row.revision + 1, revisions.number):
            before = extend(revisions.all, before, PolicyChanged(number))
        after = extend(revisions.all, before, PolicyChanged(revisions.number))
        gone = [view.outcomes.count(Outcome.EXCLUDED) for view in (before, after)]
        found["answers"] += abs(gone[1] - gone[0])
        if before.status is Status.SET_ASIDE:
            found["reopened"] += after.label is None
        elif before.label is not None:
            found["labels"] += 1
            found["withdrawn"] += after.label is None
            found["replaced"] += after.label is not None and after.label[0] != before.label[0]


def _words(found: Preview, campaign: Campaign, lift: bool, estimated: bool) -> str:
    """Say what would change, for people."""
    if not found["answers"]:
        return "Nothing would change: no answer is affected."
    first = "" if found["complete"] else f"Of the first {MAX_ITEMS:,} items: "
    verb = "would count again" if lift else "would no longer count"
    about = f"about {plural(found['items'], 'item')} {verb}."
    said = [f"{first}{plural(found['answers'], 'answer or skip', 'answers and skips')} {about}"]
    kept = found["labels"] - found["replaced"] - found["withdrawn"]
    if found["labels"]:
        said.append(
            f"Of the {plural(found['labels'], 'label')} of these items, {kept:,} would stay, "
            f"{found['replaced']:,} would change and {found['withdrawn']:,} would be withdrawn."
        )
    if found["reopened"]:
        said.append(f"{plural(found['reopened'], 'item')} set aside would be asked about again.")
    if campaign.status == "finished" and found["withdrawn"] + found["reopened"]:
        said.append("The campaign would be paused, with these items open.")
    if estimated:
        said.append("Then the table is estimated again, which may change more labels.")
    said.append("What was paid stays paid.")
    return " ".join(said)
