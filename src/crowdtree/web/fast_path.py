"""Fast path for a worker's next, answer and skip.

Routing, dependencies and validation of the framework take more processor time than the engine and
the database driver together. Here the same models validate the body and the same services are
called. Anything else (another content type, an invalid body, no token) is passed on to the
framework with its body, so that errors are reported in one place.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crowdtree.errors import CrowdtreeError
from crowdtree.store import Refused
from crowdtree.web.auth import known_worker, worker_hash
from crowdtree.web.errors import HttpError, error_response, refusal_of
from crowdtree.web.request_metrics import ROUTE
from crowdtree.web.services import assignments
from crowdtree.web.state import AppState

__all__ = ["FastPath"]

BODIES: dict[str, type[BaseModel]] = {
    "/api/worker/next": assignments.Asked,
    "/api/worker/answer": assignments.Answered,
    "/api/worker/skip": assignments.Skipped,
}

SOON = 1.0
"""Seconds for a body before the token is looked up; the store looks it up again in any case."""


class FastPath:
    """Serve a worker's next, answer and skip; pass everything else on."""

    def __init__(self, app: ASGIApp, state: AppState) -> None:
        self.app = app
        self.state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        found = BODIES.get(scope["path"]) if scope["type"] == "http" else None
        if found is None or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        scope[ROUTE] = scope["path"]
        request = Request(scope)
        messages: list[Message] = []
        try:
            who = await worker_hash(request)
            if not request.headers.get("content-type", "").startswith("application/json"):
                raise HttpError(415, "json", "expected JSON")
            await self._read(receive, messages, request)
            body = b"".join(message.get("body", b"") for message in messages)
            given = found.model_validate_json(body)
        except (ValidationError, HttpError, Refused):
            await self.app(scope, _again(messages, receive), send)
            return
        await self._serve(given, who, scope, receive, send)

    async def _read(self, receive: Receive, messages: list[Message], request: Request) -> None:
        """Read the body; if it has not arrived soon, only that of a known worker."""
        try:
            async with asyncio.timeout(SOON):
                await _receive_all(receive, messages)
        except TimeoutError:
            await known_worker(request)
            await _receive_all(receive, messages)

    async def _serve(
        self, given: BaseModel, who: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        try:
            made = await self._result(given, who, Request(scope, receive))
        except CrowdtreeError as error:
            await error_response(*refusal_of(error))(scope, receive, send)
            return
        text = json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode()
        headers = [
            (b"content-length", str(len(text)).encode()),
            (b"content-type", b"application/json"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": text})

    async def _result(self, given: BaseModel, who: str, request: Request) -> Mapping[str, object]:
        if isinstance(given, assignments.Asked):
            gone = request.is_disconnected
            return await assignments.find_question(self.state, given, who, gone)
        if isinstance(given, assignments.Answered):
            return await assignments.submit_answer(self.state, given, who)
        if isinstance(given, assignments.Skipped):
            return await assignments.submit_skip(self.state, given, who)
        raise TypeError(type(given))


async def _receive_all(receive: Receive, messages: list[Message]) -> None:
    """Receive the rest of the body, which :class:`crowdtree.web.limits.BodyLimit` keeps small."""
    while not messages or messages[-1].get("more_body"):
        messages.append(await receive())


def _again(messages: list[Message], receive: Receive) -> Receive:
    """Replay the messages that were read, then receive more."""
    left = iter(messages)

    async def replay() -> Message:
        message = next(left, None)
        return await receive() if message is None else message

    return replay
