"""What webhooks report.

To report something new, note it in the activity log where it is noticed, and add its action to
``NOTED``.
"""

from __future__ import annotations

from typing import NamedTuple


class Event(NamedTuple):
    """A kind of message: its name for programs, and for people."""

    name: str
    words: str


LABELLED = Event("items.labelled", "labels")
WITHDRAWN = Event("labels.withdrawn", "labels withdrawn")
NOTED = {
    "alarm": Event("table.alarm", "the answers contradict the table"),
    "revise": Event("table.revised", "table revised"),
    "suspect": Event("worker.suspected", "worker suspected and paused"),
    "exclude": Event("answers.excluded", "answers excluded"),
    "include": Event("answers.included", "answers included again"),
    "correct": Event("label.corrected", "label corrected by hand"),
    "certified": Event("certificate.reached", "bound certified"),
    "out of reach": Event("certificate.out_of_reach", "bound out of reach"),
    "skipped away": Event("campaign.skipped_away", "most items set aside, paused"),
    "left to owner": Event("campaign.left_to_owner", "all labelled, waiting for you to finish"),
    "finished": Event("campaign.finished", "the end"),
}
"""Events by the action of the activity log that they report, with its details."""
EVENTS = {event.name: event for event in (LABELLED, WITHDRAWN, *NOTED.values())}
"""All events by their names."""
