"""Refusals: one JSON object with a code for programs and a sentence for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.languages import english
from crowdtree.server.store import NotFound, Refused, Unavailable
from crowdtree.server.store.errors import database_errors, disk_error, is_outage, unavailable
from crowdtree.server.web.hints import api_words

FAULT = "Something went wrong on the server; the server log has the details. Try again."
RETRY = {"retry-after": "1"}
"""Headers of every 503: the request may be repeated."""

STATUS = {
    "unknown": 401,
    "login": 401,
    "blocked": 403,
    "full": 403,
    "participant": 403,
    "over": 410,
    "gone": 410,
    "answered": 409,
    "busy": 409,
    "slow": 429,
}
"""HTTP status of the codes that the store and the services refuse with."""


class HttpError(HTTPException):
    """A refusal: status, case (see :class:`crowdtree.server.store.Refused`), sentence, headers."""

    def __init__(
        self, status: int, case: str, message: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, message or english(f"refused.{case}"), headers)
        self.case = case


class Refusal(NamedTuple):
    """An error as clients see it."""

    status: int
    case: str
    message: str


def refusal_of(error: CrowdtreeError, words: Callable[[str], str] = api_words) -> Refusal:
    """The status, code and sentence of an error, in the words of the API or of a page."""
    if isinstance(error, Refused):
        return Refusal(STATUS.get(error.code, 409), error.case, str(error))
    if isinstance(error, NotFound):
        return Refusal(404, "missing", str(error))
    if isinstance(error, Unavailable):
        return Refusal(503, "unavailable", str(error))
    return Refusal(422, "input", words(str(error)))


def outage(error: BaseException) -> Unavailable | None:
    """The error that clients see when a disk or the database fails; none for other errors."""
    if isinstance(error, OSError):
        return disk_error(error)
    if isinstance(error, database_errors()) and is_outage(error):
        return unavailable(error)
    return None


def fault_of(error: BaseException) -> Refusal:
    """What clients see of an error that is not their mistake."""
    found = outage(error)
    return Refusal(500, "fault", FAULT) if found is None else refusal_of(found)


def error_response(
    status: int, case: str, message: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Make the JSON response of a refusal; a case that says more than its code is sent as well."""
    if status == 503:
        headers = {**(headers or {}), **RETRY}
    code = case.partition(".")[0]
    body = {"error": code, "message": message} | ({} if case == code else {"case": case})
    return JSONResponse(body, status, headers=headers or None)


def add_handlers(app: FastAPI, page: Callable[[Request, int, str, str], Response]) -> None:
    """Turn errors into responses; `page` renders those that a browser shows."""

    @app.exception_handler(HttpError)
    async def _refused(_: Request, error: HttpError) -> Response:
        return error_response(error.status_code, error.case, error.detail, error.headers)

    @app.exception_handler(CrowdtreeError)
    async def _mistake(_: Request, error: CrowdtreeError) -> Response:
        return error_response(*refusal_of(error))

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> Response:
        return error_response(422, "input", _first(error.errors()))

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            words = "Check the address, or go back." if error.status_code == 404 else error.detail
            return page(request, error.status_code, "http", words)
        return error_response(error.status_code, "http", error.detail, error.headers)

    @app.exception_handler(ClientDisconnect)
    async def _gone(_: Request, __: ClientDisconnect) -> Response:
        return error_response(400, "gone", "The body did not come to its end.")

    @app.exception_handler(Exception)
    async def _failed(request: Request, error: Exception) -> Response:
        """Handle what is left; the framework then logs it."""
        html = "text/html" in request.headers.get("accept", "")
        refusal = fault_of(error)
        return page(request, *refusal) if html else error_response(*refusal)


def _first(errors: Sequence[Mapping[str, object]]) -> str:
    """Describe the first error, without repeating what was sent."""
    first = errors[0]
    location = first["loc"] if isinstance(first["loc"], tuple) else ()
    where = ".".join(str(part) for part in location if part != "body")
    return f"{where or 'body'}: {first['msg']}"
