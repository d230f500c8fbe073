"""The list of campaigns, and the first step of a new one."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

from fastapi import APIRouter, Request
from starlette.datastructures import UploadFile
from starlette.responses import Response

from crowdtree import files
from crowdtree.errors import CrowdtreeError
from crowdtree.policy import Policy
from crowdtree.problem import Problem as Table
from crowdtree.store import Settings, campaigns, drafts
from crowdtree.store.progress import progress
from crowdtree.text import plural
from crowdtree.web.auth import OwnerNeeded
from crowdtree.web.building import problem_from_bytes
from crowdtree.web.pages.base import Number, PageRoute, go, render
from crowdtree.web.pages.choices import offer
from crowdtree.web.site import site_of

__all__ = ["router"]

router = APIRouter(route_class=PageRoute)
MOST_LISTED = 200
DEFAULT = ("tree-0.02", "tree-0.05", "tree-0.01", "tree-0.1")


@router.get("/")
async def home(request: Request, owner: OwnerNeeded) -> Response:
    """List the campaigns."""
    site = site_of(request)

    def look(connection: Any) -> list[dict[str, Any]]:
        rows = campaigns.listed(connection)[:MOST_LISTED]
        return [{**row, **progress(connection, row["id"], site.now)} for row in rows]

    rows = await site.store.aread(look)
    return render(request, "home.html", owner=owner, campaigns=rows, now=site.now)


@router.get("/new")
async def new(request: Request, owner: OwnerNeeded) -> Response:
    """Ask for the table."""
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
    """Read the table and make a draft with a sensible plan."""
    del owner
    site = site_of(request)
    form = await request.form()
    problem, name = await _table(form)
    name = str(form.get("name", "")).strip()[:200] or name
    policy = await asyncio.to_thread(_first_policy, problem)
    number = await site.store.awrite(
        lambda c: campaigns.create(c, name, policy, Settings(), site.now)
    )
    return go(request, f"/c/{number}/plan")


async def _table(form: Any) -> tuple[Table, str]:
    """Read the problem from what was uploaded, pasted or chosen."""
    options: dict[str, Any] = {}
    if form.get("dash") in ("inapplicable", "either"):
        options["dash"] = form["dash"]
    upload = form.get("table")
    if isinstance(upload, UploadFile) and upload.filename:
        content, name = await upload.read(), upload.filename
    elif str(form.get("pasted", "")).strip():
        content, name = str(form["pasted"]).encode(), "pasted.csv"
    elif form.get("example") in files.EXAMPLES:
        example = str(form["example"])
        return files.example(example), f"Example: {example}"
    else:
        raise CrowdtreeError("Choose a file with your table, paste it, or take an example.")
    problem = await asyncio.to_thread(lambda: problem_from_bytes(content, name, **options))
    stem = name.rsplit(".", 1)[0]
    return problem, "" if stem == "pasted" else stem


def _first_policy(problem: Table) -> Policy[Any]:
    from crowdtree.design import design, refuse_groups
    from crowdtree.store.codec import problem_to_json

    refuse_groups(design(problem, "gain", allow_groups=True))
    found = offer(problem_to_json(problem))
    for key in DEFAULT:
        for choice in found.choices:
            if choice.key == key:
                return choice.policy
    return found.choices[0].policy


@router.post("/c/{number}/discard")
async def discard(request: Request, number: Number, owner: OwnerNeeded) -> Response:
    """Throw a draft away."""
    del owner
    site = site_of(request)
    await site.store.awrite(lambda c: drafts.discard(c, number, site.now))
    return go(request, "/")
