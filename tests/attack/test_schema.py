"""Schemathesis over the OpenAPI schema: whatever is sent, the server never breaks."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")
schemathesis = pytest.importorskip("schemathesis")

from hypothesis import HealthCheck, Phase, given, settings
from weblab import Lab, lab

from crowdtree.web.limits import RateLimit

ENDLESS = ("/api/campaigns/{number}/events",)
"""Streams that never end by themselves."""


def test_never_a_server_error() -> None:
    with lab() as app:
        number = app.campaign()
        worker = app.worker(number)
        app.client.app.state.site.login_limit = RateLimit(10**6, 1.0)
        schema = schemathesis.openapi.from_asgi("/api/openapi.json", app.client.app)
        tried = set()
        for found in schema.get_all_operations():
            operation = found.ok()
            if operation.path in ENDLESS:
                continue
            headers = worker.headers if operation.path.startswith("/api/worker") else app.owner
            attack(app, operation, headers)
            tried.add(operation.label)
        assert len(tried) >= 25
        assert app.client.get("/healthz").status_code == 200


def attack(app: Lab, operation: Any, headers: dict[str, str]) -> None:
    """Send what fits the schema, and what hardly does."""

    @settings(
        max_examples=20,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
    )
    @given(case=operation.as_strategy())
    def run(case: Any) -> None:
        if isinstance(case.body, dict) and "wait" in case.body:
            case.body["wait"] = 0
        for sent in (headers, {}):
            case.headers = {**(case.headers or {}), **sent}
            arguments = case.as_transport_kwargs(base_url="http://testserver")
            arguments.pop("cookies", None)
            content = {key: arguments[key] for key in ("json", "data", "params") if key in arguments}
            if isinstance(content.get("data"), str | bytes):
                content["content"] = content.pop("data")
            response = app.client.request(
                arguments["method"], arguments["url"], headers=dict(arguments["headers"]), **content
            )
            assert response.status_code < 500, (operation.label, case.body, response.text)

    run()
