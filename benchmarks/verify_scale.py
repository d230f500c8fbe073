"""Processor time of `campaign verify` by number of items, all of them labelled, or none.

    python -m benchmarks.verify_scale --items 50000
    python -m benchmarks.verify_scale --items 1000000 --policy adaptive
    PYTHONPATH=OTHER/src python -m benchmarks.verify_scale --keep campaign.db   # the same database

A small campaign is worked on by simulated people of different skills; its items, leases, answers
and labels are then copied with new ids, and counts multiplied. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy.engine import Connection

import crowdtree as ct
from crowdtree.policies import AdaptivePolicy, PlanPolicy
from crowdtree.server.rules.finishing import Budget, Finishing
from crowdtree.server.rules.reliability import Reliability
from crowdtree.server.rules.revised_items import RevisedItems
from crowdtree.server.rules.runner import Runner
from crowdtree.server.settings.model import Settings
from crowdtree.server.store import Next, Store, Submit, tokens
from crowdtree.server.store.owner import campaigns, people
from crowdtree.server.store.replay.verify import verify

ORIGINALS = 1000
WORKERS = 40


def policy_named(name: str) -> Any:
    problem = ct.example("table1")
    if name == "adaptive":
        return AdaptivePolicy(problem, target_error=0.02, max_answers=20, strict=False)
    return PlanPolicy(ct.staff(ct.design(problem), workers=8), "curtailed")


def work(store: Store, policy: Any, hashes: list[str], rng: np.random.Generator) -> int:
    """Let people answer until nothing is left; each has an error rate of their own."""
    outcome, questions = policy.problem.outcome, list(policy.problem.questions)
    error = rng.uniform(0.05, 0.3, len(hashes))
    truth = rng.integers(policy.problem.n_classes, size=ORIGINALS)
    runner = Runner(store, (Reliability, RevisedItems, Finishing, Budget))
    count, idle = 0, 0
    while idle < len(hashes):
        idle = 0
        for place, who in enumerate(hashes):
            task = store.ask(Next(who))["task"]
            if task is None:
                idle += 1
                continue
            right = outcome[
                questions.index(task["question"]["name"]), truth[int(task["item"]["task"])]
            ]
            value = int(right) if right in (0, 1) else int(rng.integers(2))
            value ^= int(rng.random() < error[place])
            store.ask(Submit(who, task["lease"], "answer", value, f"k{count}"))
            count += 1
        if count % 200 < len(hashes):
            runner.settle()
    runner.settle()
    return count


def campaign(store: Store, policy: Any, answered: bool) -> int:
    settings = Settings().changed({"finish.automatically": False, "table.revise": False})
    number = store.write(lambda c: campaigns.create(c, "verify", policy, settings, store.clock()))
    rows = [{"task": str(k), "payload": "{}", "gold": None} for k in range(ORIGINALS)]
    store.write(lambda c: campaigns.add_items(c, number, rows))
    store.write(lambda c: campaigns.set_status(c, number, "running", store.clock()))
    invited = [
        store.write(lambda c: people.invite(c, number, "", policy, False, store.clock()))[1]
        for _ in range(WORKERS)
    ]
    if answered:
        work(store, policy, [tokens.hashed(t) for t in invited], np.random.default_rng(0))
    return number


COPIED = {
    "items": ("id", "task"),
    "leases": ("id", "item_id"),
    "answers": ("id", "item_id", "lease_id"),
    "labels": ("id", "item_id"),
}
COUNTS = (
    "answers",
    "accepted",
    "skips",
    "overdue",
    "earned",
    "gold_right",
    "gold_asked",
    "agreed",
    "judged",
)


def copy(connection: Connection, times: int) -> None:
    """Copy every row of the items, with new ids, and multiply all counts."""

    def run(text: str) -> Any:
        return connection.exec_driver_sql(text)

    far = 1 + max(run(f"SELECT COALESCE(MAX(id), 0) FROM {t}").scalar_one() for t in COPIED)
    numbers = (
        f"WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n WHERE k < {times - 1})"
    )
    for table, moved in COPIED.items():
        columns = [row[1] for row in run(f"PRAGMA table_info({table})")]
        made = ", ".join(_copied(column, column in moved, far) for column in columns)
        run(
            f"INSERT INTO {table} ({', '.join(columns)}) {numbers} "
            f"SELECT {made} FROM n, {table} t ORDER BY n.k, t.id"
        )
    run(f"UPDATE tallies SET value = value * {times}")
    run("UPDATE workers SET " + ", ".join(f"{c} = {c} * {times}" for c in COUNTS))


def _copied(column: str, moved: bool, far: int) -> str:
    """SQL of a column in the copy number `n.k` of a row `t`."""
    if not moved:
        return f"t.{column}"
    return "t.task || '-' || n.k" if column == "task" else f"t.{column} + n.k * {far}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--policy", choices=["plan", "adaptive"], default="plan")
    parser.add_argument("--new", action="store_true", help="no item was asked about")
    parser.add_argument("--keep", help="database to make, or to verify if it is there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(options.keep or Path(folder) / "verify.db")
        there = path.exists()
        with Store(f"sqlite:///{path}", rng=0).opened() as store:
            if not there:
                campaign(store, policy_named(options.policy), not options.new)
                if options.items > ORIGINALS:
                    store.write(lambda c: copy(c, options.items // ORIGINALS))
            wall, used = time.perf_counter(), time.process_time()
            found = store.read(lambda c: verify(c, 1))
            used, wall = time.process_time() - used, time.perf_counter() - wall
    print(
        json.dumps(
            {
                **{name: found[name] for name in ("items", "answers", "labelled", "agrees")},  # type: ignore[literal-required]
                "differences": found["differences"][:3],
                "seconds_of_processor": round(used, 2),
                "seconds": round(wall, 2),
                "microseconds_per_item": round(1e6 * used / found["items"], 1),
            }
        )
    )


if __name__ == "__main__":
    main()
