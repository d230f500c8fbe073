"""Items of a campaign: search them, page by page."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query

from crowdtree.server.store.queries.items import PAGE, page_of_items
from crowdtree.server.web.auth import OWNER_ONLY
from crowdtree.server.web.requests import Number, Reply, State
from crowdtree.server.web.routing import GuardedRoute

router = APIRouter(
    route_class=GuardedRoute, prefix="/api/campaigns", tags=["owner"], dependencies=OWNER_ONLY
)
Status = Literal["", "new", "open", "labelled", "set aside", "gold", "withdrawn"]
Words = Annotated[str, Query(max_length=200, pattern=r"^[^\x00]*$")]
MOST = 1000


@router.get("/{number}/items")
async def list_items(
    state: State,
    number: Number,
    find: Words = "",
    text: Words = "",
    status: Status = "",
    label: Words = "",
    after: Annotated[str, Query(max_length=1000, pattern=r"^[^\x00]*$")] = "",
    most: Annotated[int, Query(ge=1, le=MOST)] = PAGE,
) -> Reply:
    """List items with their columns, status and label.

    `find` is the beginning of the name, `text` a part of any column (upper and lower case are the
    same), `label` a class. Pass `next` as `after` to read the next page; it is null at the end.
    """

    wish = {"find": find, "text": text, "status": status, "label": label, "after": after}
    store = state.store
    return await store.aread(lambda c: page_of_items(c, number, most=most, **wish))
