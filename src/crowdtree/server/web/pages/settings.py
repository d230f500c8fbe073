"""Links for workers, and every setting of a campaign."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from sqlalchemy.engine import Connection
from starlette.datastructures import FormData
from starlette.responses import Response

from crowdtree.server.languages import catalogues
from crowdtree.server.settings.presets import PRESETS, preset_of
from crowdtree.server.settings.words import read_value, write_value
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign
from crowdtree.server.store.owner import campaigns, people
from crowdtree.server.store.owner.campaigns import merge, read_seen, seen_of
from crowdtree.server.store.queries.progress import Progress, progress
from crowdtree.server.store.types import AnyPolicy, JsonObject
from crowdtree.server.web.auth import OWNER_ONLY, OwnerNeeded
from crowdtree.server.web.pages.base import PageRoute, go, render
from crowdtree.server.web.pages.setting_form import FLAGS, FORM, IN_SIGHT, field_groups
from crowdtree.server.web.requests import Number, state_of
from crowdtree.server.web.services.items import missing_media, never_uploaded

router = APIRouter(route_class=PageRoute, dependencies=OWNER_ONLY)


SHOWN_PEOPLE = 3
"""Numbers of people per label whose price is shown."""


@router.get("/c/{number}/share")
async def share(request: Request, number: Number, owner: OwnerNeeded) -> Response:
    """Show the links for workers and the settings."""
    state = state_of(request)

    def look(connection: Connection) -> tuple[Campaign, Progress, int]:
        joins = people.join_links(connection, number, state.now)
        return get_campaign(connection, number), progress(connection, number, state.now), joins

    campaign, facts, joins = await state.store.aread(look)
    policy = state.policy(campaign)
    performance = await state.plans.performance(policy)
    people_per_item = campaign.settings.labels.people_per_item
    extra = await state.plans.people_costs(policy, _numbers_of_people(policy, people_per_item))
    values = campaign.settings.values()
    missing: list[str] = []
    if campaign.status == "draft":
        missing = await asyncio.to_thread(missing_media, state.store, number, state.media)
    return render(
        request,
        "share.html",
        owner=owner,
        campaign=campaign,
        facts=facts,
        joins=joins,
        performance=performance,
        answers=performance.answers + extra[people_per_item],
        by_people={n: performance.answers + more for n, more in extra.items()},
        presets=PRESETS,
        preset=preset_of(campaign.settings),
        groups=field_groups(
            campaign.settings, campaign.policy["policy"], campaign.status != "draft"
        ),
        written={name: write_value(name, values[name]) for name in IN_SIGHT},
        seen=seen_of(_shown(campaign)),
        examples=sum(1 for text in campaign.settings.tasks.examples.values() if text.strip()),
        base=state.options.url,
        missing=never_uploaded(missing) if missing else "",
        languages=[(code, found.name) for code, found in catalogues().items()],
    )


def _numbers_of_people(policy: AnyPolicy, chosen: int) -> list[int]:
    """Numbers of people per label whose price is shown: the first few, and the chosen one.

    >>> from crowdtree import AdaptivePolicy, example
    >>> _numbers_of_people(AdaptivePolicy(example("table1"), max_answers=2, strict=False), 1)
    [1, 2]
    """
    most = policy.max_answers or SHOWN_PEOPLE
    return sorted({chosen, *range(1, min(SHOWN_PEOPLE, most) + 1)})


@router.post("/c/{number}/share")
async def save(request: Request, number: Number) -> Response:
    """Save the settings."""
    state = state_of(request)
    form = await request.form()
    changes = changes_of(form, tuple(name for name in FORM if name in form))
    if "flags" in form:  # browsers do not send unchecked boxes
        changes |= {name: form.get(name) == "on" for name in FLAGS}
    name = str(form.get("name", "")).strip()

    seen = read_seen(str(form.get("seen", "")))

    def apply(connection: Connection) -> str:
        campaign = get_campaign(connection, number, lock=True)
        current = _shown(campaign)
        wished = campaign.settings.changed(changes).values()
        wanted = {key: wished[key] for key in changes} | ({"name": name} if name else {})
        mine = merge(seen, current, wanted)
        renamed = mine.pop("name", None)
        campaigns.change_settings(connection, number, state.policy(campaign), mine, state.now)
        if renamed is not None:
            campaigns.rename(connection, number, name, state.now)
        return seen_of(_shown(get_campaign(connection, number)))

    seen_now = await state.store.awrite(apply)
    return go(request, f"/c/{number}/share?saved=1", seen=seen_now)


def _shown(campaign: Campaign) -> JsonObject:
    """The name and the settings as the form shows them."""
    adapts = campaign.settings.table.revises(campaign.policy["policy"])
    return {**campaign.settings.values(), "table.revise": adapts, "name": campaign.name}


def changes_of(form: FormData, names: tuple[str, ...]) -> JsonObject:
    """Read some settings from a form."""
    return {name: read_value(name, str(form.get(name, ""))) for name in names}
