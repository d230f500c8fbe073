"""Time to list and search the items of a large campaign, on SQLite and PostgreSQL.

    python -m benchmarks.item_lists --items 100000

Prints one JSON object: milliseconds per page of 50 items, the best of some repetitions.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from functools import partial
from typing import Any

import crowdtree as ct
from crowdtree.policies import PlanPolicy
from crowdtree.server.settings.model import Settings
from crowdtree.server.store import Store
from crowdtree.server.store.owner import campaigns
from crowdtree.server.store.queries.items import some_items

WORDS = (
    *("river", "mountain", "bird", "snow", "tree", "brook"),
    *("red", "yellow", "feather", "wing", "small", "large", "stone"),
)
AT_ONCE = 5000
REPEATS = 7


def rows(first: int, rng: random.Random) -> list[dict[str, Any]]:
    return [
        {
            "task": f"item-{k}",
            "payload": json.dumps({"text": f"{' '.join(rng.choices(WORDS, k=25))} n{k}"}),
            "gold": None,
        }
        for k in range(first, first + AT_ONCE)
    ]


def measured(url: str, count: int) -> dict[str, float]:
    rng = random.Random(0)
    policy = PlanPolicy(ct.staff(ct.design(ct.example("table1")), workers=8), "curtailed")
    pages = {
        "first page": {},
        "page in the middle": {"after": str(count // 2)},
        "by the beginning of the name": {"find": f"item-{count - 1}"[:-2]},
        "by a common text": {"text": "Feather"},
        "by a text of one item": {"text": f"n{count - 1}"},
        "by a text of no item": {"text": "nowhere"},
    }
    with Store(url).opened() as store:
        number = store.write(lambda c: campaigns.create(c, "x", policy, Settings(), 0.0))
        for first in range(0, count, AT_ONCE):
            made = rows(first, rng)
            store.write(partial(campaigns.add_items, campaign_id=number, rows=made))
        return {name: best(store, number, wish) for name, wish in pages.items()}


def best(store: Store, number: int, wish: dict[str, str]) -> float:
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        store.read(lambda c: some_items(c, number, **wish))  # type: ignore[arg-type]
        times.append(time.perf_counter() - begin)
    return round(1000 * min(times), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--items", type=int, default=100_000)
    count = parser.parse_args().items
    from serving import Postgres

    server = Postgres()
    try:
        found = {
            "sqlite": measured("sqlite://", count),
            "postgresql": measured(server.database(), count),
        }
    finally:
        server.close()
    print(json.dumps({"items": count, "milliseconds": found}, indent=1))


if __name__ == "__main__":
    main()
