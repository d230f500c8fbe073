"""The list of campaigns, and the first step of a new one."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from sqlalchemy.engine import Connection
from starlette.datastructures import UploadFile
from starlette.responses import Response

from crowdtree import files
from crowdtree.errors import CrowdtreeError
from crowdtree.store import Settings
from crowdtree.store.db.campaign_row import list_campaigns
from crowdtree.store.owner import campaigns, drafts
from crowdtree.store.queries.progress import progress
from crowdtree.text import plural
from crowdtree.web.auth import OwnerNeeded
from crowdtree.web.pages.base import Number, PageRoute, go, render
from crowdtree.web.pages.telling import told
from crowdtree.web.site import site_of
from crowdtree.web.studio import Tell

__all__ = ["router"]

router = APIRouter(route_class=PageRoute)
MOST_LISTED = 200


@router.get("/")
async def home(request: Request, owner: OwnerNeeded) -> Response:
    """List the campaigns."""
    site = site_of(request)

    def look(connection: Connection) -> list[dict[str, Any]]:
        rows = list_campaigns(connection)[:MOST_LISTED]
        return [{**row.to_dict(), **progress(connection, row.id, site.now)} for row in rows]

    rows = await site.store.aread(look)
    return render(request, "home.html", owner=owner, campaigns=rows, now=site.now)


@router.get("/new")
async def new(request: Request, owner: OwnerNeeded) -> Response:
    """Ask for the table."""
    site_of(request).plans.studio.open()  # it is ready by the time the table is chosen
    return render(request, "new.html", owner=owner, examples=_examples())


@cache
def _examples() -> dict[str, str]:
    """Say in a few words what the examples are."""
    found = {}
    for name in sorted(files.EXAMPLES):
        problem = files.example(name)
        what = "animals" if name == "animals" else "classes"
        found[name] = f"{problem.n_classes} {what}, {plural(problem.n_questions, 'question')}"
    return found


@router.post("/new")
async def create(request: Request, owner: OwnerNeeded) -> Response:
    """Read the table and make a draft with a sensible plan; a script hears how far it is."""
    del owner
    site = site_of(request)
    form = await request.form()
    table = await _table(form)
    name = (str(form.get("name", "")).strip() or table.title)[:200]

    async def make(tell: Tell) -> str:
        found = await site.plans.read(table.content, table.name, table.options, tell)
        policy = found.first().policy
        number = await site.store.awrite(
            lambda c: campaigns.create(c, name, policy, Settings(), site.now)
        )
        return f"/c/{number}/plan"

    return await told(request, make)


class Upload(NamedTuple):
    """A table on its way in; ``example:NAME`` needs no content."""

    content: bytes
    name: str
    title: str
    options: dict[str, Any]


async def _table(form: Any) -> Upload:
    """Take what was uploaded, pasted or chosen."""
    options: dict[str, Any] = {}
    if form.get("dash") in ("inapplicable", "either"):
        options["dash"] = form["dash"]
    upload = form.get("table")
    if isinstance(upload, UploadFile) and upload.filename:
        title = upload.filename.rsplit(".", 1)[0]
        return Upload(await upload.read(), upload.filename, title, options)
    if str(form.get("pasted", "")).strip():
        return Upload(str(form["pasted"]).encode(), "pasted.csv", "", options)
    if form.get("example") in files.EXAMPLES:
        example = str(form["example"])
        return Upload(b"", f"example:{example}", f"Example: {example}", {})
    raise CrowdtreeError("Choose a file with your table, paste it, or take an example.")


@router.post("/c/{number}/discard")
async def discard(request: Request, number: Number, owner: OwnerNeeded) -> Response:
    """Throw a draft away."""
    del owner
    site = site_of(request)
    await site.store.awrite(lambda c: drafts.discard(c, number, site.now))
    return go(request, "/")
