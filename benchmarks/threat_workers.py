"""Threats by workers: careless, hostile, many, idle."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.server
import json
import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.threat_lab import (
    TABLE,
    Client,
    Finding,
    Lab,
    Refused,
    Site,
    lie,
    rows,
    threat,
    truth,
    until,
)


@threat("a worker calls every worker route, for items with columns that are not shown")
def hidden_columns(lab: Lab) -> Finding:
    site = lab.shared
    secret = [{**row, "truth": "SECRET", "note": "SECRET"} for row in rows(12, 6)]
    worker = site.invite(site.campaign(secret, {"checks": {"gold_rate": 0.5}}, VOTES))
    leaks = set()
    api = ("next", "answer", "skip", "report", "release", "me", "state", "training")
    for path in (*(f"/api/worker/{verb}" for verb in api), "/work", "/work/next"):
        verb, lease = path.rpartition("/")[2], worker.next()["task"]["lease"]
        own = {"next": {}, "release": {"leases": [lease]}}
        more = {"answer": {"answer": "yes"}, "report": {"reason": "other"}}.get(verb, {})
        body = own.get(verb, {"lease": lease, "key": f"x{verb}", **more})
        for found in (worker.get(path), worker.post(path, body)):
            leaks |= {path} if "SECRET" in json.dumps(found.body) else set()
    return Finding(not leaks, f"sent by {', '.join(sorted(leaks)) or 'none of 10 routes'}")


@threat("one person answers all questions")
def alone(lab: Lab) -> Finding:
    site = lab.shared
    number = site.campaign(rows(20))
    site.invite(number).work(truth)
    return labelled(site, number, 20)


def labelled(site: Site, number: int, total: int) -> Finding:
    """No item may be labelled, also after the server has looked at the answers."""
    until(lambda: site.count_of(number, "labelled"), 4)
    found = site.count_of(number, "labelled")
    return Finding(not found, f"{found} of {total} items labelled")


@threat("five strangers answer everything wrongly, a fifth of the questions being about gold items")
def burst(lab: Lab) -> Finding:
    site = lab.shared
    number = site.campaign(rows(40, 5), {"checks": {"gold_rate": 0.2}})
    for worker in site.strangers(number, 5):
        worker.work(lie)
    return labelled(site, number, 40)


@threat("two strangers agree about everything, without gold items")
def newcomers(lab: Lab) -> Finding:
    site = lab.shared
    number = site.campaign(rows(3))
    for worker in site.strangers(number, 2):
        worker.work(lie)
    before = labelled(site, number, 3)
    for _ in range(6):
        site.invite(number).work(truth)
    right = until(lambda: site.progress(number)["labels"] == {"a": 2, "b": 1}, 10)
    seen = f"{before.seen}; after six invited people all are {'right' if right else 'wrong'}"
    return Finding(before.closed and right, seen)


@threat("four strangers label all items wrongly, without gold items and invited people")
def majority(lab: Lab) -> Finding:
    site = lab.shared
    number = site.campaign(rows(20))
    people = site.strangers(number, 4)
    for worker in people:
        worker.work(lie)
    until(lambda: site.count_of(number, "labelled") == 20, 10)
    until(lambda: site.progress(number)["status"] == "finished", 3)
    found = site.progress(number)
    told = people[0].next()["reason"]
    seen = f"{found['items']['labelled']} of 20 items labelled, {found['status']}, workers are told"
    return Finding(found["status"] == "running" and told == "finished", f"{seen} {told!r}")


@threat("the owner excludes a worker's answers, and includes them again")
def exclusion(lab: Lab) -> Finding:
    site = lab.shared
    number = site.campaign(rows(4), {"finish": {"automatically": False}})
    for worker in (site.invite(number), site.invite(number)):
        worker.work(lie)
    base, who = f"/api/campaigns/{number}", site.get(f"/api/campaigns/{number}/workers").body[0]
    with receiver() as (port, received):
        site.made(f"{base}/webhooks", {"url": f"http://127.0.0.1:{port}/"})
        labels = [site.count_of(number, "labelled")]
        agrees = []
        for verb, left in (("exclude", 0), ("include", labels[0])):
            found = site.post(f"{base}/{verb}", {"workers": [who["id"]]})
            if found.status != 200:
                return Finding(False, f"{verb}: {found.status}")
            until(partial(is_labelled, site, number, left), 10)
            labels.append(site.count_of(number, "labelled"))
            agrees.append(site.run("campaign", "verify", str(number)).returncode == 0)
        told = until(lambda: any(b'"withdrawn": [{' in body for body in received), 10)
    seen = f"labels {labels}, verify agrees: {all(agrees)}, webhook told: {bool(told)}"
    return Finding(labels == [4, 0, 4] and all(agrees) and bool(told), seen)


def is_labelled(site: Site, number: int, count: int) -> bool:
    """Whether so many items are labelled."""
    return site.count_of(number, "labelled") == count


@contextlib.contextmanager
def receiver() -> Iterator[tuple[int, list[bytes]]]:
    """A receiver of webhooks; its port, and the bodies that arrive."""
    received: list[bytes] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port, received
        server.shutdown()


def paused(site: Site, number: int, words: str) -> Finding:
    """Somebody must be paused for a reason that has these words."""
    found = until(lambda: site.paused(number), 15)
    return Finding(any(words in why for why in found), "; ".join(found[:1]) or "nobody is paused")


@threat("somebody answers faster than people can read")
def fast(lab: Lab) -> Finding:
    site = lab.shared
    number = site.campaign(rows(60), policy=VOTES)
    people = site.strangers(number, 4)
    for _ in range(6):
        tasks = [(worker, worker.next()["task"]) for worker in people[1:]]
        time.sleep(1.5)
        for worker, task in tasks:
            worker.send("answer", task["lease"], answer=truth(task["item"]))
    people[0].work(truth, 20)
    return paused(site, number, "faster than a person can read")


VOTES = {"problem": TABLE, "workers": 8, "stopping": "none"}
"""Nine people are asked about each item."""


@threat("two people give the same answers, right or wrong")
def alike(lab: Lab) -> Finding:
    site = lab.shared
    number = site.campaign(rows(32), policy=VOTES)
    for worker in site.strangers(number, 2):
        worker.work(lambda item: (lie if int(item["text"][4:-3]) % 4 < 2 else truth)(item))
    for worker in (site.invite(number) for _ in range(4)):
        worker.work(truth)
    return paused(site, number, "beyond chance")


@threat("a stranger answers gold items wrongly")
def gold_failed(lab: Lab) -> Finding:
    site = lab.shared
    number = site.campaign(rows(20, 20), {"checks": {"gold_rate": 0.9}})
    site.strangers(number, 1)[0].work(lie, 30)
    return paused(site, number, "wrong too often")


@threat("more people join than the owner allows per campaign, address and hour")
def caps(lab: Lab) -> Finding:
    site, found = lab.shared, []
    for name in ("max_workers", "max_workers_per_address", "max_joins_per_hour"):
        token = site.open_link(site.campaign(rows(1), {"people": {name: 2}}))
        found.append([site.join(token).status for _ in range(3)][-1])
    return Finding(found == [403, 403, 429], f"third join: {', '.join(map(str, found))}")


@threat("a blocked worker joins again, or somebody joins under an id of their choice")
def signed(lab: Lab) -> Finding:
    site = lab.shared
    number = site.campaign(rows(1), {"people": {"may_join": "signed"}})
    token, base = site.open_link(number), f"/api/campaigns/{number}"
    key, expires = site.get(f"{base}/signing-key")["key"], str(int(time.time()) + 600)
    text = "\n".join(("crowdtree", expires, "", "ann"))
    signature = hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()
    mine = {"expires": expires, "signature": signature}
    found = [site.join(token, participant=who, **mine).status for who in ("ann", "bob")]
    worker = site.get(f"{base}/workers").body[0]["id"]
    site.made(f"{base}/workers/{worker}/block")
    found.append(site.join(token, participant="ann", **mine).status)
    seen = "signed id: {}, another: {}, after a block: {}".format(*found)
    return Finding(found[0] == 200 and set(found[1:]) <= {401, 403}, seen)


@threat("three strangers skip everything")
def skips(lab: Lab) -> Finding:
    site = lab.shared
    number = site.campaign(rows(30))
    for worker in site.strangers(number, 3):
        worker.work("skip", 40)
    until(lambda: site.progress(number)["status"] != "running", 4)
    aside, status = site.count_of(number, "set_aside"), site.progress(number)["status"]
    return Finding(not aside and status == "running", f"{aside} of 30 set aside, {status}")


@threat("the owner wants items back that were set aside, and uploads them again")
def reopening(lab: Lab) -> Finding:
    site = lab.shared
    number = site.campaign(
        rows(9), {"labels": {"max_skips": 1}, "finish": {"automatically": False}}
    )
    worker = site.invite(number)
    worker.work(truth, 6)
    worker.work("skip")
    aside = site.count_of(number, "set_aside")
    told = site.upload(number, rows(9)).body.get("set_aside")
    again = site.post(f"/api/campaigns/{number}/reopen", {"all": True})
    left = site.count_of(number, "set_aside")
    seen = f"{aside} set aside; upload reports {told or 'none'}; reopen: {again.status}"
    return Finding(aside > 0 and told == aside and left == 0, seen)


@threat("a worker asks for the completion code after skipping everything, or after the end")
def codes(lab: Lab) -> Finding:
    site = lab.shared
    settings = {"money": {"completion_code": "C0DE"}, "tasks": {"one_question_per_item": True}}
    number = site.campaign(rows(2), settings)
    token, found = site.open_link(number), []
    for _ in range(2):
        joined = site.join(token)
        worker = Client(site.port)
        if joined.status == 200:
            worker.headers = {"authorization": f"Bearer {joined['token']}"}
            worker.work("skip")
        found.append(joined.status == 200 and "C0DE" in json.dumps(worker.next().body))
        site.made(f"/api/campaigns/{number}/finish")
    return Finding(not any(found), f"code after skips: {found[0]}, after the end: {found[1]}")


@threat("a worker passes a completion code on, or asks for it after too few answers")
def personal_codes(lab: Lab) -> Finding:
    site = lab.shared
    settings = {
        "money": {"personal_codes": True, "min_answers_for_code": 2, "price": 1},
        "tasks": {"max_answers_per_worker": 2},
    }
    try:
        number = site.campaign(rows(9), settings)
    except Refused:
        return Finding(False, "one code for all")
    people = site.strangers(number, 3)
    for worker, answers in zip(people, (2, 2, 1), strict=True):
        worker.work(truth, answers)
    ends = [worker.next().body.get("end") or {} for worker in people]
    given = [end.get("completion_code", "") for end in ends]
    export = site.get(f"/api/campaigns/{number}/workers/export").body.splitlines()
    columns = export[0].split(",")
    earned = [float(line.split(",")[columns.index("earned")]) for line in export[1:]]
    good = len({*given}) == 3 and not given[2] and earned == [2.0, 2.0, 1.0]
    return Finding(good, f"{len({*given} - {''})} codes for answers 2, 2, 1; earned {earned}")


@threat("eight idle people hold questions for the whole budget")
def leases(lab: Lab) -> Finding:
    site = lab.shared
    number = site.campaign(
        rows(30),
        {"money": {"price": 0.1, "budget": 0.8}, "tasks": {"max_seconds_per_question": 120}},
    )
    idle = site.strangers(number, 8)
    for worker in idle:
        held: list[str] = []
        while (task := worker.next(holding=held)["task"]) is not None:
            held.append(task["lease"])
    honest = site.invite(number)
    reason, done, end = honest.next()["reason"], 0, time.monotonic() + 45
    while time.monotonic() < end and done < 8:
        done += honest.work(truth, 1)
        time.sleep(0.2)
    seen = f"an honest person is told {reason!r}, then answers {done} of 8 questions within 45 s"
    return Finding(reason == "wait" and done > 4, seen)


@threat("a worker looks for gold items by their name and the order of their columns")
def gold_names(lab: Lab) -> Finding:
    site = lab.shared
    ordinary = [{**row, "alt": "x"} for row in rows(20)]
    golden = [
        {"gold": row["gold"], "alt": "x", "text": row["text"], "task": f"gold-{k}"}
        for k, row in enumerate(rows(0, 20))
    ]
    number = site.campaign([*ordinary, *golden], {"checks": {"gold_rate": 0.5}})
    worker, seen = site.invite(number), []
    for _ in range(16):
        task = worker.next()["task"]
        seen.append(task["item"])
        worker.send("answer", task["lease"], answer=truth(task["item"]))
    named = sum("gold" in item["task"] for item in seen)
    orders = len({tuple(item) for item in seen})
    return Finding(
        not named and orders == 1, f"{named} of 16 called gold; orders of columns: {orders}"
    )


@threat("gold items are uploaded while nobody is asked about them")
def gold_unused(lab: Lab) -> Finding:
    site = lab.shared
    number = site.campaign(rows(1), {"checks": {"gold_rate": 0}}, start=False)
    found = site.upload(number, rows(1, 3)).body.get("warnings", [])
    return Finding(any("gold" in text for text in found), "a warning" if found else "no word")
