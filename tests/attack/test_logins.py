"""Guessed tokens, and many people who join from one address."""

from __future__ import annotations

import http.client
import itertools
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.store import Store, tokens
from crowdtree.server.web.processes import SHARED
from crowdtree.server.web.rate_limit import MAX_ADDRESSES, RateLimit
from tests.serving import Client, Server, running
from tests.weblab import Lab, lab

DOORS = ("/api/session", "/api/worker/session", "/api/join")
LINKS = ("/login?token={}", "/w/{}", "/a/{}", "/join/{}")


@pytest.fixture
def app() -> Iterator[Lab]:
    with lab() as made:
        yield made


def guess(client: Any, k: int) -> int:
    """Try one of the login routes with a token that does not exist."""
    place = k % (len(DOORS) + len(LINKS))
    if place < len(DOORS):
        return int(client.post(DOORS[place], json={"token": f"guess{k}"}).status_code)
    path = LINKS[place - len(DOORS)].format(f"guess{k}")
    return int(client.get(path, follow_redirects=False).status_code)


def once(app: Lab) -> str:
    return str(app.store.write(lambda c: tokens.issue(c, "once", app.clock())))


def test_guesses_are_limited_at_every_login_route(app: Lab) -> None:
    """Guesses at all login routes share one limit."""
    seen = Counter(guess(app.client, k) for k in range(300))
    assert set(seen) == {401, 429}
    assert seen[401] <= 25
    assert app.client.get("/healthz").status_code == 200


def test_a_guess_writes_nothing(app: Lab) -> None:
    """Guesses must not compete with answers for the one writer."""
    seen: list[Any] = []
    put = app.store.writers["answers"].put
    app.store.writers["answers"].put = lambda request: (seen.append(request), put(request))[1]  # type: ignore[method-assign, assignment, func-returns-value]
    for k in range(12):
        assert guess(app.client, k) == 401
    assert {type(request).__name__ for request in seen} <= {"ExpireLeases"}


def test_the_limit_itself() -> None:
    """Bounded tries and memory from many addresses; valid logins still succeed."""
    now = 0.0
    limit = RateLimit("logins", 20, 60.0, clock=lambda: now)
    assert sum(limit.allows("192.0.2.1") for _ in range(20_000)) == 20
    assert limit.allows("192.0.2.2")
    limit = RateLimit("logins", 20, 60.0, clock=lambda: now)
    botnet = [f"10.{k % 50}.0.1" for k in range(20_000)] + [
        f"10.9.{k % 250}.1" for k in range(9000)
    ]
    let = Counter(address for address in botnet if limit.allows(address))
    assert max(let.values()) <= 20
    assert sum(let.values()) <= 20 * 100 + 300  # then one each for addresses that were not seen
    assert limit.allows("198.51.100.7")  # somebody who has not failed
    assert not limit.allows("198.51.100.7")  # and now waits like the others
    now = 61.0
    assert limit.allows("198.51.100.7")
    many = RateLimit("logins", 20, 60.0, clock=lambda: now)
    for k in range(12_000):
        many.allows(f"address {k}")
    assert many.remembered() <= MAX_ADDRESSES


