"""Alarms, findings and revisions: what a monitor says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from crowdtree.core.text import number, percent, plural
from crowdtree.policies.base import Policy
from crowdtree.policies.revising import revised, table_of

__all__ = ["Alarm", "Finding", "Occasion", "Revision", "Subject"]

Subject = Literal["table", "question", "class", "kind", "dependence", "prior"]


class Alarm(NamedTuple):
    """The answers contradict the table.

    `subject` is what explains them best: ``"table"`` (all errors), ``"question"``, ``"class"``,
    ``"kind"`` (of workers), ``"dependence"`` or ``"prior"``, and `name` that of the question, class
    or kind. `after` so many answers about so many `items` the weighted likelihood ratio `evidence`
    was at least ``1 / alpha``.

    >>> print(Alarm("question", "wings", 79, 8, 31.5))
    after 8 items (79 answers) the answers contradict the table: the errors of question "wings"
    """

    subject: Subject
    name: str
    after: int
    items: int
    evidence: float

    def __str__(self) -> str:
        what = {
            "table": "how often people are wrong",
            "question": f'the errors of question "{self.name}"',
            "class": f'the errors about items of class "{self.name}"',
            "kind": f'how often "{self.name}" are wrong',
            "dependence": "people err together more or less than it says",
            "prior": "how often the classes occur",
        }[self.subject]
        seen = f"{plural(self.items, 'item')} ({plural(self.after, 'answer')})"
        return f"after {seen} the answers contradict the table: {what}"


class Finding(NamedTuple):
    """What the answers say beside what the table says, with a 95 % interval."""

    subject: Subject
    name: str
    assumed: float
    estimate: float
    low: float
    high: float
    evidence: float

    @property
    def differs(self) -> bool:
        """Whether the assumed number lies outside the interval."""
        return not self.low <= self.assumed <= self.high

    def __str__(self) -> str:
        said = f"about {percent(round(self.estimate, 3))}"
        between = f"({percent(round(self.low, 3))} to {percent(round(self.high, 3))})"
        if self.subject == "prior":
            return (
                f'class "{self.name}": {said} {between} of the items, '
                f"the table says {percent(round(self.assumed, 3))}"
            )
        if self.subject == "dependence":
            return (
                f"people err together: answers to one question about an item have a correlation "
                f"of about {number(self.estimate, 2)}, the table says {number(self.assumed, 2)}"
            )
        where = f'{self.subject} "{self.name}"'
        return (
            f"{where}: people are wrong {said} {between} of the time, "
            f"the table says {percent(round(self.assumed, 3))}"
        )


class Occasion(StrEnum):
    """What makes a revision of a table due."""

    ALARM = "alarm"
    ANSWERS = "answers"
    """Many more have come since the last revision."""
    EXCLUSION = "exclusion"
    """Answers were excluded or included since."""
    REQUEST = "asked for"


@dataclass(frozen=True, eq=False)
class Revision:
    """A table that replaces the assumed one from some answer on: an event of the campaign.

    Attributes
    ----------
    after
        Answers after which it holds.
    reason
        What made it due.
    table
        The table, as :meth:`crowdtree.policies.revising.Table.to_dict` writes it.

    Examples
    --------
    >>> revision = Revision(after=120, reason=Occasion.ALARM, table={})
    >>> Revision.from_dict(revision.to_dict()).after
    120
    """

    after: int
    reason: Occasion
    table: Mapping[str, Any]

    def apply(self, policy: Policy[Any]) -> Policy[Any]:
        """Make the revised policy from the one that the campaign started with."""
        return revised(policy, table_of(policy).changed(self.table))

    def to_dict(self) -> dict[str, Any]:
        """Write as plain JSON."""
        return {"after": self.after, "reason": self.reason, "table": dict(self.table)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Revision:
        """Read what :meth:`to_dict` wrote."""
        return cls(int(data["after"]), Occasion(data["reason"]), data["table"])
