"""Slow work that reports its progress in the response.

The response is JSON lines: ``{"share": 0.4, "words": "..."}`` while the work goes on, and at the
end ``{"go": "/where"}`` or ``{"error": code, "message": "..."}``. So it works with any number of
server processes, without shared state.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

from fastapi import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from crowdtree.core.errors import CrowdtreeError
from crowdtree.planning import Report
from crowdtree.server.store.types import JsonObject
from crowdtree.server.web.errors import FAULT
from crowdtree.server.web.pages.base import refusal, wants_json
from crowdtree.server.web.worker_process import silent

Make = Callable[[Report], Awaitable[str]]
BEAT_SECONDS = 5.0
"""Seconds between lines at most, so that proxies keep the connection open."""
BEGUN = 0.1
"""Share of the work at which the input has been read."""


async def with_progress(request: Request, make: Make) -> Response:
    """Do slow work: with progress for a script; a browser without scripts waits.

    Errors in the input (a file that cannot be read) are reported with their HTTP status.
    """
    if not wants_json(request):
        return RedirectResponse(await make(silent), 303)
    job = _Job(make)
    first = await job.begun()
    if "error" in first:
        return JSONResponse(first, job.status)
    return StreamingResponse(job.lines(first), media_type="application/x-ndjson")


class _Job:
    """Work in progress, and its messages."""

    def __init__(self, make: Make) -> None:
        self.messages: asyncio.Queue[JsonObject] = asyncio.Queue()
        self.status = 200
        self.task = asyncio.create_task(self._work(make))

    async def _work(self, make: Make) -> None:
        try:
            where = await make(self._report)
            self.messages.put_nowait({"go": where})
        except CrowdtreeError as error:
            self.status, code, message = refusal(error)
            self.messages.put_nowait({"error": code, "message": message})
        except Exception:
            self.status = 500
            self.messages.put_nowait({"error": "fault", "message": FAULT})
            raise

    def _report(self, share: float, words: str) -> None:
        self.messages.put_nowait({"share": round(share, 3), "words": words})

    async def begun(self) -> JsonObject:
        """Wait until the input has been read, or the work is over."""
        try:
            while True:
                first = await self.messages.get()
                if first.get("share", 1.0) >= BEGUN:
                    return first
        except asyncio.CancelledError:  # the client has disconnected
            self.task.cancel()
            raise

    async def lines(self, last: JsonObject) -> AsyncIterator[str]:
        """Yield messages until the work is over."""
        try:
            while "share" in last:
                yield json.dumps(last) + "\n"
                try:
                    async with asyncio.timeout(BEAT_SECONDS):
                        last = await self.messages.get()
                except TimeoutError:
                    continue
            yield json.dumps(last) + "\n"
        finally:
            self.task.cancel()  # the client has disconnected, or the work is done
