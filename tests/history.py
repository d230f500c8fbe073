"""A campaign under failures of all kinds, and the invariants afterwards.

Clients note every answer that the server acknowledged. Meanwhile servers are killed, the database
is restarted, the clock jumps, policies are revised, by the owner and by the server itself, whose
tables the answers contradict. Answers are excluded and included again, a campaign is finished early
and its items are reopened. Items are labelled by hand, withdrawn and edited, some of that is taken
back, and questions are reworded. Auditors check labels, and audits start again, while all that goes
on. Clients stay until every campaign is finished, and others join where nobody is left who may
answer. In the end every acknowledged answer must be in the log exactly once, every acknowledged
check in its audit, and everything else must be the replay of the log.
"""

from __future__ import annotations

import contextlib
import http.client
import random
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

import crowdtree as ct
from crowdtree.policies import AdaptivePolicy, PlanPolicy
from crowdtree.server.reasons import CampaignReason
from crowdtree.server.rules.trust import VOUCHED
from crowdtree.server.store import Next, Store, Unavailable, tokens
from crowdtree.server.store.audits import checking
from crowdtree.server.store.db.campaign_row import (
    get_campaign,
    list_campaigns,
    tally,
)
from crowdtree.server.store.db.engine import make_engine
from crowdtree.server.store.db.tables import (
    answers,
    budgets,
    checks,
    items,
    labels,
    leases,
    monitors,
    open_questions,
    revisions,
    waiting,
    workers,
)
from crowdtree.server.store.db.tables import campaigns as campaign_rows
from crowdtree.server.store.owner import campaigns, people
from crowdtree.server.store.replay.verify import verify
from crowdtree.server.store.types import LeaseState
from crowdtree.server.web.plans import to_request
from tests.serving import Client, Server
from tests.short import settings_of
from tests.storelab import join_openly

LEASE_SECONDS = 2.0
AUDITORS = 2
CHECKS = 8
"""Checks of each auditor."""
LONGEST = 240.0
"""Seconds without an answer after which campaigns that are not finished count as stuck."""
REOPENED = 2
"""Place of the campaign that is finished early and reopened; it does not finish by itself until
then."""
REOPENED_SECONDS = 2.0
"""After which a finished campaign is not opened again by checks or by doubts about workers."""
STALLED_SECONDS = 10.0
"""Between two people who join because nobody else may answer what is left of a campaign."""


@dataclass
class Ack:
    """An answer that the server said it has."""

    lease: int
    key: str
    kind: str
    value: int | None
    fate: str


@dataclass
class Crowd:
    """What the clients saw."""

    url: str
    servers: list[Server]
    acks: list[Ack] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    checks: list[tuple[int, str | None]] = field(default_factory=list)
    """Item and true class of each check that the server said it has."""
    events: dict[str, int] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    threads: list[threading.Thread] = field(default_factory=list)
    moved: float = field(default_factory=time.monotonic)
    """When the last answer was acknowledged."""
    changed: dict[int, dict[str, list[str]]] = field(default_factory=dict)
    """Items that are labelled by hand or withdrawn, by campaign."""
    joined: dict[int, float] = field(default_factory=dict)
    """When somebody joined a campaign last, because nobody else was left."""

    def saw(self, what: str) -> None:
        with self.lock:
            self.events[what] = self.events.get(what, 0) + 1

    def acknowledge(self, ack: Ack) -> None:
        with self.lock:
            self.acks.append(ack)
            self.moved = time.monotonic()

    @property
    def stuck(self) -> bool:
        """Whether nobody has answered for long: a loaded machine is slow, but goes on."""
        return time.monotonic() > self.moved + LONGEST

    def begin(self, work: Any, *values: Any) -> None:
        """Let somebody work in a thread."""
        self.threads.append(threading.Thread(target=work, args=(self, *values), daemon=True))
        self.threads[-1].start()

    def wait(self, ready: Callable[[], bool]) -> bool:
        """Wait for something, or until every campaign is finished or stuck; whether it came.

        Meanwhile new people join campaigns with items that nobody there may answer, and the owner
        resumes campaigns that were paused because items are open again.
        """
        with Look(self.url) as look:
            while not (came := ready()) and not look.finished() and not self.stuck:
                for number in look.stalled():
                    self.recruit(number)
                if paused := look.paused():
                    resume(self.url, self.servers, paused)
                time.sleep(0.05)
        return came

    def recruit(self, number: int) -> None:
        """Let a new worker join a campaign, unless one has just come."""
        now = time.monotonic()
        if now - self.joined.get(number, -STALLED_SECONDS) < STALLED_SECONDS:
            return
        self.joined[number] = now
        with contextlib.suppress(Unavailable), Store(self.url).opened() as store:
            policy = store.read(lambda c: get_campaign(c, number)).make_policy()
            invited = store.write(
                lambda c: people.invite(c, number, "", policy, False, store.clock())
            )
            store.write(lambda c: vouch(c, invited[:1]))
            self.saw("joined later")
            self.begin(worker, invited[1], 10_000 + len(self.threads))


