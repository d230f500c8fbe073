"""The page of questions and examples."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from tests.weblab import Lab

EVIL = '"><img src=x onerror=alert(1)>'


def test_examples_are_saved_for_each_question_and_reach_the_worker(app: Lab) -> None:
    number = app.campaign()
    page = app.get(f"/c/{number}/questions").text
    places = re.findall(r'name="(example-\d+)"', page)
    assert len(places) == 4  # the plan asks four of the five
    form = {places[0]: "**Yes:** one", places[1]: f"evil {EVIL}", "instructions": "Read."}
    sent = app.client.post(f"/c/{number}/questions", data=form, headers=app.owner)
    assert sent.status_code == 200
    settings = app.get(f"/api/campaigns/{number}/definition").json()["settings"]
    assert set(settings["tasks"]["examples"].values()) == {"**Yes:** one", f"evil {EVIL}"}
    assert settings["tasks"]["instructions"] == "Read."
    page = app.get(f"/c/{number}/questions").text
    assert "<strong>Yes:</strong>" in page
    assert "<img" not in page
    token = app.worker(number).token
    work = app.client.get("/work", headers={"authorization": f"Bearer {token}"}).text
    assert 'data-question="T1"' in work
    assert "<img" not in work
    # what is emptied is gone, what is not in the form stays
    app.client.post(f"/c/{number}/questions", data={places[0]: " "}, headers=app.owner)
    settings = app.get(f"/api/campaigns/{number}/definition").json()["settings"]
    assert list(settings["tasks"]["examples"].values()) == [f"evil {EVIL}"]


def test_markdown_is_seen_before_it_is_saved_and_made_safe(app: Lab) -> None:
    found = app.post("/preview", {"text": f"**b** {EVIL}"}).json()["html"]
    assert "<strong>b</strong>" in found
    assert "<img" not in found
    assert app.client.post("/preview", json={"text": "x"}).status_code == 401


def test_long_instructions_are_accepted(app: Lab) -> None:
    number = app.campaign(start=False)
    form = {"tasks.instructions": "ä" * 50_000}
    assert app.client.post(f"/c/{number}/share", data=form, headers=app.owner).status_code == 200
    settings = app.get(f"/api/campaigns/{number}/definition").json()["settings"]
    assert len(settings["tasks"]["instructions"]) == 50_000
    assert settings["finish"]["automatically"] is True  # the form did not speak of it
