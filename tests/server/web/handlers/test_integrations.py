"""The pages of webhooks and access."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.store.db.tables import deliveries, webhooks
from tests.weblab import Lab, hooked


def given_up(app: Lab, number: int) -> int:
    """A webhook that was given up; a message of it has arrived, another one has not."""
    hook = hooked(app, number)
    failed = {"status": "failed", "failures": 20, "last_error": "connection refused"}
    mine = webhooks.update().where(webhooks.c.id == hook)
    app.store.write(lambda c: c.execute(mine.values(**failed)).rowcount)
    line = {"webhook_id": hook, "event": "items.labelled", "feed": "labels", "rows": 3}
    lines = (
        {"message": "msg_1", "attempts": 2, "arrived": 1},
        {"message": "msg_2", "attempts": 20, "error": "connection refused"},
    )
    for each in lines:
        made = deliveries.insert().values(**line, **each)
        app.store.write(lambda c, made=made: c.execute(made).rowcount)
    return hook


def test_messages_are_listed_the_newest_first(app: Lab) -> None:
    number = app.campaign(start=False)
    hook, other = given_up(app, number), hooked(app, number)
    path = f"/api/campaigns/{number}/webhooks/{hook}/deliveries"
    newest, oldest = app.get(path).json()
    assert (newest["message"], newest["arrived"]) == ("msg_2", False)
    assert (newest["attempts"], newest["error"], newest["rows"]) == (20, "connection refused", 3)
    assert (oldest["arrived"], oldest["error"]) == (True, "")
    page = app.get(f"/c/{number}/webhooks").text
    assert "connection refused at attempt 20" in page
    assert "arrived at attempt 2" in page
    assert app.get(f"/api/campaigns/{number}/webhooks/{other}/deliveries").json() == []
    elsewhere = app.campaign(start=False)
    assert app.get(f"/api/campaigns/{elsewhere}/webhooks/{hook}/deliveries").status_code == 404
    assert app.post(f"/api/campaigns/{elsewhere}/webhooks/{hook}/retry").status_code == 404
    gone = app.client.delete(f"/api/campaigns/{number}/webhooks/{hook}", headers=app.owner)
    assert gone.status_code == 200
    assert app.get(path).status_code == 404


def test_a_failed_webhook_can_be_retried(app: Lab) -> None:
    number = app.campaign(start=False)
    hook = given_up(app, number)
    page = app.get(f"/c/{number}/webhooks").text
    assert "given up" in page
    assert "20 failures: connection refused" in page
    app.post(f"/api/campaigns/{number}/webhooks/{hook}/retry")
    row = app.get(f"/api/campaigns/{number}/webhooks").json()[0]
    assert (row["status"], row["failures"], row["next_try_at"]) == ("active", 0, 0.0)
