"""What all pages share: rendering, and errors shown in place or on their own page."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.store import NotFound
from crowdtree.server.web.errors import (
    FAULT,
    RETRY,
    HttpError,
    Refusal,
    error_response,
    outage,
    refusal_of,
)
from crowdtree.server.web.headers import clean_path
from crowdtree.server.web.hints import page_words
from crowdtree.server.web.pages.language import for_workers, speech_of
from crowdtree.server.web.requests import state_of
from crowdtree.server.web.routing import GuardedRoute

log = logging.getLogger("crowdtree.server.web")
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def render(request: Request, template: str, status: int = 200, **values: object) -> HTMLResponse:
    """Render a page; half a character in a text of an item is shown as a question mark."""
    made = fragment(request, template, **values).encode("utf-8", "replace")
    return HTMLResponse(made, status)


def fragment(request: Request, template: str, **values: object) -> str:
    """Render a template, or a part of a page."""
    templates = state_of(request).templates
    if templates is None:
        raise CrowdtreeError("the pages are not installed")
    return templates.get_template(template).render(**values)


def wants_json(request: Request) -> bool:
    """Whether a script asks, which shows the response in place."""
    return "application/json" in request.headers.get("accept", "")


def go(request: Request, where: str, **more: str) -> Response:
    """Redirect the browser after a form; scripts get what else they need to know."""
    if wants_json(request):
        return JSONResponse({"go": where, **more})
    return RedirectResponse(where, 303)


def error_page(request: Request, status: int, case: str, message: str) -> Response:
    """Show an error: as JSON where a script asks, else on a page."""
    if wants_json(request):
        return error_response(status, case, message)
    path, code = request.url.path, case.partition(".")[0]
    if for_workers(path):
        shown = {"say": speech_of(request), "code": code, "case": case, "message": message}
        made = render(request, "refused.html", status, **shown)
    else:
        template = "login.html" if code == "login" and path != "/login" else "error.html"
        made = render(request, template, status, message=message, code=code)
    made.headers.update(RETRY if status == 503 else {})
    return made


class PageRoute(GuardedRoute):
    """A route whose errors are shown as pages."""

    def get_route_handler(self) -> Handler:
        """Wrap the handler."""
        handler = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            try:
                return await handler(request)
            except HttpError as error:
                return error_page(request, error.status_code, error.case, error.detail)
            except CrowdtreeError as error:
                return error_page(request, *refusal(error))
            except (HTTPException, RequestValidationError):
                raise
            except Exception as error:
                found = outage(error)
                if found is not None:
                    return error_page(request, *refusal(found))
                log.exception("%s %s failed", request.method, clean_path(request.url.path))
                return error_page(request, 500, "fault", FAULT)

        return guarded


def refusal(error: CrowdtreeError) -> Refusal:
    """The status, code and sentence of an error, for people."""
    found = refusal_of(error, page_words)
    if isinstance(error, NotFound):
        return found._replace(message=f"{found.message[:1].upper()}{found.message[1:]}.")
    return found
