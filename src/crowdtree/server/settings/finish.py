"""When a campaign ends."""

from __future__ import annotations

from crowdtree.server.settings.group import ITEMS, MAX_COUNT, PERCENT, Group, setting

BOUND = "finish.max_wrong_labels"
"""The setting that other forms write in the same unit."""


class Finish(Group):
    """When the campaign ends."""

    automatically: bool = setting(
        True,
        "Finish when the last item has its label",
        "If only untrusted workers support some labels, the campaign waits for you all the same.",
        "Without it you finish the campaign yourself.",
    )
    max_wrong_labels: float | None = setting(
        None,
        "Finish only when an audit certifies wrong labels of at most",
        "A sample of the labels is checked by you or an expert; no audit if empty.",
        "Somebody checks labels: the smaller the share, the more.",
        PERCENT,
        gt=0,
        lt=1,
    )
    max_checks: int | None = setting(
        None,
        "Checks, at most",
        "Checks after which a bound that is not certified counts as out of reach; no limit if "
        "empty.",
        "A low number may leave the labels without a certificate.",
        ITEMS,
        ge=1,
        le=MAX_COUNT,
    )
