"""The rules and their turns: none is stopped by the failure of another."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from crowdtree.server.rules.finishing import Budget, Finishing
from crowdtree.server.rules.reliability import Reliability
from crowdtree.server.rules.revised_items import RevisedItems
from crowdtree.server.rules.rule import Rule
from crowdtree.server.rules.stalled_items import StalledItems
from crowdtree.server.rules.trust import HeldLabels, Trust
from crowdtree.server.rules.wrong_table import WrongTable
from crowdtree.server.store import Store, Unavailable
from crowdtree.server.store.serving.campaign import ServingCache

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


log = logging.getLogger("crowdtree.server.rules")
MAX_PAUSE = 60.0
"""Seconds between two turns of a rule, however long the last one took."""


class Runner:
    """The rules of a database: step by step with `tick`, or in a loop with `run`.

    Examples
    --------
    >>> with Store("sqlite://").opened() as store:
    ...     Runner(store).tick()
    False
    """

    def __init__(self, store: Store, kinds: Iterable[type[Rule[Any]]] = RULES) -> None:
        self.store = store
        cache = ServingCache(store.clock, np.random.default_rng(0))
        self.rules = [kind(cache) for kind in kinds]
        self.due = [0.0] * len(self.rules)
        """When each rule has its next turn, by the monotonic clock."""
        self.used = [0.0] * len(self.rules)
        """Seconds that each has taken since it last had nothing left to do."""

    def tick(self) -> bool:
        """Give each rule a turn, whether or not it is due; true when one has more to do."""
        more = False
        for rule in self.rules:
            more |= self._turn(rule)
        return more

    def settle(self) -> None:
        """Give turns until nothing is left to do."""
        while self.tick():
            pass

    def run(self, stopping: threading.Event) -> None:
        """Give turns to the rules that are due until asked to stop."""
        while not stopping.wait(max(0.0, min(self.due) - time.monotonic())):
            for index in range(len(self.rules)):
                if time.monotonic() >= self.due[index] and not stopping.is_set():
                    self._timed_turn(index)

    def _timed_turn(self, index: int) -> None:
        """Give a rule a turn, and note when the next is due."""
        rule, begin = self.rules[index], time.monotonic()
        more = self._turn(rule)
        self.due[index] = now = time.monotonic()
        self.used[index] += now - begin
        if not more:
            rest = self.used[index] * (1 / rule.share - 1)
            self.due[index] += min(MAX_PAUSE, max(rule.seconds, rest))
            self.used[index] = 0.0

    def _turn(self, rule: Rule[Any]) -> bool:
        try:
            return rule.turn(self.store)
        except Unavailable as error:  # the store has logged it
            log.warning("%s waits: %s", rule.name, error)
        except Exception:
            log.exception("%s failed", rule.name)
        return False
