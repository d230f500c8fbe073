"""The list of campaigns, and the first step of a new one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree import files
from crowdtree.store.background import outbox
from crowdtree.store.background.outbox import Message
from crowdtree.web.plan_jobs import problem_from_bytes
from weblab import Lab

WEB = Path(files.__file__).parents[1] / "web"


def test_the_table_to_download_is_the_one_that_is_shown_and_can_be_read():
    content = (WEB / "static" / "table.csv").read_bytes()
    assert problem_from_bytes(content, "table.csv").classes == ("robin", "eagle", "trout")
    page = (WEB / "templates" / "new.html").read_text()
    cells = re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", page)
    assert ",".join(cells) == content.decode().strip().replace("\n", ",")


def message(number: int, hook: int, last: int, failures: int = 0) -> Message:
    sent = {"id": f"{hook}-{last}", "event": "items.labelled", "campaign": number}
    return Message(hook, "", "", failures, {**sent, "labels": [{}] * 3, "withdrawn": []}, last, 0)  # type: ignore[typeddict-item]


def hooked(app: Lab, number: int) -> int:
    url = {"url": "http://127.0.0.1:9/x"}
    return int(app.post(f"/api/campaigns/{number}/webhooks", url).json()["id"])


def settle(app: Lab, found: Message, error: str = "") -> None:
    app.store.write(lambda c: outbox.settle_hook(c, found, error, app.clock()))


def test_a_draft_with_webhooks_can_be_discarded(app: Lab) -> None:
    number = app.campaign(start=False)
    settle(app, message(number, hooked(app, number), 1))
    assert app.client.post(f"/c/{number}/discard", headers=app.owner).status_code == 200
    assert app.get(f"/api/campaigns/{number}").status_code == 404
