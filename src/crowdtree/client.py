"""A small client of a crowdtree server, for scripts and for models that answer questions.

Standard library only, so that a machine with a model on it needs nothing else.
"""

from __future__ import annotations

import http.client
import json
import selectors
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from crowdtree.core.checking import check_call
from crowdtree.core.errors import CrowdtreeError

OVER = ("finished", "done", "all answered", "worker paused")
"""Reasons for which there is no more work, for servers that do not say so."""
SIGNED = ("participant", "expires", "nonce", "signature")
TRIES = 8
BUSY_TRIES = 40
"""Tries while the server says that its disk or its database fails: some six minutes."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
TIMEOUT = 60.0
TAKEN, GONE = 409, 410
RETRIED = (408, 503)
"""Statuses after which the same request may succeed: it came too slowly, or the server is busy."""


class ServerRefused(CrowdtreeError):
    """The server refused a request; `status` is the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """A persistent connection to a server; not to be shared between threads.

    Parameters
    ----------
    server
        Address of the server, such as ``"http://127.0.0.1:8321"``.
    token
        A worker's token (of an invite), or an owner's token for scripts.

    Examples
    --------
    >>> Client("127.0.0.1:8321").server
    'http://127.0.0.1:8321'
    """

    def __init__(self, server: str, token: str | None = None) -> None:
        check_call(Client, locals())
        parts = urlsplit(server if "//" in server else f"http://{server}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise CrowdtreeError(
                f"server: expected an address such as http://127.0.0.1:8321, got {server!r}"
            )
        self.server = f"{parts.scheme}://{parts.netloc}"
        self.headers = {"authorization": f"Bearer {token}"} if token else {}
        self._connection: http.client.HTTPConnection | None = None

    def __repr__(self) -> str:
        return f"Client({self.server!r})"

    @classmethod
    def of_link(cls, link: str, participant: str | None = None) -> Client:
        """Connect as a worker by a personal link (``/w/...``) or a join link (``/join/...``).

        A signed join link carries the participant id.
        """
        check_call(Client.of_link, locals())
        parts = urlsplit(link)
        kind, _, token = parts.path.strip("/").rpartition("/")
        made = cls(f"{parts.scheme}://{parts.netloc}")
        if kind == "join":
            signed = {k: v for k, v in parse_qsl(parts.query) if k in SIGNED}
            given = {} if participant is None else {"participant": participant}
            token = made.post("/api/join", {"token": token, **signed, **given})["token"]
        elif kind != "w":
            raise CrowdtreeError(
                f"link: expected a worker's link, with /w/ or /join/ in it, got {link!r}"
            )
        made.headers = {"authorization": f"Bearer {token}"}
        return made

    def log_in(self, token: str) -> None:
        """Log in as the owner with the one-time token that the server printed when it started."""
        answer, headers = self._send("POST", "/api/session", _json({"token": token}))
        cookies = SimpleCookie(headers["set-cookie"])
        self.headers = {
            "cookie": "; ".join(f"{name}={morsel.value}" for name, morsel in cookies.items()),
            "x-csrf-token": answer["csrf"],
        }
        made = self.post("/api/tokens", {"name": "script"})
        self.headers = {"authorization": f"Bearer {made['token']}"}

    def get(self, path: str) -> Any:
        """Get JSON, or text where the response is not JSON."""
        return self._send("GET", path)[0]

    def post(self, path: str, body: Any = None) -> Any:
        """Post JSON."""
        return self._send("POST", path, _json({} if body is None else body))[0]

    def post_lines(self, path: str, rows: Sequence[dict[str, Any]]) -> Any:
        """Post JSON lines, such as items."""
        content = "\n".join(json.dumps(row) for row in rows).encode()
        return self._send("POST", path, content, "application/x-ndjson")[0]

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _send(
        self, method: str, path: str, content: bytes | None = None, kind: str = "application/json"
    ) -> tuple[Any, Any]:
        headers = self.headers | ({} if content is None else {"content-type": kind})
        try:
            connection = self._open()
            connection.request(method, path, content, headers)
            found = connection.getresponse()
            text = found.read().decode()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        if found.status >= 400:
            raise ServerRefused(found.status, f"{method} {path}: {_words(text)} ({found.status})")
        is_json = found.headers.get_content_type() == "application/json"
        return json.loads(text) if is_json else text, found.headers

    def _open(self) -> http.client.HTTPConnection:
        if self._connection is not None and _hung_up(self._connection):
            self.close()
        if self._connection is None:
            scheme, _, place = self.server.partition("://")
            kind = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
            self._connection = kind[scheme](place, timeout=TIMEOUT)
        return self._connection


