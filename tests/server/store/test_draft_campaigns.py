"""Drafts: another policy, or deleted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.core.errors import CrowdtreeError
from crowdtree.policies import AdaptivePolicy
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.tables import activity, items, workers
from crowdtree.server.store.owner import deleting
from tests.storelab import Small


def test_a_draft_can_change_its_plan_until_it_starts(small: Callable[..., Small]) -> None:
    one = small()
    other = AdaptivePolicy(one.policy.problem, 0.02, 50)
    one.store.write(lambda c: deleting.change_policy(c, one.number, other, 1.0))
    row = one.store.read(lambda c: get_campaign(c, one.number))
    assert (row.policy["policy"], row.version) == ("adaptive", 1)
    one.start()
    with pytest.raises(CrowdtreeError, match="has started"):
        one.store.write(lambda c: deleting.change_policy(c, one.number, one.policy, 2.0))


def test_a_discarded_draft_leaves_only_a_line_in_the_activity_log(
    small: Callable[..., Small],
) -> None:
    one, other = small(), small()
    one.worker()
    one.store.write(lambda c: deleting.discard(c, one.number, 5.0))
    with pytest.raises(CrowdtreeError, match="does not exist"):
        one.store.read(lambda c: get_campaign(c, one.number))
    for table in (items, workers):
        assert one.store.read(lambda c, t=table: c.execute(t.select()).all()) == []
    actions = one.store.read(lambda c: [row.action for row in c.execute(activity.select())])
    assert actions[-1] == "discard"
    other.start()
    with pytest.raises(CrowdtreeError, match="has started"):
        other.store.write(lambda c: deleting.discard(c, other.number, 5.0))