def test_processes_of_one_server_share_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise four processes would allow four times as many guesses."""
    monkeypatch.setenv(SHARED, str(tmp_path))
    processes = [RateLimit("logins", 20, 60.0, clock=lambda: 0.0) for _ in range(4)]
    joins = RateLimit("joins", 20, 60.0, clock=lambda: 0.0)
    assert sum(processes[k % 4].allows("192.0.2.1") for k in range(200)) == 20
    processes[0].refund("192.0.2.1")
    assert [limit.allows("192.0.2.1") for limit in processes] == [True, False, False, False]
    assert joins.allows("192.0.2.1")


def test_an_ipv6_customer_is_one_address() -> None:
    limit = RateLimit("logins", 20, 60.0, clock=lambda: 0.0)
    assert sum(limit.allows(f"2001:db8:1:2::{k:x}") for k in range(1000)) == 20
    assert limit.allows("2001:db8:1:3::1")


def test_successful_logins_do_not_count(app: Lab) -> None:
    """A classroom behind one address logs in by personal links."""
    number = app.campaign()
    seats = [app.worker(number) for _ in range(40)]
    for seat in seats:
        assert app.post("/api/worker/session", {"token": seat.token}).status_code == 200
        found = app.client.get(f"/w/{seat.token}", follow_redirects=False)
        assert found.status_code == 303
    for _ in range(30):
        assert app.post("/api/session", {"token": once(app)}).status_code == 200


def test_a_lecture_hall_joins_from_one_address(app: Lab) -> None:
    number = app.campaign()
    join = app.post(f"/api/campaigns/{number}/join-link").json()["token"]
    for k in range(120):
        body = {"token": join, "participant": f"p{k}"}
        assert app.client.post("/api/join", json=body).status_code == 200


def test_joins_have_a_limit_of_their_own() -> None:
    with lab(joins_per_minute=5) as app:
        number = app.campaign()
        join = app.post(f"/api/campaigns/{number}/join-link").json()["token"]
        seen = [
            app.client.post("/api/join", json={"token": join, "participant": f"p{k}"}).status_code
            for k in range(60)
        ]
        assert seen == [200] * 5 + [429] * 55
        # Their neighbours can still log in.
        assert app.post("/api/session", {"token": once(app)}).status_code == 200
        worker = app.worker(number)
        assert app.post("/api/worker/session", {"token": worker.token}).status_code == 200


def test_a_second_click_on_the_join_link_is_the_same_worker(app: Lab) -> None:
    number, other = app.campaign(), app.campaign()
    link = app.post(f"/api/campaigns/{number}/join-link").json()["link"]
    for _ in range(3):
        found = app.client.get(link, follow_redirects=False)
        assert (found.status_code, found.headers["location"]) == (303, "/work")
    assert len(app.get(f"/api/campaigns/{number}/workers").json()) == 1
    second = app.post(f"/api/campaigns/{other}/join-link").json()["link"]
    app.client.get(second, follow_redirects=False)  # another campaign: another worker
    assert len(app.get(f"/api/campaigns/{other}/workers").json()) == 1
    app.client.cookies.clear()
    app.client.get(link, follow_redirects=False)  # another browser
    assert len(app.get(f"/api/campaigns/{number}/workers").json()) == 2


class From(Client):
    """A client with its own address: all of 127.0.0.0/8 is this machine."""

    def __init__(self, port: int, address: str) -> None:
        super().__init__(port)
        self.connection = http.client.HTTPConnection(
            "127.0.0.1", port, self.timeout, source_address=(address, 0)
        )


@pytest.mark.parametrize(
    "tries", [2_000, pytest.param(100_000, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_failed_logins_are_cheap_and_lock_nobody_out(tries: int, tmp_path: Path) -> None:
    """A real server: memory stays bounded, and other addresses can log in."""
    url = f"sqlite:///{tmp_path / 'x.db'}"
    server = Server(url)
    with running(server):
        with Store(url).opened() as store:  # takes seconds on a busy machine
            token = store.write(lambda c: tokens.issue(c, "once", store.clock()))
        attacked(server, 100)
        before = memory(server)
        seen = attacked(server, tries)
        assert set(seen) <= {401, 429}
        assert sum(seen.values()) == tries
        assert seen[401] <= tries // 20
        assert memory(server) - before < 20 * 2**20
        bad, good = Client(server.port), From(server.port, "127.0.0.2")
        assert bad.post("/api/session", {"token": token})[0] == 429
        assert good.post("/api/session", {"token": token})[0] == 200
        bad.close()
        good.close()


def attacked(server: Server, tries: int) -> Counter[int]:
    """Guess from four connections at once."""
    counts: list[Counter[int]] = []

    def attack() -> None:
        client = Client(server.port)
        paths = itertools.cycle(DOORS)
        guesses = ((next(paths), {"token": f"guess{k}"}) for k in range(tries // 4))
        counts.append(Counter(client.post(path, body)[0] for path, body in guesses))
        client.close()

    threads = [threading.Thread(target=attack) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts, Counter())


def memory(server: Server) -> int:
    """Memory of the server process in bytes; 0 where it is unknown."""
    assert server.process is not None
    status = Path(f"/proc/{server.process.pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))
