"""Fast path for a worker's next, answer and skip.

Routing, dependencies and validation of the framework take more processor time than the engine and
the database driver together. Here the same models validate the body and the same services are
called. Anything else (another content type, an invalid, long or slow body, no token) is passed on
to the framework with what has been read, so that limits and errors are in one place.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.store import Refused
from crowdtree.server.store.owner.tokens import hashed
from crowdtree.server.web.auth import bearer, worker_hash
from crowdtree.server.web.connections import WHOLE
from crowdtree.server.web.errors import HttpError, error_response, fault_of, refusal_of
from crowdtree.server.web.limits import SMALL
from crowdtree.server.web.request_metrics import ROUTE
from crowdtree.server.web.services import assignments
from crowdtree.server.web.state import AppState

log = logging.getLogger("crowdtree.server.web")

BODIES: dict[str, type[BaseModel]] = {
    "/api/worker/next": assignments.Asked,
    "/api/worker/answer": assignments.Answered,
    "/api/worker/skip": assignments.Skipped,
}

SOON = 1.0
"""Seconds for a body; one that takes longer is read after the token was looked up."""


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
        messages: list[Message] = []
        try:
            headers = dict(scope["headers"])
            if not _is_small_json(headers):
                raise HttpError(415, "json", "expected JSON")
            token = bearer(headers.get(b"authorization", b"").decode("latin-1"))
            who = hashed(token) if token else await worker_hash(Request(scope))
            if scope.get(WHOLE):  # then nothing can take long, and a time limit would
                messages.append(await receive())
            else:
                async with asyncio.timeout(SOON):
                    while not messages or messages[-1].get("more_body"):
                        messages.append(await receive())
            body = b"".join([message.get("body", b"") for message in messages])
            given = found.model_validate_json(body)
        except (ValidationError, HttpError, Refused, TimeoutError):
            await self.app(scope, _again(messages, receive), send)
            return
        await self._serve(given, who, scope, receive, send)

    async def _serve(
        self, given: BaseModel, who: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        try:
            made = await self._result(given, who, scope, receive)
        except CrowdtreeError as error:
            await error_response(*refusal_of(error))(scope, receive, send)
            return
        except Exception as error:
            log.exception("%s failed", scope["path"])
            await error_response(*fault_of(error))(scope, receive, send)
            return
        text = to_json(made)
        headers = [
            (b"content-length", str(len(text)).encode()),
            (b"content-type", b"application/json"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": text})

    async def _result(
        self, given: BaseModel, who: str, scope: Scope, receive: Receive
    ) -> Mapping[str, object]:
        if isinstance(given, assignments.Asked):

            def gone() -> Awaitable[bool]:
                return Request(scope, receive).is_disconnected()

            return await assignments.find_question(self.state, given, who, gone)
        if isinstance(given, assignments.Answered):
            return await assignments.submit_answer(self.state, given, who)
        if isinstance(given, assignments.Skipped):
            return await assignments.submit_skip(self.state, given, who)
        raise TypeError(type(given))


def _is_small_json(headers: Mapping[bytes, bytes]) -> bool:
    """Whether the headers announce JSON that need not be limited."""
    length = headers.get(b"content-length", b"")
    return (
        headers.get(b"content-type", b"").startswith(b"application/json")
        and length.isdigit()
        and int(length) <= SMALL
        and b"content-encoding" not in headers
    )


def _again(messages: list[Message], receive: Receive) -> Receive:
    """Replay the messages that were read, then receive more."""
    left = iter(messages)

    async def replay() -> Message:
        message = next(left, None)
        return await receive() if message is None else message

    return replay
