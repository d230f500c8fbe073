"""The rules, in the order of their turns."""

from __future__ import annotations

from typing import Any

from crowdtree.server.rules.budget import Budget
from crowdtree.server.rules.finishing import Finishing
from crowdtree.server.rules.held_labels import HeldLabels
from crowdtree.server.rules.reliability import Reliability
from crowdtree.server.rules.revised_items import RevisedItems
from crowdtree.server.rules.rule import Rule
from crowdtree.server.rules.stalled_items import StalledItems
from crowdtree.server.rules.trust import Trust
from crowdtree.server.rules.wrong_table import WrongTable

RULES: tuple[type[Rule[Any]], ...] = (
    Reliability,
    WrongTable,
    RevisedItems,
    Trust,
    HeldLabels,
    StalledItems,
    Finishing,
    Budget,
)
"""To add a rule, write its module and list it here."""
