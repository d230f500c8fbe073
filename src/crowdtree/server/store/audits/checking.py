"""Start an audit, hand out items to check, record results, calibrate stated errors by them."""

from __future__ import annotations

import json
import secrets
from typing import Any, Literal, NamedTuple, TypedDict

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.audit import Audit
from crowdtree.audit.runs import run_confidence
from crowdtree.campaign.view import carried_skill
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.loss import Loss
from crowdtree.core.text import plural
from crowdtree.policies import Answer
from crowdtree.server.store import tokens
from crowdtree.server.store.audits.stored import (
    UNSURE,
    AuditCache,
    AuditRow,
    CheckRow,
    frozen_text,
    latest_audit,
    read_checks,
)
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign
from crowdtree.server.store.db.sql import Query, exists, fetch
from crowdtree.server.store.db.tables import audits, checks, credentials, items, labels
from crowdtree.server.store.errors import NotFound, Refused
from crowdtree.server.store.owner.campaigns import MAX_NAME, storable
from crowdtree.server.store.owner.revisions import revise
from crowdtree.server.store.queries.items import last_corrections
from crowdtree.server.store.queries.progress import list_revisions
from crowdtree.server.store.serving.campaign import load_campaign
from crowdtree.server.store.types import AnyPolicy, ItemStatus, JsonObject

HOLD_SECONDS = 900.0
"""How long a person may hold an item before it is handed to somebody else."""
SEEDS = 2**53


class Handed(TypedDict):
    """An item to check, or the reason why there is none.

    ``done``, ``waiting`` (others hold what is left), ``asking again`` (labels are being made
    again because of this audit) or ``not started``.
    """

    item: JsonObject | None
    number: int | None
    reason: str
    checked: int


class AuditorLink(TypedDict):
    """A link for checking; the id is the beginning of its hash."""

    id: str
    name: str
    created_at: float


# ------------------------------------------------------------------------------ starting


def start(
    connection: Connection,
    campaign_id: int,
    bound: float | None,
    now: float,
    confidence: float = 0.95,
    seed: int | None = None,
    actor: Literal["owner", "server"] = "owner",
) -> AuditRow:
    """Start an audit of the labels that there are now; it replaces the audit before.

    What was checked before stays known. So are labels by hand, which are right by the word of their
    author; they take the place of what a check has found. Where the campaign has the setting
    `finish.max_wrong_labels`, wrong labels are corrected, and all runs together keep the
    confidence. Where the problem says what mistakes cost, the mean loss of the labels is bounded
    as well.
    """
    campaign = get_campaign(connection, campaign_id, lock=True)
    wanted = campaign.settings.finish.max_wrong_labels if bound is None else bound
    if wanted is None:
        raise CrowdtreeError(
            "audit: which share of wrong labels is to be certified? give a bound, such as 0.02"
        )
    rows = connection.execute(
        sa.select(
            labels.c.id.label("label_id"),
            *(labels.c[name] for name in ("item_id", "label", "posterior_error", "at")),
            items.c.task,
            items.c.corrected,
        )
        .join(items, items.c.id == labels.c.item_id)
        .where(labels.c.campaign_id == campaign_id, items.c.status == ItemStatus.LABELLED)
        .order_by(labels.c.id)
    ).all()
    if not rows:
        raise CrowdtreeError(f"audit: campaign {campaign_id} has no labels to check yet")
    classes = campaign.classes
    by_hand = {row.item_id: row.corrected for row in rows if row.corrected is not None}
    now_labelled = {row.item_id: (row.task, by_hand.get(row.item_id, row.label)) for row in rows}
    frozen = [
        [task, classes[label], 0.0 if row.item_id in by_hand else row.posterior_error]
        for row in rows
        for task, label in [now_labelled[row.item_id]]
    ]
    known = _known(connection, campaign_id, classes, now_labelled)
    known |= {now_labelled[item][0]: classes[label] for item, label in by_hand.items()}
    latest = max((made.at for made in last_corrections(connection, [*by_hand]).values()), default=0)
    corrects = campaign.settings.finish.max_wrong_labels is not None
    if corrects:
        confidence = run_confidence(confidence, len(results_of(connection, campaign_id)))
    loss = _loss_of(campaign, [label for _, label in now_labelled.values()])
    made = Audit(
        [entry[0] for entry in frozen],
        [entry[1] for entry in frozen],
        [entry[2] for entry in frozen],
        bound=wanted,
        confidence=confidence,
        seed=secrets.randbelow(SEEDS) if seed is None else seed,
        known=known,
        correct=corrects,
        loss=loss,
        classes=None if loss is None else classes,
    )
    connection.execute(
        audits.insert().values(
            campaign_id=campaign_id,
            bound=made.bound,
            confidence=made.confidence,
            seed=made.seed,
            labels=frozen_text(frozen, loss),
            known=json.dumps(made.known),
            claims=json.dumps(made.to_dict()),
            # not before a label that it covers, whatever the clocks of other processes say
            at=max(now, latest, *(row.at for row in rows)),
            corrects=int(corrects),
            last_label=rows[-1].label_id,
        )
    )
    note(connection, now, "audit", campaign_id, {"bound": wanted, "labels": len(frozen)}, actor)
    found = latest_audit(connection, campaign_id)
    if found is None:
        raise NotFound(f"campaign {campaign_id} has no audit")
    return found


