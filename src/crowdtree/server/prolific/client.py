"""A client of the Prolific API v1."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Mapping
from typing import Any, Literal

import httpx

from crowdtree.core.errors import CrowdtreeError, one_line, squeeze

ADDRESS = "https://api.prolific.com/api/v1"
TOKEN_VARIABLE = "CROWDTREE_PROLIFIC_TOKEN"
URL_VARIABLE = "CROWDTREE_PROLIFIC_URL"
TIMEOUT = 30.0
PAGE_SIZE = 100
MAX_PAGES = 1000
MAX_WORDS = 300
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

    def adding(self, words: str) -> ProlificError:
        """Say what follows from the error as well."""
        return ProlificError(f"{self}; {words}", self.status, self.uncertain)


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
        try:
            parts = httpx.URL(address)
        except httpx.InvalidURL:
            parts = httpx.URL("")
        local = parts.scheme == "http" and parts.host in LOCAL
        if not parts.host or not (local or parts.scheme == "https"):
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

    def _listed(self, path: str, query: Mapping[str, str]) -> list[Json]:
        """Read all pages of a list; only the query of the next page's address is used."""
        rows: list[Json] = []
        words = str(httpx.QueryParams({**query, "page_size": PAGE_SIZE}))
        for _ in range(MAX_PAGES):
            page = self._object("GET", f"{path}?{words}")
            results = page.get("results")
            if not isinstance(results, list) or not all(isinstance(row, dict) for row in results):
                raise ProlificError(f"prolific: GET {path}: expected a list of results")
            rows += results
            following = _next_query(page)
            if not following or following == words:
                return rows
            words = following
        raise ProlificError(f"prolific: GET {path}: more than {MAX_PAGES} pages")

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
        changes = method != "GET"
        headers = {"authorization": f"Token {self._token}", "accept": "application/json"}
        tls = ssl.create_default_context()  # the certificates of the system
        try:
            with httpx.Client(timeout=TIMEOUT, verify=tls, trust_env=False) as client:
                reply = client.request(method, self.address + path, headers=headers, json=body)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reached = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            what = "no reply" if reached else "cannot reach Prolific"
            words = squeeze(error) or type(error).__name__
            raise ProlificError(
                f"{where}: {what}: {words}", uncertain=changes and reached
            ) from None
        content = _parsed(reply)
        if not reply.is_success:
            status = reply.status_code
            words = _words(content) or f"status {status}"
            # a refusal has no effect; a fault of the server may come after it
            uncertain = changes and not reply.is_client_error
            raise ProlificError(
                f"{where}: {words} ({status}){HINTS.get(status, '')}", status, uncertain
            )
        return content


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


def _parsed(reply: httpx.Response) -> Any:
    try:
        return reply.json()
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
    return href.partition("?")[2] if isinstance(href, str) else ""


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
    return squeeze(_flat(found))[:MAX_WORDS]


def _flat(found: object) -> str:
    if isinstance(found, dict):
        return "; ".join(f"{key}: {_flat(value)}" for key, value in found.items())
    if isinstance(found, list):
        return " ".join(_flat(value) for value in found)
    return "" if found is None else str(found)
