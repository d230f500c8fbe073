"""The page about the study of a campaign on Prolific."""

from __future__ import annotations

import asyncio
from typing import get_args

from fastapi import APIRouter, Request
from starlette.responses import Response

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.prolific import ledger
from crowdtree.server.prolific.client import TOKEN_VARIABLE, Client
from crowdtree.server.prolific.people import LEAST_MESSAGE, Category, list_submissions
from crowdtree.server.store.types import JsonObject
from crowdtree.server.web.auth import OWNER_ONLY, OwnerNeeded
from crowdtree.server.web.pages.base import PageRoute, render
from crowdtree.server.web.requests import Number, state_of

router = APIRouter(route_class=PageRoute, dependencies=OWNER_ONLY)


@router.get("/c/{number}/prolific")
async def prolific(request: Request, number: Number, owner: OwnerNeeded) -> Response:
    """Show the study, its submissions with their workers, and what can be done."""
    state = state_of(request)
    campaign, known = await state.store.aread(lambda c: ledger.look(c, number))
    found: JsonObject | None = None
    problem = ""
    try:
        client = Client.from_environment()
        if known.study is not None:
            found = await asyncio.to_thread(list_submissions, state.store, client, number)
    except CrowdtreeError as error:
        problem = str(error)
    return render(
        request,
        "prolific.html",
        owner=owner,
        campaign=campaign,
        known=known,
        found=found,
        problem=problem,
        categories=get_args(Category),
        least=LEAST_MESSAGE,
        url=state.options.url,
        variable=TOKEN_VARIABLE,
    )
