"""A client of the Prolific API v1, with the standard library only."""

from __future__ import annotations

import http.client
import json
import os
import re
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlencode, urlsplit

from crowdtree.core.errors import CrowdtreeError, one_line, squeeze

ADDRESS = "https://api.prolific.com/api/v1"
TOKEN_VARIABLE = "CROWDTREE_PROLIFIC_TOKEN"
URL_VARIABLE = "CROWDTREE_PROLIFIC_URL"
TIMEOUT = 30.0
PAGE_SIZE = 100
MOST_PAGES = 1000
MOST_WORDS = 300
LOCAL = ("127.0.0.1", "localhost", "::1")
HINTS = {
    401: f"; check the token in {TOKEN_VARIABLE}",
    403: f"; the token in {TOKEN_VARIABLE} may not do this",
    429: "; too many requests: wait a minute and try again",
}

Json = dict[str, Any]
StudyAction = Literal["PUBLISH", "PAUSE", "START", "STOP"]


class ProlificError(CrowdtreeError):
    """A call that Prolific refused, or that got no reply.

    `status`: the HTTP status, 0 without a reply. `uncertain`: whether the call may have had its
    effect nevertheless.
    """

    def __init__(self, message: str, status: int = 0, uncertain: bool = False) -> None:
        super().__init__(message)
        self.status, self.uncertain = status, uncertain


