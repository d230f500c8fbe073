"""Messages are signed and sent, and no receiver delays another one or the server."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from crowdtree.server.store import Store
from crowdtree.server.store.db.activity import note
from crowdtree.server.webhooks import delivery, hooks
from crowdtree.server.webhooks.delivery import Deliveries, post
from crowdtree.server.webhooks.outbox import Message
from crowdtree.webhooks import new_secret, verify_signature
from tests import aside
from tests.storelab import filled
from tests.weblab import Clock, Lab

Raw = tuple[int, asyncio.Event]


@pytest.fixture
def store() -> Iterator[Store]:
    with Store("sqlite://", clock=Clock()).opened() as made:
        yield made


def reported(store: Store, *urls: str) -> tuple[int, list[Any]]:
    """A campaign that reports something to webhooks; its number, and the webhooks."""
    number, _ = filled(store, 1)
    added = [store.write(lambda c, u=url: hooks.add_hook(c, number, u, 0.0)) for url in urls]
    store.write(lambda c: note(c, 0.0, "alarm", number, {"text": "why"}, "server"))
    return number, added


async def send_due(store: Store) -> None:
    """Send what is due, and wait for the outcome."""
    deliveries = Deliveries(store, str, private=True)
    await deliveries.start_due()
    await asyncio.gather(*deliveries.tasks)
    assert not deliveries.tasks


def listed(store: Store, number: int) -> list[Any]:
    return store.read(lambda c: hooks.reported_hooks(c, number))


def sent_to(url: str) -> Message:
    return Message("msg_1", 1, url, new_secret(), b"{}")


@contextlib.asynccontextmanager
async def raw(response: bytes) -> AsyncIterator[str]:
    """A receiver that sends these bytes, and then nothing, until it is left; its address."""
    over = asyncio.Event()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(response)
        if response != b"":
            await over.wait()
        writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        over.set()
        server.close()


def test_messages_are_signed_and_sent_in_order(store: Store, receive: Any) -> None:
    receiver = receive()
    url = f"http://127.0.0.1:{receiver.port}/hook?x=1"
    number, (hook,) = reported(store, url)
    store.write(lambda c: note(c, 0.0, "revise", number, {"revision": 1}))
    aside.run(send_due(store))
    kinds = []
    for path, headers, body in receiver.requests:
        assert path == "/hook?x=1"
        assert headers["content-type"] == "application/json"
        assert verify_signature(hook["secret"], headers, body, store.clock())
        assert not verify_signature(new_secret(), headers, body, store.clock())
        kinds.append(json.loads(body)["type"])
    assert kinds == ["table.alarm", "table.revised"]
    assert len({headers["webhook-id"] for _, headers, _ in receiver.requests}) == 2
    (row,) = listed(store, number)
    assert [line["arrived"] for line in row["deliveries"]] == [True, True]


def test_a_message_that_was_refused_is_sent_again_with_a_new_time(
    store: Store, receive: Any
) -> None:
    receiver = receive()
    receiver.statuses = [500]
    number, _ = reported(store, f"http://127.0.0.1:{receiver.port}/")
    aside.run(send_due(store))
    assert listed(store, number)[0]["last_error"] == "status 500"
    aside.run(send_due(store))  # it is not due yet
    assert len(receiver.requests) == 1
    store.clock.now += 2  # type: ignore[attr-defined]
    aside.run(send_due(store))
    (_, first, body), (_, again, same) = receiver.requests
    assert (again["webhook-id"], same) == (first["webhook-id"], body)
    assert int(again["webhook-timestamp"]) == int(first["webhook-timestamp"]) + 2
    (row,) = listed(store, number)
    assert (row["failures"], row["last_error"], row["behind"]) == (0, "", False)


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", ""),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9000000000\r\n\r\n{", ""),
        (b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1/\r\n\r\n", "status 302"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"x" * 200_000, "no HTTP response"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "no HTTP response"),
        (b"", "no HTTP response"),
    ],
)
def test_outcomes(response: bytes, error: str) -> None:
    async def send() -> str:
        async with raw(response) as url:
            return await post(sent_to(url), 0.0, private=True)

    assert aside.run(send()) == error


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("http://127.0.0.1:9/", "connection refused"),
        ("http://host.invalid/", "unknown host"),
        ("https://10.1.2.3/", "the address is private or reserved, not public"),
    ],
)
def test_receivers_that_cannot_be_reached(url: str, error: str) -> None:
    assert aside.run(post(sent_to(url), 0.0, private=url.startswith("http:"))) == error


def test_a_delivery_has_a_deadline_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "DEADLINE", 0.05)

    async def send() -> str:
        async with raw(b"HTTP/1.1 200 OK") as url:
            return await post(sent_to(url), 0.0, private=True)

    assert aside.run(send()).startswith("no response within")


def test_slow_receivers_delay_neither_others_nor_the_server(store: Store, receive: Any) -> None:
    quick = receive()

    async def send() -> None:
        async with raw(b"H") as slow:  # some byte, then nothing
            urls = [f"{slow}{k}" for k in range(9)] + [f"http://127.0.0.1:{quick.port}/"]
            number, _ = await asyncio.to_thread(reported, store, *urls)
            deliveries = Deliveries(store, str, private=True)
            await deliveries.start_due()
            assert len(deliveries.tasks) == 10
            (done,), waiting = await asyncio.wait(
                deliveries.tasks, return_when=asyncio.FIRST_COMPLETED
            )
            assert done.exception() is None
            assert len(waiting) == 9
            await deliveries.start_due()  # they are on their way
            assert deliveries.tasks == waiting
            await deliveries.close()
            rows = await asyncio.to_thread(listed, store, number)
            assert [row["behind"] for row in rows] == [True] * 9 + [False]
            assert {row["failures"] for row in rows} == {0}  # sent again after the next start

    aside.run(send())
    assert len(quick.requests) == 1


def test_the_server_sends_messages(app: Lab, receive: Any) -> None:
    receiver = receive()
    number = app.campaign(example="table1", workers=0, items="task,text\na,one\nb,two\n")
    url = f"http://127.0.0.1:{receiver.port}/"
    secret = app.post(f"/api/campaigns/{number}/webhooks", {"url": url}).json()["secret"]
    assert secret not in app.get(f"/api/campaigns/{number}/webhooks").text
    worker = app.worker(number)
    while worker.work("yes"):
        pass
    app.settle()
    assert receiver.until("campaign.finished")
    told = [json.loads(body) for _, _, body in receiver.requests]
    rows = [row["task"] for body in told for row in body["data"].get("labels", ())]
    assert sorted(rows) == ["a", "b"]
