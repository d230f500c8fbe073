"""Alarms and revisions of live campaigns: the server's own code, driven without HTTP.

``python -m benchmarks.adaptation_live --out docs/measured/adaptation.md`` writes that page's tables
about live campaigns; with ``--json FILE`` the numbers are kept, too. Each person holds one question
while the others answer, so that about as many items are open as there are people. The server reads
its log after every few answers and learns how reliable people are, as it does in a real campaign.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

import crowdtree as ct
from benchmarks.adaptation import false_text, points, policy, problems, times
from benchmarks.policy_docs import table, written
from crowdtree.core.problem import DASH
from crowdtree.core.stats import wilson_interval
from crowdtree.server.rules.finishing import Budget, Finishing
from crowdtree.server.rules.reliability import Reliability
from crowdtree.server.rules.revised_items import RevisedItems
from crowdtree.server.rules.runner import Runner
from crowdtree.server.rules.wrong_table import WrongTable
from crowdtree.server.settings.groups import Table
from crowdtree.server.settings.model import Settings
from crowdtree.server.store import Next, Store, Submit, tokens
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.tables import items, labels, monitors
from crowdtree.server.store.owner import campaigns, people
from crowdtree.server.store.replay.verify import verify

PEOPLE = 12
MANY = 40
"""People of campaigns that are played to their end: each answers a question once per item."""
WITHIN = 30
EVERY = 5
"""Answers after which the server reads its log."""
Rows = list[dict[str, Any]]


class Live:
    """A campaign with people who err as a table says."""

    def __init__(
        self,
        assumed: ct.Problem,
        truth: ct.Problem,
        size: int,
        seed: int,
        adapt: bool,
        crowd: int = PEOPLE,
    ) -> None:
        self.now = 0.0
        self.store = Store("sqlite://", clock=lambda: self.now, rng=seed)
        self.assumed, self.truth = assumed, truth
        self.rng = np.random.default_rng((2026, seed))
        self.cls = self.rng.choice(truth.n_classes, size, p=truth.prior)
        made, now, write = policy(assumed), self.now, self.store.write
        settings = Settings(table=Table(revise=adapt))
        number = write(lambda c: campaigns.create(c, "live", made, settings, now))
        rows = [{"task": str(k), "payload": "{}", "gold": None} for k in range(size)]
        write(lambda c: campaigns.add_items(c, number, rows))
        write(lambda c: campaigns.set_status(c, number, "running", now))
        invited = [
            write(lambda c: people.invite(c, number, "", made, False, now)) for _ in range(crowd)
        ]
        self.number, self.people = number, [tokens.hashed(token) for _, token in invited]
        self.runner = Runner(self.store, (WrongTable, Reliability, RevisedItems, Finishing, Budget))
        self.keys = count()
        self.answers = 0

    def value(self, question: int, item: int) -> int:
        cls = self.cls[item]
        right = int(self.truth.outcome[question, cls])
        if right == DASH:
            return int(self.rng.random() < 0.5)
        return right ^ int(self.rng.random() < self.truth.worker_error[question, cls])

    def look(self) -> None:
        """Do the server's own work."""
        self.runner.settle()

    def play(self, enough: Callable[[Live], bool] = lambda _: False) -> None:
        """Let people answer until nothing is left."""
        held: dict[str, Any] = {}
        idle = 0
        while idle < 5:
            busy = False
            for who in self.people:
                self.now += 1.0
                if who in held:
                    busy = True
                    self.submit(who, held.pop(who))
                    if self.answers % EVERY == 0:
                        self.look()
                        if enough(self):
                            return
                task = self.store.ask(Next(who))["task"]
                if task is not None:
                    held[who] = task
            self.look()
            idle = 0 if busy else idle + 1
            if not busy:  # people search all items again after two seconds only
                time.sleep(0.7)

    def finish(self) -> None:
        """Label what is left on the evidence so far."""
        if self.store.read(lambda c: get_campaign(c, self.number)).status == "running":
            self.store.write(lambda c: campaigns.set_status(c, self.number, "finishing", self.now))
            self.look()

    def submit(self, who: str, task: Any) -> None:
        question = self.assumed.question_index(task["question"]["name"])
        value = self.value(question, int(task["item"]["task"]))
        self.store.ask(Submit(who, task["lease"], "answer", value, f"k{next(self.keys)}"))
        self.answers += 1

    def read(self, statement: Any) -> Any:
        return self.store.read(lambda c: c.execute(statement).all())

    def finished(self) -> int:
        """Items with a label."""
        return int(self.read(sa.select(sa.func.count()).select_from(labels))[0][0])

    def alarms(self) -> list[Any]:
        found = self.read(sa.select(monitors.c.alarms))
        return list(json.loads(found[0].alarms)) if found else []

    def wrong(self) -> float:
        joined = labels.join(items, items.c.id == labels.c.item_id)
        rows = self.read(sa.select(items.c.task, labels.c.label).select_from(joined))
        return float(np.mean([label != self.cls[int(task)] for task, label in rows]))

    def agrees(self) -> bool:
        return bool(self.store.read(lambda c: verify(c, self.number))["agrees"])


