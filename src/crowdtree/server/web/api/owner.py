"""What an owner does: create, start, pause, finish, look, invite."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.engine import Connection
from starlette.responses import StreamingResponse

from crowdtree.server.settings.model import flat
from crowdtree.server.settings.presets import Who, changes_of, settings_for
from crowdtree.server.store.db.campaign_row import CampaignStatus, get_campaign
from crowdtree.server.store.db.campaign_row import list_campaigns as campaign_rows
from crowdtree.server.store.owner import campaigns, people
from crowdtree.server.store.owner import revisions as revising
from crowdtree.server.store.owner.people import WorkerStatus
from crowdtree.server.store.queries.items import item_trace
from crowdtree.server.store.queries.progress import Progress, list_revisions, progress
from crowdtree.server.store.queries.workers import WorkerFacts, listed_workers
from crowdtree.server.store.tokens import signing_key
from crowdtree.server.store.types import JsonObject
from crowdtree.server.web.auth import OWNER_ONLY
from crowdtree.server.web.plan_jobs import PolicyRequest, to_request
from crowdtree.server.web.qr import qr_svg
from crowdtree.server.web.requests import Number, Reply, State, address_of, event_response, state_of
from crowdtree.server.web.routing import GuardedRoute
from crowdtree.server.webhooks import hooks
from crowdtree.server.webhooks.addresses import check_address

router = APIRouter(
    route_class=GuardedRoute, prefix="/api/campaigns", tags=["owner"], dependencies=OWNER_ONLY
)
POLL_SECONDS = 10.0
STATUS_AFTER: dict[str, CampaignStatus] = {
    "start": "running",
    "resume": "running",
    "pause": "paused",
    "finish": "finishing",
}
WORKER_STATUS: dict[str, WorkerStatus] = {
    "pause": "paused",
    "resume": "active",
    "block": "blocked",
}


class NewCampaign(BaseModel):
    """A campaign to create."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(max_length=200)] = ""
    policy: PolicyRequest
    who: Who = "open"
    """Who will answer: the preset that `settings` change."""
    settings: JsonObject = {}


class NewPolicy(BaseModel):
    """A policy over the same classes and questions, and why it replaces the present one."""

    model_config = ConfigDict(extra="forbid")
    policy: PolicyRequest
    reason: Annotated[str, Field(max_length=2000)] = ""


class Invitation(BaseModel):
    """A worker to invite."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(max_length=200)] = ""


class JoinLink(BaseModel):
    """Whether the join links that were made before stay alive."""

    model_config = ConfigDict(extra="forbid")
    keep: bool = False


class HookRequest(BaseModel):
    """A webhook to add."""

    model_config = ConfigDict(extra="forbid")
    url: Annotated[str, Field(min_length=8, max_length=1000)]


@router.get("")
async def list_campaigns(state: State) -> list[JsonObject]:
    """List the campaigns."""
    return [row.to_dict() for row in await state.store.aread(campaign_rows)]


@router.post("", status_code=201)
async def create(state: State, given: NewCampaign) -> JsonObject:
    """Create a campaign from a problem or a plan."""
    settings = settings_for(given.who).changed(flat(given.settings))
    policy = await state.plans.policy_of(given.policy)
    number = await state.store.awrite(
        lambda c: campaigns.create(c, given.name, policy, settings, state.now)
    )
    return {"id": number}


@router.get("/{number}")
async def look(state: State, number: Number) -> Reply:
    """Report the progress of a campaign."""
    return await state.store.aread(lambda c: progress(c, number, state.now))


@router.get("/{number}/definition")
async def definition(state: State, number: Number) -> JsonObject:
    """Read a campaign's name, policy and settings, as `POST /api/campaigns` takes them."""
    campaign = await state.store.aread(lambda c: get_campaign(c, number))
    policy = await asyncio.to_thread(lambda: to_request(state.policy(campaign)))
    settings = campaign.settings.model_dump(mode="json")
    return {"name": campaign.name, "policy": policy, "settings": settings}


@router.post("/{number}/revise")
async def revise(state: State, number: Number, given: NewPolicy) -> JsonObject:
    """Replace the policy of a running campaign; its items are replayed in the background.

    The policy is as in `POST /api/campaigns`, over the same classes, questions and right answers.
    """
    policy, why = await state.plans.policy_of(given.policy), {"text": given.reason.strip()}
    revision = await state.store.awrite(
        lambda c: revising.revise(c, number, policy, why, state.now)
    )
    return {"revision": revision}


@router.get("/{number}/revisions")
async def revisions(state: State, number: Number) -> Sequence[Reply]:
    """List the policies of a campaign that was revised, with when, who and why."""
    return await state.store.aread(lambda c: list_revisions(c, number))


@router.patch("/{number}/settings")
async def change(state: State, number: Number, changes: JsonObject) -> JsonObject:
    """Change some settings, by group: `{"labels": {"people_per_item": 3}}`.

    `{"who": "colleagues"}` changes all settings of this preset.
    """
    wanted = changes_of(changes)

    def apply(connection: Connection) -> JsonObject:
        policy = state.policy(get_campaign(connection, number))
        return campaigns.change_settings(connection, number, policy, wanted, state.now).model_dump()

    return await state.store.awrite(apply)


@router.get("/{number}/events", response_class=StreamingResponse)
async def events(request: Request, number: Number) -> StreamingResponse:
    """Stream the progress as server-sent events, at most one per second."""
    state = state_of(request)

    async def read() -> Progress:
        return await state.store.aread(lambda c: progress(c, number, state.now))

    return await event_response(request, number, "progress", read, POLL_SECONDS)


