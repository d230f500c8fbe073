"""Settings by their short names, which the tests write more often than ``group.name``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crowdtree.server.settings.model import SETTINGS, Settings

FULL = {name.partition(".")[2]: name for name in SETTINGS}


def full(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Name settings ``group.name``."""
    return {FULL.get(name, name): value for name, value in settings.items()}


def nested(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Put settings into their groups, as the API takes them."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in full(settings).items():
        group, _, short = name.partition(".")
        found.setdefault(group, {})[short] = value
    return found


def settings_of(**settings: Any) -> Settings:
    return Settings().changed(full(settings))
