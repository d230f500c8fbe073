"""What can happen to an item. Events are values: they never change, and nothing else decides."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from crowdtree.campaign.reasons import Reason
from crowdtree.policies import Policy
from crowdtree.policies.base import Asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to an item.

    Parameters
    ----------
    seq
        Its number in the log of the campaign.
    at
        When, in seconds since 1970.
    actor
        Who: ``"owner"``, ``"server"``, or empty for the worker whom the event names.
    """

    seq: int = 0
    at: float = 0.0
    actor: str = ""


@dataclass(frozen=True, slots=True)
class Answered(Event):
    """A worker answered a question.

    Parameters
    ----------
    value
        Index of the answer; `crowdtree.core.likelihood.UNSURE` for "can't tell".
    skill
        The worker's reliability as estimated when the answer came, 0 if unknown. Logged, so that
        the label is the same whatever is learned later.
    """

    worker: Hashable
    question: int
    value: int
    source: int = 0
    skill: float = 0.0


@dataclass(frozen=True, slots=True)
class Skipped(Event):
    """A worker passed on a question.

    Parameters
    ----------
    weight
        How much the skip counts, from 0 to 1, by the worker's record when it came.
    """

    worker: Hashable
    question: int
    source: int = 0
    weight: float = 1.0


Response = Answered | Skipped
"""What workers do."""


@dataclass(frozen=True, slots=True)
class PolicyChanged(Event):
    """The campaign goes on with another revision: another policy, or other answers that count."""

    revision: int


@dataclass(frozen=True, slots=True)
class HeldBack(Event):
    """The item takes at least so many answers before its label."""

    min_answers: int


@dataclass(frozen=True, slots=True)
class Released(Event):
    """The label need not be held back any longer."""


@dataclass(frozen=True, slots=True)
class Concluded(Event):
    """The item is closed with the best label on the answers so far."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class Checked(Event):
    """An audit found the true class."""

    truth: int


@dataclass(frozen=True, slots=True)
class Corrected(Event):
    """The owner labelled the item by hand; without a label, the one by hand was taken back."""

    label: int | None


@dataclass(frozen=True, slots=True)
class Withdrawn(Event):
    """The owner withdrew the item: nobody is asked about it, and it has no label."""


@dataclass(frozen=True, slots=True)
class Reopened(Event):
    """The owner has the item asked about again; skips so far no longer count."""


def asked_of(policy: Policy[Any], response: Response) -> Asked:
    """Question of an answer or a skip, with its source where the policy chooses among several."""
    chooses = policy.kind != "tree" or response.source  # a tree asks the first source
    if chooses and policy.problem.has_sources:
        return response.question, response.source
    return response.question
