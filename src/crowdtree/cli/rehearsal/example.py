"""The embedded example as a campaign that people can try."""

from __future__ import annotations

import json

import numpy as np
from sqlalchemy.engine import Connection

from crowdtree.core.problem import Problem
from crowdtree.io import example
from crowdtree.planning import plan
from crowdtree.server.settings.groups import Checks, Tasks
from crowdtree.server.settings.model import Settings
from crowdtree.server.store import Store
from crowdtree.server.store.db.campaign_row import list_campaigns
from crowdtree.server.store.owner import campaigns
from crowdtree.server.store.types import JsonObject

ITEMS, GOLD = 200, 20
ERROR = 0.02


def example_items(
    problem: Problem, count: int, rng: np.random.Generator, gold: int = 0
) -> list[dict[str, str]]:
    """Make items that people can answer questions about: each describes what it shows.

    The first `gold` are marked as of known class; ``class`` is kept by the caller, not sent.
    """
    drawn = rng.choice(problem.n_classes, size=count + gold, p=problem.prior)
    found = []
    for number, cls in enumerate(drawn):
        name = problem.classes[cls]
        known = number < gold
        task = f"known {number + 1}" if known else f"item {number + 1 - gold}"
        item = {"task": task, "text": f"Imagine a photograph of this: {name}", "class": name}
        found.append(item | ({"gold": name} if known else {}))
    return found


def load_example(store: Store) -> int | None:
    """Create and start a campaign of the animals, unless there are campaigns already."""
    if store.read(list_campaigns):
        return None
    problem = example("animals")
    rng = np.random.default_rng(0)
    policy = plan(problem, error=ERROR).policy
    words = "Imagine the photograph that is described, and answer the question about it."
    settings = Settings(checks=Checks(gold_rate=0.1), tasks=Tasks(instructions=words))
    rows = [_row(item, problem) for item in example_items(problem, ITEMS, rng, GOLD)]

    def make(connection: Connection) -> int:
        now = store.clock()
        number = campaigns.create(connection, "Example: animals", policy, settings, now)
        campaigns.add_items(connection, number, rows)
        campaigns.set_status(connection, number, "running", now)
        return number

    return store.write(make)


def _row(item: dict[str, str], problem: Problem) -> JsonObject:
    gold = problem.classes.index(item["gold"]) if "gold" in item else None
    return {"task": item["task"], "payload": json.dumps({"text": item["text"]}), "gold": gold}