def policies(errors: float = 1.0) -> list[Any]:
    """One policy of each sort, for people who err so many times as often as assumed at first."""
    problem = ct.example("table1")
    problem = problem.replace(worker_error=errors * problem.worker_error)
    plan = ct.staff(ct.design(problem), workers=8)
    return [
        PlanPolicy(plan, "none"),
        PlanPolicy(plan, "curtailed"),
        PlanPolicy(ct.staff(ct.design(problem), workers=4), "margin"),
        AdaptivePolicy(problem, target_error=0.05, max_answers=9, strict=False),
    ]


def make_campaigns(url: str, n_items: int, clients: int) -> list[tuple[int, list[str]]]:
    """Make one campaign per policy; in each, an idle worker holds leases and never answers."""
    made = []
    with Store(url).opened() as store:
        now = store.clock()
        for place, policy in enumerate(policies()):
            settings = settings_of(
                max_seconds_per_question=LEASE_SECONDS,
                gold_rate=0.05,
                max_skips=4,
                price=0.01,
                budget=1000.0 if place == 1 else None,
                revise=place in (1, 3),
                pause_suspects=False,  # gold is right by chance here
                automatically=place != REOPENED,
            )
            number = store.write(
                lambda c, p=policy, s=settings: campaigns.create(c, "history", p, s, now)
            )
            rows = [
                {"task": f"i{k}", "payload": "{}", "gold": 0 if k < 5 else None}
                for k in range(n_items + 5)
            ]
            store.write(lambda c, n=number, r=rows: campaigns.add_items(c, n, r))
            store.write(lambda c, n=number: campaigns.set_status(c, n, "running", now))
            invited = [
                store.write(lambda c, n=number, p=policy: people.invite(c, n, "", p, False, now))
                for _ in range(clients // 4 + 1)
            ]
            friends = [found for place, (found, _) in enumerate(invited) if place % 4]
            store.write(lambda c, f=friends: vouch(c, f))
            idle = tokens.hashed(invited[0][1])
            held: list[str] = []
            for _ in range(3):
                task = store.ask(Next(idle, tuple(held)))["task"]
                held += [task["lease"]] if task else []
            # A newcomer, whose labels wait for the others.
            joined = join_openly(store, number, now)
            made.append((number, [*(token for _, token in invited[1:]), joined]))
    return made


def vouch(connection: Any, ids: Sequence[int]) -> None:
    """Vouch for workers, as an owner does who clears suspects.

    What is true here fits no class, so whoever answers an adaptive campaign looks careless in the
    end. Labels wait for known people, of whom enough must be left.
    """
    mine = workers.update().where(workers.c.id.in_(ids))
    connection.execute(mine.values(known=VOUCHED[1]))


class Owner:
    """An owner, who asks any server that answers."""

    def __init__(self, url: str, servers: list[Server]) -> None:
        with Store(url).opened() as store:
            token = store.write(lambda c: tokens.issue(c, "owner", store.clock(), name="history"))
            self.numbers = sorted(row.id for row in store.read(list_campaigns))
        self.clients = [Client(server.port, token, timeout=15) for server in servers]

    def __enter__(self) -> Owner:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self.clients:
            client.close()

    def call(
        self, method: str, number: int, path: str = "", body: Any = None, attempts: int = 300
    ) -> tuple[int, Any]:
        for attempt in range(attempts):
            client = self.clients[attempt % len(self.clients)]
            try:
                status, found, _ = client.call(method, f"/api/campaigns/{number}{path}", body)
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.1)
                continue
            if status != 503:
                return status, found
        raise AssertionError("no server answers")

    def status(self, number: int) -> str:
        return str(self.call("GET", number)[1]["status"])


