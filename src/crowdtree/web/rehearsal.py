"""A campaign with simulated workers over HTTP on loopback: all of it is real but the people."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.cookies import SimpleCookie
from pathlib import Path
from typing import IO, Any

import numpy as np

from crowdtree.errors import CrowdtreeError
from crowdtree.likelihood import AnswerModel
from crowdtree.problem import Problem
from crowdtree.report import LiveCampaign, LiveWorker
from crowdtree.store.reliability import expected_right

__all__ = ["Person", "people", "rehearse", "served"]

START_SECONDS = 60.0
STILL_SECONDS = 60.0
"""How long nothing may happen before a rehearsal is given up."""
SKILL_SPREAD = 0.5
OVER = ("finished", "done", "worker paused")
LINK = re.compile(r"/login\?token=(\S+)")
SETTINGS = {"gold_rate": 0.1, "gold_first": 10, "pause_below": 0.65, "pause_after": 10}


@dataclass(frozen=True)
class Person:
    """A simulated worker: a skill in logits of the error, or a spammer who tosses a coin."""

    name: str
    skill: float
    spammer: bool = False


def people(count: int, spammers: int, rng: np.random.Generator) -> list[Person]:
    """Make workers of mixed skill; the last few are spammers.

    >>> [p.spammer for p in people(4, 1, np.random.default_rng(0))]
    [False, False, False, True]
    """
    skills = rng.normal(0.0, SKILL_SPREAD, count)
    return [
        Person(f"spammer {n + 1 - count + spammers}", 0.0, True)
        if n >= count - spammers
        else Person(f"worker {n + 1}", float(skill))
        for n, skill in enumerate(skills)
    ]


# ---------------------------------------------------------------- the server


@contextmanager
def served(database: Path) -> Iterator[Caller]:
    """Start ``crowdtree serve`` in a process of its own, log in by its link, and stop it after."""
    port = _free_port()
    command = [sys.executable, "-m", "crowdtree", "serve"]
    command += ["--database", str(database), "--port", str(port)]
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    owner = Caller(f"127.0.0.1:{port}")
    with server:
        try:
            token = _link_token(server)
            _wait_for(owner, server)
            owner.log_in(token)
            yield owner
        finally:
            owner.close()
            server.send_signal(signal.SIGINT if os.name == "posix" else signal.SIGTERM)
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _link_token(server: subprocess.Popen[str]) -> str:
    """Read the one-time owner link that the server prints."""
    assert server.stdout is not None
    said = []
    for line in server.stdout:
        said.append(line.strip())
        if found := LINK.search(line):
            threading.Thread(target=_drain, args=(server.stdout,), daemon=True).start()
            return found[1]
    raise CrowdtreeError(f"the server did not start: {' '.join(said[-1:]) or 'it said nothing'}")


def _drain(said: IO[str]) -> None:
    """Read on, so that a server that says much does not wait for a reader."""
    with suppress(ValueError):  # closed meanwhile
        for _ in said:
            pass


def _wait_for(caller: Caller, server: subprocess.Popen[str]) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and server.poll() is None:
        try:
            caller.get("/healthz")
        except (OSError, CrowdtreeError):
            caller.close()
            time.sleep(0.05)
        else:
            return
    raise CrowdtreeError("the server did not start; try: crowdtree serve")


class Caller:
    """A client with one connection that stays open."""

    def __init__(self, address: str, token: str | None = None) -> None:
        self.address = address
        self.headers = {"authorization": f"Bearer {token}"} if token else {}
        self._connection: http.client.HTTPConnection | None = None

    def log_in(self, token: str) -> None:
        """Exchange the owner's one-time token for a session, and that for a token for scripts."""
        answer, headers = self._send("POST", "/api/session", {"token": token})
        cookies = SimpleCookie(headers["set-cookie"])
        self.headers = {
            "cookie": "; ".join(f"{name}={morsel.value}" for name, morsel in cookies.items()),
            "x-csrf-token": answer["csrf"],
        }
        made = self.post("/api/tokens", {"name": "rehearsal"})
        self.headers = {"authorization": f"Bearer {made['token']}"}

    def get(self, path: str) -> Any:
        """Get JSON, or text where the answer is not JSON."""
        return self._send("GET", path)[0]

    def post(self, path: str, body: Any = None) -> Any:
        """Post JSON."""
        return self._send("POST", path, {} if body is None else body)[0]

    def post_lines(self, path: str, rows: Sequence[dict[str, Any]]) -> Any:
        """Post JSON lines."""
        content = "\n".join(json.dumps(row) for row in rows).encode()
        return self._send("POST", path, content, "application/x-ndjson")[0]

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _send(
        self, method: str, path: str, body: Any = None, kind: str = "application/json"
    ) -> tuple[Any, Any]:
        if self._connection is None:
            self._connection = http.client.HTTPConnection(self.address, timeout=60)
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        headers = self.headers | ({} if content is None else {"content-type": kind})
        self._connection.request(method, path, content, headers)
        found = self._connection.getresponse()
        text = found.read().decode()
        if found.status >= 400:
            raise CrowdtreeError(f"{method} {path} gave {found.status}: {text[:200]}")
        is_json = found.headers.get_content_type() == "application/json"
        return json.loads(text) if is_json else text, found.headers


