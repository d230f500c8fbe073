"""The pages of webhooks and access."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.store.background import outbox
from tests.weblab import Lab, hooked, message, settle


def test_deliveries_are_remembered_the_last_ones_only(app: Lab) -> None:
    number = app.campaign(start=False)
    hook, other = hooked(app, number), hooked(app, number)
    for last in range(outbox.KEPT + 5):
        settle(app, message(number, hook, last), "status 500" if last % 2 else "")
    settle(app, message(number, other, 1))
    path = f"/api/campaigns/{number}/webhooks/{hook}/deliveries"
    found = app.get(path).json()
    assert [line["message"] for line in found] == [
        f"{hook}-{last}" for last in reversed(range(5, outbox.KEPT + 5))
    ]
    assert found[0]["labels"] == 3
    assert {line["error"] for line in found} == {"", "status 500"}
    assert len(app.get(f"/api/campaigns/{number}/webhooks/{other}/deliveries").json()) == 1
    elsewhere = app.campaign(start=False)
    assert app.get(f"/api/campaigns/{elsewhere}/webhooks/{hook}/deliveries").status_code == 404
    assert app.post(f"/api/campaigns/{elsewhere}/webhooks/{hook}/retry").status_code == 404
    gone = app.client.delete(f"/api/campaigns/{number}/webhooks/{hook}", headers=app.owner)
    assert gone.status_code == 200
    settle(app, message(number, hook, 99))  # was on its way when it was removed
    assert app.get(path).status_code == 404


def test_a_failed_webhook_can_be_retried(app: Lab) -> None:
    number = app.campaign(start=False)
    hook = hooked(app, number)
    settle(app, message(number, hook, 1, failures=outbox.MOST_FAILURES - 1), "connection refused")
    page = app.get(f"/c/{number}/webhooks").text
    assert "given up" in page
    assert "connection refused" in page
    app.post(f"/api/campaigns/{number}/webhooks/{hook}/retry")
    row = app.get(f"/api/campaigns/{number}/webhooks").json()[0]
    assert (row["status"], row["failures"], row["next_try_at"]) == ("active", 0, 0.0)
