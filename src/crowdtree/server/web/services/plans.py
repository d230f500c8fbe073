"""Drafts of campaigns from uploaded tables."""

from __future__ import annotations

from typing import NamedTuple

from crowdtree.planning import Report
from crowdtree.server.settings.presets import settings_for
from crowdtree.server.store.owner import campaigns, deleting
from crowdtree.server.store.types import JsonObject
from crowdtree.server.web.services.items import remove_media
from crowdtree.server.web.state import AppState


class Table(NamedTuple):
    """An uploaded table; ``example:NAME`` needs no content."""

    content: bytes
    name: str
    title: str
    options: JsonObject


async def create_draft(state: AppState, name: str, who: str, table: Table, report: Report) -> int:
    """Read a table and create a campaign with the default plan; returns its number."""
    settings = settings_for(who)
    found = await state.plans.read(table.content, table.name, table.options, report)
    policy = found.first().policy
    return await state.store.awrite(
        lambda c: campaigns.create(c, name, policy, settings, state.now)
    )


async def discard_draft(state: AppState, number: int) -> None:
    """Delete a draft with its items, links and uploaded files."""
    await state.store.awrite(lambda c: deleting.discard(c, number, state.now))
    await remove_media(state, number)
