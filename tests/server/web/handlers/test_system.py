"""Health, metrics and events."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from tests.weblab import Lab


def test_health_metrics_and_events(app: Lab) -> None:
    number = app.campaign()
    app.worker(number).work()
    assert app.client.get("/healthz").json() == {"status": "ok"}
    assert app.client.get("/metrics").status_code == 401
    text = app.get("/metrics").text
    assert f'crowdtree_answers_total{{campaign="{number}",fate="counted"}} 1.0' in text
    trace = app.get(f"/api/campaigns/{number}/items/1").json()
    assert trace["answers"][0]["fate"] == "counted"
    assert app.get(f"/api/campaigns/{number}/activity").json()[0]["action"] == "invite"