def revise(url: str, servers: list[Server], errors: float) -> None:
    """Revise every campaign that is running."""
    with Owner(url, servers) as owner:
        for number, policy in zip(owner.numbers, policies(errors), strict=True):
            body = {"policy": to_request(policy), "reason": f"{errors} times the errors"}
            status, found = owner.call("POST", number, "/revise", body)
            finished = status == 422 and "is finished" in str(found)
            assert finished or status == 200, (status, found)


def exclude(url: str, servers: list[Server], crowd: Crowd) -> None:
    """Exclude the two people with the most answers of every campaign, finished ones too."""
    with Owner(url, servers) as owner:
        for number in owner.numbers:
            rows = owner.call("GET", number, "/workers")[1]
            busy = sorted(rows, key=lambda row: -row["answers"])[:2]
            ids = [row["id"] for row in busy if row["answers"]]
            if ids:
                status, found = owner.call("POST", number, "/exclude", {"workers": ids})
                assert status == 200, (status, found)
                crowd.saw("excluded")


def include(url: str, servers: list[Server], crowd: Crowd) -> None:
    """Include somebody again, in every campaign where answers are excluded."""
    with Owner(url, servers) as owner:
        for number in owner.numbers:
            rows = owner.call("GET", number, "/exclusions")[1]
            if rows:
                body = {"workers": [rows[0]["worker_id"]]}
                status, found = owner.call("POST", number, "/include", body)
                assert status == 200, (status, found)
                crowd.saw("included")


def finish_and_reopen(url: str, servers: list[Server], crowd: Crowd) -> None:
    """Finish a campaign early, and reopen items that nobody was asked about until then."""
    rows = [{"task": f"more {k}", "payload": "{}", "gold": None} for k in range(3)]
    with Owner(url, servers) as owner:
        number = owner.numbers[REOPENED]
        _must(owner, crowd, "paused", number, "/pause", {})
        with Store(url).opened() as store:
            store.write(lambda c: campaigns.add_items(c, number, rows))
        _must(owner, crowd, "finished early", number, "/finish", {})
        while owner.status(number) != "finished" and not crowd.stuck:
            time.sleep(0.05)
        found = _must(owner, crowd, "reopened", number, "/reopen", {"all": True})
        assert found["reopened"] >= len(rows), found
        status, found = owner.call(
            "PATCH", number, "/settings", {"finish": {"automatically": True}}
        )
        assert status == 200, (status, found)


def change_items(url: str, servers: list[Server], crowd: Crowd, first: int) -> None:
    """Label, withdraw and edit items of every campaign, and take back what was done before.

    Six items from the number `first` on are changed, whatever has become of them.
    """
    names = ct.example("table1")
    with Owner(url, servers) as owner:
        for number in owner.numbers:
            done = {"gone": [], "known": []} | crowd.changed.get(number, {})
            if done["known"]:
                back = {"labels": dict.fromkeys(done["known"], None), "reason": "was right"}
                _must(owner, crowd, "taken back", number, "/correct", back)
            if done["gone"] and owner.status(number) != "finishing":
                _must(owner, crowd, "put back", number, "/reopen", {"tasks": done["gone"]})
            tasks = [f"i{k}" for k in range(first, first + 6)]
            known = {task: names.classes[k] for k, task in enumerate(tasks[:3])}
            _must(owner, crowd, "corrected", number, "/correct", {"labels": known})
            _must(owner, crowd, "withdrawn", number, "/withdraw", {"tasks": tasks[3:5]})
            questions = {names.questions[0]: f"Is it so, from {tasks[0]} on?"}
            _must(owner, crowd, "reworded", number, "/reword", {"questions": questions})
            _edit(owner, crowd, number, tasks[3:])
            crowd.changed[number] = {"known": tasks[:2], "gone": tasks[3:4]}


