"""The page of links and settings."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree import files
from crowdtree.errors import CrowdtreeError
from crowdtree.store import Settings
from crowdtree.web.pages.settings import FIELDS, FLAGS, WORDS, number_of, shown_settings
from weblab import Lab, lab

WEB = Path(files.__file__).parents[1] / "web"


def test_numbers_are_read_as_people_write_them():
    assert number_of("price", "0,05") == 0.05
    assert number_of("pause_below", "60 %".replace(" ", "")) == 0.6
    assert number_of("answers_per_worker", "") is None
    with pytest.raises(CrowdtreeError, match="budget: 'much' is not a number"):
        number_of("budget", "much")


def test_every_setting_has_a_field_and_is_written_as_it_is_read():
    # a page of its own; only for programs
    elsewhere = {"examples", "leases_per_worker", "person_dependence"}
    assert {*FIELDS, *FLAGS, *WORDS} | elsewhere >= set(Settings.model_fields)
    form = (WEB / "templates" / "share.html").read_text()
    for name in (*FIELDS, *FLAGS, *WORDS):
        assert f'name="{name}"' in form or f'field("{name}"' in form
    settings = Settings(price=0.05, budget=20, gold_rate=0.07, pause_below=0.55, lease_seconds=90)
    written = shown_settings(settings.model_dump())
    for name, text in written.items():
        assert number_of(name, text) == getattr(settings, name)


def test_every_setting_can_be_changed_on_the_page(app: Lab) -> None:
    number = app.campaign(start=False)
    form = {
        "flags": "1",
        "dedicated": "on",
        "lease_seconds": "15",
        "most_skips": "5",
        "gold_rate": "10 %",
        "pause_below": "60",
        "pause_after": "20",
        "gold_first": "3",
        "give_up_seconds": "2",
        "participant_parameter": "pid",
        "budget": "",
        "name": "New",
    }
    app.client.post(f"/c/{number}/share", data=form, headers=app.owner)
    found = app.get(f"/api/campaigns/{number}/definition").json()
    settings = found["settings"]
    assert found["name"] == "New"
    for name, value in {
        "dedicated": True,
        "finish_by_itself": False,
        "one_question_per_item": False,
        "lease_seconds": 900.0,
        "most_skips": 5,
        "gold_rate": 0.1,
        "pause_below": 0.6,
        "pause_after": 20,
        "gold_first": 3,
        "give_up_seconds": 172_800.0,
        "budget": None,
        "participant_parameter": "pid",
    }.items():
        assert settings[name] == value, name


def test_links_carry_the_address_that_people_use() -> None:
    with lab(url="https://label.example") as app:
        number = app.campaign(start=False)
        for path in (f"/c/{number}/share", "/access"):
            assert '<meta name="base" content="https://label.example">' in app.get(path).text
