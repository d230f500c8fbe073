"""Routes that know who asks before they read what is sent, and that do not block on large JSON."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, get_type_hints

from fastapi import HTTPException, Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from starlette.responses import Response
from starlette.routing import request_response

from crowdtree.core.errors import CrowdtreeError
from crowdtree.planning import Report
from crowdtree.server.web.auth import (
    SAFE,
    auditor_hash,
    known_auditor,
    known_owner,
    known_worker,
    owner_needed,
    worker_hash,
)
from crowdtree.server.web.errors import refusal_of
from crowdtree.server.web.requests import state_of

Check = Callable[[Request], Awaitable[object]]
CHECKS: dict[Callable[..., object], Check] = {
    owner_needed: known_owner,
    worker_hash: known_worker,
    auditor_hash: known_auditor,
}
"""What a route depends on, and the check that comes before its body is read."""
AT_ONCE = 128 * 2**10
"""Bytes of JSON that are parsed on the event loop, in a few milliseconds."""
MOST_PARTS = 200_000
"""Lists and objects in one body."""


class GuardedRoute(APIRoute):
    """A route that checks the caller's token before it reads the body."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the handler."""
        handler = super().get_route_handler()
        checks = [CHECKS[call] for call in _calls(self.dependant) if call in CHECKS]

        async def guarded(request: Request) -> Response:
            if request.method not in SAFE:
                for check in checks:
                    await check(request)
            large = _LargeRequest(request.scope, request.receive)
            try:
                return await handler(large)
            finally:
                await large.close()  # close uploaded files

        return guarded


class QuickRoute(APIRoute):
    """A route of workers that does without the framework's dependencies, which take long.

    They would take more processor time than the engine and the database driver together. The
    endpoint gets the request, the body as the model that the parameter `given` names, and the hash
    of the worker's token, which the store looks up when it does the work.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.app = request_response(self.get_route_handler())

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Make the handler."""
        model: type[BaseModel] = get_type_hints(self.endpoint)["given"]

        async def handle(request: Request) -> Response:
            who = await worker_hash(request)
            try:
                given = model.model_validate_json(await request.body())
            except ValidationError as error:
                raise RequestValidationError(error.errors(include_input=False)) from None
            content = to_json(await self.endpoint(request, given, who))
            return Response(content, media_type="application/json")

        return handle


def _calls(dependant: Dependant) -> Iterator[Callable[..., object]]:
    for inner in dependant.dependencies:
        if inner.call is not None:
            yield inner.call
        yield from _calls(inner)


class _LargeRequest(Request):
    """A request whose JSON is parsed in the worker process if there is much of it."""

    async def json(self) -> Any:
        body = await self.body()
        if len(body) <= AT_ONCE:
            return await super().json()
        try:
            return await state_of(self).plans.process.run(read_json, body)
        except CrowdtreeError as error:
            refusal = refusal_of(error)
            raise HTTPException(refusal.status, refusal.message) from None


def read_json(report: Report, body: bytes) -> object:
    """Parse JSON in the worker process; a thread would stop the server for as long as it takes.

    >>> read_json(lambda share, words: None, b'{"a": [1, 2]}')
    {'a': [1, 2]}
    """
    del report
    if body.count(b"[") + body.count(b"{") > MOST_PARTS:  # handing them over would take seconds
        raise CrowdtreeError(f"body: at most {MOST_PARTS:,} lists and objects are accepted")
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise CrowdtreeError(f"body: not valid JSON: {str(error)[:100]}") from None
