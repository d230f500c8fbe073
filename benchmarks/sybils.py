"""Attackers in a live campaign: what their answers do to the labels.

Twenty honest people and five attackers join a campaign of 200 items by the open link. Everything
goes through the real store, in process and in simulated time: questions out, answers in, the
assessment of workers every few answers, exclusions, and the replay of items. Each attack runs with
an adaptive policy and with a plan, with and without gold items.

- ``wrong``: wrong labels in the end, after the automatic rules;
- ``wrong without``: the same after the owner has excluded the attackers, and honest people went on;
- attack ``none``: the same campaign without attackers.

``--summary`` pools the lines of several runs.
"""

from __future__ import annotations

import argparse
import heapq
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from scipy.stats import beta

import crowdtree as ct
from crowdtree.core.likelihood import AnswerModel
from crowdtree.policies import AdaptivePolicy, PlanPolicy
from crowdtree.server.reasons import WorkerReason
from crowdtree.server.rules.runner import RULES, Runner
from crowdtree.server.rules.stalled_items import StalledItems
from crowdtree.server.settings.groups import Checks
from crowdtree.server.settings.model import Settings
from crowdtree.server.store import Next, Refused, Store, Submit, tokens
from crowdtree.server.store.corrections.exclusions import exclude
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.tables import answers, items, labels, workers
from crowdtree.server.store.owner import campaigns
from crowdtree.server.store.owner import people as joining
from crowdtree.server.store.owner.people import Visitor
from crowdtree.server.store.replay.verify import verify

ITEMS, HONEST, ATTACKERS, GOLD_ITEMS = 200, 20, 5, 20
SECONDS = 4.0
"""Usual time of an answer."""
LOOK_EVERY = 100
"""Answers between two assessments."""
PATIENCE = 20
"""Rounds of asking in vain after which a person leaves."""
Attack = Callable[[np.random.Generator, int, int, int], int | None]
"""Answer of an attacker: from a generator, the item's number, its class and the question."""


def table(seed: int = 0) -> ct.Problem:
    """Make a table of eight classes and twelve questions, with errors of 5 to 25 %."""
    rng = np.random.default_rng(seed)
    outcome = rng.integers(0, 2, size=(12, 8))
    outcome[:3] = [[k >> bit & 1 for k in range(8)] for bit in range(3)]
    error = rng.uniform(0.05, 0.25, size=outcome.shape)
    names = [f"c{k}" for k in range(8)], [f"q{k}" for k in range(12)]
    return ct.Problem(names[0], None, names[1], outcome.tolist(), error.tolist())


def policy_of(kind: str, problem: ct.Problem) -> Any:
    """Make one of the two policies."""
    if kind == "adaptive":
        return AdaptivePolicy(problem, target_error=0.03, max_answers=20)
    return PlanPolicy(ct.staff(ct.design(problem), answers=11), "curtailed")


@dataclass
class Person:
    """Somebody who takes part: an honest one errs some times as often as the table says."""

    worker: int
    token: str
    attack: str = ""
    errors: float = 1.0
    pace: float = 1.0
    said: int = 0
    idle: int = 0