def _must(
    owner: Owner, crowd: Crowd, what: str, number: int, path: str, body: dict[str, Any]
) -> Any:
    status, found = owner.call("POST", number, path, body)
    assert status == 200, (what, status, found)
    crowd.saw(what)
    return found


def _edit(owner: Owner, crowd: Crowd, number: int, tasks: list[str]) -> None:
    """Edit items; a withdrawn one among them."""
    mine = items.c.campaign_id == number
    with Look(crowd.url) as look:
        rows = look._rows(sa.select(items.c.id).where(mine, items.c.task.in_(tasks))) or []
    for (item,) in rows:
        body = {"columns": {"text": f"a text of {item}"}}
        status, found = owner.call("PATCH", number, f"/items/{item}", body)
        assert status == 200, (status, found)
        crowd.saw("edited")


def resume(url: str, servers: list[Server], numbers: list[int]) -> None:
    """Resume campaigns that were paused because items are open again, if a server answers now."""
    with contextlib.suppress(AssertionError, Unavailable), Owner(url, servers) as owner:
        for number in numbers:
            owner.call("POST", number, "/resume", {}, attempts=len(servers))


class Look:
    """Looks into the database while servers and database come and go."""

    def __init__(self, url: str) -> None:
        self.engine = make_engine(url)

    def __enter__(self) -> Look:
        return self

    def __exit__(self, *_: object) -> None:
        self.engine.dispose()

    def _rows(self, statement: Any) -> list[Any] | None:
        """Read something; none while the database is away."""
        try:
            with self.engine.connect() as connection:
                return list(connection.execute(statement))
        except sa.exc.DBAPIError:
            return None

    def finished(self) -> bool:
        """Whether every campaign is finished, and every revision: finished ones are revised too.

        A campaign that waits for its owner has nothing left to ask.
        """
        open_ = campaign_rows.c.reason != CampaignReason.LEFT_TO_OWNER
        left = sa.select(campaign_rows.c.id).where(campaign_rows.c.status != "finished", open_)
        behind = sa.select(revisions.c.campaign_id).where(revisions.c.finished_at.is_(None))
        return self._rows(left) == [] and self._rows(behind) == []

    def stalled(self) -> list[int]:
        """Campaigns with items that nobody who is there may answer."""
        return [row[0] for row in self._rows(sa.select(waiting.c.campaign_id).distinct()) or []]

    def unfinished(self) -> str:
        """What each campaign waits for, a line each; the servers' own words are on stderr."""
        behind = revisions.c.finished_at.is_(None)
        active = leases.c.state == LeaseState.ACTIVE
        left = answers.c.id > sa.func.coalesce(monitors.c.last_answer_id, 0)
        unread = answers.outerjoin(monitors, monitors.c.campaign_id == answers.c.campaign_id)
        facts = {
            "campaign": sa.select(
                *(campaign_rows.c[n] for n in ("id", "status", "reason", "reason_detail"))
            ),
            "items by status": _counted(items.c.status),
            "open questions by known_only": _counted(open_questions.c.known_only),
            "stalled": _counted(waiting.c.campaign_id),
            "held": _counted(leases.c.state).where(active),
            "revisions": _counted(revisions.c.actor).where(behind),
            "not compared": _counted(answers.c.kind).select_from(unread).where(left),
            "workers by status and why known": _counted(workers.c.status, workers.c.known),
        }
        found = {name: self._rows(statement) for name, statement in facts.items()}
        numbers = [row[0] for row in found["campaign"] or []]
        return "\n".join(str({k: _of(n, rows) for k, rows in found.items()}) for n in numbers)

    def paused(self) -> list[int]:
        """Campaigns that wait for their owner."""
        found = sa.select(campaign_rows.c.id).where(campaign_rows.c.status == "paused")
        return [row[0] for row in self._rows(found) or []]


