"""Labels that wait: those for which nobody speaks who is known.

Such an item takes one more answer than it has (`least` in
:class:`crowdtree.campaign.engine.ItemState`), of somebody who is known. When its people become
known, that is no longer asked for. Known people may become strangers again, so the number of
answers is limited (:func:`waited_in_vain`).
"""

from __future__ import annotations

from crowdtree.campaign.engine import ItemState
from crowdtree.learning.trust import speaks_for
from crowdtree.policies import Label
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.sql import fetch_ids
from crowdtree.server.store.serving.changes import Changes
from crowdtree.server.store.serving.item import (
    CORRECTED,
    FINAL,
    SET_ASIDE,
    UNCONFIRMED,
    OpenItem,
    ServedCampaign,
)


def ready_label(unit: Changes, item: OpenItem, label: Label | None) -> Label | None:
    """Label that an item gets, given the one by its answers; ``None`` if that has to wait.

    The item is then replayed so that it takes another answer, or is set aside if it has waited in
    vain. Where nothing is left to ask, the label is given.
    """
    campaign = item.campaign
    while label is not None and waits(unit, item, label):
        before = item.item.answers
        label = item.require(before + 1)
        if item.item.answers == before:
            if label is None and waited_in_vain(campaign, item.item, item.reopened_at):
                return campaign.policy.conclude(item.item.state, UNCONFIRMED)
            break
    return label


def waited_in_vain(campaign: ServedCampaign, item: ItemState, reopened_at: int) -> bool:
    """Whether an item has more than twice the answers that its policy takes at most.

    By then known people outnumber the others, unless some are known no longer. Answers count from
    the event on before which the item was reopened.
    """
    own = max(campaign.policy.most_answers, campaign.rules.people)
    return item.fates[reopened_at:].count("counted") > 2 * own


def waits(unit: Changes, item: OpenItem, label: Label) -> bool:
    """Whether a label must wait: those of its people who are known neither outnumber the others
    nor speak for it.

    They may be many and speak against it: at the leaf to which a vote of strangers has led, more
    answers to the last question change nothing. Items that are set aside, or labelled because the
    owner said so, do not wait.
    """
    given = label.reason in (*SET_ASIDE, *FINAL, CORRECTED)
    if given or not item.campaign.settings.labels.require_trusted_answer:
        return False
    events = zip(item.item.events, item.item.fates, strict=True)
    counted = [event for event, fate in events if fate == "counted"]
    people = {int(event.worker) for event in counted}
    known = _known(unit, people)
    if 2 * len(known) > len(people):
        return False
    theirs = [(e.question, int(e.value or 0)) for e in counted if int(e.worker) in known]
    return not speaks_for(item.campaign.problem, theirs, label.label)


def _known(unit: Changes, workers: set[int]) -> set[int]:
    """Those of some workers who are known."""
    cached = unit.cache.known
    strangers = sorted(workers - cached)
    if strangers:
        cached.update(fetch_ids(unit.connection, sql.KNOWN, ids=strangers))
    return workers & cached
