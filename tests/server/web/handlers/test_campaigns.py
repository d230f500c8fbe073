"""The list of campaigns, and the first step of a new one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree import io as files
from crowdtree.server.web.plans import problem_from_bytes
from tests.weblab import Lab, delivered, hooked

WEB = Path(files.__file__).parents[1] / "server" / "web"


def test_the_table_to_download_is_the_one_that_is_shown_and_can_be_read():
    content = (WEB / "static" / "table.csv").read_bytes()
    assert problem_from_bytes(content, "table.csv").classes == ("robin", "eagle", "trout")
    page = (WEB / "templates" / "new.html").read_text()
    cells = re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", page)
    assert ",".join(cells) == content.decode().strip().replace("\n", ",")


def test_a_draft_with_webhooks_can_be_discarded(app: Lab) -> None:
    number = app.campaign(start=False)
    hooked(app, number)
    delivered(app.store, app.clock)
    assert app.client.post(f"/c/{number}/discard", headers=app.owner).status_code == 200
    assert app.get(f"/api/campaigns/{number}").status_code == 404