def _loss_of(campaign: Campaign, labelled: list[int]) -> Loss | None:
    """What mistakes cost, if any mistake of these labels costs something."""
    loss = campaign.make_policy().problem.loss
    return None if loss is None or not loss.matrix[:, labelled].any() else loss


def _known(
    connection: Connection, campaign_id: int, classes: list[str], now: dict[int, tuple[str, int]]
) -> dict[str, str]:
    """What earlier audits found, by item; where nobody could tell, if the label is the same."""
    rows = connection.execute(
        sa.select(checks.c.item_id, checks.c.label, checks.c.truth)
        .where(checks.c.campaign_id == campaign_id, checks.c.correct.is_not(None))
        .order_by(checks.c.id)
    )
    found: dict[str, str] = {}
    for row in rows:
        task, label = now.get(row.item_id, ("", -1))
        if label == row.label or (task and row.truth is not None):
            found[task] = _unsure(classes) if row.truth is None else classes[row.truth]
    return found


def _unsure(classes: list[str]) -> str:
    """A word for "cannot tell" that is no class, so that it counts as wrong."""
    word = UNSURE
    while word in classes:
        word += "?"
    return word


# ------------------------------------------------------------------------------ checking


def hand_out(
    connection: Connection, cache: AuditCache, campaign_id: int, holder: str, now: float
) -> Handed:
    """Hand a person an item to check: the one that they hold, one that was left, or a new one."""
    row = latest_audit(connection, campaign_id, lock=True)
    if row is None:
        return {"item": None, "number": None, "reason": "not started", "checked": 0}
    classes = get_campaign(connection, campaign_id).classes
    drawn = read_checks(connection, row.id, classes)
    mine = sum(entry.holder == holder and entry.right is not None for entry in drawn)
    waiting = [entry for entry in drawn if entry.right is None]
    held = [entry for entry in waiting if entry.holder == holder]
    left = [entry for entry in waiting if entry.held_until < now]
    reason = _why_none(connection, row)
    if reason:
        return {"item": None, "number": None, "reason": reason, "checked": mine}
    if held or left:
        item = (held or left)[0].item_id
        _hold(connection, (held or left)[0], holder, now)
    else:
        with cache.current(connection, row, drawn) as audit:
            found = _draw(connection, row, audit, classes, holder, now)
        if found is None:
            reason = "waiting" if waiting else "done"
            return {"item": None, "number": None, "reason": reason, "checked": mine}
        item = found
    chosen = connection.execute(
        sa.select(items.c.task, items.c.payload).where(items.c.id == item)
    ).one()
    shown: JsonObject = {"task": chosen.task, **json.loads(chosen.payload)}
    return {"item": shown, "number": item, "reason": "", "checked": mine}


def _why_none(connection: Connection, row: AuditRow) -> str:
    """Why an audit needs no more checks now; empty if it does."""
    state = row.claims["state"]
    if not row.corrects or state == "reached":
        return "" if state == "open" else "done"
    number = row.campaign_id
    asked = any(r["reason"].get("audit") == row.id for r in list_revisions(connection, number))
    if asked and exists(connection, sql.ANY_UNFINISHED, campaign=number):
        return "asking again"
    return ""  # every wrong label that is found is corrected