@router.get("/{number}/workers")
async def list_workers(
    state: State,
    number: Number,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
) -> Sequence[Reply]:
    """List workers with their record and reliability, up to 1000 after a worker's id."""

    def read(connection: Connection) -> list[WorkerFacts]:
        problem = state.policy(get_campaign(connection, number)).problem
        return listed_workers(connection, number, problem, after)

    return await state.store.aread(read)


@router.post("/{number}/workers/invite", status_code=201)
async def invite(request: Request, number: Number, given: Invitation) -> JsonObject:
    """Invite a worker: a personal token and link, shown only once, and a QR code of it (SVG)."""
    state = state_of(request)

    def apply(connection: Connection) -> tuple[int, str]:
        campaign = get_campaign(connection, number)
        dedicated = campaign.settings.tasks.one_question_per_worker
        policy = state.policy(campaign)
        return people.invite(connection, number, given.name, policy, dedicated, state.now)

    worker, token = await state.store.awrite(apply)
    return {"id": worker, **_link(request, "w", token)}


@router.post("/{number}/workers/{worker}/{verb}")
async def change_worker(
    request: Request,
    number: Number,
    worker: Number,
    verb: Literal["pause", "resume", "block", "link"],
) -> JsonObject:
    """Pause, resume or block a worker, or make a new personal link."""
    state = state_of(request)
    if verb == "link":
        token = await state.store.awrite(lambda c: people.new_link(c, number, worker, state.now))
        return {"id": worker, **_link(request, "w", token)}
    status = WORKER_STATUS[verb]
    await state.store.awrite(
        lambda c: people.set_worker_status(c, number, worker, status, state.now)
    )
    return {"id": worker, "status": status}


@router.post("/{number}/join-link", status_code=201)
async def join_link(
    request: Request, number: Number, given: JoinLink | None = None
) -> dict[str, str]:
    """Make an open join link; earlier ones stop working unless `keep` is set.

    `qr` is a QR code of it, an SVG picture.
    """
    state = state_of(request)

    def apply(connection: Connection) -> str:
        get_campaign(connection, number)
        return people.join_link(connection, number, state.now, given is not None and given.keep)

    token = await state.store.awrite(apply)
    return _link(request, "join", token)


def _link(request: Request, kind: str, token: str) -> dict[str, str]:
    """A link that is shown once, and its QR code."""
    link = f"/{kind}/{token}"
    return {"token": token, "link": link, "qr": qr_svg(address_of(request, link))}


@router.get("/{number}/signing-key")
async def read_signing_key(state: State, number: Number) -> dict[str, str]:
    """Read the key with which participant ids in join links are signed; keep it secret.

    The setting `people.signing_key` is its number: the next number is a new key. Links that were
    signed before work until `people.oldest_signing_key` is raised.
    """
    found = await state.store.aread(lambda c: get_campaign(c, number))
    return {"key": signing_key(found.secret, found.settings.people.signing_key)}


@router.get("/{number}/items/{item}")
async def trace(state: State, number: Number, item: Number) -> Reply:
    """Read an item with every answer to it and its label."""
    return await state.store.aread(lambda c: item_trace(c, number, item))


@router.get("/{number}/webhooks")
async def list_webhooks(state: State, number: Number) -> Sequence[Reply]:
    """List the webhooks, without their secrets."""
    store = state.store
    return await store.aread(lambda c: hooks.listed_hooks(c, number))


@router.post("/{number}/webhooks", status_code=201)
async def add_webhook(state: State, number: Number, given: HookRequest) -> Reply:
    """Add a webhook for labelled items and the end; the secret is shown only once."""
    url = await check_address(given.url, state.options.private_webhooks)
    seal = state.secret_key.seal
    return await state.store.awrite(lambda c: hooks.add_hook(c, number, url, state.now, seal))


@router.get("/{number}/webhooks/{hook}/deliveries")
async def list_deliveries(state: State, number: Number, hook: Number) -> Sequence[Reply]:
    """List the last messages of a webhook; `error` says why the last attempt failed."""
    store = state.store
    return await store.aread(lambda c: hooks.hook_deliveries(c, number, hook))


@router.post("/{number}/webhooks/{hook}/retry")
async def retry_webhook(state: State, number: Number, hook: Number) -> dict[str, bool]:
    """Send pending messages now, also after the webhook was given up."""
    await state.store.awrite(lambda c: hooks.retry_hook(c, number, hook, state.now))
    return {"done": True}


@router.delete("/{number}/webhooks/{hook}")
async def remove_webhook(state: State, number: Number, hook: Number) -> dict[str, bool]:
    """Remove a webhook."""
    await state.store.awrite(lambda c: hooks.remove_hook(c, number, hook, state.now))
    return {"done": True}


@router.post("/{number}/{verb}")
async def move(
    state: State, number: Number, verb: Literal["start", "pause", "resume", "finish"]
) -> Reply:
    """Start, pause, resume or finish."""
    status = STATUS_AFTER[verb]

    def apply(connection: Connection) -> Progress:
        if verb == "finish" and get_campaign(connection, number).status == "finished":
            return progress(connection, number, state.now)
        campaigns.set_status(connection, number, status, state.now)
        return progress(connection, number, state.now)

    return await state.store.awrite(apply)