def _counted(*columns: Any) -> Any:
    """Count rows by campaign and some columns."""
    keys = dict.fromkeys((columns[0].table.c.campaign_id, *columns))
    return sa.select(*keys, sa.func.count()).group_by(*keys)


def _of(number: int, rows: list[Any] | None) -> Any:
    """The rows of a campaign; none while the database is away."""
    return rows and [tuple(row[1:]) for row in rows if row[0] == number]


def worker(crowd: Crowd, token: str, seed: int) -> None:
    """One client: answers, and makes every mistake that clients make."""
    clients = [Client(server.port, token, timeout=15) for server in crowd.servers]
    try:
        live(crowd, clients, random.Random(seed))
    finally:
        for client in clients:
            client.close()


def live(crowd: Crowd, clients: list[Client], rng: random.Random) -> None:
    ignored: list[str] = []
    while not crowd.stop.is_set():
        found = send(crowd, clients, rng, "/api/worker/next", {"holding": ignored[-3:], "wait": 1})
        if found is None:
            return
        status, body = found
        if status != 200:
            crowd.wrong.append(f"next: {status} {body}")
            return
        if body["task"] is None:
            ignored = []
            # Also when all is labelled the client stays: a revision may open items again.
            crowd.stop.wait(1.0 if body["reason"] == "finished" else 0.2)
            continue
        act(crowd, clients, rng, body["task"], ignored)


def act(
    crowd: Crowd, clients: list[Client], rng: random.Random, task: Any, ignored: list[str]
) -> None:
    dice = rng.random()
    lease = task["lease"]
    if dice < 0.03:
        crowd.saw("abandoned")
        ignored.append(lease)
        return
    if dice < 0.06:
        crowd.saw("slow")
        crowd.stop.wait(LEASE_SECONDS + 1.5)
    kind = "skip" if dice > 0.97 else "answer"
    key = uuid.uuid4().hex
    truth = zlib.crc32(f"{task['item']['task']} {task['question']['name']}".encode()) % 2
    value = ["no", "yes"][truth ^ (rng.random() < 0.1)] if kind == "answer" else None
    first = submit(crowd, clients, rng, lease, kind, key, value)
    if first is None:
        return
    if rng.random() < 0.15:
        crowd.saw("repeated")
        again = submit(crowd, clients, rng, lease, kind, key, value)
        if again != first and not crowd.stop.is_set():
            crowd.wrong.append(f"repeating {key}: {first} then {again}")
    if rng.random() < 0.05:
        crowd.saw("second key")
        other = send(crowd, clients, rng, f"/api/worker/{kind}", body_of(lease, "x" + key, value))
        if other is not None and other[0] != 409:
            crowd.wrong.append(f"second answer: {other}")


# ------------------------------------------------------------------------------ auditors


def auditor(crowd: Crowd, number: int, token: str, owner: str, seed: int) -> None:
    """One auditor, who also starts audits; mostly finds labels right, sometimes cannot tell."""
    rng = random.Random(seed)
    mine = [Client(server.port, token, timeout=15) for server in crowd.servers]
    theirs = [Client(server.port, owner, timeout=15) for server in crowd.servers]
    path = f"/api/campaigns/{number}"
    done, idle = 0, 0
    try:
        while done < CHECKS and idle < 50 and not crowd.stop.is_set():
            found = send(crowd, mine, rng, "/api/auditor/next", {})
            if found is None:
                return
            if found[1].get("item") is None:
                idle += found[1].get("reason") == "done"
                send(crowd, theirs, rng, f"{path}/audit", {"bound": rng.uniform(0.2, 0.6)})
                crowd.stop.wait(0.2)
                continue
            done += checked(crowd, mine, theirs, rng, number, found[1])
    finally:
        for client in (*mine, *theirs):
            client.close()


