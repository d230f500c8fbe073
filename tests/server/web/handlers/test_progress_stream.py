"""Progress of slow work in the response."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.settings.model import Settings, flat
from crowdtree.server.settings.presets import preset_of
from tests.weblab import lab


def test_the_wizard_receives_progress():
    with lab() as app:
        form = {"example": "table1", "name": "Mine", "who": "colleagues"}
        headers = {**app.owner, "accept": "application/json"}
        answer = app.client.post("/new", data=form, headers=headers)
        lines = [json.loads(line) for line in answer.text.splitlines()]
        assert lines[-1] == {"go": "/c/1/plan"}
        shares = [line["share"] for line in lines[:-1]]
        assert shares == sorted(shares)
        assert len({line["words"] for line in lines[:-1]}) > 3
        page = app.get("/c/1/plan")
        assert "How accurate should the labels be?" in page.text
        bad = app.client.post("/new", data={"pasted": "question,a\nq,7\n"}, headers=headers)
        assert (bad.status_code, bad.json()["error"]) == (422, "input")
        made = app.get("/api/campaigns/1/definition").json()
        assert preset_of(Settings().changed(flat(made["settings"]))) == "colleagues"
        assert made["name"] == "Mine"
        # a browser without scripts waits, and is sent on
        plain = app.client.post("/new", data=form, headers=app.owner, follow_redirects=False)
        assert (plain.status_code, plain.headers["location"]) == (303, "/c/2/plan")
        # after a restart the choices are worked out again
        app.client.app.state.crowdtree.plans.menus.clear()
        assert "Computing what each error costs" in app.get("/c/1/plan").text
        again = app.client.post("/c/1/plan/ready", data={}, headers=headers)
        assert json.loads(again.text.splitlines()[-1]) == {"go": "/c/1/plan"}
        assert "How accurate should the labels be?" in app.get("/c/1/plan").text


COSTLY = """
classes: [edible, deadly]
questions:
- {name: white, outcome: [0, 1], error: 0.1}
loss: {pairs: {deadly: {edible: 20}}}
"""


def test_the_wizard_offers_plans_by_expected_loss():
    with lab() as app:
        headers = {**app.owner, "accept": "application/json"}
        app.client.post("/new", files={"table": ("x.yaml", COSTLY)}, headers=headers)
        page = app.get("/c/1/plan").text
        assert "Loss, at most" in page
        assert "Wrong, at most" not in page
        assert "expected loss per item" in page
        assert app.get("/api/campaigns/1").status_code == 200