# ---------------------------------------------------------------- the rehearsal


def rehearse(
    owner: Caller,
    name: str,
    problem: Problem,
    policy: dict[str, Any],
    items: Sequence[dict[str, str]],
    crowd: Sequence[Person],
    *,
    promised: float | None = None,
    rng: np.random.Generator | int = 0,
    tell: Callable[[int, int], None] | None = None,
) -> LiveCampaign:
    """Run a whole campaign and compare its labels with the truth.

    `policy` is as in the API (``POST /api/campaigns``), `items` as
    :func:`crowdtree.web.example.example_items` makes them; `tell` hears now and then how many are
    done. People work at the same time, so two rehearsals with the same `rng` differ a little.
    """
    begin = time.monotonic()
    wish = {"name": name, "policy": policy, "settings": SETTINGS}
    number = owner.post("/api/campaigns", wish)["id"]
    here = f"/api/campaigns/{number}"
    owner.post_lines(
        f"{here}/items", [{k: v for k, v in item.items() if k != "class"} for item in items]
    )
    callers = [
        Caller(owner.address, owner.post(f"{here}/workers/invite", {"name": p.name})["token"])
        for p in crowd
    ]
    owner.post(f"{here}/start")
    truth = {item["task"]: problem.classes.index(item["class"]) for item in items}
    streams = np.random.default_rng(rng).spawn(len(crowd))
    stop = threading.Event()
    with ThreadPoolExecutor(len(crowd)) as pool:
        jobs = [
            pool.submit(_work, caller, person, problem, truth, stream, stop)
            for caller, person, stream in zip(callers, crowd, streams, strict=True)
        ]
        try:
            _watch(owner, here, tell)
        finally:
            stop.set()
        for job in jobs:
            job.result()
    return _result(owner, here, name, problem, items, crowd, promised, time.monotonic() - begin)


def _work(
    caller: Caller,
    person: Person,
    problem: Problem,
    truth: dict[str, int],
    rng: np.random.Generator,
    stop: threading.Event,
) -> None:
    """Answer until the campaign is over or the worker is not wanted any more."""
    model = AnswerModel.of(problem)
    place = {name: q for q, name in enumerate(problem.questions)}
    given = 0
    while not stop.is_set():
        found = caller.post("/api/worker/next", {"wait": 1.0})
        task = found["task"]
        if task is None:
            if found["reason"] in OVER:
                break
            continue
        question, cls = place[task["question"]["name"]], truth[task["item"]["task"]]
        share = 0.5 if person.spammer else model.yes_given(question, person.skill)[cls]
        answer = "yes" if rng.random() < share else "no"
        key = f"{person.name.replace(' ', '-')}.{given}"
        caller.post("/api/worker/answer", {"lease": task["lease"], "answer": answer, "key": key})
        given += 1
    caller.close()


def _watch(owner: Caller, here: str, tell: Callable[[int, int], None] | None) -> None:
    """Wait for the end; give up where nothing happens any more."""
    seen, since = -1, time.monotonic()
    while True:
        found = owner.get(here)
        total = found["items"]["total"]
        done = found["items"]["labelled"] + found["items"]["set_aside"]
        if tell is not None:
            tell(done, total)
        if found["status"] == "finished":
            return
        if sum(found["answers"].values()) != seen:
            seen, since = sum(found["answers"].values()), time.monotonic()
        if time.monotonic() - since > STILL_SECONDS:
            raise CrowdtreeError(f"the campaign stands still at {done} of {total} items")
        time.sleep(0.2)


def _result(
    owner: Caller,
    here: str,
    name: str,
    problem: Problem,
    items: Sequence[dict[str, str]],
    crowd: Sequence[Person],
    promised: float | None,
    seconds: float,
) -> LiveCampaign:
    found = owner.get(here)
    lines = owner.get(f"{here}/labels?format=jsonl").splitlines()
    labels = {row["task"]: row["label"] for row in map(json.loads, lines)}
    asked = [item for item in items if "gold" not in item]
    facts = {row["name"]: row for row in owner.get(f"{here}/workers")}
    return LiveCampaign(
        name=name,
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
        seconds=seconds,
        promised=promised,
    )