def checked(
    crowd: Crowd,
    mine: list[Client],
    theirs: list[Client],
    rng: random.Random,
    number: int,
    given: Any,
) -> int:
    if rng.random() < 0.1:
        crowd.saw("check abandoned")
        crowd.stop.wait(0.2)
        return 0
    item, names = given["number"], ct.example("table1").classes
    truth = rng.choice([None, names[0]])
    if rng.random() < 0.9:
        try:
            trace = rng.choice(theirs).get(f"/api/campaigns/{number}/items/{item}")[1]
            truth = names[trace["label"]["label"]]
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
            crowd.saw("connection lost")
    found = send(crowd, mine, rng, "/api/auditor/record", {"item": item, "truth": truth})
    if found is None or found[0] in (409, 410):  # an audit that was started again
        crowd.saw("check lost")
        return 0
    if found[0] != 200:
        crowd.wrong.append(f"record: {found}")
        return 0
    crowd.saw("checked")
    with crowd.lock:
        crowd.checks.append((item, truth))
    return 1


def body_of(lease: str, key: str, value: str | None) -> dict[str, str]:
    body = {"lease": lease, "key": key}
    return body if value is None else {**body, "answer": value}


def submit(
    crowd: Crowd,
    clients: list[Client],
    rng: random.Random,
    lease: str,
    kind: str,
    key: str,
    value: str | None,
) -> Any:
    found = send(crowd, clients, rng, f"/api/worker/{kind}", body_of(lease, key, value))
    if found is None:
        return None
    status, body = found
    if status == 410:
        crowd.saw("lease lost")
        return None
    if status != 200:
        crowd.wrong.append(f"{kind}: {status} {body}")
        return None
    number = None if value is None else int(value == "yes")
    crowd.acknowledge(Ack(int(lease.split(".")[0]), key, kind, number, body["fate"]))
    crowd.saw(f"late {body['fate']}" if body["late"] else body["fate"])
    return body


def send(
    crowd: Crowd, clients: list[Client], rng: random.Random, path: str, body: Any
) -> tuple[int, Any] | None:
    """Send until there is an answer, to any server, with the same key."""
    while not crowd.stop.is_set():
        try:
            status, found = rng.choice(clients).post(path, body)
        except (OSError, http.client.HTTPException, ValueError):
            crowd.saw("connection lost")
            time.sleep(0.1)
            continue
        if status == 503:
            crowd.saw("database away")
            time.sleep(0.1)
            continue
        return status, found
    return None


def run(url: str, servers: list[Server], n_items: int, clients: int, chaos: list[Any]) -> Crowd:
    """Let the crowd work while chaos happens; return when every campaign is finished.

    `chaos` lists what happens after how many acknowledged answers.
    """
    made = make_campaigns(url, n_items, clients)
    crowd = Crowd(url, servers)
    auditors = make_auditors(url, [number for number, _ in made])
    for number, invited in made:
        for place, token in enumerate(invited):
            crowd.begin(worker, token, 1000 * number + place)
    for place, values in enumerate(auditors):
        crowd.begin(auditor, *values, place)
    checking_threads = crowd.threads[-len(auditors) :]
    for count, happening in chaos:
        # By progress, not by time: whatever falls must fall while everybody is working.
        crowd.wait(lambda n=count: len(crowd.acks) >= n)
        happening(crowd)
    crowd.wait(lambda: False)
    for thread in checking_threads:
        thread.join(60)
    with Look(url) as look:
        while not crowd.stuck:
            crowd.wait(lambda: False)
            time.sleep(REOPENED_SECONDS)
            if look.finished():
                break
        else:
            crowd.wrong.append(f"campaigns never finished:\n{look.unfinished()}")
    crowd.stop.set()
    for thread in crowd.threads:
        thread.join(20)
    if any(thread.is_alive() for thread in crowd.threads):
        crowd.wrong.append("clients never came to the end")
    return crowd


def make_auditors(url: str, numbers: list[int]) -> list[tuple[int, str, str]]:
    """Invite auditors; returns the campaign, token and owner token of each."""
    with Store(url).opened() as store:
        now = store.clock()
        owner = store.write(lambda c: tokens.issue(c, "owner", now))

        def invite(number: int, place: int) -> str:
            name = f"a{place}"
            return store.write(lambda c: checking.invite_auditor(c, number, name, now))[0]

        return [(number, invite(number, k), owner) for number in numbers for k in range(AUDITORS)]


