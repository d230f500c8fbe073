"""Reasons of campaigns and workers: each has its text."""

from __future__ import annotations

import pytest

from crowdtree.server.reasons import CampaignReason, WorkerReason


@pytest.mark.parametrize("reason", [*CampaignReason, *WorkerReason])
def test_every_reason_but_none_has_a_text(reason: CampaignReason | WorkerReason) -> None:
    assert bool(reason.text("detail")) == bool(reason)


def test_a_campaign_that_waits_for_its_owner_takes_nobody_new() -> None:
    assert [reason for reason in CampaignReason if reason.ends_joining] == [
        CampaignReason.LEFT_TO_OWNER
    ]