def results_of(connection: Connection, campaign_id: int) -> dict[int, int]:
    """Count the results of each audit of a campaign that has any, by audit."""
    found = connection.execute(
        sa.select(checks.c.audit_id, sa.func.count())
        .where(checks.c.campaign_id == campaign_id, checks.c.correct.is_not(None))
        .group_by(checks.c.audit_id)
    )
    return dict(found.all())


def _hold(connection: Connection, entry: CheckRow, holder: str, now: float) -> None:
    connection.execute(
        checks.update()
        .where(checks.c.id == entry.id)
        .values(holder=holder, held_until=now + HOLD_SECONDS)
    )


def _draw(
    connection: Connection,
    row: AuditRow,
    audit: Audit,
    classes: list[str],
    holder: str,
    now: float,
) -> int | None:
    """Draw an item and write it down; none where all are drawn."""
    if not audit.next(1):
        return None
    draw = audit.checks[-1]
    item = connection.execute(
        sa.select(items.c.id).where(
            items.c.campaign_id == row.campaign_id, items.c.task == audit.items[draw.place]
        )
    ).scalar_one()
    connection.execute(
        checks.insert().values(
            audit_id=row.id,
            campaign_id=row.campaign_id,
            item_id=item,
            draw=len(audit.checks) - 1,
            after=draw.after,
            label=classes.index(audit.labels[draw.place]),
            holder=holder,
            held_until=now + HOLD_SECONDS,
        )
    )
    _claim(connection, row, audit)
    return int(item)


def record(
    connection: Connection,
    cache: AuditCache,
    campaign_id: int,
    holder: str,
    person: str,
    item: int,
    truth: str | None,
    now: float,
) -> None:
    """Record what a person found: the true class, or none where they cannot tell.

    A result that is sent again changes nothing; another result for the same item is refused.
    """
    # Locked as by `start`: a new audit knows all results, and none comes for one that it replaced.
    classes = get_campaign(connection, campaign_id, lock=True).classes
    row = latest_audit(connection, campaign_id, lock=True)
    if truth is not None and truth not in classes:
        raise CrowdtreeError(f"truth: {truth[:60]!r} is not a class of this campaign")
    drawn = [] if row is None else read_checks(connection, row.id, classes)
    entry = next((entry for entry in drawn if entry.item_id == item), None)
    if row is None or entry is None:
        raise Refused("gone.check")
    if entry.right is not None and (entry.holder, entry.truth) == (holder, truth):
        return
    if entry.right is not None:
        raise Refused("answered.check")
    if entry.holder != holder:
        raise Refused("gone.held")
    place = None if truth is None else classes.index(truth)
    right = place == entry.label
    connection.execute(
        checks.update()
        .where(checks.c.id == entry.id)
        .values(correct=int(right), truth=place, person=person, at=now)
    )
    with cache.current(connection, row, drawn) as audit:
        audit.record(entry.item, truth, right=right, by=person or None)
        _claim(connection, row, audit)


def _claim(connection: Connection, row: AuditRow, audit: Audit) -> None:
    claims = json.dumps(audit.to_dict())
    connection.execute(audits.update().where(audits.c.id == row.id).values(claims=claims))


# ------------------------------------------------------------------------------ people


def invite_auditor(
    connection: Connection, campaign_id: int, name: str, now: float
) -> tuple[str, AuditorLink]:
    """Make a link for a person who checks labels; the token is returned only here."""
    get_campaign(connection, campaign_id)
    name = name.strip()
    if not name or not storable(name):
        raise CrowdtreeError(
            f"name: expected the name of the person, 1 to {MAX_NAME} characters without NUL"
        )
    token = tokens.issue(connection, "auditor", now, campaign_id=campaign_id, name=name)
    note(connection, now, "check link", campaign_id, {"name": name})
    link: AuditorLink = {
        "id": tokens.hashed(token)[: tokens.ID_LENGTH],
        "name": name,
        "created_at": now,
    }
    return token, link


def auditor_of(connection: Connection, token_hash: str, now: float) -> tuple[int, str]:
    """Return the campaign and the name of a valid auditor's token, or refuse."""
    found = tokens.find_hash(connection, token_hash, now)
    if found is None or found.role != "auditor" or found.campaign_id is None:
        raise Refused("unknown")
    return found.campaign_id, found.name


