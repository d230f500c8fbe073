"""What workers do all the time: next, answer, skip, past the framework's dependencies."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from starlette.testclient import TestClient

from crowdtree.server.store import Store
from crowdtree.server.web.app import create_app
from tests.weblab import Lab

SKIP = {"lease": "1.ab", "key": "k"}


@pytest.mark.parametrize(
    ("verb", "body", "words"),
    [
        ("next", {"wait": -1}, "wait: Input should be greater than or equal to 0"),
        ("next", {"extra": 1}, "extra: Extra inputs are not permitted"),
        ("answer", {**SKIP, "answer": "perhaps"}, "answer: Input should be 'yes' or 'no'"),
        ("skip", {"lease": "x", "key": "k"}, "lease: String should have at least 3 characters"),
        ("skip", [], "body: Input should be an object"),
    ],
)
def test_wrong_bodies_are_refused_with_the_place(
    app: Lab, verb: str, body: Any, words: str
) -> None:
    headers = {"authorization": "Bearer nobody"}
    said = app.client.post(f"/api/worker/{verb}", json=body, headers=headers)
    assert (said.status_code, said.json()["error"]) == (422, "input")
    assert said.json()["message"] == words


def test_text_that_is_no_json_is_refused(app: Lab) -> None:
    headers = {"authorization": "Bearer nobody", "content-type": "application/json"}
    said = app.client.post("/api/worker/skip", content=b"{", headers=headers)
    assert said.status_code == 422
    assert "Invalid JSON" in said.json()["message"]


def test_who_asks_is_looked_at_before_the_body(app: Lab) -> None:
    for headers, case in (({}, "unknown.none"), ({"authorization": "Bearer nobody"}, None)):
        said = app.client.post("/api/worker/skip", json=SKIP, headers=headers)
        assert said.status_code == 401
        assert said.json().get("case") == case
        assert said.headers["x-content-type-options"] == "nosniff"


def test_they_are_documented(app: Lab) -> None:
    paths = app.client.get("/api/openapi.json").json()["paths"]
    bodies = {}
    for verb in ("next", "answer", "skip"):
        operation = paths[f"/api/worker/{verb}"]["post"]
        assert operation["tags"] == ["worker"]
        assert operation["responses"]["200"]["content"]
        bodies[verb] = json.dumps(operation["requestBody"])
    for verb, model in (
        ("next", "NextRequest"),
        ("answer", "AnswerRequest"),
        ("skip", "SkipRequest"),
    ):
        assert f"#/components/schemas/{model}" in bodies[verb]


def test_a_failure_has_the_headers_of_every_response(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(Store, "aask", fail)
    with Store("sqlite://").opened() as store:
        made = create_app(store)
        with TestClient(made, "http://127.0.0.1", raise_server_exceptions=False) as client:
            headers = {"authorization": "Bearer nobody"}
            said = client.post("/api/worker/skip", json=SKIP, headers=headers)
    assert (said.status_code, said.json()["error"]) == (500, "fault")
    for name in ("x-request-id", "x-content-type-options", "cache-control"):
        assert len(said.headers.get_list(name)) == 1
