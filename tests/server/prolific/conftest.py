"""The stub, and campaigns with participants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.prolific.client import TOKEN_VARIABLE, URL_VARIABLE
from crowdtree.server.prolific.studies import StudyRequest
from tests.prolific_stub import TOKEN, Prolific, prolific_stub
from tests.weblab import Lab, Worker, lab

PAID = {"price": 0.05, "min_answers_for_code": 4, "currency": "GBP", "may_join": "named"}
WISH = StudyRequest(places=10, url="https://label.example")


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Prolific]:
    """The stub, to which the environment points."""
    with prolific_stub() as made:
        monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
        monkeypatch.setenv(URL_VARIABLE, made.address)
        yield made


@pytest.fixture(scope="module")
def app() -> Iterator[Lab]:
    """The application; every test makes a campaign of its own."""
    with lab(url="https://label.example") as made:
        yield made


def participant(app: Lab, stub: Prolific, name: str, answers: int, study: str = "study1") -> str:
    """Let a participant come from the study, answer and submit; returns the submission."""
    address = stub.studies[study]["external_study_url"]
    token = address.partition("/join/")[2].partition("?")[0]
    assert "PROLIFIC_PID={{%PROLIFIC_PID%}}" in address
    joined = app.client.post("/api/join", json={"token": token, "participant": name})
    assert joined.status_code in (200, 201), joined.text
    worker = Worker(app, 0, joined.json()["token"])
    for _ in range(answers):
        assert worker.work() is not None
    return stub.submit(study, name, stub.studies[study]["completion_codes"][0]["code"])


def ledger_calls(app: Lab, number: int) -> list[tuple[Any, Any]]:
    """Calls in the activity log, the oldest first."""
    rows = app.get(f"/api/campaigns/{number}/activity").json()
    found = [row["detail"] for row in reversed(rows) if row["action"] == "prolific"]
    return [(row["call"], row["state"]) for row in found]
