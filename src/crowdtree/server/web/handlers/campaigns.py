"""Campaigns: create, list, start, pause, finish, revise, duplicate and delete them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from crowdtree.server.settings.model import flat
from crowdtree.server.settings.presets import Who, changes_of, settings_for
from crowdtree.server.store.db.campaign_row import CampaignStatus, get_campaign
from crowdtree.server.store.db.campaign_row import list_campaigns as campaign_rows
from crowdtree.server.store.owner import campaigns, deleting
from crowdtree.server.store.owner import revisions as revising
from crowdtree.server.store.queries.progress import Progress, list_revisions, progress
from crowdtree.server.store.types import JsonObject
from crowdtree.server.web.pages import go
from crowdtree.server.web.plans import PolicyRequest, to_request
from crowdtree.server.web.routing import Body, Id, Read, Reply, Routes, State, Write, event_response
from crowdtree.server.web.services.campaigns import delete_campaign, duplicate_campaign
from crowdtree.server.web.state import state_of

routes = Routes("owner")
BASE = "/api/campaigns/{campaign_id}"
POLL_SECONDS = 10.0
MAX_LISTED = 200
STATUS_AFTER: dict[str, CampaignStatus] = {
    "start": "running",
    "resume": "running",
    "pause": "paused",
    "finish": "finishing",
}


class NewCampaign(Body):
    """A campaign to create."""

    name: Annotated[str, Field(max_length=200)] = ""
    policy: PolicyRequest
    who: Who = "open"
    """Who will answer: the preset that `settings` change."""
    settings: JsonObject = Field(default={})


class NewPolicy(Body):
    """A policy over the same classes and questions, and why it replaces the present one."""

    policy: PolicyRequest
    reason: Annotated[str, Field(max_length=2000)] = ""


class DuplicateRequest(Body):
    """What the duplicate is called, and whether it has the items."""

    name: Annotated[str, Field(max_length=200)] = ""
    items: bool = False


class DeleteRequest(Body):
    """The name of a campaign that is to be deleted."""

    name: Annotated[str, Field(max_length=200)]


@routes.api("GET /api/campaigns", "viewer")
def list_campaigns(tx: Read) -> list[JsonObject]:
    """List the campaigns."""
    return [row.to_dict() for row in campaign_rows(tx.connection)]


@routes.page("GET /", "viewer", "home.html")
def home(tx: Read) -> Reply:
    """List the campaigns."""
    rows = campaign_rows(tx.connection)[:MAX_LISTED]
    listed = [{**row.to_dict(), **progress(tx.connection, row.id, tx.now)} for row in rows]
    return {"campaigns": listed, "now": tx.now}


@routes.api("POST /api/campaigns", "editor", status_code=201)
async def create(state: State, given: NewCampaign) -> JsonObject:
    """Create a campaign from a problem or a plan."""
    settings = settings_for(given.who).changed(flat(given.settings))
    policy = await state.plans.policy_of(given.policy)
    campaign_id = await state.store.awrite(
        lambda c: campaigns.create(c, given.name, policy, settings, state.now)
    )
    return {"id": campaign_id}


@routes.api(f"GET {BASE}", "viewer")
def look(tx: Read, campaign_id: Id) -> Reply:
    """Report the progress of a campaign."""
    return progress(tx.connection, campaign_id, tx.now)


@routes.api(f"GET {BASE}/events", "viewer", response_class=StreamingResponse)
async def events(request: Request, campaign_id: Id) -> StreamingResponse:
    """Stream the progress as server-sent events, at most one per second."""
    state = state_of(request)

    async def read() -> Progress:
        return await state.store.aread(lambda c: progress(c, campaign_id, state.now))

    return await event_response(request, campaign_id, "progress", read, POLL_SECONDS)


@routes.api(f"GET {BASE}/definition", "viewer")
def definition(tx: Read, campaign_id: Id) -> JsonObject:
    """Read a campaign's name, policy and settings, as `POST /api/campaigns` takes them."""
    campaign = tx.campaign(campaign_id)
    settings = campaign.settings.model_dump(mode="json")
    policy = to_request(tx.policy(campaign))
    return {"name": campaign.name, "policy": policy, "settings": settings}