def soon(names: list[str], runs: int) -> Rows:
    """How soon errors twice as large are noticed: items with a label, and items asked about."""
    rows: Rows = []
    for name in names:
        assumed = problems()[name]
        finished, begun = [], []
        for seed in range(runs):
            game = Live(assumed, times(assumed, 2), 4 * WITHIN, seed, False)
            with game.store.opened():
                game.play(lambda g: bool(g.alarms()) or g.finished() > WITHIN)
                alarms = game.alarms()
                finished.append(game.finished() if alarms else 4 * WITHIN)
                begun.append(alarms[0]["items"] if alarms else 4 * WITHIN)
        within = sum(n <= WITHIN for n in finished)
        medians = {"finished": float(np.median(finished)), "begun": float(np.median(begun))}
        rows.append({"problem": name, "runs": runs, "within": within, **medians})
        print(f"  {rows[-1]}", flush=True)
    return rows


def falsely(names: list[str], runs: int, size: int = 40) -> Rows:
    """How often a right table is doubted, at any time in a campaign."""
    rows: Rows = []
    for name in names:
        assumed, alarmed = problems()[name], 0
        for seed in range(runs):
            game = Live(assumed, assumed, size, 1000 + seed, False)
            with game.store.opened():
                game.play()
                alarmed += bool(game.alarms())
        rows.append({"problem": name, "runs": runs, "items": size, "alarmed": alarmed})
        print(f"  {rows[-1]}", flush=True)
    return rows


def mended(names: list[str], runs: int, size: int) -> Rows:
    """Errors twice the assumed: with adaptation, and a policy that was told the truth."""
    rows: Rows = []
    for name in names:
        assumed = problems()[name]
        truth = times(assumed, 2)
        found: dict[str, Any] = {"problem": name, "runs": runs, "items": size, "agrees": True}
        for way, table_of_policy in (("adapting", assumed), ("told", truth)):
            wrong, answers, revised = [], [], 0
            for seed in range(runs):
                game = Live(table_of_policy, truth, size, 2000 + seed, way == "adapting", MANY)
                with game.store.opened():
                    game.play()
                    game.finish()
                    wrong.append(game.wrong())
                    answers.append(game.answers / size)
                    revised += bool(game.alarms())
                    found["agrees"] &= game.agrees()
            found |= {way: float(np.mean(wrong)), f"{way} answers": float(np.mean(answers)),
                      f"{way} alarms": revised}  # fmt: skip
        rows.append(found)
        print(f"  {found}", flush=True)
    return rows


def soon_table(rows: Rows) -> str:
    def median(items: float) -> str:
        return f"{items:.0f}" if items < 4 * WITHIN else "no alarm"

    cells = []
    for row in rows:
        within = f"{row['within'] / row['runs']:.0%}"
        medians = [median(row["finished"]), median(row["begun"])]
        cells.append([row["problem"], within, *medians])
    head = ["problem", "within 30 labelled items", "median: labelled", "median: asked about"]
    return table(head, cells)


def interval(row: dict[str, Any]) -> str:
    """Interval of the share of wrong labels, of items as if independent."""
    labels = row["runs"] * row["items"]
    low, high = wilson_interval(round(row["adapting"] * labels), labels)
    return f"{points(low)} to {points(high)}"


def mended_table(rows: Rows) -> str:
    head = ["problem", "adapting (95 %)", "told the truth", "answers: adapting", "told"]
    cells = []
    for row in rows:
        ours, told = row["adapting answers"], row["told answers"]
        cells.append([
            row["problem"],
            f"**{points(row['adapting'])}** ({interval(row)})",
            points(row["told"]),
            f"{ours:.1f}",
            f"{told:.1f}",
            f"{ours / told:.2f}",
            f"{row['adapting alarms']} of {row['runs']}",
            "equal" if row["agrees"] else "DIFFERS",
        ])  # fmt: skip
    return table([*head, "adapting / told", "alarms", "verify"], cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", nargs="*", default=list(problems()))
    parser.add_argument("--runs", type=int, default=40, help="of alarms, per problem")
    parser.add_argument("--campaigns", type=int, default=4, help="with adaptation, per problem")
    parser.add_argument("--items", type=int, default=150, help="of those")
    parser.add_argument("--parts", nargs="*", default=["soon", "false", "mended"])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", ct.CrowdtreeWarning)
    found: dict[str, Rows] = {}
    if args.json and args.json.exists():
        found = json.loads(args.json.read_text())
    makers: dict[str, Callable[[], Rows]] = {
        "soon": lambda: soon(args.problems, args.runs),
        "false": lambda: falsely(args.problems, args.runs),
        "mended": lambda: mended(args.problems, args.campaigns, args.items),
    }
    for part in args.parts:
        print(part, flush=True)
        found[part] = makers[part]()
        if args.json:
            args.json.write_text(json.dumps(found, indent=1))
    if args.out:
        page = args.out.read_text()
        for name, content in {
            "live alarms": soon_table(found["soon"]),
            "live false alarms": false_text(found["false"]),
            "live": mended_table(found["mended"]),
        }.items():
            page = written(page, name, content)
        args.out.write_text(page)


if __name__ == "__main__":
    main()
