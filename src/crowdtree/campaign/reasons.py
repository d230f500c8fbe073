"""Why things are as they are: outcomes of answers, reasons of labels, causes of revisions."""

from __future__ import annotations

from enum import StrEnum


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
