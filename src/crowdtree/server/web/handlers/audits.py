"""Audits: owners start and read them, auditors check items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict, cast

from fastapi import Request
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse, Response

from crowdtree.audit import Standing
from crowdtree.io.items import visible
from crowdtree.server.settings.groups import BOUND
from crowdtree.server.settings.model import read_value, write_value
from crowdtree.server.store.audits import checking
from crowdtree.server.store.audits.report import (
    AuditReport,
    audit_report,
    certificate,
    history_of,
    unsure_items,
)
from crowdtree.server.store.db.campaign_row import Campaign
from crowdtree.server.store.tokens import ID_LENGTH
from crowdtree.server.store.types import JsonObject
from crowdtree.server.web.auth import AUDITOR_COOKIE, AuditorHash, csrf_of
from crowdtree.server.web.handlers.work_pages import shown_item
from crowdtree.server.web.language import keep_language, speech_of
from crowdtree.server.web.pages import fragment, go, render
from crowdtree.server.web.routing import Body, Id, Read, Reply, Routes, State, Write

routes = Routes("audit")
BASE = "/api/campaigns/{campaign_id}/audit"
MAX_CHARTS = 20
Share = Annotated[float, Field(gt=0, lt=1)]


class AuditRequest(Body):
    """An audit to start; without a bound, that of `finish.max_wrong_labels` is used."""

    bound: Share | None = None
    confidence: Share = 0.95


class LinkRequest(Body):
    """The person who is to check labels."""

    name: Annotated[str, Field(min_length=1, max_length=200)]


class CheckResult(Body):
    """What a check found; `truth` is null where the person cannot tell."""

    item: Annotated[int, Field(ge=1, le=2**53)]
    truth: Annotated[str, Field(max_length=1000)] | None


class ItemToCheck(BaseModel):
    """An item to check, or the reason why there is none.

    `reason`: done (the bound is reached, cannot be reached, or everything is checked), waiting
    (others hold what is left), asking again (labels are being made again), not started.
    """

    item: JsonObject | None
    number: int | None
    reason: str
    checked: int


class AuditorReport(TypedDict):
    """What an auditor reads about the campaign."""

    name: str
    campaign: str
    campaign_id: int
    classes: list[dict[str, str]]


# -------------------------------------------------------------------------------- owners


@routes.api(f"GET {BASE}", "viewer")
def look(tx: Read, campaign_id: Id) -> Reply:
    """Report the audit: what is certified, estimated, missing, per label and per person."""
    return _report(tx, campaign_id)


@routes.api(f"POST {BASE}", "editor", status_code=201)
async def start(state: State, campaign_id: Id, given: AuditRequest) -> Reply:
    """Start an audit of the labels that there are now; checks of the audit before stay known."""
    store, bound, confidence = state.store, given.bound, given.confidence
    await store.awrite(
        lambda c: checking.start(c, campaign_id, bound, state.now, confidence=confidence)
    )
    return await store.aread(lambda c: audit_report(c, store.audits, campaign_id))


def _report(tx: Read, campaign_id: int) -> AuditReport:
    return audit_report(tx.connection, tx.state.store.audits, campaign_id)


@routes.api(f"POST {BASE}/calibrate", "editor")
def calibrate(tx: Write, campaign_id: Id) -> dict[str, int]:
    """Calibrate the stated errors by what was checked: a revision, whose number is returned."""
    audits = tx.state.store.audits
    return {"revision": checking.calibrate(tx.connection, audits, campaign_id, tx.now)}


@routes.api(f"GET {BASE}/certificate", "viewer")
def download(tx: Read, campaign_id: Id) -> JSONResponse:
    """Download the certificate, which `crowdtree audit verify` checks."""
    found = certificate(tx.connection, tx.state.store.audits, campaign_id)
    head = {"content-disposition": f'attachment; filename="audit-{campaign_id}.json"'}
    return JSONResponse(found, headers=head)


@routes.api(f"GET {BASE}/links", "viewer")
def list_links(tx: Read, campaign_id: Id) -> Sequence[Reply]:
    """List the links for checking that work, without their secrets."""
    return checking.listed_auditors(tx.connection, campaign_id)


@routes.api(f"POST {BASE}/links", "editor", status_code=201)
def make_link(tx: Write, campaign_id: Id, given: LinkRequest) -> JsonObject:
    """Make a personal link for checking, shown only once."""
    token, link = checking.invite_auditor(tx.connection, campaign_id, given.name, tx.now)
    return {**link, "token": token, "link": f"/a/{token}"}


@routes.api(f"DELETE {BASE}/links/{{token_id}}", "editor")
def end_link(tx: Write, campaign_id: Id, token_id: str) -> dict[str, bool]:
    """Revoke a link for checking by its id."""
    checking.revoke_auditor(tx.connection, campaign_id, token_id, tx.now)
    return {"done": True}


@routes.page("GET /c/{campaign_id}/audit", "viewer", "audit.html")
def page(tx: Read, campaign_id: Id) -> Reply:
    """Show what is certified, and the links for those who check."""
    campaign, found = tx.campaign(campaign_id), _report(tx, campaign_id)
    claims = found["claims"]
    wanted = campaign.settings.finish.max_wrong_labels if claims is None else claims["wanted"]
    return {
        "campaign": campaign,
        "found": found,
        "part": audit_part(tx, campaign, found),
        "wanted": write_value(BOUND, wanted),
        "links": checking.listed_auditors(tx.connection, campaign_id),
        "unsure": unsure_items(tx.connection, campaign_id),
        "base": tx.state.options.url,
    }


@routes.page("POST /c/{campaign_id}/audit", "editor")
async def start_by_form(request: Request, state: State, campaign_id: Id) -> Response:
    """Start an audit."""
    form = await request.form()
    bound = cast("float | None", read_value(BOUND, str(form.get("bound", ""))))
    await state.store.awrite(lambda c: checking.start(c, campaign_id, bound, state.now))
    return go(request, f"/c/{campaign_id}/audit")


def audit_part(tx: Read, campaign: Campaign, found: AuditReport | None = None) -> str:
    """What is asked for, estimated and certified, with the chart and the next step."""
    found = found or _report(tx, campaign.id)
    chart = _chart(tx, campaign.id, found)
    return fragment("part-audit.html", campaign=campaign, found=found, chart=chart)


def _chart(tx: Read, campaign_id: int, found: AuditReport) -> str:
    """Draw how the bound fell, as SVG; nothing before the first check."""
    claims, charts = found["claims"], tx.state.charts
    if claims is None or not claims["checks"]:
        return ""
    key = (campaign_id, found["started_at"] or 0.0, claims["checks"])
    if key not in charts:
        history = history_of(tx.connection, tx.state.store.audits, campaign_id)
        if len(charts) >= MAX_CHARTS:
            charts.clear()
        checks = history[: claims["checks"]]
        charts[key] = _drawn(checks, claims["confidence"], claims["wanted"])
    return charts[key]


def _drawn(history: list[Standing], confidence: float, wanted: float | None) -> str:
    # altair is slow to import, and only this function needs it
    from crowdtree.show.plots.audits import audit_chart
    from crowdtree.show.plots.vega import chart_svg

    return chart_svg(audit_chart(history, confidence, wanted), page=True)


# ------------------------------------------------------------------------------ auditors


@routes.api("GET /api/auditor/me")
def me(tx: Read, who: AuditorHash) -> Reply:
    """Report the campaign and its classes to the auditor."""
    return _auditor_report(tx, who)[1]


def _auditor_report(tx: Read, who: str) -> tuple[Campaign, AuditorReport]:
    campaign_id, name = checking.auditor_of(tx.connection, who, tx.now)
    campaign = tx.campaign(campaign_id)
    classes = [
        {"name": entry["name"], "description": entry.get("description", "")}
        for entry in campaign.problem["classes"]
    ]
    return campaign, {
        "name": name,
        "campaign": campaign.name,
        "campaign_id": campaign_id,
        "classes": classes,
    }


@routes.api("POST /api/auditor/next", response_model=ItemToCheck)
def next_item(tx: Write, who: AuditorHash) -> JSONResponse:
    """Hand out an item to check, without its label."""
    return JSONResponse(dict(_hand_out(tx, who)))


def _hand_out(tx: Write, who: str) -> checking.Handed:
    """Hand the auditor an item: what workers see of it, and neither its label nor its error."""
    campaign_id, _ = checking.auditor_of(tx.connection, who, tx.now)
    audits, auditor = tx.state.store.audits, who[:ID_LENGTH]
    found = checking.hand_out(tx.connection, audits, campaign_id, auditor, tx.now)
    item = found["item"]
    if item is not None:
        found["item"] = {"task": item["task"], **visible(item)}
    return found


@routes.api("POST /api/auditor/record")
def record(tx: Write, given: CheckResult, who: AuditorHash) -> dict[str, bool]:
    """Record the true class of an item; null for "cannot tell". A result is final."""
    campaign_id, name = checking.auditor_of(tx.connection, who, tx.now)
    by, audits = (who[:ID_LENGTH], name), tx.state.store.audits
    checking.record(tx.connection, audits, campaign_id, *by, given.item, given.truth, tx.now)
    return {"done": True}


@routes.page("GET /check")
def check(tx: Read, who: AuditorHash) -> Response:
    """Show the page of an auditor."""
    campaign, me = _auditor_report(tx, who)
    csrf = csrf_of(tx.request.cookies.get(AUDITOR_COOKIE, ""))
    say = speech_of(tx.request, campaign.settings)
    made = render("check.html", me=me, csrf=csrf, say=say)
    keep_language(tx.request, made)
    return made


@routes.page("POST /check/next")
def next_rendered(tx: Write, who: AuditorHash) -> JsonObject:
    """Hand out an item, rendered."""
    found = _hand_out(tx, who)
    item = found["item"]
    return {**found, "item": None if item is None else shown_item(item)}
