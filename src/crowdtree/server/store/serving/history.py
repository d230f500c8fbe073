"""The log of an item as events: its answers and skips, and what else happened to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import cast

from crowdtree.campaign import events as ev
from crowdtree.campaign.reasons import Outcome, Reason
from crowdtree.server.store.db.statements import ItemEventRow, LogLine

KINDS: dict[str, Callable[[ItemEventRow], ev.Event]] = {
    "held back": lambda row: ev.HeldBack(row.value or 0),
    "released": lambda _: ev.Released(),
    "concluded": lambda row: ev.Concluded(Reason(row.reason)),
    "checked": lambda row: ev.Checked(row.value or 0),
    "corrected": lambda row: ev.Corrected(row.value),
    "withdrawn": lambda _: ev.Withdrawn(),
    "reopened": lambda _: ev.Reopened(),
}
"""How events are read, by the name of their kind."""


def responses(log: Iterable[LogLine]) -> list[LogLine]:
    """Lines of a log that are about the label: not those to gold, nor unpaid ones."""
    return [line for line in log if Outcome(line.fate).about_label]


def response_of(line: LogLine) -> ev.Response:
    """Read a line of the log as an event."""
    if line.kind == "skip":
        return ev.Skipped(line.worker_id, line.question, weight=line.weight, seq=line.id)
    value = cast(int, line.value)
    return ev.Answered(line.worker_id, line.question, value, skill=line.skill, seq=line.id)


def written(event: ev.Event) -> tuple[str, int | None, str]:
    """Kind, number and reason of an event, as they are stored."""
    if isinstance(event, ev.HeldBack):
        return "held back", event.min_answers, ""
    if isinstance(event, ev.Concluded):
        return "concluded", None, str(event.reason)
    if isinstance(event, ev.Checked):
        return "checked", event.truth, ""
    if isinstance(event, ev.Corrected):
        return "corrected", event.label, ""
    return type(event).__name__.lower(), None, ""


def history(
    log: Sequence[LogLine], rows: Sequence[ItemEventRow], revision: int
) -> Iterator[ev.Event]:
    """Events of an item in their order, up to a revision of the campaign.

    A row came after so many lines of the log. Whatever came while the item was at a later revision
    comes after the change to it.
    """
    entries: list[tuple[int, int, LogLine | ItemEventRow]] = []
    entries += [(index + 1, 0, line) for index, line in enumerate(log)]
    entries += [(row.after, row.id, row) for row in rows]
    present = 0
    for _, _, entry in sorted(entries, key=lambda found: found[:2]):
        for number in range(present + 1, entry.revision + 1):
            yield ev.PolicyChanged(number)
        present = max(present, entry.revision)
        if isinstance(entry, ItemEventRow):
            yield KINDS[entry.kind](entry)
        elif Outcome(entry.fate).about_label:
            yield response_of(entry)
    for number in range(present + 1, revision + 1):
        yield ev.PolicyChanged(number)
