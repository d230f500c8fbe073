"""How the care of workers is checked."""

from __future__ import annotations

from crowdtree.server.settings.group import ANSWERS, ITEMS, PERCENT, Group, setting


class Checks(Group):
    """How careful people are."""

    gold_rate: float = setting(
        0.0,
        "Check items",
        "Share of the questions that are about gold items: items whose class you know.",
        "{} of the answers that you pay for label nothing new.",
        PERCENT,
        ge=0,
        le=1,
    )
    gold_first: int = setting(
        0,
        "Check items for newcomers",
        "Gold questions that a new worker answers before ordinary ones.",
        "{} answers per person that label nothing new.",
        ITEMS,
        ge=0,
        le=1000,
    )
    practice_items: int = setting(
        0,
        "Practice items",
        "Gold items with which every new worker practises; the right answer is shown, nothing is "
        "counted or paid, and they are not used as check items.",
        "The time of each person for {} questions.",
        ITEMS,
        ge=0,
        le=50,
    )
    pause_suspects: bool = setting(
        True,
        "Pause suspicious people",
        "Pause workers if they answer far faster than others, and exclude their answers as well if "
        "they answer like one another, or wrongly, beyond chance.",
        "Honest people can be paused by mistake; their answers are asked again.",
    )
    pause_below: float | None = setting(
        None,
        "Pause people below",
        "Share of right answers below which a worker is paused; never if empty.",
        "Fewer people answer.",
        PERCENT,
        ge=0,
        le=1,
    )
    pause_after_checks: int = setting(
        10,
        "but only after",
        "Answers that are compared with known or decided classes before a worker can be paused.",
        "A careless worker gives at least {} answers.",
        ANSWERS,
        ge=1,
        le=100_000,
    )

    @property
    def asks_gold(self) -> bool:
        """Whether workers are asked about gold items, in practice or after it."""
        return self.gold_rate > 0 or self.gold_first > 0 or self.practice_items > 0
