"""Pages for people: rendered on the server, small scripts, no build step; errors as pages too."""

from __future__ import annotations

import logging
from functools import cache
from pathlib import Path

from fastapi import Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.store import NotFound
from crowdtree.server.web import words
from crowdtree.server.web.errors import RETRY, HttpError, Refusal, page_words, refusal_of
from crowdtree.server.web.language import for_workers, speech_of
from crowdtree.server.web.middleware import clean_path

log = logging.getLogger("crowdtree.server.web")
HERE = Path(__file__).parent


@cache
def templates() -> Environment:
    """Make the template environment; everything is escaped."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update({name: getattr(words, name) for name in words.__all__})
    return made


def render(template: str, status: int = 200, **values: object) -> HTMLResponse:
    """Render a page; half a character in a text of an item is shown as a question mark."""
    return HTMLResponse(fragment(template, **values).encode("utf-8", "replace"), status)


def fragment(template: str, **values: object) -> str:
    """Render a template, or a part of a page."""
    return templates().get_template(template).render(**values)


def wants_json(request: Request) -> bool:
    """Whether a script asks, which shows the response in place."""
    return "application/json" in request.headers.get("accept", "")


def go(request: Request, where: str, **more: str) -> Response:
    """Redirect the browser after a form; scripts get what else they need to know."""
    if wants_json(request):
        return JSONResponse({"go": where, **more})
    return RedirectResponse(where, 303)


# ------------------------------------------------------------------------------- errors


def page_refusal(error: BaseException) -> Refusal:
    """What people see of an error."""
    found = refusal_of(error, page_words)
    if isinstance(error, NotFound):
        return found._replace(message=f"{found.message[:1].upper()}{found.message[1:]}.")
    return found


def respond(request: Request, error: Exception) -> Response:
    """Turn an error into a response: JSON, or a page where a browser shows it."""
    is_page = bool(getattr(request.scope.get("route"), "is_page", False))
    found = page_refusal(error) if is_page else refusal_of(error)
    if found.status == 500:
        log.error("%s %s failed", request.method, clean_path(request.url.path), exc_info=error)
    by_browser = "text/html" in request.headers.get("accept", "")
    match error:
        case HttpError() | CrowdtreeError():
            shows_page = is_page
        case HTTPException():
            shows_page = by_browser
            if found.status == 404 and by_browser:
                found = found._replace(message="Check the address, or go back.")
        case _:
            shows_page = (is_page or by_browser) and found.status >= 500
    return _error_page(request, found) if shows_page else found.response()


def _error_page(request: Request, found: Refusal) -> Response:
    """Show an error: as JSON where a script asks, else on a page."""
    if wants_json(request):
        return found.response()
    path, code = request.url.path, found.case.partition(".")[0]
    values = {"code": code, "case": found.case, "message": found.message}
    template = "login.html" if code == "login" and path != "/login" else "error.html"
    if for_workers(path):
        template, values["say"] = "refused.html", speech_of(request)  # type: ignore[assignment]
    made = render(template, found.status, **values)
    made.headers.update(RETRY if found.status == 503 else {})
    return made
