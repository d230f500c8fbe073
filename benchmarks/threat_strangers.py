"""Threats by strangers: slow receivers, bodies that stall, connections that send nothing."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

from benchmarks.threat_lab import Client, Finding, Lab, Site, rows, threat, truth, until

TIMELY = 10.0


@threat("40 receivers of webhooks send one byte per second")
def dripping(lab: Lab) -> Finding:
    with lab.start("--private-webhooks") as site, drip() as (port, reached):
        people = []
        for _ in range(4):
            number = site.campaign(rows(1), {"finish": {"automatically": False}})
            for k in range(10):
                hook = {"url": f"http://127.0.0.1:{port}/{k}"}
                site.made(f"/api/campaigns/{number}/webhooks", hook)
            people += [site.invite(number), site.invite(number)]
        with contextlib.suppress(OSError):  # the server may be frozen by then
            for worker in people:
                worker.seconds = TIMELY
                worker.work(truth)
        until(lambda: len(reached) >= 40, 5)
        bad = [path for path in ("/healthz", "/api/campaigns", "/") if not responds(site, path)]
    return Finding(not bad, f"no response within {TIMELY:.0f} s: {', '.join(bad) or 'none'}")


def responds(site: Site, path: str) -> bool:
    """Whether there is a response in time."""
    try:
        return Client(site.port, site.headers, seconds=TIMELY).get(path).status < 500
    except OSError:
        return False


@contextlib.contextmanager
def drip() -> Iterator[tuple[int, list[socket.socket]]]:
    """A receiver that sends its response byte by byte; its port, and the connections to it."""
    reached: list[socket.socket] = []
    over = threading.Event()

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                reached.append(listener.accept()[0])

    def send() -> None:
        while not over.wait(1):
            for one in reached:
                with contextlib.suppress(OSError):
                    one.send(b"H")

    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        for job in (accept, send):
            threading.Thread(target=job, daemon=True).start()
        yield listener.getsockname()[1], reached
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        for one in reached:
            one.close()


def ended(site: Site, text: str, seconds: float) -> str:
    """What comes back for a text that is no complete request: a status, a closed connection."""
    with site.raw(text) as made:
        made.settimeout(seconds)
        try:
            found = made.recv(65536)
        except TimeoutError:
            return f"waits for more than {seconds:.0f} s"
        except ConnectionError:
            found = b""
    return found.split(b" ")[1].decode() if found else "closed"


STALLED = (
    "POST {} HTTP/1.1\r\nhost: x\r\n{}content-type: application/json\r\ncontent-length: 9\r\n\r\n{{"
)


@threat("a stranger announces a body and does not send it")
def body_of_a_stranger(lab: Lab) -> Finding:
    found = ended(lab.shared, STALLED.format("/api/campaigns", ""), 8)
    return Finding(found == "401", found)


@threat("somebody who is logged in announces a body and does not send it")
def stalled_body(lab: Lab) -> Finding:
    token = f"authorization: {lab.shared.headers['authorization']}\r\n"
    found = ended(lab.shared, STALLED.format("/api/tokens", token), 40)
    return Finding(found == "408", found)


@threat("a connection sends part of its headers")
def headers(lab: Lab) -> Finding:
    found = ended(lab.shared, "GET /healthz HTTP/1.1\r\nhost: x\r\n", 25)
    return Finding(found == "closed", found)


@threat("400 connections of one address send nothing")
def silent(lab: Lab) -> Finding:
    with lab.start() as site, contextlib.ExitStack() as stack:
        made = [stack.enter_context(site.raw()) for _ in range(400)]
        alive = responds(site, "/healthz")
        until(lambda: all(map(is_closed, made)), 30)
        closed = sum(map(is_closed, made))
    return Finding(alive and closed == 400, f"{closed} closed within 30 s")


@threat("4 connections send headers without end")
def endless(lab: Lab) -> Finding:
    lines = b"".join(b"x-%d: y\r\n" % k for k in range(5000))
    with lab.start() as site, contextlib.ExitStack() as stack:
        refused = 0
        for _ in range(4):
            connection = stack.enter_context(site.raw("GET /healthz HTTP/1.1\r\nhost: x\r\n"))
            try:
                for _ in range(500):
                    connection.sendall(lines)
            except OSError:
                refused += 1
        alive = responds(site, "/healthz")
    return Finding(alive and refused == 4, f"{refused} of 4 closed before 30 MB")


def is_closed(made: socket.socket) -> bool:
    """Whether the server has closed a connection."""
    made.setblocking(False)
    try:
        return made.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


PRIVATE = (
    *("127.0.0.1", "10.0.0.1", "169.254.1.1", "100.64.0.1", "[::1]", "[fd00::1]", "[fe80::1]"),
    *("[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::7f00:1]", "[::ffff:127.0.0.1]", "localhost"),
)


@threat(f"webhooks to {len(PRIVATE)} private and special addresses are saved")
def private_addresses(lab: Lab) -> Finding:
    with lab.start() as site:
        number = site.campaign(rows(1))
        saved = []
        for host in PRIVATE:
            found = site.post(f"/api/campaigns/{number}/webhooks", {"url": f"https://{host}/"})
            if found.status == 201:
                saved.append(host)
                path = f"/api/campaigns/{number}/webhooks/{found['id']}"
                site.call("DELETE", path)
    return Finding(not saved, f"{len(saved)} accepted")
