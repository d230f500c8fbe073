"""The API: owners make campaigns, workers answer, labels come out."""

from __future__ import annotations

import csv
import http.server
import io
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

import crowdtree as ct

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.store import ExpireLeases
from crowdtree.store.owner import tokens
from crowdtree.store.replay.verify import verify
from crowdtree.webhooks import verify_signature
from weblab import CSV, Lab, lab


@pytest.fixture
def app() -> Iterator[Lab]:
    with lab(private_webhooks=True) as made:
        yield made


def until(found: Any, seconds: float = 20.0) -> Any:
    """Wait for background chores."""
    end = time.monotonic() + seconds
    while not (value := found()) and time.monotonic() < end:
        time.sleep(0.05)
    return value


def finish(app: Lab, number: int) -> Any:
    app.post(f"/api/campaigns/{number}/finish")
    assert until(lambda: app.get(f"/api/campaigns/{number}").json()["status"] == "finished")
    return app.get(f"/api/campaigns/{number}").json()


# ------------------------------------------------------------------------------ the way through


def test_a_campaign_from_upload_to_labels(app: Lab) -> None:
    number = app.campaign()
    workers = [app.worker(number) for _ in range(5)]
    busy = True
    while busy:
        done = [worker.work() for worker in workers]
        busy = any(done)
    found = until(lambda: app.get(f"/api/campaigns/{number}").json()["status"] == "finished")
    assert found
    rows = list(csv.DictReader(io.StringIO(app.get(f"/api/campaigns/{number}/labels").text)))
    assert sorted(row["task"] for row in rows) == sorted(f"i{k}" for k in range(20))
    assert {row["label"] for row in rows} == {"c4"}  # everybody said yes to T1
    assert {row["reason"] for row in rows} == {"leaf"}
    assert json.loads(rows[0]["path"])[0]["question"] == "T1"
    assert app.store.read(lambda c: verify(c, number))["agrees"]


def test_exports_agree_in_all_formats(app: Lab) -> None:
    number = app.campaign()
    workers = [app.worker(number) for _ in range(5)]
    for _ in range(10):
        for worker in workers:
            worker.work()
    for what in ("labels", "answers"):
        path = f"/api/campaigns/{number}/{what}?format="
        lines = [json.loads(line) for line in app.get(path + "jsonl").text.splitlines()]
        frame = pl.read_parquet(io.BytesIO(app.get(path + "parquet").content))
        table = list(csv.DictReader(io.StringIO(app.get(path + "csv").text)))
        assert len(lines) == len(frame) == len(table) > 0
        assert frame["task"].to_list() == [row["task"] for row in lines]
        assert [row["task"] for row in table] == [row["task"] for row in lines]
    assert list(table[0]) == ["task", "question", "worker", "label"]


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


def test_finish_labels_what_is_open_and_sets_the_rest_aside(app: Lab) -> None:
    number = app.campaign()
    app.worker(number).work()
    found = finish(app, number)
    assert (found["items"]["labelled"], found["items"]["set_aside"]) == (1, 19)
    rows = list(csv.DictReader(io.StringIO(app.get(f"/api/campaigns/{number}/labels").text)))
    assert sorted({row["reason"] for row in rows}) == ["finished", "never asked"]
    assert app.store.read(lambda c: verify(c, number))["agrees"]


# ------------------------------------------------------------------------------ answers


def test_a_repeated_submit_gets_the_first_result_and_counts_once(app: Lab) -> None:
    number = app.campaign()
    worker = app.worker(number)
    lease = worker.next()["task"]["lease"]
    first = worker.answer(lease, "yes", key="same")
    assert worker.answer(lease, "no", key="same").json() == first.json()
    assert worker.answer(lease, "no", key="other").status_code == 409
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


def test_a_clock_put_back_does_not_lock_leases_for_ever(app: Lab) -> None:
    number = app.campaign("task,text\na,one\n", example="table1", workers=0)
    idle, eager = app.worker(number), app.worker(number)
    assert idle.next()["task"]
    app.clock.now -= 100_000
    assert eager.next()["reason"] == "wait"
    assert app.store.ask(ExpireLeases()) == 1
    assert eager.next()["task"]


def test_undo_brings_the_question_back(app: Lab) -> None:
    number = app.campaign()
    worker = app.worker(number)
    lease = worker.next()["task"]["lease"]
    worker.answer(lease, "no", key="a")
    undone = worker.call("undo", key="u")
    assert undone.json()["task"]["lease"] == lease
    assert worker.call("undo", key="u").json() == undone.json()  # sent twice
    assert worker.call("undo", key="v").status_code == 409
    assert worker.answer(lease, "yes", key="a").json()["fate"] == "counted"  # the first result
    assert worker.answer(lease, "yes", key="b").json()["fate"] == "counted"
    standing = app.get(f"/api/campaigns/{number}/answers").text.splitlines()
    assert len(standing) == 2
    assert standing[1].endswith(",1")
    assert app.store.read(lambda c: verify(c, number))["agrees"]


