"""What an owner does with campaigns: create, fill, start, pause, finish, look."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.errors import CrowdtreeError
from crowdtree.policy import Policy
from crowdtree.store import statements as sql
from crowdtree.store.codec import problem_to_json
from crowdtree.store.database import run_many
from crowdtree.store.settings import MICRO, Settings
from crowdtree.store.tables import (
    ITEM,
    LEASE,
    audit,
    budgets,
    campaigns,
    items,
    leases,
    tallies,
    waiting,
)

__all__ = [
    "NotFound",
    "add_items",
    "audited",
    "change_settings",
    "create",
    "get",
    "listed",
    "note",
    "set_status",
    "tally",
]

MOVES = {
    "running": ("draft", "paused", "finished"),
    "paused": ("running",),
    "finishing": ("draft", "running", "paused"),
    "finished": ("finishing", "running"),
}
MOST_NAME = 200
WORDS = {"running": "start", "paused": "pause", "finishing": "finish", "finished": "finish"}


class NotFound(CrowdtreeError):
    """There is no such thing, or it is not yours."""


def create(
    connection: Connection, name: str, policy: Policy[Any], settings: Settings, now: float
) -> int:
    """Create a campaign as a draft; returns its number."""
    _check(policy, settings)
    if not storable(name):
        raise CrowdtreeError(f"campaign: a name of at most {MOST_NAME} characters is needed")
    made = connection.execute(
        campaigns.insert()
        .values(
            name=name.strip() or "Campaign",
            problem=json.dumps(problem_to_json(policy.problem)),
            policy=json.dumps(policy.to_dict()),
            settings=settings.model_dump_json(),
            created_at=now,
        )
        .returning(campaigns.c.id)
    )
    number = int(made.scalar_one())
    if settings.budget_micros is not None:
        connection.execute(budgets.insert().values(campaign_id=number, cap=settings.budget_micros))
    note(connection, now, "owner", "create", number, {"name": name})
    return number


def _check(policy: Policy[Any], settings: Settings) -> None:
    unknown = set(settings.examples) - set(policy.problem.questions)
    if unknown:
        raise CrowdtreeError(f"settings: examples: {sorted(unknown)[0]!r} is not a question")
    if settings.budget is not None and settings.price == 0:
        raise CrowdtreeError("settings: budget: give a price per answer as well")
    if settings.dedicated and policy.to_dict()["policy"] != "plan":
        raise CrowdtreeError("settings: dedicated: needs a plan; adaptive questions vary by item")


def storable(name: str) -> bool:
    """Whether a name is short enough, and one that every database takes.

    >>> storable("Ann"), storable("a\\x00b")
    (True, False)
    """
    return len(name) <= MOST_NAME and "\x00" not in name


def get(connection: Connection, number: int, lock: bool = False) -> dict[str, Any]:
    """Read a campaign's row, its JSON parsed; with `lock`, nobody else changes it meanwhile."""
    mine = sa.select(campaigns).where(campaigns.c.id == number)
    if lock:
        mine = mine.with_for_update(key_share=True)
    row = connection.execute(mine).one_or_none()
    if row is None:
        raise NotFound(f"campaign {number} does not exist")
    found = dict(row._mapping)
    for name in ("problem", "policy", "settings"):
        found[name] = json.loads(found[name])
    return found


def listed(connection: Connection) -> list[dict[str, Any]]:
    """List all campaigns, the newest first."""
    columns = [c for c in campaigns.c if c.name not in ("problem", "policy", "settings")]
    rows = connection.execute(sa.select(*columns).order_by(campaigns.c.id.desc()))
    return [dict(row._mapping) for row in rows]


def change_settings(
    connection: Connection, number: int, policy: Policy[Any], changes: dict[str, Any], now: float
) -> Settings:
    """Change some settings; a new budget holds from the next question on."""
    from crowdtree.store.settings import checked_settings

    found = get(connection, number, lock=True)
    old = found["settings"]
    settings = checked_settings({**old, **changes})
    if found["status"] != "draft" and settings.most_skips != old["most_skips"]:
        raise CrowdtreeError(
            "settings: most_skips: cannot change after the start: items set aside so far depend "
            "on it"
        )
    _check(policy, settings)
    connection.execute(
        campaigns.update()
        .where(campaigns.c.id == number)
        .values(settings=settings.model_dump_json(), version=campaigns.c.version + 1)
    )
    promised = _change_budget(connection, number, settings)
    if promised > (settings.budget_micros or promised) and (
        (settings.price, settings.budget) != (old["price"], old["budget"])
    ):
        raise CrowdtreeError(
            f"settings: budget: {promised / MICRO:.2f} are spent, or would be by the answers to "
            "questions that are out; give at least that, or pause and wait for them"
        )
    note(connection, now, "owner", "settings", number, changes)
    return settings


