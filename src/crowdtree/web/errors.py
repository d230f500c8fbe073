"""How the server says no: one JSON object with a code for machines and a sentence for people."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from crowdtree.errors import CrowdtreeError
from crowdtree.store import NotFound, Refused, Unavailable

__all__ = ["Problem", "add_handlers"]

log = logging.getLogger("crowdtree.web")
STATUS = {
    "unknown": 401,
    "blocked": 403,
    "gone": 410,
    "answered": 409,
    "nothing": 409,
    "late": 409,
    "busy": 409,
}


class Problem(Exception):
    """A refusal: status, code, sentence."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def said(status: int, code: str, message: str, **headers: str) -> JSONResponse:
    """Make the answer of a refusal."""
    return JSONResponse({"error": code, "message": message}, status, headers=headers or None)


def refusal(error: CrowdtreeError) -> JSONResponse:
    """Make the answer to something that cannot be granted."""
    if isinstance(error, Refused):
        return said(STATUS.get(error.code, 409), error.code, str(error))
    if isinstance(error, NotFound):
        return said(404, "missing", str(error))
    if isinstance(error, Unavailable):
        return JSONResponse(
            {"error": "unavailable", "message": str(error)}, 503, headers={"retry-after": "1"}
        )
    return said(422, "input", str(error))


def add_handlers(app: FastAPI) -> None:
    """Turn our errors into answers."""

    @app.exception_handler(Problem)
    async def _problem(_: Request, error: Problem) -> Response:
        return said(error.status, error.code, error.message)

    @app.exception_handler(CrowdtreeError)
    async def _mistake(_: Request, error: CrowdtreeError) -> Response:
        return refusal(error)

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> Response:
        return said(422, "input", _first(error.errors()))

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        headers = dict(error.headers or {})
        if "text/html" in request.headers.get("accept", ""):  # a person with a browser
            from crowdtree.web.pages.base import error_page

            words = "Check the address, or go back." if error.status_code == 404 else error.detail
            return error_page(request, error.status_code, "http", words)
        return said(error.status_code, "http", str(error.detail), **headers)


def _first(errors: Any) -> str:
    """Say the first of the mistakes, without repeating what was sent."""
    first = errors[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body")
    return f"{where or 'body'}: {first['msg']}"