@routes.api(f"POST {BASE}/revise", "editor")
async def revise(state: State, campaign_id: Id, given: NewPolicy) -> JsonObject:
    """Replace the policy of a running campaign; its items are replayed in the background.

    The policy is as in `POST /api/campaigns`, over the same classes, questions and right answers.
    """
    policy, why = await state.plans.policy_of(given.policy), {"text": given.reason.strip()}
    revision = await state.store.awrite(
        lambda c: revising.revise(c, campaign_id, policy, why, state.now)
    )
    return {"revision": revision}


@routes.api(f"GET {BASE}/revisions", "viewer")
def revisions(tx: Read, campaign_id: Id) -> Sequence[Reply]:
    """List the policies of a campaign that was revised, with when, who and why."""
    return list_revisions(tx.connection, campaign_id)


@routes.api(f"PATCH {BASE}/settings", "editor")
def change_settings(tx: Write, campaign_id: Id, changes: JsonObject) -> JsonObject:
    """Change some settings, by group: `{"labels": {"people_per_item": 3}}`.

    `{"who": "colleagues"}` changes all settings of this preset.
    """
    wanted, policy = changes_of(changes), tx.policy(tx.campaign(campaign_id))
    changed = campaigns.change_settings(tx.connection, campaign_id, policy, wanted, tx.now)
    return changed.model_dump()


# ---------------------------------------------------------------- duplicate and delete


@routes.api(f"POST {BASE}/duplicate", "editor", status_code=201)
def duplicate(state: State, campaign_id: Id, given: DuplicateRequest) -> Reply:
    """Create a draft with the same plan, questions and settings, and with `items` the same items.

    Answers, workers, links, secrets, completion code and return address are not copied.
    """
    name, items = given.name, given.items
    return duplicate_campaign(state.store, state.media, campaign_id, name, items)


@routes.page("POST /c/{campaign_id}/duplicate", "editor")
async def duplicate_by_form(request: Request, state: State, campaign_id: Id) -> Response:
    """Make a draft like a campaign."""
    form = await request.form()
    details = (campaign_id, str(form.get("name", "")), form.get("items") == "on")
    made = await run_in_threadpool(duplicate_campaign, state.store, state.media, *details)
    return go(request, f"/c/{made['id']}/{'share' if made['items'] else 'plan'}")


@routes.page("POST /c/{campaign_id}/discard", "editor")
def discard(request: Request, state: State, campaign_id: Id) -> Response:
    """Delete a draft with its items, links and uploaded files."""
    state.store.write(lambda c: deleting.discard(c, campaign_id, state.now))
    if state.media is not None:
        state.media.remove(campaign_id)
    return go(request, "/")


@routes.api(f"POST {BASE}/delete", "admin")
def delete(state: State, campaign_id: Id, given: DeleteRequest) -> Reply:
    """Delete a campaign with its items, answers, workers, links, webhooks and media, for good.

    `name` must be its name. A campaign that is running has to be paused first.
    """
    return delete_campaign(state.store, state.media, campaign_id, given.name)


# --------------------------------------------------------------------------------- status

moves = Routes("owner")
"""Behind the others: its path has a parameter where theirs have a word."""


@moves.api(f"POST {BASE}/{{verb}}", "editor")
def move(tx: Write, campaign_id: Id, verb: Literal["start", "pause", "resume", "finish"]) -> Reply:
    """Start, pause, resume or finish."""
    if verb != "finish" or get_campaign(tx.connection, campaign_id).status != "finished":
        campaigns.set_status(tx.connection, campaign_id, STATUS_AFTER[verb], tx.now)
    return progress(tx.connection, campaign_id, tx.now)
