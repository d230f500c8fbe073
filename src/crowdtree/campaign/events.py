"""What can happen to an item, what becomes of answers, and why items have their label.

Events are values: they never change, and nothing else decides.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from crowdtree.policies import Policy
from crowdtree.policies.base import Asked


class Outcome(StrEnum):
    """What became of an answer or a skip."""

    COUNTED = "counted"
    SKIPPED = "skipped"
    DUPLICATE = "duplicate"
    """The worker's same answer to the question is there already."""
    CONTRADICTORY = "contradictory"
    """The worker answered the question otherwise before; the first answer stands."""
    LATE = "late"
    """The item was closed."""
    SURPLUS = "surplus"
    """The policy has no use for it: its vote is over, a limit is reached, or the label still lacks
    other people than this one."""
    EXCLUDED = "excluded"
    """Taken out by the owner, or a skip from before the item was reopened."""
    GOLD = "gold"
    """About an item whose class is known, to check the worker."""
    OVER_BUDGET = "over budget"
    """It came after its lease had expired, and could not be paid any more."""

    @property
    def stands(self) -> bool:
        """Whether the worker has dealt with the question by it."""
        return self not in _WITHOUT_EFFECT

    @property
    def about_label(self) -> bool:
        """Whether the policy is shown it, or was shown it."""
        return self not in _OUTSIDE


_WITHOUT_EFFECT = frozenset({Outcome.DUPLICATE, Outcome.CONTRADICTORY, Outcome.EXCLUDED})
_OUTSIDE = frozenset({Outcome.GOLD, Outcome.OVER_BUDGET})


class Reason(StrEnum):
    """Why an item has its label, or was closed without one."""

    TARGET = "target"
    BUDGET = "budget"
    QUESTIONS = "questions"
    UNDECIDED = "undecided"
    REFERRED = "referred"
    LEAF = "leaf"
    SKIPPED = "skipped"
    """Too many workers could not tell."""
    FINISHED = "finished"
    """The owner finished the campaign; the best label on the answers so far."""
    EVERYBODY_ANSWERED = "everybody answered"
    """Everybody present had answered; the best label on the answers of enough people."""
    NO_WORKERS = "no workers"
    """Nobody was left who could answer, and too few had."""
    UNCONFIRMED = "unconfirmed"
    """Held back in vain: no trusted worker supported the label."""
    NEVER_ASKED = "never asked"
    """The campaign was finished before anybody was asked."""
    CHECKED = "checked"
    """The true class, which an audit has found."""
    CORRECTED = "corrected"
    """The answers so far, of an item that the owner has labelled by hand."""
    WITHDRAWN = "withdrawn"
    """The owner has withdrawn the item."""

    @property
    def sets_aside(self) -> bool:
        """Whether the item is set aside: its label is a best guess that nobody vouches for."""
        return self in _SET_ASIDE

    @property
    def has_label(self) -> bool:
        """Whether there is a class and a stated error."""
        return self not in _WITHOUT_LABEL

    @property
    def is_final(self) -> bool:
        """Whether no other policy changes the label, unless other answers count."""
        return self in _FINAL

    @property
    def is_kept(self) -> bool:
        """Whether a replay concludes again for this reason where the policy gives no label."""
        return self in _KEPT

    @property
    def is_handed_over(self) -> bool:
        """Whether somebody else must decide."""
        return self in _HANDED_OVER


_SET_ASIDE = frozenset({Reason.SKIPPED, Reason.NEVER_ASKED, Reason.NO_WORKERS, Reason.UNCONFIRMED})
_WITHOUT_LABEL = frozenset({Reason.NEVER_ASKED, Reason.WITHDRAWN})
_FINAL = frozenset({Reason.FINISHED, Reason.CHECKED})
_KEPT = frozenset({Reason.FINISHED, Reason.EVERYBODY_ANSWERED, Reason.NO_WORKERS, Reason.CORRECTED})
_HANDED_OVER = frozenset({Reason.UNDECIDED, Reason.REFERRED, Reason.EVERYBODY_ANSWERED})


class Cause(StrEnum):
    """Why a campaign goes on with another policy, or with other answers."""

    START = "start"
    OWNER = "owner"
    """The owner chose another policy."""
    TABLE = "table"
    """The answers contradict the table, which was estimated again."""
    AUDIT = "audit"
    """An audit found too many wrong labels."""
    EXCLUSION = "exclusion"
    """Answers of workers were excluded, or included again."""


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
