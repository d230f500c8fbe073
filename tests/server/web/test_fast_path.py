"""The fast path agrees with the framework."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.store import Store


def test_the_fast_path_and_the_framework_agree() -> None:
    """A trailing part of the content type makes a request go the long way or the short one."""
    from starlette.testclient import TestClient

    from crowdtree.server.web import create_app

    with Store("sqlite://").opened() as store:
        app = create_app(store)
        with TestClient(app, base_url="http://127.0.0.1") as client:
            bodies = [
                ("next", {}),
                ("next", {"wait": -1}),
                ("next", {"extra": 1}),
                ("answer", {"lease": "1.ab", "key": "k", "answer": "yes"}),
                ("answer", {"lease": "1.ab", "key": "k", "answer": "perhaps"}),
                ("skip", {"lease": "1.ab", "key": "k"}),
                ("skip", {"lease": "x", "key": "k"}),
            ]
            for name, body in bodies:
                for headers in ({}, {"authorization": "Bearer nobody"}):
                    said = [
                        client.post(
                            f"/api/worker/{name}",
                            content=json.dumps(body),
                            headers={**headers, "content-type": kind},
                        )
                        for kind in ("application/json", "application/vnd.x+json")
                    ]
                    assert said[0].status_code == said[1].status_code >= 400
                    assert said[0].json() == said[1].json()
                    assert said[0].headers["x-content-type-options"] == "nosniff"


def test_a_failure_of_the_fast_path_is_said_as_the_framework_says_it(monkeypatch) -> None:
    from starlette.testclient import TestClient

    from crowdtree.server.web import create_app
    from crowdtree.server.web.services import assignments

    async def fail(*_: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(assignments, "submit_skip", fail)
    body = {"lease": "1.ab", "key": "k"}
    with Store("sqlite://").opened() as store:
        app = create_app(store)
        with TestClient(app, "http://127.0.0.1", raise_server_exceptions=False) as client:
            headers = {"authorization": "Bearer nobody"}
            said = client.post("/api/worker/skip", json=body, headers=headers)
    assert (said.status_code, said.json()["error"]) == (500, "fault")
    for name in ("x-request-id", "x-content-type-options", "cache-control"):
        assert len(said.headers.get_list(name)) == 1