def _hung_up(connection: http.client.HTTPConnection) -> bool:
    """Whether the server has closed an idle connection."""
    if connection.sock is None:
        return True
    with selectors.DefaultSelector() as look:
        look.register(connection.sock, selectors.EVENT_READ)
        return bool(look.select(0))


def work(
    client: Client,
    answer: Callable[[dict[str, Any], dict[str, Any]], bool | None],
    *,
    wait: float = 20.0,
    patience: float | None = None,
    stop: threading.Event | None = None,
) -> int:
    """Answer questions until there are none left for this worker; returns how many were answered.

    While there is no work now (others hold the questions, or the campaign is paused) it waits.
    Where the campaign has a training, `answer` is asked about its items first; they do not count.

    Parameters
    ----------
    client
        A worker's client.
    answer
        Gets the item (``task``, ``text``, ``image`` ...) and the question (``name``, ``text``), and
        returns ``True`` for yes, ``False`` for no, ``None`` for "can't tell".
    wait
        Seconds that the server may wait for an open question before it responds.
    patience
        Seconds without a question after which it ends; by default when there is no more work.
    stop
        Set it to end early.

    Notes
    -----
    Each answer carries a key. After a lost connection it is sent again with the same key, so it
    is neither lost nor counted twice.
    """
    given, since = 0, time.monotonic()
    while stop is None or not stop.is_set():
        begin = time.monotonic()
        found = _again(lambda: client.post("/api/worker/next", {"wait": wait}))
        task = found["task"]
        if task is None:
            if found["reason"] == "training":
                _train(client, answer)
                continue
            if found["reason"] == "consent":
                raise CrowdtreeError(
                    "work: this campaign asks for consent first: open the worker's link in a "
                    "browser and agree, or read `consent` of GET /api/worker/me and send its "
                    "`consent_mark` as `mark` to POST /api/worker/consent"
                )
            now = time.monotonic()
            more = found.get("more", found["reason"] not in OVER)
            if not more or (patience is not None and now - since > patience):
                break
            if now - begin < FIRST_PAUSE:  # the server did not wait
                time.sleep(FIRST_PAUSE)
            continue
        since = time.monotonic()
        verdict = answer(task["item"], task["question"])
        body: dict[str, Any] = {"lease": task["lease"], "key": uuid.uuid4().hex}
        path = "/api/worker/skip" if verdict is None else "/api/worker/answer"
        if verdict is not None:
            body["answer"] = "yes" if verdict else "no"
        if _submitted(client, path, body):
            given += verdict is not None
    client.close()
    return given


def _train(client: Client, answer: Callable[[dict[str, Any], dict[str, Any]], bool | None]) -> None:
    """Answer the training items."""
    while (task := _again(lambda: client.get("/api/worker/training"))["task"]) is not None:
        said = {True: "yes", False: "no", None: "skip"}[answer(task["item"], task["question"])]
        body = {"number": task["number"], "answer": said}
        _again(partial(client.post, "/api/worker/training", body))


def _submitted(client: Client, path: str, body: dict[str, Any]) -> bool:
    """Submit an answer; skip a question whose lease is no longer this worker's."""
    try:
        _again(lambda: client.post(path, body))
    except ServerRefused as error:
        if error.status not in (TAKEN, GONE):
            raise
        return False
    return True


def _again(call: Callable[[], Any]) -> Any:
    """Call, and retry with increasing delays while the server is lost or busy."""
    lost = busy = 0
    while True:
        try:
            return call()
        except ServerRefused as error:
            busy += 1
            if error.status not in RETRIED or busy == BUSY_TRIES:
                raise
        except (OSError, http.client.HTTPException) as error:
            lost += 1
            if lost == TRIES:
                raise CrowdtreeError(f"the server cannot be reached: {error}") from None
        time.sleep(min(FIRST_PAUSE * 2 ** min(lost + busy - 1, 10), LONGEST_PAUSE))


def _json(body: Any) -> bytes:
    return json.dumps(body).encode()


def _words(text: str) -> str:
    """The error that the server reported, in one line."""
    try:
        found = json.loads(text)
        return str(found.get("message") or found.get("detail") or text)[:200]
    except (ValueError, AttributeError):
        return " ".join(text.split())[:200]
