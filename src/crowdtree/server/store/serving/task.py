"""What workers see of an item."""

from __future__ import annotations

import json
from typing import Protocol

from crowdtree.io.items import MEDIA, is_address, visible
from crowdtree.server.settings.model import Settings
from crowdtree.server.store.derived import file_name, item_name
from crowdtree.server.store.serving.campaign import ServedCampaign
from crowdtree.server.store.serving.commands import Task
from crowdtree.server.store.types import JsonObject


class Naming(Protocol):
    """What decides how the items of a campaign are named for workers."""

    @property
    def settings(self) -> Settings:
        """The settings of the campaign."""
        ...

    @property
    def secret(self) -> str:
        """The secret of the campaign."""
        ...


def make_task(
    campaign: ServedCampaign, lease: str, question: int, task: str, payload: str, seconds: float
) -> Task:
    """Make what a worker sees: an item and a question."""
    problem = campaign.problem
    return {
        "lease": lease,
        "seconds": round(seconds, 3),
        "item": shown_item(campaign, task, payload),
        "question": {"name": problem.questions[question], "text": problem.text(question)},
    }


def shown_item(campaign: Naming, task: str, payload: str) -> JsonObject:
    """Select what leaves the server of an item: the columns that are shown, and a name.

    Names that the owner gave may say what an item is, so those of the item and of its uploaded
    files are replaced, unless the name is all there is to show or the owner wants it (`tasks.show_item_names`).
    """
    shown = visible(json.loads(payload))
    if campaign.settings.tasks.show_item_names or not shown.keys() - {"alt"}:
        return {"task": task, **shown}
    for name in MEDIA:
        if name in shown and not is_address(shown[name]):
            shown[name] = file_name(campaign.secret, shown[name])
    return {"task": item_name(campaign.secret, task), **shown}
