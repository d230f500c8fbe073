"""Presets: who will answer decides all settings, which owners may change one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from crowdtree.core.errors import CrowdtreeError, one_line
from crowdtree.server.settings.model import Settings, flat

Who = Literal["colleagues", "open", "platform", "models"]
"""Who will answer a campaign."""
HOUR = 3600.0


class Preset(NamedTuple):
    """Settings for one sort of people."""

    title: str
    text: str
    """What happens with these people."""
    changes: dict[str, object]
    """All presets change the same settings; the others keep their defaults."""


def _preset(
    title: str,
    text: str,
    *,
    may_join: str = "any",
    max_workers: int = 10_000,
    open_questions: int = 3,
    suspicious: bool = True,
    close_after: float = 7 * 24 * HOUR,
) -> Preset:
    changes: dict[str, object] = {
        "people.may_join": may_join,
        "people.max_workers": max_workers,
        "tasks.max_open_questions": open_questions,
        "labels.require_trusted_answer": suspicious,
        "labels.close_stalled_after_seconds": close_after,
        "checks.pause_suspects": suspicious,
    }
    return Preset(title, text, changes)


PRESETS: dict[Who, Preset] = {
    "colleagues": _preset(
        "Colleagues I know",
        "Everybody who opens the link is trusted: nobody is paused, and no label waits for "
        "somebody else's word. Where all who are here have answered, items get their best label "
        "within minutes, and the campaign finishes.",
        max_workers=50,
        suspicious=False,
        close_after=0.1 * HOUR,
    ),
    "open": _preset(
        "An open crowd",
        "Anybody may join, also people who answer without looking. Labels wait until trusted "
        "people support them, and suspicious people are paused; invite one or two whom you trust, "
        "or add check items.",
    ),
    "platform": _preset(
        "Prolific or another platform",
        "As an open crowd, but only people with a participant id may join, each of them once. "
        "They do not come back: items for which nobody is left get their best label after a day.",
        may_join="named",
        close_after=24 * HOUR,
    ),
    "models": _preset(
        "Models and people",
        "Invite each model by a personal link: it may hold many questions at once. Others are "
        "treated as an open crowd.",
        open_questions=20,
    ),
}
"""Presets by who will answer; `open` has the defaults."""


def preset(who: str) -> Preset:
    """Find a preset by its name.

    >>> preset("friends")
    Traceback (most recent call last):
        ...
    crowdtree.CrowdtreeError: who: expected colleagues, open, platform or models, got 'friends'
    """
    if who in PRESETS:
        return PRESETS[who]
    *names, last = PRESETS
    expected = f"{', '.join(names)} or {last}"
    raise CrowdtreeError(f"who: expected {expected}, got {one_line(who)}")


def settings_for(who: str) -> Settings:
    """Settings of a preset.

    >>> settings_for("colleagues").labels.require_trusted_answer
    False
    """
    return Settings().changed(preset(who).changes)


def changes_of(nested: Mapping[str, object]) -> dict[str, object]:
    """Changes that an owner sent by group, after those of a preset under ``who``, if there is one.

    >>> changes_of({"who": "open", "people": {"max_workers": 3}})["people.max_workers"]
    3
    """
    groups = dict(nested)
    changes = preset(str(groups.pop("who"))).changes if "who" in groups else {}
    return {**changes, **flat(groups)}


def preset_of(settings: Settings) -> Who | None:
    """Preset whose settings these are; `None` where the owner changed some of them.

    >>> preset_of(Settings()), preset_of(Settings().changed({"people.max_workers": 3}))
    ('open', None)
    """
    values = settings.values()
    return next(
        (who for who, preset in PRESETS.items() if preset.changes.items() <= values.items()), None
    )
