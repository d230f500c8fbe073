"""Campaigns: create, duplicate, change, start, pause, finish; drafts change their policy or go."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.campaign.view import check_people
from crowdtree.core.errors import CrowdtreeError
from crowdtree.io.items import media_names
from crowdtree.server.languages import CLASS, EXPLANATION, NAMED, QUESTION
from crowdtree.server.reasons import CampaignReason
from crowdtree.server.settings.groups import MICRO
from crowdtree.server.settings.model import Settings, about
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.activity import Actor, note
from crowdtree.server.store.db.campaign_row import (
    Campaign,
    CampaignStatus,
    add_to_tallies,
    definition_of,
    get_campaign,
    tally,
    touch,
)
from crowdtree.server.store.db.sql import exists, run_many
from crowdtree.server.store.db.tables import budgets, campaigns, items, leases, waiting
from crowdtree.server.store.errors import Refused
from crowdtree.server.store.tokens import new_secret
from crowdtree.server.store.types import LIVE_LEASES, AnyPolicy, ItemStatus

MOVES: dict[CampaignStatus, tuple[CampaignStatus, ...]] = {
    "running": ("draft", "paused", "finished"),
    "paused": ("running",),
    "finishing": ("draft", "running", "paused"),
    "finished": ("finishing", "running"),
}
"""From which statuses a campaign can get to a status."""
VERBS = {"running": "start", "paused": "pause", "finishing": "finish", "finished": "finish"}
MAX_NAME = 200
KEYS = ("signing_key", "oldest_signing_key")
"""Settings that only grow, so that a key that was revoked stays so."""
MAX_KEYS = 10
"""Keys that are accepted at the same time."""


def create(
    connection: Connection, name: str, policy: AnyPolicy, settings: Settings, now: float
) -> int:
    """Create a campaign as a draft; returns its number."""
    check_policy(policy, settings)
    if not storable(name):
        raise CrowdtreeError(
            f"campaign: expected a name of at most {MAX_NAME} characters without NUL"
        )
    made = connection.execute(
        campaigns.insert()
        .values(
            name=name.strip() or "Campaign",
            **definition_of(policy),
            settings=settings.model_dump_json(),
            secret=new_secret(),
            created_at=now,
        )
        .returning(campaigns.c.id)
    )
    number = int(made.scalar_one())
    if settings.money.budget_micros is not None:
        connection.execute(
            budgets.insert().values(campaign_id=number, cap=settings.money.budget_micros)
        )
    note(connection, now, "create", number, {"name": name})
    return number


def check_policy(policy: AnyPolicy, settings: Settings) -> None:
    """Refuse settings that do not fit a policy."""
    unknown = set(settings.tasks.examples) - set(policy.problem.questions)
    if unknown:
        raise CrowdtreeError(f"settings: tasks.examples: {sorted(unknown)[0]!r} is not a question")
    named = {f"{QUESTION}{name}" for name in policy.problem.questions}
    named |= {f"{kind}{name}" for kind in (CLASS, EXPLANATION) for name in policy.problem.classes}
    for code, texts in settings.tasks.texts.items():
        for key in texts:
            if key.startswith(NAMED) and key not in named:
                what = "question" if key.startswith(QUESTION) else "class"
                raise CrowdtreeError(f"settings: tasks.texts: {code}: {key[:60]!r} names no {what}")
    if not 0 <= settings.people.signing_key - settings.people.oldest_signing_key < MAX_KEYS:
        least, most = (
            max(0, settings.people.signing_key - MAX_KEYS + 1),
            settings.people.signing_key,
        )
        raise CrowdtreeError(f"settings: people.oldest_signing_key: expected {least} to {most}")
    if settings.money.budget is not None and settings.money.price == 0:
        raise CrowdtreeError("settings: money.budget: set a price per answer as well")
    if settings.money.min_answers_for_code > (
        settings.tasks.max_answers_per_worker or settings.money.min_answers_for_code
    ):
        raise CrowdtreeError(
            "settings: money.min_answers_for_code: expected at most tasks.max_answers_per_worker "
            f"({settings.tasks.max_answers_per_worker}), or nobody gets the code"
        )
    if settings.money.personal_codes and settings.money.completion_code:
        raise CrowdtreeError(
            "settings: money.personal_codes: leave money.completion_code empty, or switch personal "
            "codes off"
        )
    check_people(policy, settings.labels.people_per_item)
    if settings.tasks.one_question_per_worker and policy.plan is None:
        raise CrowdtreeError(
            "settings: tasks.one_question_per_worker: requires a plan; adaptive questions vary by "
            "item"
        )


def storable(name: str) -> bool:
    """Whether a name is short enough, and free of NUL, which PostgreSQL rejects.

    >>> storable("Ann"), storable("a\\x00b")
    (True, False)
    """
    return len(name) <= MAX_NAME and "\x00" not in name


def rename(connection: Connection, campaign_id: int, name: str, now: float) -> None:
    """Rename a campaign."""
    get_campaign(connection, campaign_id)
    name = name.strip()
    if not name or not storable(name):
        raise CrowdtreeError(f"campaign: expected a name of 1 to {MAX_NAME} characters without NUL")
    connection.execute(campaigns.update().where(campaigns.c.id == campaign_id).values(name=name))
    note(connection, now, "rename", campaign_id, {"name": name})


def change_settings(
    connection: Connection,
    campaign_id: int,
    policy: AnyPolicy,
    changes: Mapping[str, object],
    now: float,
) -> Settings:
    """Change settings, named ``group.name``; a new budget applies from the next question on."""
    found = get_campaign(connection, campaign_id, lock=True)
    old = found.settings
    settings = old.changed(changes)
    before, after = old.values(), settings.values()
    for name in after if found.status != "draft" else ():
        if about(name).fixed and before[name] != after[name]:
            raise CrowdtreeError(
                f"settings: {name}: cannot change after the start: labels and items set aside so "
                "far depend on it"
            )
    for name in KEYS:
        least = getattr(old.people, name)
        if getattr(settings.people, name) < least:
            raise CrowdtreeError(f"settings: people.{name}: expected at least {least}")
    check_policy(policy, settings)
    connection.execute(
        campaigns.update()
        .where(campaigns.c.id == campaign_id)
        .values(settings=settings.model_dump_json(), version=campaigns.c.version + 1)
    )
    committed = _change_budget(connection, campaign_id, settings)
    if committed > (settings.money.budget_micros or committed) and (
        (settings.money.price, settings.money.budget) != (old.money.price, old.money.budget)
    ):
        raise CrowdtreeError(
            f"settings: money.budget: {committed / MICRO:.2f} are spent or reserved for questions "
            "that workers hold; give at least that, or pause and wait for their answers"
        )
    note(connection, now, "settings", campaign_id, changes)
    return settings


def _change_budget(connection: Connection, campaign_id: int, settings: Settings) -> int:
    """Write the new cap, and reserve the new price for the questions that workers hold.

    Returns what is spent and reserved, in millionths.
    """
    cap = settings.money.budget_micros
    where = budgets.c.campaign_id == campaign_id
    if cap is None:
        connection.execute(budgets.delete().where(where))
        return 0
    # The update locks the row and so waits for transactions that are handing out questions.
    if not connection.execute(budgets.update().where(where).values(cap=cap)).rowcount:
        spent = tally(connection, campaign_id).get("spent", 0)
        connection.execute(budgets.insert().values(campaign_id=campaign_id, cap=cap, spent=spent))
    live = sa.select(sa.func.count()).where(
        leases.c.campaign_id == campaign_id, leases.c.state.in_(LIVE_LEASES)
    )
    reserved = int(connection.execute(live).scalar_one()) * settings.money.price_micros
    changed = budgets.update().where(where).values(reserved=reserved).returning(budgets.c.spent)
    return int(connection.execute(changed).scalar_one()) + reserved


def set_status(
    connection: Connection,
    campaign_id: int,
    status: CampaignStatus,
    now: float,
    reason: CampaignReason = CampaignReason.NONE,
    detail: str = "",
    actor: Actor = "owner",
) -> Campaign:
    """Start, pause, resume or finish a campaign."""
    found = get_campaign(connection, campaign_id, lock=True)
    if found.status == status:
        return found
    if found.status not in MOVES[status]:
        raise CrowdtreeError(f"campaign {campaign_id} cannot {VERBS[status]}: it is {found.status}")
    waits = (
        found.status == "paused" and found.settings.finish.max_wrong_labels is not None
    )  # for checks
    if (
        status == "running"
        and not waits
        and not exists(connection, sql.ANY_UNFINISHED, campaign=campaign_id)
    ):
        raise CrowdtreeError(
            f"campaign {campaign_id} has no items left to label; add items, or finish it"
        )
    # Pausing resets the give-up timers.
    connection.execute(waiting.delete().where(waiting.c.campaign_id == campaign_id))
    started, finished = found.started_at, found.finished_at
    if status == "running":
        started, finished = started or now, None
    elif status == "finished":
        finished = now
    connection.execute(
        campaigns.update()
        .where(campaigns.c.id == campaign_id)
        .values(
            status=status,
            reason=reason,
            reason_detail=detail,
            started_at=started,
            finished_at=finished,
        )
    )
    action = "finished" if status == "finished" else VERBS[status]
    note(
        connection,
        now,
        action,
        campaign_id,
        {"reason": reason.text(detail)} if reason else {},
        actor,
    )
    return get_campaign(connection, campaign_id)


class StoredItem(NamedTuple):
    """An item as it is stored."""

    task: str
    payload: str
    status: int
    gold: int | None


def stored_items(
    connection: Connection, campaign_id: int, tasks: Sequence[str]
) -> dict[str, StoredItem]:
    """Read the items with some names, by name."""
    columns = [items.c[name] for name in StoredItem._fields]
    mine = (items.c.campaign_id == campaign_id, items.c.task.in_(tasks))
    rows = connection.execute(sa.select(*columns).where(*mine))
    return {row.task: StoredItem(*row) for row in rows}


def pause_finished(
    connection: Connection, campaign_id: int, now: float, reason: CampaignReason, detail: str = ""
) -> None:
    """Pause a finished campaign some of whose items are open again.

    Nothing is asked or paid before the owner resumes it.
    """
    mine = (campaigns.c.id == campaign_id, campaigns.c.status == "finished")
    changed = campaigns.update().where(*mine)
    changed = changed.values(status="paused", reason=reason, reason_detail=detail, finished_at=None)
    if connection.execute(changed).rowcount:
        note(connection, now, "reopened", campaign_id, {"text": reason.text(detail)}, "server")


def add_items(
    connection: Connection, campaign_id: int, rows: Sequence[Mapping[str, object]]
) -> int:
    """Add items (``task``, ``payload``, ``gold``); known tasks stay as they are.

    Returns how many were added.
    """
    new: dict[str, int] = {}
    for status in (ItemStatus.NEW, ItemStatus.GOLD):
        made = [
            {
                "campaign_id": campaign_id,
                "task": row["task"],
                "payload": row["payload"],
                "status": status,
                "gold": row.get("gold"),
            }
            for row in rows
            if (row.get("gold") is not None) == (status == ItemStatus.GOLD)
        ]
        new[status.label] = run_many(connection, sql.ADD_ITEM, made)
    add_to_tallies(connection, campaign_id, new)
    if new[ItemStatus.GOLD.label]:
        touch(connection, campaign_id)
    return sum(new.values())


LENGTH = 16
SHORT = 40
"""Longest new value that is repeated in a refusal."""


def _digest(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:LENGTH]


def seen_of(values: Mapping[str, object]) -> str:
    """Digests of the values that a form shows, for a hidden field."""
    return json.dumps({name: _digest(value) for name, value in values.items()})


def read_seen(text: str) -> dict[str, str]:
    """Read what :func:`seen_of` wrote; nothing where a form does not carry it.

    >>> read_seen(seen_of({"price": 0.05})).keys(), read_seen("x")
    (dict_keys(['price']), {})
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}


