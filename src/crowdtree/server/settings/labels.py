"""When an item gets its label."""

from __future__ import annotations

from crowdtree.server.settings.group import HOURS, PEOPLE, Group, setting


class Labels(Group):
    """When an item gets its label."""

    people_per_item: int = setting(
        2,
        "People per label, at least",
        "Different people whose answers a label rests on.",
        "Each item takes at least {} answers.",
        PEOPLE,
        fixed=True,
        ge=1,
        le=100,
    )
    require_trusted_answer: bool = setting(
        True,
        "Hold a label back until a trusted worker's answers support it",
        "Trusted are people whom you invited or vouched for, and people who agree with check items "
        "or with trusted people beyond chance.",
        "Labels wait, or the campaign stops, where nobody is trusted.",
    )
    max_skips: int = setting(
        3,
        "Set an item aside when this many people can't tell",
        "Skips of a question about an item; those of people without a record of answers count "
        "less.",
        "A high number takes more time of people; a low one leaves more items without a label.",
        PEOPLE,
        fixed=True,
        ge=1,
        le=1000,
    )
    close_stalled_after_seconds: float | None = setting(
        604_800.0,
        "Close an item that nobody present may answer after",
        "The item gets its best label so far, with a larger error. It waits for a week at least "
        "while fewer people have seen it than a label takes; if empty, until you finish.",
        "A short time gives up accuracy; a long one delays the end by up to {}.",
        HOURS,
        ge=60,
        le=31_536_000,
    )
