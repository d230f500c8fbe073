"""Duplicates of campaigns."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from crowdtree.server.web.auth import OWNER_ONLY
from crowdtree.server.web.requests import Number, Reply, State
from crowdtree.server.web.routing import GuardedRoute
from crowdtree.server.web.services.duplicates import duplicate_campaign

router = APIRouter(
    route_class=GuardedRoute, prefix="/api/campaigns", tags=["owner"], dependencies=OWNER_ONLY
)


class DuplicateRequest(BaseModel):
    """What the duplicate is called, and whether it has the items."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(max_length=200)] = ""
    items: bool = False


@router.post("/{number}/duplicate", status_code=201)
async def duplicate(state: State, number: Number, given: DuplicateRequest) -> Reply:
    """Create a draft with the same plan, questions and settings, and with `items` the same items.

    Answers, workers, links, secrets, completion code and return address are not copied.
    """
    return await asyncio.to_thread(
        duplicate_campaign, state.store, state.media, number, given.name, given.items
    )
