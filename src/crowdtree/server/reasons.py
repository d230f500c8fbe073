"""Why campaigns and workers have their status. Texts are made where a reason is shown."""

from __future__ import annotations

from enum import StrEnum


class CampaignReason(StrEnum):
    """Why a campaign is paused, or runs on though all of its items have their label."""

    NONE = ""
    BUDGET_SPENT = "budget spent"
    MOSTLY_SET_ASIDE = "mostly set aside"
    """Workers had more items set aside than labelled."""
    LABELS_WITHDRAWN = "labels withdrawn"
    """A revision took labels of a finished campaign back."""
    LABELS_UNDONE = "labels undone"
    """The owner took labels by hand back."""
    ITEMS_REOPENED = "items reopened"
    WAITING_FOR_CHECKS = "waiting for checks"
    ASKING_AGAIN = "asking again"
    OUT_OF_REACH = "out of reach"
    """The bound on wrong labels cannot be certified."""
    LEFT_TO_OWNER = "left to owner"
    """Some labels rest on untrusted workers alone."""

    def text(self, detail: str = "") -> str:
        """Say why, in words.

        >>> CampaignReason.ITEMS_REOPENED.text("3 items")
        '3 items reopened: resume to ask about them'
        """
        return _CAMPAIGNS[self].format(detail)

    @property
    def is_worrying(self) -> bool:
        """Whether the owner has to act before the campaign can reach its goal."""
        return self is CampaignReason.OUT_OF_REACH

    @property
    def ends_joining(self) -> bool:
        """Whether nobody new is needed."""
        return self is CampaignReason.LEFT_TO_OWNER


_CAMPAIGNS = {
    CampaignReason.NONE: "",
    CampaignReason.BUDGET_SPENT: "the budget is spent",
    CampaignReason.MOSTLY_SET_ASIDE: (
        "most items were set aside because {}; look at the items and the workers, then reopen "
        "items or finish the campaign"
    ),
    CampaignReason.LABELS_WITHDRAWN: (
        "labels were withdrawn: resume to ask about their items again"
    ),
    CampaignReason.LABELS_UNDONE: "{} by hand taken back: resume to ask about the items",
    CampaignReason.ITEMS_REOPENED: "{} reopened: resume to ask about them",
    CampaignReason.WAITING_FOR_CHECKS: "waiting for checks",
    CampaignReason.ASKING_AGAIN: "asking again about the least certain items",
    CampaignReason.OUT_OF_REACH: "{}",
    CampaignReason.LEFT_TO_OWNER: (
        "waiting for you to finish it: some labels rest on strangers alone"
    ),
}


class WorkerReason(StrEnum):
    """Why a worker is paused or blocked."""

    NONE = ""
    OWNER = "owner"
    UNRELIABLE = "unreliable"
    """Too many answers about items whose class is known were wrong."""
    SUSPECTED = "suspected"
    """The answers look careless."""
    HURRIED = "hurried"
    """Answers came faster than the others', which alone does not make them wrong."""
    ERASED = "erased"
    """The worker's personal data was deleted."""

    def text(self, detail: str = "") -> str:
        """Say why, in words.

        >>> WorkerReason.UNRELIABLE.text("62% is below 80%")
        'reliability 62% is below 80%'
        """
        return _WORKERS[self].format(detail)

    @property
    def by_server(self) -> bool:
        """Whether the server decided it."""
        return self in (WorkerReason.UNRELIABLE, WorkerReason.SUSPECTED, WorkerReason.HURRIED)

    @property
    def excludes_answers(self) -> bool:
        """Whether the answers were excluded with it, so that resuming does not count them."""
        return self is WorkerReason.SUSPECTED


_WORKERS = {
    WorkerReason.NONE: "",
    WorkerReason.OWNER: "by the owner",
    WorkerReason.UNRELIABLE: "reliability {}",
    WorkerReason.SUSPECTED: "suspected: {}",
    WorkerReason.HURRIED: "{}; their answers count unless you exclude them",
    WorkerReason.ERASED: "personal data deleted",
}
