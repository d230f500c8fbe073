"""A stand-in for the Prolific API v1, written from its public description.

It keeps studies, submissions and bonuses in memory, checks what the description says is checked,
lists in pages, pays bonuses later and, as described, again if a payment is sent again.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from crowdtree.server.prolific.client import Client

TOKEN = "stub-token"
REQUIRED = {
    "name": str,
    "description": str,
    "external_study_url": str,
    "prolific_id_option": str,
    "completion_codes": list,
    "total_available_places": int,
    "estimated_completion_time": int,
    "reward": int,
}
MOVES = {
    ("PUBLISH", "UNPUBLISHED"): "ACTIVE",
    ("PAUSE", "ACTIVE"): "PAUSED",
    ("START", "PAUSED"): "ACTIVE",
    ("STOP", "ACTIVE"): "AWAITING REVIEW",
    ("STOP", "PAUSED"): "AWAITING REVIEW",
}
PAGE = 2


class Refusal(Exception):
    def __init__(self, status: int, detail: Any) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


class Prolific:
    """The state of the stub, and what happened to it."""

    def __init__(self) -> None:
        self.studies: dict[str, dict[str, Any]] = {}
        self.submissions: dict[str, dict[str, Any]] = {}
        self.batches: dict[str, tuple[str, dict[str, int]]] = {}
        self.pending: list[tuple[str, int]] = []
        self.calls: list[tuple[str, str]] = []
        self.losing: str | None = None
        """Path whose next POST has its effect, but gets no reply."""
        self.failing: tuple[str, int] | None = None
        """Path and status of the next POST that fails without an effect."""
        self.address = ""

    @property
    def client(self) -> Client:
        return Client(TOKEN, self.address)

    def posts(self, pattern: str) -> int:
        return sum(m == "POST" and re.search(pattern, p) is not None for m, p in self.calls)

    def submit(self, study: str, participant: str, code: str | None = None) -> str:
        """Let a participant submit."""
        name = f"sub{len(self.submissions) + 1}"
        self.submissions[name] = {
            "id": name,
            "study_id": study,
            "participant_id": participant,
            "status": "AWAITING REVIEW",
            "started_at": "2026-05-01T12:00:00Z",
            "study_code": code,
            "bonus_payments": [],
        }
        return name

    def settle(self) -> None:
        """Pay the bonuses that were accepted."""
        for name, cents in self.pending:
            self.submissions[name]["bonus_payments"].append(float(cents))
        self.pending = []

    # ------------------------------------------------------------------------------ routes

    def answer(self, method: str, target: str, body: Any) -> tuple[int, Any]:
        parts = urlsplit(target)
        path, query = parts.path.removeprefix("/api/v1"), parse_qs(parts.query)
        self.calls.append((method, path))
        words = path.strip("/").split("/")
        match method, words:
            case "GET", ["studies"]:
                return 200, self.page(list(self.studies.values()), parts.path, query)
            case "POST", ["studies"]:
                return 201, self.create(body)
            case "GET", ["studies", name]:
                return 200, _known(self.studies, name)
            case "POST", ["studies", name, "transition"]:
                return 200, self.move(_known(self.studies, name), body)
            case "GET", ["submissions"]:
                wanted = query["study"][0]
                rows = [s for s in self.submissions.values() if s["study_id"] == wanted]
                hidden = ("bonus_payments", "study_id")
                rows = [{k: v for k, v in row.items() if k not in hidden} for row in rows]
                return 200, self.page(rows, parts.path, query)
            case "POST", ["submissions", "bonus-payments"]:
                return 201, self.set_up(body)
            case "GET", ["submissions", name]:
                row = dict(_known(self.submissions, name))
                row["participant"] = row.pop("participant_id")
                return 200, row
            case "POST", ["submissions", name, "transition"]:
                return 200, self.decide(_known(self.submissions, name), body)
            case "POST", ["bulk-bonus-payments", name, "pay"]:
                self.pending += _known(self.batches, name)[1].items()
                return 202, f"Payment {name} is being processed."
        raise Refusal(404, "Not found.")

    def page(self, rows: list[Any], path: str, query: dict[str, list[str]]) -> dict[str, Any]:
        number = int(query.get("page", ["1"])[0])
        size = min(PAGE, int(query.get("page_size", ["20"])[0]))
        following = None
        if number * size < len(rows):
            kept = "".join(f"&{k}={v[0]}" for k, v in query.items() if k != "page")
            following = f"https://elsewhere.example{path}?page={number + 1}{kept}"
        links = {"next": {"href": following, "title": "Next"}}
        shown = rows[(number - 1) * size : number * size]
        return {"results": shown, "_links": links, "meta": {"count": len(rows)}}

    def create(self, body: dict[str, Any]) -> dict[str, Any]:
        wrong = {
            name: ["This field is required."]
            for name, kind in REQUIRED.items()
            if not isinstance(body.get(name), kind) or not body[name]
        }
        if wrong:
            raise Refusal(400, wrong)
        if body["reward"] * 60 / body["estimated_completion_time"] < 600:
            raise Refusal(400, {"reward": ["The reward per hour is below the minimum."]})
        for code in body["completion_codes"]:
            if set(code) != {"code", "code_type", "actions"} or code["code_type"] != "COMPLETED":
                raise Refusal(400, {"completion_codes": ["Invalid."]})
        name = f"study{len(self.studies) + 1}"
        self.studies[name] = {**body, "id": name, "status": "UNPUBLISHED"}
        return self.studies[name]

    def move(self, study: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        try:
            study["status"] = MOVES[body["action"], study["status"]]
        except KeyError:
            raise Refusal(400, f"Cannot {body.get('action')} from {study['status']}.") from None
        return study

    def decide(self, row: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        wanted = {"APPROVE": "APPROVED", "REJECT": "REJECTED"}[body["action"]]
        if wanted == "REJECTED" and (
            len(body.get("message", "")) < 100 or not body.get("rejection_category")
        ):
            raise Refusal(400, {"message": ["At least 100 characters are required."]})
        if row["status"] not in ("AWAITING REVIEW", wanted):
            raise Refusal(400, f"The submission is {row['status']}.")
        row["status"] = wanted
        return row

    def set_up(self, body: dict[str, Any]) -> dict[str, Any]:
        amounts = {}
        for line in body["csv_bonuses"].splitlines():
            name, _, amount = line.partition(",")
            row = self.submissions.get(name)
            if row is None or row["study_id"] != body["study_id"]:
                raise Refusal(400, f"These ids did not take part: {name}.")
            amounts[name] = round(float(amount) * 100)
        made = f"batch{len(self.batches) + 1}"
        self.batches[made] = (body["study_id"], amounts)
        total = sum(amounts.values())
        return {"id": made, "study": body["study_id"], "amount": total, "fees": 0, "vat": 0}


def _known(table: dict[str, Any], name: str) -> Any:
    if name not in table:
        raise Refusal(404, "Not found.")
    return table[name]


@contextmanager
def prolific_stub() -> Iterator[Prolific]:
    """Serve the stub."""
    state = Prolific()

    class Handler(BaseHTTPRequestHandler):
        def serve(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length) or b"null")
            try:
                if self.headers["authorization"] != f"Token {TOKEN}":
                    raise Refusal(401, "Invalid token.")
                self.fail()
                status, found = state.answer(self.command, self.path, body)
            except Refusal as error:
                status, found = error.status, {"error": {"title": "Error", "detail": error.detail}}
            if self.command == "POST" and state.losing and re.search(state.losing, self.path):
                state.losing = None
                self.close_connection = True
                return
            content = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def fail(self) -> None:
            if state.failing and self.command == "POST" and re.search(state.failing[0], self.path):
                status, state.failing = state.failing[1], None
                raise Refusal(status, "A fault of the stub.")

        do_GET = do_POST = serve

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.address = f"http://127.0.0.1:{server.server_port}/api/v1"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
