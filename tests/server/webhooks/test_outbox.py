"""Messages of webhooks: in order, at least once, tried again, given up."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Any

import pytest

pytest.importorskip(
    "sqlalchemy", reason="the server is not installed: pip install crowdtree[serve]"
)

import sqlalchemy as sa

from crowdtree.server.reasons import CampaignReason
from crowdtree.server.store import Store
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.activity import EVENTS, list_activity, note
from crowdtree.server.store.db.tables import deliveries, labels
from crowdtree.server.store.owner import campaigns
from crowdtree.server.store.serving.unit_of_work import write_labels
from crowdtree.server.webhooks import hooks, outbox
from crowdtree.server.webhooks.outbox import Message
from tests.docs.pages import ROOT
from tests.serving import Postgres
from tests.storelab import filled
from tests.weblab import Clock, delivered

ITEMS = 200


class Desk:
    """A campaign with a webhook, without a server."""

    def __init__(self, url: str = "sqlite://") -> None:
        self.clock = Clock()
        self.store = Store(url, clock=self.clock)
        self.number, _ = filled(self.store, ITEMS)
        self.next_item = 1
        self.hook = self.add()
        delivered(self.store, self.clock)

    def add(self) -> int:
        add = self.store.write(lambda c: hooks.add_hook(c, self.number, "https://x.example/", 0.0))
        return add["id"]

    def label(self, count: int = 1) -> list[str]:
        """Label items; returns their names."""
        ids = range(self.next_item, self.next_item + count)
        self.next_item += count
        now = self.clock()
        lines = [
            sql.LabelLine(self.number, k, 0, 0.1, "leaf", answers=1, path="[]", at=now) for k in ids
        ]
        self.store.write(lambda c: write_labels(c, lines))
        return [f"i{k - 1}" for k in ids]

    def withdraw(self, item: int) -> None:
        """Take back the label of an item."""
        mine = labels.c.item_id == item
        row = self.store.read(lambda c: c.execute(sa.select(labels).where(mine)).one())
        gone = sql.Withdrawal(self.number, item, row.id, self.clock())
        self.store.write(lambda c: write_labels(c, [], [gone]))
        self.store.write(lambda c: c.execute(labels.delete().where(mine)).rowcount)

    def note(self, action: str = "alarm", **detail: Any) -> None:
        now = self.clock()
        self.store.write(lambda c: note(c, now, action, self.number, detail, "server"))

    def claim(self) -> list[Message]:
        return self.store.write(lambda c: outbox.claim(c, self.clock()))

    def settle(self, message: Message, error: str = "") -> Message | None:
        return self.store.write(lambda c: outbox.settle(c, message, error, self.clock()))

    def sent(self) -> list[tuple[str, list[str]]]:
        """Let all messages arrive; their types, and the items they are about."""
        return [summary(body) for body in delivered(self.store, self.clock)]

    @property
    def row(self) -> Any:
        (row,) = self.store.read(lambda c: hooks.reported_hooks(c, self.number))
        return row


def summary(body: Any) -> tuple[str, list[str]]:
    rows = body["data"].get("labels") or body["data"].get("withdrawn") or []
    return body["type"], [row["task"] for row in rows]


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    with made.store.opened():
        yield made


def test_messages_follow_the_order_of_what_happened(desk: Desk) -> None:
    first = desk.label(2)
    desk.clock.now += 1
    desk.note()
    desk.clock.now += 1
    second = desk.label(130)
    desk.withdraw(1)  # at the same time: before the labels
    desk.clock.now += 1
    finish = desk.store.write(
        lambda c: campaigns.set_status(c, desk.number, "finished", desk.clock())
    )
    assert finish.status == "finished"
    assert desk.sent() == [
        ("items.labelled", first[1:]),
        ("table.alarm", []),
        ("labels.withdrawn", first[:1]),
        ("items.labelled", second[:100]),
        ("items.labelled", second[100:]),
        ("campaign.finished", []),
    ]
    assert desk.sent() == []
    assert not desk.row["behind"]


def test_a_campaign_that_finishes_again_says_so_again(desk: Desk) -> None:
    move = partial(campaigns.set_status, campaign_id=desk.number, now=0.0)
    pause = partial(campaigns.pause_finished, campaign_id=desk.number, now=0.0)
    desk.store.write(lambda c: move(c, status="finished"))
    desk.store.write(lambda c: pause(c, reason=CampaignReason.ITEMS_REOPENED))
    desk.store.write(lambda c: move(c, status="running"))
    desk.store.write(lambda c: move(c, status="finished"))
    assert [kind for kind, _ in desk.sent()] == ["campaign.finished"] * 2


def test_the_form_of_messages(desk: Desk) -> None:
    desk.note("suspect", worker=7, text="why")
    (message,) = desk.claim()
    assert json.loads(message.body) == {
        "type": "worker.suspected",
        "timestamp": "1970-01-12T13:46:40.000Z",
        "data": {"campaign": desk.number, "actor": "server", "worker": 7, "text": "why"},
    }
    assert message.id.startswith("msg_")
    assert "." not in message.id


def test_a_message_that_is_sent_again_is_the_same(desk: Desk) -> None:
    first = desk.label(2)
    (message,) = desk.claim()
    assert desk.settle(message, "status 500") is None
    desk.label(3)
    desk.clock.now += 10
    (again,) = desk.claim()
    assert (again.id, again.body) == (message.id, message.body)
    assert summary(json.loads(again.body)) == ("items.labelled", first)
    following = desk.settle(again)
    assert following is not None
    assert following.id != message.id
    assert [len(json.loads(following.body)["data"]["labels"])] == [3]


def test_a_message_is_taken_by_one_process_until_its_claim_ends(desk: Desk) -> None:
    desk.label()
    (message,) = desk.claim()
    assert desk.claim() == []
    desk.clock.now += outbox.CLAIM_SECONDS  # the process was killed
    (again,) = desk.claim()
    assert again == message
    assert desk.settle(again) is None
    desk.label()
    assert desk.settle(message, "late") is None  # the first process was only slow
    row = desk.row
    assert (row["failures"], row["deliveries"][0]["arrived"]) == (0, True)
    assert len(desk.sent()) == 1


def test_failures_are_tried_again_later_and_later_then_given_up(desk: Desk) -> None:
    names = desk.label()
    waits = []
    for _ in range(outbox.MAX_FAILURES):
        (message,) = desk.claim()
        desk.settle(message, "status 503")
        waits.append(desk.row["next_try_at"] - desk.clock())
        desk.clock.now += waits[-1] - 0.5
        assert desk.claim() == []
        desk.clock.now += 0.5
    assert waits[:3] == [2.0, 4.0, 8.0]
    assert waits == sorted(waits)
    assert waits[-1] == outbox.MAX_WAIT_SECONDS
    assert desk.row["status"] == "failed"
    assert desk.claim() == []
    (entry,) = desk.store.read(lambda c: list_activity(c, desk.number, most=1))
    assert entry["action"] == "webhook failed"
    assert entry["detail"]["webhook"] == desk.hook
    assert "20 times in a row, at last with: status 503; repair" in entry["detail"]["text"]
    desk.store.write(lambda c: hooks.retry_hook(c, desk.number, desk.hook, desk.clock()))
    assert desk.sent() == [("items.labelled", names)]
    (line,) = desk.row["deliveries"]
    assert (line["attempts"], line["arrived"], line["error"]) == (21, True, "")


def test_a_webhook_that_was_removed_stays_removed(desk: Desk) -> None:
    desk.label()
    (message,) = desk.claim()
    desk.store.write(lambda c: hooks.remove_hook(c, desk.number, desk.hook, desk.clock()))
    assert desk.settle(message) is None
    assert desk.claim() == []
    assert desk.store.read(lambda c: c.execute(sa.select(deliveries)).all()) == []


def test_labels_withdrawn_before_they_arrive_are_left_out(desk: Desk) -> None:
    names = desk.label(2)
    (message,) = desk.claim()
    desk.settle(message, "status 500")
    desk.withdraw(1)
    desk.clock.now += 10
    assert desk.sent() == [("items.labelled", names[1:]), ("labels.withdrawn", names[:1])]


def test_the_last_messages_are_kept(desk: Desk) -> None:
    for k in range(outbox.MAX_KEPT + 5):
        desk.note(text=str(k))
    assert len(desk.sent()) == outbox.MAX_KEPT + 5
    kept = [line["id"] for line in desk.row["deliveries"]]
    assert len(kept) == outbox.MAX_KEPT
    assert kept == list(range(max(kept), max(kept) - outbox.MAX_KEPT, -1))


@pytest.mark.parametrize("seed", range(8))
def test_everything_arrives_in_order_whatever_fails(seed: int) -> None:
    rng, made = Random(seed), Desk()
    with made.store.opened():
        others = [made.add() for _ in range(2)]
        names: list[str] = []
        notes = 0
        arrived: dict[int, dict[str, Any]] = {hook: {} for hook in (made.hook, *others)}
        under_way: list[Message] = []
        while made.next_item < 60 or under_way:
            made.clock.now += rng.random() * 20
            if made.next_item < 60 and rng.random() < 0.5:
                names += made.label(rng.randint(1, 5))
            if made.next_item < 60 and rng.random() < 0.3:
                notes += 1
                made.note(text=str(notes))
            under_way += made.claim()
            rng.shuffle(under_way)
            for message in under_way[: rng.randint(0, 3)]:
                under_way.remove(message)
                if (reached := rng.random()) < 0.7:
                    before = arrived[message.webhook_id].setdefault(message.id, message.body)
                    assert before == message.body
                if (error := rng.random() < 0.3 or reached >= 0.7) and rng.random() < 0.5:
                    continue  # killed before the outcome was written
                following = made.settle(message, "failed" if error else "")
                under_way += [following] if following else []
        made.clock.now += 1e6
        for hook in (made.hook, *others):
            made.store.write(lambda c, h=hook: hooks.retry_hook(c, made.number, h, made.clock()))
        messages = made.claim()
        while messages:
            message = messages.pop()
            arrived[message.webhook_id][message.id] = message.body
            following = made.settle(message)
            messages += [following] if following else []
        for bodies in arrived.values():
            data = [json.loads(body)["data"] for body in bodies.values()]
            assert [row["task"] for each in data for row in each.get("labels", ())] == names
            told = [each["text"] for each in data if "text" in each]
            assert told == [str(k + 1) for k in range(notes)]


def test_webhooks_miss_no_label_that_commits_late(postgres: Postgres) -> None:
    waits = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    with Store(postgres.migrated()).opened() as store:
        number, _ = filled(store, 2)
        first, second = (
            sql.LabelLine(number, k, 0, 0.1, "leaf", answers=1, path="[]", at=0.0) for k in (1, 2)
        )
        store.write(lambda c: hooks.add_hook(c, number, "https://label.example/", 0.0))
        with store.engine.connect() as slow, slow.begin():
            write_labels(slow, [first])  # has its number, and is not there yet
            store.write(lambda c: write_labels(c, [second]))
            found: list[Message] = []
            due = threading.Thread(
                target=lambda: found.extend(store.write(lambda c: outbox.claim(c, 1.0)))
            )
            due.start()
            while due.is_alive() and not store.read(lambda c: c.execute(waits).scalar_one()):
                pass
        due.join(30)
        assert summary(json.loads(found[0].body)) == ("items.labelled", ["i0", "i1"])


def test_the_documentation_lists_every_event() -> None:
    page = (ROOT / "docs" / "howto" / "webhooks.md").read_text("utf-8")
    assert [name for name in EVENTS if f"`{name}`" not in page] == []
