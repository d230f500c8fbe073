"""A real campaign over HTTP on this machine, with simulated workers."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import IO, Any

import numpy as np

from crowdtree.client import Client, work
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.likelihood import AnswerModel
from crowdtree.core.problem import Problem
from crowdtree.server.store.reliability import expected_right
from crowdtree.server.store.types import AnyPolicy
from crowdtree.server.web.plans import to_request
from crowdtree.show.report import LiveCampaign, LiveWorker

START_SECONDS = 60.0
STILL_SECONDS = 180.0
"""Seconds without an answer after which a rehearsal is aborted. A campaign ends when the server
has compared its last answers with the table, which takes long on a busy machine.
"""
WAIT_SECONDS = 1.0
"""That a worker waits for an open question, and for more work after there was none."""
SKILL_SPREAD = 0.5
SETTINGS = {
    "checks": {"gold_rate": 0.1, "gold_first": 10, "pause_below": 0.65, "pause_after_checks": 10},
    "tasks": {"show_item_names": True},  # by which simulated workers know what an item is
}


@dataclass(frozen=True)
class Person:
    """A simulated worker: a skill in logits of the error, or a spammer who answers at random."""

    name: str
    skill: float
    spammer: bool = False


def people(count: int, spammers: int, rng: np.random.Generator) -> list[Person]:
    """Make workers of mixed skill, evenly over the quantiles; the last few are spammers.

    >>> [p.spammer for p in people(4, 1, np.random.default_rng(0))]
    [False, False, False, True]
    """
    spread = NormalDist(0.0, SKILL_SPREAD)
    able = count - spammers
    skills = rng.permutation([spread.inv_cdf((n + 0.5) / able) for n in range(able)])
    return [
        *(Person(f"worker {n + 1}", float(skill)) for n, skill in enumerate(skills)),
        *(Person(f"spammer {n + 1}", 0.0, True) for n in range(spammers)),
    ]


# ---------------------------------------------------------------- the server


@contextmanager
def served(database: Path) -> Iterator[Client]:
    """Start ``crowdtree serve`` in a process, log in by its link, and stop it afterwards."""
    command = [sys.executable, "-m", "crowdtree", "serve", "--json", "--port", "0"]
    command += ["--database", str(database)]
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    with server:
        owner = None
        try:
            found = _started(server)
            owner = Client(found["url"])
            _wait_for(owner, server)
            owner.log_in(found["link"].partition("token=")[2])
            yield owner
        finally:
            if owner is not None:
                owner.close()
            server.send_signal(signal.SIGINT if os.name == "posix" else signal.SIGTERM)
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()


def _started(server: subprocess.Popen[str]) -> dict[str, str]:
    """Read the JSON line that the server prints when it starts."""
    said = "it printed nothing"
    output = server.stdout or io.StringIO()
    for line in output:
        if line.startswith("{"):
            threading.Thread(target=_drain, args=(output,), daemon=True).start()
            found: dict[str, str] = json.loads(line)
            return found
        said = line.strip() or said
    raise CrowdtreeError(f"the server did not start: {said}")


def _drain(said: IO[str]) -> None:
    """Keep reading, so that the server does not block on a full pipe."""
    with suppress(ValueError):  # closed in the meantime
        for _ in said:
            pass


def _wait_for(client: Client, server: subprocess.Popen[str]) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and server.poll() is None:
        try:
            client.get("/healthz")
        except (OSError, CrowdtreeError):
            time.sleep(0.05)
        else:
            return
    raise CrowdtreeError("the server did not start; try: crowdtree serve")


# ---------------------------------------------------------------- the rehearsal


def rehearse(
    owner: Client,
    policy: AnyPolicy,
    items: Sequence[dict[str, str]],
    crowd: Sequence[Person],
    folder: Path,
    *,
    price: float | None = None,
    rng: np.random.Generator | int = 0,
    report: Callable[[int, int], None] | None = None,
) -> LiveCampaign:
    """Run a whole campaign, and compare its labels with the truth.

    `items` are as :func:`crowdtree.cli.rehearsal.example.example_items` makes them; `report` is
    called with the items done and their total. Answers and labels are downloaded into `folder`.
    Workers run concurrently, so two rehearsals with the same `rng` differ a little.
    """
    begin, problem = time.monotonic(), policy.problem
    campaign = {"name": "Rehearsal", "policy": to_request(policy), "settings": SETTINGS}
    number = owner.post("/api/campaigns", campaign)["id"]
    here = f"/api/campaigns/{number}"
    owner.post_lines(
        f"{here}/items", [{k: v for k, v in item.items() if k != "class"} for item in items]
    )
    clients = [
        Client(owner.server, owner.post(f"{here}/workers/invite", {"name": p.name})["token"])
        for p in crowd
    ]
    owner.post(f"{here}/start")
    truth = {item["task"]: problem.classes.index(item["class"]) for item in items}
    streams = np.random.default_rng(rng).spawn(len(crowd))
    stop = threading.Event()
    with ThreadPoolExecutor(len(crowd)) as pool:
        jobs = [
            pool.submit(_keep_working, client, _answerer(person, problem, truth, stream), stop)
            for client, person, stream in zip(clients, crowd, streams, strict=True)
        ]
        try:
            _watch(owner, here, report)
        finally:
            stop.set()
        for job in jobs:
            job.result()
    for name in ("answers", "labels"):
        (folder / f"{name}.csv").write_text(owner.get(f"{here}/{name}?format=csv"))
    return replace(
        _result(owner, here, problem, items, crowd), price=price, seconds=time.monotonic() - begin
    )


def _keep_working(
    client: Client, answer: Callable[[dict[str, Any], dict[str, Any]], bool], stop: threading.Event
) -> None:
    """Answer until the rehearsal ends: a revision may reopen items when all had their labels."""
    while not stop.is_set():
        work(client, answer, wait=WAIT_SECONDS, stop=stop)
        stop.wait(WAIT_SECONDS)


def _answerer(
    person: Person, problem: Problem, truth: dict[str, int], rng: np.random.Generator
) -> Callable[[dict[str, Any], dict[str, Any]], bool]:
    """Make the answering function of a simulated worker."""
    model = AnswerModel.of(problem, shared_difficulty=0.0)
    place = {name: q for q, name in enumerate(problem.questions)}

    def answer(item: dict[str, Any], question: dict[str, Any]) -> bool:
        cls = truth[item["task"]]
        yes = model.chances(place[question["name"]], person.skill)[1, cls]
        return bool(rng.random() < (0.5 if person.spammer else yes))

    return answer


def _watch(owner: Client, here: str, report: Callable[[int, int], None] | None) -> None:
    """Wait for the end; give up when nothing changes any more."""
    seen, since = -1, time.monotonic()
    while True:
        found = owner.get(here)
        total = found["items"]["total"]
        done = found["items"]["labelled"] + found["items"]["set_aside"]
        if report is not None:
            report(done, total)
        if found["status"] == "finished":
            return
        if sum(found["answers"].values()) != seen:
            seen, since = sum(found["answers"].values()), time.monotonic()
        if time.monotonic() - since > STILL_SECONDS:
            raise CrowdtreeError(f"the campaign is stuck at {done} of {total} items")
        time.sleep(0.2)


def _result(
    owner: Client,
    here: str,
    problem: Problem,
    items: Sequence[dict[str, str]],
    crowd: Sequence[Person],
) -> LiveCampaign:
    found = owner.get(here)
    lines = owner.get(f"{here}/labels?format=jsonl").splitlines()
    labels = {row["task"]: row["label"] for row in map(json.loads, lines)}
    asked = [item for item in items if "gold" not in item]
    facts = {row["name"]: row for row in owner.get(f"{here}/workers")}
    return LiveCampaign(
        truth=[item["class"] for item in asked],
        labels=[labels.get(item["task"]) for item in asked],
        answers=found["answers"]["counted"],
        checks=found["answers"]["gold"],
        estimated_error=found["estimated_error"] or 0.0,
        workers=[
            LiveWorker(
                name=person.name,
                answers=facts[person.name]["answers"],
                reliability=facts[person.name]["reliability"],
                right=0.5 if person.spammer else expected_right(problem, person.skill),
                status=facts[person.name]["status"],
                spammer=person.spammer,
            )
            for person in crowd
        ],
    )
