"""The metrics in the text format of Prometheus."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from prometheus_client.parser import text_string_to_metric_families

from crowdtree.server.store.db.tables import webhooks
from tests.weblab import Lab, lab


def test_every_family_is_written_once_with_help_and_type() -> None:
    with lab() as app:
        first, second = app.campaign(), app.campaign()
        app.worker(first).work()
        app.worker(second).work()
        page = app.get("/metrics")
    assert page.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in text_string_to_metric_families(page.text)}
    names = [line.split()[2] for line in page.text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names)) == len(families) == 12
    assert all(family.documentation for family in families.values())
    counted = {
        sample.labels["campaign"]: sample.value
        for sample in families["crowdtree_answers"].samples
        if sample.labels["fate"] == "counted"
    }
    assert counted == {str(first): 1, str(second): 1}
    assert {s.name for s in families["crowdtree_answers"].samples} == {"crowdtree_answers_total"}
    states = {s.labels["status"] for s in families["crowdtree_items"].samples}
    assert states == {"new", "open", "labelled", "set_aside"}


def sample(app: Lab, name: str, **labels: str) -> float:
    """The value of a sample; 0 if there is none."""
    text = app.get("/metrics").text
    samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
    found = [s.value for s in samples if s.name == name and labels.items() <= s.labels.items()]
    return sum(found)


def test_requests_are_counted_by_route_and_status() -> None:
    """Routes, not paths: secrets in paths never reach the metrics."""
    counted = [
        ("/api/worker/answer", "POST", "200"),
        ("/api/campaigns/{campaign_id}", "GET", "200"),
        ("/join/{token}", "GET", "401"),
        ("other", "GET", "404"),
    ]
    with lab() as app:
        number = app.campaign()

        def counts() -> list[float]:
            names = ("route", "method", "status")
            return [
                sample(app, "crowdtree_requests_total", **dict(zip(names, one, strict=True)))
                for one in counted
            ]

        timed = {"route": "/api/worker/answer"}
        before = counts(), sample(app, "crowdtree_request_seconds_count", **timed)
        app.worker(number).work()
        app.get(f"/api/campaigns/{number}")
        app.get("/join/s3cret")
        app.get("/nowhere/s3cret")
        assert counts() == [value + 1 for value in before[0]]
        assert sample(app, "crowdtree_request_seconds_count", **timed) == before[1] + 1
        assert "s3cret" not in app.get("/metrics").text


def test_gauges_of_the_database_and_of_webhooks() -> None:
    with lab(private_webhooks=True) as app:
        number = str(app.campaign())
        ann = app.worker(int(number))
        ann.next()  # is acknowledged before it is committed; the write below comes after it
        hook = {"campaign_id": int(number), "url": "http://127.0.0.1:9/", "secret": "s"}
        late = {"next_try_at": 1e12, "failures": 3}
        app.store.write(lambda c: c.execute(webhooks.insert().values(**hook, **late)).rowcount)
        assert sample(app, "crowdtree_open_leases", campaign=number) == 1
        assert sample(app, "crowdtree_build_info", database="sqlite") == 1
        assert sample(app, "crowdtree_pool_connections") >= 1
        assert sample(app, "crowdtree_queue_depth", writer="answers") >= 0
        for worker in (ann, *(app.worker(int(number)) for _ in range(9))):
            while worker.work("yes") is not None:
                pass
        labelled = sample(app, "crowdtree_items", campaign=number, status="labelled")
        assert labelled > 0
        assert sample(app, "crowdtree_webhook_backlog", campaign=number) >= labelled
        assert sample(app, "crowdtree_webhook_failures", campaign=number) == 3
