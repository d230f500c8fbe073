"""Items of a campaign: search them, page by page."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from sqlalchemy.engine import Connection

from crowdtree.store.db.campaign_row import get_campaign
from crowdtree.store.queries.items import PAGE, some_items
from crowdtree.store.types import JsonObject
from crowdtree.web.auth import OWNER_ONLY
from crowdtree.web.errors import HttpError
from crowdtree.web.requests import Number, state_of
from crowdtree.web.routing import GuardedRoute

__all__ = ["router"]

router = APIRouter(
    route_class=GuardedRoute, prefix="/api/campaigns", tags=["owner"], dependencies=OWNER_ONLY
)
Status = Literal["", "new", "open", "labelled", "set aside", "gold", "withdrawn"]
Words = Annotated[str, Query(max_length=200, pattern=r"^[^\x00]*$")]
MOST = 1000


@router.get("/{number}/items")
async def list_items(
    request: Request,
    number: Number,
    find: Words = "",
    text: Words = "",
    status: Status = "",
    label: Words = "",
    after: Annotated[str, Query(max_length=1000, pattern=r"^[^\x00]*$")] = "",
    most: Annotated[int, Query(ge=1, le=MOST)] = PAGE,
) -> JsonObject:
    """List items with their columns, status and label.

    `find` is the beginning of the name, `text` a part of any column (upper and lower case are the
    same), `label` a class. Pass `next` as `after` to read the next page; it is null at the end.
    """

    def read(connection: Connection) -> JsonObject:
        classes = get_campaign(connection, number).classes
        if label and label not in classes:
            raise HttpError(422, "input", f"label: expected a class, got {label[:50]!r}.")
        rows = some_items(
            connection,
            number,
            status=status,
            label=classes.index(label) if label else None,
            find=find,
            text=text,
            after=after,
            most=most,
        )
        found: list[JsonObject] = [
            {**row, **{name: _class(classes, row[name]) for name in ("gold", "label", "corrected")}}
            for row in rows
        ]
        following = str(rows[-1]["cursor"]) if len(rows) == most else None
        return {"items": found, "next": following}

    return await state_of(request).store.aread(read)


def _class(classes: list[str], place: int | None) -> str | None:
    return None if place is None else classes[place]