def test_undo_is_refused_once_the_item_is_finished_or_somebody_answered(app: Lab) -> None:
    number = app.campaign("task,text\na,one\n", example="table1", workers=4)
    one, two = app.worker(number), app.worker(number)
    one.work("no")
    two.work("no")
    assert one.call("undo", key="u").json()["error"] == "late"
    number = app.campaign("task,text\na,one\n", example="table1", workers=0)
    last = app.worker(number)
    last.work("yes")
    assert last.call("undo", key="u").json()["error"] == "late"


def test_skips_set_an_item_aside_with_the_reason(app: Lab) -> None:
    number = app.campaign(
        "task,text\na,one\n", example="table1", workers=0, settings={"most_skips": 2}
    )
    for _ in range(2):
        worker = app.worker(number)
        lease = worker.next()["task"]["lease"]
        assert worker.call("skip", lease=lease, key="s").json()["fate"] == "skipped"
    rows = list(csv.DictReader(io.StringIO(app.get(f"/api/campaigns/{number}/labels").text)))
    assert [(row["status"], row["reason"]) for row in rows] == [("set aside", "skipped")]
    assert app.store.read(lambda c: verify(c, number))["agrees"]


# ------------------------------------------------------------------------------ serving rules


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
    first = worker.next()["task"]["lease"]
    assert worker.next()["task"]["lease"] == first
    second = worker.next(holding=[first])["task"]["lease"]
    third = worker.next(holding=[first, second])["task"]["lease"]
    assert len({first, second, third}) == 3
    assert worker.next(holding=[first, second, third])["reason"] == "holding"


def test_items_in_progress_come_first_and_the_question_stays_the_same(app: Lab) -> None:
    number = app.campaign(example="table1", workers=0)
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
    number = app.campaign(example="table1", workers=0, settings={"dedicated": True})
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


def test_gold_finds_the_unreliable_and_pauses_them(app: Lab) -> None:
    items = CSV + "".join(f"g{k},gold,c4\n" for k in range(30))
    settings = {"gold_rate": 0.5, "pause_below": 0.7, "pause_after": 5}
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
    assert until(lambda: bad.next()["reason"] == "worker paused")
    rows = {row["id"]: row for row in app.get(f"/api/campaigns/{number}/workers").json()}
    assert rows[bad.id]["status"] == "paused"
    assert "reliability" in rows[bad.id]["status_reason"]
    assert rows[bad.id]["reliability"] < 0.7 < rows[good.id]["reliability"]
    assert rows[bad.id]["answers"] > 0  # they stay


def test_a_worker_is_known_before_they_count(app: Lab) -> None:
    items = CSV + "".join(f"g{k},gold,c4\n" for k in range(30))
    number = app.campaign(items, example="table1", workers=8, settings={"gold_first": 3})
    worker = app.worker(number)
    tasks = []
    for _ in range(6):
        task = worker.next()["task"]
        tasks.append(task["item"]["task"])
        worker.answer(task["lease"])
    assert [name[0] for name in tasks] == ["g"] * 3 + ["i"] * 3


def test_answers_an_item_are_those_of_items_that_are_done(app: Lab) -> None:
    number = app.campaign(example="table1", workers=8)
    workers = [app.worker(number) for _ in range(3)]
    for _ in range(8):
        for worker in workers:
            worker.work()
    workers[0].work()  # of an item that is not done
    lines = app.get(f"/api/campaigns/{number}/labels?format=jsonl").text.splitlines()
    taken = [json.loads(line)["answers"] for line in lines]
    found = app.get(f"/api/campaigns/{number}").json()
    assert 0 < len(taken) < 20
    assert found["answers_per_item"] == pytest.approx(sum(taken) / len(taken))
    assert found["answers"]["counted"] > sum(taken)


def test_questions_given_back_are_for_others_at_once(app: Lab) -> None:
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


def test_a_slash_too_many_leads_nowhere(app: Lab) -> None:
    number = app.campaign()
    headers = {**app.owner, "host": "evil.example"}
    found = app.client.get(f"/c/{number}/", headers=headers, follow_redirects=False)
    assert found.status_code == 404


def test_the_budget_is_never_exceeded(app: Lab) -> None:
    number = app.campaign(settings={"price": 0.1, "budget": 0.55})
    workers = [app.worker(number) for _ in range(3)]
    for _ in range(5):
        for worker in workers:
            worker.work()
    found = app.get(f"/api/campaigns/{number}").json()
    assert found["spent"] == pytest.approx(0.5)
    assert until(lambda: app.get(f"/api/campaigns/{number}").json()["status"] == "paused")
    app.client.patch(f"/api/campaigns/{number}/settings", json={"budget": 1.0}, headers=app.owner)
    app.post(f"/api/campaigns/{number}/resume")
    assert workers[0].next()["task"]


def test_answers_per_worker_ends_with_thanks(app: Lab) -> None:
    settings = {"answers_per_worker": 2, "completion_code": "C0DE", "thanks": "Thank you!"}
    worker = app.worker(app.campaign(settings=settings))
    worker.work()
    worker.work()
    found = worker.next()
    assert found["reason"] == "done"
    assert found["end"]["completion_code"] == "C0DE"


