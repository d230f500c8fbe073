"""What all pages share: rendering, and saying no in place or on a page of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from crowdtree.errors import CrowdtreeError
from crowdtree.store import NotFound, Refused, Unavailable
from crowdtree.web.errors import STATUS, Problem
from crowdtree.web.headers import clean_path
from crowdtree.web.site import site_of

__all__ = ["Number", "PageRoute", "error_page", "go", "refusal", "render", "wants_json"]

Number = Annotated[int, Path(ge=1, le=2**53)]
log = logging.getLogger("crowdtree.web")
FAULT = (
    "Something went wrong on the server, and it wrote down what. Nothing was changed; try again."
)
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def render(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Render a page."""
    return HTMLResponse(fragment(request, template, **values), status)


def fragment(request: Request, template: str, **values: Any) -> str:
    """Render a template, or a part of a page."""
    made: str = site_of(request).templates.get_template(template).render(**values)
    return made


def wants_json(request: Request) -> bool:
    """Whether a script asks, which shows the answer in place."""
    return "application/json" in request.headers.get("accept", "")


def go(request: Request, where: str) -> Response:
    """Send the browser on after a form."""
    return JSONResponse({"go": where}) if wants_json(request) else RedirectResponse(where, 303)


def error_page(request: Request, status: int, code: str, message: str) -> Response:
    """Say no: in place where a script asks, else on a page."""
    if wants_json(request):
        return JSONResponse({"error": code, "message": message}, status)
    template = "login.html" if code == "login" and request.url.path != "/login" else "error.html"
    return render(request, template, status, message=message, code=code)


class PageRoute(APIRoute):
    """A route whose refusals people can read."""

    def get_route_handler(self) -> Handler:
        """Wrap the handler."""
        handler = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            try:
                return await handler(request)
            except Problem as error:
                return error_page(request, error.status, error.code, error.message)
            except CrowdtreeError as error:
                return error_page(request, *refusal(error))
            except (HTTPException, RequestValidationError):
                raise
            except Exception:
                log.exception("%s %s failed", request.method, clean_path(request.url.path))
                return error_page(request, 500, "fault", FAULT)
            finally:
                await request.close()  # lets go of uploaded files, whatever became of them

        return guarded


def refusal(error: CrowdtreeError) -> tuple[int, str, str]:
    """Put an error in a status, a code and a sentence."""
    if isinstance(error, Refused):
        return STATUS.get(error.code, 409), error.code, str(error)
    if isinstance(error, NotFound):
        return 404, "missing", f"{str(error)[:1].upper()}{str(error)[1:]}."
    if isinstance(error, Unavailable):
        return 503, "unavailable", str(error)
    return 422, "input", str(error)
