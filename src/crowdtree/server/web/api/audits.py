"""Audits: owners start and read them, auditors check items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.engine import Connection
from starlette.responses import JSONResponse

from crowdtree.server.store import tokens
from crowdtree.server.store.audits import checking
from crowdtree.server.store.audits import checking as feeding
from crowdtree.server.store.audits.report import certificate
from crowdtree.server.store.types import JsonObject
from crowdtree.server.web.auth import OWNER_ONLY, AuditorHash
from crowdtree.server.web.requests import Number, Reply, State
from crowdtree.server.web.routing import GuardedRoute
from crowdtree.server.web.services import audits

router = APIRouter(route_class=GuardedRoute, tags=["audit"])
BASE = "/api/campaigns/{number}/audit"
Share = Annotated[float, Field(gt=0, lt=1)]


class AuditRequest(BaseModel):
    """An audit to start; without a bound, that of `finish.max_wrong_labels` is used."""

    model_config = ConfigDict(extra="forbid")
    bound: Share | None = None
    confidence: Share = 0.95


class LinkRequest(BaseModel):
    """The person who is to check labels."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(min_length=1, max_length=200)]


class CheckResult(BaseModel):
    """What a check found; `truth` is null where the person cannot tell."""

    model_config = ConfigDict(extra="forbid")
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


@router.get(BASE, dependencies=OWNER_ONLY)
async def look(state: State, number: Number) -> Reply:
    """Report the audit: what is certified, estimated, missing, per label and per person."""
    return await audits.report(state, number)


@router.post(BASE, status_code=201, dependencies=OWNER_ONLY)
async def start(state: State, number: Number, given: AuditRequest) -> Reply:
    """Start an audit of the labels that there are now; checks of the audit before stay known."""
    await audits.start(state, number, given.bound, given.confidence)
    return await audits.report(state, number)


@router.post(f"{BASE}/calibrate", dependencies=OWNER_ONLY)
async def calibrate(state: State, number: Number) -> dict[str, int]:
    """Calibrate the stated errors by what was checked: a revision, whose number is returned."""
    made = await state.store.awrite(
        lambda c: feeding.calibrate(c, state.store.audits, number, state.now)
    )
    return {"revision": made}


@router.get(f"{BASE}/certificate", dependencies=OWNER_ONLY)
async def download(state: State, number: Number) -> JSONResponse:
    """Download the certificate, which `crowdtree audit verify` checks."""
    found = await state.store.aread(lambda c: certificate(c, state.store.audits, number))
    head = {"content-disposition": f'attachment; filename="audit-{number}.json"'}
    return JSONResponse(found, headers=head)


@router.get(f"{BASE}/links", dependencies=OWNER_ONLY)
async def list_links(state: State, number: Number) -> Sequence[Reply]:
    """List the links for checking that work, without their secrets."""
    store = state.store
    return await store.aread(lambda c: checking.listed_auditors(c, number))


@router.post(f"{BASE}/links", status_code=201, dependencies=OWNER_ONLY)
async def make_link(state: State, number: Number, given: LinkRequest) -> JsonObject:
    """Make a personal link for checking, shown only once."""
    token, link = await state.store.awrite(
        lambda c: checking.invite_auditor(c, number, given.name, state.now)
    )
    return {**link, "token": token, "link": f"/a/{token}"}


@router.delete(f"{BASE}/links/{{token_id}}", dependencies=OWNER_ONLY)
async def end_link(state: State, number: Number, token_id: str) -> dict[str, bool]:
    """Revoke a link for checking by its id."""
    await state.store.awrite(lambda c: checking.revoke_auditor(c, number, token_id, state.now))
    return {"done": True}


@router.get("/api/auditor/me")
async def me(state: State, who: AuditorHash) -> Reply:
    """Report the campaign and its classes to the auditor."""
    return await audits.report_auditor(state, who)


@router.post("/api/auditor/next", response_model=ItemToCheck)
async def next_item(state: State, who: AuditorHash) -> JSONResponse:
    """Hand out an item to check, without its label."""
    return JSONResponse(dict(await audits.hand_out(state, who)))


@router.post("/api/auditor/record")
async def record(state: State, given: CheckResult, who: AuditorHash) -> dict[str, bool]:
    """Record the true class of an item; null for "cannot tell". A result is final."""

    def apply(connection: Connection) -> None:
        number, name = checking.auditor_of(connection, who, state.now)
        by = (who[: tokens.ID_LENGTH], name)
        audits = state.store.audits
        checking.record(connection, audits, number, *by, given.item, given.truth, state.now)

    await state.store.awrite(apply)
    return {"done": True}
