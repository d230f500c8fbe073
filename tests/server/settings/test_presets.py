"""Presets: who will answer decides the settings."""

from __future__ import annotations

import pytest

pytest.importorskip("pydantic", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.settings.model import SETTINGS, Settings, about
from crowdtree.server.settings.presets import PRESETS, changes_of, preset_of, settings_for


def test_every_preset_sets_the_same_settings_and_differs_from_the_others() -> None:
    assert {frozenset(preset.changes) for preset in PRESETS.values()} == {
        frozenset(PRESETS["open"].changes)
    }
    assert [preset_of(settings_for(who)) for who in PRESETS] == list(PRESETS)


def test_an_open_crowd_has_the_defaults() -> None:
    assert settings_for("open") == Settings()


def test_a_campaign_that_has_started_may_take_any_preset() -> None:
    changed = {name for preset in PRESETS.values() for name in preset.changes}
    assert changed <= set(SETTINGS)
    assert not any(about(name).fixed for name in changed)


def test_changes_come_after_the_preset() -> None:
    sent = {"who": "colleagues", "checks": {"pause_suspects": True}}
    made = Settings().changed(changes_of(sent))
    assert made.checks.pause_suspects
    assert not made.labels.require_trusted_answer
