"""What workers must not learn or get: hidden columns, which items are gold, codes without work."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import sqlalchemy as sa

import crowdtree as ct
from crowdtree.core.problem import DASH
from crowdtree.server.reasons import CampaignReason
from crowdtree.server.store import ExpireLeases
from crowdtree.server.store.db.tables import items, leases, workers
from crowdtree.server.store.replay.verify import verify
from crowdtree.server.web.auth import WORKER_COOKIE, csrf_of
from crowdtree.server.web.state import RELEASES_PER_HOUR
from tests.attack.routes import every_route
from tests.short import nested
from tests.weblab import Lab, Worker, lab

SECRETS = ("SECRET-TRUTH", "SECRET-LABEL", "SECRET-NOTE", "SECRET-NAME", "c4-is-gold", "gold-1")
ALLOWED = {"task", "text", "markdown", "html", "alt", "image", "audio", "video"}


@pytest.fixture
def app() -> Iterator[Lab]:
    with lab() as made:
        yield made


def rows(gold: bool) -> list[dict[str, str]]:
    """Items that carry everything that must stay hidden, gold ones with other columns first."""
    shown = {"text": "A robin.", "markdown": "*Look*", "alt": "A bird", "image": "gold-1.png"}
    secret = {"truth": SECRETS[0], "label": SECRETS[1], "note": SECRETS[2]}
    if gold:
        return [
            {**secret, "id": f"{SECRETS[3]} {SECRETS[4]} {k}", "gold": "c4", **shown}
            for k in range(30)
        ]
    return [{**shown, "task": f"{SECRETS[3]} {k}", **secret, "gold": ""} for k in range(30)]


def mixed(app: Lab, **settings: Any) -> int:
    """A campaign in which every other question is about a gold item."""
    ordinary, gold = rows(False), rows(True)
    lines = [",".join(ordinary[0]), *(",".join(row.values()) for row in ordinary)]
    number = app.campaign("\n".join(lines), start=False, settings={"gold_rate": 0.5, **settings})
    sent = app.client.post(
        f"/api/campaigns/{number}/items",
        content="\n".join(map(json.dumps, gold)).encode(),
        headers={**app.owner, "content-type": "application/x-ndjson"},
    )
    assert sent.json()["added"] == 30
    assert not any("never asked" in warning for warning in sent.json()["warnings"])
    assert app.post(f"/api/campaigns/{number}/start").status_code == 200
    return number


def is_gold(app: Lab, lease: str) -> bool:
    mine = sa.select(items.c.gold).join(leases, leases.c.item_id == items.c.id)
    found = mine.where(leases.c.id == int(lease.partition(".")[0]))
    app.store.write(lambda _: None)  # on SQLite a question is returned before its commit
    return app.store.read(lambda c: c.execute(found).scalar_one()) is not None


def said(app: Lab, worker: Worker, method: str, path: str, lease: str, key: str) -> Any:
    """Use one route of a worker as its page does."""
    body = {
        "next": {"holding": []},
        "answer": {"lease": lease, "key": key, "answer": "yes"},
        "skip": {"lease": lease, "key": key},
        "release": {"leases": [lease]},
        "report": {"lease": lease, "key": key, "reason": "other"},
        "consent": {"mark": "m"},
        "training": {"number": 1, "answer": "yes"},
    }.get(path.rpartition("/")[2])
    headers = {**worker.headers, "x-csrf-token": csrf_of(worker.token)}
    return app.client.request(method, path, json=body, headers=headers)


def test_no_worker_route_sends_what_is_not_shown(app: Lab) -> None:
    number = mixed(app)
    worker = app.worker(number)
    mine = [route for route in every_route(app.client.app) if route.role == "worker"]
    assert len(mine) >= 9
    taken, keys = [], 0
    for turn in range(12):
        for route in mine:
            lease = worker.next()["task"]["lease"]
            taken.append(lease)
            keys += 1
            found = said(app, worker, route.method, route.path, lease, f"k{turn}-{keys}")
            assert found.status_code in (200, 409), (route, found.text)
            assert not any(secret in found.text for secret in SECRETS), route
            if "json" in found.headers["content-type"] and found.json().get("task"):
                assert set(found.json()["task"]["item"]) <= ALLOWED, route
    assert {is_gold(app, lease) for lease in taken} == {True, False}
    link = app.post(f"/api/campaigns/{number}/join-link").json()["link"]
    app.client.cookies.clear()
    page = app.client.get(f"{link}?participant=p1")
    assert app.client.cookies[WORKER_COOKIE]
    assert page.status_code == 200
    assert not any(secret in page.text for secret in SECRETS)


def test_gold_looks_like_any_other_item(app: Lab) -> None:
    """Same keys in the same order, names of the same form, same times, questions of the plan."""
    number = mixed(app, one_question_per_item=True)
    worker = app.worker(number)
    seen: dict[bool, set[str]] = {True: set(), False: set()}
    names: list[str] = []
    numbers: list[int] = []
    while (task := worker.next()["task"]) is not None:
        item = {**task["item"], "task": re.sub(r"[0-9a-f]", "x", task["item"]["task"])}
        lease = re.sub(r"[0-9a-f]", "x", task["lease"].partition(".")[2])
        fate = worker.answer(task["lease"]).json()
        look = json.dumps([item, task["seconds"], task["question"], lease, sorted(task), fate])
        seen[is_gold(app, task["lease"])].add(look)
        names.append(task["item"]["task"])
        numbers.append(int(task["lease"].partition(".")[0]))
    assert seen[True]
    assert seen[True] <= seen[False]
    assert len(names) == len(set(names))  # no item twice, gold ones neither
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert app.store.read(lambda c: verify(c, number))["agrees"]


def test_a_skip_or_a_report_does_not_tell_gold(app: Lab) -> None:
    worker = app.worker(mixed(app))
    told: dict[bool, set[str]] = {True: set(), False: set()}
    for turn in range(40):
        lease = worker.next()["task"]["lease"]
        more = {"reason": "other"} if turn % 2 else {}
        verb = "report" if turn % 2 else "skip"
        found = worker.call(verb, lease=lease, key=f"k{turn}", **more).json()
        told[is_gold(app, lease)].add(found["fate"])
    assert told == {True: {"skipped"}, False: {"skipped"}}


def test_gold_is_asked_only_what_the_plan_asks(app: Lab) -> None:
    plan = ct.design(ct.example("table1"))
    asked = {plan.problem.questions[q] for q in plan.question}
    assert len(asked) < plan.problem.n_questions
    number = mixed(app, gold_rate=1.0)
    worker = app.worker(number)
    open_ended = plan.problem.outcome[:, plan.problem.classes.index("c4")].tolist().index(DASH)
    for _ in range(20):  # with a previous question that has no right answer for gold items
        change = workers.update().values(last_question=open_ended)
        app.store.write(lambda c, change=change: c.execute(change))
        task = worker.next()["task"]
        assert task["question"]["name"] in asked
        worker.answer(task["lease"])


def test_uploaded_files_are_found_by_other_names(tmp_path: Path) -> None:
    with lab(media=tmp_path) as app:
        items = "task,image\n1,gold-1.png\n2,https://example.org/b.png\n"
        number = app.campaign(items, example="table1", workers=0)
        for name, content in (("gold-1.png", b"one"), ("other.png", b"two")):
            path = f"/api/campaigns/{number}/media?name={name}"
            assert app.client.post(path, content=content, headers=app.owner).status_code == 201
        ann, ben = app.worker(number), app.worker(number)
        name = ann.next()["task"]["item"]["image"]
        assert re.fullmatch(r"[0-9a-f]{16}\.png", name)
        assert app.client.get(f"/media/{number}/{name}", headers=ann.headers).content == b"one"
        for guess in (f"{'0' * 16}.png", "gold-1.png", "other.png"):
            unknown = app.client.get(f"/media/{number}/{guess}", headers=ann.headers)
            assert unknown.status_code == 404, guess
        own = app.client.get(f"/media/{number}/gold-1.png", headers=app.owner)
        assert own.content == b"one"
        other = app.worker(app.campaign(items))
        refused = app.client.get(f"/media/{number}/{name}", headers=other.headers)
        assert refused.status_code == 404
        assert ben.next()["task"]["item"]["image"] == "https://example.org/b.png"


def test_gold_is_not_found_by_giving_questions_back(app: Lab) -> None:
    """Beyond a limit the worker keeps the question, and sees the same one again."""
    number = mixed(app)
    worker = app.worker(number)
    given = 0
    for _ in range(RELEASES_PER_HOUR + 5):
        lease = worker.next()["task"]["lease"]
        given += worker.call("release", leases=[lease]).json()["released"]
        app.store.ask(ExpireLeases())
    assert given == RELEASES_PER_HOUR
    assert worker.next()["task"]["lease"] == lease
    assert worker.answer(lease, "no").json()["fate"] == "counted"


# ------------------------------------------------------------------------------ idle and skipping


def joined(app: Lab, number: int, **wish: Any) -> Worker:
    link = app.post(f"/api/campaigns/{number}/join-link").json()["token"]
    found = app.client.post("/api/join", json={"token": link, **wish})
    assert found.status_code == 200, found.text
    return Worker(app, 0, found.json()["token"])


def test_idle_joins_do_not_hold_the_budget(app: Lab) -> None:
    """Eight people who join and do nothing: honest ones wait a minute and then get everything."""
    number = app.campaign(settings={"price": 0.1, "budget": 0.8})
    idle = [joined(app, number) for _ in range(8)]
    for worker in idle:
        first = worker.next()["task"]["lease"]
        assert worker.next(holding=[first])["reason"] in ("holding", "wait")  # one at a time
    honest = app.worker(number)
    found = honest.next()
    assert (found["task"], found["reason"], found["more"]) == (None, "wait", True)
    app.clock.now += 61
    assert honest.next()["reason"] == "wait"  # asks the server to take leases back
    assert app.store.ask(ExpireLeases()) == 8
    for _ in range(8):
        assert honest.work("no")["fate"] == "counted"
    assert honest.next()["reason"] == "budget"
    assert app.store.read(lambda c: verify(c, number))["agrees"]


def test_leases_of_those_who_let_them_expire_shrink(app: Lab) -> None:
    number = app.campaign()
    worker = app.worker(number)
    for seconds in (600.0, 300.0, 150.0, 75.0, 37.5, 30.0, 30.0):
        task = worker.next()["task"]
        assert task["seconds"] == seconds
        app.clock.now += seconds + 1
        app.store.ask(ExpireLeases())
    assert worker.work()["fate"] == "counted"
    assert worker.next()["task"]["seconds"] == 600.0  # who answers is trusted again


def test_giving_a_question_back_is_not_held_against_anybody(app: Lab) -> None:
    worker = app.worker(app.campaign())
    for _ in range(3):
        lease = worker.next()["task"]["lease"]
        assert worker.call("release", leases=[lease]).json() == {"released": 1}
        app.store.ask(ExpireLeases())
    assert worker.next()["task"]["seconds"] == 600.0


def test_people_at_work_keep_their_questions_when_others_wait(app: Lab) -> None:
    number = app.campaign(settings={"price": 0.1, "budget": 0.2})
    ann, ben = app.worker(number), app.worker(number)
    assert ann.work()["fate"] == "counted"
    lease = ann.next()["task"]["lease"]
    app.clock.now += 61
    assert ben.next()["reason"] == "wait"
    assert app.store.ask(ExpireLeases()) == 0
    assert ann.answer(lease).json() == {"fate": "counted", "late": False}


def test_three_joins_cannot_skip_a_campaign_away(app: Lab) -> None:
    number = app.campaign("task\n" + "".join(f"i{k}\n" for k in range(30)))
    for _ in range(3):
        worker = joined(app, number)
        for k in range(30):
            task = worker.next()["task"]
            if task is None:
                break
            worker.call("skip", lease=task["lease"], key=f"s{k}")
    app.settle()
    found = app.get(f"/api/campaigns/{number}").json()
    assert found["answers"]["skipped"] == 90
    assert (found["status"], found["items"]["set_aside"]) == ("running", 0)
    honest = app.worker(number)
    assert honest.next()["task"]
    assert app.store.read(lambda c: verify(c, number))["agrees"]


def with_record(app: Lab, number: int, people: int) -> list[Worker]:
    made = [app.worker(number) for _ in range(people)]
    change = workers.update().where(workers.c.campaign_id == number)
    app.store.write(lambda c: c.execute(change.values(answers=50)))
    return made


def test_a_campaign_of_skipped_items_pauses_and_tells_the_owner(app: Lab) -> None:
    number = app.campaign("task\na\nb\n")
    for worker in with_record(app, number, 3):
        for k in range(2):
            worker.call("skip", lease=worker.next()["task"]["lease"], key=f"s{k}")
    app.settle()
    found = app.get(f"/api/campaigns/{number}").json()
    assert found["items"]["set_aside"] == 2
    assert found["status"] == "paused"
    assert "set aside because people could not tell" in found["status_reason"]
    assert "skipped away" in [
        row["action"] for row in app.get(f"/api/campaigns/{number}/activity").json()
    ]
    assert "set aside because people could not tell" in app.get(f"/c/{number}").text
    assert app.post(f"/api/campaigns/{number}/finish").status_code == 200
    app.settle()
    assert app.get(f"/api/campaigns/{number}").json()["status"] == "finished"


def test_items_that_were_skipped_away_can_be_reopened(app: Lab) -> None:
    number = app.campaign("task\na\nb\n", example="table1", workers=0)
    for worker in with_record(app, number, 3):
        for k in range(2):
            worker.call("skip", lease=worker.next()["task"]["lease"], key=f"s{k}")
    app.settle()
    assert app.get(f"/api/campaigns/{number}").json()["status"] == "paused"
    assert app.post(f"/api/campaigns/{number}/reopen", {"all": True}).status_code == 200
    app.post(f"/api/campaigns/{number}/resume")
    fresh = app.worker(number)
    while fresh.work("yes"):
        pass
    app.settle()
    found = app.get(f"/api/campaigns/{number}").json()
    assert (found["status"], found["items"]["labelled"]) == ("finished", 2)


# ------------------------------------------------------------------------------ completion codes


def ended(worker: Worker) -> Any:
    found = worker.next()
    assert found["more"] is False
    return found["end"]


def test_no_code_without_work(app: Lab) -> None:
    """Neither for joining a finished campaign nor for skipping everything."""
    back = "https://example.org/complete?cc=C0DE"
    settings = {"completion_code": "C0DE", "return_url": back, "one_question_per_item": True}
    number = app.campaign("task\na\nb\n", example="table1", workers=0, settings=settings)
    lazy, late = joined(app, number), joined(app, number)
    for k in range(2):
        lazy.call("skip", lease=lazy.next()["task"]["lease"], key=f"s{k}")
    end = ended(lazy)
    assert (end["completion_code"], end["return_url"], end["complete"]) == ("", "", False)
    honest = joined(app, number)
    while honest.work("yes"):
        pass
    end = ended(honest)
    assert (end["completion_code"], end["return_url"], end["accepted"]) == ("C0DE", back, 2)
    app.settle()
    assert app.get(f"/api/campaigns/{number}").json()["status"] == "finished"
    assert "C0DE" not in json.dumps(late.next())
    link = app.post(f"/api/campaigns/{number}/join-link").json()
    refused = app.client.post("/api/join", json={"token": link["token"]})
    assert (refused.status_code, refused.json()["error"]) == (410, "over")
    app.client.cookies.clear()
    page = app.client.get(link["link"])
    assert (page.status_code, "This work is finished" in page.text) == (410, True)
    assert "C0DE" not in page.text


def test_codes_are_personal_and_need_accepted_answers(app: Lab) -> None:
    settings = {
        "personal_codes": True,
        "min_answers_for_code": 2,
        "max_answers_per_worker": 2,
        "price": 0.5,
    }
    number = app.campaign(settings=settings)
    people = [joined(app, number, participant=f"p{k}") for k in range(3)]
    for worker in people[:2]:
        for _ in range(2):
            worker.work("no")
    people[2].work("no")
    codes = [ended(worker)["completion_code"] for worker in people[:2]]
    assert len(set(codes)) == 2
    assert all(re.fullmatch(r"([A-Z2-7]{4}-){2}[A-Z2-7]{4}", code) for code in codes)
    assert ended(people[0])["completion_code"] == codes[0]
    assert "completion_code" not in people[2].next().get("end", {})
    text = app.get(f"/api/campaigns/{number}/workers/export").text.splitlines()
    found = [dict(zip(text[0].split(","), line.split(","), strict=True)) for line in text[1:]]
    assert [row["participant"] for row in found] == ["p0", "p1", "p2"]
    assert [row["code"] for row in found] == [*codes, ""]
    assert [row["complete"] for row in found] == ["True", "True", "False"]
    assert [row["accepted"] for row in found] == ["2", "2", "1"]
    assert [float(row["earned"]) for row in found] == [1.0, 1.0, 0.5]
    listed = app.get(f"/api/campaigns/{number}/workers").json()
    page = app.get(f"/c/{number}/workers/{listed[0]['id']}").text
    assert codes[0] in page
    assert app.store.read(lambda c: verify(c, number))["agrees"]
    for wrong in ({"completion_code": "C0DE"}, {"min_answers_for_code": 3}):
        path = f"/api/campaigns/{number}/settings"
        assert app.client.patch(path, json=nested(wrong), headers=app.owner).status_code == 422


def test_strangers_get_their_code_but_do_not_finish_a_campaign(app: Lab) -> None:
    """The owner is told, looks at the labels, and finishes it; clients of workers end."""
    settings = {"people_per_item": 2, "require_trusted_answer": True, "completion_code": "C0DE"}
    items = "task\n" + "".join(f"item {k}\n" for k in range(12))
    number = app.campaign(items, settings=settings)
    people = [joined(app, number) for _ in range(3)]
    while sum(worker.work("no") is not None for worker in people):
        app.clock.now += 5.0
    app.settle()
    found = app.get(f"/api/campaigns/{number}").json()
    assert (found["status"], found["reason"]) == ("running", CampaignReason.LEFT_TO_OWNER)
    assert found["items"]["labelled"] == 12
    assert ended(people[0])["completion_code"] == "C0DE"
    page = app.get(f"/c/{number}").text
    assert "All items have their label; waiting for you to finish it" in page
    assert "Check some labels" in page
    assert app.post(f"/api/campaigns/{number}/finish").status_code == 200
    app.settle()
    assert app.get(f"/api/campaigns/{number}").json()["status"] == "finished"


def test_the_log_is_not_filled_by_answering_again(app: Lab) -> None:
    number = app.campaign()
    worker = app.worker(number)
    lease = worker.next()["task"]["lease"]
    sent = {"reason": "other", "words": "x" * 500}
    codes = [worker.call("report", lease=lease, key=f"r{k}", **sent).status_code for k in range(5)]
    assert codes == [200, 409, 409, 409, 409]
    noted = app.get(f"/api/campaigns/{number}/activity").json()
    assert len([entry for entry in noted if entry["action"] == "report"]) == 1
    assert app.store.read(lambda c: verify(c, number))["agrees"]


def test_who_still_holds_a_question_is_not_complete(app: Lab) -> None:
    number = app.campaign(settings={"max_answers_per_worker": 3, "personal_codes": True})
    worker = app.worker(number)
    for _ in range(2):
        worker.work("no")
    lease = worker.next()["task"]["lease"]
    found = worker.next(holding=[lease])
    assert (found["reason"], "end" in found) == ("holding", False)
    worker.answer(lease)
    assert ended(worker)["accepted"] == 3
