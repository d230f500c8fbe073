"""What the server does with running campaigns."""

from __future__ import annotations

import pytest

pytest.importorskip(
    "sqlalchemy", reason="the server is not installed: pip install crowdtree[serve]"
)


from tests.storelab import ONE, maintain
from tests.weblab import Lab


def test_a_campaign_continues_if_it_must_not_finish_automatically(app: Lab) -> None:
    number = app.campaign(ONE, example="table1", workers=0, settings={"automatically": False})
    assert app.worker(number).work("yes")["fate"] == "counted"
    maintain(app.store)
    found = app.get(f"/api/campaigns/{number}").json()
    assert (found["items"]["labelled"], found["status"]) == (1, "running")
