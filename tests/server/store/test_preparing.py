"""Consent, training and reports: what workers do besides answering."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip(
    "sqlalchemy", reason="the server is not installed: pip install crowdtree[serve]"
)

import sqlalchemy as sa

from crowdtree import client
from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.store.db.activity import list_activity
from crowdtree.server.store.db.tables import answers, judgements, leases, workers
from crowdtree.server.store.replay.verify import verify
from tests.storelab import change
from tests.weblab import Lab, Worker, lab

GOLD = "task,text,gold,explanation\n" + "".join(
    f"g{k},Gold {k},c{k + 1},{'It has a tail.' if not k else ''}\n" for k in range(4)
)
ITEMS = GOLD + "".join(f"i{k},Item {k},,\n" for k in range(6))


def practise(worker: Worker, number: int, answer: str = "yes") -> Any:
    return worker.call("training", number=number, answer=answer)


def see(worker: Worker, path: str) -> Any:
    return worker.lab.client.get(f"/api/worker/{path}", headers=worker.headers).json()


def rows(app: Lab, table: sa.Table) -> list[Any]:
    return app.store.read(lambda c: list(c.execute(sa.select(table)).all()))


# ---------------------------------------------------------------- consent


def test_nobody_gets_an_item_before_they_agree(url: str) -> None:
    with lab(url) as app:
        number = app.campaign(settings={"consent": "I take part."})
        worker = app.worker(number)
        found = worker.next(wait=5)  # is not waited for
        assert (found["task"], found["reason"], found["more"]) == (None, "consent", False)
        assert rows(app, leases) == []
        me = see(worker, "me")
        assert me["consent"] == "I take part."
        assert worker.call("consent", mark="another").json()["error"] == "consent"
        app.clock.now += 60
        assert worker.call("consent", mark=me["consent_mark"]).json() == {"agreed": True}
        assert see(worker, "me")["consent_mark"] == ""
        agreed = rows(app, workers)[0].consented_at
        assert agreed == app.clock.now
        app.clock.now += 60
        worker.call("consent", mark=me["consent_mark"])  # once more changes nothing
        assert rows(app, workers)[0].consented_at == agreed
        assert worker.next()["task"] is not None


def test_another_text_is_asked_for_again_even_from_those_who_hold_a_question() -> None:
    with lab() as app:
        number = app.campaign(settings={"consent": "I take part."})
        worker = app.worker(number)
        worker.call("consent", mark=see(worker, "me")["consent_mark"])
        lease = worker.next()["task"]["lease"]
        assert change(app, number, texts={"de": {"consent": "Ich nehme teil."}}).status_code == 200
        assert worker.next()["reason"] == "consent"
        exported = app.get(f"/api/campaigns/{number}/workers/export?format=jsonl").json()
        assert exported["consented_at"] is None
        worker.call("consent", mark=see(worker, "me")["consent_mark"])
        assert worker.next()["task"]["lease"] == lease
        exported = app.get(f"/api/campaigns/{number}/workers/export?format=jsonl").json()
        assert exported["consented_at"] == app.clock.now
        change(app, number, texts={"de": {"help": "Was?"}, "es": {"thanks": "Gracias"}})
        change(app, number, texts={"de": {"consent": "Ich nehme teil.", "help": "Was?"}})
        assert worker.next()["task"]["lease"] == lease  # other texts do not matter
        assert "yes" in app.get(f"/c/{number}/workers/{worker.id}").text


# ---------------------------------------------------------------- training


def test_training_gives_feedback_and_counts_for_nothing(url: str) -> None:
    with lab(url) as app:
        settings = {"practice_items": 2, "gold_rate": 1.0, "price": 0.1, "budget": 10}
        number = app.campaign(ITEMS, settings=settings)
        worker = app.worker(number)
        assert worker.next()["reason"] == "training"
        shown = see(worker, "training")
        assert (shown["total"], shown["done"], shown["task"]["number"]) == (2, 0, 1)
        assert shown["task"]["item"]["text"] == "Gold 0"
        assert shown["task"]["question"]["name"] == "T1"
        assert practise(worker, 2).json()["error"] == "training"  # in order
        told = practise(worker, 1, "yes").json()
        told_again = practise(worker, 1, "no").json()  # the answer was lost: the same item
        assert told == {
            "right": "no",
            "correct": False,
            "truth": "c1",
            "explanation": "It has a tail.",
            "of_class": False,
        }
        assert told_again["correct"] is True
        assert see(worker, "training")["done"] == 1
        assert practise(worker, 2, "skip").json()["correct"] is None
        assert see(worker, "training")["task"] is None
        row = rows(app, workers)[0]
        counted = (row.answers, row.skips, row.accepted, row.earned, row.gold_asked, row.trained)
        assert counted == (0, 0, 0, 0, 0, 2)
        assert rows(app, answers) == rows(app, judgements) == rows(app, leases) == []
        assert app.get(f"/api/campaigns/{number}").json()["spent"] == 0
        texts = set()
        while (task := worker.next()["task"]) is not None and len(texts) < 2:
            texts.add(task["item"]["text"])
            worker.answer(task["lease"])
        assert texts == {"Gold 2", "Gold 3"}  # those of the training are no check items
        assert app.store.read(lambda c: verify(c, number))["differences"] == []


def test_training_is_for_newcomers_and_as_long_as_there_are_gold_items() -> None:
    with lab() as app:
        number = app.campaign(ITEMS)
        old = app.worker(number)
        old.work()
        assert change(app, number, practice_items=50).status_code == 200
        assert old.next()["task"] is not None
        assert see(old, "training") == {"total": 0, "done": 0, "task": None}
        new = app.worker(number)
        assert see(new, "training")["total"] == 4
        assert "The training asks for 50 items of known class; there are 4." in (
            app.get(f"/c/{number}").text
        )
        change(app, number, practice_items=0)
        assert new.next()["task"] is not None


def test_a_campaign_without_gold_items_has_no_training() -> None:
    with lab() as app:
        worker = app.worker(app.campaign(settings={"practice_items": 3}))
        assert worker.next()["task"] is not None


def test_people_with_one_question_practise_that_one() -> None:
    with lab() as app:
        number = app.campaign(
            ITEMS, settings={"practice_items": 4, "one_question_per_worker": True}
        )
        worker = app.worker(number)
        asked = set()
        while (task := see(worker, "training")["task"]) is not None:
            asked.add(task["question"]["name"])
            practise(worker, task["number"])
        assert len(asked) == 1
        assert worker.next()["task"]["question"]["name"] in asked


def test_training_comes_after_consent() -> None:
    with lab() as app:
        worker = app.worker(app.campaign(ITEMS, settings={"practice_items": 1, "consent": "Yes."}))
        assert see(worker, "training")["error"] == "consent"
        assert practise(worker, 1).json()["error"] == "consent"


# ---------------------------------------------------------------- reports


def test_a_report_is_a_skip_that_reaches_the_owner(url: str) -> None:
    with lab(url) as app:
        number = app.campaign("task,text\na,one\nb,two\n", settings={"price": 0.1, "budget": 1})
        worker = app.worker(number, "Ann")
        task = worker.next()["task"]
        sent = {"lease": task["lease"], "key": "r", "reason": "unreadable", "words": " too dark "}
        assert worker.call("report", **sent).json() == {"fate": "skipped", "late": False}
        assert worker.call("report", **sent).json()["fate"] == "skipped"  # sent twice, taken once
        assert see(worker, "state")["skips"] == 1
        path = f"/api/campaigns/{number}/reports"
        line = app.get(f"{path}?format=jsonl").json()
        assert (line["reason"], line["words"], line["worker"]) == (
            *("unreadable", "too dark"),
            f"w{worker.id} Ann",
        )
        log = app.get(f"/api/campaigns/{number}/answers?format=jsonl&log=true").json()
        assert (log["kind"], log["report"]) == ("skip", "unreadable: too dark")
        noted = app.store.read(lambda c: list_activity(c, number))
        reports = [row for row in noted if row["action"] == "report"]
        assert [(row["actor"], row["detail"]["worker"]) for row in reports] == [
            ("worker", worker.id)
        ]
        page = app.get(f"/c/{number}/reports").text
        assert "It cannot be read or recognised" in page
        assert "too dark" in page
        assert "1 item without a label was reported by workers." in app.get(f"/c/{number}").text
        item = rows(app, answers)[0].item_id
        assert "reported: It cannot be read" in app.get(f"/c/{number}/items/{item}").text
        assert app.store.read(lambda c: verify(c, number))["differences"] == []


@pytest.mark.parametrize(
    "wrong", [{"reason": "bored"}, {"reason": "other", "words": "x" * 501}, {}]
)
def test_a_wrong_report_changes_nothing(wrong: dict[str, str]) -> None:
    with lab() as app:
        worker = app.worker(app.campaign())
        lease = worker.next()["task"]["lease"]
        assert worker.call("report", lease=lease, key="r", **wrong).status_code == 422
        assert rows(app, answers) == []


def test_formulas_in_reports_do_not_run() -> None:
    with lab() as app:
        number = app.campaign()
        worker = app.worker(number)
        lease = worker.next()["task"]["lease"]
        words = "=cmd()\x00"
        worker.call("report", lease=lease, key="r", reason="other", words=words)
        assert ",other,'=cmd()," in app.get(f"/api/campaigns/{number}/reports").text
        assert app.get(f"/api/campaigns/{number}/reports?format=parquet").content[:4] == b"PAR1"


# ---------------------------------------------------------------- state


def test_workers_learn_that_they_are_paused_or_blocked(url: str) -> None:
    with lab(url) as app:
        number = app.campaign(settings={"price": 0.25, "budget": 1})
        worker = app.worker(number)
        worker.work()
        base = f"/api/campaigns/{number}"
        found = see(worker, "state")
        assert (found["worker"], found["campaign"], found["earned"]) == ("active", "running", 0.25)
        app.post(f"{base}/pause")
        assert see(worker, "state")["campaign"] == "paused"
        app.post(f"{base}/resume")
        app.post(f"{base}/workers/{worker.id}/pause")
        assert see(worker, "state")["worker"] == "paused"
        app.post(f"{base}/workers/{worker.id}/block")
        assert see(worker, "state")["error"] == "blocked"


# ---------------------------------------------------------------- the client


class Through(client.Client):
    """A client whose requests go to an application in memory."""

    def __init__(self, worker: Worker) -> None:
        super().__init__("127.0.0.1:1", worker.token)
        self.worker = worker

    def _send(self, method: str, path: str, content: Any = None, *_: Any) -> Any:
        head = self.headers | {"content-type": "application/json"}
        found = self.worker.lab.client.request(method, path, content=content, headers=head)
        return found.json(), found.headers


def test_the_client_practises_and_refuses_to_consent_by_itself() -> None:
    with lab() as app:
        number = app.campaign(ITEMS, settings={"practice_items": 2, "consent": "I take part."})
        worker = app.worker(number)
        with pytest.raises(CrowdtreeError, match="asks for consent first"):
            client.work(Through(worker), lambda *_: True)
        worker.call("consent", mark=see(worker, "me")["consent_mark"])
        texts: list[str] = []

        def answer(item: dict[str, Any], _: dict[str, Any]) -> bool:
            texts.append(item["text"])
            return False

        given = client.work(Through(worker), answer, wait=0, patience=0.0)
        assert texts[:2] == ["Gold 0", "Gold 1"]
        assert given == len(texts) - 2 > 0
