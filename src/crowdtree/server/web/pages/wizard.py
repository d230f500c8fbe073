"""The steps of a new campaign: the plan and the items."""

from __future__ import annotations

import asyncio
import io
import json
import re
from typing import IO

from fastapi import APIRouter, Request
from sqlalchemy.engine import Connection
from starlette.datastructures import UploadFile
from starlette.responses import HTMLResponse, Response

from crowdtree.core.errors import CrowdtreeError
from crowdtree.io.items import KEYS, item_format
from crowdtree.planning import MENU_ITEMS, Report
from crowdtree.server.settings.finish import BOUND
from crowdtree.server.settings.words import read_value, write_value
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign
from crowdtree.server.store.owner import campaigns, deleting
from crowdtree.server.store.types import AnyPolicy, JsonObject
from crowdtree.server.web.auth import OWNER_ONLY, OwnerNeeded
from crowdtree.server.web.pages.base import PageRoute, fragment, go, render
from crowdtree.server.web.pages.progress_stream import with_progress
from crowdtree.server.web.pages.settings import changes_of
from crowdtree.server.web.requests import Number, state_of
from crowdtree.server.web.services.items import MAX_NAMED, add_from_file
from crowdtree.server.web.state import AppState
from crowdtree.show.plots.html import tree_section
from crowdtree.show.plots.trees import tree_views

router = APIRouter(route_class=PageRoute, dependencies=OWNER_ONLY)
MAX_PASTED = 400
MAX_SIMULATED = 5000
"""Items of a simulated campaign; a share of more items takes hardly more checks."""


async def _campaign(state: AppState, number: int) -> Campaign:
    return await state.store.aread(lambda c: get_campaign(c, number))


@router.get("/c/{number}/plan")
async def plan(request: Request, number: Number, owner: OwnerNeeded) -> Response:
    """Show the plan, and what each error costs."""
    state = state_of(request)
    campaign = await _campaign(state, number)
    policy = state.policy(campaign)
    values: JsonObject = {"owner": owner, "campaign": campaign}
    found = state.plans.known(campaign.problem)
    if campaign.status == "draft" and found is None:
        return render(request, "working.html", **values)
    performance = await state.plans.performance(policy)
    values |= {"performance": performance, "tree": await asyncio.to_thread(_tree, request, policy)}
    values["costs"] = policy.problem.loss is not None
    if found is not None:
        chosen = found.nearest(policy, performance).key
        values |= {"menu": found, "chosen": chosen, "simulated": MENU_ITEMS}
        certify = write_value(BOUND, campaign.settings.finish.max_wrong_labels)
        values |= {"certify": certify, "most": MAX_SIMULATED}
    return render(request, "plan.html", **values)


@router.post("/c/{number}/plan/ready")
async def ready(request: Request, number: Number) -> Response:
    """Work out the choices again after a restart, reporting progress."""
    state = state_of(request)
    campaign = await _campaign(state, number)

    async def make(report: Report) -> str:
        await state.plans.menu(campaign.problem, report)
        return f"/c/{number}/plan"

    return await with_progress(request, make)


@router.get("/c/{number}/plan/tree")
async def tree(request: Request, number: Number, choice: str = "") -> Response:
    """Draw the tree of a choice."""
    campaign = await _campaign(state_of(request), number)
    found = await state_of(request).plans.menu(campaign.problem)
    policy = found.get(choice).policy
    return HTMLResponse(await asyncio.to_thread(_tree, request, policy))


@router.get("/c/{number}/plan/checks")
async def checks(
    request: Request, number: Number, choice: str = "", certify: str = "", items: str = ""
) -> Response:
    """Say how many checks a certificate takes with a choice, and what watching costs."""
    state = state_of(request)
    campaign = await _campaign(state, number)
    bound = read_value(BOUND, certify.strip()[:20])
    if bound is None:
        return HTMLResponse("")
    if not isinstance(bound, float) or not 0 < bound < 1:
        raise CrowdtreeError("certify: expected a percentage between 0 and 100")
    count = items.strip().replace(",", "")[:9]
    if not count.isascii() or not count.isdigit() or not 1 <= int(count) <= MAX_SIMULATED:
        raise CrowdtreeError(f"items: expected a whole number from 1 to {MAX_SIMULATED:,}")
    policy = (await state.plans.menu(campaign.problem)).get(choice).policy
    found = await state.plans.certificate(policy, bound, int(count))
    return HTMLResponse(fragment(request, "part-checks.html", found=found))


def _tree(request: Request, policy: AnyPolicy) -> str:
    drawn = tree_section(tree_views(policy.plan)) if policy.plan is not None else ""
    return fragment(request, "part-tree.html", drawn=drawn, problem=policy.problem, policy=policy)


@router.post("/c/{number}/plan")
async def choose(request: Request, number: Number) -> Response:
    """Save the chosen plan and the price."""
    state = state_of(request)
    form = await request.form()
    campaign = await _campaign(state, number)
    choice = (await state.plans.menu(campaign.problem)).get(str(form.get("choice", "")))
    changes = changes_of(form, ("money.price", "money.currency", BOUND))

    def apply(connection: Connection) -> None:
        deleting.change_policy(connection, number, choice.policy, state.now)
        campaigns.change_settings(connection, number, choice.policy, changes, state.now)

    await state.store.awrite(apply)
    return go(request, f"/c/{number}/items")


# -------------------------------------------------------------------------------- items


@router.post("/c/{number}/items")
async def add(request: Request, number: Number) -> Response:
    """Add items from a file or from pasted lines."""
    state = state_of(request)
    form = await request.form()
    upload, pasted = form.get("items"), form.get("pasted")
    file: IO[bytes]
    if isinstance(upload, UploadFile) and upload.filename:
        file, kind = upload.file, item_format(upload.filename)
    else:
        if isinstance(pasted, UploadFile):  # long texts are sent as a file
            pasted = (await pasted.read()).decode("utf-8", "replace")
        content, kind = _pasted(str(pasted or ""))
        file = io.BytesIO(content)
    media = state.media
    made = await asyncio.to_thread(add_from_file, state.store, number, file, kind, media)
    other = made["conflicts"]
    same = made["read"] - made["added"] - len(other)
    counts = f"added={made['added']}&same={same}&aside={made['set_aside']}"
    if other:
        unit = "row" if kind == "xlsx" else "line"
        lines = ".".join(map(str, other[:MAX_NAMED]))
        counts += f"&other={len(other)}&unit={unit}&lines={lines}"
    return go(request, f"/c/{number}/items?{counts}")


def _pasted(text: str) -> tuple[bytes, str]:
    """Read pasted items: a table with a column `task`, or simply one item per line.

    >>> _pasted("a robin\\na trout\\n")
    (b'{"task": "a robin", "text": "a robin"}\\n{"task": "a trout", "text": "a trout"}\\n', 'jsonl')
    >>> _pasted("task,text\\n1,x\\n")
    (b'task,text\\n1,x\\n', 'csv')
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise CrowdtreeError("Choose a file with your items, or paste one item per line.")
    header = {cell.strip().lower() for cell in re.split(r"[,;\t]", lines[0])}
    if len(header) > 1 and header & set(KEYS):
        return text.encode(), "csv"
    if lines[0].startswith("{"):
        return text.encode(), "jsonl"
    rows = ({"task": line[:MAX_PASTED], "text": line} for line in lines)
    return "".join(json.dumps(row) + "\n" for row in rows).encode(), "jsonl"
