"""Refusals: a status, a code for programs and a sentence for people, in the words of the web."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.languages import english
from crowdtree.server.store import NotFound, Refused, Unavailable
from crowdtree.server.store.errors import database_errors, disk_error, is_outage, unavailable

SAFE = ("GET", "HEAD", "OPTIONS")
"""Methods that change nothing."""
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
    headers: Mapping[str, str] | None = None

    def response(self) -> JSONResponse:
        """Make the JSON response; a case that says more than its code is sent as well."""
        headers = {**(self.headers or {}), **(RETRY if self.status == 503 else {})}
        code = self.case.partition(".")[0]
        body = {"error": code, "message": self.message}
        body |= {} if self.case == code else {"case": self.case}
        return JSONResponse(body, self.status, headers=headers or None)


def refusal_of(error: BaseException, words: Callable[[str], str] | None = None) -> Refusal:
    """What clients see of an error; `words` puts mistakes into the words of the API or of a page.

    >>> refusal_of(NotFound("campaign 7 does not exist"))[:2], refusal_of(KeyError())[:2]
    ((404, 'missing'), (500, 'fault'))
    """
    match error:
        case HttpError():
            return Refusal(error.status_code, error.case, error.detail, error.headers)
        case Refused():
            return Refusal(STATUS.get(error.code, 409), error.case, str(error))
        case NotFound():
            return Refusal(404, "missing", str(error))
        case Unavailable():
            return Refusal(503, "unavailable", str(error))
        case CrowdtreeError():
            return Refusal(422, "input", (words or api_words)(str(error)))
        case RequestValidationError():
            return Refusal(422, "input", _first(error.errors()))
        case HTTPException():
            return Refusal(error.status_code, "http", error.detail, error.headers)
        case ClientDisconnect():
            return Refusal(400, "gone", "The body did not come to its end.")
    failed = _outage(error)
    return Refusal(500, "fault", FAULT) if failed is None else refusal_of(failed)


def _outage(error: BaseException) -> Unavailable | None:
    """The error that clients see when a disk or the database fails; none for other errors."""
    if isinstance(error, OSError):
        return disk_error(error)
    if isinstance(error, database_errors()) and is_outage(error):
        return unavailable(error)
    return None


def _first(errors: Sequence[Mapping[str, object]]) -> str:
    """Describe the first error, without repeating what was sent."""
    first = errors[0]
    location = first["loc"] if isinstance(first["loc"], tuple) else ()
    where = ".".join(str(part) for part in location if part != "body")
    return f"{where or 'body'}: {first['msg']}"


# ----------------------------------------------------------------- words of the library
#
# The library says what to change in a file and, as an alternative, the argument in Python with the
# option of the command line in parentheses: ``or pass normalise=True (--normalise) to scale it``.
# Clients of the API have the arguments, but no command line; pages have neither, but controls.
# Neither has a file that was not uploaded.

OPTION = re.compile(r" \(--[a-z][^)]*\)")
FIELD = re.compile(r"^(problem|plan)\.json\b")
ARGUMENT = re.compile(
    r",? or pass \w+=[^\s,;]*(?: \(--[^)]*\))?(?: (?:to|for) [^;,.]*)?"
    r"(?:, or \w+=[^;.]*)?(?=[;,.]|$)|; answers are for crowdtree learn[^;]*"
)
DASH = re.compile(r"""(?:use|pass) dash=["']either["'](?: \(--dash either\))?""")
DASH_CONTROL = "choose under More options that people may answer yes or no for a class with -"
"""The control of the page of a new campaign for this argument."""
PASTED = "pasted.csv"
"""The name of a table that was pasted, for its format."""


def api_words(message: str) -> str:
    """Leave out the options of the command line, and call a field of the request by its name.

    >>> api_words("prior: sums to 0.9, not 1; or pass normalise=True (--normalise) to scale it")
    'prior: sums to 0.9, not 1; or pass normalise=True to scale it'
    >>> api_words("problem.json: classes: is missing; add it")
    'problem: classes: is missing; add it'
    """
    return FIELD.sub(r"\1", OPTION.sub("", message))


def page_words(message: str) -> str:
    """Name the control of the page, and leave out what a page does not have.

    >>> page_words("prior: sums to 0.9; correct it, or pass normalise=True (--normalise) to scale")
    'prior: sums to 0.9; correct it'
    >>> page_words("pasted.csv, line 2: expected 4 cells, got 3")
    'pasted table, line 2: expected 4 cells, got 3'
    >>> page_words('design: no question splits them; use dash="either" (--dash either)')[33:]
    'choose under More options that people may answer yes or no for a class with -'
    """
    message = DASH.sub(DASH_CONTROL, message)
    return OPTION.sub("", ARGUMENT.sub("", message)).replace(PASTED, "pasted table")
