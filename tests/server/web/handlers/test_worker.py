"""What workers do over the API: next, answer, skip."""

from __future__ import annotations

import csv
import io
import json
import threading
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import crowdtree as ct
from crowdtree.server.store import ExpireLeases
from crowdtree.server.store.replay.verify import verify
from crowdtree.server.store.serving.answering import FULL_RECORD
from tests.weblab import CSV, Lab, Worker, until


def test_long_poll_wakes_when_a_question_opens(app: Lab) -> None:
    number = app.campaign("task,text\na,one\n", example="table1", workers=0)
    first, second = app.worker(number), app.worker(number)
    lease = first.next()["task"]["lease"]
    assert second.next()["reason"] == "wait"
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(second.next(wait=20)))
    waiting.start()
    assert until(app.client.app.state.crowdtree.waiters.waiting)
    app_answer = first.answer(lease, "no")
    assert app_answer.json()["fate"] == "counted"
    waiting.join(15)
    assert found
    assert found[0]["task"]["question"]["name"] != "T1"


def test_a_repeated_submit_gets_the_first_result_and_counts_once(app: Lab) -> None:
    number = app.campaign()
    worker = app.worker(number)
    lease = worker.next()["task"]["lease"]
    first = worker.answer(lease, "yes", key="same")
    assert worker.answer(lease, "no", key="same").json() == first.json()
    refused = worker.answer(lease, "no", key="other")
    assert (refused.status_code, refused.json()["error"]) == (409, "answered")
    assert worker.call("skip", lease=lease, key="third").status_code == 409
    assert app.get(f"/api/campaigns/{number}").json()["answers"]["counted"] == 1


def test_a_late_answer_to_a_decided_node_is_kept_and_does_not_count(app: Lab) -> None:
    number = app.campaign("task,text\na,one\n", example="table1", workers=0)
    slow, fast = app.worker(number), app.worker(number)
    lease = slow.next()["task"]["lease"]
    app.clock.now += 601
    app.store.ask(ExpireLeases())
    assert fast.work("yes")["fate"] == "counted"
    assert slow.answer(lease, "no").json() == {"fate": "late", "late": True}
    log = app.get(f"/api/campaigns/{number}/answers?log=true&format=jsonl").text.splitlines()
    assert [json.loads(line)["fate"] for line in log] == ["counted", "late"]
    assert app.store.read(lambda c: verify(c, number))["agrees"]


def test_a_late_answer_to_an_open_node_counts(app: Lab) -> None:
    number = app.campaign()
    slow = app.worker(number)
    lease = slow.next()["task"]["lease"]
    app.clock.now += 601
    app.store.ask(ExpireLeases())
    assert slow.answer(lease).json() == {"fate": "counted", "late": True}


def test_a_clock_set_back_does_not_block_leases_forever(app: Lab) -> None:
    number = app.campaign("task,text\na,one\n", example="table1", workers=0)
    idle, eager = app.worker(number), app.worker(number)
    assert idle.next()["task"]
    app.clock.now -= 100_000
    assert eager.next()["reason"] == "wait"
    assert app.store.ask(ExpireLeases()) == 1
    assert eager.next()["task"]


def skipped(worker: Worker) -> bool:
    """Skip a question; false when there is none."""
    task = worker.next()["task"]
    if task is not None:
        sent = worker.call("skip", lease=task["lease"], key="s" + task["lease"])
        assert sent.json()["fate"] == "skipped"
    return task is not None


def test_skips_set_an_item_aside_with_the_reason(app: Lab) -> None:
    items = "task\n" + "".join(f"{k}\n" for k in range(6))
    number = app.campaign(items, example="table1", workers=0, settings={"max_skips": 2})
    workers = [app.worker(number) for _ in range(2)]
    for worker in workers:
        for _ in range(FULL_RECORD):
            worker.work("no")
    while any(skipped(worker) for worker in workers):
        pass
    rows = list(csv.DictReader(io.StringIO(app.get(f"/api/campaigns/{number}/labels").text)))
    aside = [(row["status"], row["reason"]) for row in rows if row["status"] == "set aside"]
    assert aside
    assert set(aside) == {("set aside", "skipped")}
    assert app.store.read(lambda c: verify(c, number))["agrees"]


def test_nobody_gets_the_same_question_of_an_item_twice(app: Lab) -> None:
    number = app.campaign("task,text\na,one\n", example="table1", workers=8)
    worker = app.worker(number)
    assert worker.work("yes")["fate"] == "counted"
    assert worker.next()["reason"] == "wait"