def merge(
    seen: Mapping[str, str], current: Mapping[str, object], wanted: Mapping[str, object]
) -> dict[str, object]:
    """The values that a form changes; refused where somebody else changed one of them too.

    Parameters
    ----------
    seen
        Digests of what the form showed.

    Examples
    --------
    >>> seen = read_seen(seen_of({"price": 1, "code": "A"}))
    >>> merge(seen, {"price": 2, "code": "A"}, {"price": 1, "code": "B"})
    {'code': 'B'}
    >>> merge(seen, {"price": 2, "code": "A"}, {"price": 3, "code": "A"})
    Traceback (most recent call last):
        ...
    crowdtree.server.store.errors.Refused: price was changed to 2 since this page was opened;
    nothing was \
saved: reload the page and make your change again
    """
    changes = {
        name: value for name, value in wanted.items() if seen.get(name, "") != _digest(value)
    }
    clashes = [
        name
        for name, value in changes.items()
        if name in seen and _digest(current.get(name)) not in (seen[name], _digest(value))
    ]
    if clashes:
        words = ", ".join(_words(name, current.get(name)) for name in clashes)
        raise Refused(
            "changed",
            f"{words} since this page was opened; nothing was saved: reload the page and make "
            "your change again",
        )
    return changes


def _words(name: str, value: object) -> str:
    shown = "" if value is None else str(value)
    to = f" to {shown}" if 0 < len(shown) <= SHORT else ""
    return f"{name.replace('_', ' ')} was changed{to}"