@dataclass
class Run:
    """A campaign with its people, in simulated time."""

    kind: str
    attack: str = ""
    gold: bool = True
    seed: int = 0
    table: int = 0
    attackers: int = ATTACKERS
    honest: int = HONEST
    now: float = 1_000_000.0
    people: list[Person] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng([self.seed, 1])
        self.problem = table(self.table)
        self.right = AnswerModel.of(self.problem).yes > 0.5
        self.policy = policy_of(self.kind, self.problem)
        self.truth = np.random.default_rng([self.seed, 2]).integers(8, size=ITEMS + GOLD_ITEMS)
        self.store = Store("sqlite://", clock=lambda: self.now, rng=self.seed)
        self.runner = Runner(self.store, [rule for rule in RULES if rule is not StalledItems])
        gold_rate = 0.1 if self.gold else 0.0
        self.settings = Settings(checks=Checks(gold_rate=gold_rate, gold_first=3 * self.gold))
        self.number = self.store.write(
            lambda c: campaigns.create(c, "sybils", self.policy, self.settings, self.now)
        )
        gold = GOLD_ITEMS if self.gold else 0
        rows = [
            {"task": str(k), "payload": "{}", "gold": int(self.truth[k]) if k >= ITEMS else None}
            for k in range(ITEMS + gold)
        ]
        self.store.write(lambda c: campaigns.add_items(c, self.number, rows))
        self.store.write(lambda c: campaigns.set_status(c, self.number, "running", self.now))
        for place in range(self.honest + (self.attackers if self.attack else 0)):
            bad = place >= self.honest
            self.people.append(
                Person(
                    *self._join(),
                    attack=self.attack if bad else "",
                    errors=(2.0 if self.attack == "careless" else 1.0)
                    if bad
                    else (0.7, 1.0, 1.0, 1.3, 2.0)[place % 5],
                    pace=1.0 if bad else (1.0, 0.5, 1.5, 1.0)[place % 4],
                )
            )

    def _join(self) -> tuple[int, str]:
        def joined(connection: sa.Connection) -> str:
            campaign = get_campaign(connection, self.number)
            return joining.join(connection, campaign, self.policy, Visitor(), self.now, 1e9)

        token = tokens.hashed(self.store.write(joined))
        found = self.store.read(lambda c: c.execute(sa.select(sa.func.max(workers.c.id))).scalar())
        return int(found or 0), token

    # ---------------------------------------------------------------- answers

    def _answer(self, person: Person, task: int, question: int) -> int:
        cls = int(self.truth[task])
        right = int(self.right[question, cls])
        attack = person.attack
        honest = attack in ("", "careless")
        honest |= attack == "turncoat" and person.said < 20
        honest |= attack == "patient" and task % 2 == 1
        if honest:
            error = min(0.45, person.errors * float(self.problem.worker_error[question, cls]))
            return right if self.rng.random() >= error else 1 - right
        if attack in ("random", "fast"):
            return int(self.rng.random() < 0.5)
        if attack == "always yes":
            return 1
        return int(self.right[question, (cls + 1) % 8])  # all say the same wrong class

    def _seconds(self, person: Person) -> float:
        usual = 0.2 if person.attack == "fast" else SECONDS * person.pace
        if person.attack == "patient":
            usual *= 2
        return float(usual * np.exp(self.rng.normal(0.0, 0.5)))

    def work(self, who: list[Person]) -> None:
        """Let people answer until the campaign is finished, or the last look opened nothing."""
        before = -1
        while (said := sum(person.said for person in who)) > before:
            before = said
            self._work(who)

    def _work(self, who: list[Person]) -> None:
        queue = [(self.now + self._seconds(p), k) for k, p in enumerate(who)]
        heapq.heapify(queue)
        count = 0
        for person in who:
            person.idle = 0
        while queue:
            self.now, place = heapq.heappop(queue)
            person = who[place]
            reply = self.store.ask(Next(person.token))
            if reply["task"] is None:
                person.idle += 1
                if reply["reason"] in ("finished", "worker paused") or person.idle > PATIENCE:
                    continue
                if not count % len(who):
                    self.look()
                heapq.heappush(queue, (self.now + 10.0, place))
                count += 1
                continue
            person.idle = 0
            self.now += self._seconds(person)
            task = reply["task"]
            question = list(self.problem.questions).index(task["question"]["name"])
            value = self._answer(person, int(task["item"]["task"]), question)
            try:
                sent = Submit(person.token, task["lease"], "answer", value, f"k{person.said}")
                self.store.ask(sent)
            except Refused:
                continue
            person.said += 1
            count += 1
            if count % LOOK_EVERY == 0:
                self.look()
            heapq.heappush(queue, (self.now, place))
        self.look()

    def look(self) -> None:
        """Do what the server does in the background."""
        self.runner.settle()

    # ---------------------------------------------------------------- results

    def labels(self) -> dict[int, int]:
        """Labels that stand, by item."""
        rows = self.store.read(
            lambda c: c.execute(
                sa.select(items.c.task, labels.c.label)
                .join(labels, labels.c.item_id == items.c.id)
                .where(items.c.status == 2)
            ).all()
        )
        return {int(row.task): int(row.label) for row in rows}

    def wrong(self) -> int:
        """Count the wrong labels."""
        return sum(int(self.truth[k] != label) for k, label in self.labels().items())

    def paused(self) -> set[int]:
        """Workers whom the server suspects, or holds for their speed."""
        mine = workers.c.reason.in_((WorkerReason.SUSPECTED, WorkerReason.HURRIED))
        rows = self.store.read(
            lambda c: c.execute(sa.select(workers.c.id).where(mine)).scalars().all()
        )
        return set(rows)

    def facts(self) -> dict[str, Any]:
        """What came out."""
        paused = self.paused()
        bad = {p.worker for p in self.people if p.attack}
        total = sa.select(sa.func.count()).select_from(answers)
        return {
            "labelled": len(self.labels()),
            "wrong": self.wrong(),
            "answers": self.store.read(lambda c: c.execute(total).scalar_one()),
            "attackers paused": len(paused & bad),
            "honest paused": len(paused - bad),
            "status": self.store.read(partial(get_campaign, campaign_id=self.number)).status,
        }

    def finish(self) -> bool:
        """Finish a campaign that waits for its owner; false if it has finished by itself."""
        waits = bool(self.store.read(partial(get_campaign, campaign_id=self.number)).reason)
        if waits:
            self.store.write(lambda c: campaigns.set_status(c, self.number, "finishing", self.now))
            self.look()
        return waits

    def exclude_attackers(self) -> None:
        """Do what an owner does who knows them."""
        bad = [p.worker for p in self.people if p.attack and p.said]
        if bad:
            self.store.write(
                lambda c: exclude(c, self.number, bad, self.now, reason="attackers", block=True)
            )
        self.look()
        if self.store.read(partial(get_campaign, campaign_id=self.number)).status != "running":
            try:
                self.store.write(
                    lambda c: campaigns.set_status(c, self.number, "running", self.now)
                )
            except ct.CrowdtreeError:
                return  # nothing is left to do
        self.look()
        self.work([p for p in self.people if not p.attack])

    def checked(self) -> bool:
        """Whether everything stored is the replay of the log."""
        return bool(self.store.read(partial(verify, campaign_id=self.number))["agrees"])


