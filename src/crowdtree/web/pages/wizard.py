"""The steps of a new campaign: the plan and the items."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any

from fastapi import APIRouter, Request
from sqlalchemy.engine import Connection
from starlette.datastructures import UploadFile
from starlette.responses import HTMLResponse, Response

from crowdtree.errors import CrowdtreeError
from crowdtree.plots.html import tree_section
from crowdtree.plots.trees import tree_views
from crowdtree.policy import PlanPolicy, Policy
from crowdtree.store.db.campaign_row import Campaign, get_campaign
from crowdtree.store.owner import campaigns, drafts
from crowdtree.web.api.transfer import add_from_file
from crowdtree.web.auth import OwnerNeeded
from crowdtree.web.pages.base import Number, PageRoute, fragment, go, render
from crowdtree.web.pages.choices import SIMULATED
from crowdtree.web.pages.sharing import changes_of
from crowdtree.web.pages.telling import told
from crowdtree.web.site import Site, site_of
from crowdtree.web.studio import Tell

__all__ = ["router"]

router = APIRouter(route_class=PageRoute)
MOST_PASTED = 400


async def _campaign(site: Site, number: int) -> Campaign:
    return await site.store.aread(lambda c: get_campaign(c, number))


@router.get("/c/{number}/plan")
async def plan(request: Request, number: Number, owner: OwnerNeeded) -> Response:
    """Show the tree, and what each error costs."""
    site = site_of(request)
    campaign = await _campaign(site, number)
    policy = site.policy(campaign)
    values: dict[str, Any] = {"owner": owner, "campaign": campaign}
    found = site.plans.known(campaign.problem)
    if campaign.status == "draft" and found is None:
        return render(request, "working.html", **values)
    promise = await site.plans.promise(policy)
    values |= {"promise": promise, "tree": await asyncio.to_thread(_tree, request, policy)}
    if found is not None:
        chosen = found.nearest(policy, promise).key
        values |= {"offer": found, "chosen": chosen, "simulated": SIMULATED}
    return render(request, "plan.html", **values)


@router.post("/c/{number}/plan/ready")
async def ready(request: Request, number: Number, owner: OwnerNeeded) -> Response:
    """Work out the choices anew after a restart, saying how far it is."""
    del owner
    site = site_of(request)
    campaign = await _campaign(site, number)

    async def make(tell: Tell) -> str:
        await site.plans.offer(campaign.problem, tell)
        return f"/c/{number}/plan"

    return await told(request, make)


@router.get("/c/{number}/plan/tree")
async def tree(request: Request, number: Number, owner: OwnerNeeded, choice: str = "") -> Response:
    """Draw the tree of a choice."""
    del owner
    campaign = await _campaign(site_of(request), number)
    found = await site_of(request).plans.offer(campaign.problem)
    policy = found.get(choice).policy
    return HTMLResponse(await asyncio.to_thread(_tree, request, policy))


def _tree(request: Request, policy: Policy[Any]) -> str:
    drawn = tree_section(tree_views(policy.plan)) if isinstance(policy, PlanPolicy) else ""
    return fragment(request, "part-tree.html", drawn=drawn, problem=policy.problem, policy=policy)


@router.post("/c/{number}/plan")
async def choose(request: Request, number: Number, owner: OwnerNeeded) -> Response:
    """Take the chosen point and the price."""
    del owner
    site = site_of(request)
    form = await request.form()
    campaign = await _campaign(site, number)
    choice = (await site.plans.offer(campaign.problem)).get(str(form.get("choice", "")))
    changes = changes_of(form, ("price", "currency"))

    def apply(connection: Connection) -> None:
        drafts.change_policy(connection, number, choice.policy, site.now)
        campaigns.change_settings(connection, number, choice.policy, changes, site.now)

    await site.store.awrite(apply)
    return go(request, f"/c/{number}/items")


# -------------------------------------------------------------------------------- items


@router.post("/c/{number}/items")
async def add(request: Request, number: Number, owner: OwnerNeeded) -> Response:
    """Add items from a file or from pasted lines."""
    del owner
    site = site_of(request)
    form = await request.form()
    upload, pasted = form.get("items"), form.get("pasted")
    if isinstance(upload, UploadFile) and upload.filename:
        kind = _kind(upload.filename)
        made = await asyncio.to_thread(add_from_file, site.store, number, upload.file, kind)
    else:
        if isinstance(pasted, UploadFile):  # long texts are sent as a file
            pasted = (await pasted.read()).decode("utf-8", "replace")
        content, kind = _pasted(str(pasted or ""))
        made = await asyncio.to_thread(add_from_file, site.store, number, io.BytesIO(content), kind)
    same = made["read"] - made["added"]
    return go(request, f"/c/{number}/items?added={made['added']}&same={same}")


def _kind(name: str) -> str:
    suffix = name.lower().rpartition(".")[2]
    if suffix not in ("csv", "jsonl", "ndjson"):
        raise CrowdtreeError(f"{name[:80]}: save the items as .csv or .jsonl (one item a line)")
    return "csv" if suffix == "csv" else "jsonl"


def _pasted(text: str) -> tuple[bytes, str]:
    """Read pasted items: a table with a column `task`, or simply one item a line.

    >>> _pasted("a robin\\na trout\\n")
    (b'{"task": "a robin", "text": "a robin"}\\n{"task": "a trout", "text": "a trout"}\\n', 'jsonl')
    >>> _pasted("task,text\\n1,x\\n")
    (b'task,text\\n1,x\\n', 'csv')
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise CrowdtreeError("Choose a file with your items, or paste one item a line.")
    header = {cell.strip().lower() for cell in lines[0].split(",")}
    if len(header) > 1 and header & {"task", "id"}:
        return text.encode(), "csv"
    if lines[0].startswith("{"):
        return text.encode(), "jsonl"
    rows = ({"task": line[:MOST_PASTED], "text": line} for line in lines)
    return "".join(json.dumps(row) + "\n" for row in rows).encode(), "jsonl"
