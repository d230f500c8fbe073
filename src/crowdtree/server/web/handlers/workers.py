"""Workers of a campaign: their links, their reliability, their answers, and what stops them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import Query, Request
from pydantic import Field

from crowdtree.core.problem import DASH, Problem
from crowdtree.server.store.owner import people
from crowdtree.server.store.owner.people import WorkerStatus
from crowdtree.server.store.queries.workers import (
    WORKER_ORDERS,
    WORKERS_PAGE,
    WorkerAnswer,
    get_worker,
    list_exclusions,
    listed_workers,
    some_workers,
    worker_log,
)
from crowdtree.server.store.tokens import code_of, signing_key
from crowdtree.server.store.types import JsonObject
from crowdtree.server.web.handlers.items import FATES
from crowdtree.server.web.routing import Body, Id, Read, Reply, Routes, State, Write, address_of
from crowdtree.server.web.services.campaigns import erase_worker
from crowdtree.server.web.words import ago

routes = Routes("owner")
BASE = "/api/campaigns/{campaign_id}"
WORKER_STATUS: dict[str, WorkerStatus] = {
    "pause": "paused",
    "resume": "active",
    "block": "blocked",
}
MAX_LINK = 1000
"""Characters of a link; the QR code of a longer one is too fine for phones."""
BORDER = 4
"""Blank modules around a QR code, which readers need."""


class Invitation(Body):
    """A worker to invite."""

    name: Annotated[str, Field(max_length=200)] = ""


class JoinLink(Body):
    """Whether the join links that were made before stay alive."""

    keep: bool = False


# --------------------------------------------------------------------------------- links


@routes.api(f"POST {BASE}/workers/invite", "editor", status_code=201)
def invite(tx: Write, campaign_id: Id, given: Invitation) -> JsonObject:
    """Invite a worker: a personal token and link, shown only once, and a QR code of it (SVG)."""
    campaign = tx.campaign(campaign_id)
    one_question = campaign.settings.tasks.one_question_per_worker
    worker, token = people.invite(
        tx.connection, campaign_id, given.name, tx.policy(campaign), one_question, tx.now
    )
    return {"id": worker, **_link(tx.request, "w", token)}


@routes.api(f"POST {BASE}/join-link", "editor", status_code=201)
def join_link(tx: Write, campaign_id: Id, given: JoinLink | None = None) -> dict[str, str]:
    """Make an open join link; earlier ones stop working unless `keep` is set.

    `qr` is a QR code of it, an SVG picture.
    """
    tx.campaign(campaign_id)
    keep = given is not None and given.keep
    return _link(tx.request, "join", people.join_link(tx.connection, campaign_id, tx.now, keep))


def _link(request: Request, kind: str, token: str) -> dict[str, str]:
    """A link that is shown once, and its QR code."""
    link = f"/{kind}/{token}"
    return {"token": token, "link": link, "qr": qr_svg(address_of(request, link))}


def qr_svg(link: str) -> str:
    """Draw a link as a QR code, an SVG picture without scripts; empty for a link that is too long.

    It is black on white in dark mode too, because few readers know inverted codes.

    >>> qr_svg("https://label.example/join/abc")[:40]
    '<svg xmlns="http://www.w3.org/2000/svg" '
    """
    if len(link) > MAX_LINK:
        return ""
    import segno  # takes a while, and few requests need it

    out = io.BytesIO()
    segno.make(link, error="m", micro=False).save(
        out, kind="svg", border=BORDER, dark="#000", light="#fff", xmldecl=False, omitsize=True
    )
    return out.getvalue().decode().strip()


@routes.api(f"GET {BASE}/signing-key", "editor")
def read_signing_key(tx: Read, campaign_id: Id) -> dict[str, str]:
    """Read the key with which participant ids in join links are signed; keep it secret.

    The setting `people.signing_key` is its number: the next number is a new key. Links that were
    signed before work until `people.oldest_signing_key` is raised.
    """
    campaign = tx.campaign(campaign_id)
    return {"key": signing_key(campaign.secret, campaign.settings.people.signing_key)}


# ------------------------------------------------------------------------------- workers


@routes.api(f"GET {BASE}/workers", "viewer")
def list_workers(
    tx: Read, campaign_id: Id, after: Annotated[int, Query(ge=0, le=2**53)] = 0
) -> Sequence[Reply]:
    """List workers with their record and reliability, up to 1000 after a worker's id."""
    problem = tx.policy(tx.campaign(campaign_id)).problem
    return listed_workers(tx.connection, campaign_id, problem, after)


@routes.api(f"POST {BASE}/workers/{{worker}}/erase", "admin")
def erase(state: State, campaign_id: Id, worker: Id) -> dict[str, bool]:
    """Delete the personal data of a worker, who is blocked; the answers stay under a number."""
    erase_worker(state.store, campaign_id, worker)
    return {"done": True}


@routes.api(f"POST {BASE}/workers/{{worker}}/{{verb}}", "editor")
def change_worker(
    tx: Write, campaign_id: Id, worker: Id, verb: Literal["pause", "resume", "block", "link"]
) -> JsonObject:
    """Pause, resume or block a worker, or make a new personal link."""
    if verb == "link":
        token = people.new_link(tx.connection, campaign_id, worker, tx.now)
        return {"id": worker, **_link(tx.request, "w", token)}
    status = WORKER_STATUS[verb]
    people.set_worker_status(tx.connection, campaign_id, worker, status, tx.now)
    return {"id": worker, "status": status}


@routes.page("GET /c/{campaign_id}/workers", "viewer", "workers.html")
def listed(
    tx: Read, campaign_id: Id, sort: str = "answers", skip: int = Query(0, ge=0, le=10**9)
) -> Reply:
    """List workers."""
    sort = sort if sort in WORKER_ORDERS else "answers"
    campaign = tx.campaign(campaign_id)
    problem = tx.policy(campaign).problem
    rows = some_workers(tx.connection, campaign_id, problem, sort=sort, skip=skip)
    return {
        "campaign": campaign,
        "rows": [{**row, "seen": ago(row["seen_at"], tx.now)} for row in rows],
        "more": skip + len(rows) if len(rows) == WORKERS_PAGE else None,
        "sort": sort,
        "expected": 1 - float(problem.worker_error.mean()),
    }


@routes.page("GET /c/{campaign_id}/workers/{worker}", "viewer", "person.html")
def one(tx: Read, campaign_id: Id, worker: Id) -> Reply:
    """Show a worker with the last answers."""
    campaign = tx.campaign(campaign_id)
    problem = tx.policy(campaign).problem
    log = [
        {
            **line,
            "text": problem.text(line["question"]),
            "words": FATES.get(line["fate"], line["fate"]),
            "agrees": _agrees(problem, line),
        }
        for line in worker_log(tx.connection, campaign_id, worker)
    ]
    return {
        "campaign": campaign,
        "row": get_worker(tx.connection, campaign_id, worker, problem),
        "code": code_of(campaign.settings, campaign.secret, worker),
        "log": log,
        "exclusions": list_exclusions(tx.connection, campaign_id, worker),
        "now": tx.now,
    }


def _agrees(problem: Problem, line: WorkerAnswer) -> bool | None:
    """Whether an answer agrees with the gold class or the label of the item."""
    truth = line["label"] if line["gold"] is None else line["gold"]
    if truth is None or line["value"] is None:
        return None
    outcome = int(problem.outcome[line["question"], truth])
    return None if outcome == DASH else outcome == line["value"]