ATTACKS = ("colluding", "random", "always yes", "fast", "patient", "turncoat", "careless")
"""The last are honest people who err as often as is tolerated, for comparison."""


def measure(kind: str, gold: bool, attack: str, seed: int, number: int = 0) -> dict[str, Any]:
    """Run one campaign, and once more after the owner has excluded the attackers."""
    run = Run(kind, attack, gold, seed, number)
    try:
        run.work(run.people)
        found: dict[str, Any] = {"policy": kind, "gold": gold, "seed": seed, "table": number}
        found |= {"attack": attack or "none", "waited": run.finish()}
        found |= run.facts()
        if attack:
            run.exclude_attackers()
            found |= {"wrong without": run.wrong(), "labelled without": len(run.labels())}
        return found | {"verified": run.checked()}
    finally:
        run.store.close()


def ratio_interval(wrong: int, total: int, base: int, base_total: int) -> tuple[float, ...]:
    """Ratio of two shares with its 95 % interval (exact for Poisson counts, given their sum).

    >>> [round(x, 2) for x in ratio_interval(30, 1200, 25, 1200)]
    [1.2, 0.68, 2.13]
    """
    low = beta.ppf(0.025, wrong, base + 1) if wrong else 0.0
    high = beta.ppf(0.975, wrong + 1, base) if base else 1.0
    scale = base_total / total
    ends = [scale * share / (1 - share) if share < 1 else np.inf for share in (low, high)]
    return (scale * wrong / base if base else np.inf, *map(float, ends))


def summary(lines: list[dict[str, Any]]) -> str:
    """Pool the seeds: a Markdown table with a row per attack and a column per policy and gold."""
    parts: dict[tuple[str, bool], dict[str, list[dict[str, Any]]]] = {}
    for line in lines:
        some = parts.setdefault((line["policy"], line["gold"]), {})
        some.setdefault(line["attack"], []).append(line)
    titles = [f"{kind}, {'gold' if gold else 'no gold'}" for kind, gold in parts]
    attacks = list(dict.fromkeys(line["attack"] for line in lines))
    found = [f"| attack | {' | '.join(titles)} |", "|---|" + "--:|" * len(titles)]
    for attack in attacks:
        cells = [_cell(some, attack) for some in parts.values()]
        found.append(f"| {attack} | {' | '.join(cells)} |")
    honest = sum(line["honest paused"] for line in lines), HONEST * len(lines)
    return "\n".join([*found, "", "Honest people paused: {} of {}.".format(*honest)])


def _cell(some: dict[str, list[dict[str, Any]]], attack: str) -> str:
    """Wrong labels without attackers; else their ratio, answers per item, and who was paused."""

    def total(name: str, key: str) -> int:
        return sum(line[key] for line in some[name])

    if attack not in some:
        return ""
    answers = f"{total(attack, 'answers') / ITEMS / len(some[attack]):.1f}"
    wrong = total(attack, "wrong"), total(attack, "labelled")
    if attack == "none":
        return f"{wrong[0]} of {wrong[1]} wrong; {answers}"
    ratio = ratio_interval(*wrong, total("none", "wrong"), total("none", "labelled"))
    paused = f"{total(attack, 'attackers paused')} of {ATTACKERS * len(some[attack])}"
    return "{:.2f} ({:.2f} to {:.2f}); {}; {}".format(*ratio, answers, paused)


def main() -> None:
    """Run the attacks and print one line of JSON each, or pool such lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    parser.add_argument("--attacks", nargs="*", default=["none", *ATTACKS])
    parser.add_argument("--policies", nargs="*", default=["adaptive", "plan"])
    parser.add_argument("--gold", type=int, nargs="*", default=[1, 0])
    parser.add_argument("--tables", type=int, nargs="*", default=[0], help="tables, by their seeds")
    parser.add_argument("--summary", type=Path, nargs="*", help="files of earlier lines to pool")
    options = parser.parse_args()
    if options.summary:
        lines = [line for path in options.summary for line in path.read_text().splitlines()]
        print(summary([json.loads(line) for line in lines]))
        return
    parts = (options.tables, options.seeds, options.policies, options.gold, options.attacks)
    for number, seed, kind, gold, attack in product(*parts):
        found = measure(kind, bool(gold), attack.replace("none", ""), seed, number)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
