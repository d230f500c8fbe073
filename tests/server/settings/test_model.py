"""Settings as owners send them and as the database stores them."""

from __future__ import annotations

import json
import re

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.settings.model import (
    SETTINGS,
    Settings,
    about,
    stored_settings,
)
from crowdtree.server.settings.presets import changes_of
from tests.short import settings_of


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (
            {"xyz": 1},
            "settings: 'xyz': no such setting; choose a group from people, tasks,",
        ),
        (
            {"gold_rate": 1},
            "settings: 'gold_rate': no such setting; did you mean checks.gold_rate?",
        ),
        ({"money": 3}, "settings: money: expected an object with settings of the group"),
        ({"money": {"prise": 3}}, "settings: 'money.prise': no such setting; did you mean money."),
        ({"labels": {"max_skips": 0}}, "settings: labels.max_skips: expected at least 1, got 0"),
    ],
)
def test_what_an_owner_sends_is_checked(sent: dict[str, object], words: str) -> None:
    with pytest.raises(CrowdtreeError, match=re.escape(words)):
        Settings().changed(changes_of(sent))


def test_stored_settings_come_back() -> None:
    made = settings_of(
        price=0.05, budget=10.0, examples={"q": "*look*"}, close_stalled_after_seconds=None
    )
    assert stored_settings(made.model_dump_json()) == made
    without = made.model_dump()
    del without["money"]["price"]
    without["retired"] = {"x": 1}
    assert stored_settings(json.dumps(without)).money.price == Settings().money.price


def test_names_are_unique_so_that_a_short_one_means_one_setting() -> None:
    short = [name.partition(".")[2] for name in SETTINGS]
    assert len(set(short)) == len(short)
    for name, field in SETTINGS.items():
        assert all((field.title, field.description, about(name).costs)), name
