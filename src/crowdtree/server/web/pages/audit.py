"""The owner's page of the audit, and the page on which auditors check items."""

from __future__ import annotations

from typing import cast

from fastapi import APIRouter, Request
from sqlalchemy.engine import Connection
from starlette.responses import Response

from crowdtree.server.settings.finish import BOUND
from crowdtree.server.settings.words import read_value, write_value
from crowdtree.server.store.audits.checking import AuditorLink, listed_auditors
from crowdtree.server.store.audits.report import AuditReport, unsure_items
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign
from crowdtree.server.store.types import JsonObject
from crowdtree.server.web.auth import AUDITOR_COOKIE, OWNER_ONLY, AuditorHash, OwnerNeeded, csrf_of
from crowdtree.server.web.pages.base import PageRoute, fragment, go, render
from crowdtree.server.web.pages.language import keep_language, speech_of
from crowdtree.server.web.pages.worker import shown_item
from crowdtree.server.web.requests import Number, state_of
from crowdtree.server.web.services import audits

router = APIRouter(route_class=PageRoute)


@router.get("/c/{number}/audit")
async def page(request: Request, number: Number, owner: OwnerNeeded) -> Response:
    """Show what is certified, and the links for those who check."""
    state = state_of(request)

    def look(
        connection: Connection,
    ) -> tuple[Campaign, list[AuditorLink], list[tuple[int, str]]]:
        campaign = get_campaign(connection, number)
        links = listed_auditors(connection, number)
        return campaign, links, unsure_items(connection, number)

    campaign, links, unsure = await state.store.aread(look)
    found = await audits.report(state, number)
    claims = found["claims"]
    wanted = campaign.settings.finish.max_wrong_labels if claims is None else claims["wanted"]
    return render(
        request,
        "audit.html",
        owner=owner,
        campaign=campaign,
        found=found,
        part=await audit_part(request, campaign, found),
        wanted=write_value(BOUND, wanted),
        links=links,
        unsure=unsure,
        base=state.options.url,
    )


@router.post("/c/{number}/audit", dependencies=OWNER_ONLY)
async def start(request: Request, number: Number) -> Response:
    """Start an audit."""
    form = await request.form()
    bound = cast("float | None", read_value(BOUND, str(form.get("bound", ""))))
    await audits.start(state_of(request), number, bound)
    return go(request, f"/c/{number}/audit")


async def audit_part(request: Request, campaign: Campaign, found: AuditReport | None = None) -> str:
    """What is asked for, estimated and certified, with the chart and the next step."""
    state = state_of(request)
    found = found or await audits.report(state, campaign.id)
    chart = await audits.chart_of(state, campaign.id, found)
    return fragment(request, "part-audit.html", campaign=campaign, found=found, chart=chart)


@router.get("/check")
async def check(request: Request, who: AuditorHash) -> Response:
    """Show the page of an auditor."""
    state = state_of(request)
    me = await audits.report_auditor(state, who)
    campaign = await state.store.aread(lambda c: get_campaign(c, me["campaign_id"]))
    csrf = csrf_of(request.cookies.get(AUDITOR_COOKIE, ""))
    say = speech_of(request, campaign.settings)
    made = render(request, "check.html", me=me, csrf=csrf, say=say)
    keep_language(request, made)
    return made


@router.post("/check/next")
async def next_item(request: Request, who: AuditorHash) -> JsonObject:
    """Hand out an item, rendered."""
    found = await audits.hand_out(state_of(request), who)
    item = found["item"]
    return {**found, "item": None if item is None else shown_item(item)}
