"""The steps of a new campaign."""

from __future__ import annotations

import json
import re

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.web.handlers.items import _pasted
from tests.weblab import Lab


def test_pasted_items_may_be_lines_or_tables():
    assert _pasted("id,text\n1,a\n")[1] == "csv"
    assert _pasted('{"task": "1"}\n')[1] == "jsonl"
    lines, kind = _pasted("one, with a comma\n\n  two ")
    assert kind == "jsonl"
    assert [json.loads(line)["text"] for line in lines.splitlines()] == ["one, with a comma", "two"]
    with pytest.raises(CrowdtreeError, match="paste one item per line"):
        _pasted(" \n ")


def test_the_plan_says_how_many_checks_a_certificate_takes(app: Lab) -> None:
    number = app.campaign(start=False)
    assert app.client.post(f"/c/{number}/plan/ready", headers=app.owner).status_code == 200
    page = app.get(f"/c/{number}/plan").text
    assert "Certify at most, % wrong labels" in page
    keys = re.findall(r'name="choice" value="([^"]+)"', page)
    path = f"/c/{number}/plan/checks"
    tree = [key for key in keys if key.startswith("tree")][-1]
    found = app.get(f"{path}?choice={tree}&certify=10&items=200").text
    assert "certify that at most 10 % of 200 labels" in found
    assert "A tree keeps its table" in found
    adaptive = [key for key in keys if key.startswith("adaptive")][-1]
    assert (
        "Watching the table costs" in app.get(f"{path}?choice={adaptive}&certify=10&items=100").text
    )
    loose = f"{path}?choice={keys[0]}&certify=0.1&items=200"
    assert "no audit can certify" in app.get(loose).text
    assert app.get(f"{path}?choice={tree}&certify=&items=200").text == ""
    for wrong in ("certify=200&items=9", "certify=x&items=9", "certify=5&items=9e9"):
        assert app.get(f"{path}?choice={tree}&{wrong}").status_code == 422, wrong


def test_the_plan_says_how_the_table_was_read(app: Lab) -> None:
    """A table with percentages, yes and no, and a column of notes."""
    table = b"question,error,robin,trout,notes\nflies?,20%,yes,no,by eye\n"
    made = app.client.post(
        "/new",
        headers=app.owner,
        data={"name": "birds"},
        files={"table": ("birds.csv", table)},
        follow_redirects=False,
    )
    assert made.status_code == 303, made.text
    assert "How the table was read: " in app.get(made.headers["location"]).text
