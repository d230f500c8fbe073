"""What the server does in the background."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests import aside

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from tests.storelab import ONE
from tests.weblab import Lab


def test_the_server_sets_stalled_items_aside_automatically(app: Lab) -> None:
    number = app.campaign(ONE, settings={"close_stalled_after_seconds": 60})
    app.worker(number).work("no")
    state: Any = app.client.app.state.crowdtree  # type: ignore[attr-defined]
    from crowdtree.server.web.background import check_stalled

    app.client.portal.call(check_stalled, state)  # type: ignore[union-attr]
    assert app.get(f"/api/campaigns/{number}").json()["waiting_for_workers"] == 1
    page = app.get(f"/c/{number}").text
    assert "1 item waits for more workers" in page
    assert "Waiting for more people" in page  # not "Going well, done in a minute"
    app.clock.now += 1000
    app.client.portal.call(check_stalled, state)  # type: ignore[union-attr]
    found = app.get(f"/api/campaigns/{number}").json()
    assert (found["waiting_for_workers"], found["items"]["set_aside"]) == (0, 1)


def test_the_server_stops_when_an_answer_arrives_at_the_same_time() -> None:
    from crowdtree.server.web.background import watch

    async def play() -> None:
        watching = SimpleNamespace(round=lambda _: False)
        state: Any = SimpleNamespace(changed=asyncio.Event(), watching=watching, store=None)
        task = asyncio.create_task(watch(state))
        while not state.changed._waiters:
            await asyncio.sleep(0.01)
        state.changed.set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    aside.run(play())
