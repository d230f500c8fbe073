"""Settings as owners send them and as the database stores them."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.store import Settings, checked_settings
from crowdtree.server.store.settings import stored_settings


def test_what_an_owner_sends_is_checked_and_what_is_stored_is_read() -> None:
    with pytest.raises(
        CrowdtreeError, match="settings: 'retired': no such setting; choose from adapt, "
    ):
        checked_settings({"retired": 1})
    assert stored_settings('{"retired": 1}') == Settings()


def test_stored_settings_come_back() -> None:
    made = Settings(price=0.05, budget=10.0, examples={"q": "*look*"}, give_up_seconds=None)
    assert stored_settings(made.model_dump_json()) == made
    without = json.loads(made.model_dump_json())
    del without["price"]
    assert stored_settings(json.dumps(without)).price == Settings().price