def test_pause_and_resume(app: Lab) -> None:
    number = app.campaign()
    worker = app.worker(number)
    app.post(f"/api/campaigns/{number}/pause")
    assert worker.next()["reason"] == "paused"
    app.post(f"/api/campaigns/{number}/resume")
    assert worker.next()["task"]


def test_adaptive_asks_something_else_rather_than_nothing(app: Lab) -> None:
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


# ------------------------------------------------------------------------------ entry


def test_join_by_platform_id_is_the_same_worker_again(app: Lab) -> None:
    number = app.campaign()
    link = app.post(f"/api/campaigns/{number}/join-link").json()["link"]
    for _ in range(2):
        found = app.client.get(
            link + "?PROLIFIC_PID=p1&STUDY_ID=s&SESSION_ID=x", follow_redirects=False
        )
        assert (found.status_code, found.headers["location"]) == (303, "/work")
        assert "httponly" in found.headers["set-cookie"].lower()
    people = app.get(f"/api/campaigns/{number}/workers").json()
    assert [row["external_id"] for row in people] == ["p1"]
    again = app.post(f"/api/campaigns/{number}/join-link").json()["token"]
    assert app.post("/api/join", {"token": link.split("/")[-1]}).status_code == 401
    assert app.post("/api/join", {"token": again}).status_code == 200


def test_the_owner_link_works_once(app: Lab) -> None:
    token = app.store.write(lambda c: tokens.issue(c, "once", app.clock()))
    first = app.client.get(f"/login?token={token}", follow_redirects=False)
    assert (first.status_code, first.headers["location"]) == (303, "/")
    assert "samesite=strict" in first.headers["set-cookie"].lower()
    assert app.client.get(f"/login?token={token}", follow_redirects=False).status_code == 401


# ------------------------------------------------------------------------------ items, hooks


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("name,text\na,b\n", "task"),
        ("task,text\na\n", "line 2"),
        ("task,text\n,b\n", "line 2"),
        ("task,gold\na,nothing\n", "not a class"),
        ("task,image\na,javascript:x\n", "image"),
        ("task,image\na,../../etc/passwd\n", "image"),
        ("task,text\n", "no items"),
    ],
)
def test_bad_items_are_refused_whole(app: Lab, content: str, says: str) -> None:
    number = app.campaign(start=False)
    found = app.client.post(
        f"/api/campaigns/{number}/items",
        content=content.encode(),
        headers={**app.owner, "content-type": "text/csv"},
    )
    assert found.status_code == 422
    assert says in found.json()["message"]
    assert app.get(f"/api/campaigns/{number}").json()["items"]["total"] == 20


def test_items_sent_twice_are_there_once(app: Lab) -> None:
    number = app.campaign(start=False)
    lines = '{"task": "i0"}\n{"task": 7, "text": "new"}\n'
    found = app.client.post(
        f"/api/campaigns/{number}/items",
        content=lines.encode(),
        headers={**app.owner, "content-type": "application/x-ndjson"},
    )
    assert found.json() == {"read": 2, "added": 1}


def test_webhooks_are_signed_and_tell_every_label_once(app: Lab) -> None:
    got: list[tuple[str, bytes]] = []

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            got.append((self.headers["x-crowdtree-signature"], body))
            self.send_response(500 if len(got) == 1 else 204)  # the first time it fails
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            return

    with http.server.HTTPServer(("127.0.0.1", 0), Receiver) as receiver:
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        number = app.campaign(example="table1", workers=0)
        url = f"http://127.0.0.1:{receiver.server_port}/hook?x=1"
        secret = app.post(f"/api/campaigns/{number}/webhooks", {"url": url}).json()["secret"]
        assert "secret" not in app.get(f"/api/campaigns/{number}/webhooks").text
        worker = app.worker(number)
        while worker.work("yes"):
            pass

        def ended() -> bool:
            app.clock.now += 5  # the next try is due
            return any(json.loads(body)["event"] == "campaign.finished" for _, body in got)

        assert until(ended)
        receiver.shutdown()
    assert all(verify_signature(secret, head, body, app.clock()) for head, body in got)
    assert not any(verify_signature("other", head, body, app.clock()) for head, body in got)
    told = [row["task"] for _, body in got[1:] for row in json.loads(body)["labels"]]
    assert sorted(told) == sorted(f"i{k}" for k in range(20))


def test_health_metrics_and_events(app: Lab) -> None:
    number = app.campaign()
    app.worker(number).work()
    assert app.client.get("/healthz").json() == {"status": "ok"}
    assert app.client.get("/metrics").status_code == 401
    text = app.get("/metrics").text
    assert f'crowdtree_answers_total{{campaign="{number}",fate="counted"}} 1.0' in text
    trace = app.get(f"/api/campaigns/{number}/items/1").json()
    assert trace["answers"][0]["fate"] == "counted"
    assert app.get(f"/api/campaigns/{number}/audit").json()[0]["action"] == "invite"
