"""What the handlers take from a request."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Annotated

from fastapi import Depends, Path, Request
from starlette.responses import StreamingResponse

from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.web.state import AppState

Number = Annotated[int, Path(ge=1, le=2**53)]
Reply = Mapping[str, object]
"""What a handler returns as a JSON object."""
EVENT_SECONDS = 1.0


def state_of(request: Request) -> AppState:
    """The state of the application that serves a request."""
    found: AppState = request.app.state.crowdtree
    return found


async def _state(request: Request) -> AppState:
    return state_of(request)


State = Annotated[AppState, Depends(_state)]
"""The parameter of handlers that need nothing else of the request."""


def address_of(request: Request, path: str) -> str:
    """The whole address of a path: at the public address, or where the page was opened."""
    base = state_of(request).options.url or request.headers.get("origin") or request.base_url
    return f"{str(base).rstrip('/')}{path}"


async def disconnection(request: Request) -> None:
    """Wait until the client disconnects; its body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def event_response(
    request: Request,
    number: int,
    name: str,
    read: Callable[[], Awaitable[Mapping[str, object]]],
    poll_seconds: float,
) -> StreamingResponse:
    """Stream what `read` returns as server-sent events when a campaign changes.

    At most one event per second; `poll_seconds` without a change, it is read again, because
    another server process may have changed something. The response itself waits for the client to
    disconnect; nobody else may, because what one receives the other misses.
    """
    state = state_of(request)
    await state.store.aread(lambda c: get_campaign(c, number))
    events = _events(state, number, name, read, poll_seconds)
    return StreamingResponse(events, media_type="text/event-stream")


async def _events(
    state: AppState,
    number: int,
    name: str,
    read: Callable[[], Awaitable[Mapping[str, object]]],
    poll_seconds: float,
) -> AsyncIterator[str]:
    changed = asyncio.Event()
    watchers = state.waiters.changes[number]
    watchers.add(changed)
    try:
        while not state.stopping:
            changed.clear()
            yield f"event: {name}\ndata: {json.dumps(await read())}\n\n"
            await asyncio.sleep(EVENT_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(poll_seconds):
                    await changed.wait()
    finally:
        watchers.discard(changed)
