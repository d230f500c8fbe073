"""Rules get their turns, and the failure of one stops neither others nor itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

pytest.importorskip(
    "sqlalchemy", reason="the server is not installed: pip install crowdtree[serve]"
)

from crowdtree.server.rules import runner as module
from crowdtree.server.rules.rule import Rule
from crowdtree.server.rules.runner import Runner
from crowdtree.server.store import Store, Unavailable
from crowdtree.server.store.db.activity import list_activity, note
from tests.storelab import filled


class Naming(Rule[str]):
    """Notes each campaign once."""

    name = "naming"

    def look(self, connection: Any, campaign: Any) -> str | None:
        said = list_activity(connection, campaign.id)
        return None if any(entry["action"] == self.name for entry in said) else self.name

    def apply(self, connection: Any, campaign: Any, finding: str) -> bool:
        note(connection, self.clock(), finding, campaign.id, actor="server")
        return False


class FailingLook(Naming):
    name = "failing look"

    def look(self, connection: Any, campaign: Any) -> str | None:
        if campaign.id == 1:
            raise ZeroDivisionError("by nothing")
        return super().look(connection, campaign)


class FailingWrite(Naming):
    name = "failing write"

    def apply(self, connection: Any, campaign: Any, finding: str) -> bool:
        super().apply(connection, campaign, finding)
        if campaign.id == 1:
            raise KeyError("it")
        return False


@pytest.fixture
def store() -> Iterator[Store]:
    """A store with two running campaigns."""
    with Store("sqlite://").opened() as found:
        for _ in range(2):
            filled(found, n=1)
        yield found


def actions(store: Store, campaign: int, action: str) -> list[Any]:
    said = store.read(partial(list_activity, campaign_id=campaign))
    return [entry["detail"] for entry in said if entry["action"] == action]


@pytest.mark.parametrize("kind", [FailingLook, FailingWrite])
def test_a_rule_that_fails_on_a_campaign_goes_on_and_its_owner_is_told_once(
    store: Store, kind: type[Rule[Any]], caplog: pytest.LogCaptureFixture
) -> None:
    runner = Runner(store, [kind, Naming])
    for _ in range(3):
        assert not runner.tick()
    assert actions(store, 1, kind.name) == [], "what a rule writes before it fails is taken back"
    assert len(actions(store, 2, kind.name)) == 1
    assert len(actions(store, 1, "naming")) == 1
    (told,) = actions(store, 1, "rule failed")
    assert told["rule"] == kind.name
    assert actions(store, 2, "rule failed") == []
    assert f"{kind.name}: campaign 1 failed" in caplog.text


def test_a_database_that_is_down_stops_no_later_turn(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: Any) -> Any:
        raise Unavailable("the database is down")

    runner = Runner(store, [Naming])
    with monkeypatch.context() as outage:
        outage.setattr(store, "read", down)
        assert not runner.tick()
    with monkeypatch.context() as outage:
        outage.setattr(store, "write", down)
        assert not runner.tick()
    assert actions(store, 1, "naming") == []
    runner.tick()
    assert len(actions(store, 1, "naming")) == 1


class Still(threading.Event):
    """An event whose waits move a clock instead of taking time."""

    def __init__(self, limit: float) -> None:
        super().__init__()
        self.now, self.limit = 0.0, limit

    def wait(self, timeout: float | None = None) -> bool:
        self.now += timeout or 0.0
        return self.is_set() or self.now > self.limit


def test_each_rule_has_its_turn_in_its_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that has more to do goes on at once; one that may take little of the time rests."""
    stopping = Still(limit=10.0)
    turns: list[tuple[str, float]] = []

    class Busy(Naming):
        name, seconds, left = "busy", 4.0, 2

        def turn(self, _store: Store) -> bool:
            turns.append((self.name, stopping.now))
            self.left -= 1
            return self.left > 0

    class Slow(Naming):
        name, seconds, share = "slow", 1.0, 0.25

        def turn(self, _store: Store) -> bool:
            turns.append((self.name, stopping.now))
            stopping.now += 1.0
            return False

    monkeypatch.setattr(module.time, "monotonic", lambda: stopping.now)
    Runner(store, [Busy, Slow]).run(stopping)
    assert [turn for turn in turns if turn[0] == "slow"] == [("slow", t) for t in (0.0, 4.0, 8.0)]
    assert [t for name, t in turns if name == "busy"] == [0.0, 1.0, 5.0, 9.0]