class Client:
    """Calls of the Prolific API.

    Parameters
    ----------
    token
        An API token of a researcher.
    address
        Address of the API; https, except on this computer.

    Examples
    --------
    >>> Client("secret").address
    'https://api.prolific.com/api/v1'
    """

    def __init__(self, token: str, address: str = ADDRESS) -> None:
        if not re.fullmatch(r"[\x21-\x7e]{1,1000}", token):
            raise CrowdtreeError(f"{TOKEN_VARIABLE}: expected an API token of Prolific")
        parts = urlsplit(address)
        if parts.scheme != "https" and (parts.scheme, parts.hostname in LOCAL) != ("http", True):
            raise CrowdtreeError(f"{URL_VARIABLE}: expected an https address, got {address!r}")
        self.address = address.rstrip("/")
        self._token = token

    @classmethod
    def from_environment(cls) -> Client:
        """Take the token, and another address if there is one, from the environment."""
        token = os.environ.get(TOKEN_VARIABLE, "").strip()
        if not token:
            raise CrowdtreeError(
                f"prolific: no API token; set the environment variable {TOKEN_VARIABLE}"
            )
        return cls(token, os.environ.get(URL_VARIABLE, "").strip() or ADDRESS)

    # ------------------------------------------------------------------------------ studies

    def create_study(self, body: Mapping[str, object]) -> Json:
        """Create a draft."""
        return self._object("POST", "/studies/", body)

    def list_studies(self) -> list[Json]:
        """List all studies of the account."""
        return self._listed("/studies/", {})

    def get_study(self, study: str) -> Json:
        """Read a study."""
        return self._object("GET", f"/studies/{_id(study)}/")

    def move_study(self, study: str, action: StudyAction) -> Json:
        """Publish, pause, start again or stop a study."""
        return self._object("POST", f"/studies/{_id(study)}/transition/", {"action": action})

    # -------------------------------------------------------------------------- submissions

    def list_submissions(self, study: str) -> list[Json]:
        """List the submissions of a study."""
        return self._listed("/submissions/", {"study": _id(study)})

    def get_submission(self, submission: str) -> Json:
        """Read a submission, with the bonuses that were paid for it, in minor units."""
        return self._object("GET", f"/submissions/{_id(submission)}/")

    def move_submission(self, submission: str, body: Mapping[str, str]) -> Json:
        """Approve or reject a submission; a repetition is ignored."""
        return self._object("POST", f"/submissions/{_id(submission)}/transition/", body)

    # ------------------------------------------------------------------------------ bonuses

    def set_up_bonuses(self, study: str, amounts: Mapping[str, int]) -> str:
        """Set up bonuses per submission, in minor units; returns the id with which to pay them."""
        lines = [f"{_id(name)},{cents // 100}.{cents % 100:02d}" for name, cents in amounts.items()]
        body = {"study_id": _id(study), "csv_bonuses": "\n".join(lines)}
        return _id(self._object("POST", "/submissions/bonus-payments/", body).get("id"))

    def pay_bonuses(self, payment: str) -> None:
        """Pay bonuses that were set up. A repetition pays them again."""
        self._send("POST", f"/bulk-bonus-payments/{_id(payment)}/pay/", {})

    # --------------------------------------------------------------------------- connection

    def _listed(self, path: str, query: Mapping[str, object]) -> list[Json]:
        """Read all pages of a list; only the query of the next page's address is used."""
        found: list[Json] = []
        words = urlencode({**query, "page_size": PAGE_SIZE})
        for _ in range(MOST_PAGES):
            page = self._object("GET", f"{path}?{words}")
            rows = page.get("results")
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                raise ProlificError(f"prolific: GET {path}: expected a list of results")
            found += rows
            following = _next_query(page)
            if not following or following == words:
                return found
            words = following
        raise ProlificError(f"prolific: GET {path}: more than {MOST_PAGES} pages")

    def _object(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Json:
        found = self._send(method, path, body)
        if not isinstance(found, dict):
            raise ProlificError(
                f"prolific: {method} {path}: expected a JSON object in the reply",
                uncertain=method != "GET",
            )
        return found

    def _send(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Any:
        where = f"prolific: {method} {path.partition('?')[0]}"
        connection, prefix = self._connection()
        headers = {"authorization": f"Token {self._token}", "accept": "application/json"}
        content = None
        if body is not None:
            headers["content-type"] = "application/json"
            content = json.dumps(body).encode()
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            raise ProlificError(f"{where}: cannot reach Prolific: {squeeze(error)}") from None
        changes = method != "GET"
        try:
            connection.request(method, prefix + path, content, headers)
            reply = connection.getresponse()
            status, text = reply.status, reply.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            words = squeeze(error) or type(error).__name__
            raise ProlificError(f"{where}: no reply: {words}", uncertain=changes) from None
        finally:
            connection.close()
        found = _parsed(text)
        if not 200 <= status < 300:
            words = _words(found) or f"status {status}"
            # a refusal has no effect; a fault of the server may come after it
            uncertain = changes and not 400 <= status < 500
            raise ProlificError(
                f"{where}: {words} ({status}){HINTS.get(status, '')}", status, uncertain
            )
        return found

    def _connection(self) -> tuple[http.client.HTTPConnection, str]:
        parts = urlsplit(self.address)
        kind = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
        return kind[parts.scheme](parts.netloc, timeout=TIMEOUT), parts.path


def whole(value: object, what: str) -> int:
    """Read a whole number of a reply.

    >>> whole(20.0, "reward")
    20
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        raise ProlificError(f"prolific: {what}: expected a whole number, got {one_line(value)}")
    return int(value)


def _id(value: object) -> str:
    """Accept an id, which becomes a part of an address.

    >>> _id("60d9aadeb86739de712faee0")
    '60d9aadeb86739de712faee0'
    """
    text = str(value)
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", text):
        raise CrowdtreeError(f"prolific: expected an id of Prolific, got {one_line(text)}")
    return text


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _next_query(page: Json) -> str:
    """Read the query of the next page's address.

    >>> _next_query({"_links": {"next": {"href": "https://api.example/x/?page=2"}}})
    'page=2'
    """
    links = page.get("_links")
    following = links.get("next") if isinstance(links, dict) else None
    href = following.get("href") if isinstance(following, dict) else None
    return urlsplit(href).query if isinstance(href, str) else ""


def _words(found: object) -> str:
    """Put what the API says about an error on one line.

    >>> _words({"error": {"title": "Bad", "detail": {"reward": ["Too low.", "No."]}}})
    'reward: Too low. No.'
    >>> _words({"message": "Not found"})
    'Not found'
    """
    if isinstance(found, dict):
        inner = found.get("error", found)
        if isinstance(inner, dict):
            inner = inner.get("detail") or inner.get("message") or inner.get("title")
        found = inner
    return squeeze(_flat(found))[:MOST_WORDS]


def _flat(found: object) -> str:
    if isinstance(found, dict):
        return "; ".join(f"{key}: {_flat(value)}" for key, value in found.items())
    if isinstance(found, list):
        return " ".join(_flat(value) for value in found)
    return "" if found is None else str(found)
