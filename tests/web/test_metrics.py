"""The metrics in the text format of Prometheus."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from prometheus_client.parser import text_string_to_metric_families

from weblab import lab


def test_every_family_is_written_once_with_help_and_type() -> None:
    with lab() as app:
        first, second = app.campaign(), app.campaign()
        app.worker(first).work()
        app.worker(second).work()
        page = app.get("/metrics")
    assert page.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in text_string_to_metric_families(page.text)}
    names = [line.split()[2] for line in page.text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names)) == len(families) == 4
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