OF_THE_STUDY = {"money.completion_code": "", "money.return_url": ""}
"""Settings that belong to one study on a platform; whoever knows them could use them again."""
ITEMS_AT_ONCE = 2000


def duplicate(connection: Connection, campaign_id: int, name: str, now: float) -> int:
    """Create a draft with the plan, questions and settings of a campaign; returns its number.

    Answers, workers, links, webhooks and the secret of the campaign are not copied.
    """
    found = get_campaign(connection, campaign_id)
    settings = found.settings.changed(OF_THE_STUDY)
    words = name.strip() or f"Copy of {found.name}"[:MAX_NAME]
    new = create(connection, words, found.make_policy(), settings, now)
    note(connection, now, "duplicate", new, {"of": campaign_id})
    return new


def copy_items(
    connection: Connection, source: int, target: int, after: int
) -> tuple[int, int, set[str]]:
    """Copy the next items after an id, without those that were withdrawn.

    Returns the last id, how many were copied, and the names of the uploaded files that they show.
    """
    rows = connection.execute(
        sa.select(items.c.id, items.c.task, items.c.payload, items.c.gold)
        .where(
            items.c.campaign_id == source,
            items.c.id > after,
            items.c.status != ItemStatus.WITHDRAWN,
        )
        .order_by(items.c.id)
        .limit(ITEMS_AT_ONCE)
    ).all()
    if not rows:
        return after, 0, set()
    add_items(connection, target, [dict(row._mapping) for row in rows])
    files = {name for row in rows for name in media_names(json.loads(row.payload))}
    return rows[-1].id, len(rows), files