def test_leases_never_exceed_what_could_matter(app: Lab) -> None:
    number = app.campaign("task,text\na,one\n", example="table1", workers=8)
    votes = int(ct.staff(ct.design(ct.example("table1")), workers=8).votes[0])
    tasks = [app.worker(number).next()["task"] for _ in range(votes)]
    # Curtailed: a majority may decide, so no more than a majority is handed out at once.
    assert [task is not None for task in tasks] == [k <= votes // 2 for k in range(votes)]


def test_next_again_gives_the_same_question_until_it_is_held(app: Lab) -> None:
    number = app.campaign()
    worker = app.worker(number)
    worker.work()  # who has answered nothing holds one question at a time
    first = worker.next()["task"]["lease"]
    assert worker.next()["task"]["lease"] == first
    second = worker.next(holding=[first])["task"]["lease"]
    third = worker.next(holding=[first, second])["task"]["lease"]
    assert len({first, second, third}) == 3
    assert worker.next(holding=[first, second, third])["reason"] == "holding"


def test_items_in_progress_come_first_and_the_question_stays_the_same(app: Lab) -> None:
    number = app.campaign(example="table1", workers=0, settings={"show_item_names": True})
    workers = [app.worker(number) for _ in range(3)]
    assert workers[0].work("no")["fate"] == "counted"  # item 0 moves on to another question
    task = workers[1].next()["task"]
    assert task["item"]["task"] == "i0"
    assert task["question"]["name"] != "T1"
    workers[1].answer(task["lease"], "no")
    task = workers[2].next()["task"]
    assert task["item"]["task"] in ("i0", "i1")


def test_one_question_per_item(app: Lab) -> None:
    number = app.campaign(
        "task,text\na,one\n", example="table1", workers=0, settings={"one_question_per_item": True}
    )
    worker = app.worker(number)
    worker.work("no")
    assert worker.next()["reason"] == "all answered"
    assert app.worker(number).next()["task"]


def test_dedicated_workers_answer_one_question_only(app: Lab) -> None:
    number = app.campaign(example="table1", workers=0, settings={"one_question_per_worker": True})
    workers = [app.worker(number) for _ in range(8)]
    asked: dict[int, set[str]] = {}
    for turn in range(20):
        for worker in workers:
            task = worker.next()["task"]
            if task is not None:
                asked.setdefault(worker.id, set()).add(task["question"]["name"])
                worker.answer(task["lease"], "no" if turn % 3 else "yes")
    assert len(asked) > 2
    assert all(len(names) == 1 for names in asked.values())
    assert len(set.union(*asked.values())) > 1


def test_gold_identifies_and_pauses_unreliable_workers(app: Lab) -> None:
    items = CSV + "".join(f"g{k},gold,c4\n" for k in range(30))
    settings = {
        "gold_rate": 0.5,
        "pause_below": 0.7,
        "pause_after_checks": 5,
        "pause_suspects": False,
    }
    number = app.campaign(items, example="table1", workers=8, settings=settings)
    good, bad = app.worker(number), app.worker(number)
    truth = {"T1": "yes"}  # c4 answers yes to T1
    for _ in range(30):
        for worker in (good, bad):
            task = worker.next()["task"]
            if task is None:
                continue
            right = truth.get(task["question"]["name"], "no")
            wrong = "no" if right == "yes" else "yes"
            worker.answer(task["lease"], right if worker is good else wrong)
    app.settle()
    assert bad.next()["reason"] == "worker paused"
    rows = {row["id"]: row for row in app.get(f"/api/campaigns/{number}/workers").json()}
    assert rows[bad.id]["status"] == "paused"
    assert "reliability" in rows[bad.id]["status_reason"]
    assert rows[bad.id]["reliability"] < 0.7 < rows[good.id]["reliability"]
    assert rows[bad.id]["answers"] > 0  # they stay


def test_new_workers_answer_gold_first(app: Lab) -> None:
    items = CSV + "".join(f"g{k},gold,c4\n" for k in range(30))
    settings = {"gold_first": 3, "show_item_names": True}
    number = app.campaign(items, example="table1", workers=8, settings=settings)
    worker = app.worker(number)
    tasks = []
    for _ in range(6):
        task = worker.next()["task"]
        tasks.append(task["item"]["task"])
        worker.answer(task["lease"])
    assert [name[0] for name in tasks] == ["g"] * 3 + ["i"] * 3


def test_released_questions_are_available_at_once(app: Lab) -> None:
    number = app.campaign("task,text\na,one\n", example="table1", workers=0)
    ann, ben = app.worker(number), app.worker(number)
    lease = ann.next()["task"]["lease"]
    assert ben.next()["task"] is None
    assert ben.call("release", leases=[lease]).json() == {"released": 0}  # it is not ben's
    assert ann.call("release", leases=["9" * 40 + ".ab"]).json() == {"released": 0}
    assert ann.call("release", leases=[lease]).json() == {"released": 1}
    assert until(lambda: ben.next()["task"] is not None)
    late = ann.answer(lease).json()  # the question was not hers any more, but is still open
    assert late["late"]
    found = app.get(f"/api/campaigns/{number}").json()
    assert found["answers"]["expired_leases"] == 1
    assert app.store.read(lambda c: verify(c, number))["agrees"]


def test_the_budget_is_never_exceeded(app: Lab) -> None:
    number = app.campaign(settings={"price": 0.1, "budget": 0.55})
    workers = [app.worker(number) for _ in range(3)]
    for _ in range(5):
        for worker in workers:
            worker.work()
    found = app.get(f"/api/campaigns/{number}").json()
    assert found["spent"] == pytest.approx(0.5)
    app.settle()
    assert app.get(f"/api/campaigns/{number}").json()["status"] == "paused"
    app.client.patch(
        f"/api/campaigns/{number}/settings", json={"money": {"budget": 1.0}}, headers=app.owner
    )
    app.post(f"/api/campaigns/{number}/resume")
    assert workers[0].next()["task"]


def test_answers_per_worker_ends_with_thanks(app: Lab) -> None:
    settings = {"max_answers_per_worker": 2, "completion_code": "C0DE", "thanks": "Thank you!"}
    worker = app.worker(app.campaign(settings=settings))
    worker.work()
    worker.work()
    found = worker.next()
    assert found["reason"] == "done"
    assert found["end"]["completion_code"] == "C0DE"


def test_adaptive_asks_another_question_if_the_best_is_taken(app: Lab) -> None:
    number = app.campaign(
        "task,text\na,one\n", example="table1", kind="adaptive", target_error=0.0, max_answers=6
    )
    worker = app.worker(number)
    asked = []
    for _ in range(5):
        task = worker.next(wait=5)["task"]
        asked.append(task["question"]["name"])
        worker.answer(task["lease"], "no")
    assert len(set(asked)) == 5
    assert app.store.read(lambda c: verify(c, number))["agrees"]