def check(url: str, crowd: Crowd) -> None:
    """Check everything that must be true."""
    assert not crowd.wrong, crowd.wrong[:5]
    with Store(url).opened() as store:
        for row in store.read(list_campaigns):
            check_campaign(store, row.id)
        store.read(lambda c: check_acks(c, crowd))
        store.read(lambda c: check_checks(c, crowd))
        crowd.events["leases expired"] = store.read(expired)
        crowd.events |= store.read(revised)


def check_campaign(store: Store, number: int) -> None:
    found = store.read(lambda c: verify(c, number))
    assert found["agrees"], found["differences"][:5]

    def look(connection: Any) -> None:
        waiting = sa.select(sa.func.count()).where(
            items.c.campaign_id == number, items.c.gold.is_(None)
        )
        labelled = sa.select(sa.func.count(), sa.func.count(sa.distinct(labels.c.item_id))).where(
            labels.c.campaign_id == number
        )
        total = connection.execute(waiting).scalar_one()
        assert connection.execute(labelled).one() == (total, total)
        spent = connection.execute(
            sa.select(sa.func.sum(answers.c.price)).where(answers.c.campaign_id == number)
        ).scalar_one()
        purse = connection.execute(
            sa.select(budgets).where(budgets.c.campaign_id == number)
        ).one_or_none()
        assert spent == tally(connection, number)["spent"]
        if purse is not None:
            live = connection.execute(
                sa.select(sa.func.count()).where(
                    leases.c.campaign_id == number, leases.c.state.in_([0, 4])
                )
            ).scalar_one()
            assert (purse.spent, purse.reserved) == (spent, live * 10_000)

    store.read(look)


def check_checks(connection: Any, crowd: Crowd) -> None:
    """Every acknowledged check is stored once, as it was acknowledged.

    Only an item about which nobody could tell is checked again, when its label has changed.
    """
    rows = connection.execute(
        sa.select(checks.c.item_id, checks.c.truth).where(checks.c.correct.is_not(None))
    ).all()
    names = ct.example("table1").classes
    stored = {(item, None if truth is None else names[truth]) for item, truth in rows}
    told = [item for item, truth in rows if truth is not None]
    assert len(set(told)) == len(told)
    assert set(crowd.checks) <= stored
    acknowledged = [item for item, truth in crowd.checks if truth is not None]
    assert len(set(acknowledged)) == len(acknowledged)
    assert len(crowd.checks) >= AUDITORS * CHECKS


def expired(connection: Any) -> int:
    """Count the leases that ran out, those of the idle workers among them."""
    found = [tally(connection, row.id) for row in list_campaigns(connection)]
    assert all(counts.get("expired", 0) >= 1 for counts in found)  # one sat on leases in each
    return sum(counts["expired"] for counts in found)


def revised(connection: Any) -> dict[str, int]:
    """Count the revisions, which must all be finished, and those that the server made."""
    rows = connection.execute(sa.select(revisions).where(revisions.c.number > 0)).all()
    assert all(row.finished_at is not None for row in rows)
    return {"revised": len(rows), "adapted": sum(row.actor == "server" for row in rows)}


def check_acks(connection: Any, crowd: Crowd) -> None:
    """Every acknowledged answer is in the log exactly once, as it was acknowledged."""
    rows = connection.execute(
        sa.select(
            answers.c.lease_id, answers.c.key, answers.c.kind, answers.c.value, answers.c.fate
        )
    ).all()
    log = {(lease, key): (kind, value, fate) for lease, key, kind, value, fate in rows}
    assert len(log) == len(rows)
    for ack in crowd.acks:
        kind, value, fate = log[ack.lease, ack.key]
        assert (kind, value) == (ack.kind, ack.value)
        usual = "skipped" if kind == "skip" else "counted"  # gold looks like any other item
        assert ack.fate == (usual if fate == "gold" else fate), ack