def _change_budget(connection: Connection, number: int, settings: Settings) -> int:
    """Keep the new cap, and what the questions that are out may cost at the new price.

    Returns what is spent and may be, in millionths.
    """
    cap = settings.budget_micros
    where = budgets.c.campaign_id == number
    if cap is None:
        connection.execute(budgets.delete().where(where))
        return 0
    # Locks the row first, so that whoever is handing out questions has finished.
    if not connection.execute(budgets.update().where(where).values(cap=cap)).rowcount:
        spent = tally(connection, number).get("spent", 0)
        connection.execute(budgets.insert().values(campaign_id=number, cap=cap, spent=spent))
    live = sa.select(sa.func.count()).where(
        leases.c.campaign_id == number, leases.c.state.in_([LEASE.active, LEASE.withdrawn])
    )
    reserved = int(connection.execute(live).scalar_one()) * settings.price_micros
    changed = budgets.update().where(where).values(reserved=reserved).returning(budgets.c.spent)
    return int(connection.execute(changed).scalar_one()) + reserved


def set_status(
    connection: Connection, number: int, status: str, now: float, reason: str = ""
) -> dict[str, Any]:
    """Start, pause, resume or finish a campaign."""
    found = get(connection, number, lock=True)
    if found["status"] == status:
        return found
    if found["status"] not in MOVES[status]:
        raise CrowdtreeError(
            f"campaign {number} is {found['status']} and cannot {WORDS[status]} from there"
        )
    if status == "running" and not _has_items(connection, number):
        raise CrowdtreeError(f"campaign {number} has no items left to label; add items first")
    # Nobody can answer while it rests: what waited begins to wait anew.
    connection.execute(waiting.delete().where(waiting.c.campaign_id == number))
    times: dict[str, Any] = {}
    if status == "running":
        times = {"started_at": found["started_at"] or now, "finished_at": None}
    elif status == "finished":
        times = {"finished_at": now}
    connection.execute(
        campaigns.update()
        .where(campaigns.c.id == number)
        .values(status=status, status_reason=reason, **times)
    )
    note(connection, now, "owner", WORDS[status], number, {"reason": reason} if reason else {})
    return get(connection, number)


def _has_items(connection: Connection, number: int) -> bool:
    waiting = sa.select(items.c.id).where(
        items.c.campaign_id == number, items.c.status.in_([ITEM.new, ITEM.open])
    )
    return connection.execute(waiting.limit(1)).first() is not None


def add_items(connection: Connection, number: int, rows: Sequence[dict[str, Any]]) -> int:
    """Add items (``task``, ``payload``, ``gold``); count the new ones, the others stay."""
    new: Counter[int] = Counter()
    for status in (ITEM.new, ITEM.gold):
        made = [
            {
                "campaign_id": number,
                "task": row["task"],
                "payload": row["payload"],
                "status": status,
                "gold": row.get("gold"),
            }
            for row in rows
            if (row.get("gold") is not None) == (status == ITEM.gold)
        ]
        new[status] = run_many(connection, sql.ADD_ITEM, made)
    tallied = [
        {"campaign_id": number, "name": ITEM.names[status], "shard": 0, "value": count}
        for status, count in sorted(new.items())
        if count
    ]
    run_many(connection, sql.ADD_TALLY, tallied)
    if new[ITEM.gold]:
        bump(connection, number)
    return sum(new.values())


def bump(connection: Connection, number: int) -> None:
    """Make the serving desks read the campaign again."""
    connection.execute(
        campaigns.update().where(campaigns.c.id == number).values(version=campaigns.c.version + 1)
    )


def tally(connection: Connection, number: int) -> dict[str, int]:
    """Add up the tallies of a campaign over their shards."""
    rows = connection.execute(
        sa.select(tallies.c.name, sa.func.sum(tallies.c.value))
        .where(tallies.c.campaign_id == number)
        .group_by(tallies.c.name)
    )
    return {name: int(value) for name, value in rows}


def note(
    connection: Connection,
    now: float,
    actor: str,
    action: str,
    number: int | None,
    detail: dict[str, Any] | None = None,
) -> None:
    """Write a line of the audit log."""
    connection.execute(
        audit.insert().values(
            at=now, actor=actor, action=action, campaign_id=number, detail=json.dumps(detail or {})
        )
    )


def audited(connection: Connection, number: int, most: int = 500) -> list[dict[str, Any]]:
    """Read the last lines of a campaign's audit log, the newest first."""
    get(connection, number)
    rows = connection.execute(
        sa.select(audit)
        .where(audit.c.campaign_id == number)
        .order_by(audit.c.id.desc())
        .limit(most)
    )
    return [{**row._mapping, "detail": json.loads(row.detail)} for row in rows]
