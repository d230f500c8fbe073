"""Campaigns from a problem, a plan or an uploaded table, and back to what makes them."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from crowdtree.planning import Report
from crowdtree.server.settings.model import Settings, flat
from crowdtree.server.settings.presets import Who, settings_for
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.owner import campaigns, drafts, revisions
from crowdtree.server.store.types import AnyPolicy, JsonObject
from crowdtree.server.web.plan_jobs import Wish, wish_of
from crowdtree.server.web.services.items import remove_media
from crowdtree.server.web.state import AppState


class Table(NamedTuple):
    """An uploaded table; ``example:NAME`` needs no content."""

    content: bytes
    name: str
    title: str
    options: JsonObject


async def create_campaign(
    state: AppState, name: str, wish: Wish, who: Who, settings: JsonObject
) -> int:
    """Create a campaign from a problem or a plan; returns its number."""
    checked = settings_for(who).changed(flat(settings))
    return await _create(state, name, await state.plans.policy_of(wish), checked)


async def create_draft(state: AppState, name: str, who: str, table: Table, report: Report) -> int:
    """Read a table and create a campaign with the default plan; returns its number."""
    settings = settings_for(who)
    found = await state.plans.read(table.content, table.name, table.options, report)
    return await _create(state, name, found.first().policy, settings)


async def _create(state: AppState, name: str, policy: AnyPolicy, settings: Settings) -> int:
    return await state.store.awrite(
        lambda c: campaigns.create(c, name, policy, settings, state.now)
    )


async def discard_draft(state: AppState, number: int) -> None:
    """Delete a draft with its items, links and uploaded files."""
    await state.store.awrite(lambda c: drafts.discard(c, number, state.now))
    await remove_media(state, number)


async def revise_campaign(state: AppState, number: int, wish: Wish, reason: str) -> int:
    """Replace the policy of a running campaign; returns the number of the revision."""
    policy = await state.plans.policy_of(wish)
    why = {"text": reason.strip()}
    return await state.store.awrite(lambda c: revisions.revise(c, number, policy, why, state.now))


async def define(state: AppState, number: int) -> JsonObject:
    """Write a campaign as :func:`create_campaign` takes it."""
    campaign = await state.store.aread(lambda c: get_campaign(c, number))
    policy = await asyncio.to_thread(lambda: wish_of(state.policy(campaign)))
    return {
        "name": campaign.name,
        "policy": policy,
        "settings": campaign.settings.model_dump(mode="json"),
    }
