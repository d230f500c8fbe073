"""What follows from a worker's record: the weight of a skip, how much they may hold, for how long.

A newcomer has no record: their skips weigh nothing, and they hold one question at a time.
"""

from __future__ import annotations

from crowdtree.server.settings.model import Settings

FULL_RECORD = 5
"""Answers beyond the number of skips after which a skip counts in full."""
LEAST_SECONDS = 30.0
"""A lease never shrinks below this, unless the time for a question is shorter."""
MAX_HALVINGS = 10
WAIT_SHARE = 0.1
"""Share of a lease after which it is taken back from a newcomer when others wait."""


def skip_weight(answers: int, skips: int) -> float:
    """How much a skip counts, by the answers and skips that the worker gave before.

    >>> skip_weight(0, 0), skip_weight(5, 0), skip_weight(20, 40), skip_weight(200, 3)
    (0.0, 1.0, 0.444, 1.0)
    """
    return round(min(1.0, answers / (FULL_RECORD + skips)), 3)


def leases_allowed(settings: Settings, answers: int, lapses: int) -> int:
    """How many questions a worker may hold: one before the first answer, and after a lapse.

    >>> leases_allowed(Settings(), 0, 0), leases_allowed(Settings(), 1, 0)
    (1, 3)
    """
    return settings.tasks.max_open_questions if answers and not lapses else 1


def lease_seconds(settings: Settings, lapses: int) -> float:
    """How long a worker may hold a question: half as long after each lease that they let expire.

    >>> [lease_seconds(Settings(), lapses) for lapses in (0, 1, 2, 9)]
    [600.0, 300.0, 150.0, 30.0]
    """
    if not lapses:
        return settings.tasks.max_seconds_per_question
    least = min(LEAST_SECONDS, settings.tasks.max_seconds_per_question)
    return max(least, settings.tasks.max_seconds_per_question / 2.0 ** min(lapses, MAX_HALVINGS))


def take_back_after(settings: Settings) -> float:
    """Seconds after which a newcomer's lease is taken back when others wait.

    >>> take_back_after(Settings())
    60.0
    """
    return max(
        min(LEAST_SECONDS, settings.tasks.max_seconds_per_question),
        WAIT_SHARE * settings.tasks.max_seconds_per_question,
    )


def is_accepted(kind: str, fate: str, overdue: int) -> bool:
    """Whether a line of the log is an answer that is paid, where there is a price.

    >>> is_accepted("answer", "counted", 1), is_accepted("answer", "late", 1)
    (True, False)
    """
    return kind == "answer" and (
        fate in ("counted", "gold") or (fate in ("surplus", "late") and not overdue)
    )
