"""What the worker's page shows to an owner before the start or while a campaign runs.

Items and questions are chosen at random and nothing is stored, so a preview takes no question from
a worker and leaves no trace.
"""

from __future__ import annotations

import random
import secrets

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.server.store.db.campaign_row import Campaign
from crowdtree.server.store.db.tables import items
from crowdtree.server.store.queries.workers import WorkerState
from crowdtree.server.store.serving.commands import HandedOut, shown_item
from crowdtree.server.store.types import AnyPolicy, ItemStatus, JsonObject
from crowdtree.server.web.services.assignments import WorkerReport, report_of

EXAMPLE = {"text": "One of your items will be here."}
"""What is shown where there are no items yet."""


def previewed_question(connection: Connection, campaign: Campaign, policy: AnyPolicy) -> HandedOut:
    """A question about an item, as workers get it."""
    problem, question = policy.problem, random.choice(policy.questions_used())
    return {
        "task": {
            "lease": f"0.{secrets.token_hex(8)}",
            "seconds": campaign.settings.tasks.max_seconds_per_question,
            "item": _item(connection, campaign),
            "question": {"name": problem.questions[question], "text": problem.text(question)},
        },
        "reason": "",
        "more": True,
    }


def _item(connection: Connection, campaign: Campaign) -> JsonObject:
    """An item near a random id; gold items are shown like others."""
    mine = sa.and_(items.c.campaign_id == campaign.id, items.c.status != ItemStatus.WITHDRAWN)
    low, high = connection.execute(
        sa.select(sa.func.min(items.c.id), sa.func.max(items.c.id)).where(mine)
    ).one()
    if low is None:
        return {"task": "", **EXAMPLE}
    row = connection.execute(
        sa.select(items.c.task, items.c.payload)
        .where(mine, items.c.id >= random.randint(low, high))
        .order_by(items.c.id)
        .limit(1)
    ).one()
    return shown_item(campaign, row.task, row.payload)


def previewed_state() -> WorkerState:
    """How a worker stands who has done nothing, in a campaign that runs."""
    return {
        "campaign": "running",
        "worker": "active",
        "answers": 0,
        "skips": 0,
        "accepted": 0,
        "earned": 0.0,
    }


def previewed_worker(campaign: Campaign) -> WorkerReport:
    """What the page knows about a worker who has just joined."""
    nobody = {"id": f"preview-{secrets.token_hex(4)}", "name": "", "status": "active"}
    return report_of(campaign, {**previewed_state(), **nobody, "consent": ""})