def _auditors(number: int) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        credentials.c.role == "auditor",
        credentials.c.campaign_id == number,
        credentials.c.revoked_at.is_(None),
    )


def listed_auditors(connection: Connection, campaign_id: int) -> list[AuditorLink]:
    """List the links for checking that work."""
    get_campaign(connection, campaign_id)
    rows = connection.execute(
        sa.select(credentials.c.token_hash, credentials.c.name, credentials.c.created_at)
        .where(*_auditors(campaign_id))
        .order_by(credentials.c.created_at, credentials.c.token_hash)
    )
    return [
        {"id": row.token_hash[: tokens.ID_LENGTH], "name": row.name, "created_at": row.created_at}
        for row in rows
    ]


def revoke_auditor(connection: Connection, campaign_id: int, token_id: str, now: float) -> None:
    """Revoke a link for checking. Items that it holds are handed to others at once."""
    mine = credentials.c.token_hash.startswith(token_id, autoescape=True)
    if len(token_id) != tokens.ID_LENGTH or not tokens.revoke(
        connection, now, *_auditors(campaign_id), mine
    ):
        raise NotFound(f"link {token_id[: tokens.ID_LENGTH]!r} is not in campaign {campaign_id}")
    held = (checks.c.campaign_id == campaign_id, checks.c.holder == token_id)
    connection.execute(checks.update().where(*held).values(held_until=0.0))
    note(connection, now, "revoke check link", campaign_id, {"id": token_id})


class SaidAnswer(NamedTuple):
    """An answer about an item that was not excluded."""

    id: int
    item_id: int
    question: int
    value: int
    skill: float


ANSWERS = Query(
    SaidAnswer,
    """SELECT id, item_id, question, value, skill FROM answers WHERE item_id IN :ids
    AND kind = 'answer' AND fate IN ('counted', 'surplus', 'late')
    AND COALESCE(revised_fate, '') <> 'excluded' ORDER BY id""",
)


def checked_truths(connection: Connection, campaign_id: int) -> dict[int, int]:
    """True class of every item that was checked, by item; without those nobody could tell."""
    found = connection.execute(
        sa.select(checks.c.item_id, checks.c.truth)
        .where(checks.c.campaign_id == campaign_id, checks.c.truth.is_not(None))
        .order_by(checks.c.id)
    )
    return dict(found.all())


def calibrated(
    connection: Connection, cache: AuditCache, campaign_id: int, policy: Any
) -> tuple[AnyPolicy, int]:
    """Calibrate a policy by the items that audits have checked; returns it, and how many they are.

    They were drawn with unequal chances, and have weights accordingly.
    """
    row = latest_audit(connection, campaign_id)
    truths = checked_truths(connection, campaign_id)
    if row is None or not truths:
        raise CrowdtreeError(
            f"campaign {campaign_id}: no item has been checked yet; check some first"
        )
    found = get_campaign(connection, campaign_id)
    served = load_campaign(connection, campaign_id)
    drawn = read_checks(connection, row.id, found.classes)
    with cache.current(connection, row, drawn) as audit:
        weights = audit.weights
    query = sa.select(items.c.id, items.c.task).where(items.c.campaign_id == campaign_id)
    names = dict(connection.execute(query.where(items.c.task.in_(weights))).all())
    ids = [item for item in truths if item in names]
    said: dict[int, list[Answer]] = {item: [] for item in ids}
    for line in fetch(connection, ANSWERS, ids=ids):
        skill = carried_skill(line.skill, line.id, served.present.levels)
        said[line.item_id].append(Answer(line.question, line.value, skill))
    truth = np.array([truths[item] for item in ids], dtype=np.int64)
    weight = [weights[names[item]] for item in ids]
    made = policy.calibrate_on(list(said.values()), truth, weight)
    return policy.changed(calibration=made.to_dict()), len(ids)


def calibrate(connection: Connection, cache: AuditCache, campaign_id: int, now: float) -> int:
    """Revise a campaign so that its stated errors follow from what was checked.

    Items whose stated error is then above the target are asked about again. Returns the number of
    the revision.
    """
    present = get_campaign(connection, campaign_id, lock=True).make_policy()
    policy, count = calibrated(connection, cache, campaign_id, present)
    reason = {"text": f"calibrated by {plural(count, 'checked item')}", "checks": count}
    return revise(connection, campaign_id, policy, reason, now)
