"""The list of campaigns, and the first step of a new one."""

from __future__ import annotations

import asyncio
from functools import cache

from fastapi import APIRouter, Request
from sqlalchemy.engine import Connection
from starlette.datastructures import FormData, UploadFile
from starlette.responses import Response

from crowdtree import io as files
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import plural
from crowdtree.planning import Report
from crowdtree.server.settings.presets import PRESETS
from crowdtree.server.store.db.campaign_row import list_campaigns
from crowdtree.server.store.queries.progress import progress
from crowdtree.server.store.types import JsonObject
from crowdtree.server.web.auth import OWNER_ONLY, OwnerNeeded
from crowdtree.server.web.hints import PASTED
from crowdtree.server.web.pages.base import PageRoute, go, render
from crowdtree.server.web.pages.progress_stream import with_progress
from crowdtree.server.web.plan_jobs import EXAMPLE
from crowdtree.server.web.requests import Number, state_of
from crowdtree.server.web.services.duplicates import duplicate_campaign
from crowdtree.server.web.services.plans import Table, create_draft, discard_draft

router = APIRouter(route_class=PageRoute, dependencies=OWNER_ONLY)
MAX_LISTED = 200


@router.get("/")
async def home(request: Request, owner: OwnerNeeded) -> Response:
    """List the campaigns."""
    state = state_of(request)

    def look(connection: Connection) -> list[JsonObject]:
        rows = list_campaigns(connection)[:MAX_LISTED]
        return [{**row.to_dict(), **progress(connection, row.id, state.now)} for row in rows]

    rows = await state.store.aread(look)
    return render(request, "home.html", owner=owner, campaigns=rows, now=state.now)


@router.get("/new")
async def new(request: Request, owner: OwnerNeeded) -> Response:
    """Ask for the table."""
    state_of(request).plans.process.open()  # it starts while the owner chooses a table
    return render(request, "new.html", owner=owner, examples=_examples(), presets=PRESETS)


@cache
def _examples() -> dict[str, str]:
    """Describe the examples that a campaign can ask about in a few words."""
    found = {}
    for name in sorted(files.EXAMPLES):
        problem = files.example(name)
        if not problem.is_yes_no:
            continue
        title = "Table 1 of the paper" if name == "table1" else name.capitalize()
        size = plural(problem.n_classes, "class", "classes")
        found[name] = f"{title}: {size}, {plural(problem.n_questions, 'question')}"
    return found


@router.post("/new")
async def create(request: Request) -> Response:
    """Read the table and make a draft with the default plan, reporting progress to a script."""
    state = state_of(request)
    form = await request.form()
    table = await _table(form)
    name = (str(form.get("name", "")).strip() or table.title)[:200]
    who = str(form.get("who", "open"))

    async def make(report: Report) -> str:
        return f"/c/{await create_draft(state, name, who, table, report)}/plan"

    return await with_progress(request, make)


async def _table(form: FormData) -> Table:
    """Read what was uploaded, pasted or chosen."""
    options: JsonObject = {}
    if form.get("dash") in ("inapplicable", "either"):
        options["dash"] = form["dash"]
    upload = form.get("table")
    if isinstance(upload, UploadFile) and upload.filename:
        title = upload.filename.rsplit(".", 1)[0]
        return Table(await upload.read(), upload.filename, title, options)
    if str(form.get("pasted", "")).strip():
        return Table(str(form["pasted"]).encode(), PASTED, "", options)
    if form.get("example") in files.EXAMPLES:
        example = str(form["example"])
        return Table(b"", f"{EXAMPLE}{example}", f"Example: {example}", {})
    raise CrowdtreeError("Choose a file with your table, paste it, or choose an example.")


@router.post("/c/{number}/duplicate")
async def duplicate(request: Request, number: Number) -> Response:
    """Make a draft like a campaign."""
    state = state_of(request)
    form = await request.form()
    name, items = str(form.get("name", "")), form.get("items") == "on"
    made = await asyncio.to_thread(
        duplicate_campaign, state.store, state.media, number, name, items
    )
    return go(request, f"/c/{made['id']}/{'share' if made['items'] else 'plan'}")


@router.post("/c/{number}/discard")
async def discard(request: Request, number: Number) -> Response:
    """Delete a draft."""
    state = state_of(request)
    await discard_draft(state, number)
    return go(request, "/")
