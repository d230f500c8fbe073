"""The client: requests, and no lost or duplicate answers after a lost connection."""

from __future__ import annotations

import json
import selectors
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from crowdtree import client as client_module
from crowdtree.client import Client, ServerRefused, work
from crowdtree.core.errors import CrowdtreeError


class Script(BaseHTTPRequestHandler):
    """Hands out the questions of a list, and drops the connection on request."""

    protocol_version = "HTTP/1.1"
    tasks: list[str]
    seen: list[tuple[str, dict[str, Any]]]
    said: ClassVar[list[dict[str, Any]]] = []
    """What to answer first to requests for a question."""
    trouble: list[int]
    """Statuses to answer submissions with first; 0 breaks the line after the work is done."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.seen.append((self.path, body))
        if self.path.endswith("/next") and self.said:
            self.say(200, self.said.pop(0))
        elif self.path.endswith("/next"):
            task = self.tasks.pop(0) if self.tasks else None
            found = {"task": None, "reason": "finished"}
            if task is not None:
                question = {"name": "q", "text": "Is it so?"}
                item = {"task": task, "text": task}
                found = {"task": {"lease": f"1.{task}", "item": item, "question": question}}
            self.say(200, found)
        elif self.trouble:
            status = self.trouble.pop(0)
            if status == 0:
                self.close_connection = True
                self.connection.close()
            else:
                self.say(status, {"error": "x", "message": "a reason"})
        else:
            self.say(200, {"fate": "counted", "late": False})

    def say(self, status: int, found: Any) -> None:
        content = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, type[Script]]]:
    monkeypatch.setattr(client_module, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(client_module, "LONGEST_PAUSE", 0.01)
    script = type("Once", (Script,), {"tasks": [], "seen": [], "trouble": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), script) as made:
        made.daemon_threads = True
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_address[1]}", script
        made.shutdown()


def submitted(script: type[Script]) -> list[tuple[str, dict[str, Any]]]:
    return [(path, body) for path, body in script.seen if not path.endswith("/next")]


def test_it_answers_until_nothing_is_left(server: tuple[str, type[Script]]) -> None:
    address, script = server
    script.tasks += ["a", "b", "c"]
    minds = {"a": True, "b": False, "c": None}
    assert work(Client(address, "secret"), lambda item, _: minds[item["task"]]) == 2
    sent = submitted(script)
    assert [path.rpartition("/")[2] for path, _ in sent] == ["answer", "answer", "skip"]
    assert [body.get("answer") for _, body in sent] == ["yes", "no", None]
    assert len({body["key"] for _, body in sent}) == 3


def test_it_waits_while_there_is_no_work_now(server: tuple[str, type[Script]]) -> None:
    """Questions that others hold are no reason to stop; that there is no more work is one."""
    address, script = server
    said = [
        {"task": None, "reason": "wait", "more": True},
        {"task": None, "reason": "budget", "more": True},
        {"task": {"lease": "1.a", "item": {"task": "a"}, "question": {}}, "more": True},
        {"task": None, "reason": "paused", "more": True},
        {"task": None, "reason": "something new", "more": False},
    ]
    script.said = said
    assert work(Client(address, "secret"), lambda *_: True, wait=0.0) == 1
    assert said == []


def test_it_ends_when_its_patience_does(server: tuple[str, type[Script]]) -> None:
    address, script = server
    script.said = [{"task": None, "reason": "wait", "more": True}]
    assert work(Client(address, "secret"), lambda *_: True, wait=0.0, patience=0.0) == 0


@pytest.mark.parametrize("trouble", [[0], [503], [408], [0, 503, 0], [503] * 20])
def test_a_lost_connection_is_retried_with_the_same_key(
    server: tuple[str, type[Script]], trouble: list[int]
) -> None:
    address, script = server
    script.tasks += ["a"]
    script.trouble += trouble
    assert work(Client(address, "secret"), lambda *_: True) == 1
    sent = submitted(script)
    assert len(sent) == len(trouble) + 1
    assert len({json.dumps(body) for _, body in sent}) == 1


def test_an_idle_connection_is_reopened(server: tuple[str, type[Script]]) -> None:
    address, script = server
    script.timeout = 0.05  # as servers close idle connections
    client = Client(address, "secret")
    client.post("/api/worker/next")
    assert client._connection is not None
    with selectors.DefaultSelector() as look:
        look.register(client._connection.sock, selectors.EVENT_READ)
        assert look.select(30)  # the end has come
    assert client.post("/api/worker/next")["reason"] == "finished"
    assert len(script.seen) == 2
    client.close()


@pytest.mark.parametrize("status", [409, 410])
def test_an_expired_question_is_skipped(server: tuple[str, type[Script]], status: int) -> None:
    address, script = server
    script.tasks += ["a", "b"]
    script.trouble += [status]
    assert work(Client(address, "secret"), lambda *_: True) == 1
    assert [body["lease"] for _, body in submitted(script)] == ["1.a", "1.b"]


def test_a_refusal_is_reported(server: tuple[str, type[Script]]) -> None:
    address, script = server
    script.tasks += ["a"]
    script.trouble += [401]
    client = Client(address, "secret")
    with pytest.raises(ServerRefused, match=r"a reason \(401\)") as told:
        work(client, lambda *_: True)
    client.close()
    assert told.value.status == 401


def test_an_unreachable_server_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "FIRST_PAUSE", 0.0)
    with pytest.raises(CrowdtreeError, match="the server cannot be reached"):
        work(Client("http://127.0.0.1:9"), lambda *_: True)


def test_stop_ends_it(server: tuple[str, type[Script]]) -> None:
    address, script = server
    script.tasks += ["a"] * 5
    stop = threading.Event()

    def answer(item: dict[str, Any], question: dict[str, Any]) -> bool:
        del item, question
        stop.set()
        return True

    assert work(Client(address), answer, stop=stop) == 1


@pytest.mark.parametrize("address", ["ftp://x", "http://", ""])
def test_bad_addresses(address: str) -> None:
    with pytest.raises(CrowdtreeError, match="server: expected an address such as"):
        Client(address)


def test_bad_links() -> None:
    with pytest.raises(CrowdtreeError, match="expected a worker's link, with /w/ or /join/"):
        Client.of_link("http://127.0.0.1:9/somewhere/else")
