"""Campaigns: create, rename, change settings, add items, start, pause, finish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.campaign.view import check_people
from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.languages import CLASS, EXPLANATION, NAMED, QUESTION
from crowdtree.server.reasons import CampaignReason
from crowdtree.server.settings.model import Settings, about
from crowdtree.server.settings.money import MICRO
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
from crowdtree.server.store.db.states import LIVE_LEASES, ItemStatus
from crowdtree.server.store.db.tables import budgets, campaigns, items, leases, waiting
from crowdtree.server.store.derived import new_secret
from crowdtree.server.store.types import AnyPolicy

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


def rename(connection: Connection, number: int, name: str, now: float) -> None:
    """Rename a campaign."""
    get_campaign(connection, number)
    name = name.strip()
    if not name or not storable(name):
        raise CrowdtreeError(f"campaign: expected a name of 1 to {MAX_NAME} characters without NUL")
    connection.execute(campaigns.update().where(campaigns.c.id == number).values(name=name))
    note(connection, now, "rename", number, {"name": name})


def change_settings(
    connection: Connection,
    number: int,
    policy: AnyPolicy,
    changes: Mapping[str, object],
    now: float,
) -> Settings:
    """Change settings, named ``group.name``; a new budget applies from the next question on."""
    found = get_campaign(connection, number, lock=True)
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
        .where(campaigns.c.id == number)
        .values(settings=settings.model_dump_json(), version=campaigns.c.version + 1)
    )
    committed = _change_budget(connection, number, settings)
    if committed > (settings.money.budget_micros or committed) and (
        (settings.money.price, settings.money.budget) != (old.money.price, old.money.budget)
    ):
        raise CrowdtreeError(
            f"settings: money.budget: {committed / MICRO:.2f} are spent or reserved for questions "
            "that workers hold; give at least that, or pause and wait for their answers"
        )
    note(connection, now, "settings", number, changes)
    return settings


def _change_budget(connection: Connection, number: int, settings: Settings) -> int:
    """Write the new cap, and reserve the new price for the questions that workers hold.

    Returns what is spent and reserved, in millionths.
    """
    cap = settings.money.budget_micros
    where = budgets.c.campaign_id == number
    if cap is None:
        connection.execute(budgets.delete().where(where))
        return 0
    # The update locks the row and so waits for transactions that are handing out questions.
    if not connection.execute(budgets.update().where(where).values(cap=cap)).rowcount:
        spent = tally(connection, number).get("spent", 0)
        connection.execute(budgets.insert().values(campaign_id=number, cap=cap, spent=spent))
    live = sa.select(sa.func.count()).where(
        leases.c.campaign_id == number, leases.c.state.in_(LIVE_LEASES)
    )
    reserved = int(connection.execute(live).scalar_one()) * settings.money.price_micros
    changed = budgets.update().where(where).values(reserved=reserved).returning(budgets.c.spent)
    return int(connection.execute(changed).scalar_one()) + reserved


def set_status(
    connection: Connection,
    number: int,
    status: CampaignStatus,
    now: float,
    reason: CampaignReason = CampaignReason.NONE,
    detail: str = "",
    actor: Actor = "owner",
) -> Campaign:
    """Start, pause, resume or finish a campaign."""
    found = get_campaign(connection, number, lock=True)
    if found.status == status:
        return found
    if found.status not in MOVES[status]:
        raise CrowdtreeError(f"campaign {number} cannot {VERBS[status]}: it is {found.status}")
    waits = (
        found.status == "paused" and found.settings.finish.max_wrong_labels is not None
    )  # for checks
    if (
        status == "running"
        and not waits
        and not exists(connection, sql.ANY_UNFINISHED, campaign=number)
    ):
        raise CrowdtreeError(
            f"campaign {number} has no items left to label; add items, or finish it"
        )
    # Pausing resets the give-up timers.
    connection.execute(waiting.delete().where(waiting.c.campaign_id == number))
    started, finished = found.started_at, found.finished_at
    if status == "running":
        started, finished = started or now, None
    elif status == "finished":
        finished = now
    connection.execute(
        campaigns.update()
        .where(campaigns.c.id == number)
        .values(
            status=status,
            reason=reason,
            reason_detail=detail,
            started_at=started,
            finished_at=finished,
        )
    )
    action = "finished" if status == "finished" else VERBS[status]
    note(connection, now, action, number, {"reason": reason.text(detail)} if reason else {}, actor)
    return get_campaign(connection, number)


class StoredItem(NamedTuple):
    """An item as it is stored."""

    task: str
    payload: str
    status: int
    gold: int | None


def stored_items(
    connection: Connection, number: int, tasks: Sequence[str]
) -> dict[str, StoredItem]:
    """Read the items with some names, by name."""
    columns = [items.c[name] for name in StoredItem._fields]
    mine = (items.c.campaign_id == number, items.c.task.in_(tasks))
    rows = connection.execute(sa.select(*columns).where(*mine))
    return {row.task: StoredItem(*row) for row in rows}


def pause_finished(
    connection: Connection, number: int, now: float, reason: CampaignReason, detail: str = ""
) -> None:
    """Pause a finished campaign some of whose items are open again.

    Nothing is asked or paid before the owner resumes it.
    """
    mine = (campaigns.c.id == number, campaigns.c.status == "finished")
    changed = campaigns.update().where(*mine)
    changed = changed.values(status="paused", reason=reason, reason_detail=detail, finished_at=None)
    if connection.execute(changed).rowcount:
        note(connection, now, "reopened", number, {"text": reason.text(detail)}, "server")


def add_items(connection: Connection, number: int, rows: Sequence[Mapping[str, object]]) -> int:
    """Add items (``task``, ``payload``, ``gold``); known tasks stay as they are.

    Returns how many were added.
    """
    new: dict[str, int] = {}
    for status in (ItemStatus.NEW, ItemStatus.GOLD):
        made = [
            {
                "campaign_id": number,
                "task": row["task"],
                "payload": row["payload"],
                "status": status,
                "gold": row.get("gold"),
            }
            for row in rows
            if (row.get("gold") is not None) == (status == ItemStatus.GOLD)
        ]
        new[status.label] = run_many(connection, sql.ADD_ITEM, made)
    add_to_tallies(connection, number, new)
    if new[ItemStatus.GOLD.label]:
        touch(connection, number)
    return sum(new.values())
