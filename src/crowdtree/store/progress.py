"""How a campaign is going."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.store.campaigns import get, tally
from crowdtree.store.settings import MICRO
from crowdtree.store.tables import answers, workers
from crowdtree.store.waiting import waiting_items

__all__ = ["progress"]

RECENT = 500
ITEMS = ("new", "open", "labelled", "set aside", "gold")
FATES = ("counted", "gold", "skipped", "surplus", "late", "over budget")


def progress(connection: Connection, number: int, now: float) -> dict[str, Any]:
    """Sum up a campaign in a few counts; cheap however large it is."""
    campaign = get(connection, number)
    counts = tally(connection, number)
    items = {name.replace(" ", "_"): counts.get(name, 0) for name in ITEMS}
    given = {name.replace(" ", "_"): counts.get(f"fate:{name}", 0) for name in FATES}
    closed = items["labelled"] + items["set_aside"]
    judged = counts.get("estimated", 0)
    rate = _rate(connection, number, now)
    left = _answers_left(items, given["counted"], closed)
    price, budget = campaign["settings"]["price"], campaign["settings"]["budget"]
    return {
        "id": number,
        "name": campaign["name"],
        "status": campaign["status"],
        "status_reason": campaign["status_reason"],
        "items": {**items, "total": sum(items.values()) - items["gold"]},
        "undecided": counts.get("undecided", 0),
        "waiting_for_workers": waiting_items(connection, number),
        "answers": {**given, "expired_leases": counts.get("expired", 0)},
        "answers_per_item": counts.get("taken", 0) / judged if judged else None,
        "estimated_error": counts["error_nanos"] / 1e9 / judged if judged else None,
        "spent": counts.get("spent", 0) / MICRO,
        "price": price,
        "budget": budget,
        "currency": campaign["settings"]["currency"],
        "labels": _labels(campaign, counts),
        "nodes": _nodes(counts),
        "workers": _workers(connection, number),
        "forecast": {
            "answers_left": left,
            "answers_per_minute": None if rate is None else 60 * rate,
            "seconds_left": left / rate if left is not None and rate else None,
            "cost_left": None if left is None else left * price,
        },
    }


def _answers_left(items: dict[str, int], counted: int, closed: int) -> float | None:
    """Answers still needed, an estimate: at the rate so far for each item."""
    if not closed:
        return None
    waiting = items["new"] + items["open"]
    per_item = counted / closed if items["open"] == 0 else counted / (closed + items["open"] / 2)
    return per_item * (items["new"] + items["open"] / 2) if waiting else 0.0


def _rate(connection: Connection, number: int, now: float) -> float | None:
    """Answers a second over the last few hundred."""
    rows = (
        sa.select(answers.c.at)
        .where(answers.c.campaign_id == number)
        .order_by(answers.c.id.desc())
        .limit(RECENT)
    )
    times = [float(at) for (at,) in connection.execute(rows)]
    if len(times) < 2:
        return None
    return len(times) / max(now - times[-1], 1e-3)


def _labels(campaign: dict[str, Any], counts: dict[str, int]) -> dict[str, int]:
    classes = campaign["problem"]["classes"]
    return {name: counts.get(f"label:{c}", 0) for c, name in enumerate(classes)}


def _nodes(counts: dict[str, int]) -> dict[str, dict[str, int]]:
    """Count items that came to and left each node (a leaf is written ``~leaf``, below zero)."""
    found: dict[str, dict[str, int]] = {}
    for name, value in counts.items():
        way, _, node = name.partition(":")
        if way in ("in", "out"):
            found.setdefault(node, {"in": 0, "out": 0})[way] = value
    return found


def _workers(connection: Connection, number: int) -> dict[str, int]:
    rows = connection.execute(
        sa.select(workers.c.status, sa.func.count())
        .where(workers.c.campaign_id == number)
        .group_by(workers.c.status)
    )
    found: dict[str, int] = {row[0]: row[1] for row in rows}
    return {status: found.get(status, 0) for status in ("active", "paused", "blocked")}
